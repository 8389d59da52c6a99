/* SPDX-License-Identifier: MIT */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

/* Results where people and programs read them: a line for each URL on a terminal, JSON Lines elsewhere. */

#include "job.h"

enum output_format { OUTPUT_LINES, OUTPUT_JSON };

struct output;

/* path "-": stdout; a file is made anew. clear_first: a progress line may stand where the first line goes. 0; negative
 * with a record. [any-thread] */
int output_open(const char *path, enum output_format format, bool clear_first, struct output **ret_output);

/* Writes finished jobs, in a thread, since whoever reads may be slow. 0; -EPIPE when nobody reads any more; negative
 * with a record. [task] cancellation point */
int output_write(struct output *o, struct job *const *jobs, size_t n);

/* Closes it: 0, or what went wrong. NULL is fine. */
int output_close(struct output *o);
void output_closep(struct output **o);

#endif
