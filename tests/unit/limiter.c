/* SPDX-License-Identifier: MIT */
/* The rate limiter. */

#include "job.h"

struct start {
        resha_limiter *limiter;
        resha_instant zero;
        resha_task task;
};

static int starts(void *arg)
{
        struct start *s = arg;
        int rc = resha_limiter_acquire(s->limiter);

        if (rc < 0)
                note("!");
        else
                note("%lld", (long long)ms_since(s->zero));
        return rc;
}

static const char *times_of(resha_limiter *l, int n)
{
        struct start s[32];

        for (int i = 0; i < n; i++)
                s[i] = (struct start){ .limiter = l, .zero = resha_now() };
        ASSERT_OK(resha_gather(starts, s, (size_t)n, sizeof s[0], NULL));
        return notes();
}

TEST(limiter_checks_its_numbers)
{
        resha_limiter l;

        ASSERT_EQ(resha_limiter_init(&l, 0, RESHA_S(1), 0), -EINVAL);
        ASSERT_EQ(resha_limiter_init(&l, 1000001, RESHA_S(1), 0), -EINVAL);
        ASSERT_EQ(resha_limiter_init(&l, 1, RESHA_NS(999), 0), -EINVAL);
        ASSERT_EQ(resha_limiter_init(&l, 1, RESHA_S(31 * 24 * 3600), 0), -EINVAL);
        ASSERT_EQ(resha_limiter_init(&l, 1, RESHA_S(-1), 0), -EINVAL);
        ASSERT_EQ(resha_limiter_init(&l, 1, RESHA_US(1), 0), 0);
        ASSERT_EQ(resha_limiter_init(&l, 1000000, RESHA_S(30 * 24 * 3600), 1), 0);
}

TASK(limiter_spaces_evenly)
{
        resha_limiter l;

        SIM_ONLY();
        ASSERT_OK(resha_limiter_init(&l, 10, RESHA_S(1), 0));
        ASSERT_STR(times_of(&l, 12), "0 100 200 300 400 500 600 700 800 900 1000 1100");
        return 0;
}

static int acquires(void *limiter)
{
        return resha_limiter_acquire(limiter);
}

TASK(limiter_paused_for_ever)
{
        resha_limiter l;

        ASSERT_OK(resha_limiter_init(&l, 10, RESHA_S(1), 0));
        resha_limiter_pause_until(&l, RESHA_NEVER);
        ASSERT_EQ(resha_timeout(MS(5), acquires, &l), -ETIME);
        ASSERT_EQ(resha_timeout(MS(5), acquires, &l), -ETIME);
        return 0;
}

TASK(limiter_burst_after_a_pause)
{
        resha_limiter l;

        SIM_ONLY();
        ASSERT_OK(resha_limiter_init(&l, 10, RESHA_S(1), 3));
        ASSERT_STR(times_of(&l, 6), "0 0 0 100 200 300");
        ASSERT_OK(resha_sleep(MS(150))); /* one more place by then */
        ASSERT_STR(times_of(&l, 3), "0 50 150");
        ASSERT_OK(resha_sleep(RESHA_S(60))); /* no more than a burst is saved up */
        ASSERT_STR(times_of(&l, 5), "0 0 0 100 200");
        return 0;
}

static int random_starts(__attribute__((unused)) void *arg)
{
        resha_limiter l;
        int64_t at[200];

        ASSERT_OK(resha_limiter_init(&l, 10, RESHA_S(1), 1));
        for (int i = 0; i < 200; i++) {
                if (i % 3 == 0)
                        ASSERT_OK(resha_sleep(MS(i * 37 % 211)));
                ASSERT_OK(resha_limiter_acquire(&l));
                at[i] = resha_now().ns;
                if (i >= 10) /* eleven starts never fit into a second */
                        ASSERT_TRUE(at[i] - at[i - 10] >= 1000000000);
        }
        return 0;
}

TASK(limiter_no_window_has_more_than_count)
{
        SIM_ONLY();
        return random_starts(NULL);
}

TASK(limiter_uneven_rate_is_never_exceeded)
{
        resha_limiter l;
        int64_t at[30];

        SIM_ONLY();
        ASSERT_OK(resha_limiter_init(&l, 7, RESHA_S(1), 0)); /* 142857142.86 ns */
        for (int i = 0; i < 30; i++) {
                ASSERT_OK(resha_limiter_acquire(&l));
                at[i] = resha_now().ns;
                if (i >= 7)
                        ASSERT_TRUE(at[i] - at[i - 7] >= 1000000000);
        }
        ASSERT_TRUE(at[28] - at[0] < 4000000100);
        return 0;
}

TASK(limiter_turn_of_a_cancelled_caller_is_given_back)
{
        resha_limiter l;
        struct start s = { .limiter = &l, .zero = resha_now() };

        SIM_ONLY();
        ASSERT_OK(resha_limiter_init(&l, 10, RESHA_S(1), 0));
        ASSERT_OK(resha_limiter_acquire(&l));
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, starts, &s, &s.task));
        ASSERT_OK(resha_sleep(MS(50)));
        resha_task_cancel(&s.task);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "!");
        ASSERT_OK(resha_limiter_acquire(&l));
        ASSERT_PASSED(s.zero, 100); /* and not 200 */
        return 0;
}

TASK(limiter_pause)
{
        resha_limiter l;
        struct start s = { .limiter = &l, .zero = resha_now() };

        SIM_ONLY();
        ASSERT_OK(resha_limiter_init(&l, 10, RESHA_S(1), 0));
        ASSERT_OK(resha_limiter_acquire(&l));
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, starts, &s); /* at 100: waits already, is not held back */
        ASSERT_OK(resha_yield());
        resha_limiter_pause_until(&l, resha_after(MS(500)));
        resha_limiter_pause_until(&l, resha_after(MS(300))); /* the later one holds */
        resha_spawn(&g, starts, &s);
        resha_spawn(&g, starts, &s);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "100 500 600");
        return 0;
}

TASK(limiter_in_real_time_is_never_early)
{
        resha_limiter l;
        resha_instant start = resha_now();

        ASSERT_OK(resha_limiter_init(&l, 5, MS(5), 0));
        for (int i = 0; i < 5; i++) {
                ASSERT_OK(resha_limiter_acquire(&l));
                ASSERT_TRUE(ms_since(start) >= i);
        }
        return 0;
}
