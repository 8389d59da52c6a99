/* SPDX-License-Identifier: MIT */
/* Gather: many tasks as one call. */

#include <string.h>

#include "job.h"

struct number {
        int in, out;
};

static int times_ten(void *arg)
{
        struct number *n = arg;
        int rc = resha_sleep(RESHA_S(1));

        n->out = n->in * 10;
        return rc;
}

TASK(gather_results_in_the_order_given)
{
        struct number n[] = { { 1, 0 }, { 2, 0 }, { 3, 0 } };
        resha_instant start = resha_now();

        SIM_ONLY();
        ASSERT_EQ(resha_gather(times_ten, n, 3, sizeof n[0], NULL), 0);
        ASSERT_EQ(n[0].out, 10);
        ASSERT_EQ(n[1].out, 20);
        ASSERT_EQ(n[2].out, 30);
        ASSERT_PASSED(start, 1000);
        return 0;
}

/* semantics 150 same
 * asyncio: gather of nothing is done at once, with an empty list.
 * resha: n = 0 gives 0. */
TASK(semantics_150_gather_of_none)
{
        size_t failed = 9;

        ASSERT_EQ(resha_gather(times_ten, NULL, 0, 8, NULL), 0);
        ASSERT_EQ(resha_gather(times_ten, NULL, 0, 8, &(resha_gather_opts){ .limit = 3, .ret_failed = &failed }), 0);
        ASSERT_EQ(failed, 0);
        return 0;
}

TASK(gather_positive_results_are_good)
{
        struct job j[] = { JOB("a", 1, .result = 5), JOB("b", 1, .result = 6) };
        int status[2] = { -1, -1 };

        ASSERT_EQ(resha_gather(job, j, 2, sizeof j[0], &(resha_gather_opts){ .ret_status = status }), 0);
        ASSERT_EQ(status[0], 5);
        ASSERT_EQ(status[1], 6);
        return 0;
}

/* semantics 151 better
 * asyncio: the first failure comes out at once, and the others are not cancelled: they go on without an owner.
 * resha: it cancels the others, and comes out when all have ended. */
TASK(semantics_151_first_failure_cancels_and_joins_the_others)
{
        struct job j[] = { JOB("a", 10), JOB("b", 20, .result = -ENOENT), JOB("c", 5000, .clean = 7), JOB("d", 5000) };
        resha_instant start = resha_now();

        ASSERT_EQ(resha_gather(job, j, 4, sizeof j[0], NULL), -ENOENT);
        ASSERT_STR(notes(), "a+ b+ c+ d+ a- b- d! c!");
        ASSERT_PASSED(start, 27);
        ASSERT_FALSE(resha_cancelled());
        return 0;
}

static int fails_when_cancelled(void *arg)
{
        struct job *j = arg;
        int rc = resha_sleep(MS(j->ms));

        return rc == -ECANCELED ? resha_fail(-EPIPE, "%s: clean-up failed", j->name)
                                : resha_fail(-EIO, "%s failed", j->name);
}

/* semantics 152 better
 * asyncio: later failures are swallowed without a report.
 * resha: each item's status and record are there, in ret_status and ret_errors. */
TASK(semantics_152_later_failures_are_not_lost)
{
        struct job j[] = { JOB("a", 5000), JOB("b", 2), JOB("c", 5000) };
        resha_error errors[3];
        int status[3];
        size_t failed;
        resha_gather_opts o = { .ret_errors = errors, .ret_status = status, .ret_failed = &failed };

        memset(errors, 0xff, sizeof errors);
        ASSERT_EQ(resha_gather(fails_when_cancelled, j, 3, sizeof j[0], &o), -EIO);
        ASSERT_EQ(failed, 3);
        ASSERT_EQ(status[0], -EPIPE);
        ASSERT_EQ(status[1], -EIO);
        ASSERT_STR(errors[0].text, "a: clean-up failed");
        ASSERT_STR(errors[1].text, "b failed");
        ASSERT_EQ(errors[2].item, 3);
        return 0;
}

/* semantics 154 same
 * asyncio: with return_exceptions, failures and cancels are put in the list, and none is raised.
 * resha: with keep_going the result is 0, and ret_status, ret_errors and ret_failed tell. */
TASK(semantics_154_keep_going_gives_each_result)
{
        struct job j[] = { JOB("a", 1), JOB("b", 2, .result = -ENOENT), JOB("c", 3, .result = 4), JOB("d", 4) };
        resha_error errors[4];
        int status[4];
        size_t failed;
        resha_gather_opts o = { .keep_going = true, .ret_errors = errors, .ret_status = status, .ret_failed = &failed };

        memset(errors, 0xff, sizeof errors);
        ASSERT_EQ(resha_gather(job, j, 4, sizeof j[0], &o), 0);
        ASSERT_STR(notes(), "a+ b+ c+ d+ a- b- c- d-");
        ASSERT_EQ(failed, 1);
        const int expected[] = { 0, -ENOENT, 4, 0 };
        for (size_t i = 0; i < 4; i++) {
                ASSERT_EQ(status[i], expected[i]);
                ASSERT_EQ(errors[i].code, expected[i] < 0 ? expected[i] : 0);
                ASSERT_STR(errors[i].text, i == 1 ? "b failed" : "");
        }
        ASSERT_EQ(errors[1].item, 2);
        ASSERT_EQ(errors[1].items, 4);
        return 0;
}

struct flight {
        unsigned *now, *most;
        const char *name;
};

static int fly(void *arg)
{
        struct flight *f = arg;

        note("%s", f->name);
        if (++*f->now > *f->most)
                *f->most = *f->now;
        int rc = resha_sleep(MS(10));
        --*f->now;
        return rc;
}

TASK(gather_limit)
{
        unsigned now = 0, most = 0;
        struct flight f[] = { { &now, &most, "a" }, { &now, &most, "b" }, { &now, &most, "c" },
                              { &now, &most, "d" }, { &now, &most, "e" }, { &now, &most, "f" } };
        resha_instant start = resha_now();

        ASSERT_OK(resha_gather(fly, f, 6, sizeof f[0], &(resha_gather_opts){ .limit = 2 }));
        ASSERT_EQ(most, 2);
        ASSERT_PASSED(start, 30);
        ASSERT_STR(notes(), "a b c d e f");
        ASSERT_OK(resha_gather(fly, f, 6, sizeof f[0], &(resha_gather_opts){ .limit = 100 }));
        ASSERT_EQ(most, 6);
        return 0;
}

TASK(gather_failure_under_a_limit_leaves_the_rest_unstarted)
{
        struct job j[] = { JOB("a", 5, .result = -EIO), JOB("b", 5000), JOB("c", 1), JOB("d", 1) };
        int status[4] = { 9, 9, 9, 9 };
        resha_error errors[4];
        size_t failed;
        resha_gather_opts o = { .limit = 2, .ret_status = status, .ret_errors = errors, .ret_failed = &failed };

        ASSERT_EQ(resha_gather(job, j, 4, sizeof j[0], &o), -EIO);
        ASSERT_STR(notes(), "a+ b+ a- b!");
        ASSERT_EQ(status[0], -EIO);
        for (size_t i = 1; i < 4; i++) {
                ASSERT_EQ(status[i], -ECANCELED);
                ASSERT_EQ(errors[i].code, -ECANCELED);
                ASSERT_TRUE(*errors[i].text);
        }
        ASSERT_EQ(failed, 4);
        return 0;
}

static int gathers_three(void *arg)
{
        struct job *j = arg;
        int rc = resha_gather(job, j, 3, sizeof *j, NULL);

        note("%d", rc);
        return rc;
}

/* semantics 156 same
 * asyncio: a cancelled gather cancels every child that has not ended, once.
 * resha: the same, by their scopes. */
TASK(semantics_156_cancel_reaches_every_child_and_all_are_joined)
{
        struct job j[] = { JOB("a", 5000, .clean = 9), JOB("b", 5000, .clean = 3), JOB("c", 5000) };

        ASSERT_EQ(status_when_cancelled(1, gathers_three, j), -ECANCELED);
        ASSERT_STR(notes(), "a+ b+ c+ c! b! a! -125");
        return 0;
}

static int gathers_keeping_going(void *arg)
{
        struct job *j = arg;
        int status[3];
        resha_error errors[3];
        size_t failed;
        resha_gather_opts o = { .keep_going = true, .ret_status = status, .ret_errors = errors, .ret_failed = &failed };
        int rc = resha_gather(job, j, 3, sizeof *j, &o);

        note("%d: %d %d %d, %zu failed", rc, status[0], status[1], status[2], failed);
        ASSERT_EQ(errors[0].code, 0);
        ASSERT_EQ(errors[2].code, -ECANCELED);
        return rc;
}

/* semantics 158 same
 * asyncio: a cancelled gather with return_exceptions waits for all, and raises CancelledError.
 * resha: the same: -ECANCELED, and the results of those that came to their end are there. */
TASK(semantics_158_cancel_of_one_that_keeps_going)
{
        struct job j[] = { JOB("a", 1, .result = 8), JOB("b", 5000), JOB("c", 5000) };

        SIM_ONLY();
        ASSERT_EQ(status_when_cancelled(5, gathers_keeping_going, j), -ECANCELED);
        ASSERT_STR(notes(), "a+ b+ c+ a- b! c! -125: 8 -125 -125, 2 failed");
        return 0;
}

static int swallows_cancel(void *arg)
{
        struct job *j = arg;
        int rc = resha_sleep(MS(j->ms));

        return rc == -ECANCELED ? 1 : rc;
}

static int gathers_swallowers(void *arg)
{
        struct job *j = arg;
        int rc = resha_gather(swallows_cancel, j, 3, sizeof *j, NULL);

        note("%d", rc);
        return rc < 0 ? rc : resha_checkpoint();
}

/* semantics 159 better
 * asyncio: if every child swallows the cancel, gather raises CancelledError all the same.
 * resha: what was to be done is done: that is the result, and nothing is lost; the caller's next wait is cancelled. */
TASK(semantics_159_cancel_that_every_child_swallows_stopped_nobody)
{
        struct job j[] = { JOB("a", 5000), JOB("b", 5000), JOB("c", 5000) };

        /* All that was to be done is done: that is the result; the next wait is cancelled. */
        ASSERT_EQ(status_when_cancelled(1, gathers_swallowers, j), -ECANCELED);
        ASSERT_STR(notes(), "0");
        return 0;
}

TASK(gather_under_a_timeout)
{
        struct job j[] = { JOB("a", 1), JOB("b", 5000), JOB("c", 5000) };

        RESHA_SCOPE(s);
        resha_timeout_begin(&s, MS(20));
        int rc = resha_gather(job, j, 3, sizeof j[0], NULL);
        ASSERT_EQ(resha_scope_end(&s, rc), -ETIME);
        ASSERT_STR(notes(), "a+ b+ c+ a- b! c!");
        return 0;
}

static int each_in_time(void *arg)
{
        return resha_timeout(MS(20), job, arg);
}

TASK(semantics_b11_a_timeout_for_each_gives_a_record_for_each)
{
        struct job j[] = { JOB("a", 1), JOB("b", 5000), JOB("c", 2), JOB("d", 5000) };
        int status[4];
        resha_error errors[4];
        size_t failed;
        resha_gather_opts o = { .keep_going = true, .ret_status = status, .ret_errors = errors, .ret_failed = &failed };

        ASSERT_EQ(resha_gather(each_in_time, j, 4, sizeof j[0], &o), 0);
        ASSERT_EQ(failed, 2);
        ASSERT_EQ(status[0], 0);
        ASSERT_EQ(status[1], -ETIME);
        ASSERT_EQ(status[2], 0);
        ASSERT_EQ(status[3], -ETIME);
        ASSERT_STR(errors[1].text, resha_strerror(-ETIME));
        return 0;
}

static int gathers_a_failure_and_a_sleeper(__attribute__((unused)) void *arg)
{
        struct job j[] = { JOB("a", 1, .result = -EIO), JOB("b", 60000) };
        int status[2];
        int rc = resha_gather(job, j, 2, sizeof j[0], &(resha_gather_opts){ .keep_going = true, .ret_status = status });

        ASSERT_EQ(status[0], -EIO);
        ASSERT_EQ(status[1], -ECANCELED);
        return rc;
}

TASK(gather_keep_going_says_that_it_was_cancelled_also_after_a_failure)
{
        ASSERT_EQ(resha_timeout(MS(20), gathers_a_failure_and_a_sleeper, NULL), -ETIME);
        return 0;
}

/* semantics 157 better
 * asyncio: a cancelled gather ends when the first child has ended, while others still clean up.
 * resha: it ends when all have ended, clean-ups too. */
TASK(semantics_157_cancelled_gather_waits_for_the_slowest)
{
        struct job j[] = { JOB("a", 5000, .clean = 20), JOB("b", 5000), JOB("c", 5000, .clean = 10) };
        resha_instant from = resha_now();

        ASSERT_EQ(status_when_cancelled(1, gathers_three, j), -ECANCELED);
        ASSERT_STR(notes(), "a+ b+ c+ b! c! a! -125");
        ASSERT_PASSED(from, 21);
        return 0;
}

static int gathers_failing(void *arg)
{
        struct job *j = arg;
        int rc = resha_gather(job, j, 3, sizeof *j, NULL);

        note("%d", rc);
        ASSERT_EQ(resha_checkpoint(), -ECANCELED);
        return rc;
}

/* semantics 153 better
 * asyncio: once gather has failed, a cancel of it does nothing, and its children go on.
 * resha: gather is a call: it returns when all have ended, so nothing is left to cancel. A cancel of the caller while
 * the others are cleaned up changes nothing but its next wait. */
TASK(semantics_153_cancel_of_a_gather_that_has_failed)
{
        struct job j[] = { JOB("a", 1, .result = -EIO), JOB("b", 5000, .clean = 50), JOB("c", 5000) };
        resha_task t = { 0 };
        int status;

        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .keep_going = true });
        ASSERT_OK(resha_spawn_task(&g, gathers_failing, j, &t));
        ASSERT_OK(resha_sleep(MS(20)));
        resha_task_cancel(&t);
        ASSERT_OK(resha_task_wait(&t, &status));
        ASSERT_EQ(status, -EIO);
        ASSERT_STR(notes(), "a+ b+ c+ a- c! b! -5");
        ASSERT_EQ(resha_group_end(&g, 0), -EIO);
        return 0;
}

/* ---- different functions ---- */

struct text {
        char text[16];
};

static int writes(void *arg)
{
        struct text *t = arg;
        int rc = resha_sleep(MS(3));

        snprintf(t->text, sizeof t->text, "%s", resha_task_name());
        return rc;
}

TASK(gather_calls_of_different_functions)
{
        struct number n = { 4, 0 };
        struct text t = { "" };
        struct job j = JOB("a", 1, .result = 5);
        int status[3];
        resha_call calls[] = { RESHA_CALL(times_ten, &n), RESHA_CALL(writes, &t), RESHA_CALL(job, &j) };

        ASSERT_OK(resha_gather_calls(calls, 3, &(resha_gather_opts){ .ret_status = status }));
        ASSERT_EQ(n.out, 40);
        ASSERT_STR(t.text, "writes");
        ASSERT_EQ(status[0], 0);
        ASSERT_EQ(status[2], 5);
        ASSERT_OK(resha_gather_calls(calls, 0, NULL));
        ASSERT_OK(resha_gather_calls((resha_call[]){ RESHA_CALL(times_ten, &n), { writes, &t, NULL } }, 2, NULL));
        ASSERT_STR(t.text, "task");
        return 0;
}

/* semantics 160 better
 * asyncio: an awaitable that is given twice runs once, and its result comes twice.
 * resha: items and calls have no identity: what is given twice runs twice, each with its own result. */
TASK(semantics_160_given_twice_runs_twice)
{
        struct job j = JOB("a", 1, .result = 5);
        resha_call calls[] = { RESHA_CALL(job, &j), RESHA_CALL(job, &j) };
        int status[2];

        ASSERT_OK(resha_gather_calls(calls, 2, &(resha_gather_opts){ .ret_status = status }));
        ASSERT_STR(notes(), "a+ a+ a- a-");
        ASSERT_EQ(status[0], 5);
        ASSERT_EQ(status[1], 5);
        return 0;
}

TASK(gather_calls_first_failure_cancels_the_others)
{
        struct job slow = JOB("slow", 5000), bad = JOB("bad", 1, .result = -ENOENT);
        struct number n = { 4, 0 };
        resha_error errors[3];
        resha_call calls[] = { RESHA_CALL(job, &slow), RESHA_CALL(times_ten, &n), RESHA_CALL(job, &bad) };

        ASSERT_EQ(resha_gather_calls(calls, 3, &(resha_gather_opts){ .ret_errors = errors }), -ENOENT);
        ASSERT_STR(notes(), "slow+ bad+ bad- slow!");
        ASSERT_EQ(errors[0].code, -ECANCELED);
        ASSERT_EQ(errors[2].item, 3);
        ASSERT_EQ(errors[2].items, 3);
        ASSERT_STR(errors[2].task, "job");
        ASSERT_HAS(errors[2].spawned_at, "gather.c:");
        return 0;
}

TASK(gather_reserved_words_must_be_zero)
{
        struct job j = JOB("a", 1);
        resha_gather_opts o = { .limit = 1 };

        o._reserved[3] = 1;
        ASSERT_EQ(resha_gather(job, &j, 1, sizeof j, &o), -EINVAL);
        ASSERT_STR(notes(), "");
        return 0;
}

TEST(gather_outside_a_task)
{
        struct job j = JOB("a", 1);

        ASSERT_EQ(resha_gather(job, &j, 1, sizeof j, NULL), -EPERM);
}

static int many_results(__attribute__((unused)) void *arg)
{
        static struct job j[300];
        int status[300];
        size_t failed, bad = 0;
        resha_gather_opts o = { .limit = 7, .keep_going = true, .ret_status = status, .ret_failed = &failed };

        for (int i = 0; i < 300; i++) {
                j[i] = (struct job)JOB("", i * 7 % 13, .result = i % 10 ? i : -EIO);
                bad += i % 10 == 0;
        }
        ASSERT_OK(resha_gather(job, j, 300, sizeof j[0], &o));
        notes();
        ASSERT_EQ(failed, bad);
        for (int i = 0; i < 300; i++)
                ASSERT_EQ(status[i], i % 10 ? i : -EIO);
        return 0;
}

TEST(gather_under_many_seeds)
{
        RUN_SEEDS(many_results, NULL, 50);
}
