/* SPDX-License-Identifier: MIT */
/* The mutex: an owner and a line of waiters. Unlock hands it to the first of them, so it is never free while somebody
 * waits. */

#include "core/core.h"

struct mutex {
        struct rs_task *owner;
        struct rs_list waiters; /* of rs_wait.node */
};

_Static_assert(sizeof(struct mutex) <= sizeof(resha_mutex), "resha_mutex is too small");

static struct mutex *mutex_of(resha_mutex *m)
{
        return (struct mutex *)(void *)m;
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
                m->owner = l->current;
                return rs_complete(l, 0);
        }
        if (m->owner == l->current)
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
                return m->owner == l->current ? -EDEADLK : -EAGAIN;
        m->owner = l->current;
        return 0;
}

int resha_mutex_unlock(resha_mutex *mutex)
{
        struct mutex *m = mutex_of(mutex);
        struct rs_loop *l = rs_loop_current;

        if (RS_UNLIKELY(!l || !l->current || m->owner != l->current))
                return -EPERM;
        struct rs_node *n = rs_list_pop(&m->waiters);
        m->owner = NULL;
        if (n) {
                struct rs_wait *w = RS_CONTAINER(n, struct rs_wait, node);
                m->owner = w->task;
                rs_wake(w, 0);
        }
        return 0;
}

bool resha_mutex_locked(const resha_mutex *m)
{
        return ((const struct mutex *)(const void *)m)->owner != NULL;
}
