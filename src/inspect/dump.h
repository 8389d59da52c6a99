/* SPDX-License-Identifier: MIT */
#ifndef RS_DUMP_H
#define RS_DUMP_H

/* All tasks of a loop as text: see dump.c. */

#include <sys/types.h>

#include "core/core.h"

/* From any other thread while the loop cannot go away, which goes on meanwhile; tid: its thread. Before it `head`, a
 * line. 0, or what writing fails with; -ENOMEM. */
int rs_dump_loop(const struct rs_loop *l, pid_t tid, const char *head, int fd);

#endif
