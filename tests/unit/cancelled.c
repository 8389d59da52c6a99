/* SPDX-License-Identifier: MIT */
/* A cancelled task: what it waited for, what it may still do, what it takes with it, and what its caller sees. How a
 * cancel is delivered: cancel.c. */

#include "job.h"

/* ---- what it waited for ---- */

static int acquires(void *arg)
{
        int rc = resha_semaphore_acquire(arg);

        note("%d", rc);
        return rc;
}

/* semantics 54 same
 * asyncio: if a task that waits is cancelled, the future it waits for is cancelled at once, and the task gets its
 * CancelledError one iteration later.
 * resha: the task stands in no line any more as soon as the cancel was called; it gets its -ECANCELED in its turn. */
TASK(semantics_54_cancelled_waiter_leaves_its_line_at_once)
{
        resha_semaphore s;
        resha_task t = { 0 };
        int status;

        resha_semaphore_init(&s, 1);
        ASSERT_OK(resha_semaphore_acquire(&s));
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, acquires, &s, &t));
        ASSERT_OK(resha_yield());
        resha_task_cancel(&t);
        ASSERT_OK(resha_semaphore_release(&s)); /* nobody is in line: the permit stays */
        ASSERT_EQ(resha_semaphore_available(&s), 1);
        note("released");
        ASSERT_OK(resha_task_wait(&t, &status));
        ASSERT_EQ(status, -ECANCELED);
        ASSERT_STR(notes(), "released -125");
        ASSERT_EQ(resha_semaphore_available(&s), 1);
        return resha_group_end(&g, 0);
}

/* ---- what it may still do ---- */

static int handles_its_cancel(__attribute__((unused)) void *arg)
{
        int rc = resha_sleep(RESHA_S(10));

        ASSERT_EQ(rc, -ECANCELED);
        ASSERT_TRUE(resha_cancelled());
        return 9;
}

/* semantics 63 same
 * asyncio: a task that catches its cancel and returns a value has finished normally, with that value; that it was asked
 * stays visible.
 * resha: its status is the value; the cancel is no failure of its group, and resha_cancelled() says so to the end. */
TASK(semantics_63_task_that_handles_its_cancel_has_finished_normally)
{
        ASSERT_EQ(status_when_cancelled(1, handles_its_cancel, NULL), 9);
        return 0;
}

struct cleanup {
        int unshielded, shielded, late;
        int64_t took; /* ms, the shielded ones */
};

static int sleeps_ms(void *arg)
{
        return resha_sleep(MS(*(int64_t *)arg));
}

static int cleans_up(void *arg)
{
        struct cleanup *c = arg;
        int64_t brief = 5, hour = 3600 * 1000;
        int rc = resha_sleep(RESHA_S(10));

        c->unshielded = resha_sleep(MS(brief));
        resha_instant start = resha_now();
        c->shielded = resha_shielded(MS(100), sleeps_ms, &brief);
        c->late = resha_shielded(MS(10), sleeps_ms, &hour);
        c->took = ms_since(start);
        return rc;
}

/* semantics 76 better
 * asyncio: clean-up that awaits after a single cancel completes, however long it takes.
 * resha: clean-up that waits says so, by a shield with a deadline: then it completes, or ends with -ETIME. Without one
 * its waits fail as all others do. */
TASK(semantics_76_cleanup_that_waits_needs_a_shield_and_has_a_deadline)
{
        struct cleanup c = { 0 };

        ASSERT_EQ(status_when_cancelled(1, cleans_up, &c), -ECANCELED);
        ASSERT_EQ(c.unshielded, -ECANCELED);
        ASSERT_EQ(c.shielded, 0);
        ASSERT_EQ(c.late, -ETIME);
        ASSERT_TRUE(c.took >= 15 && c.took < 3600 * 1000);
        return 0;
}

/* ---- what it takes with it ---- */

static int owns_a_child(void *arg)
{
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, job, arg);
        int rc = resha_group_end(&g, 0);
        note("owner");
        return rc;
}

static int waits_for(void *arg)
{
        return resha_task_wait(arg, NULL);
}

/* semantics 66 same
 * asyncio: if a task that awaits another is cancelled, the inner one is cancelled, and the outer goes on only when that
 * has ended, however long its clean-up takes.
 * resha: that holds for the children that a task owns; other tasks that it waits for are not cancelled with it. */
TASK(semantics_66_cancel_reaches_owned_children_and_waits_for_their_cleanup)
{
        struct job child = JOB("child", 1000, .clean = 50), other = JOB("other", 100);
        resha_task waiter = { 0 }, owner = { 0 };
        int status;

        SIM_ONLY();
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, owns_a_child, &child, &owner));
        ASSERT_OK(resha_spawn_task(&g, job, &other, &other.task));
        ASSERT_OK(resha_spawn_task(&g, waits_for, &other.task, &waiter));
        resha_instant start = resha_now();
        ASSERT_OK(resha_sleep(MS(10)));
        resha_task_cancel(&owner);
        resha_task_cancel(&waiter);
        ASSERT_OK(resha_task_wait(&owner, &status));
        ASSERT_EQ(status, -ECANCELED);
        ASSERT_PASSED(start, 60);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "other+ child+ child! owner other-");
        return 0;
}

/* ---- what its caller sees ---- */

static int swallows(void *arg)
{
        struct job *j = arg;

        RESHA_SCOPE(s);
        resha_timeout_begin(&s, MS(1));
        int rc = resha_sleep(RESHA_S(10));
        ASSERT_EQ(rc, -ECANCELED);
        ASSERT_EQ(resha_scope_end(&s, 0), 0); /* its value, instead of the expiry */
        j->result = 7;
        return 0;
}

/* semantics 74 better
 * asyncio: code that swallows a CancelledError for good, without uncancel(), makes the timeouts and groups around it
 * believe that an outside cancel is pending.
 * resha: a cancel belongs to the scope that it was for, and is over with it: the timeouts and groups around it work as
 * ever. */
TASK(semantics_74_swallowed_cancel_is_over_with_its_scope)
{
        struct job j = JOB("a", 1, .result = -EIO);

        RESHA_SCOPE(outer);
        resha_timeout_begin(&outer, MS(20));
        ASSERT_OK(swallows(&j));
        ASSERT_EQ(j.result, 7);
        ASSERT_FALSE(resha_cancelled());
        j.result = -EIO;
        ASSERT_EQ(resha_gather(job, &j, 1, sizeof j, NULL), -EIO); /* not -ECANCELED */
        int rc = resha_sleep(RESHA_S(10));
        ASSERT_EQ(resha_scope_end(&outer, rc), -ETIME); /* its own */
        ASSERT_TRUE(resha_scope_expired(&outer));
        return 0;
}

static int tries_thrice(void *arg)
{
        unsigned *tries = arg;

        for (int i = 0; i < 3; i++, ++*tries)
                if (resha_sleep(RESHA_S(10)) == 0)
                        return 0;
        return 1; /* of whatever kind the failures were */
}

static int retried(void *arg)
{
        ++*(unsigned *)arg;
        return resha_sleep(RESHA_S(10));
}

static int retries(void *arg)
{
        return resha_retry(retried, arg, NULL);
}

/* semantics 75 better
 * asyncio: a handler that catches all ordinary errors does not catch CancelledError, which is no Exception.
 * resha: in C a code that is ignored is the normal case, so that every wait that follows says -ECANCELED again, and a
 * task that goes on for long is reported. resha_retry() does not try again after it. */
TASK(semantics_75_code_that_ignores_a_cancel_gets_it_from_each_wait)
{
        unsigned tries = 0;
        resha_instant start = resha_now();

        ASSERT_EQ(status_when_cancelled(1, tries_thrice, &tries), 1);
        ASSERT_EQ(tries, 3);
        tries = 0;
        ASSERT_EQ(status_when_cancelled(1, retries, &tries), -ECANCELED);
        ASSERT_EQ(tries, 1);
        ASSERT_TRUE(ms_since(start) < 10 * 1000);
        return 0;
}

static void note_report(const resha_report *r, __attribute__((unused)) void *arg)
{
        note("%d %s", r->kind == RESHA_REPORT_IGNORED_CANCEL, r->task);
}

static int never_looks(__attribute__((unused)) void *arg)
{
        int failed = 0;

        for (int i = 0; i < 3000; i++)
                failed += resha_yield() < 0;
        return failed;
}

static int owns_one_that_never_looks(__attribute__((unused)) void *arg)
{
        resha_task t = { 0 };
        int status;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, never_looks, NULL, &t));
        resha_task_cancel(&t);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_TRUE(resha_task_done(&t, &status));
        ASSERT_EQ(status, 3000);
        return 0;
}

TEST(semantics_75_task_that_ignores_its_cancel_for_long_is_reported)
{
        ASSERT_OK(test_run_opts(owns_one_that_never_looks, NULL, &(resha_run_opts){ .report = note_report }));
        ASSERT_STR(notes(), "1 never_looks");
}
