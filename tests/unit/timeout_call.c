/* SPDX-License-Identifier: MIT */
/* Timeouts as a call: resha_timeout() runs a function in the caller's own task, so that what expires is that function
 * and nothing that others wait for. */

#include "job.h"

static int sleep_ms(void *arg)
{
        return resha_sleep(MS(*(int *)arg));
}

static int name_of_task(void *arg)
{
        *(const char **)arg = resha_task_name();
        return 12;
}

/* semantics 108 same
 * asyncio: a coroutine under wait_for() runs in the task of the caller.
 * resha: resha_timeout() calls the function in the current task. */
TASK(semantics_108_timeout_as_a_call_runs_in_the_same_task)
{
        const char *name = NULL;

        ASSERT_OK(resha_task_set_name("mine"));
        ASSERT_EQ(resha_timeout(RESHA_S(1), name_of_task, &name), 12);
        ASSERT_PTR(name, resha_task_name());
        return 0;
}

TASK(timeout_as_a_call)
{
        int quick = 1, slow = 1000;

        ASSERT_EQ(resha_timeout(MS(500), sleep_ms, &quick), 0);
        ASSERT_EQ(resha_timeout(MS(2), sleep_ms, &slow), -ETIME);
        ASSERT_EQ(resha_timeout(MS(0), sleep_ms, &quick), -ETIME);
        return 0;
}

static int swallows(void *arg)
{
        int rc = sleep_ms(arg);

        return rc == -ECANCELED ? 5 : rc;
}

/* semantics 111 same
 * asyncio: if what is awaited swallows the cancel and returns a value, that is the result.
 * resha: the function's value is the result. */
TASK(semantics_111_value_of_a_call_that_swallows_the_expiry)
{
        int slow = 1000;

        ASSERT_EQ(resha_timeout(MS(2), swallows, &slow), 5);
        return 0;
}

static int spoils(void *arg)
{
        int rc = sleep_ms(arg);

        return rc == -ECANCELED ? resha_fail(-EIO, "spoiled") : rc;
}

/* semantics 112 same
 * asyncio: if it raises something else while being cancelled, that comes out.
 * resha: the function's code comes out, with its record. */
TASK(semantics_112_failure_of_a_call_that_expires)
{
        int slow = 1000;

        ASSERT_EQ(resha_timeout(MS(2), spoils, &slow), -EIO);
        ASSERT_STR(resha_error_of(-EIO)->text, "spoiled");
        return 0;
}

static int waits_for_event(void *arg)
{
        return resha_event_wait(arg);
}

static int sets_event(void *arg)
{
        resha_event *e = arg;
        int rc = resha_sleep(MS(5));

        resha_event_set(e);
        return rc;
}

static int sets_and_computes_past_the_deadline(void *arg)
{
        resha_instant late = resha_after(RESHA_MS(25));

        resha_event_set(arg);
        while (!test_is_sim() && resha_now().ns < late.ns)
                ; /* in the simulated world computing takes no time */
        return 0;
}

/* semantics 115 better
 * asyncio: if the result comes before the deadline, in the same batch, wait_for() raises TimeoutError and loses the
 * result.
 * resha: what has completed wins: the result is returned. */
TASK(semantics_115_completion_before_the_expiry_of_the_same_batch_wins)
{
        resha_event e = { { 0 } };

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, sets_and_computes_past_the_deadline, &e);
        /* The deadline passes when the event is set, and before its waiter, which is ready, gets its turn. */
        ASSERT_EQ(resha_timeout(RESHA_MS(20), waits_for_event, &e), 0);
        return resha_group_end(&g, 0);
}

TASK(timeout_of_the_instant_at_which_another_task_would_have_completed_it)
{
        resha_event e = { { 0 } };

        SIM_ONLY();
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, sets_event, &e);
        ASSERT_OK(resha_yield()); /* its timer is the earlier of two equal ones */
        int rc = resha_timeout(MS(5), waits_for_event, &e);
        /* Two timers of one instant: the event is set when that task runs, the expiry fires before. */
        ASSERT_EQ(rc, -ETIME);
        return resha_group_end(&g, 0);
}

static int set_and_let_time_pass(void *arg)
{
        resha_event *e = arg;
        int rc = resha_sleep(MS(4));

        resha_event_set(e);
        return rc;
}

/* semantics 116 same
 * asyncio: a result that came in an earlier batch than the deadline is returned.
 * resha: it is. */
TASK(semantics_116_completion_before_the_expiry_wins)
{
        resha_event e = { { 0 } };

        SIM_ONLY();
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, set_and_let_time_pass, &e);
        ASSERT_EQ(resha_timeout(MS(5), waits_for_event, &e), 0);
        return resha_group_end(&g, 0);
}

static int waits_for_task(void *arg)
{
        int status = 0, rc = resha_task_wait(arg, &status);

        return rc < 0 ? rc : status;
}

static int begins_and_waits(void *arg)
{
        ++*(int *)arg;
        return resha_yield();
}

static int never_waits(void *arg)
{
        return *(int *)arg;
}

/* semantics 109 better
 * asyncio: with a timeout of zero or less, what is done gives its result, a coroutine never starts, and a running task
 * is cancelled and awaited.
 * resha: the function starts all the same and runs to its first wait, which fails, also if what it waits for is there;
 * one that does not wait gives its result. A task that it waits for is not cancelled: resha_task_done() asks without
 * waiting. */
TASK(semantics_109_timeout_of_zero_runs_to_the_first_wait)
{
        struct job running = JOB("running", 5, .result = 3), done = JOB("done", 0, .result = 4);
        int begun = 0, seven = 7, status;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, job, &done, &done.task));
        ASSERT_OK(resha_spawn_task(&g, job, &running, &running.task));
        ASSERT_OK(resha_task_wait(&done.task, NULL));
        for (int ns = 0; ns >= -1; ns--) {
                ASSERT_EQ(resha_timeout(RESHA_NS(ns), begins_and_waits, &begun), -ETIME);
                ASSERT_EQ(begun, 1 - ns);
                ASSERT_EQ(resha_timeout(RESHA_NS(ns), never_waits, &seven), 7);
                ASSERT_EQ(resha_timeout(RESHA_NS(ns), waits_for_task, &done.task), -ETIME);
                ASSERT_EQ(resha_timeout(RESHA_NS(ns), waits_for_task, &running.task), -ETIME);
        }
        ASSERT_TRUE(resha_task_done(&done.task, &status));
        ASSERT_EQ(status, 4);
        ASSERT_OK(resha_task_wait(&running.task, &status));
        ASSERT_EQ(status, 3);
        return resha_group_end(&g, 0);
}

/* semantics 110 same
 * asyncio: if wait_for() expires, what it awaits is cancelled and waited for, so that the call may last longer.
 * resha: the call returns when the function has; its clean-up, behind a shield, takes its time. */
TASK(semantics_110_timeout_as_a_call_waits_for_the_cleanup)
{
        struct job j = JOB("a", 1000, .clean = 20);
        resha_instant start = resha_now();

        ASSERT_EQ(resha_timeout(MS(5), job, &j), -ETIME);
        ASSERT_STR(notes(), "a+ a!");
        ASSERT_PASSED(start, 25);
        return 0;
}

/* semantics 118 same
 * asyncio: what is passed through shield() goes on after the timeout.
 * resha: so does a task that somebody else owns, without being asked: the timeout ends the wait for it only. */
TASK(semantics_118_task_waited_for_goes_on_after_the_timeout)
{
        struct job j = JOB("a", 50, .result = 6);
        resha_instant start = resha_now();
        int status;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, job, &j, &j.task));
        ASSERT_EQ(resha_timeout(MS(5), waits_for_task, &j.task), -ETIME);
        ASSERT_PASSED(start, 5);
        ASSERT_FALSE(resha_task_done(&j.task, NULL));
        ASSERT_OK(resha_task_wait(&j.task, &status));
        ASSERT_EQ(status, 6);
        ASSERT_PASSED(start, 50);
        return resha_group_end(&g, 0);
}
