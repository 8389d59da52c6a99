/* SPDX-License-Identifier: MIT */
/* The semaphore: permits and a line of waiters. While somebody waits no permit is free: a release hands its own on. */

#include <stdio.h>

#include "sync/line.h"
#include "sync/waited.h"

struct semaphore {
        size_t available, permits;
        struct rs_list waiters; /* of rs_wait.node */
};

_Static_assert(sizeof(struct semaphore) <= sizeof(resha_semaphore), "resha_semaphore is too small");

static struct semaphore *semaphore_of(resha_semaphore *s)
{
        return (struct semaphore *)(void *)s;
}

static void semaphore_cancel(struct rs_wait *w)
{
        rs_list_remove(&semaphore_of((resha_semaphore *)(uintptr_t)w->object)->waiters, &w->node);
        rs_wake(w, -ECANCELED);
}

void resha_semaphore_init(resha_semaphore *s, size_t permits)
{
        *semaphore_of(s) = (struct semaphore){ .available = permits, .permits = permits };
}

int resha_semaphore_acquire(resha_semaphore *semaphore)
{
        struct semaphore *s = semaphore_of(semaphore);
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (rc < 0)
                return rc;
        if (s->available) {
                s->available--;
                return rs_complete(l, 0);
        }
        if (rs_line_elsewhere(l, &s->waiters))
                return rs_line_refuse("semaphore");
        struct rs_wait w = { .cancel = semaphore_cancel, .what = "semaphore", .object = s };
        rs_list_push(&s->waiters, &w.node);
        return (int)rs_wait(l, &w);
}

int resha_semaphore_try_acquire(resha_semaphore *semaphore)
{
        struct semaphore *s = semaphore_of(semaphore);

        if (!s->available)
                return -EAGAIN;
        s->available--;
        return 0;
}

/* Apart, so that a release for which nobody waits needs no frame. */
static __attribute__((noinline)) int hand_on(struct semaphore *s)
{
        rs_wake_check(&s->waiters);
        rs_wake(RS_CONTAINER(rs_list_pop(&s->waiters), struct rs_wait, node), 0);
        return 0;
}

int resha_semaphore_release(resha_semaphore *semaphore)
{
        struct semaphore *s = semaphore_of(semaphore);

        if (RS_UNLIKELY(s->available == s->permits))
                return rs_misuse(-EOVERFLOW, "a permit is given back that nobody has: all %zu are free", s->permits);
        if (RS_UNLIKELY(!rs_list_empty(&s->waiters)))
                return hand_on(s);
        s->available++;
        return 0;
}

size_t resha_semaphore_available(const resha_semaphore *s)
{
        return ((const struct semaphore *)(const void *)s)->available;
}

/* ---- for who looks from outside ---- */

static void semaphore_see(const struct rs_reader *r, const struct rs_wait *at, const struct rs_wait *w,
                          struct rs_waited *ret)
{
        struct semaphore s;

        (void)at;
        if (!r->read(&s, w->object, sizeof s))
                return;
        ret->kind = "semaphore";
        ret->held = s.permits - s.available;
        ret->limit = s.permits;
        ret->waiting = rs_waited_count(r, w, &s.waiters);
        snprintf(ret->state, sizeof ret->state, "%zu of %zu permits are held", ret->held, ret->limit);
}

const struct rs_waits rs_semaphore_waits = { .cancel = semaphore_cancel, .see = semaphore_see };
