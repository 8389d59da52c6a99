/* SPDX-License-Identifier: MIT */
/* Groups: joining, failures, cancelling, who inherits what. Options and leaving early: group_opts.c. */

#include "job.h"

/* ---- joining ---- */

TASK(group_joins_its_children)
{
        struct job j[] = { JOB("a", 10), JOB("b", 30), JOB("c", 20) };
        resha_instant start = resha_now();

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (size_t i = 0; i < 3; i++)
                resha_spawn(&g, job, &j[i]);
        ASSERT_EQ(resha_group_running(&g), 3);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "a+ b+ c+ a- c- b-");
        ASSERT_PASSED(start, 30);
        return 0;
}

TASK(group_without_children_gives_what_its_body_gives)
{
        const int results[] = { 0, 5, -EIO };

        for (size_t i = 0; i < 3; i++) {
                RESHA_GROUP(g);
                resha_group_begin(&g, NULL);
                ASSERT_EQ(resha_group_end(&g, results[i]), results[i]);
        }
        return 0;
}

struct family {
        resha_group *group;
        struct job first, second;
};

static int spawns_a_sibling(void *arg)
{
        struct family *f = arg;

        ASSERT_OK(resha_sleep(MS(1)));
        ASSERT_OK(resha_spawn(f->group, job, &f->first));
        ASSERT_OK(resha_sleep(MS(1)));
        ASSERT_OK(resha_spawn(f->group, job, &f->second));
        return 0;
}

/* semantics 120 same
 * asyncio: the exit waits for all children, those added meanwhile by children too.
 * resha: so does resha_group_end(). */
TASK(semantics_120_end_waits_for_those_added_by_children)
{
        struct family f = { .first = JOB("a", 2), .second = JOB("b", 5) };

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        f.group = &g;
        resha_spawn(&g, spawns_a_sibling, &f);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_HAS(notes(), "b-");
        return 0;
}

TASK(group_of_a_thousand)
{
        static struct job j[1000];

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (size_t i = 0; i < 1000; i++) {
                j[i].ms = (int64_t)i % 7;
                j[i].name = "";
                ASSERT_OK(resha_spawn(&g, job_clean, &j[i]));
        }
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(resha_group_running(&g), 0);
        return 0;
}

TASK(groups_nest)
{
        struct job j[] = { JOB("outer", 20), JOB("inner", 10) };

        RESHA_GROUP(outer);
        resha_group_begin(&outer, NULL);
        resha_spawn(&outer, job, &j[0]);
        RESHA_GROUP(inner);
        resha_group_begin(&inner, NULL);
        resha_spawn(&inner, job, &j[1]);
        ASSERT_OK(resha_group_end(&inner, 0));
        note("between");
        ASSERT_OK(resha_group_end(&outer, 0));
        ASSERT_STR(notes(), "outer+ inner+ inner- between outer-");
        return 0;
}

/* ---- failures ---- */

/* semantics 121 same
 * asyncio: a child's failure cancels the others and the body; all are awaited, then one exception group comes out.
 * resha: the result is the first failure, with its record, which counts those it cancelled; the caller's list (errors,
 * max_errors) has all of them in order of time. */
TASK(semantics_121_first_failure_cancels_siblings)
{
        struct job j[] = { JOB("a", 10), JOB("b", 20, .result = -EIO), JOB("c", 3000, .clean = 5) };
        resha_instant start = resha_now();

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (size_t i = 0; i < 3; i++)
                resha_spawn(&g, job, &j[i]);
        ASSERT_EQ(resha_group_end(&g, 0), -EIO);
        ASSERT_STR(notes(), "a+ b+ c+ a- b- c!");
        ASSERT_STR(resha_error_of(-EIO)->text, "b failed");
        ASSERT_EQ(resha_error_of(-EIO)->cancelled, 1);
        ASSERT_EQ(resha_group_failures(&g), 1);
        ASSERT_PASSED(start, 25);
        return 0;
}

/* semantics 122 same
 * asyncio: a body that computes learns of a child's failure only at its next suspension.
 * resha: at its next call that may wait, which gives -ECANCELED. */
TASK(semantics_122_body_learns_at_its_next_wait)
{
        struct job j = JOB("a", 0, .result = -EIO);

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, job, &j);
        ASSERT_OK(resha_sleep(MS(0)));
        ASSERT_OK(resha_sleep(MS(0)));
        for (int i = 0; i < 3 && !resha_cancelled(); i++)
                ASSERT_TRUE(resha_yield() <= 0);
        ASSERT_TRUE(resha_cancelled());
        note("computing");
        int rc = resha_sleep(RESHA_S(5));
        ASSERT_EQ(rc, -ECANCELED);
        ASSERT_EQ(resha_group_end(&g, rc), -EIO);
        return 0;
}

TASK(group_failure_wakes_a_sleeping_body)
{
        struct job j = JOB("a", 3, .result = -EIO);
        resha_instant start = resha_now();

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, job, &j);
        int rc = resha_sleep(RESHA_S(3600));
        ASSERT_EQ(rc, -ECANCELED);
        ASSERT_EQ(resha_group_end(&g, rc), -EIO);
        ASSERT_PASSED(start, 3);
        return 0;
}

/* semantics 123 better
 * asyncio: a failing body cancels the children, and its exception comes out wrapped in a group, even if it is the only
 * one.
 * resha: it cancels and joins them, and its own code comes out, not wrapped in anything. */
TASK(semantics_123_failing_body_cancels_the_children)
{
        struct job j[] = { JOB("a", 1000), JOB("b", 1000, .clean = 2) };

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (size_t i = 0; i < 2; i++)
                resha_spawn(&g, job, &j[i]);
        ASSERT_OK(resha_yield());
        ASSERT_EQ(resha_group_end(&g, resha_fail(-ENOENT, "body")), -ENOENT);
        ASSERT_STR(notes(), "a+ b+ a! b!");
        ASSERT_STR(resha_error_of(-ENOENT)->text, "body");
        ASSERT_EQ(resha_group_failures(&g), 1);
        return 0;
}

static int fails_when_cancelled(void *arg)
{
        struct job *j = arg;
        int rc = resha_sleep(MS(j->ms));

        return rc == -ECANCELED ? resha_fail(-EPROTO, "%s failed while cancelled", j->name) : rc;
}

/* semantics 124 same
 * asyncio: errors of children and body are in one group, in order of completion, the body's last.
 * resha: the same order, in the caller's list. */
TASK(semantics_124_errors_in_order_of_time)
{
        struct job j[] = { JOB("a", 2, .result = -EIO), JOB("b", 1000), JOB("c", 1000) };
        resha_error errors[8] = { { 0 } };

        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .errors = errors, .max_errors = 8 });
        resha_spawn(&g, job, &j[0]);
        resha_spawn(&g, fails_when_cancelled, &j[1]);
        resha_spawn(&g, fails_when_cancelled, &j[2]);
        int rc = resha_sleep(RESHA_S(9));
        ASSERT_EQ(rc, -ECANCELED);
        rc = resha_fail(-ENOENT, "the body too");
        ASSERT_EQ(resha_group_end(&g, rc), -EIO);
        ASSERT_EQ(resha_group_failures(&g), 4);
        ASSERT_STR(errors[0].text, "a failed");
        size_t bodies = 0, children = 0;
        for (size_t i = 1; i < 4; i++) {
                bodies += errors[i].code == -ENOENT;
                children += errors[i].code == -EPROTO;
        }
        ASSERT_EQ(bodies, 1);
        ASSERT_EQ(children, 2);
        ASSERT_EQ(errors[4].code, 0);
        return 0;
}

static int sleep_long(__attribute__((unused)) void *arg)
{
        return resha_sleep(RESHA_S(9));
}

static int slow_child(void *arg)
{
        return resha_timeout(MS(2), sleep_long, arg);
}

/* semantics 148 same
 * asyncio: a child's timeout that it does not catch comes out as a group holding TimeoutError.
 * resha: it comes out as -ETIME: a failure like any other. */
TASK(semantics_148_timeout_of_a_child_comes_out)
{
        struct job j = JOB("b", 1000);

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, job, &j);
        resha_spawn(&g, slow_child, NULL);
        ASSERT_EQ(resha_group_end(&g, 0), -ETIME);
        ASSERT_STR(notes(), "b+ b!");
        return 0;
}

/* semantics 126 same
 * asyncio: a child that is cancelled on its own is no error: siblings and body go on.
 * resha: so it is for resha_task_cancel(). A child that gives -ECANCELED though nobody has cancelled it has failed. */
TASK(semantics_126_child_cancelled_by_its_handle_is_no_failure)
{
        struct job j[] = { JOB("a", 1000), JOB("b", 10) };
        int status;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (size_t i = 0; i < 2; i++)
                ASSERT_OK(resha_spawn_task(&g, job, &j[i], &j[i].task));
        ASSERT_OK(resha_sleep(MS(1)));
        resha_task_cancel(&j[0].task);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "a+ b+ a! b-");
        ASSERT_TRUE(resha_task_done(&j[0].task, &status));
        ASSERT_EQ(status, -ECANCELED);
        ASSERT_EQ(resha_group_failures(&g), 0);
        return 0;
}

static int gives_the_status_of(void *arg)
{
        int status, rc = resha_task_wait(arg, &status);

        return rc < 0 ? rc : status;
}

/* semantics 70 better
 * asyncio: a child that fails only because what it awaited was cancelled counts as cancelled, and its group reports
 * nothing.
 * resha: -ECANCELED from a child that nobody cancelled is a failure of the group, as any other code. */
TASK(semantics_70_canceled_code_of_a_task_that_is_not_cancelled_is_a_failure)
{
        struct job a = JOB("a", 1000), c = JOB("c", 2000);

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, job, &a, &a.task));
        resha_spawn(&g, gives_the_status_of, &a.task);
        resha_spawn(&g, job, &c);
        ASSERT_OK(resha_sleep(MS(1)));
        resha_task_cancel(&a.task);
        ASSERT_EQ(resha_group_end(&g, 0), -ECANCELED);
        ASSERT_EQ(resha_group_failures(&g), 1);
        ASSERT_STR(notes(), "a+ c+ a! c!"); /* c was cancelled by that failure */
        return 0;
}

/* semantics 127 same
 * asyncio: a body that raises CancelledError by itself cancels the children, and that comes out.
 * resha: the body's -ECANCELED does the same. */
TASK(semantics_127_body_that_gives_a_cancel)
{
        struct job j = JOB("a", 1000);

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, job, &j);
        ASSERT_OK(resha_yield());
        ASSERT_EQ(resha_group_end(&g, -ECANCELED), -ECANCELED);
        ASSERT_STR(notes(), "a+ a!");
        return 0;
}

/* ---- starting ---- */

/* semantics 135 better
 * asyncio: create_task after the abort began is a RuntimeError.
 * resha: resha_spawn() gives -ECANCELED and starts nothing; what a copied argument owns is still the caller's. */
TASK(semantics_135_spawn_in_a_cancelled_group_starts_nothing)
{
        struct job j = JOB("a", 1);
        resha_task t = { 0 };

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_group_cancel(&g);
        ASSERT_EQ(resha_spawn(&g, job, &j), -ECANCELED);
        ASSERT_EQ(resha_spawn_copy(&g, job, &j), -ECANCELED);
        ASSERT_EQ(resha_spawn_task(&g, job, &j, &t), -ECANCELED);
        ASSERT_FALSE(resha_task_done(&t, NULL));
        ASSERT_EQ(resha_group_running(&g), 0);
        ASSERT_EQ(resha_group_end(&g, 0), 0);
        ASSERT_STR(notes(), "");
        return 0;
}

TASK(group_children_spawned_before_a_cancel_run_to_their_first_wait)
{
        struct job j = JOB("a", 1);

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, job, &j);
        resha_group_cancel(&g);
        ASSERT_EQ(resha_group_end(&g, 0), 0);
        ASSERT_STR(notes(), "a+ a!");
        return 0;
}

/* semantics 136 same
 * asyncio: create_task before the entry or after the end of a group is a RuntimeError.
 * resha: it is -EPERM, and nothing is started. */
TASK(semantics_136_spawn_before_begin_or_after_end)
{
        struct job j = JOB("a", 1);

        RESHA_GROUP(g);
        ASSERT_EQ(resha_spawn(&g, job, &j), -EPERM);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(resha_spawn(&g, job, &j), -EPERM);
        ASSERT_EQ(resha_spawn_copy(&g, job, &j), -EPERM);
        ASSERT_STR(notes(), "");
        return 0;
}

TEST(group_outside_a_task)
{
        struct job j = JOB("a", 1);

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_EQ(resha_spawn(&g, job, &j), -EPERM);
        ASSERT_EQ(resha_group_end(&g, 0), -EPERM);
}

TASK(group_children_start_in_order)
{
        struct job j[] = { JOB("a", 1), JOB("b", 1), JOB("c", 1), JOB("d", 1), JOB("e", 1) };

        SIM_ONLY();
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (size_t i = 0; i < 5; i++)
                resha_spawn(&g, job, &j[i]);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "a+ b+ c+ d+ e+ a- b- c- d- e-");
        return 0;
}

TASK(group_child_inherits_from_its_group_and_not_from_the_place_of_spawn)
{
        struct job j = JOB("a", 20);

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        {
                RESHA_SCOPE(s);
                resha_timeout_begin(&s, MS(1));
                resha_spawn(&g, job, &j);
                int rc = resha_sleep(RESHA_S(9));
                ASSERT_EQ(resha_scope_end(&s, rc), -ETIME);
        }
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "a+ a-");
        return 0;
}

TASK(group_deadline_around_it_reaches_children_started_later)
{
        struct job j = JOB("a", 5000);

        RESHA_SCOPE(s);
        resha_timeout_begin(&s, MS(5));
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_sleep(MS(1)));
        resha_spawn(&g, job, &j);
        int rc = resha_group_end(&g, 0);
        ASSERT_EQ(resha_scope_end(&s, rc), -ETIME);
        ASSERT_STR(notes(), "a+ a!");
        return 0;
}
