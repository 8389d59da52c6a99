/* SPDX-License-Identifier: MIT */
/* What asyncio has futures for: a result that somebody waits for. Here that is the status of a task, or an event with
 * what its setter left beside it. */

#include "base/alloc.h"
#include "job.h"

static int waits(void *arg)
{
        int rc = resha_event_wait(arg);

        note("%d", rc);
        return rc;
}

/* semantics 26 better
 * asyncio: to set the result of a future that is done or cancelled is an error, also for a producer that loses the race
 * with a cancel.
 * resha: to set an event is never an error: twice is once, and whoever has gone by then is not missed. */
TASK(semantics_26_producer_that_loses_against_a_cancel_does_no_harm)
{
        resha_event e = { { 0 } };
        resha_task t = { 0 };
        int status;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, waits, &e, &t));
        ASSERT_OK(resha_yield());
        resha_task_cancel(&t);
        resha_event_set(&e); /* too late for that one */
        resha_event_set(&e);
        ASSERT_OK(resha_task_wait(&t, &status));
        ASSERT_EQ(status, -ECANCELED);
        resha_event_set(&e);
        ASSERT_OK(resha_event_wait(&e));
        ASSERT_STR(notes(), "-125");
        return resha_group_end(&g, 0);
}

/* semantics 27 same
 * asyncio: the result of a future that is pending cannot be read, and reading that of a cancelled one raises
 * CancelledError.
 * resha: resha_task_done() is false, and writes nothing, while the task runs; the status of one that ended cancelled is
 * -ECANCELED. */
TASK(semantics_27_status_is_there_when_the_task_has_ended)
{
        struct job j = JOB("a", 1000), k = JOB("b", 1, .result = 4);
        int status = 77;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, job, &j, &j.task));
        ASSERT_OK(resha_spawn_task(&g, job, &k, &k.task));
        ASSERT_FALSE(resha_task_done(&j.task, &status));
        ASSERT_EQ(status, 77);
        resha_task_cancel(&j.task);
        ASSERT_FALSE(resha_task_done(&j.task, &status));
        ASSERT_EQ(status, 77);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_TRUE(resha_task_done(&j.task, &status));
        ASSERT_EQ(status, -ECANCELED);
        ASSERT_TRUE(resha_task_done(&k.task, &status));
        ASSERT_EQ(status, 4);
        return 0;
}

struct named_wait {
        const char *name;
        resha_event *event;
};

static int waits_by_name(void *arg)
{
        const struct named_wait *w = arg;
        int rc = resha_event_wait(w->event);

        note("%s", w->name);
        return rc;
}

/* semantics 28 same
 * asyncio: what waits for a future is called in the order of its registration, later, and never inside set_result(),
 * cancel() or add_done_callback().
 * resha: whoever waits for an event or a task becomes ready, in the order of the waits; the one who sets, cancels or
 * ends goes on first. */
TASK(semantics_28_waiters_run_later_in_the_order_of_their_waits)
{
        resha_event e = { { 0 } }, never = { { 0 } };
        struct named_wait w[] = { { "a", &e }, { "b", &e }, { "c", &e } };
        resha_task cancelled = { 0 };

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, waits, &never, &cancelled));
        for (size_t i = 0; i < 3; i++)
                ASSERT_OK(resha_spawn(&g, waits_by_name, &w[i]));
        ASSERT_OK(resha_yield());
        resha_event_set(&e);
        note("set");
        resha_task_cancel(&cancelled);
        note("cancelled");
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "set cancelled a b c -125");
        return 0;
}

/* semantics 31 better
 * asyncio: cancel() of a pending future makes it cancelled at once and gives True; on one that is done it gives False.
 * resha: there are no futures without a task, and a task is not cancelled at once: it is told, and ends by itself.
 * resha_task_cancel() gives nothing; resha_task_done() before it tells whether there was something to cancel. */
TASK(semantics_31_cancel_tells_a_task_and_leaves_one_that_is_done)
{
        struct job j = JOB("a", 1000, .clean = 1), done = JOB("b", 0, .result = 3);
        int status;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, job, &j, &j.task));
        ASSERT_OK(resha_spawn_task(&g, job, &done, &done.task));
        ASSERT_OK(resha_task_wait(&done.task, NULL));
        resha_task_cancel(&j.task);
        resha_task_cancel(&done.task);
        ASSERT_FALSE(resha_task_done(&j.task, NULL));
        ASSERT_TRUE(resha_task_done(&done.task, &status));
        ASSERT_EQ(status, 3);
        ASSERT_OK(resha_task_wait(&j.task, &status));
        ASSERT_EQ(status, -ECANCELED);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "a+ b+ b- a!");
        return 0;
}

static int notes_that_it_runs(void *arg)
{
        note("%s", (const char *)arg);
        return 0;
}

/* semantics 32 better
 * asyncio: awaiting a future that is done does not suspend.
 * resha: nor does waiting for a task that has ended, or an event that is set; but it looks for a cancel first, and a
 * task that goes on so for long lets others run. */
TASK(semantics_32_waiting_for_what_is_there_does_not_suspend)
{
        struct job j = JOB("a", 0);
        resha_event e = { { 0 } };

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_event_set(&e);
        ASSERT_OK(resha_spawn_task(&g, job, &j, &j.task));
        ASSERT_OK(resha_task_wait(&j.task, NULL));
        resha_spawn(&g, notes_that_it_runs, (char *)"other");
        for (int i = 0; i < 10; i++) {
                ASSERT_OK(resha_task_wait(&j.task, NULL));
                ASSERT_OK(resha_event_wait(&e));
        }
        note("waited");
        for (int i = 0; i < 200; i++)
                ASSERT_OK(resha_event_wait(&e));
        note("waited for long");
        resha_group_cancel(&g);
        ASSERT_EQ(resha_task_wait(&j.task, NULL), -ECANCELED);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "a+ a- waited other waited for long");
        return 0;
}

static void note_report(const resha_report *r, __attribute__((unused)) void *arg)
{
        note("report %d %s", r->kind == RESHA_REPORT_LOST_ERROR ? r->code : 0, r->text);
}

static int leaves_a_failure_behind(void *arg)
{
        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .keep_going = true });
        resha_spawn(&g, job, arg);
        ASSERT_OK(resha_sleep(MS(5)));
        note("leaves");
        return 0;
}

static int calls_what_leaves_a_failure(void *arg)
{
        {
                RESHA_SCOPE(s);
                resha_timeout_begin(&s, RESHA_S(60));
                ASSERT_OK(leaves_a_failure_behind(arg));
                ASSERT_OK(resha_scope_end(&s, 0));
        }
        note("goes on");
        return 0;
}

/* semantics 34 better
 * asyncio: an exception that nobody reads is reported when the garbage collector finds its future.
 * resha: a failure is reported when the last one who could have passed it on has not: at the first boundary (the end of
 * a scope, group or task) that is left with success, in the same turn. */
TEST(semantics_34_failure_that_nobody_passes_on_is_reported_at_the_next_boundary)
{
        struct job j = JOB("a", 1, .result = -EIO);

        ASSERT_EQ(test_run_opts(calls_what_leaves_a_failure, &j, &(resha_run_opts){ .report = note_report }), 0);
        const char *n = notes();
        ASSERT_HAS(n, "a+ a- leaves report -5 a failure was lost: a failed (");
        ASSERT_HAS(n, "return resha_group_end() goes on");
}

/* ---- tasks have owners ---- */

static void __attribute__((noinline)) spawns_what_nobody_else_knows(resha_group *g, resha_event *e)
{
        struct named_wait w = { "orphan", e };

        ASSERT_OK(resha_spawn_copy(g, waits_by_name, &w));
}

/* semantics 43 better
 * asyncio: a pending task that nothing but the loop knows may be destroyed unfinished, since the loop holds tasks
 * weakly. resha: the group owns its tasks, whoever else knows of them; it cannot end before they have. */
TASK(semantics_43_task_without_a_handle_is_held_by_its_group)
{
        resha_event e = { { 0 } };

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        spawns_what_nobody_else_knows(&g, &e);
        ASSERT_OK(resha_sleep(MS(1)));
        ASSERT_EQ(resha_group_running(&g), 1);
        resha_event_set(&e);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "orphan");
        return 0;
}

/* semantics 48 better
 * asyncio: an eager task that is cancelled right after its creation has already run to its first suspension, and is
 * cancelled there.
 * resha: no task starts inside its spawn. One that is cancelled right after it runs to its first wait in its turn, and
 * is cancelled there. */
TASK(semantics_48_no_task_starts_inside_its_spawn)
{
        struct job j = JOB("a", 1000);

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, job, &j, &j.task));
        note("spawned");
        resha_task_cancel(&j.task);
        note("cancelled");
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "spawned cancelled a+ a!");
        return 0;
}

/* semantics 49 better
 * asyncio: if an eager child fails at once, its group must learn it by a queued callback, or a CancelledError leaks out
 * of the group.
 * resha: a child cannot fail inside its spawn, which is good; the body learns of it at its next wait, and after the
 * group's end nothing is cancelled. */
TASK(semantics_49_child_that_fails_at_once_does_not_fail_its_spawn)
{
        struct job j = JOB("a", 0, .result = -EIO);

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn(&g, job, &j));
        ASSERT_FALSE(resha_cancelled());
        ASSERT_EQ(resha_sleep(RESHA_S(10)), -ECANCELED);
        ASSERT_EQ(resha_group_end(&g, 0), -EIO);
        ASSERT_FALSE(resha_cancelled());
        ASSERT_OK(resha_sleep(MS(1)));
        ASSERT_STR(notes(), "a+ a-");
        return 0;
}

/* semantics 50 better
 * asyncio: if the eager start itself fails, the error must go to the creator and the half-made task must be taken out,
 * or the loop hangs.
 * resha: a spawn that cannot start its task gives the error to the caller; there is no half-made task, its handle is
 * still unused, and the group ends. */
TASK(semantics_50_spawn_that_fails_leaves_no_half_made_task)
{
        struct job j = JOB("a", 0);
        const resha_spawn_opts o = { .copy = sizeof j, .task = &j.task };

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        rs_alloc_fail_after(1, true);
        int rc = resha_spawn_opt(&g, job, &j, &o);
        rs_alloc_fail_after(0, false);
        ASSERT_EQ(rc, -ENOMEM);
        ASSERT_EQ(resha_group_running(&g), 0);
        ASSERT_EQ(resha_task_wait(&j.task, NULL), -EINVAL);
        ASSERT_OK(resha_spawn_opt(&g, job, &j, &o)); /* the group is none the worse */
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "a+ a-");
        return 0;
}
