/* SPDX-License-Identifier: MIT */
/* Leaving a group by return: its children are cancelled and joined, and a failure is not lost. */

#include <signal.h>
#include <sys/wait.h>

#include "job.h"

static int returns_from_inside(void *arg)
{
        struct job *j = arg;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, job, &j[0]);
        resha_spawn(&g, job, &j[1]);
        int rc = resha_sleep(MS(j[2].ms));
        return rc < 0 ? rc : j[2].result;
}

TASK(group_early_return_cancels_and_joins)
{
        struct job j[] = { JOB("a", 1000, .clean = 2), JOB("b", 1000), JOB("", 1, .result = 9) };

        ASSERT_EQ(returns_from_inside(j), 9);
        ASSERT_STR(notes(), "a+ b+ b! a!");
        ASSERT_FALSE(resha_cancelled());
        return resha_sleep(MS(1));
}

TASK(group_early_return_with_an_error)
{
        struct job j[] = { JOB("a", 1000), JOB("b", 1000), JOB("", 1, .result = -ENOENT) };

        ASSERT_EQ(returns_from_inside(j), -ENOENT);
        ASSERT_STR(notes(), "a+ b+ a! b!");
        return 0;
}

TASK(group_early_return_because_of_a_failure_gives_it_at_the_next_boundary)
{
        struct job j[] = { JOB("a", 2, .result = -EIO), JOB("b", 1000), JOB("", 5000) };

        ASSERT_EQ(returns_from_inside(j), -ECANCELED); /* the sleep's */
        ASSERT_FALSE(resha_cancelled());
        notes();
        ASSERT_EQ(resha_gather(returns_from_inside, j, 1, sizeof j, NULL), -EIO);
        ASSERT_STR(resha_error_of(-EIO)->text, "a failed");
        ASSERT_STR(notes(), "a+ b+ a- b!");
        return 0;
}

static int main_that_returns_from_inside(__attribute__((unused)) void *arg)
{
        struct job j[] = { JOB("a", 2, .result = -EIO), JOB("b", 1000), JOB("", 5000) };

        return returns_from_inside(j);
}

TEST(group_early_return_of_the_main_task_gives_the_failure)
{
        resha_error e;

        ASSERT_EQ(test_run_opts(main_that_returns_from_inside, NULL, &(resha_run_opts){ .ret_error = &e }), -EIO);
        ASSERT_STR(e.text, "a failed");
}

static int loses_a_failure(__attribute__((unused)) void *arg)
{
        struct job j[] = { JOB("a", 1, .result = -EIO), JOB("b", 1000) };

        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .keep_going = true });
        resha_spawn(&g, job, &j[0]);
        resha_spawn(&g, job, &j[1]);
        ASSERT_OK(resha_sleep(MS(20)));
        return 6; /* without looking at the group */
}

static void note_report(const resha_report *r, __attribute__((unused)) void *arg)
{
        note("report %d %d: %s", r->kind, r->code, r->text);
}

TEST(group_left_with_success_reports_the_lost_failure)
{
        ASSERT_EQ(test_run_opts(loses_a_failure, NULL, &(resha_run_opts){ .report = note_report }), 6);
        const char *n = notes();
        ASSERT_HAS(n, "a+ b+ a- b! report 1 -5:");
        ASSERT_HAS(n, "a failed");
}

static int keeps_going(void *arg)
{
        struct job *j = arg;

        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .keep_going = true });
        resha_spawn(&g, job, j);
        return resha_group_end(&g, 0);
}

TEST(group_that_is_ended_reports_nothing)
{
        struct job j = JOB("a", 1, .result = -EIO);

        ASSERT_EQ(test_run_opts(keeps_going, &j, &(resha_run_opts){ .report = note_report }), -EIO);
        ASSERT_STR(notes(), "a+ a-");
}

static int left_by_return(struct job *j)
{
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, job, j);
        return resha_sleep(RESHA_S(9));
}

/* What a function does after its block was left with -ECANCELED because of a failure. */
static int goes_on(__attribute__((unused)) void *arg)
{
        struct job j = JOB("a", 1, .result = -EIO);

        ASSERT_EQ(left_by_return(&j), -ECANCELED);
        ASSERT_OK(resha_sleep(MS(1))); /* the failure is ignored */
        return resha_sleep(RESHA_S(9));
}

static int cleans_up(__attribute__((unused)) void *arg)
{
        struct job j = JOB("a", 1, .result = -EIO, .clean = 20);
        int rc = left_by_return(&j);

        ASSERT_OK(resha_shielded(RESHA_S(9), job_clean, &j)); /* it is cancelled meanwhile */
        return rc;
}

static int cancels_one_that_goes_on(__attribute__((unused)) void *arg)
{
        note("%d", status_when_cancelled(10, goes_on, NULL));
        return 0;
}

TEST(group_failure_that_was_ignored_does_not_take_the_place_of_a_later_cancel)
{
        ASSERT_OK(test_run_opts(cancels_one_that_goes_on, NULL, &(resha_run_opts){ .report = note_report }));
        const char *n = notes();
        ASSERT_HAS(n, "a+ a- report 1 -5: a failure was lost: a failed (");
        ASSERT_HAS(n, "return resha_group_end() -125");
}

static int cancels_one_that_cleans_up(__attribute__((unused)) void *arg)
{
        note("%d", status_when_cancelled(10, cleans_up, NULL));
        return 0;
}

TEST(group_failure_outranks_a_cancel_during_the_cleanup)
{
        ASSERT_OK(test_run_opts(cancels_one_that_cleans_up, NULL, &(resha_run_opts){ .report = note_report }));
        ASSERT_STR(notes(), "a+ a- -5");
}

TASK(group_failure_stands_where_nothing_is_cancelled)
{
        struct job j = JOB("a", 1, .result = -EIO);

        RESHA_SCOPE(s);
        resha_timeout_begin(&s, RESHA_FOREVER);
        int rc = left_by_return(&j);
        ASSERT_OK(resha_sleep(MS(1)));
        ASSERT_EQ(resha_scope_end(&s, rc), -EIO);
        return 0;
}

TASK(group_declared_and_not_begun)
{
        {
                RESHA_GROUP(g);
                ASSERT_EQ(resha_group_running(&g), 0);
                resha_group_cancel(&g);
        }
        return resha_sleep(MS(1));
}

TASK(group_early_return_through_two_groups)
{
        struct job outer = JOB("o", 1000), j[] = { JOB("a", 1000), JOB("b", 1000), JOB("", 1, .result = -EPROTO) };

        {
                RESHA_GROUP(g);
                resha_group_begin(&g, NULL);
                resha_spawn(&g, job, &outer);
                ASSERT_EQ(returns_from_inside(j), -EPROTO);
                ASSERT_STR(notes(), "o+ a+ b+ a! b!");
        }
        ASSERT_STR(notes(), "o!");
        return 0;
}

static void __attribute__((noinline)) forgets_its_group(struct job *j)
{
        resha_group g = { { 0 } }; /* without its clean-up: a bug of the caller */

        resha_group_begin(&g, NULL);
        resha_spawn(&g, job, j);
}

static int forgetful(void *arg)
{
        forgets_its_group(arg);
        return resha_sleep(MS(1));
}

static int run_forgetful(void *arg)
{
        return test_run_opts(forgetful, arg, NULL);
}

TEST(group_of_a_function_that_returned_aborts_with_the_task)
{
        struct job j = JOB("a", 1);
        struct test_child c;

        test_child(run_forgetful, &j, &c);
        ASSERT_TRUE(WIFSIGNALED(c.status));
        ASSERT_EQ(WTERMSIG(c.status), SIGABRT);
        ASSERT_HAS(c.text, "resha: task \"main\"");
        ASSERT_HAS(c.text, "RESHA_GROUP");
}

static int times_out(void *arg)
{
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, MS(1));
        return resha_event_wait(arg);
}

static int gives_up_and_then_fails(__attribute__((unused)) void *arg)
{
        struct job j[] = { JOB("a", 2, .result = -EIO), JOB("b", 1000), JOB("", 5000) };
        resha_event e = { { 0 } };

        ASSERT_EQ(times_out(&e), -ECANCELED); /* "not in time" is dealt with here */
        return returns_from_inside(j);
}

/* A deadline that has passed, and was dealt with, is no error that got lost. */
TEST(group_left_after_a_deadline_reports_nothing)
{
        ASSERT_EQ(test_run_opts(gives_up_and_then_fails, NULL, &(resha_run_opts){ .report = note_report }), -EIO);
        ASSERT_STR(notes(), "a+ b+ a- b!");
}
