/* SPDX-License-Identifier: MIT */
#ifndef RS_DUMP_H
#define RS_DUMP_H

/* All tasks of a loop as text: see dump.c. */

#include <sys/types.h>

#include "core/core.h"

/* From any other thread, while the loop cannot go away, though it may go on; tid: its thread. Given up at `*until`,
 * which may change meanwhile (atomic). 0, or what writing fails with; -ETIME: nobody reads; -ENOMEM. */
int rs_dump_loop(const struct rs_loop *l, pid_t tid, int fd, const int64_t *until);

/* How long the end of a run waits for one that is being written. */
enum { RS_DUMP_PATIENCE_MS = 2000 };

/* ---- on a signal ---- */

/* A loop that is written to stderr on a signal. */
struct rs_dumped {
        struct rs_node node;
        const struct rs_loop *loop; /* NULL: it is not */
        unsigned forks;             /* rs_forks, of the process in which it is */
        pid_t tid;
        int signal;
};

/* From now on the loop, which runs on this thread, is. sig 0: it is not. 0; or why it is not, in one line. */
int rs_dumper_add(struct rs_dumped *w, const struct rs_loop *l, int sig, char *ret_why, size_t size);

/* It is not being written when it returns. Nothing if it is not to be. */
void rs_dumper_remove(struct rs_dumped *w);

/* In a forked child. */
void rs_dumper_forked(void);

/* "USR1", "SIGUSR1" or a number: that signal; -EINVAL: none that can be taken for it. */
int rs_dumper_signal(const char *name);

#endif
