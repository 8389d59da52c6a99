/* SPDX-License-Identifier: MIT */
#ifndef CLI_HEADER_H
#define CLI_HEADER_H

/* Headers of -H: "NAME: VALUE" or "@FILE" with one a line. Their values are secrets: they go to the servers and nowhere
 * else. */

#include "options.h"

/* 0, or -EINVAL, -ENOMEM with one line in *ret_problem that holds no value. */
int header_add(struct options *o, const char *spec, struct text *ret_problem);

/* Overwrites the value in a word of argv, so that `ps` no longer shows it. */
void header_wipe(char *spec);

#endif
