/* SPDX-License-Identifier: MIT */
#ifndef RS_WORKERS_H
#define RS_WORKERS_H

/* A crew of threads that run what is queued, first in, first out. Knows no loop. */

#include <stdbool.h>
#include <stddef.h>

#include "base/list.h"
#include "sys/thread.h"

/* Owned by whoever queues it. */
struct rs_work {
        struct rs_node node;
        void (*run)(struct rs_work *w); /* on a thread of the crew; the crew does not touch w any more */
        bool queued;
};

struct rs_workers {
        struct rs_lock lock;
        struct rs_list queue;
        size_t queued;    /* in the queue */
        unsigned most;    /* threads */
        unsigned threads; /* that live */
        unsigned idle;    /* of those: wait for work */
        bool called;      /* one is on its way to work */
        const void *soon; /* the work that it is about to end; NULL: it was idle, or is new */
        bool leave;       /* who is idle goes home */
        bool unattended;  /* and nobody joins it */
        bool has_left;
        struct rs_list seats;                /* of idle threads that nobody has called yet */
        struct rs_cond gone;                 /* a thread has left */
        struct rs_thread left;               /* the last one that went, not joined yet */
        void (*ended)(struct rs_workers *c); /* unattended: called by the last thread when it goes; NULL: none */
        char name[16];
};

#define RS_WORKERS_INIT(most_, name_) \
        { \
                .lock = RS_LOCK_INIT, .gone = RS_COND_INIT, .most = (most_), .name = name_ \
        }

/* Idle threads leave after that long. */
#define RS_WORKERS_LINGER_NS INT64_C(10000000000)

/* Queues w; starts a thread if none is idle and there may be more. 0; -EAGAIN, -ENOMEM: there is no thread and none
 * can be started, w is not queued. [any thread] */
int rs_workers_add(struct rs_workers *c, struct rs_work *w);

/* From w->run(w), as the last thing before others may see that w has ended: its thread is back at once, so that none
 * has to be called for what they queue then. */
void rs_workers_soon(struct rs_workers *c, const struct rs_work *w);

/* True: w was still in the queue and never runs. [any thread] */
bool rs_workers_remove(struct rs_workers *c, struct rs_work *w);

/* The same for a list of them, which is left empty; on failure it is as it was. */
int rs_workers_add_all(struct rs_workers *c, struct rs_list *works);

/* The next one in the queue, out of it, if it `fits`; else NULL. [any thread] */
struct rs_work *rs_workers_take(struct rs_workers *c, bool (*fits)(const struct rs_work *w));

/* Takes all that is queued out, and those never run. How many. [any thread] */
size_t rs_workers_drop(struct rs_workers *c);

/* How many threads there may be from now on. If there are more, those go once they have done their work.
 * [any thread] */
void rs_workers_allow(struct rs_workers *c, unsigned most);

/* Sends the threads home and joins them, for `all` also those that are in a work: so that must be about to end. Those
 * that stay follow when their work is done, and nobody joins them. rs_workers_add() starts anew and ends the waiting
 * here. [not on a thread of the crew] */
void rs_workers_rest(struct rs_workers *c, bool all);

/* The same, not for all, and for good: nothing is added from now on by others than the works that still run. False: no
 * thread is left. True: the last one that goes calls ended(c), which may free it. [not on a thread of the crew] */
bool rs_workers_abandon(struct rs_workers *c, void (*ended)(struct rs_workers *c));

/* Whether something is in the queue: a guess without the lock. [any thread] */
bool rs_workers_queued(const struct rs_workers *c);

#endif
