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
 *  2. Between the last look at the cases and the wait nothing else runs on this loop, and who stands in line of a
 *     channel looks at it once more: no wake-up is missed. */

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "sync/channel.h"
#include "sync/event.h"
#include "sync/line.h"
#include "sync/queue.h"
#include "sync/waited.h"

/* The inside of resha_case. */
struct select_case {
        int result;
        enum resha_case_kind kind;
        union {
                resha_queue *queue;
                resha_event *event;
                resha_task *task;
                struct rs_channel *channel;
                int64_t ns;
        } on;
        void *item;
        union { /* the others use wait.wait only */
                struct rs_queue_wait wait;
                struct rs_channel_waiter waiter;
        };
};

_Static_assert(sizeof(struct select_case) == sizeof(resha_case), "resha_case has another size");
_Static_assert(offsetof(struct rs_queue_wait, wait) == 0 && offsetof(struct rs_channel_waiter, wait) == 0, "one wait");
_Static_assert(offsetof(struct select_case, wait) == offsetof(resha_case, _), "resha_case has another shape");

enum { SEEN_MAX = 16 /* cases that are told of */ };

struct select {
        struct rs_choice choice;
        struct select_case *cases;
        size_t n;
        struct rs_timer timer;
        struct select_case *earliest; /* of the instants; NULL: none */
        bool channels;                /* there are cases of some */
        struct rs_channel_caller caller;
        struct rs_cleanup given_up;
        bool over;                 /* a case was done, or none will be */
        struct rs_wait *post_wait; /* all is done but for a post that has not run */
};

static bool is_channel(const struct select_case *c)
{
        return (c->kind == RESHA_CASE_SEND || c->kind == RESHA_CASE_RECV) && c->on.channel;
}

static bool is_queue(const struct select_case *c)
{
        return (c->kind == RESHA_CASE_GET || c->kind == RESHA_CASE_PUT) && c->on.queue;
}

/* ---- looking ---- */

static int case_valid(const struct rs_loop *l, const struct select_case *c, size_t i)
{
        if (c->kind < RESHA_CASE_GET || c->kind > RESHA_CASE_RECV)
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
        case RESHA_CASE_SEND:
        case RESHA_CASE_RECV: return rs_channel_try(c->on.channel, c->kind == RESHA_CASE_SEND, c->item);
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

/* Lines in which tasks of another loop stand are theirs. */
static int check_lines(const struct rs_loop *l, const struct select_case *cases, size_t n)
{
        for (const struct select_case *c = cases; c < cases + n; c++) {
                if (is_queue(c) && rs_queue_elsewhere(l, c->on.queue))
                        return rs_line_refuse("queue");
                if (c->kind == RESHA_CASE_EVENT && c->on.event && rs_line_elsewhere(l, rs_event_line(c->on.event)))
                        return rs_line_refuse("event");
        }
        return 0;
}

static struct rs_list *line_of(struct select_case *c)
{
        return c->kind == RESHA_CASE_EVENT ? rs_event_line(c->on.event) : rs_task_line(c->on.task);
}

/* An instant only takes part in the choice of the earliest. False: a case can be done. */
static bool stand(struct select *s, struct select_case *c)
{
        c->wait.wait = (struct rs_wait){ .task = rs_loop_current->current, .object = &s->choice.wait };
        if (c->kind == RESHA_CASE_TIME) {
                if (c->on.ns != INT64_MAX && (!s->earliest || c->on.ns < s->earliest->on.ns))
                        s->earliest = c;
        } else if (is_channel(c)) {
                s->channels = true;
                c->waiter.caller = &s->caller;
                return rs_channel_stand(&c->waiter, c->on.channel, c->kind == RESHA_CASE_SEND);
        } else if (is_queue(c)) {
                rs_queue_stand(&c->wait, c->on.queue, c->kind == RESHA_CASE_PUT, c->item);
        } else if (c->on.queue) {
                rs_list_push(line_of(c), &c->wait.wait.node);
        }
        return true;
}

static void leave(struct select_case *c)
{
        if (is_channel(c))
                rs_channel_quit(&c->waiter, c->on.channel, c->kind == RESHA_CASE_SEND);
        else if (is_queue(c))
                rs_queue_leave(&c->wait);
        else if (c->kind != RESHA_CASE_TIME && c->on.queue)
                rs_list_remove(line_of(c), &c->wait.wait.node);
}

/* Out of all lines but that of `done`, which has been taken out of its own. */
static void leave_all(struct select *s, const struct select_case *done)
{
        s->over = true;
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

/* On the loop: some cases of channels were told. */
static void told(struct rs_post *post)
{
        struct select *s = RS_CONTAINER(post, struct select, caller.post);

        __atomic_store_n(&s->caller.posted, false, __ATOMIC_SEQ_CST);
        if (s->over) {
                if (s->post_wait)
                        rs_wake(s->post_wait, 0);
                return;
        }
        for (size_t i = 0; i < s->n; i++) {
                struct select_case *c = &s->cases[i];
                while (is_channel(c) && !rs_channel_stands(&c->waiter, c->on.channel)) {
                        int rc = try_case(rs_loop_current, c);
                        if (rc != -EAGAIN) {
                                rs_wake(&c->wait.wait, rc);
                                return;
                        }
                        rs_channel_stand(&c->waiter, c->on.channel, c->kind == RESHA_CASE_SEND);
                }
        }
}

/* The run leaves the task where it is. */
static void give_up(struct rs_cleanup *cleanup)
{
        struct select *s = RS_CONTAINER(cleanup, struct select, given_up);

        for (size_t i = 0; i < s->n && !s->over; i++)
                if (is_channel(&s->cases[i]))
                        leave(&s->cases[i]);
}

/* In all lines. False, and in none: a case can be done. */
static bool stand_all(struct select *s)
{
        size_t n = s->n;
        bool stands = true;

        for (s->n = 0; s->n < n && stands; s->n++)
                stands = stand(s, &s->cases[s->n]);
        if (!stands)
                leave_all(s, NULL);
        return stands;
}

/* Parked where other threads tell of channels; their last post has run afterwards. */
static intptr_t wait_outside(struct rs_loop *l, struct select *s)
{
        rs_list_push(&l->given_up, &s->given_up.node);
        rs_channel_outside(l, 1);
        intptr_t rc = rs_wait(l, &s->choice.wait);
        rs_channel_outside(l, -1);
        rs_list_remove(&l->given_up, &s->given_up.node);
        return rc;
}

/* The memory of the call stays until then; nothing delays it but the loop's next visit. */
static void wait_for_post(struct rs_loop *l, struct select *s)
{
        struct rs_wait w = { .what = "select" };

        if (!__atomic_load_n(&s->caller.posted, __ATOMIC_SEQ_CST))
                return;
        s->post_wait = &w;
        rs_wait(l, &w);
}

/* The index, -ECANCELED, -EPERM, or -EAGAIN: a case can be done, or could for a moment. */
static __attribute__((noinline)) int wait_for_one(struct rs_loop *l, struct select_case *cases, size_t n)
{
        struct select s = { .choice = { .wait = { .cancel = select_cancel, .what = "select" }, .chosen = chosen },
                            .cases = cases,
                            .n = n,
                            .timer = { .fire = instant_came },
                            .caller = { .post = { .fn = told, .quiet = true }, .inbox = l->inbox },
                            .given_up = { .fn = give_up } };
        int rc = check_lines(l, cases, n);

        if (rc < 0)
                return rc;
        rc = -EAGAIN;
        if (stand_all(&s)) {
                if (s.earliest)
                        rs_timer_set(l, &s.timer, s.earliest->on.ns);
                rc = (int)(s.channels ? wait_outside(l, &s) : rs_wait(l, &s.choice.wait));
        }
        if (s.channels)
                wait_for_post(l, &s);
        return rc;
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
        do {
                rc = look(l, cases_of(cases), n);
                if (rc != -EAGAIN)
                        return rs_complete(l, rc);
                rc = wait_for_one(l, cases_of(cases), n);
        } while (rc == -EAGAIN && (rc = rs_enter(&l)) == 0);
        return rc;
}

int resha_try_select(resha_case *cases, size_t n)
{
        return look(rs_loop_current, cases_of(cases), n);
}

/* ---- for who looks from outside ---- */

static void say_case(const struct select_case *c, int64_t *due, struct rs_waited *ret)
{
        static const char *const names[] = { "nothing", "queue to get", "queue to put",    "event",
                                             "task",    "time",         "channel to send", "channel to receive" };
        unsigned kind = (unsigned)c->kind;
        size_t n = strlen(ret->detail);

        if (kind >= sizeof names / sizeof *names || kind == 0)
                return;
        if (kind == RESHA_CASE_TIME)
                *due = *due && *due < c->on.ns ? *due : c->on.ns;
        snprintf(ret->detail + n, sizeof ret->detail - n, "%s%s", n ? ", " : "", names[kind]);
}

static void select_see(const struct rs_reader *r, const struct rs_wait *at, const struct rs_wait *w,
                       struct rs_waited *ret)
{
        struct select_case c;
        struct select s;

        (void)w;
        if (!r->read(&s, at, sizeof s))
                return;
        for (size_t i = 0; i < s.n && i < SEEN_MAX && r->read(&c, &s.cases[i], sizeof c); i++)
                say_case(&c, &ret->due, ret);
}

const struct rs_waits rs_select_waits = { .cancel = select_cancel, .see = select_see };
