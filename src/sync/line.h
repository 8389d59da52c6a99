/* SPDX-License-Identifier: MIT */
#ifndef RS_LINE_H
#define RS_LINE_H

/* Whose a line of waits is. What tasks share belongs to one loop, and has no lock: a task of another loop that stands
 * in its line, or wakes who does, breaks both loops. Where somebody is in the line that is seen, for the price of a
 * look at the first one. */

#include "core/core.h"

static inline bool rs_line_elsewhere(const struct rs_loop *l, const struct rs_list *line)
{
        return line->first && !rs_task_is_here(l, RS_CONTAINER(line->first, struct rs_wait, node)->task->mark);
}

/* The code of that, with its record. `what`: "event". */
int rs_line_refuse(const char *what) __attribute__((cold, noinline));

#endif
