/* SPDX-License-Identifier: MIT */
/* Cancelling a task: level-triggered; every wait looks for a cancel first, without side effect; then a completed
 * operation wins. */

#include "job.h"

/* ---- cancelling ---- */

static int cleans_up(void *arg)
{
        struct job *j = arg;
        int rc = 0;

        for (int i = 1; rc >= 0; i++) {
                note("step%d", i);
                rc = resha_sleep(MS(j->ms));
        }
        note("releasing");
        return rc;
}

TASK(cancel_in_the_middle_of_work)
{
        struct job j = JOB("worker", 10);

        SIM_ONLY();
        ASSERT_EQ(status_when_cancelled(25, cleans_up, &j), -ECANCELED);
        ASSERT_STR(notes(), "step1 step2 step3 releasing");
        return 0;
}

TASK(cancel_before_the_first_run_lets_it_run_to_its_first_wait)
{
        struct job j = JOB("worker", 10);
        int status;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, cleans_up, &j, &j.task));
        resha_task_cancel(&j.task);
        ASSERT_OK(resha_task_wait(&j.task, &status));
        ASSERT_EQ(status, -ECANCELED);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "step1 releasing");
        return 0;
}

/* semantics 52 better
 * asyncio: right after cancel() done() and cancelled() are still false, and a count of requests has risen.
 * resha: cancel never waits: the task has not ended when the call returns. There is no count: a task or scope is
 * cancelled or not. */
TASK(semantics_52_cancel_does_not_wait)
{
        struct job j = JOB("a", 1000);

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, job, &j, &j.task));
        ASSERT_OK(resha_yield());
        resha_task_cancel(&j.task);
        ASSERT_FALSE(resha_task_done(&j.task, NULL));
        ASSERT_STR(notes(), "a+");
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "a!");
        return 0;
}

/* semantics 51 same
 * asyncio: cancel() of a task that is done does nothing; otherwise it reports True, even if the task will ignore it.
 * resha: resha_task_cancel() of an ended task is nothing and its status stays; the call has no result,
 * resha_task_done() tells. */
TASK(semantics_51_cancel_of_an_ended_task_is_nothing)
{
        struct job j = JOB("a", 0, .result = 9);
        int status;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, job, &j, &j.task));
        ASSERT_OK(resha_task_wait(&j.task, NULL));
        resha_task_cancel(&j.task);
        resha_task_cancel(&j.task);
        ASSERT_TRUE(resha_task_done(&j.task, &status));
        ASSERT_EQ(status, 9);
        return resha_group_end(&g, 0);
}

static int cancels_itself(void *arg)
{
        struct job *j = arg;

        resha_task_cancel(&j->task);
        note("on");
        ASSERT_TRUE(resha_cancelled());
        int rc = j->ms < 0 ? 0 : resha_sleep(MS(j->ms));
        note("%d", rc);
        return rc < 0 ? rc : 5;
}

/* semantics 56 same
 * asyncio: a task that cancels itself runs on to its next suspension, which raises.
 * resha: it runs on to its next wait, which fails. */
TASK(semantics_56_self_cancel_runs_on_to_the_next_wait)
{
        struct job j = JOB("self", 10);
        int status;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, cancels_itself, &j, &j.task));
        ASSERT_OK(resha_task_wait(&j.task, &status));
        ASSERT_EQ(status, -ECANCELED);
        ASSERT_STR(notes(), "on -125");
        return resha_group_end(&g, 0);
}

/* semantics 57 better
 * asyncio: if it returns without suspending, it ends cancelled and its value is lost.
 * resha: a task that has its result gives it: nobody waits, so nothing was cancelled. */
TASK(semantics_57_cancelled_task_that_does_not_wait_keeps_its_value)
{
        struct job j = JOB("self", -1);
        int status;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, cancels_itself, &j, &j.task));
        ASSERT_OK(resha_task_wait(&j.task, &status));
        ASSERT_EQ(status, 5);
        ASSERT_STR(notes(), "on 0");
        return resha_group_end(&g, 0);
}

static int stubborn(__attribute__((unused)) void *arg)
{
        for (int i = 0; i < 3; i++)
                note("%d", resha_sleep(RESHA_S(10)));
        note("%d", resha_yield());
        note("%d", resha_checkpoint());
        return 8;
}

/* semantics 62 better
 * asyncio: a task that catches its CancelledError and goes on is not bothered again: one request, one exception.
 * resha: cancellation is a level: every wait fails as long as the task is cancelled, after yielding once. */
TASK(semantics_62_cancel_is_level_triggered)
{
        ASSERT_EQ(status_when_cancelled(0, stubborn, NULL), 8); /* semantics 63: it ended normally, with its value */
        ASSERT_STR(notes(), "-125 -125 -125 -125 -125");
        return 0;
}

/* semantics 60 better
 * asyncio: two cancels before delivery arrive as one CancelledError, and count as two.
 * resha: cancelling twice is cancelling once, in every respect. */
TASK(semantics_60_cancelling_twice_is_cancelling_once)
{
        struct job j = JOB("a", 1000);
        int status;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, job, &j, &j.task));
        ASSERT_OK(resha_yield());
        resha_task_cancel(&j.task);
        resha_task_cancel(&j.task);
        ASSERT_OK(resha_task_wait(&j.task, &status));
        ASSERT_EQ(status, -ECANCELED);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "a+ a!");
        return 0;
}

static int fails_in_its_cleanup(__attribute__((unused)) void *arg)
{
        int rc = resha_sleep(RESHA_S(10));

        ASSERT_EQ(rc, -ECANCELED);
        return resha_fail(-EIO, "clean-up failed");
}

/* semantics 64 same
 * asyncio: a clean-up that raises another exception makes the task fail with that one.
 * resha: the status is the other code, its record goes to whoever joins, and the group has failed. */
TASK(semantics_64_failing_cleanup_is_a_failure)
{
        ASSERT_EQ(status_when_cancelled(0, fails_in_its_cleanup, NULL), -EIO);
        ASSERT_STR(resha_error_of(-EIO)->text, "clean-up failed");
        return 0;
}

/* semantics 78 same
 * asyncio: waiting tasks that are cancelled one after another resume in that order.
 * resha: in the order of the cancels. */
TASK(semantics_78_cancelled_tasks_resume_in_that_order)
{
        struct job j[] = { JOB("a", 1000), JOB("b", 1000), JOB("c", 1000), JOB("d", 1000) };
        const int order[] = { 2, 0, 3, 1 };

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (size_t i = 0; i < 4; i++)
                ASSERT_OK(resha_spawn_task(&g, job, &j[i], &j[i].task));
        ASSERT_OK(resha_yield());
        for (size_t i = 0; i < 4; i++)
                resha_task_cancel(&j[order[i]].task);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "a+ b+ c+ d+ c! a! d! b!");
        return 0;
}

static int waits_cancelled(void *arg)
{
        resha_instant *start = arg;
        *start = resha_now();
        int rc = resha_sleep(RESHA_S(10));
        ASSERT_EQ(rc, -ECANCELED);
        note("cancelled");
        rc = resha_sleep(RESHA_S(10));
        note("again");
        return rc;
}

static int other(__attribute__((unused)) void *arg)
{
        for (int i = 0; i < 4; i++) {
                note("other");
                ASSERT_OK(resha_yield());
        }
        return 0;
}

TASK(cancelled_waits_yield_once)
{
        resha_task t = { 0 };
        resha_instant start;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, waits_cancelled, &start, &t));
        ASSERT_OK(resha_yield());
        resha_task_cancel(&t);
        resha_spawn(&g, other, NULL);
        ASSERT_OK(resha_group_end(&g, 0));
        /* the second wait fails only after another task had its turn */
        ASSERT_STR(notes(), "cancelled other again other other other");
        return 0;
}

/* ---- every wait looks for a cancel first, and does nothing then ---- */

struct ready {
        resha_mutex mutex;
        resha_event event;
        resha_semaphore semaphore;
        resha_queue *queue;
        resha_limiter limiter;
        resha_task self;
};

static int immediate_calls(void *arg)
{
        struct ready *r = arg;
        struct job j = JOB("never", 0);
        size_t winner = 77;
        int item = 5;

        resha_task_cancel(&r->self);
        ASSERT_EQ(resha_mutex_lock(&r->mutex), -ECANCELED);
        ASSERT_EQ(resha_event_wait(&r->event), -ECANCELED);
        ASSERT_EQ(resha_semaphore_acquire(&r->semaphore), -ECANCELED);
        ASSERT_EQ(resha_queue_put(r->queue, &item), -ECANCELED);
        ASSERT_EQ(resha_queue_get(r->queue, &item), -ECANCELED);
        ASSERT_EQ(resha_limiter_acquire(&r->limiter), -ECANCELED);
        ASSERT_EQ(resha_sleep(RESHA_NS(0)), -ECANCELED);
        ASSERT_EQ(resha_sleep_until((resha_instant){ 0 }), -ECANCELED);
        ASSERT_EQ(resha_yield(), -ECANCELED);
        ASSERT_EQ(resha_checkpoint(), -ECANCELED);
        ASSERT_EQ(resha_gather(job, &j, 1, sizeof j, NULL), -ECANCELED);
        ASSERT_EQ(resha_race(job, &j, 1, sizeof j, NULL, &winner), -ECANCELED);
        ASSERT_EQ(winner, 77);
        ASSERT_EQ(resha_retry(job, &j, NULL), -ECANCELED);
        return resha_task_wait(&r->self, NULL);
}

/* semantics 58 better
 * asyncio: a call that can complete without suspending does not notice a pending cancel: a free lock, a set event, an
 * item that is there.
 * resha: every call that may wait looks first, and takes nothing then. */
TASK(semantics_58_immediate_calls_see_a_cancel)
{
        struct ready r = { 0 };
        int status, item = 1;

        resha_event_set(&r.event);
        resha_semaphore_init(&r.semaphore, 1);
        ASSERT_OK(resha_limiter_init(&r.limiter, 1, RESHA_S(1), 1));
        ASSERT_OK(resha_queue_new(sizeof(int), 2, NULL, &r.queue));
        ASSERT_EQ(resha_queue_put(r.queue, &item), 1);
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, immediate_calls, &r, &r.self));
        ASSERT_OK(resha_task_wait(&r.self, &status));
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(status, -ECANCELED);
        /* and nothing was taken */
        ASSERT_FALSE(resha_mutex_locked(&r.mutex));
        ASSERT_EQ(resha_semaphore_available(&r.semaphore), 1);
        ASSERT_EQ(resha_queue_count(r.queue), 1);
        resha_instant start = resha_now();
        ASSERT_OK(resha_limiter_acquire(&r.limiter));
        ASSERT_PASSED(start, 0);
        resha_queue_free(r.queue);
        return 0;
}

/* ---- a completed operation wins over a cancel that comes after it ---- */

static int wait_event_then_sleep(void *arg)
{
        note("event %d", resha_event_wait(arg));
        int rc = resha_sleep(MS(1));
        note("sleep %d", rc);
        return rc;
}

/* semantics 55 better
 * asyncio: if the future is done, with its waiter about to wake, and the task is cancelled then, the task gets
 * CancelledError and never sees the value.
 * resha: what has completed wins: the wait returns its result, and the next wait is cancelled. */
TASK(semantics_55_completed_wait_wins_over_cancel)
{
        resha_event e = { { 0 } };
        resha_task t = { 0 };
        int status;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, wait_event_then_sleep, &e, &t));
        ASSERT_OK(resha_yield());
        resha_event_set(&e);
        resha_task_cancel(&t);
        ASSERT_OK(resha_task_wait(&t, &status));
        ASSERT_EQ(status, -ECANCELED);
        ASSERT_STR(notes(), "event 0 sleep -125");
        return resha_group_end(&g, 0);
}

static int wait_task_then_sleep(void *arg)
{
        int status = 0;

        note("wait %d", resha_task_wait(arg, &status));
        note("status %d", status);
        return resha_sleep(MS(1));
}

static int cancels(void *arg)
{
        resha_task_cancel(arg);
        return 0;
}

/* semantics 114 better
 * asyncio: if the caller of wait_for() is cancelled in the iteration in which the result came, CancelledError is
 * raised and the result is lost.
 * resha: the result is returned; the cancel is noticed at the next wait. */
TASK(semantics_114_result_of_a_joined_task_wins_over_cancel)
{
        struct job j = JOB("a", 3, .result = 6);
        resha_task t = { 0 };
        int status;

        SIM_ONLY();
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, wait_task_then_sleep, &j.task, &t));
        ASSERT_OK(resha_spawn_task(&g, job, &j, &j.task));
        ASSERT_OK(resha_sleep(MS(3))); /* the job's timer came first, it has ended, the waiter is ready */
        resha_spawn(&g, cancels, &t);
        ASSERT_OK(resha_task_wait(&t, &status));
        ASSERT_EQ(status, -ECANCELED);
        ASSERT_HAS(notes(), "wait 0 status 6");
        return resha_group_end(&g, 0);
}

/* ---- who is cancelled by what ---- */

static int swallows(__attribute__((unused)) void *arg)
{
        int rc = resha_sleep(RESHA_S(10));

        return rc == -ECANCELED ? 4 : rc;
}

static int waits_then_checks(void *arg)
{
        int status = 0, rc = resha_task_wait(arg, &status);

        note("wait %d status %d", rc, status);
        return rc < 0 ? rc : resha_checkpoint();
}

/* semantics 67 better
 * asyncio: if an inner task swallows the cancel that reached it through its waiter, and returns a value, the cancel of
 * the waiter is lost.
 * resha: each task has its own cancel: the waiter is cancelled whatever the other returns. */
TASK(semantics_67_cancel_of_a_waiter_is_not_lost_to_the_value_of_another_task)
{
        resha_task inner = { 0 }, outer = { 0 };
        int status;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, swallows, NULL, &inner));
        ASSERT_OK(resha_spawn_task(&g, waits_then_checks, &inner, &outer));
        ASSERT_OK(resha_yield());
        resha_task_cancel(&inner);
        resha_task_cancel(&outer);
        ASSERT_OK(resha_task_wait(&outer, &status));
        ASSERT_EQ(status, -ECANCELED);
        return resha_group_end(&g, 0);
}

/* semantics 68 better
 * asyncio: if a third party cancels the inner task, the one that awaits it gets a CancelledError although nobody
 * cancelled it.
 * resha: the wait succeeds, and the status that it tells is -ECANCELED: the waiter is not cancelled. */
TASK(semantics_68_task_cancelled_by_a_third_party_does_not_cancel_who_waits_for_it)
{
        struct job inner = JOB("inner", 1000);
        resha_task outer = { 0 };
        int status;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, job, &inner, &inner.task));
        ASSERT_OK(resha_spawn_task(&g, waits_then_checks, &inner.task, &outer));
        ASSERT_OK(resha_yield());
        resha_task_cancel(&inner.task);
        ASSERT_OK(resha_task_wait(&outer, &status));
        ASSERT_EQ(status, 0);
        ASSERT_STR(notes(), "inner+ inner! wait 0 status -125");
        return resha_group_end(&g, 0);
}

/* semantics 133 better
 * asyncio: a body that swallows the group's cancel goes on undisturbed; the errors come out at the exit.
 * resha: each further wait of the body fails too, until it ends the group; then the failure comes out. */
TASK(semantics_133_body_that_swallows_the_cancel_of_its_group)
{
        struct job j = JOB("a", 0, .result = -EIO);

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, job, &j);
        ASSERT_EQ(resha_sleep(RESHA_S(9)), -ECANCELED);
        ASSERT_EQ(resha_sleep(RESHA_S(9)), -ECANCELED); /* each wait says so */
        ASSERT_EQ(resha_group_end(&g, 0), -EIO);        /* and the failure comes out all the same */
        return 0;
}

/* semantics 134 better
 * asyncio: a child that swallows the cancel is waited for without limit, and keeps its result.
 * resha: so it is, but each of its waits fails, and one that goes on for long is reported
 * (RESHA_REPORT_IGNORED_CANCEL); a run that must end reports it as stuck. */
TASK(semantics_134_child_that_swallows_the_cancel_is_waited_for_and_keeps_its_value)
{
        resha_task t = { 0 };
        int status;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, swallows, NULL, &t));
        ASSERT_OK(resha_yield());
        resha_group_cancel(&g);
        ASSERT_EQ(resha_group_end(&g, 0), 0);
        ASSERT_TRUE(resha_task_done(&t, &status));
        ASSERT_EQ(status, 4);
        return 0;
}

static int cleans_up_twice(void *arg)
{
        struct job *j = arg;
        int rc = resha_sleep(RESHA_S(10));

        ASSERT_OK(resha_shielded(RESHA_S(9), job_clean, j));
        note("cleaned");
        ASSERT_EQ(resha_sleep(RESHA_S(10)), -ECANCELED); /* outside of the shield it is cancelled still */
        ASSERT_OK(resha_shielded(RESHA_S(9), job_clean, j));
        note("cleaned");
        return rc;
}

/* semantics 61 better
 * asyncio: a second cancel during clean-up interrupts the clean-up.
 * resha: the level is as it was: what is shielded goes on, what is not fails anyway. */
TASK(semantics_61_second_cancel_does_not_disturb_a_shielded_cleanup)
{
        struct job j = JOB("a", 0, .clean = 5);
        resha_task t = { 0 };
        int status;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, cleans_up_twice, &j, &t));
        for (int i = 0; i < 3; i++) {
                ASSERT_OK(resha_sleep(MS(1)));
                resha_task_cancel(&t);
        }
        ASSERT_OK(resha_task_wait(&t, &status));
        ASSERT_EQ(status, -ECANCELED);
        ASSERT_STR(notes(), "cleaned cleaned");
        return resha_group_end(&g, 0);
}

static int timeout_begun_while_cancelled(__attribute__((unused)) void *arg)
{
        int rc = resha_sleep(RESHA_S(10));

        RESHA_SCOPE(shield);
        resha_shield_begin(&shield, RESHA_S(9));
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, MS(2));
        ASSERT_EQ(resha_scope_end(&s, resha_sleep(RESHA_S(5))), -ETIME);
        ASSERT_TRUE(resha_scope_expired(&s));
        ASSERT_OK(resha_scope_end(&shield, 0));
        return rc;
}

/* semantics 99 better
 * asyncio: a timeout that is entered with cancels already counted still becomes a TimeoutError: it compares with the
 * count at its entry.
 * resha: there are no counts: inside a shield a timeout that expires is its own, -ETIME, whatever happened to the task
 * before. */
TASK(semantics_99_timeout_begun_after_a_cancel_expires_on_its_own)
{
        ASSERT_EQ(status_when_cancelled(1, timeout_begun_while_cancelled, NULL), -ECANCELED);
        return 0;
}
