/* SPDX-License-Identifier: MIT */
/* Scopes: cancel, shields, no-suspend regions, early return, nesting. */

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "core/core.h"
#include "job.h"

struct both {
        resha_task task;
        int inner, expired;
};

static int sleep_ms(void *arg)
{
        return resha_sleep(MS(*(int *)arg));
}

/* ---- cancelling a scope ---- */

TASK(scope_cancel_is_no_error)
{
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, RESHA_S(9));
        resha_scope_cancel(&s);
        resha_scope_cancel(&s);
        ASSERT_TRUE(resha_cancelled());
        int rc = resha_sleep(RESHA_S(1));
        ASSERT_EQ(rc, -ECANCELED);
        ASSERT_EQ(resha_scope_end(&s, rc), 0);
        ASSERT_FALSE(resha_scope_expired(&s));
        resha_scope_cancel(&s); /* has ended: nothing */
        ASSERT_OK(resha_sleep(MS(1)));
        return 0;
}

static int cancels_scope(void *arg)
{
        int rc = resha_sleep(MS(2));

        resha_scope_cancel(arg);
        return rc;
}

TASK(scope_cancelled_by_another_task)
{
        resha_instant start = resha_now();

        RESHA_SCOPE(s);
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, cancels_scope, &s);
        {
                resha_timeout_begin(&s, RESHA_S(9));
                int rc = resha_sleep(RESHA_S(5));
                ASSERT_EQ(rc, -ECANCELED);
                ASSERT_EQ(resha_scope_end(&s, rc), 0);
        }
        ASSERT_PASSED(start, 2);
        return resha_group_end(&g, 0);
}

static int cancelled_inside_and_outside(void *arg)
{
        struct both *b = arg;

        RESHA_SCOPE(s);
        resha_timeout_begin(&s, RESHA_S(9));
        resha_scope_cancel(&s);
        int rc = resha_sleep(RESHA_S(1));
        ASSERT_EQ(rc, -ECANCELED);
        int ms = 5;
        ASSERT_OK(resha_shielded(RESHA_S(9), sleep_ms, &ms));
        b->inner = resha_scope_end(&s, rc);
        return b->inner;
}

TASK(semantics_145_outside_cancel_of_a_cancelled_scope_comes_out)
{
        struct both b = { 0 };

        ASSERT_EQ(status_when_cancelled(1, cancelled_inside_and_outside, &b), -ECANCELED);
        ASSERT_EQ(b.inner, -ECANCELED);
        return 0;
}

TASK(scope_cancel_wins_over_later_expiry)
{
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, MS(2));
        resha_scope_cancel(&s);
        int ms = 5, rc = resha_sleep(RESHA_S(1));
        ASSERT_EQ(rc, -ECANCELED);
        ASSERT_OK(resha_shielded(RESHA_S(9), sleep_ms, &ms));
        ASSERT_HAS(resha_error_of(rc)->text, "cancelled by task");
        ASSERT_OK(resha_scope_end(&s, rc));
        ASSERT_FALSE(resha_scope_expired(&s));
        return 0;
}

/* ---- shields ---- */

static int shielded_work(void *arg)
{
        struct both *b = arg;

        RESHA_SCOPE(s);
        resha_shield_begin(&s, RESHA_S(9));
        int rc = resha_sleep(MS(10));
        note("work %d", rc);
        ASSERT_FALSE(resha_cancelled());
        rc = resha_scope_end(&s, rc);
        note("end %d", rc);
        ASSERT_TRUE(resha_cancelled());
        b->inner = resha_sleep(MS(1));
        return b->inner;
}

TASK(shield_keeps_a_cancel_out_until_it_ends)
{
        struct both b = { 0 };

        ASSERT_EQ(status_when_cancelled(1, shielded_work, &b), -ECANCELED);
        ASSERT_STR(notes(), "work 0 end 0");
        ASSERT_EQ(b.inner, -ECANCELED);
        return 0;
}

static int shield_expires(void *arg)
{
        struct both *b = arg;

        RESHA_SCOPE(s);
        resha_shield_begin(&s, MS(10));
        int rc = resha_sleep(RESHA_S(9));
        ASSERT_EQ(rc, -ECANCELED);
        rc = resha_scope_end(&s, rc);
        b->inner = rc;
        b->expired = resha_scope_expired(&s);
        return rc;
}

TASK(shield_expiry_is_its_own_even_while_cancelled_outside)
{
        struct both b = { 0 };

        ASSERT_EQ(status_when_cancelled(1, shield_expires, &b), -ETIME);
        ASSERT_EQ(b.inner, -ETIME);
        ASSERT_EQ(b.expired, 1);
        return 0;
}

TASK(shield_expires_without_any_cancel)
{
        int slow = 1000, quick = 1;

        ASSERT_EQ(resha_shielded(MS(2), sleep_ms, &slow), -ETIME);
        ASSERT_EQ(resha_shielded(RESHA_S(2), sleep_ms, &quick), 0);
        ASSERT_OK(resha_sleep(MS(1)));
        return 0;
}

TASK(shield_keeps_a_deadline_out)
{
        int ms = 5;

        RESHA_SCOPE(s);
        resha_timeout_begin(&s, MS(1));
        ASSERT_OK(resha_shielded(RESHA_S(9), sleep_ms, &ms));
        ASSERT_TRUE(resha_cancelled());
        int rc = resha_yield();
        ASSERT_EQ(rc, -ECANCELED);
        ASSERT_EQ(resha_scope_end(&s, rc), -ETIME);
        return 0;
}

static int group_inside_a_shield(void *arg)
{
        struct job *j = arg;

        RESHA_SCOPE(s);
        resha_shield_begin(&s, RESHA_S(9));
        int rc = resha_gather(job, j, 2, sizeof *j, NULL);
        ASSERT_OK(rc);
        rc = resha_scope_end(&s, rc);
        return rc < 0 ? rc : resha_checkpoint();
}

TASK(shield_covers_the_children_started_inside)
{
        struct job j[] = { JOB("a", 10), JOB("b", 20) };

        ASSERT_EQ(status_when_cancelled(1, group_inside_a_shield, j), -ECANCELED);
        ASSERT_STR(notes(), "a+ b+ a- b-");
        return 0;
}

static int shield_in_a_child(void *arg)
{
        struct job *j = arg;

        return resha_shielded(RESHA_S(9), job, j);
}

TASK(shield_in_a_child_of_a_cancelled_group)
{
        struct job j = JOB("a", 5);

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, shield_in_a_child, &j);
        ASSERT_OK(resha_yield());
        resha_group_cancel(&g);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "a+ a-");
        return 0;
}

static int scope_in_shield_cancelled_directly(void *arg)
{
        resha_scope *inner = arg;

        RESHA_SCOPE(s);
        resha_shield_begin(&s, RESHA_S(9));
        resha_timeout_begin(inner, RESHA_S(5));
        int rc = resha_sleep(RESHA_S(1));
        ASSERT_EQ(rc, -ECANCELED);
        ASSERT_EQ(resha_scope_end(inner, rc), 0);
        return resha_scope_end(&s, 0);
}

TASK(shield_does_not_keep_out_what_is_cancelled_inside)
{
        RESHA_SCOPE(inner); /* begun by the child, which is joined before this frame ends */
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, scope_in_shield_cancelled_directly, &inner);
        ASSERT_OK(resha_yield());
        resha_scope_cancel(&inner);
        return resha_group_end(&g, 0);
}

/* ---- no-suspend regions ---- */

static int suspends_in_a_callback(__attribute__((unused)) void *arg)
{
        resha_mutex m = { { 0 } };
        resha_event e = { { 0 } };

        RESHA_SCOPE(s);
        resha_nosuspend_begin(&s, "qsort");
        ASSERT_EQ(resha_sleep(MS(1)), -EDEADLK);
        ASSERT_EQ(resha_yield(), -EDEADLK);
        ASSERT_EQ(resha_mutex_lock(&m), -EDEADLK);
        resha_event_set(&e); /* what never suspends is fine */
        ASSERT_TRUE(resha_event_is_set(&e));
        ASSERT_EQ(resha_mutex_try_lock(&m), 0);
        ASSERT_EQ(resha_mutex_unlock(&m), 0);
        ASSERT_OK(resha_scope_end(&s, 0));
        ASSERT_OK(resha_sleep(MS(1)));
        return 0;
}

TEST(nosuspend_region_refuses_waits)
{
        unsetenv("RESHA_STRICT");
        RUN(suspends_in_a_callback, NULL);
}

static int suspends_strictly(void *arg)
{
        return test_run_opts(suspends_in_a_callback, arg, &(resha_run_opts){ .strict = true });
}

TEST(nosuspend_region_aborts_when_strict)
{
        struct test_child c;

        test_child(suspends_strictly, NULL, &c);
        ASSERT_TRUE(WIFSIGNALED(c.status));
        ASSERT_EQ(WTERMSIG(c.status), SIGABRT);
        ASSERT_HAS(c.text, "qsort");
}

static int groups_in_a_callback(__attribute__((unused)) void *arg)
{
        struct job j = JOB("a", 1);
        size_t index;

        RESHA_SCOPE(s);
        resha_nosuspend_begin(&s, "qsort");
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_EQ(resha_spawn(&g, job, &j), -EPERM); /* nobody could wait for its end */
        ASSERT_EQ(resha_group_end(&g, 0), -EDEADLK);
        RESHA_COMPLETIONS(c);
        resha_completions_begin(&c, job, &j, 1, sizeof j, NULL);
        ASSERT_EQ(resha_completions_next(&c, &index, NULL), -EDEADLK);
        ASSERT_EQ(resha_completions_end(&c, 0), -EDEADLK);
        ASSERT_EQ(resha_gather(job, &j, 1, sizeof j, NULL), -EDEADLK);
        ASSERT_STR(notes(), "");
        return resha_scope_end(&s, 0);
}

TEST(nosuspend_region_starts_no_tasks)
{
        unsetenv("RESHA_STRICT");
        RUN(groups_in_a_callback, NULL);
}

TASK(nosuspend_ends_with_its_block)
{
        {
                RESHA_SCOPE(s);
                resha_nosuspend_begin(&s, "callback");
        }
        ASSERT_OK(resha_sleep(MS(1)));
        return 0;
}

TASK(nosuspend_region_inside_a_cancelled_scope)
{
        RESHA_SCOPE(outer);
        resha_timeout_begin(&outer, RESHA_S(9));
        resha_scope_cancel(&outer);
        {
                RESHA_SCOPE(s);
                resha_nosuspend_begin(&s, "callback");
                ASSERT_EQ(resha_yield(), -EDEADLK); /* it may not even yield */
        }
        ASSERT_EQ(resha_yield(), -ECANCELED);
        ASSERT_EQ(resha_scope_end(&outer, 0), 0);
        return 0;
}

/* ---- leaving by return ---- */

static int returns_from_inside(__attribute__((unused)) void *arg)
{
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, MS(1));
        return resha_sleep(RESHA_S(9));
}

TASK(scope_early_return_gives_the_cancel_and_closes)
{
        ASSERT_EQ(returns_from_inside(NULL), -ECANCELED);
        ASSERT_FALSE(resha_cancelled());
        ASSERT_OK(resha_sleep(MS(1)));
        ASSERT_PTR(rs_heap_first(&rs_loop_current->timers), NULL);
        return 0;
}

TASK(scope_early_return_becomes_the_timeout_at_the_next_boundary)
{
        struct job none = JOB("x", 0);

        /* Nothing around the task is cancelled, so its -ECANCELED is not a cancel: it was the timeout. */
        ASSERT_EQ(resha_gather(returns_from_inside, &none, 1, sizeof none, NULL), -ETIME);
        RESHA_SCOPE(outer);
        resha_timeout_begin(&outer, RESHA_S(9));
        int rc = returns_from_inside(NULL);
        ASSERT_EQ(rc, -ECANCELED);
        ASSERT_EQ(resha_scope_end(&outer, rc), -ETIME);
        ASSERT_FALSE(resha_scope_expired(&outer)); /* not on its own account */
        return 0;
}

static int returns_while_cancelled_outside(void *arg)
{
        struct both *b = arg;
        int ms = 20;

        RESHA_SCOPE(s);
        resha_timeout_begin(&s, MS(5));
        int rc = resha_sleep(RESHA_S(9));
        ASSERT_OK(resha_shielded(RESHA_S(9), sleep_ms, &ms));
        b->inner = rc;
        return rc;
}

TASK(scope_early_return_under_an_outside_cancel_stays_a_cancel)
{
        struct both b = { 0 };

        ASSERT_EQ(status_when_cancelled(1, returns_while_cancelled_outside, &b), -ECANCELED);
        return 0;
}

static int times_out_and_is_cancelled_then(__attribute__((unused)) void *arg)
{
        int ms = 20, rc = returns_from_inside(arg);

        ASSERT_OK(resha_shielded(RESHA_S(9), sleep_ms, &ms)); /* meanwhile the cancel comes */
        ASSERT_TRUE(resha_cancelled());
        return rc;
}

TASK(scope_early_return_and_then_an_outside_cancel_is_a_cancel)
{
        ASSERT_EQ(status_when_cancelled(5, times_out_and_is_cancelled_then, NULL), -ECANCELED);
        return 0;
}

TEST(scope_early_return_of_the_main_task)
{
        ASSERT_EQ(test_run_opts(returns_from_inside, NULL, NULL), -ETIME);
}

static int returns_then_cleans_up(void *arg)
{
        int ms = 1, rc = returns_from_inside(arg);

        ASSERT_OK(resha_shielded(RESHA_S(9), sleep_ms, &ms));
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, RESHA_S(9));
        ASSERT_OK(resha_scope_end(&s, resha_sleep(MS(1))));
        return rc;
}

TASK(scope_early_return_and_then_a_cleanup_in_scopes)
{
        struct job none = JOB("x", 0);

        ASSERT_EQ(resha_gather(returns_then_cleans_up, &none, 1, sizeof none, NULL), -ETIME);
        return 0;
}

TASK(scope_declared_and_not_begun)
{
        {
                RESHA_SCOPE(s);
                ASSERT_FALSE(resha_scope_expired(&s));
                resha_scope_cancel(&s);
        }
        return resha_sleep(MS(1));
}

static void __attribute__((noinline)) leaves_an_open_scope(resha_duration d)
{
        resha_scope s = { { 0 } }; /* without its clean-up: a bug of the caller */

        resha_timeout_begin(&s, d);
}

static int uses_the_stack_then_waits(__attribute__((unused)) void *arg)
{
        leaves_an_open_scope(RESHA_S(10));
        return resha_sleep(MS(1));
}

static int run_on_an_open_scope(void *arg)
{
        return test_run_opts(uses_the_stack_then_waits, arg, NULL);
}

TEST(scope_of_a_function_that_returned_aborts_with_the_task)
{
        struct test_child c;

        test_child(run_on_an_open_scope, NULL, &c);
        ASSERT_TRUE(WIFSIGNALED(c.status));
        ASSERT_EQ(WTERMSIG(c.status), SIGABRT);
        ASSERT_TRUE(c.text[0]);
}

/* ---- depth ---- */

static int nest(int depth)
{
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, MS(1000 - depth));
        int rc = depth ? nest(depth - 1) : resha_sleep(MS(1));
        return resha_scope_end(&s, rc);
}

TASK(scopes_nest_deeply)
{
        ASSERT_OK(nest(200));
        ASSERT_PTR(rs_heap_first(&rs_loop_current->timers), NULL);
        return 0;
}

static int nest_until_cancelled(int depth)
{
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, RESHA_S(9));
        int rc = depth ? nest_until_cancelled(depth - 1) : resha_sleep(RESHA_S(5));
        ASSERT_EQ(rc, -ECANCELED);
        return resha_scope_end(&s, rc);
}

static int deep_nest(__attribute__((unused)) void *arg)
{
        return nest_until_cancelled(100);
}

TASK(cancel_reaches_the_innermost_of_many_scopes)
{
        ASSERT_EQ(status_when_cancelled(1, deep_nest, NULL), -ECANCELED);
        return 0;
}
