/* SPDX-License-Identifier: MIT */
/* Completions: results in the order in which tasks end, one at a time. */

#include <string.h>

#include "base/alloc.h"
#include "job.h"

static const resha_completions_opts two = { .limit = 2 };

/* Takes all, and notes them; the last result of next. */
static int take_all(resha_completions *c)
{
        size_t i = 99;
        int rc, status = 99;

        while ((rc = resha_completions_next(c, &i, &status)) > 0)
                note("%zu=%d", i, status);
        return rc;
}

/* semantics 180 same
 * asyncio: iterated asynchronously, as_completed gives the very tasks it was given, done.
 * resha: it gives the index of the item and the result, in the order in which the tasks end. */
TASK(semantics_180_completions_in_the_order_of_their_end)
{
        struct job j[] = { JOB("a", 30, .result = 1), JOB("b", 10, .result = 2), JOB("c", 20, .result = 3) };
        resha_instant from = resha_now();

        RESHA_COMPLETIONS(c);
        resha_completions_begin(&c, job, j, 3, sizeof j[0], NULL);
        ASSERT_OK(take_all(&c));
        ASSERT_STR(notes(), "a+ b+ c+ b- 1=2 c- 2=3 a- 0=1");
        ASSERT_PASSED(from, 30);
        ASSERT_EQ(resha_completions_next(&c, NULL, NULL), 0);
        return resha_completions_end(&c, 0);
}

TASK(completions_failures_come_out_with_their_record_and_cancel_nobody)
{
        struct job j[] = { JOB("a", 30), JOB("b", 10, .result = -EIO), JOB("c", 20, .result = -ENOENT) };
        size_t i;
        int status;

        RESHA_COMPLETIONS(c);
        resha_completions_begin(&c, job, j, 3, sizeof j[0], NULL);
        ASSERT_EQ(resha_completions_next(&c, &i, &status), 1);
        ASSERT_EQ(i, 1);
        ASSERT_EQ(status, -EIO);
        ASSERT_STR(resha_error_of(status)->text, "b failed");
        ASSERT_EQ(resha_error_of(status)->item, 2);
        ASSERT_EQ(resha_error_of(status)->items, 3);
        ASSERT_HAS(resha_error_of(status)->spawned_at, "completions.c:");
        ASSERT_EQ(resha_completions_next(&c, NULL, &status), 1);
        ASSERT_STR(resha_error_of(status)->text, "c failed");
        ASSERT_EQ(resha_completions_next(&c, &i, NULL), 1);
        ASSERT_EQ(i, 0);
        notes();
        return resha_completions_end(&c, 0);
}

/* semantics 183 same
 * asyncio: an input that is given twice comes out once.
 * resha: each of the n items is a task of its own and comes out exactly once. */
TASK(semantics_183_each_item_comes_out_once)
{
        struct job j[5] = { JOB("a", 3), JOB("b", 1), JOB("c", 3), JOB("d", 0), JOB("e", 2) };
        int seen[5] = { 0 };
        size_t i;

        RESHA_COMPLETIONS(c);
        resha_completions_begin(&c, job, j, 5, sizeof j[0], &two);
        for (int n = 0; n < 5; n++) {
                ASSERT_EQ(resha_completions_next(&c, &i, NULL), 1);
                ASSERT_TRUE(i < 5);
                seen[i]++;
        }
        ASSERT_EQ(resha_completions_next(&c, &i, NULL), 0);
        for (i = 0; i < 5; i++)
                ASSERT_EQ(seen[i], 1);
        notes();
        return resha_completions_end(&c, 0);
}

static int takes_one(void *arg)
{
        size_t i = 99;
        int rc = resha_completions_next(arg, &i, NULL);

        return rc == 1 ? (int)i : rc;
}

/* semantics 181 same
 * asyncio: when its time has passed the next step raises TimeoutError, and those that run are not cancelled.
 * resha: a timeout around a step gives -ETIME; nothing is taken or cancelled, and the next step goes on. */
TASK(semantics_181_timeout_around_a_step)
{
        struct job j[] = { JOB("a", 10, .result = 1), JOB("b", 30, .result = 2) };

        RESHA_COMPLETIONS(c);
        resha_completions_begin(&c, job, j, 2, sizeof j[0], NULL);
        ASSERT_EQ(resha_timeout(MS(2), takes_one, &c), -ETIME);
        ASSERT_EQ(resha_timeout(MS(2), takes_one, &c), -ETIME);
        ASSERT_EQ(resha_timeout(MS(40), takes_one, &c), 0);
        ASSERT_EQ(resha_timeout(MS(2), takes_one, &c), -ETIME);
        ASSERT_OK(take_all(&c));
        ASSERT_STR(notes(), "a+ b+ a- b- 1=2");
        return resha_completions_end(&c, 0);
}

static int leaves_early(void *arg)
{
        struct job *j = arg;

        RESHA_COMPLETIONS(c);
        resha_completions_begin(&c, job, j, 4, sizeof *j, &(resha_completions_opts){ .limit = 3 });
        int rc = resha_completions_next(&c, NULL, NULL);
        note("left");
        return rc == 1 ? 5 : rc;
}

/* semantics 182 better
 * asyncio: when the loop over as_completed is left early, the other tasks go on, owned by nobody.
 * resha: the block owns them: leaving it, by break and end or by return, cancels and joins the rest. */
TASK(semantics_182_leaving_early_cancels_and_joins_the_rest)
{
        struct job j[] = { JOB("a", 5000, .clean = 3), JOB("b", 1), JOB("c", 5000), JOB("d", 5000) };

        ASSERT_EQ(leaves_early(j), 5);
        ASSERT_STR(notes(), "a+ b+ c+ b- left d+ c! d! a!");
        RESHA_COMPLETIONS(c);
        resha_completions_begin(&c, job, j, 3, sizeof j[0], &two);
        ASSERT_EQ(resha_completions_next(&c, NULL, NULL), 1);
        ASSERT_EQ(resha_completions_end(&c, 7), 7);
        ASSERT_STR(notes(), "a+ b+ b- c+ c! a!");
        ASSERT_FALSE(resha_cancelled());
        return 0;
}

TASK(completions_the_next_starts_while_the_consumer_is_busy)
{
        struct job j[] = { JOB("a", 10), JOB("b", 20), JOB("c", 10), JOB("d", 10), JOB("e", 10) };
        resha_instant from = resha_now();

        SIM_ONLY();
        RESHA_COMPLETIONS(c);
        resha_completions_begin(&c, job, j, 5, sizeof j[0], &two);
        ASSERT_OK(resha_sleep(RESHA_MS(100)));
        ASSERT_STR(notes(), "a+ b+ a- c+ b- c- d+ e+ d- e-"); /* all have ended by now, two at a time */
        ASSERT_OK(take_all(&c));
        ASSERT_STR(notes(), "0=0 1=0 2=0 3=0 4=0");
        ASSERT_PASSED(from, 100);
        return resha_completions_end(&c, 0);
}

static int consumes(void *arg)
{
        struct job *j = arg;

        RESHA_COMPLETIONS(c);
        resha_completions_begin(&c, job, j, 3, sizeof *j, &two);
        int rc = take_all(&c);
        note("%d", rc);
        return resha_completions_end(&c, rc);
}

TASK(completions_cancelled_from_outside)
{
        struct job j[] = { JOB("a", 5000), JOB("b", 1), JOB("c", 5000) };

        SIM_ONLY();
        ASSERT_EQ(status_when_cancelled(5, consumes, j), -ECANCELED);
        ASSERT_STR(notes(), "a+ b+ b- 1=0 c+ -125 a! c!");
        return 0;
}

static int takes_what_is_left(void *arg)
{
        return take_all(arg);
}

static int drains_behind_a_shield(void *arg)
{
        struct job *j = arg;

        RESHA_COMPLETIONS(c);
        resha_completions_begin(&c, job, j, 4, sizeof *j, &two);
        int rc = take_all(&c);
        ASSERT_EQ(rc, -ECANCELED);
        ASSERT_OK(resha_shielded(RESHA_FOREVER, takes_what_is_left, &c));
        return resha_completions_end(&c, rc);
}

TASK(completions_of_a_cancelled_group_are_all_there)
{
        struct job j[] = { JOB("a", 5000), JOB("b", 5000), JOB("c", 5000), JOB("d", 5000) };

        SIM_ONLY();
        ASSERT_EQ(status_when_cancelled(1, drains_behind_a_shield, j), -ECANCELED);
        ASSERT_STR(notes(), "a+ b+ a! b! 0=-125 2=-125 3=-125 1=-125"); /* c and d were never started */
        return 0;
}

static unsigned lost;

static void sink(const resha_report *report, void *arg)
{
        (void)arg;
        lost += report->kind == RESHA_REPORT_LOST_ERROR;
}

static int leaves_failures(void *arg)
{
        struct job j[] = { JOB("a", 1), JOB("b", 2, .result = -EIO), JOB("c", 3, .result = -EPIPE), JOB("d", 5000) };

        RESHA_COMPLETIONS(c);
        resha_completions_begin(&c, job, j, 4, sizeof j[0], NULL);
        ASSERT_EQ(resha_completions_next(&c, NULL, NULL), 1);
        ASSERT_OK(resha_sleep(MS(50)));
        return resha_completions_end(&c, *(int *)arg);
}

TEST(completions_failures_that_nobody_took_are_reported)
{
        int rc = 0;
        resha_run_opts o = { .report = sink };

        ASSERT_EQ(test_run_opts(leaves_failures, &rc, &o), 0);
        ASSERT_EQ(lost, 2);
        rc = -EIO; /* a failure of its own: there is one already */
        ASSERT_EQ(test_run_opts(leaves_failures, &rc, &o), -EIO);
        ASSERT_EQ(lost, 2);
}

TASK(completions_of_none_and_bad_options)
{
        struct job j = JOB("a", 1);
        resha_completions_opts bad = { ._reserved = { 1 } };

        RESHA_COMPLETIONS(none);
        resha_completions_begin(&none, job, NULL, 0, sizeof j, &two);
        ASSERT_EQ(resha_completions_next(&none, NULL, NULL), 0);
        ASSERT_EQ(resha_completions_end(&none, 0), 0);
        ASSERT_EQ(resha_completions_next(&none, NULL, NULL), -EPERM);
        ASSERT_EQ(resha_completions_end(&none, 0), -EPERM);
        resha_completions_begin(&none, job, &j, 1, sizeof j, NULL); /* again */
        ASSERT_EQ(resha_completions_next(&none, NULL, NULL), 1);
        ASSERT_EQ(resha_completions_end(&none, 3), 3);
        notes();
        RESHA_COMPLETIONS(c);
        resha_completions_begin(&c, job, &j, 1, sizeof j, &bad);
        ASSERT_EQ(resha_completions_next(&c, NULL, NULL), -EINVAL);
        ASSERT_EQ(resha_completions_end(&c, 0), -EINVAL);
        ASSERT_STR(notes(), "");
        return 0;
}

TASK(completions_in_another_task)
{
        struct job j = JOB("a", 1);
        int status;
        resha_task t = { 0 };

        RESHA_COMPLETIONS(c);
        resha_completions_begin(&c, job, &j, 1, sizeof j, NULL);
        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .keep_going = true });
        ASSERT_OK(resha_spawn_task(&g, takes_one, &c, &t));
        ASSERT_OK(resha_task_wait(&t, &status));
        ASSERT_EQ(status, -EPERM);
        ASSERT_EQ(resha_group_end(&g, 0), -EPERM);
        return resha_completions_end(&c, 0);
}

TEST(completions_outside_a_task)
{
        struct job j = JOB("a", 1);

        RESHA_COMPLETIONS(c);
        resha_completions_begin(&c, job, &j, 1, sizeof j, NULL);
        ASSERT_EQ(resha_completions_next(&c, NULL, NULL), -EPERM);
        ASSERT_EQ(resha_completions_end(&c, 0), -EPERM);
}

RESHA_LOCAL(number, int, 0);

static int sees(void *arg)
{
        int *n = arg, mine = *n;

        *n = *(const int *)resha_local_get(&number);
        return resha_local_set(&number, &mine);
}

TASK(completions_have_the_locals_of_their_begin)
{
        int n[5] = { 10, 20, 30, 40, 50 };

        ASSERT_OK(resha_local_set(&number, &(int){ 1 }));
        RESHA_COMPLETIONS(c);
        resha_completions_begin(&c, sees, n, 5, sizeof n[0], &two);
        ASSERT_OK(resha_local_set(&number, &(int){ 2 }));
        ASSERT_OK(take_all(&c));
        notes();
        for (int i = 0; i < 5; i++)
                ASSERT_EQ(n[i], 1);
        return resha_completions_end(&c, 0);
}

TASK(completions_without_memory)
{
        struct job j[] = { JOB("a", 1), JOB("b", 1) };

        RESHA_COMPLETIONS(c);
        rs_alloc_fail_after(1, false);
        resha_completions_begin(&c, job, j, 2, sizeof j[0], NULL);
        rs_alloc_fail_after(0, false);
        ASSERT_EQ(resha_completions_next(&c, NULL, NULL), -ENOMEM);
        ASSERT_EQ(resha_completions_end(&c, 0), -ENOMEM);
        return 0;
}

TASK(completions_waiting_allocates_nothing)
{
        struct job j[] = { JOB("a", 1), JOB("b", 2), JOB("c", 3) };

        RESHA_COMPLETIONS(c);
        resha_completions_begin(&c, job, j, 3, sizeof j[0], &two);
        rs_alloc_fail_after(1, true);
        for (int i = 0; i < 3; i++)
                ASSERT_EQ(resha_completions_next(&c, NULL, NULL), 1);
        ASSERT_EQ(rs_alloc_failed(), 0);
        rs_alloc_fail_after(0, false);
        notes();
        return resha_completions_end(&c, 0);
}

static int many(__attribute__((unused)) void *arg)
{
        static struct job j[100];
        int seen[100] = { 0 }, rc, status;
        size_t i, n = 0;

        for (int k = 0; k < 100; k++)
                j[k] = (struct job)JOB("", k * 7 % 13, .result = k % 10 ? k : -EIO);
        RESHA_COMPLETIONS(c);
        resha_completions_begin(&c, job, j, 100, sizeof j[0], &(resha_completions_opts){ .limit = 7 });
        while ((rc = resha_completions_next(&c, &i, &status)) > 0) {
                ASSERT_EQ(status, i % 10 ? (int)i : -EIO);
                ASSERT_EQ(seen[i]++, 0);
                if (++n % 9 == 0)
                        ASSERT_OK(resha_sleep(MS(5)));
        }
        ASSERT_EQ(n, 100);
        notes();
        return resha_completions_end(&c, rc);
}

TEST(completions_under_many_seeds)
{
        RUN_SEEDS(many, NULL, 50);
}
