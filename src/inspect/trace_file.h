/* SPDX-License-Identifier: MIT */
#ifndef RS_TRACE_FILE_H
#define RS_TRACE_FILE_H

/* RESHA_TRACE=FILE: one file for all runs of the process. */

#include <stddef.h>

struct rs_loop;
struct rs_trace;

/* l has not begun, and has no ring. events: of its ring, at least. 0, and *ret_trace NULL if none is asked for;
 * -ENOMEM, -EINVAL (RESHA_TRACE_LIMIT), or why the file cannot be made. */
int rs_trace_file_begin(struct rs_loop *l, size_t events, struct rs_trace **ret_trace);

/* In a forked child: the parent's file is not its own. */
void rs_trace_file_forked(void);

/* After the loop has stopped to write to its ring. 0, or why the file is not whole. */
int rs_trace_file_end(struct rs_trace *t);

#endif
