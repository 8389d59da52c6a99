/* SPDX-License-Identifier: MIT */
/* The mutex: an owner and a line of waiters. Unlock hands it to the first of them, so it is never free while somebody
 * waits. */

#include "core/core.h"

struct mutex {
        struct rs_task *owner;  /* NULL: free */
        struct rs_list waiters; /* of rs_wait.node */
        /* tells the owner from a later task in the same place, should it end without unlocking */
        uint32_t owner_id;
};

_Static_assert(sizeof(struct mutex) <= sizeof(resha_mutex), "resha_mutex is too small");

static struct mutex *mutex_of(resha_mutex *m)
{
        return (struct mutex *)(void *)m;
}

static bool held_by(const struct mutex *m, const struct rs_task *t)
{
        return m->owner == t && m->owner_id == t->id;
}

static void give_to(struct mutex *m, struct rs_task *t)
{
        m->owner = t;
        m->owner_id = t->id;
}

static void mutex_cancel(struct rs_wait *w)
{
        rs_list_remove(&mutex_of((resha_mutex *)(uintptr_t)w->object)->waiters, &w->node);
        rs_wake(w, -ECANCELED);
}

int resha_mutex_lock(resha_mutex *mutex)
{
        struct mutex *m = mutex_of(mutex);
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (RS_UNLIKELY(rc < 0))
                return rc;
        if (RS_LIKELY(!m->owner)) {
                give_to(m, l->current);
                return rs_complete(l, 0);
        }
        if (held_by(m, l->current))
                return resha_fail_at(-EDEADLK, NULL, "this task holds the mutex already");
        struct rs_wait w = { .cancel = mutex_cancel, .what = "mutex", .object = m };
        rs_list_push(&m->waiters, &w.node);
        return (int)rs_wait(l, &w);
}

int resha_mutex_try_lock(resha_mutex *mutex)
{
        struct mutex *m = mutex_of(mutex);
        struct rs_loop *l = rs_loop_current;

        if (!l || !l->current)
                return -EPERM;
        if (m->owner)
                return held_by(m, l->current) ? -EDEADLK : -EAGAIN;
        give_to(m, l->current);
        return 0;
}

int resha_mutex_unlock(resha_mutex *mutex)
{
        struct mutex *m = mutex_of(mutex);
        struct rs_loop *l = rs_loop_current;

        if (RS_UNLIKELY(!l || !l->current || !held_by(m, l->current)))
                return -EPERM;
        struct rs_node *n = rs_list_pop(&m->waiters);
        m->owner = NULL;
        if (n) {
                struct rs_wait *w = RS_CONTAINER(n, struct rs_wait, node);
                give_to(m, w->task);
                rs_wake(w, 0);
        }
        return 0;
}

bool resha_mutex_locked(const resha_mutex *m)
{
        return ((const struct mutex *)(const void *)m)->owner != NULL;
}
