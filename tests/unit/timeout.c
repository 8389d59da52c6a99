/* SPDX-License-Identifier: MIT */
/* Timeouts and deadlines as a block: against cancels from outside, nested, moved. As a call: timeout_call.c. */

#include "core/core.h"
#include "job.h"

/* ---- timeouts ---- */

/* semantics 82 same
 * asyncio: when a deadline passes, the body sees CancelledError, and only leaving the block makes it TimeoutError;
 * expired() is true then.
 * resha: waits in the scope give -ECANCELED; resha_scope_end() makes it -ETIME, and resha_scope_expired() is true. */
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

/* semantics 84 same
 * asyncio: with a delay of zero or less the body still starts; its first suspension raises, even sleep(0), and the
 * result is TimeoutError.
 * resha: the body runs to its first wait, which fails; the end gives -ETIME. */
TASK(semantics_84_timeout_of_zero_runs_to_its_first_wait)
{
        return timeout_of_nothing(&(resha_duration){ 0 });
}
TASK(semantics_84_timeout_in_the_past_runs_to_its_first_wait)
{
        return timeout_of_nothing(&(resha_duration){ -9 });
}

/* semantics 85 same
 * asyncio: a body that never suspends does not time out, even past the deadline.
 * resha: its result counts, and the scope is not expired. How late it was, resha_now() tells. */
TASK(semantics_85_body_that_never_waits_does_not_time_out)
{
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, RESHA_NS(0));
        ASSERT_EQ(resha_scope_end(&s, 3), 3);
        ASSERT_FALSE(resha_scope_expired(&s));
        return 0;
}

/* semantics 88 better
 * asyncio: a body that swallows the expiry and waits again in the same block is not bounded any more: the deadline
 * fires once.
 * resha: every later wait in the scope fails at once. */
TASK(semantics_88_swallowing_an_expiry_does_not_help)
{
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, MS(1));
        ASSERT_EQ(resha_sleep(RESHA_S(9)), -ECANCELED);
        ASSERT_EQ(resha_sleep(RESHA_S(9)), -ECANCELED);
        ASSERT_EQ(resha_yield(), -ECANCELED);
        ASSERT_EQ(resha_scope_end(&s, 0), 0);
        ASSERT_FALSE(resha_scope_expired(&s));
        return 0;
}

/* semantics 87 better
 * asyncio: a body that swallows the expiry and ends normally raises no TimeoutError, and expired() is true.
 * resha: its value counts too, and then the scope has not expired for anybody; but until its end every wait in it goes
 * on to fail. */
TASK(semantics_87_body_that_swallows_its_expiry_keeps_its_value)
{
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, MS(1));
        ASSERT_EQ(resha_sleep(RESHA_S(9)), -ECANCELED);
        ASSERT_EQ(resha_checkpoint(), -ECANCELED);
        ASSERT_EQ(resha_scope_end(&s, 8), 8);
        ASSERT_FALSE(resha_scope_expired(&s));
        ASSERT_OK(resha_sleep(MS(1)));
        return 0;
}

/* semantics 86 better
 * asyncio: the deadline of a timeout that is made early and entered later counts from when it was made.
 * resha: it counts from its begin: what is declared before has no clock. */
TASK(semantics_86_timeout_counts_from_its_begin)
{
        RESHA_SCOPE(s);
        ASSERT_OK(resha_sleep(MS(50)));
        resha_instant start = resha_now();
        resha_timeout_begin(&s, MS(5));
        ASSERT_OK(resha_sleep(MS(1)));
        ASSERT_EQ(resha_scope_end(&s, resha_sleep(RESHA_S(9))), -ETIME);
        ASSERT_PASSED(start, 5);
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

/* semantics 90 better
 * asyncio: if an outside cancel and the expiry fall into one batch, in either order, CancelledError wins, and
 * expired() is true.
 * resha: the outside wins here too; but expired() is false, since this scope has timed out for nobody. */
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

/* semantics 91 better
 * asyncio: if an outside cancel comes first and its clean-up runs past the deadline, the expiry interrupts the clean-
 * up, and CancelledError leaves the block.
 * resha: clean-up behind a shield is not interrupted; -ECANCELED leaves the block. */
TASK(semantics_91_outside_cancel_before_the_expiry)
{
        struct both b = { .ms = 20 };

        ASSERT_EQ(status_when_cancelled(1, cleans_up_past_the_deadline, &b), -ECANCELED);
        ASSERT_EQ(b.inner, -ECANCELED);
        ASSERT_EQ(b.expired, 0);
        return 0;
}

/* semantics 92 same
 * asyncio: if an outside cancel comes after the expiry, but before the block is left, CancelledError wins.
 * resha: the outside is judged when the block is left: -ECANCELED. */
TASK(semantics_92_outside_cancel_after_the_expiry)
{
        struct both b = { .ms = 1 };

        SIM_ONLY();
        ASSERT_EQ(status_when_cancelled(20, cleans_up_past_the_deadline, &b), -ECANCELED);
        ASSERT_EQ(b.inner, -ECANCELED);
        ASSERT_EQ(b.expired, 0);
        return 0;
}

/* semantics 93 same
 * asyncio: if the body raises something else while it expires, that comes out.
 * resha: the other code comes out as it is, and the scope is not expired. */
TASK(semantics_93_another_failure_while_expiring_passes)
{
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, MS(1));
        ASSERT_EQ(resha_sleep(RESHA_S(9)), -ECANCELED);
        ASSERT_EQ(resha_scope_end(&s, -EIO), -EIO);
        ASSERT_FALSE(resha_scope_expired(&s));
        return 0;
}

/* semantics 94 same
 * asyncio: another exception before the deadline passes unchanged.
 * resha: the code passes with its record. */
TASK(semantics_94_failure_before_the_deadline_passes)
{
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, RESHA_S(9));
        ASSERT_EQ(resha_scope_end(&s, resha_fail(-ENOENT, "gone")), -ENOENT);
        ASSERT_FALSE(resha_scope_expired(&s));
        ASSERT_STR(resha_error_of(-ENOENT)->text, "gone");
        return 0;
}

/* semantics 96 same
 * asyncio: if the inner timeout expires first and is handled, the outer goes on unharmed.
 * resha: so it does. */
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

/* semantics 97 same
 * asyncio: if the outer timeout expires, the inner lets CancelledError through and is not expired.
 * resha: the inner end gives -ECANCELED, the outer -ETIME. */
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

/* semantics 98 better
 * asyncio: a timeout in clean-up after an earlier expiry works on its own.
 * resha: so it does behind a shield; without one the scope around it is still cancelled. */
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

/* semantics 100 same
 * asyncio: reschedule() before entry, while expiring, after the expiry or after the exit is an error.
 * resha: resha_scope_reschedule() gives -EINVAL then. */
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

/* semantics 102 same
 * asyncio: a timeout that is entered twice, or outside a task, is an error.
 * resha: the end gives -EINVAL, or -EPERM; resha_timeout() outside a task gives -EPERM. */
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

/* semantics 103 same
 * asyncio: leaving the block cancels its timer.
 * resha: no timer is left after the end. */
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

/* semantics 104 same
 * asyncio: a timeout around a group that expires cancels body and children, waits for all, and comes out as
 * TimeoutError.
 * resha: the group ends with -ECANCELED when all its children have ended, and the scope with -ETIME. */
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
        ASSERT_PASSED(start, 13);
        return 0;
}

struct slow_cleanup {
        int64_t wants, may; /* ms */
        int result;
};

static int sleep_wants(void *arg)
{
        return resha_sleep(MS(((struct slow_cleanup *)arg)->wants));
}

static int cleans_up_slowly(struct slow_cleanup *c)
{
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, MS(10));
        int rc = resha_sleep(RESHA_S(9));
        c->result = c->may ? resha_shielded(MS(c->may), sleep_wants, c) : sleep_wants(c);
        return resha_scope_end(&s, rc);
}

/* semantics 106 better
 * asyncio: a timeout does not bound clean-up: leaving a block that has timed out takes as long as that.
 * resha: clean-up has a deadline of its own, its shield's; without a shield its waits fail at once. */
TASK(semantics_106_cleanup_after_an_expiry_has_a_deadline)
{
        struct slow_cleanup c[] = { { .wants = 30, .may = 100 },
                                    { .wants = 3600 * 1000, .may = 100 },
                                    { .wants = 30 } };
        const int results[] = { 0, -ETIME, -ECANCELED };
        const int64_t took[] = { 40, 110, 10 };

        SIM_ONLY();
        for (size_t i = 0; i < 3; i++) {
                resha_instant start = resha_now();
                ASSERT_EQ(cleans_up_slowly(&c[i]), -ETIME);
                ASSERT_EQ(c[i].result, results[i]);
                ASSERT_PASSED(start, took[i]);
        }
        return 0;
}

/* semantics 105 better
 * asyncio: if it expires while the group handles the failure of a child, that failure comes out; expired() is true.
 * resha: the failure comes out, and the scope is not expired: it has decided nothing. */
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
