/* SPDX-License-Identifier: MIT */
#ifndef RS_INSPECTOR_H
#define RS_INSPECTOR_H

/* The thread and the socket by which other processes look at the loops of this one: see inspector.c. */

#include <sys/types.h>

#include "core/core.h"

enum rs_ask { RS_ASK_IDLE, RS_ASK_POSTED, RS_ASK_RUNS, RS_ASK_DONE, RS_ASK_LATE };

/* A loop that can be looked at. */
struct rs_inspected {
        struct rs_node node;
        struct rs_loop *loop; /* NULL: it cannot */
        const bool *steps;    /* of an embedded run: whether a step is under way; NULL: it runs all the time */
        unsigned forks;       /* rs_forks, of the process in which it is */
        uint32_t number;
        pid_t tid;
        /* With the lock of the inspector: */
        bool ends;                /* its run does: nothing is asked any more */
        unsigned users;           /* who ask it, for whom the end waits */
        int64_t pause, pause_cpu; /* its longest slice, ns, and the most processor time of one */
        enum rs_ask ask;
        struct rs_post post; /* in the inbox: POSTED, and LATE, when nobody waits for it any more */
        void (*slice)(struct rs_loop *l, void *arg);
        void *arg;
};

/* From now on the loop, which runs on this thread, can be looked at. 0; or why there is no inspector, in one line. */
int rs_inspector_add(struct rs_inspected *w, struct rs_loop *l, const bool *steps, char *ret_why, size_t size);

/* Nobody looks at it when it returns. Nothing if nobody could. */
void rs_inspector_remove(struct rs_inspected *w);

/* In a forked child. */
void rs_inspector_forked(void);

#endif
