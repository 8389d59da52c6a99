/* SPDX-License-Identifier: MIT */
/* Counters of a loop, the text of all figures, and where the lag of the loop is counted. */

#include <resha/alloc.h>
#include <resha/stats.h>

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "core/core.h"
#include "job.h"
#include "sys/observe.h"

/* ---- counters ---- */

static int naps(__attribute__((unused)) void *arg)
{
        return resha_sleep(RESHA_MS(20));
}

TASK(stats_count_tasks_timers_and_sleeps)
{
        resha_stats before, after;
        RESHA_GROUP(g);

        ASSERT_OK(resha_stats_get(&before));
        resha_group_begin(&g, NULL);
        for (int i = 0; i < 10; i++)
                resha_spawn(&g, naps, NULL);
        ASSERT_OK(resha_yield()); /* they have begun to sleep */
        ASSERT_OK(resha_stats_get(&after));
        ASSERT_EQ(after.spawned - before.spawned, 10);
        ASSERT_EQ(after.tasks, 11);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_OK(resha_stats_get(&after));
        ASSERT_EQ(after.ended - before.ended, 10);
        ASSERT_EQ(after.timers - before.timers, 10);
        ASSERT_EQ(after.tasks, 1);
        ASSERT_TRUE(after.sleeps > before.sleeps);
        ASSERT_TRUE(after.polls > before.polls);
        ASSERT_TRUE(after.slept.ns - before.slept.ns >= 15 * 1000000);
        ASSERT_TRUE(after.age.ns >= after.slept.ns);
        ASSERT_TRUE(after.switches > before.switches + 10);
        ASSERT_TRUE(after.stacks >= 10);
        return 0;
}

TASK(stats_count_who_is_ready)
{
        resha_stats s;
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        for (int i = 0; i < 7; i++)
                resha_spawn(&g, naps, NULL);
        ASSERT_OK(resha_stats_get(&s));
        ASSERT_EQ(s.ready, 7);
        return resha_group_end(&g, 0);
}

TASK(stats_count_what_is_open)
{
        resha_stats before, s;
        resha_stream *pair[2];
        resha_queue *q = NULL;

        ASSERT_OK(resha_stats_get(&before));
        ASSERT_OK(resha_stream_pair(pair));
        ASSERT_OK(resha_queue_new(4, 3, NULL, &q));
        ASSERT_OK(resha_stats_get(&s));
        ASSERT_EQ(s.shown - before.shown, 3);
        ASSERT_EQ(s.descriptors - before.descriptors, test_is_sim() ? 0 : 2);
        resha_queue_free(q);
        resha_stream_close(pair[0]);
        resha_stream_close(pair[1]);
        ASSERT_OK(resha_stats_get(&s));
        ASSERT_EQ(s.shown, before.shown);
        ASSERT_EQ(s.descriptors, before.descriptors);
        return 0;
}

TASK(stats_count_wake_ups_by_the_world)
{
        resha_stats before, after;
        char byte;

        ASSERT_OK(resha_stats_get(&before));
        resha_stream *pair[2];
        ASSERT_OK(resha_stream_pair(pair));
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, RESHA_MS(5));
        ASSERT_EQ(resha_scope_end(&s, (int)resha_read(pair[0], &byte, 1)), -ETIME);
        ASSERT_EQ(resha_write_all(pair[1], "x", 1, NULL), 0);
        ASSERT_EQ(resha_read(pair[0], &byte, 1), 1);
        ASSERT_OK(resha_stats_get(&after));
        ASSERT_TRUE(after.timers > before.timers);
        resha_stream_close(pair[0]);
        resha_stream_close(pair[1]);
        return 0;
}

TEST(stats_outside_of_a_loop_are_refused)
{
        resha_stats s;
        char *text;

        ASSERT_EQ(resha_stats_get(&s), -EPERM);
        ASSERT_EQ(resha_stats_text(&text, NULL), -EPERM);
        ASSERT_EQ(resha_stats_write(1), -EPERM);
}

/* ---- the lag ---- */

TEST(lag_buckets_are_powers_of_two_of_nanoseconds)
{
        const int64_t top = INT64_C(1) << (10 + RESHA_LAG_BUCKETS - 2);

        ASSERT_EQ(rs_lag_bucket(0), 0);
        ASSERT_EQ(rs_lag_bucket(1), 0);
        ASSERT_EQ(rs_lag_bucket(1024), 0);
        ASSERT_EQ(rs_lag_bucket(1025), 1);
        ASSERT_EQ(rs_lag_bucket(2048), 1);
        ASSERT_EQ(rs_lag_bucket(2049), 2);
        ASSERT_EQ(rs_lag_bucket(top), RESHA_LAG_BUCKETS - 2);
        ASSERT_EQ(rs_lag_bucket(top + 1), RESHA_LAG_BUCKETS - 1);
        ASSERT_EQ(rs_lag_bucket(INT64_MAX), RESHA_LAG_BUCKETS - 1);
}

static uint64_t longer_than(const resha_stats *s, unsigned bucket)
{
        uint64_t n = 0;

        for (unsigned i = bucket; i < RESHA_LAG_BUCKETS; i++)
                n += s->lag[i];
        return n;
}

TASK(lag_has_the_time_that_a_task_kept_the_loop)
{
        resha_stats before, after;

        if (test_is_sim())
                test_skip("needs a clock that goes by itself");
        ASSERT_OK(resha_sleep(RESHA_MS(1)));
        ASSERT_OK(resha_stats_get(&before));
        int64_t until = rs_now(rs_loop_current) + 40 * 1000000;
        while (rs_now(rs_loop_current) < until)
                ;
        ASSERT_OK(resha_sleep(RESHA_MS(1)));
        ASSERT_OK(resha_stats_get(&after));
        unsigned bucket = rs_lag_bucket(40 * 1000000);
        ASSERT_TRUE(longer_than(&after, bucket) > longer_than(&before, bucket));
        ASSERT_TRUE(after.lag_most.ns >= 40 * 1000000);
        ASSERT_TRUE(after.lag_sum.ns - before.lag_sum.ns >= 40 * 1000000);
        return 0;
}

/* ---- the text ---- */

static void text_free(char **text)
{
        resha_free(*text);
}

static uint64_t values[3] = { 3, 1500000000, 7 };
static const resha_figure figures[3] = {
        { "t_requests_total", "Requests \\ of\nthe test.", RESHA_FIGURE_COUNTER, false },
        { "t_wait_seconds", "The longest.", RESHA_FIGURE_MOST, true },
        { "t_now", "Now.", RESHA_FIGURE_GAUGE, false },
};
static const resha_shown_kind kind = { .kind = "thing", .figures = figures, .count = 3, .label = "host" };

TASK(stats_text_has_figures_with_their_labels_escaped)
{
        resha_shown s RESHA_CLEANUP(resha_shown_end) = { { 0 } }, t RESHA_CLEANUP(resha_shown_end) = { { 0 } };
        char *text RESHA_CLEANUP(text_free) = NULL;
        size_t size;

        ASSERT_OK(resha_shown_begin(&s, &kind, NULL, "a\"b\\c\n\xff", values, NULL));
        ASSERT_OK(resha_shown_begin(&t, &kind, NULL, "plain", values, NULL));
        ASSERT_OK(resha_stats_text(&text, &size));
        ASSERT_EQ(strlen(text), size);
        ASSERT_HAS(text, "# HELP t_requests_total Requests \\\\ of\\nthe test.\n");
        ASSERT_HAS(text, "# TYPE t_requests_total counter\n");
        ASSERT_HAS(text, ",host=\"a\\\"b\\\\c\\n?\"} 3\n");
        ASSERT_HAS(text, ",host=\"plain\"} 1.500000000\n");
        ASSERT_HAS(text, "# TYPE resha_loop_lag_seconds histogram\n");
        return 0;
}

TASK(stats_of_objects_with_one_name_are_taken_together)
{
        uint64_t more[3] = { 10, 100, 1 };
        resha_shown s RESHA_CLEANUP(resha_shown_end) = { { 0 } }, t RESHA_CLEANUP(resha_shown_end) = { { 0 } };
        char *text RESHA_CLEANUP(text_free) = NULL;

        ASSERT_OK(resha_shown_begin(&s, &kind, NULL, "x", values, NULL));
        ASSERT_OK(resha_shown_begin(&t, &kind, NULL, "x", more, NULL));
        ASSERT_OK(resha_stats_text(&text, NULL));
        ASSERT_HAS(text, ",host=\"x\"} 13\n");          /* the sum */
        ASSERT_HAS(text, ",host=\"x\"} 1.500000000\n"); /* the largest */
        ASSERT_HAS(text, ",host=\"x\"} 8\n");
        return 0;
}

TASK(stats_keep_what_objects_counted_that_have_ended)
{
        uint64_t mine[3] = { 7, 5, 2 };
        resha_shown s RESHA_CLEANUP(resha_shown_end) = { { 0 } }, t RESHA_CLEANUP(resha_shown_end) = { { 0 } };
        char name[] = "past", other[] = "past", *text RESHA_CLEANUP(text_free) = NULL;

        ASSERT_OK(resha_shown_begin(&s, &kind, NULL, name, mine, NULL));
        ASSERT_OK(resha_shown_begin(&t, &kind, NULL, other, values, NULL));
        resha_shown_end(&s);
        memset(name, 'z', 4); /* its owner's */
        memset(mine, 0xff, sizeof mine);
        ASSERT_OK(resha_stats_text(&text, NULL));
        ASSERT_HAS(text, "t_requests_total{loop=");
        ASSERT_HAS(text, ",host=\"past\"} 10\n"); /* 7 and 3 */
        ASSERT_HAS(text, ",host=\"past\"} 7\n");  /* a gauge: of the one that is there */
        text_free(&text);
        text = NULL;
        resha_shown_end(&t);
        ASSERT_OK(resha_stats_text(&text, NULL));
        ASSERT_HAS(text, ",host=\"past\"} 10\n");
        ASSERT_TRUE(strstr(text, "t_now") == NULL);
        return 0;
}

TASK(stats_text_has_nothing_that_a_reader_refuses)
{
        static const resha_figure odd[2] = {
                { "resha_loop_lag_seconds_sum", "Ours.", RESHA_FIGURE_COUNTER, false },
                { "t_odd", "Odd.", RESHA_FIGURE_GAUGE, false },
        };
        static const resha_shown_kind ours = { .kind = "x", .figures = odd, .count = 2, .label = "loop" },
                                      theirs = { .kind = "x", .figures = odd, .count = 2, .label = "__name__" };
        /* too long, half of a pair, beyond the last, and what is fine */
        static const char name[] = "\xe0\x80\x80 \xed\xa0\x80 \xf4\x90\x80\x80 \xf0\x80\x80\x80 \xe2\x82\xac";
        resha_shown s RESHA_CLEANUP(resha_shown_end) = { { 0 } }, t RESHA_CLEANUP(resha_shown_end) = { { 0 } };
        char *text RESHA_CLEANUP(text_free) = NULL;

        ASSERT_OK(resha_shown_begin(&s, &ours, NULL, name, values, NULL));
        ASSERT_OK(resha_shown_begin(&t, &theirs, NULL, "n", values, NULL));
        ASSERT_OK(resha_stats_text(&text, NULL));
        ASSERT_HAS(text, ",name=\"??? ??? ???? ???? \xe2\x82\xac\"} ");
        ASSERT_HAS(text, ",name=\"n\"} ");
        const char *sum = strstr(text, "\nresha_loop_lag_seconds_sum{");
        ASSERT_TRUE(sum != NULL && strstr(sum + 1, "\nresha_loop_lag_seconds_sum{") == NULL);
        ASSERT_TRUE(strstr(text, "loop=\"1\",loop=") == NULL);
        return 0;
}

TASK(stats_text_without_memory_is_refused_and_leaks_nothing)
{
        char *text RESHA_CLEANUP(text_free) = NULL;
        int rc = -ENOMEM;

        for (long n = 1; rc == -ENOMEM && n < 100; n++) {
                rs_alloc_fail_after(n, false);
                rc = resha_stats_text(&text, NULL);
                rs_alloc_fail_after(0, false);
                ASSERT_TRUE(rc == 0 || rc == -ENOMEM);
        }
        ASSERT_OK(rc);
        return 0;
}

TASK(stats_to_a_descriptor_that_cannot_be_written_say_why)
{
        ASSERT_EQ(resha_stats_write(-1), -EBADF);
        ASSERT_TRUE(strstr(resha_error_of(-EBADF)->text, "statistics to descriptor -1") != NULL);
        return 0;
}

/* ---- of another thread's loop ---- */

static struct rs_inbox *other; /* its loop's; atomic */

static int sleeps_long(__attribute__((unused)) void *arg)
{
        __atomic_store_n(&other, rs_inbox_ref(rs_loop_current->inbox), __ATOMIC_SEQ_CST);
        return resha_sleep(RESHA_S(60));
}

static void *run_beside(void *arg)
{
        ASSERT_EQ(resha_run(sleeps_long, arg, &(resha_run_opts){ .backend = test_backend() }), -ECANCELED);
        return NULL;
}

/* The most that a loop has slept, in seconds. */
static double most_idle(void)
{
        static const char name[] = "\nresha_loop_idle_seconds_total{";
        double most = 0;
        char *text;

        ASSERT_OK(resha_stats_text(&text, NULL));
        for (const char *p = text; (p = strstr(p, name)); p++) {
                double s = strtod(strchr(p, '}') + 1, NULL);
                most = s > most ? s : most;
        }
        resha_free(text);
        return most;
}

/* Asked once: the question wakes it, and what it has slept is in a counter then. */
TASK(stats_have_the_sleep_that_a_loop_is_in)
{
        pthread_t thread;

        if (test_is_sim())
                test_skip("needs a clock that goes by itself");
        if (!rs_observe_read(&(char){ 0 }, "x", 1))
                test_skip("the kernel copies no memory here");
        ASSERT_EQ(pthread_create(&thread, NULL, run_beside, NULL), 0);
        while (!__atomic_load_n(&other, __ATOMIC_SEQ_CST) || !rs_inbox_sleeps(other))
                sched_yield();
        for (int64_t until = rs_now(rs_loop_current) + 20000000; rs_now(rs_loop_current) < until;)
                sched_yield();
        double idle = most_idle();
        ASSERT_TRUE(idle > 0.01);
        ASSERT_TRUE(idle < 60);
        ASSERT_TRUE(most_idle() >= idle);
        rs_inbox_cancel(other, RESHA_SITE);
        rs_inbox_unref(other);
        ASSERT_EQ(pthread_join(thread, NULL), 0);
        return 0;
}
