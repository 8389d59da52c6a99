/* SPDX-License-Identifier: MIT */
/* Runs that look for mistakes (RESHA_DEBUG=1, resha_run_opts.debug): what they report beyond others. */

#include <string.h>

#include "core/core.h"
#include "job.h"

static struct {
        char text[4096];
        size_t n;
        unsigned reports, left;
} told;

static void sink(const resha_report *r, __attribute__((unused)) void *arg)
{
        told.n += (size_t)snprintf(told.text + told.n, sizeof told.text - told.n, "%s: %s\n", r->task ? r->task : "-",
                                   r->text);
        told.reports++;
        told.left += r->kind == RESHA_REPORT_LEFT_OPEN;
}

static int run(resha_fn *fn, bool debug)
{
        memset(&told, 0, sizeof told);
        return test_run_opts(fn, NULL, &(resha_run_opts){ .report = sink, .debug = debug });
}

/* ---- left open ---- */

static resha_queue *queue;

static int leaks(__attribute__((unused)) void *arg)
{
        int rc = resha_queue_new(4, 3, NULL, &queue);

        __asm__ volatile(""); /* a call in place of a return has no place of its own */
        return rc;
}

TEST(semantics_320_debug_tells_of_each_thing_left_open_with_its_place)
{
        ASSERT_OK(run(leaks, true));
        ASSERT_EQ(told.left, 1);
        ASSERT_HAS(told.text, "left open: queue 0 of 3 items, 0 wait to put, 0 to get, opened ");
        ASSERT_HAS(told.text, " by task \"main\", at leaks+");
        resha_queue_free(queue); /* its loop has ended */
        ASSERT_OK(run(leaks, false));
        ASSERT_EQ(told.left, 0);
        resha_queue_free(queue);
}

/* ---- ignored cancels ---- */

static int deaf(void *arg)
{
        int waits = *(int *)arg;

        for (int i = 0; i < waits; i++)
                ASSERT_EQ(resha_sleep(RESHA_S(1)), -ECANCELED);
        return 0;
}

static int ignores(__attribute__((unused)) void *arg)
{
        resha_task t = { 0 };
        int waits = 12;
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        resha_spawn_task(&g, deaf, &waits, &t);
        ASSERT_OK(resha_yield());
        resha_task_cancel(&t);
        return resha_group_end(&g, 0);
}

TEST(debug_tells_of_an_ignored_cancel_after_ten_waits)
{
        ASSERT_OK(run(ignores, true));
        ASSERT_EQ(told.reports, 1);
        ASSERT_HAS(told.text, "deaf: goes on although 10 waits said that it is cancelled");
        ASSERT_OK(run(ignores, false));
        ASSERT_EQ(told.reports, 0);
}

/* ---- failures that nobody looks at ---- */

static int fails(__attribute__((unused)) void *arg)
{
        return resha_fail(-EIO, "no disk");
}

static int fail_all(const resha_group_opts *opts)
{
        RESHA_GROUP(g);

        resha_group_begin(&g, opts);
        for (int i = 0; i < 3; i++)
                resha_spawn(&g, fails, NULL);
        return resha_group_end(&g, 0);
}

static int three_fail(__attribute__((unused)) void *arg)
{
        ASSERT_EQ(fail_all(&(resha_group_opts){ .keep_going = true }), -EIO);
        return 0;
}

static int three_are_kept(__attribute__((unused)) void *arg)
{
        resha_error errors[3];

        ASSERT_EQ(fail_all(&(resha_group_opts){ .keep_going = true, .errors = errors, .max_errors = 3 }), -EIO);
        return 0;
}

static int three_of_the_library_fail(__attribute__((unused)) void *arg)
{
        RESHA_GROUP(g);

        resha_group_begin(&g, &(resha_group_opts){ .keep_going = true });
        rs_group_of(&g)->child_done = rs_group_passes_over;
        for (int i = 0; i < 3; i++)
                resha_spawn(&g, fails, NULL);
        ASSERT_EQ(resha_group_end(&g, 0), -EIO);
        return 0;
}

TEST(debug_tells_of_failures_that_nobody_looks_at)
{
        ASSERT_OK(run(three_fail, true));
        ASSERT_EQ(told.reports, 2); /* the first one is the group's result */
        ASSERT_HAS(told.text, "fails: a failure was lost: no disk");
        ASSERT_OK(run(three_are_kept, true));
        ASSERT_EQ(told.reports, 0);
        ASSERT_OK(run(three_of_the_library_fail, true));
        ASSERT_EQ(told.reports, 0);
        ASSERT_OK(run(three_fail, false));
        ASSERT_EQ(told.reports, 0);
}

/* ---- items of a channel ---- */

static int drops(__attribute__((unused)) void *arg)
{
        resha_receiver *rx;
        resha_sender *tx;
        int x = 1;

        ASSERT_OK(resha_channel_new(sizeof x, 3, &tx, &rx));
        ASSERT_EQ(1, resha_send(tx, &x));
        ASSERT_EQ(1, resha_send(tx, &x));
        resha_receiver_close(rx);
        resha_sender_close(tx);
        return 0;
}

TEST(debug_tells_of_items_that_a_channel_drops)
{
        ASSERT_OK(run(drops, true));
        ASSERT_HAS(told.text, "2 items of a channel were dropped when its last receiver was closed");
        ASSERT_OK(run(drops, false));
        ASSERT_EQ(told.reports, 0);
}

/* ---- without a sink ---- */

static int in_a_child(__attribute__((unused)) void *arg)
{
        return test_run_opts(leaks, NULL, &(resha_run_opts){ .debug = true });
}

TEST(debug_prints_where_the_run_has_no_sink)
{
        struct test_child c;

        test_child(in_a_child, NULL, &c);
        ASSERT_TRUE(strncmp(c.text, "resha: left open: queue", 23) == 0);
}

/* ---- slow steps ---- */

static int slow(__attribute__((unused)) void *arg)
{
        int64_t until = rs_now(rs_loop_current) + 60 * 1000000;

        while (rs_now(rs_loop_current) < until)
                ;
        return resha_yield();
}

TEST(semantics_315_debug_tells_of_slow_steps)
{
        if (test_is_sim())
                test_skip("needs a clock that goes by itself");
        ASSERT_OK(run(slow, true));
        ASSERT_HAS(told.text, "main: ran for ");
        ASSERT_HAS(told.text, " meanwhile; the stack is where it waited then");
        ASSERT_OK(run(slow, false));
        ASSERT_EQ(told.reports, 0);
}
