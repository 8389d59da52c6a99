/* SPDX-License-Identifier: MIT */
/* The record of -ECANCELED: why a task was cancelled, and where. */

#include <signal.h>
#include <string.h>

#include "job.h"

/* What its first wait that fails leaves: the record at that moment, and that of a clean-up behind a shield. */
struct victim {
        resha_error error, shielded;
        resha_task task;
};

static int looks(void *arg)
{
        *(resha_error *)arg = *resha_error_of(-ECANCELED);
        return 0;
}

static int victim(void *arg)
{
        struct victim *v = arg;
        int rc = resha_sleep(RESHA_S(3600));

        v->error = *resha_error_of(rc);
        ASSERT_OK(resha_shielded(RESHA_FOREVER, looks, &v->shielded));
        return rc;
}

static void begin(resha_group *g, struct victim *v)
{
        resha_group_begin(g, &(resha_group_opts){ 0 });
        ASSERT_OK(resha_spawn_task(g, victim, v, &v->task));
        ASSERT_OK(resha_sleep(MS(1)));
}

TASK(reason_cancelled_by_a_task)
{
        struct victim v = { .error = { 0 } };

        RESHA_GROUP(g);
        begin(&g, &v);
        resha_task_cancel(&v.task);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(v.error.code, -ECANCELED);
        ASSERT_STR(v.error.text, "cancelled by task \"main\"");
        ASSERT_STR(v.error.task, "victim");
        ASSERT_HAS(v.error.spawned_at, "reason.c:");
        ASSERT_HAS(v.error.site, "reason.c:");
        ASSERT_STR(v.shielded.text, v.error.text);
        return 0;
}

TASK(reason_cancelled_by_a_task_with_a_name_of_its_own)
{
        struct victim v = { .error = { 0 } };

        ASSERT_OK(resha_task_set_name("copy"));
        RESHA_GROUP(g);
        begin(&g, &v);
        resha_group_cancel(&g);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(v.error.text, "cancelled"); /* the name may be gone before somebody looks */
        ASSERT_HAS(v.error.site, "reason.c:");
        return 0;
}

static int scope_of_its_own(void *arg)
{
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, RESHA_S(1));
        return resha_scope_end(&s, victim(arg));
}

TASK(reason_is_found_outside_of_open_scopes)
{
        struct victim v = { .error = { 0 } };

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, scope_of_its_own, &v);
        ASSERT_OK(resha_sleep(MS(1)));
        resha_group_cancel(&g);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(v.error.text, "cancelled by task \"main\"");
        return 0;
}

static int fails_soon(void *arg)
{
        int rc = resha_sleep(MS(5));

        return rc < 0 ? rc : resha_fail(-EIO, "%s is broken", (const char *)arg);
}

static int inner_group(void *arg)
{
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, victim, arg);
        return resha_group_end(&g, 0);
}

TASK(reason_a_sibling_failed)
{
        struct victim v = { .error = { 0 } }, deeper = { .error = { 0 } };

        RESHA_GROUP(g);
        begin(&g, &v);
        resha_spawn(&g, inner_group, &deeper);
        resha_spawn(&g, fails_soon, (char *)"pump");
        int rc = resha_sleep(RESHA_S(100));
        ASSERT_EQ(rc, -ECANCELED);
        ASSERT_STR(resha_error_of(rc)->text, "cancelled because a child failed: pump is broken");
        ASSERT_EQ(resha_group_end(&g, rc), -EIO);
        ASSERT_STR(v.error.text, "cancelled because a sibling failed: pump is broken");
        ASSERT_HAS(v.error.site, "reason.c:");
        ASSERT_STR(deeper.error.text, "cancelled because of a failure outside: pump is broken");
        ASSERT_STR(resha_error_of(-ECANCELED)->text, "cancelled"); /* nothing is any more */
        return 0;
}

TASK(reason_the_body_failed)
{
        struct victim v = { .error = { 0 } };

        RESHA_GROUP(g);
        begin(&g, &v);
        ASSERT_EQ(resha_group_end(&g, resha_fail(-EPIPE, "no more")), -EPIPE);
        ASSERT_STR(v.error.text, "cancelled because the body of its group failed: no more");
        return 0;
}

TASK(reason_in_the_errors_of_gather)
{
        struct job j[] = { JOB("a", 5000), JOB("b", 1, .result = -ENOENT), JOB("c", 5000) };
        resha_error errors[3];

        ASSERT_EQ(resha_gather(job, j, 3, sizeof j[0], &(resha_gather_opts){ .ret_errors = errors }), -ENOENT);
        ASSERT_STR(errors[0].text, "cancelled because a sibling failed: b failed");
        ASSERT_EQ(errors[2].item, 3);
        ASSERT_STR(errors[2].task, "job");
        return 0;
}

static int waits_in_group(void *arg)
{
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, victim, arg);
        return resha_group_end(&g, resha_sleep(RESHA_S(100)));
}

TASK(reason_a_deadline_passed)
{
        struct victim v = { .error = { 0 } };

        ASSERT_EQ(resha_timeout(MS(2), waits_in_group, &v), -ETIME);
        ASSERT_STR(v.error.text, "cancelled because a deadline passed");
        ASSERT_STR(v.error.site, NULL);
        v.error.text[0] = '\0';
        ASSERT_EQ(resha_timeout(RESHA_S(0), victim, &v), -ETIME);
        ASSERT_STR(v.error.text, "cancelled because a deadline passed");
        return 0;
}

TASK(reason_the_first_cancel_in_time_counts)
{
        struct victim v = { .error = { 0 } };

        RESHA_SCOPE(s);
        resha_timeout_begin(&s, RESHA_S(100));
        RESHA_GROUP(g);
        begin(&g, &v);
        resha_scope_cancel(&s);
        resha_task_cancel(&v.task); /* adds nothing */
        ASSERT_EQ(resha_group_end(&g, 0), -ECANCELED);
        ASSERT_HAS(v.error.site, "reason.c:");
        ASSERT_STR(v.error.text, "cancelled by task \"main\"");
        ASSERT_EQ(resha_scope_end(&s, -ECANCELED), 0);

        resha_timeout_begin(&s, MS(20));
        RESHA_GROUP(h);
        begin(&h, &v);
        ASSERT_EQ(resha_sleep(RESHA_S(100)), -ECANCELED);
        resha_group_cancel(&h); /* later than the deadline */
        ASSERT_STR(resha_error_of(-ECANCELED)->text, "cancelled because a deadline passed");
        ASSERT_EQ(resha_group_end(&h, -ECANCELED), -ECANCELED);
        ASSERT_STR(v.error.text, "cancelled because a deadline passed");
        return resha_scope_end(&s, -ECANCELED) == -ETIME ? 0 : -EIO;
}

TASK(reason_ends_of_groups)
{
        struct victim v = { .error = { 0 } };

        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        resha_spawn(&g, victim, &v);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(v.error.text, "cancelled because the body of its group had ended");
        {
                RESHA_GROUP(left);
                begin(&left, &v);
        }
        ASSERT_STR(v.error.text, "cancelled because the block of its group was left");
        RESHA_GROUP(h);
        begin(&h, &v);
        ASSERT_EQ(resha_group_drain(&h, MS(1)), -ETIME);
        ASSERT_STR(v.error.text, "cancelled because the grace of a drain passed");
        ASSERT_OK(resha_group_end(&h, 0));
        return 0;
}

static int victim_or_winner(void *arg)
{
        struct victim *v = arg;

        return v->error.code == 1 ? resha_sleep(MS(1)) : victim(arg);
}

TASK(reason_another_one_won_the_race)
{
        static struct victim v[2] = { { .error = { .code = 1 } }, { .error = { 0 } } };

        ASSERT_OK(resha_race(victim_or_winner, v, 2, sizeof v[0], NULL, NULL));
        ASSERT_STR(v[1].error.text, "cancelled because another one won the race");
        return 0;
}

TASK(reason_of_ones_own_is_not_replaced)
{
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, RESHA_FOREVER);
        resha_scope_cancel(&s);
        int rc = resha_fail(-ECANCELED, "the user went away");
        ASSERT_STR(resha_error_of(rc)->text, "the user went away");
        return resha_scope_end(&s, rc);
}

static int interrupted(__attribute__((unused)) void *arg)
{
        ASSERT_EQ(raise(SIGINT), 0);
        return resha_sleep(RESHA_S(3600));
}

TEST(reason_interrupted)
{
        resha_error e;

        ASSERT_EQ(resha_run(interrupted, NULL, &(resha_run_opts){ .backend = "epoll", .ret_error = &e }), -ECANCELED);
        ASSERT_STR(e.text, "cancelled by Ctrl-C");
        ASSERT_STR(e.task, "main");
}

static int deadlocked(void *arg)
{
        resha_event never = { { 0 } };
        int rc = resha_event_wait(&never);

        *(resha_error *)arg = *resha_error_of(rc);
        return rc;
}

TEST(reason_nothing_can_wake_it)
{
        resha_error e;

        ASSERT_EQ(test_run_opts(deadlocked, &e, NULL), -EDEADLK);
        ASSERT_STR(e.text, "cancelled because all tasks wait and nothing can wake them");
}

static void sink(const resha_report *report, void *arg)
{
        ASSERT_EQ(report->kind, RESHA_REPORT_IGNORED_CANCEL);
        snprintf(arg, 256, "%s", report->text);
}

static int ignores_it(__attribute__((unused)) void *arg)
{
        for (int i = 0; i < 1500; i++)
                if (resha_sleep(MS(1)) == 0)
                        return -EIO;
        return 0;
}

static int cancels_one_that_ignores_it(__attribute__((unused)) void *arg)
{
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_group_cancel(&g);
        int rc = ignores_it(NULL);
        return resha_group_end(&g, rc);
}

TEST(reason_in_the_report_of_an_ignored_cancel)
{
        char text[256] = "";

        ASSERT_OK(test_run_opts(cancels_one_that_ignores_it, NULL,
                                &(resha_run_opts){ .report = sink, .report_arg = text }));
        ASSERT_HAS(text, "goes on although 1000 waits said that it is cancelled by task \"main\" at ");
        ASSERT_HAS(text, "reason.c:");
}
