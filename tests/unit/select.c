/* SPDX-License-Identifier: MIT */
/* select: which case is done, that only one is, and that the others leave no trace. */

#include "base/alloc.h"
#include "job.h"

static resha_queue *queue_of_ints(size_t capacity)
{
        resha_queue *q = NULL;

        ASSERT_OK(resha_queue_new(sizeof(int), capacity, NULL, &q));
        return q;
}

#define QUEUE(q, capacity) resha_queue *q RESHA_CLEANUP(resha_queue_freep) = queue_of_ints(capacity)

/* ---- what can be done at once ---- */

TASK(select_does_the_first_case_that_can_be_done)
{
        QUEUE(a, 2);
        QUEUE(b, 2);
        resha_event e = { { 0 } };
        int x = 0, y = 0, z = 5;
        resha_case c[] = { RESHA_ON_GET(a, &x), RESHA_ON_GET(b, &y), RESHA_ON_EVENT(&e), RESHA_ON_PUT(a, &z) };

        ASSERT_EQ(resha_queue_put(b, &(int){ 7 }), 1);
        resha_event_set(&e);
        ASSERT_EQ(resha_select(c, 4), 1);
        ASSERT_EQ(c[1].result, 1);
        ASSERT_EQ(y, 7);
        ASSERT_EQ(resha_queue_count(a), 0); /* nothing else was done */
        ASSERT_EQ(resha_select(c, 4), 2);
        ASSERT_EQ(c[2].result, 0);
        resha_event_clear(&e);
        ASSERT_EQ(resha_select(c, 4), 3);
        ASSERT_EQ(c[3].result, 1);
        ASSERT_EQ(resha_select(c, 4), 0); /* the same cases again */
        ASSERT_EQ(x, 5);
        return 0;
}

TASK(select_without_waiting)
{
        QUEUE(a, 1);
        resha_event e = { { 0 } };
        int x = 0;
        resha_case c[] = { RESHA_ON_GET(a, &x), RESHA_ON_EVENT(&e), RESHA_ON_TIME(resha_after(MS(1))) };

        ASSERT_EQ(resha_try_select(c, 3), -EAGAIN);
        ASSERT_EQ(resha_queue_put(a, &(int){ 3 }), 1);
        ASSERT_EQ(resha_try_select(c, 3), 0);
        ASSERT_EQ(x, 3);
        ASSERT_OK(resha_sleep(MS(1)));
        ASSERT_EQ(resha_try_select(c, 3), 2);
        ASSERT_EQ(c[2].result, 0);
        return 0;
}

TASK(select_of_queues_that_are_shut_down)
{
        QUEUE(a, 1);
        int x = 4;

        resha_queue_shutdown(a);
        resha_case get = RESHA_ON_GET(a, &x), put = RESHA_ON_PUT(a, &x);
        ASSERT_EQ(resha_select(&get, 1), 0);
        ASSERT_EQ(get.result, 0);
        ASSERT_EQ(resha_select(&put, 1), 0);
        ASSERT_EQ(put.result, 0);
        ASSERT_EQ(x, 4);
        return 0;
}

static int selects_itself(void *arg)
{
        resha_case c = RESHA_ON_TASK(arg);

        ASSERT_EQ(resha_select(&c, 1), -EDEADLK);
        return 0;
}

TASK(select_refuses_what_makes_no_sense)
{
        resha_task never = { 0 }, self = { 0 };
        resha_event e = { { 0 } };
        resha_case c[] = { RESHA_ON_EVENT(&e), RESHA_ON_TASK(&never) };
        resha_case blank = { 0 };

        resha_event_set(&e);
        ASSERT_EQ(resha_select(c, 0), -EINVAL);
        ASSERT_EQ(resha_select(&blank, 1), -EINVAL);
        ASSERT_EQ(resha_select(c, 2), -EINVAL); /* although the first could be done */
        ASSERT_HAS(resha_error_of(-EINVAL)->text, "case 1");
        ASSERT_EQ(resha_try_select(c, 2), -EINVAL);
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, selects_itself, &self, &self));
        return resha_group_end(&g, 0);
}

TEST(select_outside_a_task)
{
        resha_event e = { { 0 } };
        resha_case c = RESHA_ON_EVENT(&e);

        ASSERT_EQ(resha_select(&c, 1), -EPERM);
}

static int waits(void *arg)
{
        return resha_select(arg, 1);
}

TASK(select_of_a_case_that_another_task_waits_with)
{
        resha_event e = { { 0 } };
        resha_case c = RESHA_ON_EVENT(&e);
        resha_task t = { 0 };
        int status = 1;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, waits, &c, &t));
        ASSERT_OK(resha_yield());
        ASSERT_EQ(resha_select(&c, 1), -EBUSY);
        ASSERT_EQ(resha_try_select(&c, 1), -EBUSY);
        resha_event_set(&e);
        ASSERT_OK(resha_task_wait(&t, &status));
        ASSERT_EQ(status, 0);
        ASSERT_EQ(resha_select(&c, 1), 0);
        return resha_group_end(&g, 0);
}

static int waits_with_both(void *arg)
{
        return resha_select(arg, 2);
}

/* Also of one that stands in no line: what the first who waits with it does at its end must not be the second's. */
TASK(select_of_a_later_instant_or_of_nothing_that_another_task_waits_with)
{
        resha_case c[] = { RESHA_ON_TIME(resha_after(MS(10))), RESHA_ON_TIME(resha_after(MS(20))) };
        resha_case d[] = { RESHA_ON_TIME(resha_after(MS(10))), RESHA_ON_EVENT(NULL) };

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, waits_with_both, c);
        resha_spawn(&g, waits_with_both, d);
        ASSERT_OK(resha_yield());
        ASSERT_EQ(resha_select(&c[1], 1), -EBUSY);
        ASSERT_HAS(resha_error_of(-EBUSY)->text, "case 0");
        ASSERT_EQ(resha_select(&d[1], 1), -EBUSY);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(resha_select(&c[1], 1), 0);
        return 0;
}

/* ---- one who waits, and what the others do meanwhile ---- */

struct chooser {
        resha_queue *in, *out;
        resha_event *event;
        resha_task *of;
        int64_t ms; /* 0: no case of time */
        int item, put, which, result;
        resha_task task;
};

static int chooses(void *arg)
{
        struct chooser *w = arg;
        resha_case c[] = { RESHA_ON_GET(w->in, &w->item), RESHA_ON_PUT(w->out, &w->put), RESHA_ON_EVENT(w->event),
                           RESHA_ON_TASK(w->of), RESHA_ON_TIME(w->ms ? resha_after(MS(w->ms)) : RESHA_NEVER) };

        w->which = resha_select(c, 5);
        w->result = w->which < 0 ? w->which : c[w->which].result;
        return w->which < 0 ? w->which : 0;
}

static void spawn_chooser(resha_group *g, struct chooser *w)
{
        resha_group_begin(g, NULL);
        ASSERT_OK(resha_spawn_task(g, chooses, w, &w->task));
        ASSERT_OK(resha_yield());
        ASSERT_FALSE(resha_task_done(&w->task, NULL));
}

TASK(select_waits_for_an_item)
{
        QUEUE(in, 1);
        QUEUE(out, 1);
        resha_event e = { { 0 } };
        struct chooser w = { .in = in, .out = out, .event = &e, .ms = 1000 };
        int n;

        ASSERT_EQ(resha_queue_put(out, &(int){ 1 }), 1); /* full */
        RESHA_GROUP(g);
        spawn_chooser(&g, &w);
        ASSERT_EQ(resha_queue_put(in, &(int){ 7 }), 1);
        ASSERT_EQ(resha_queue_count(in), 0);
        /* Before the task has run its other waits are gone: nothing is taken or put by them. */
        ASSERT_EQ(resha_queue_try_put(in, &(int){ 8 }), 1);
        ASSERT_EQ(resha_queue_try_get(out, &n), 1);
        ASSERT_EQ(resha_queue_count(out), 0);
        resha_event_set(&e);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(w.which, 0);
        ASSERT_EQ(w.result, 1);
        ASSERT_EQ(w.item, 7);
        ASSERT_EQ(resha_queue_try_get(in, &n), 1);
        ASSERT_EQ(n, 8);
        return 0;
}

TASK(select_waits_for_a_place)
{
        QUEUE(in, 1);
        QUEUE(out, 1);
        struct chooser w = { .in = in, .out = out, .put = 5 };
        int n;

        ASSERT_EQ(resha_queue_put(out, &(int){ 1 }), 1);
        RESHA_GROUP(g);
        spawn_chooser(&g, &w);
        ASSERT_EQ(resha_queue_get(out, &n), 1);
        ASSERT_EQ(n, 1);
        ASSERT_EQ(resha_queue_count(out), 1);
        ASSERT_EQ(resha_queue_put(in, &n), 1);
        ASSERT_EQ(resha_queue_count(in), 1);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(w.which, 1);
        ASSERT_EQ(w.result, 1);
        ASSERT_EQ(resha_queue_get(out, &n), 1);
        ASSERT_EQ(n, 5);
        ASSERT_EQ(resha_queue_get(in, &n), 1);
        return 0;
}

TASK(select_waits_for_an_event)
{
        QUEUE(in, 1);
        resha_event e = { { 0 } };
        struct chooser w = { .in = in, .event = &e, .ms = 1000 };
        int n = 3;

        RESHA_GROUP(g);
        spawn_chooser(&g, &w);
        resha_event_set(&e);
        resha_event_clear(&e); /* it is woken all the same */
        ASSERT_EQ(resha_queue_put(in, &n), 1);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(w.which, 2);
        ASSERT_EQ(w.result, 0);
        ASSERT_EQ(resha_queue_get(in, &n), 1);
        return 0;
}

TASK(select_waits_for_the_end_of_a_task)
{
        QUEUE(in, 1);
        struct job j = JOB("job", 5, .result = -EIO);
        struct chooser w = { .in = in, .of = &j.task, .ms = 1000 };
        resha_instant start = resha_now();
        int status = 1;

        RESHA_GROUP(jobs);
        resha_group_begin(&jobs, &(resha_group_opts){ .keep_going = true });
        ASSERT_OK(resha_spawn_task(&jobs, job, &j, &j.task));
        RESHA_GROUP(g);
        spawn_chooser(&g, &w);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_PASSED(start, 5);
        ASSERT_EQ(w.which, 3);
        ASSERT_EQ(w.result, 0);
        ASSERT_TRUE(resha_task_done(&j.task, &status));
        ASSERT_EQ(status, -EIO);
        ASSERT_EQ(chooses(&w), 0); /* an ended one is done at once */
        ASSERT_EQ(w.which, 3);
        ASSERT_EQ(resha_group_end(&jobs, 0), -EIO);
        notes();
        return 0;
}

TASK(select_waits_for_the_earliest_instant)
{
        QUEUE(in, 1);
        int x;
        resha_instant start = resha_now();
        resha_case c[] = { RESHA_ON_TIME(RESHA_NEVER), RESHA_ON_TIME(resha_after(MS(9))), RESHA_ON_GET(in, &x),
                           RESHA_ON_TIME(resha_after(MS(3))), RESHA_ON_TIME(resha_after(MS(6))) };

        ASSERT_EQ(resha_select(c, 5), 3);
        ASSERT_PASSED(start, 3);
        ASSERT_EQ(c[3].result, 0);
        c[3] = RESHA_ON_TIME(RESHA_NEVER);
        ASSERT_EQ(resha_select(c, 5), 4);
        ASSERT_PASSED(start, 6);
        return 0;
}

TASK(select_is_woken_by_shutdown)
{
        for (int end = 0; end < 2; end++) {
                QUEUE(a, 1);
                QUEUE(b, 1);
                struct chooser w = { .in = b, .out = a };
                ASSERT_EQ(resha_queue_put(a, &(int){ 1 }), 1);
                RESHA_GROUP(g);
                spawn_chooser(&g, &w);
                resha_queue_shutdown(end ? a : b);
                resha_queue_shutdown(end ? b : a);
                ASSERT_OK(resha_group_end(&g, 0));
                ASSERT_EQ(w.which, end);
                ASSERT_EQ(w.result, 0);
        }
        return 0;
}

TASK(select_with_cases_of_nothing_waits_for_the_others)
{
        struct chooser w = { .ms = 3 };
        resha_instant start = resha_now();

        ASSERT_OK(chooses(&w));
        ASSERT_PASSED(start, 3);
        ASSERT_EQ(w.which, 4);
        return 0;
}

TASK(select_stands_in_line_as_everybody)
{
        QUEUE(q, 1);
        struct chooser first = { .in = q }, second = { .in = q };

        RESHA_GROUP(g);
        spawn_chooser(&g, &first);
        ASSERT_OK(resha_spawn_task(&g, chooses, &second, &second.task));
        ASSERT_OK(resha_yield());
        ASSERT_EQ(resha_queue_try_put(q, &(int){ 1 }), 1);
        ASSERT_EQ(resha_queue_try_put(q, &(int){ 2 }), 1);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(first.item, 1);
        ASSERT_EQ(second.item, 2);
        return 0;
}

static int waits_for_four(void *arg)
{
        return resha_select(arg, 4);
}

TASK(select_of_the_same_object_twice)
{
        QUEUE(q, 1);
        resha_event e = { { 0 } };
        int x = 0, y = 0;
        resha_case c[] = { RESHA_ON_GET(q, &x), RESHA_ON_EVENT(&e), RESHA_ON_GET(q, &y), RESHA_ON_EVENT(&e) };
        resha_task t = { 0 };

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, waits_for_four, c, &t));
        ASSERT_OK(resha_yield());
        ASSERT_EQ(resha_queue_put(q, &(int){ 4 }), 1);
        ASSERT_EQ(resha_queue_try_get(q, &x), -EAGAIN);
        ASSERT_OK(resha_task_wait(&t, &y));
        ASSERT_EQ(y, 0);
        ASSERT_EQ(x, 4);
        ASSERT_OK(resha_spawn_task(&g, waits_for_four, c, &t));
        ASSERT_OK(resha_yield());
        resha_event_set(&e);
        ASSERT_OK(resha_task_wait(&t, &y));
        ASSERT_EQ(y, 1);
        return resha_group_end(&g, 0);
}

/* ---- cancel ---- */

TASK(select_cancelled_leaves_no_trace)
{
        QUEUE(in, 1);
        QUEUE(out, 1);
        resha_event e = { { 0 } };
        struct job j = JOB("job", 10);
        struct chooser w = { .in = in, .out = out, .event = &e, .of = &j.task, .ms = 5 };
        int n;

        ASSERT_EQ(resha_queue_put(out, &(int){ 1 }), 1);
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, job, &j, &j.task));
        ASSERT_EQ(status_when_cancelled(1, chooses, &w), -ECANCELED);
        ASSERT_EQ(w.which, -ECANCELED);
        ASSERT_EQ(resha_queue_try_put(in, &(int){ 1 }), 1);
        ASSERT_EQ(resha_queue_count(in), 1);
        ASSERT_EQ(resha_queue_get(out, &n), 1);
        ASSERT_EQ(resha_queue_count(out), 0);
        resha_event_set(&e);
        ASSERT_OK(resha_group_end(&g, 0));
        notes();
        return 0;
}

TASK(select_that_is_done_is_not_cancelled_any_more)
{
        QUEUE(in, 1);
        struct chooser w = { .in = in };

        RESHA_GROUP(g);
        spawn_chooser(&g, &w);
        ASSERT_EQ(resha_queue_put(in, &(int){ 7 }), 1);
        resha_task_cancel(&w.task);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(w.which, 0);
        ASSERT_EQ(w.item, 7);
        return 0;
}

TASK(select_in_a_cancelled_scope_does_nothing)
{
        QUEUE(in, 1);
        int x = 0;
        resha_case c = RESHA_ON_GET(in, &x);

        ASSERT_EQ(resha_queue_put(in, &(int){ 7 }), 1);
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, RESHA_MS(0));
        int rc = resha_select(&c, 1);
        ASSERT_EQ(rc, -ECANCELED);
        ASSERT_EQ(resha_scope_end(&s, rc), -ETIME);
        ASSERT_EQ(resha_queue_get(in, &x), 1);
        ASSERT_EQ(x, 7);
        return 0;
}

/* ---- rendezvous of selects ---- */

struct partner {
        resha_queue *q;
        int item, got, gets, puts;
};

/* Would give or take. */
static int meets(void *arg)
{
        struct partner *p = arg;
        resha_case c[] = { RESHA_ON_GET(p->q, &p->got), RESHA_ON_PUT(p->q, &p->item) };
        int which = resha_select(c, 2);

        p->gets += which == 0;
        p->puts += which == 1;
        return which < 0 ? which : 0;
}

static int pairs_meet(__attribute__((unused)) void *arg)
{
        QUEUE(q, 0);
        struct partner p[8];
        int gets = 0, puts = 0, given = 0, got = 0;

        for (int i = 0; i < 8; i++)
                p[i] = (struct partner){ .q = q, .item = 1 << i };
        ASSERT_OK(resha_gather(meets, p, 8, sizeof p[0], NULL));
        for (int i = 0; i < 8; i++) {
                ASSERT_EQ(p[i].gets + p[i].puts, 1);
                gets += p[i].gets;
                puts += p[i].puts;
                given += p[i].puts ? p[i].item : 0;
                got += p[i].gets ? p[i].got : 0;
                ASSERT_TRUE(!p[i].gets || p[i].got != p[i].item); /* nobody meets himself */
        }
        ASSERT_EQ(gets, 4);
        ASSERT_EQ(puts, 4);
        ASSERT_EQ(given, got);
        return 0;
}

TEST(select_on_both_sides_meets_in_pairs)
{
        RUN_SEEDS(pairs_meet, NULL, 100);
}

/* ---- no allocation ---- */

TASK(select_does_not_allocate)
{
        QUEUE(in, 1);
        QUEUE(out, 0);
        resha_event e = { { 0 } };
        struct job j = JOB("job", 10);
        struct chooser w = { .in = in, .out = out, .event = &e, .of = &j.task, .ms = 2 };

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, job, &j, &j.task));
        ASSERT_OK(resha_yield());
        rs_alloc_fail_after(1, true);
        ASSERT_OK(chooses(&w));
        ASSERT_EQ(w.which, 4);
        ASSERT_EQ(rs_alloc_failed(), 0);
        rs_alloc_fail_after(0, false);
        ASSERT_OK(resha_group_end(&g, 0));
        notes();
        return 0;
}
