/* SPDX-License-Identifier: MIT */
#ifndef CLI_CLOSING_H
#define CLI_CLOSING_H

/* What a preset says at the end. */

#include <resha/sqlite.h>

#include "text.h"

/* Adds `line` with its {} replaced by n, and a line for the first column of each row of `query` (NULL: none). What the
 * database cannot answer is left out. [task] cancellation point */
void closing_add(struct text *t, resha_sqlite *db, const char *line, const char *query, uint64_t n);

/* The same on stdout: 0, or negative with a record if it cannot be written. [task] cancellation point */
int closing_print(resha_sqlite *db, const char *line, const char *query, uint64_t n);

#endif
