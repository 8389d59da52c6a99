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
        ASSERT_EQ(resha_limiter_init(&l, 1, RESHA_S(1), 2), -EINVAL);
        ASSERT_EQ(resha_limiter_init(&l, 1000000, RESHA_S(30 * 24 * 3600), 1), 0);
        ASSERT_EQ(resha_limiter_init(&l, 1000000, RESHA_S(30 * 24 * 3600), 1000000), 0);
        ASSERT_EQ(resha_limiter_init(&l, 1000000, RESHA_US(1), 500000), 0);
        resha_rate rates[RESHA_RATES_MAX + 1];
        for (int i = 0; i <= RESHA_RATES_MAX; i++)
                rates[i] = (resha_rate){ .count = 1, .per = RESHA_S(1) };
        ASSERT_EQ(resha_limiter_init_rates(&l, rates, 0), -EINVAL);
        ASSERT_EQ(resha_limiter_init_rates(&l, rates, RESHA_RATES_MAX + 1), -EINVAL);
        ASSERT_EQ(resha_limiter_init_rates(&l, rates, RESHA_RATES_MAX), 0);
        rates[2].count = 0;
        ASSERT_EQ(resha_limiter_init_rates(&l, rates, 3), -EINVAL);
}

TASK(limiter_without_a_rate)
{
        resha_limiter l = { { 0 } };

        ASSERT_EQ(resha_limiter_acquire(&l), -EINVAL);
        ASSERT_HAS(resha_error_of(-EINVAL)->text, "resha_limiter_init()");
        ASSERT_EQ(resha_limiter_acquire_by(&l, RESHA_NEVER), -EINVAL);
        ASSERT_EQ(resha_limiter_try_acquire(&l), -EINVAL);
        return 0;
}

TEST(limiter_outside_a_task)
{
        resha_limiter l;

        ASSERT_OK(resha_limiter_init(&l, 1, RESHA_S(1), 1));
        ASSERT_EQ(resha_limiter_acquire(&l), -EPERM);
        ASSERT_EQ(resha_limiter_acquire_by(&l, RESHA_NEVER), -EPERM);
        ASSERT_EQ(resha_limiter_try_acquire(&l), -EPERM);
        resha_limiter_pause_until(&l, RESHA_NEVER);
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
        /* The two early ones are paid for within the second, in which there are ten; from then on it is even. */
        ASSERT_STR(times_of(&l, 13), "0 0 0 125 250 375 500 625 750 875 1000 1100 1200");
        ASSERT_OK(resha_sleep(RESHA_S(60))); /* no more than a burst is saved up */
        ASSERT_STR(times_of(&l, 6), "0 0 0 125 250 375");
        ASSERT_OK(resha_sleep(MS(150))); /* one of three has leaked away */
        ASSERT_STR(times_of(&l, 3), "0 100 225");
        return 0;
}

TASK(limiter_burst_of_all)
{
        resha_limiter l;

        SIM_ONLY();
        ASSERT_OK(resha_limiter_init(&l, 4, RESHA_S(1), 4));
        ASSERT_STR(times_of(&l, 11), "0 0 0 0 1000 1000 1000 1000 2000 2000 2000");
        ASSERT_OK(resha_sleep(MS(999)));
        ASSERT_STR(times_of(&l, 3), "0 1 1001"); /* one is left of the burst, then one leaks away in each second */
        ASSERT_OK(resha_sleep(MS(1000)));
        ASSERT_STR(times_of(&l, 5), "0 0 0 0 1000");
        return 0;
}

TASK(limiter_several_rates_hold_at_once)
{
        resha_limiter l;
        const resha_rate rates[] = { { .count = 2, .per = MS(100), .burst = 2 },
                                     { .count = 5, .per = RESHA_S(1), .burst = 5 } };

        SIM_ONLY();
        ASSERT_OK(resha_limiter_init_rates(&l, rates, 2));
        ASSERT_STR(times_of(&l, 12), "0 0 100 100 200 1000 1200 1400 1600 1800 2000 2200");
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

TASK(limiter_turn_of_nobody)
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
        ASSERT_OK(resha_sleep(MS(150))); /* nobody is there at 100 */
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "!");
        ASSERT_OK(resha_limiter_try_acquire(&l));
        return 0;
}

TASK(limiter_turn_of_a_cancelled_waiter_goes_to_those_behind)
{
        resha_limiter l;
        resha_instant zero = resha_now();
        struct start s[3];

        SIM_ONLY();
        ASSERT_OK(resha_limiter_init(&l, 10, RESHA_S(1), 0));
        ASSERT_OK(resha_limiter_acquire(&l));
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (size_t i = 0; i < 3; i++) {
                s[i] = (struct start){ .limiter = &l, .zero = zero };
                ASSERT_OK(resha_spawn_task(&g, starts, &s[i], &s[i].task));
        }
        ASSERT_OK(resha_sleep(MS(50)));
        resha_task_cancel(&s[0].task); /* the first in line, and one amid it: the line moves up */
        resha_task_cancel(&s[1].task);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "! ! 100");
        ASSERT_OK(resha_limiter_acquire(&l));
        ASSERT_PASSED(zero, 200);
        return 0;
}

TASK(limiter_pause_holds_back_those_in_line)
{
        resha_limiter l;
        struct start s = { .limiter = &l, .zero = resha_now() };

        SIM_ONLY();
        ASSERT_OK(resha_limiter_init(&l, 10, RESHA_S(1), 0));
        ASSERT_OK(resha_limiter_acquire(&l));
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, starts, &s); /* was to start at 100 */
        ASSERT_OK(resha_yield());
        resha_limiter_pause_until(&l, resha_after(MS(500)));
        resha_limiter_pause_until(&l, resha_after(MS(300))); /* the later one holds */
        resha_spawn(&g, starts, &s);
        resha_spawn(&g, starts, &s);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "500 600 700");
        return 0;
}

TASK(limiter_pause_saves_nothing_up)
{
        resha_limiter l;

        SIM_ONLY();
        ASSERT_OK(resha_limiter_init(&l, 10, RESHA_S(1), 3));
        resha_limiter_pause_until(&l, resha_after(RESHA_S(60)));
        ASSERT_STR(times_of(&l, 5), "60000 60000 60000 60125 60250");
        return 0;
}

TASK(limiter_try_does_not_overtake)
{
        resha_limiter l;
        struct start s = { .limiter = &l, .zero = resha_now() };

        SIM_ONLY();
        ASSERT_OK(resha_limiter_init(&l, 10, RESHA_S(1), 2));
        ASSERT_OK(resha_limiter_try_acquire(&l));
        ASSERT_OK(resha_limiter_try_acquire(&l));
        ASSERT_EQ(resha_limiter_try_acquire(&l), -EAGAIN);
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, starts, &s);
        ASSERT_OK(resha_sleep(MS(111)));
        ASSERT_EQ(resha_limiter_try_acquire(&l), -EAGAIN); /* somebody waits */
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "111");
        ASSERT_OK(resha_sleep(MS(1000)));
        ASSERT_OK(resha_limiter_try_acquire(&l));
        return 0;
}

/* Between its turn and the return of its call a starter is the first still. */
TASK(limiter_nobody_overtakes_one_that_was_let_go)
{
        resha_limiter l;
        struct start s = { .limiter = &l, .zero = resha_now() };

        SIM_ONLY();
        ASSERT_OK(resha_limiter_init(&l, 10, RESHA_S(1), 2));
        ASSERT_OK(resha_limiter_acquire(&l));
        resha_limiter_pause_until(&l, resha_after(MS(20)));
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, starts, &s);
        ASSERT_OK(resha_sleep_until((resha_instant){ s.zero.ns + MS(20).ns })); /* set first, fires first: runs first */
        ASSERT_EQ(resha_limiter_try_acquire(&l), -EAGAIN);
        ASSERT_EQ(resha_limiter_acquire_by(&l, resha_after(MS(50))), -ETIME);
        ASSERT_PASSED(s.zero, 20); /* at once: it is known that one starts now */
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "20");
        return 0;
}

/* ---- reservations that fail early ---- */

TASK(limiter_acquire_by_fails_at_once_if_its_turn_would_be_late)
{
        resha_limiter l;
        struct start s = { .limiter = &l, .zero = resha_now() };

        SIM_ONLY();
        ASSERT_OK(resha_limiter_init(&l, 10, RESHA_S(1), 0));
        ASSERT_OK(resha_limiter_acquire_by(&l, s.zero));
        ASSERT_EQ(resha_limiter_acquire_by(&l, resha_after(RESHA_NS(99999999))), -ETIME);
        ASSERT_HAS(resha_error_of(-ETIME)->text, "after the deadline");
        ASSERT_EQ(resha_limiter_acquire_by(&l, (resha_instant){ s.zero.ns - 1 }), -ETIME);
        ASSERT_PASSED(s.zero, 0);
        ASSERT_OK(resha_limiter_acquire_by(&l, resha_after(MS(100)))); /* a turn at that very time is in time */
        ASSERT_PASSED(s.zero, 100);
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, starts, &s); /* at 200 */
        resha_spawn(&g, starts, &s); /* at 300 */
        ASSERT_OK(resha_yield());
        ASSERT_EQ(resha_limiter_acquire_by(&l, (resha_instant){ s.zero.ns + MS(399).ns }), -ETIME);
        ASSERT_PASSED(s.zero, 100);
        ASSERT_OK(resha_limiter_acquire_by(&l, (resha_instant){ s.zero.ns + MS(400).ns }));
        ASSERT_PASSED(s.zero, 400);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "200 300");
        return 0;
}

TASK(limiter_acquire_by_counts_a_pause)
{
        resha_limiter l;
        resha_instant start = resha_now();

        SIM_ONLY();
        ASSERT_OK(resha_limiter_init(&l, 10, RESHA_S(1), 0));
        resha_limiter_pause_until(&l, resha_after(RESHA_S(5)));
        ASSERT_EQ(resha_limiter_acquire_by(&l, resha_after(MS(4999))), -ETIME);
        ASSERT_PASSED(start, 0);
        ASSERT_OK(resha_limiter_acquire_by(&l, resha_after(MS(5000))));
        ASSERT_PASSED(start, 5000);
        resha_limiter_pause_until(&l, RESHA_NEVER);
        ASSERT_EQ(resha_limiter_acquire_by(&l, (resha_instant){ INT64_MAX - 1 }), -ETIME);
        return 0;
}

static int pauses(void *limiter)
{
        int rc = resha_sleep(MS(50));

        if (rc >= 0)
                resha_limiter_pause_until(limiter, RESHA_NEVER);
        return rc;
}

TASK(limiter_acquire_by_that_is_put_off_fails_in_time)
{
        resha_limiter l;
        resha_instant start = resha_now();

        SIM_ONLY();
        ASSERT_OK(resha_limiter_init(&l, 10, RESHA_S(1), 0));
        ASSERT_OK(resha_limiter_acquire(&l));
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, pauses, &l);
        ASSERT_EQ(resha_limiter_acquire_by(&l, resha_after(MS(200))), -ETIME);
        ASSERT_EQ(ms_since(start), 200);
        ASSERT_HAS(resha_error_of(-ETIME)->text, "put its turn off");
        ASSERT_OK(resha_group_end(&g, 0));
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

static int hogs(__attribute__((unused)) void *arg)
{
        resha_instant start = resha_now();

        while (ms_since(start) < 40)
                ;
        return 0;
}

/* A start counts from the return of the call: one that a busy loop made late is not followed too soon. */
TASK(limiter_late_start_is_entered_late)
{
        resha_limiter l;
        resha_instant start = resha_now();

        if (test_is_sim())
                test_skip("needs a clock that goes while a task runs");
        ASSERT_OK(resha_limiter_init(&l, 1, MS(20), 0));
        ASSERT_OK(resha_limiter_acquire(&l));
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, hogs, NULL);
        ASSERT_OK(resha_limiter_acquire(&l)); /* its turn is at 20 */
        ASSERT_TRUE(ms_since(start) >= 40);
        resha_instant second = resha_now();
        ASSERT_OK(resha_limiter_acquire(&l));
        ASSERT_TRUE(ms_since(second) >= 15);
        return resha_group_end(&g, 0);
}

static int sees_turn(void *turns)
{
        ++*(int *)turns;
        return 0;
}

TASK(limiter_that_never_waits_lets_others_run)
{
        resha_limiter l;
        int turns = 0;

        ASSERT_OK(resha_limiter_init(&l, 1000000, RESHA_S(1), 1000000));
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, sees_turn, &turns);
        for (int i = 0; i < 64; i++)
                ASSERT_OK(resha_limiter_acquire(&l));
        ASSERT_EQ(turns, 1);
        return resha_group_end(&g, 0);
}

TASK(limiter_acquire_by_that_fails_at_once_lets_others_run)
{
        resha_limiter l;
        int turns = 0;

        ASSERT_OK(resha_limiter_init(&l, 1, RESHA_S(1), 0));
        ASSERT_OK(resha_limiter_acquire(&l));
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, sees_turn, &turns);
        for (int i = 0; i < 63; i++)
                ASSERT_EQ(resha_limiter_acquire_by(&l, resha_now()), -ETIME);
        ASSERT_EQ(turns, 1);
        return resha_group_end(&g, 0);
}

/* What comes behind the end of the clock never comes: by no rule is it wrapped round to the past. */
TASK(limiter_at_the_end_of_time)
{
        const resha_rate rates[] = { { .count = 2, .per = RESHA_S(10), .burst = 2 },
                                     { .count = 3, .per = RESHA_S(30 * 24 * 3600), .burst = 1 } };

        SIM_ONLY();
        ASSERT_OK(resha_sleep_until((resha_instant){ INT64_MAX - 1000000000 }));
        for (size_t i = 0; i < 2; i++) {
                resha_limiter l;
                ASSERT_OK(resha_limiter_init_rates(&l, &rates[i], 1));
                for (unsigned k = 0; k < rates[i].burst; k++)
                        ASSERT_OK(resha_limiter_acquire_by(&l, RESHA_NEVER));
                ASSERT_EQ(resha_limiter_try_acquire(&l), -EAGAIN);
                ASSERT_EQ(resha_limiter_acquire_by(&l, (resha_instant){ INT64_MAX - 1 }), -ETIME);
                ASSERT_EQ(resha_timeout(RESHA_MS(5), acquires, &l), -ETIME);
        }
        return 0;
}
