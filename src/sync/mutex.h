/* SPDX-License-Identifier: MIT */
#ifndef RS_SYNC_MUTEX_H
#define RS_SYNC_MUTEX_H

/* The inside of the mutex, for what gives it back and takes it on a task's behalf: the condition. */

#include "core/core.h"

struct rs_mutex {
        struct rs_task *owner;  /* NULL: free */
        struct rs_list waiters; /* of rs_wait.node; empty while free. Each gets 0 with the lock */
        /* tells the owner from a later task in the same place, should it end without unlocking */
        uint64_t owner_mark;
};

extern const struct rs_whom rs_mutex_whom; /* its owner, of a wait whose object it is */

static inline struct rs_mutex *rs_mutex_of(resha_mutex *m)
{
        return (struct rs_mutex *)(void *)m;
}

static inline bool rs_mutex_held_by(const struct rs_mutex *m, const struct rs_task *t)
{
        return m->owner == t && m->owner_mark == t->mark;
}

static inline void rs_mutex_give(struct rs_mutex *m, struct rs_task *t)
{
        m->owner = t;
        m->owner_mark = t->mark;
}

/* From its owner to the first in line. */
static inline void rs_mutex_pass(struct rs_mutex *m)
{
        struct rs_node *n = rs_list_pop(&m->waiters);

        m->owner = NULL;
        if (n) {
                struct rs_wait *w = RS_CONTAINER(n, struct rs_wait, node);
                rs_mutex_give(m, w->task);
                rs_wake(w, 0);
        }
}

#endif
