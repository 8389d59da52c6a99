/* SPDX-License-Identifier: MIT */
/* The barrier: a line that goes on as a whole, once it is complete.
 *
 * The last to come gives each its index and empties the line in one go, so the next round can begin before those of
 * this one have run: there is no state in which a barrier is left and may not be entered. Whoever was woken has been
 * let through, whatever happens to the barrier or to its task after that. */

#include <stdio.h>

#include "sync/line.h"
#include "sync/waited.h"

struct barrier {
        struct rs_list waiters; /* of barrier_wait.wait.node, in order of arrival; fewer than `parties` */
        unsigned parties;       /* 0: not initialised */
        unsigned waiting;       /* how many are in the line */
        bool broken;            /* nobody waits */
};

struct barrier_wait {
        struct rs_wait wait;
        const char *broken; /* why, if it was; static */
};

_Static_assert(sizeof(struct barrier) <= sizeof(resha_barrier), "resha_barrier is too small");

static struct barrier *barrier_of(resha_barrier *b)
{
        return (struct barrier *)(void *)b;
}

static const struct barrier *const_barrier_of(const resha_barrier *b)
{
        return (const struct barrier *)(const void *)b;
}

int resha_barrier_init(resha_barrier *b, unsigned parties)
{
        if (parties == 0 || parties > INT32_MAX)
                return resha_fail_at(-EINVAL, NULL, "a barrier of %u parties: 1 to %d are possible", parties,
                                     INT32_MAX);
        *barrier_of(b) = (struct barrier){ .parties = parties };
        return 0;
}

static void barrier_cancel(struct rs_wait *w)
{
        struct barrier *b = barrier_of((resha_barrier *)(uintptr_t)w->object);

        rs_list_remove(&b->waiters, &w->node);
        b->waiting--;
        rs_wake(w, -ECANCELED);
}

/* The line goes on: each with its place in it. */
static void let_through(struct barrier *b)
{
        struct rs_node *n;

        rs_wake_check(&b->waiters);
        for (int index = 0; (n = rs_list_pop(&b->waiters)); index++)
                rs_wake(RS_CONTAINER(n, struct rs_wait, node), index);
        b->waiting = 0;
}

static void break_line(struct barrier *b, const char *why)
{
        struct rs_node *n;

        rs_wake_check(&b->waiters);
        while ((n = rs_list_pop(&b->waiters))) {
                struct rs_wait *w = RS_CONTAINER(n, struct rs_wait, node);
                RS_CONTAINER(w, struct barrier_wait, wait)->broken = why;
                rs_wake(w, RESHA_EBROKEN);
        }
        b->waiting = 0;
}

int resha_barrier_wait(resha_barrier *barrier)
{
        struct barrier *b = barrier_of(barrier);
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (rc < 0)
                return rc;
        if (!b->parties)
                return rs_misuse(-EINVAL, "the barrier has no parties: call resha_barrier_init() first");
        if (b->broken)
                return rs_complete(l, resha_fail_at(RESHA_EBROKEN, NULL,
                                                    "the barrier was aborted before: reset it to use it again"));
        if (rs_line_elsewhere(l, &b->waiters))
                return rs_line_refuse("barrier");
        if (b->waiting + 1 == b->parties) {
                let_through(b);
                return rs_complete(l, (int)b->parties - 1);
        }
        struct barrier_wait w = { .wait = { .cancel = barrier_cancel, .what = "barrier", .object = b } };
        rs_list_push(&b->waiters, &w.wait.node);
        b->waiting++;
        rc = (int)rs_wait(l, &w.wait);
        return rc == RESHA_EBROKEN ? resha_fail_at(rc, NULL, "the barrier was %s while this task waited", w.broken)
                                   : rc;
}

void resha_barrier_abort(resha_barrier *barrier)
{
        struct barrier *b = barrier_of(barrier);

        b->broken = true;
        break_line(b, "aborted");
}

void resha_barrier_reset(resha_barrier *barrier)
{
        struct barrier *b = barrier_of(barrier);

        b->broken = false;
        break_line(b, "reset");
}

size_t resha_barrier_waiting(const resha_barrier *b)
{
        return const_barrier_of(b)->waiting;
}

bool resha_barrier_broken(const resha_barrier *b)
{
        return const_barrier_of(b)->broken;
}

/* ---- for who looks from outside ---- */

static void barrier_see(const struct rs_reader *r, const struct rs_wait *at, const struct rs_wait *w,
                        struct rs_waited *ret)
{
        struct barrier b;

        (void)at;
        if (!r->read(&b, w->object, sizeof b))
                return;
        ret->kind = "barrier";
        ret->limit = b.parties;
        ret->held = ret->waiting = b.waiting;
        snprintf(ret->state, sizeof ret->state, "%u of %u have come", b.waiting, b.parties);
}

const struct rs_waits rs_barrier_waits = { .cancel = barrier_cancel, .see = barrier_see };
