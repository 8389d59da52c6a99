/* SPDX-License-Identifier: MIT */
/* The mutex: an owner and a line of waiters. Unlock hands it to the first of them, so it is never free while somebody
 * waits. */

#include "sync/mutex.h"
#include "sync/waited.h"

_Static_assert(sizeof(struct rs_mutex) <= sizeof(resha_mutex), "resha_mutex is too small");

/* The owner may have ended without unlocking, in an earlier run even: nobody to wait for. */
static struct rs_task *owner_of(const struct rs_wait *w, const struct rs_task *after)
{
        const struct rs_mutex *m = w->object;

        return !after && rs_task_alive(rs_loop_current, m->owner, m->owner_mark) ? m->owner : NULL;
}

const struct rs_whom rs_mutex_whom = { .next = owner_of,
                                       .says = "a mutex held by ",
                                       .nobody = "a mutex whose holder has ended without unlocking it",
                                       .form = RS_WHOM_ONE,
                                       .at = offsetof(struct rs_mutex, owner),
                                       .mark_at = offsetof(struct rs_mutex, owner_mark) };

static void mutex_cancel(struct rs_wait *w)
{
        rs_list_remove(&rs_mutex_of((resha_mutex *)(uintptr_t)w->object)->waiters, &w->node);
        rs_wake(w, -ECANCELED);
}

int resha_mutex_lock(resha_mutex *mutex)
{
        struct rs_mutex *m = rs_mutex_of(mutex);
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (RS_UNLIKELY(rc < 0))
                return rc;
        if (RS_LIKELY(!m->owner)) {
                rs_mutex_give(m, l->current);
                return rs_complete(l, 0);
        }
        if (rs_mutex_held_by(m, l->current))
                return rs_misuse(-EDEADLK, "this task holds the mutex already");
        if (RS_UNLIKELY(!rs_task_is_here(l, m->owner_mark)))
                return rs_misuse(-EPERM, "the mutex is held by a task of another loop");
        struct rs_wait w = { .cancel = mutex_cancel, .what = "mutex", .object = m };
        rs_list_push(&m->waiters, &w.node);
        return (int)rs_wait_for(l, &w, &rs_mutex_whom);
}

int resha_mutex_try_lock(resha_mutex *mutex)
{
        struct rs_mutex *m = rs_mutex_of(mutex);
        struct rs_loop *l = rs_loop_current;

        if (!l || !l->current)
                return rs_outside();
        if (m->owner)
                return rs_mutex_held_by(m, l->current) ? -EDEADLK : -EAGAIN;
        rs_mutex_give(m, l->current);
        return 0;
}

int resha_mutex_unlock(resha_mutex *mutex)
{
        struct rs_mutex *m = rs_mutex_of(mutex);
        struct rs_loop *l = rs_loop_current;

        if (RS_UNLIKELY(!l || !l->current))
                return rs_outside();
        if (RS_UNLIKELY(!rs_mutex_held_by(m, l->current)))
                return rs_misuse(-EPERM, "this task unlocks a mutex that it does not hold");
        rs_mutex_pass(m);
        return 0;
}

bool resha_mutex_locked(const resha_mutex *m)
{
        return ((const struct rs_mutex *)(const void *)m)->owner != NULL;
}

/* ---- for who looks from outside ---- */

static void mutex_see(const struct rs_reader *r, const struct rs_wait *at, const struct rs_wait *w,
                      struct rs_waited *ret)
{
        struct rs_mutex m;

        (void)at;
        if (!r->read(&m, w->object, sizeof m))
                return;
        ret->kind = "mutex";
        ret->owner = m.owner;
        ret->owner_mark = m.owner_mark;
        ret->waiting = rs_waited_count(r, w, &m.waiters);
}

const struct rs_waits rs_mutex_waits = { .whom = &rs_mutex_whom, .see = mutex_see };
