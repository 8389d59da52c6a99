/* SPDX-License-Identifier: MIT */
/* The mutex: an owner and a line of waiters. Unlock hands it to the first of them, so it is never free while somebody
 * waits. */

#include "sync/mutex.h"

_Static_assert(sizeof(struct rs_mutex) <= sizeof(resha_mutex), "resha_mutex is too small");

static void mutex_cancel(struct rs_wait *w)
{
        rs_list_remove(&rs_mutex_of((resha_mutex *)(uintptr_t)w->object)->waiters, &w->node);
        rs_wake(w, -ECANCELED);
}

static inline void take(struct rs_mutex *m, const struct rs_loop *l)
{
        rs_mutex_give(m, l->current);
        m->loop = rs_mutex_mark(l);
}

int resha_mutex_lock(resha_mutex *mutex)
{
        struct rs_mutex *m = rs_mutex_of(mutex);
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (RS_UNLIKELY(rc < 0))
                return rc;
        if (RS_LIKELY(!m->owner)) {
                take(m, l);
                return rs_complete(l, 0);
        }
        if (rs_mutex_held_by(m, l->current))
                return resha_fail_at(-EDEADLK, NULL, "this task holds the mutex already");
        if (RS_UNLIKELY(m->loop != rs_mutex_mark(l)))
                return resha_fail_at(-EPERM, NULL, "the mutex is held by a task of another loop");
        struct rs_wait w = { .cancel = mutex_cancel, .what = "mutex", .object = m };
        rs_list_push(&m->waiters, &w.node);
        return (int)rs_wait(l, &w);
}

int resha_mutex_try_lock(resha_mutex *mutex)
{
        struct rs_mutex *m = rs_mutex_of(mutex);
        struct rs_loop *l = rs_loop_current;

        if (!l || !l->current)
                return -EPERM;
        if (m->owner)
                return rs_mutex_held_by(m, l->current) ? -EDEADLK : -EAGAIN;
        take(m, l);
        return 0;
}

int resha_mutex_unlock(resha_mutex *mutex)
{
        struct rs_mutex *m = rs_mutex_of(mutex);
        struct rs_loop *l = rs_loop_current;

        if (RS_UNLIKELY(!l || !l->current || !rs_mutex_held_by(m, l->current)))
                return -EPERM;
        rs_mutex_pass(m);
        return 0;
}

bool resha_mutex_locked(const resha_mutex *m)
{
        return ((const struct rs_mutex *)(const void *)m)->owner != NULL;
}
