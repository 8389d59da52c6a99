/* SPDX-License-Identifier: MIT */
/* The condition: those who wait for what a mutex guards to change.
 *
 * A wait has two parts: in the condition's line, until a notify or a cancel takes it out; then in the mutex's line, as
 * any task that locks it. It is moved there by whoever ends the first part, and its task runs once, with the mutex its
 * own: notifying a thousand wakes nobody who would only wait again, and a cancelled waiter neither spins nor comes back
 * without the lock.
 *
 * Invariants
 *  1. A wait in the condition's line has its cancel function; one in the mutex's line has none.
 *  2. Its task gets 0 from the mutex, which knows nothing of conditions; what the wait returns is in `result`. */

#include "sync/line.h"
#include "sync/mutex.h"
#include "sync/waited.h"

struct condition {
        struct rs_mutex *mutex;
        struct rs_list waiters;     /* of condition_wait.wait.node: not notified yet */
        const struct rs_loop *home; /* of all who wait */
};

struct condition_wait {
        struct rs_wait wait;
        int result;
};

_Static_assert(sizeof(struct condition) <= sizeof(resha_condition), "resha_condition is too small");

static struct condition *condition_of(resha_condition *c)
{
        return (struct condition *)(void *)c;
}

void resha_condition_init(resha_condition *c, resha_mutex *m)
{
        *condition_of(c) = (struct condition){ .mutex = rs_mutex_of(m) };
}

/* To the mutex's line, where it cannot be cancelled. */
static void join_line(struct rs_mutex *m, struct rs_wait *w)
{
        w->cancel = NULL;
        w->what = "mutex";
        w->object = m;
        rs_whom_set(rs_loop_current, w->task, &rs_mutex_whom);
        rs_list_push(&m->waiters, &w->node);
}

static void condition_cancel(struct rs_wait *w)
{
        struct condition *c = condition_of((resha_condition *)(uintptr_t)w->object);
        struct rs_mutex *m = c->mutex;

        rs_list_remove(&c->waiters, &w->node);
        RS_CONTAINER(w, struct condition_wait, wait)->result = -ECANCELED;
        join_line(m, w);
        if (!m->owner)
                rs_mutex_pass(m);
        else /* who notifies is the owner and runs; who is the owner here may wait for w's task */
                rs_circle_check(rs_loop_current, w->task, w);
}

/* 0, or -EPERM or -EINVAL with its record. */
static int check_owner(const struct condition *c, const struct rs_loop *l)
{
        if (RS_UNLIKELY(!c->mutex))
                return rs_misuse(-EINVAL, "the condition has no mutex: call resha_condition_init() first");
        if (RS_UNLIKELY(!rs_mutex_held_by(c->mutex, l->current)))
                return rs_misuse(-EPERM, "this task does not hold the condition's mutex: lock it first");
        return 0;
}

/* As rs_enter(); misuse comes before a cancel, so that -ECANCELED always means that the mutex is held. */
static inline __attribute__((always_inline)) int enter(const struct condition *c, struct rs_loop **ret_loop)
{
        int rc = rs_enter(ret_loop);

        if (RS_UNLIKELY(rc < 0 && rc != -ECANCELED))
                return rc;
        int misuse = check_owner(c, *ret_loop);
        return misuse < 0 ? misuse : rc;
}

static int wait_notified(struct rs_loop *l, struct condition *c)
{
        struct condition_wait w = { .wait = { .cancel = condition_cancel, .what = "condition", .object = c } };

        if (RS_UNLIKELY(c->waiters.first && c->home != l))
                return rs_line_refuse("condition");
        c->home = l;
        rs_list_push(&c->waiters, &w.wait.node);
        rs_mutex_pass(c->mutex);
        rs_wait(l, &w.wait);
        rs_whom_clear(l, l->current);
        return w.result;
}

int resha_condition_wait(resha_condition *condition)
{
        struct condition *c = condition_of(condition);
        struct rs_loop *l;
        int rc = enter(c, &l);

        return rc < 0 ? rc : wait_notified(l, c);
}

int resha_condition_wait_for(resha_condition *condition, bool (*pred)(void *arg), void *arg)
{
        struct condition *c = condition_of(condition);
        struct rs_loop *l;
        int rc = enter(c, &l);

        if (rc < 0)
                return rc;
        if (pred(arg))
                return rs_complete(l, 0);
        rc = wait_notified(l, c);
        while (rc >= 0 && !pred(arg))
                rc = resha_condition_wait(condition);
        return rc;
}

int resha_condition_notify(resha_condition *condition, size_t n)
{
        struct condition *c = condition_of(condition);
        struct rs_loop *l = rs_loop_current;
        int rc = RS_UNLIKELY(!l || !l->current) ? rs_outside() : check_owner(c, l);
        struct rs_node *first;

        if (rc < 0)
                return rc;
        if (RS_UNLIKELY(c->waiters.first && c->home != l))
                return rs_line_refuse("condition");
        for (; n > 0 && (first = rs_list_pop(&c->waiters)); n--)
                join_line(c->mutex, RS_CONTAINER(first, struct rs_wait, node));
        return 0;
}

int resha_condition_notify_all(resha_condition *condition)
{
        return resha_condition_notify(condition, SIZE_MAX);
}

/* ---- for who looks from outside ---- */

static void condition_see(const struct rs_reader *r, const struct rs_wait *at, const struct rs_wait *w,
                          struct rs_waited *ret)
{
        struct condition c;

        (void)at;
        if (!r->read(&c, w->object, sizeof c))
                return;
        ret->kind = "condition";
        ret->waiting = rs_waited_count(r, w, &c.waiters);
}

const struct rs_waits rs_condition_waits = { .cancel = condition_cancel, .see = condition_see };
