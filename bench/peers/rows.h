/* SPDX-License-Identifier: MIT */
#ifndef PEER_ROWS_H
#define PEER_ROWS_H

/* The table that resha fetch fills, filled with the SQLite library directly. */

#include "curl_loop.h"

enum { ROWS_BATCH = 500 };

/* All end the program if SQLite fails. Rows between begin and commit are one transaction. */
void rows_open(const char *path);
void rows_begin(void);
void rows_add(const struct answer *a);
void rows_commit(void);
void rows_close(void);

#endif
