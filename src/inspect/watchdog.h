/* SPDX-License-Identifier: MIT */
#ifndef RS_WATCHDOG_H
#define RS_WATCHDOG_H

/* Reports a loop that is blocked while it is: see watchdog.c. */

#include <sys/types.h>

#include "core/core.h"
#include "sys/observe.h"

struct rs_watched {
        struct rs_node node;
        struct rs_loop *loop; /* NULL: it is not watched */
        const bool *steps;    /* of an embedded run: whether a step is under way; NULL: it runs all the time */
        unsigned forks;       /* rs_forks, of the process in which it is watched */
        pid_t tid;
        int64_t limit;  /* ns */
        uint64_t stamp; /* what the loop had done at the last look */
        /* of that stamp, and later by what does not count; 0: it sleeps, or has just moved */
        int64_t since;
        int64_t looked;                     /* when the last look found it so, */
        int64_t went;                       /* and the last that found the thread not kept from running */
        struct rs_observe_times then, last; /* of the thread, at those */
        int64_t next;                       /* how long it may be blocked before the next report */
        const char *task;                   /* the one that was reported: static, or `name`; or NULL */
        const char *site;                   /* its place */
        char name[48];                      /* a copy of a name that it has given itself */
        bool reported;
};

/* From now on the loop, which runs on this thread, is watched: limit ns, 0: it is not, nor if no thread can be had.
 * steps: NULL, or where is said whether it runs now; set before rs_inbox_awake(). */
void rs_watchdog_add(struct rs_watched *w, struct rs_loop *l, int64_t limit, const bool *steps);

/* No report is being made when it returns. Nothing if it is not watched. */
void rs_watchdog_remove(struct rs_watched *w);

/* In a forked child. */
void rs_watchdog_forked(void);

#endif
