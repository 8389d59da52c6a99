/* SPDX-License-Identifier: MIT */
/* Timeouts and deadlines: as a block and as a call, against cancels from outside, nested, moved. */

#include "core/core.h"
#include "job.h"

/* ---- timeouts ---- */

TASK(semantics_82_body_sees_cancel_and_end_makes_it_a_timeout)
{
        resha_instant start = resha_now();

        RESHA_SCOPE(s);
        resha_timeout_begin(&s, MS(5));
        int rc = resha_sleep(RESHA_S(3600));
        ASSERT_EQ(rc, -ECANCELED);
        ASSERT_TRUE(resha_cancelled());
        ASSERT_FALSE(resha_scope_expired(&s));
        ASSERT_EQ(resha_scope_end(&s, rc), -ETIME);
        ASSERT_TRUE(resha_scope_expired(&s));
        ASSERT_FALSE(resha_cancelled());
        ASSERT_PASSED(start, 5);
        ASSERT_OK(resha_sleep(MS(1)));
        return 0;
}

TASK(timeout_in_time)
{
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, RESHA_S(3600));
        int rc = resha_sleep(MS(2));
        ASSERT_OK(rc);
        ASSERT_EQ(resha_scope_end(&s, 7), 7);
        ASSERT_FALSE(resha_scope_expired(&s));
        return 0;
}

static int timeout_of_nothing(void *arg)
{
        resha_duration *d = arg;

        RESHA_SCOPE(s);
        resha_timeout_begin(&s, *d);
        note("body");
        int rc = resha_sleep(RESHA_NS(0));
        ASSERT_EQ(rc, -ECANCELED);
        ASSERT_EQ(resha_scope_end(&s, rc), -ETIME);
        ASSERT_TRUE(resha_scope_expired(&s));
        ASSERT_STR(notes(), "body");
        return 0;
}

TASK(semantics_84_timeout_of_zero_runs_to_its_first_wait)
{
        return timeout_of_nothing(&(resha_duration){ 0 });
}
TASK(semantics_84_timeout_in_the_past_runs_to_its_first_wait)
{
        return timeout_of_nothing(&(resha_duration){ -9 });
}

TASK(semantics_85_body_that_never_waits_does_not_time_out)
{
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, RESHA_NS(0));
        ASSERT_EQ(resha_scope_end(&s, 3), 3);
        ASSERT_FALSE(resha_scope_expired(&s));
        return 0;
}

TASK(semantics_88_swallowing_an_expiry_does_not_help)
{
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, MS(1));
        ASSERT_EQ(resha_sleep(RESHA_S(9)), -ECANCELED);
        ASSERT_EQ(resha_sleep(RESHA_S(9)), -ECANCELED);
        ASSERT_EQ(resha_yield(), -ECANCELED);
        ASSERT_EQ(resha_scope_end(&s, 0), 0); /* semantics 87: what the body made of it */
        ASSERT_FALSE(resha_scope_expired(&s));
        return 0;
}

struct both {
        resha_task task;
        int inner, expired;
        int64_t ms;
};

static int under_timeout(void *arg)
{
        struct both *b = arg;

        RESHA_SCOPE(s);
        resha_timeout_begin(&s, MS(b->ms));
        int rc = resha_sleep(RESHA_S(10));
        ASSERT_EQ(rc, -ECANCELED);
        rc = resha_scope_end(&s, rc);
        b->inner = rc;
        b->expired = resha_scope_expired(&s);
        return rc;
}

TASK(semantics_90_outside_cancel_beats_an_expiry_of_the_same_moment)
{
        struct both b = { .ms = 5 };
        int status;

        SIM_ONLY();
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, under_timeout, &b, &b.task));
        ASSERT_OK(resha_sleep(MS(5))); /* its timer fired in the same visit of the loop, the body has not yet run */
        resha_task_cancel(&b.task);
        ASSERT_OK(resha_task_wait(&b.task, &status));
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(b.inner, -ECANCELED);
        ASSERT_EQ(b.expired, 0);
        ASSERT_EQ(status, -ECANCELED);
        return 0;
}

TASK(timeout_alone_in_a_task)
{
        struct both b = { .ms = 5 };

        ASSERT_EQ(resha_gather(under_timeout, &b, 1, sizeof b, NULL), -ETIME);
        ASSERT_EQ(b.expired, 1);
        return 0;
}

static int sleep_ms(void *arg)
{
        return resha_sleep(MS(*(int *)arg));
}

static int cleans_up_past_the_deadline(void *arg)
{
        struct both *b = arg;
        int ms = 50;

        RESHA_SCOPE(s);
        resha_timeout_begin(&s, MS(b->ms));
        int rc = resha_sleep(RESHA_S(10));
        ASSERT_EQ(rc, -ECANCELED);
        ASSERT_OK(resha_shielded(RESHA_S(1), sleep_ms, &ms));
        b->inner = resha_scope_end(&s, rc);
        b->expired = resha_scope_expired(&s);
        return b->inner;
}

TASK(semantics_91_outside_cancel_before_the_expiry)
{
        struct both b = { .ms = 20 };

        ASSERT_EQ(status_when_cancelled(1, cleans_up_past_the_deadline, &b), -ECANCELED);
        ASSERT_EQ(b.inner, -ECANCELED);
        ASSERT_EQ(b.expired, 0);
        return 0;
}

TASK(semantics_92_outside_cancel_after_the_expiry)
{
        struct both b = { .ms = 1 };

        SIM_ONLY();
        ASSERT_EQ(status_when_cancelled(20, cleans_up_past_the_deadline, &b), -ECANCELED);
        ASSERT_EQ(b.inner, -ECANCELED);
        ASSERT_EQ(b.expired, 0);
        return 0;
}

TASK(semantics_93_another_failure_while_expiring_passes)
{
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, MS(1));
        ASSERT_EQ(resha_sleep(RESHA_S(9)), -ECANCELED);
        ASSERT_EQ(resha_scope_end(&s, -EIO), -EIO);
        ASSERT_FALSE(resha_scope_expired(&s));
        return 0;
}

TASK(semantics_94_failure_before_the_deadline_passes)
{
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, RESHA_S(9));
        ASSERT_EQ(resha_scope_end(&s, resha_fail(-ENOENT, "gone")), -ENOENT);
        ASSERT_FALSE(resha_scope_expired(&s));
        ASSERT_STR(resha_error_of(-ENOENT)->text, "gone");
        return 0;
}

TASK(semantics_96_inner_expiry_leaves_the_outer_alone)
{
        RESHA_SCOPE(outer);
        resha_timeout_begin(&outer, MS(500));
        {
                RESHA_SCOPE(inner);
                resha_timeout_begin(&inner, MS(1));
                int rc = resha_sleep(RESHA_S(9));
                ASSERT_EQ(resha_scope_end(&inner, rc), -ETIME);
        }
        ASSERT_OK(resha_sleep(MS(1)));
        ASSERT_EQ(resha_scope_end(&outer, 0), 0);
        ASSERT_FALSE(resha_scope_expired(&outer));
        return 0;
}

TASK(semantics_97_outer_expiry_is_not_the_inner_ones)
{
        RESHA_SCOPE(outer);
        resha_timeout_begin(&outer, MS(1));
        RESHA_SCOPE(inner);
        resha_timeout_begin(&inner, RESHA_S(9));
        int rc = resha_sleep(RESHA_S(99));
        ASSERT_EQ(rc, -ECANCELED);
        rc = resha_scope_end(&inner, rc);
        ASSERT_EQ(rc, -ECANCELED);
        ASSERT_FALSE(resha_scope_expired(&inner));
        ASSERT_EQ(resha_scope_end(&outer, rc), -ETIME);
        ASSERT_TRUE(resha_scope_expired(&outer));
        return 0;
}

TASK(timeouts_of_the_same_instant_belong_to_the_outer)
{
        resha_instant t = resha_after(MS(3));

        RESHA_SCOPE(outer);
        resha_deadline_begin(&outer, t);
        RESHA_SCOPE(inner);
        resha_deadline_begin(&inner, t);
        int rc = resha_sleep(RESHA_S(9));
        rc = resha_scope_end(&inner, rc);
        ASSERT_EQ(rc, -ECANCELED);
        ASSERT_EQ(resha_scope_end(&outer, rc), -ETIME);
        return 0;
}

TASK(semantics_98_timeout_in_a_shielded_cleanup_works_on_its_own)
{
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, MS(1));
        int rc = resha_sleep(RESHA_S(9));
        {
                RESHA_SCOPE(shield);
                resha_shield_begin(&shield, RESHA_S(9));
                RESHA_SCOPE(t);
                resha_timeout_begin(&t, MS(2));
                int rc2 = resha_sleep(RESHA_S(9));
                ASSERT_EQ(resha_scope_end(&t, rc2), -ETIME);
                ASSERT_EQ(resha_scope_end(&shield, 0), 0);
        }
        ASSERT_EQ(resha_scope_end(&s, rc), -ETIME);
        return 0;
}

TASK(semantics_100_reschedule_only_while_open)
{
        resha_scope never = { { 0 } };

        ASSERT_EQ(resha_scope_reschedule(&never, resha_after(RESHA_S(1))), -EINVAL);
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, MS(1));
        int rc = resha_sleep(RESHA_S(9));
        ASSERT_EQ(rc, -ECANCELED);
        ASSERT_EQ(resha_scope_reschedule(&s, resha_after(RESHA_S(1))), -EINVAL);
        ASSERT_EQ(resha_scope_end(&s, rc), -ETIME);
        ASSERT_EQ(resha_scope_reschedule(&s, resha_after(RESHA_S(1))), -EINVAL);
        return 0;
}

TASK(reschedule_later)
{
        resha_instant start = resha_now();

        RESHA_SCOPE(s);
        resha_timeout_begin(&s, MS(100));
        ASSERT_OK(resha_scope_reschedule(&s, resha_after(MS(200))));
        int rc = resha_sleep(RESHA_S(9));
        ASSERT_EQ(resha_scope_end(&s, rc), -ETIME);
        ASSERT_PASSED(start, 200);
        return 0;
}

TASK(reschedule_earlier_while_the_body_sleeps)
{
        resha_instant start = resha_now();

        RESHA_SCOPE(s);
        resha_timeout_begin(&s, RESHA_S(3600));
        ASSERT_OK(resha_scope_reschedule(&s, resha_after(MS(3))));
        int rc = resha_sleep(RESHA_S(9));
        ASSERT_EQ(resha_scope_end(&s, rc), -ETIME);
        ASSERT_PASSED(start, 3);
        return 0;
}

TASK(reschedule_to_never)
{
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, MS(1));
        ASSERT_OK(resha_scope_reschedule(&s, RESHA_NEVER));
        ASSERT_OK(resha_sleep(MS(5)));
        ASSERT_EQ(resha_scope_end(&s, 0), 0);
        return 0;
}

TASK(reschedule_to_the_past)
{
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, RESHA_S(9));
        ASSERT_OK(resha_scope_reschedule(&s, (resha_instant){ 1 }));
        int rc = resha_sleep(RESHA_S(1));
        ASSERT_EQ(resha_scope_end(&s, rc), -ETIME);
        return 0;
}

TASK(reschedule_gives_a_deadline_to_a_scope_without)
{
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, RESHA_FOREVER);
        ASSERT_OK(resha_scope_reschedule(&s, resha_after(MS(1))));
        int rc = resha_sleep(RESHA_S(9));
        ASSERT_EQ(resha_scope_end(&s, rc), -ETIME);
        return 0;
}

TASK(semantics_102_beginning_twice_is_an_error)
{
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, RESHA_S(9));
        resha_timeout_begin(&s, RESHA_S(1));
        ASSERT_EQ(resha_scope_end(&s, 0), -EINVAL);
        ASSERT_OK(resha_sleep(MS(1)));
        return 0;
}

TEST(semantics_102_outside_a_task_is_an_error)
{
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, RESHA_S(9));
        ASSERT_EQ(resha_scope_end(&s, 0), -EPERM);
        ASSERT_EQ(resha_timeout(RESHA_S(1), sleep_ms, &(int){ 1 }), -EPERM);
}

TASK(semantics_103_leaving_removes_the_timer)
{
        for (int i = 0; i < 10; i++) {
                RESHA_SCOPE(s);
                resha_timeout_begin(&s, RESHA_S(3600 + i));
                ASSERT_TRUE(rs_heap_first(&rs_loop_current->timers));
                ASSERT_OK(resha_scope_end(&s, 0));
                ASSERT_PTR(rs_heap_first(&rs_loop_current->timers), NULL);
        }
        return 0;
}

TASK(semantics_104_timeout_around_a_group)
{
        struct job j[] = { JOB("a", 1), JOB("b", 5000, .clean = 3), JOB("c", 5000) };
        resha_instant start = resha_now();

        SIM_ONLY();
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, MS(10));
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (size_t i = 0; i < 3; i++)
                resha_spawn(&g, job, &j[i]);
        int rc = resha_group_end(&g, 0);
        ASSERT_EQ(rc, -ECANCELED);
        ASSERT_EQ(resha_scope_end(&s, rc), -ETIME);
        ASSERT_STR(notes(), "a+ b+ c+ a- c! b!");
        ASSERT_PASSED(start, 13); /* semantics 106: clean-up takes its time, behind a shield that has a deadline */
        return 0;
}

TASK(semantics_105_failure_of_a_child_before_the_expiry_wins)
{
        struct job j[] = { JOB("a", 5, .result = -EIO), JOB("b", 5000, .clean = 30) };

        SIM_ONLY();
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, MS(10)); /* passes while b cleans up after a's failure */
        int rc = resha_gather(job, j, 2, sizeof j[0], NULL);
        ASSERT_EQ(rc, -EIO);
        ASSERT_EQ(resha_scope_end(&s, rc), -EIO);
        ASSERT_FALSE(resha_scope_expired(&s));
        ASSERT_STR(resha_error_of(-EIO)->text, "a failed");
        return 0;
}

/* ---- as calls ---- */

static int name_of_task(void *arg)
{
        *(const char **)arg = resha_task_name();
        return 12;
}

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

TASK(semantics_115_completion_in_the_batch_of_the_expiry_wins)
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
        ASSERT_OK(resha_group_end(&g, 0));
        return 0;
}

static int set_and_let_time_pass(void *arg)
{
        resha_event *e = arg;
        int rc = resha_sleep(MS(4));

        resha_event_set(e);
        return rc;
}

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
