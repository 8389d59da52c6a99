/* SPDX-License-Identifier: MIT */
/* select: a task waits for the first of several.
 *
 * First each case is tried, in order. If none can be done the task stands in all their lines at once, by a wait inside
 * each case, and parks with one more, the choice (core.h). Whoever takes one of the waits out of its line, to hand over
 * an item or to tell of an end, wakes it as any other: rs_wake() sees that the task does not wait by it but by its
 * choice, and chosen() takes the other waits out of their lines then and there, before anybody else can look at them.
 * So exactly one case is done, a cancel comes either before it, and takes all of them out, or after it, and changes
 * nothing.
 *
 * Invariants
 *  1. wait.wait.task of a case is set exactly while a select waits with it, also where the case stands in no line: one
 *     of nothing, and an instant, for the earliest of which the timer stands.
 *  2. Between the last look at the cases and the wait nothing else runs: no wake-up is missed. */

#include <limits.h>

#include "sync/event.h"
#include "sync/queue.h"

/* The inside of resha_case. */
struct select_case {
        int result;
        enum resha_case_kind kind;
        union {
                resha_queue *queue;
                resha_event *event;
                resha_task *task;
                int64_t ns;
        } on;
        void *item;
        struct rs_queue_wait wait; /* cases that are no queues use wait.wait only */
};

_Static_assert(sizeof(struct select_case) == sizeof(resha_case), "resha_case has another size");
_Static_assert(offsetof(struct select_case, wait) == offsetof(resha_case, _), "resha_case has another shape");

struct select {
        struct rs_choice choice;
        struct select_case *cases;
        size_t n;
        struct rs_timer timer;
        struct select_case *earliest; /* of the instants; NULL: none */
};

/* ---- looking ---- */

static int case_valid(const struct rs_loop *l, const struct select_case *c, size_t i)
{
        if (c->kind < RESHA_CASE_GET || c->kind > RESHA_CASE_TIME)
                return rs_misuse(-EINVAL, "case %zu of a select is none of RESHA_ON_...", i);
        if (c->wait.wait.task)
                return rs_misuse(-EBUSY, "case %zu of a select: another task waits with it", i);
        if (c->kind != RESHA_CASE_TASK || !c->on.task)
                return 0;
        int rc = rs_task_ended(l, c->on.task);
        return rc == -EINVAL    ? rs_misuse(rc, "case %zu of a select: a task that was never spawned", i)
               : rc == -EDEADLK ? rs_misuse(rc, "case %zu of a select waits for this task's own end", i)
               : rc == -EPERM   ? rs_misuse(rc, "case %zu of a select: a task of another loop", i)
                                : 0;
}

/* What the case's own call gives, or -EAGAIN where it would wait. */
static int try_case(const struct rs_loop *l, struct select_case *c)
{
        if (c->kind != RESHA_CASE_TIME && !c->on.queue)
                return -EAGAIN;
        switch (c->kind) {
        case RESHA_CASE_GET: return resha_queue_try_get(c->on.queue, c->item);
        case RESHA_CASE_PUT: return resha_queue_try_put(c->on.queue, c->item);
        case RESHA_CASE_EVENT: return resha_event_is_set(c->on.event) ? 0 : -EAGAIN;
        case RESHA_CASE_TASK: return rs_task_ended(l, c->on.task);
        case RESHA_CASE_TIME: break;
        }
        return c->on.ns <= resha_now().ns ? 0 : -EAGAIN;
}

/* The index of the case that was done, -EAGAIN if there is none, or what is wrong. */
static int look(const struct rs_loop *l, struct select_case *cases, size_t n)
{
        int rc = n && n <= INT_MAX ? 0 : rs_misuse(-EINVAL, "a select of %zu cases: 1 to %d", n, INT_MAX);

        for (size_t i = 0; i < n && rc == 0; i++)
                rc = case_valid(l, &cases[i], i);
        if (rc < 0)
                return rc;
        for (size_t i = 0; i < n; i++) {
                rc = try_case(l, &cases[i]);
                if (rc >= 0)
                        cases[i].result = rc;
                if (rc != -EAGAIN)
                        return rc < 0 ? rc : (int)i;
        }
        return -EAGAIN;
}

/* ---- waiting ---- */

static struct rs_list *line_of(struct select_case *c)
{
        return c->kind == RESHA_CASE_EVENT ? rs_event_line(c->on.event) : rs_task_line(c->on.task);
}

/* An instant only takes part in the choice of the earliest. */
static void stand(struct select *s, struct select_case *c)
{
        c->wait.wait = (struct rs_wait){ .task = rs_loop_current->current, .object = &s->choice.wait };
        if (c->kind == RESHA_CASE_TIME) {
                if (c->on.ns != INT64_MAX && (!s->earliest || c->on.ns < s->earliest->on.ns))
                        s->earliest = c;
                return;
        }
        if (!c->on.queue)
                return;
        if (c->kind == RESHA_CASE_GET || c->kind == RESHA_CASE_PUT)
                rs_queue_stand(&c->wait, c->on.queue, c->kind == RESHA_CASE_PUT, c->item);
        else
                rs_list_push(line_of(c), &c->wait.wait.node);
}

static void leave(struct select_case *c)
{
        if (c->kind == RESHA_CASE_TIME || !c->on.queue)
                return;
        if (c->kind == RESHA_CASE_GET || c->kind == RESHA_CASE_PUT)
                rs_queue_leave(&c->wait);
        else
                rs_list_remove(line_of(c), &c->wait.wait.node);
}

/* Out of all lines but that of `done`, which has been taken out of its own. */
static void leave_all(struct select *s, const struct select_case *done)
{
        rs_timer_clear(rs_loop_current, &s->timer);
        for (size_t i = 0; i < s->n; i++) {
                struct select_case *c = &s->cases[i];
                if (c != done)
                        leave(c);
                c->wait.wait.task = NULL;
        }
}

static intptr_t chosen(struct rs_choice *choice, struct rs_wait *w, intptr_t result)
{
        struct select *s = RS_CONTAINER(choice, struct select, choice);
        struct select_case *c = RS_CONTAINER(w, struct select_case, wait.wait);

        c->result = c->kind == RESHA_CASE_TASK ? 0 : (int)result;
        leave_all(s, c);
        return c - s->cases;
}

static void select_cancel(struct rs_wait *w)
{
        leave_all(RS_CONTAINER(w, struct select, choice.wait), NULL);
        rs_wake(w, -ECANCELED);
}

static void instant_came(struct rs_timer *timer)
{
        rs_wake(&RS_CONTAINER(timer, struct select, timer)->earliest->wait.wait, 0);
}

static int wait_for_one(struct rs_loop *l, struct select_case *cases, size_t n)
{
        struct select s = { .choice = { .wait = { .cancel = select_cancel, .what = "select" }, .chosen = chosen },
                            .cases = cases,
                            .n = n,
                            .timer = { .fire = instant_came } };

        for (size_t i = 0; i < n; i++)
                stand(&s, &cases[i]);
        if (s.earliest)
                rs_timer_set(l, &s.timer, s.earliest->on.ns);
        return (int)rs_wait(l, &s.choice.wait);
}

static struct select_case *cases_of(resha_case *cases)
{
        return (struct select_case *)(void *)cases;
}

int resha_select(resha_case *cases, size_t n)
{
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (rc < 0)
                return rc;
        rc = look(l, cases_of(cases), n);
        if (rc != -EAGAIN)
                return rs_complete(l, rc);
        return wait_for_one(l, cases_of(cases), n);
}

int resha_try_select(resha_case *cases, size_t n)
{
        return look(rs_loop_current, cases_of(cases), n);
}
