/* SPDX-License-Identifier: MIT */
/* Durations, instants, sleeping, tickers. */

#include <stdlib.h>
#include <time.h>

#include "core/core.h"
#include "job.h"

TEST(time_units)
{
        ASSERT_EQ(RESHA_NS(7).ns, 7);
        ASSERT_EQ(RESHA_US(7).ns, 7000);
        ASSERT_EQ(RESHA_MS(1.5).ns, 1500000);
        ASSERT_EQ(RESHA_S(0.25).ns, 250000000);
        ASSERT_EQ(RESHA_S(-1).ns, -1000000000);
}

TEST(time_saturates)
{
        ASSERT_EQ(resha_after(RESHA_FOREVER).ns, RESHA_NEVER.ns);
        ASSERT_EQ(resha_after(RESHA_NS(INT64_MAX - 1)).ns, INT64_MAX);
        resha_instant low = { INT64_MIN + 1 }, high = { INT64_MAX - 1 };
        ASSERT_EQ(resha_between(low, high).ns, INT64_MAX);
        ASSERT_EQ(resha_between(high, low).ns, INT64_MIN);
        ASSERT_EQ(resha_between((resha_instant){ 3 }, (resha_instant){ 10 }).ns, 7);
}

TEST(time_outside_a_loop_is_the_monotonic_clock)
{
        struct timespec a, b;

        clock_gettime(CLOCK_MONOTONIC, &a);
        int64_t now = resha_now().ns;
        clock_gettime(CLOCK_MONOTONIC, &b);
        ASSERT_TRUE(now >= a.tv_sec * INT64_C(1000000000) + a.tv_nsec);
        ASSERT_TRUE(now <= b.tv_sec * INT64_C(1000000000) + b.tv_nsec);
}

TEST(time_sleep_outside_a_task)
{
        ASSERT_EQ(resha_sleep(MS(1)), -EPERM);
        ASSERT_EQ(resha_sleep_until(resha_now()), -EPERM);
}

/* semantics 8 better
 * asyncio: a timer may fire early by the resolution of the clock.
 * resha: a sleep is never early, not by a nanosecond. */
TASK(semantics_8_sleep_is_never_early)
{
        for (int ms = 1; ms < 5; ms++) {
                resha_instant start = resha_now();
                ASSERT_OK(resha_sleep(MS(ms)));
                ASSERT_PASSED(start, ms);
        }
        resha_instant start = resha_now();
        ASSERT_OK(resha_sleep(RESHA_NS(1)));
        ASSERT_TRUE(resha_now().ns - start.ns >= 1);
        return 0;
}

TASK(time_virtual_clock_costs_no_time)
{
        struct timespec a, b;

        SIM_ONLY();
        resha_instant start = resha_now();
        clock_gettime(CLOCK_MONOTONIC, &a);
        ASSERT_OK(resha_sleep(RESHA_S(3600 * 24 * 365)));
        clock_gettime(CLOCK_MONOTONIC, &b);
        ASSERT_PASSED(start, INT64_C(1000) * 3600 * 24 * 365);
        ASSERT_TRUE(b.tv_sec - a.tv_sec < 60);
        return 0;
}

static int sleep_until_and_note(void *arg)
{
        int *number = arg;
        resha_instant t = resha_after(MS(*number / 100));

        ASSERT_OK(resha_sleep_until(t));
        note("%d", *number);
        return 0;
}

/* semantics 6 better
 * asyncio: timers with the same deadline fire in no particular order.
 * resha: in the order in which they were set. */
TASK(semantics_6_equal_deadlines_in_order)
{
        SIM_ONLY();
        int numbers[12];

        for (int i = 0; i < 12; i++)
                numbers[i] = 500 + i; /* all at 5 ms */
        ASSERT_OK(resha_gather(sleep_until_and_note, numbers, 12, sizeof numbers[0], NULL));
        ASSERT_STR(notes(), "500 501 502 503 504 505 506 507 508 509 510 511");
        return 0;
}

TASK(time_deadlines_in_order)
{
        int numbers[] = { 3000, 1000, 2000, 5000, 4000 };

        ASSERT_OK(resha_gather(sleep_until_and_note, numbers, 5, sizeof numbers[0], NULL));
        ASSERT_STR(notes(), "1000 2000 3000 4000 5000");
        return 0;
}

struct sleeper {
        int64_t ms, woken;
};

static int random_sleeper(void *arg)
{
        struct sleeper *s = arg;
        resha_instant start = resha_now();

        ASSERT_OK(resha_sleep(MS(s->ms)));
        ASSERT_PASSED(start, s->ms);
        s->woken = resha_now().ns;
        return 0;
}

TASK(time_thousand_sleepers)
{
        SIM_ONLY();
        static struct sleeper s[1000];
        unsigned x = 1;

        for (size_t i = 0; i < 1000; i++) {
                x = x * 1103515245 + 12345;
                s[i].ms = (x >> 16) % 500;
        }
        ASSERT_OK(resha_gather(random_sleeper, s, 1000, sizeof s[0], NULL));
        for (size_t i = 0; i < 1000; i++)
                for (size_t k = 0; k < i; k++)
                        ASSERT_TRUE((s[i].ms < s[k].ms) == (s[i].woken < s[k].woken));
        return 0;
}

static int spin(void *arg)
{
        const char *name = arg;

        for (int i = 0; i < 3; i++) {
                note("%s%d", name, i);
                ASSERT_OK(resha_sleep(RESHA_NS(0)));
        }
        return 0;
}

/* semantics 44 same
 * asyncio: two tasks that spin on sleep(0) alternate strictly.
 * resha: so they do. */
TASK(semantics_44_two_spinning_tasks_alternate)
{
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, spin, (char *)"a");
        resha_spawn(&g, spin, (char *)"b");
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "a0 b0 a1 b1 a2 b2");
        return 0;
}

static int note_arg(void *arg)
{
        note("%s", (const char *)arg);
        return 0;
}

static int zero_or_less(void *arg)
{
        resha_duration *d = arg;
        resha_instant start = resha_now();

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, note_arg, (char *)"other");
        ASSERT_OK(resha_sleep(*d));
        note("main");
        ASSERT_PASSED(start, 0);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "other main");
        return 0;
}

/* semantics 79 same
 * asyncio: sleep(d) with d of zero or less yields for exactly one iteration.
 * resha: the caller goes on behind all that were ready, and no time passes. */
TASK(semantics_79_sleep_of_zero_yields_once)
{
        return zero_or_less(&(resha_duration){ 0 });
}
/* semantics 7 same
 * asyncio: a callback with a delay of zero or less runs in the next iteration, behind those that were ready.
 * resha: resha_sleep() of zero or less lets every task that is ready run once. */
TASK(semantics_7_negative_sleep_yields_once)
{
        return zero_or_less(&(resha_duration){ -5 });
}
TASK(time_most_negative_sleep_yields_once)
{
        return zero_or_less(&(resha_duration){ INT64_MIN });
}

static int sleep_for(void *arg)
{
        return resha_sleep(*(resha_duration *)arg);
}

/* semantics 80 better
 * asyncio: a delay that is NaN is a ValueError.
 * resha: a duration is a whole number of nanoseconds, so that there is no NaN, and a bare number is none: each of its
 * values has a meaning, from the most negative (at once) to the greatest (for ever). */
TASK(semantics_80_every_duration_has_a_meaning)
{
        const int64_t at_once[] = { INT64_MIN, -1, 0 };

        _Static_assert(_Generic(((resha_duration *)NULL)->ns, int64_t : true, default : false), "not a whole number");
        _Static_assert(_Generic(250, resha_duration : false, default : true), "a bare number is a duration");
        _Static_assert(_Generic(0.25, resha_duration : false, default : true), "a bare number is a duration");
        for (size_t i = 0; i < 3; i++)
                ASSERT_OK(zero_or_less(&(resha_duration){ at_once[i] }));
        ASSERT_EQ(status_when_cancelled(1, sleep_for, &(resha_duration){ INT64_MAX }), -ECANCELED);
        ASSERT_EQ(status_when_cancelled(1, sleep_for, &(resha_duration){ INT64_MAX - 1 }), -ECANCELED);
        return 0;
}

TASK(time_sleep_until_the_past_yields_once)
{
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, note_arg, (char *)"other");
        ASSERT_OK(resha_sleep_until((resha_instant){ 1 }));
        note("main");
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "other main");
        return 0;
}

static int spin_until(void *arg)
{
        volatile bool *stop = arg;

        while (!*stop)
                ASSERT_OK(resha_yield());
        return 0;
}

/* semantics 4 same
 * asyncio: as long as something is ready, the poll does not block, but timers and I/O are looked at in each iteration:
 * a task that spins on sleep(0) starves neither.
 * resha: the loop looks at timers and the kernel while tasks spin, some 50 us after it last did. (In the simulated
 * world the clock stands still while a task is ready.) */
TASK(semantics_4_spinning_tasks_do_not_starve_timers)
{
        volatile bool stop = false;

        if (test_is_sim())
                test_skip("the virtual clock stands still while a task is ready");
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, spin_until, (void *)&stop);
        ASSERT_OK(resha_sleep(MS(5)));
        stop = true;
        return resha_group_end(&g, 0);
}

static int sleep_for_ever(__attribute__((unused)) void *arg)
{
        return resha_sleep(RESHA_FOREVER);
}

TASK(time_sleep_for_ever_can_be_cancelled)
{
        ASSERT_EQ(status_when_cancelled(1, sleep_for_ever, NULL), -ECANCELED);
        return 0;
}

static int sleep_an_hour(__attribute__((unused)) void *arg)
{
        return resha_sleep(RESHA_S(3600));
}

/* semantics 81 same
 * asyncio: the timer of a cancelled sleep is cancelled with it.
 * resha: it leaves no timer behind. */
TASK(semantics_81_cancelled_sleep_leaves_no_timer)
{
        resha_instant start = resha_now();

        ASSERT_EQ(status_when_cancelled(2, sleep_an_hour, NULL), -ECANCELED);
        ASSERT_PTR(rs_heap_first(&rs_loop_current->timers), NULL);
        ASSERT_PASSED(start, 2);
        return 0;
}

TASK(ticker_does_not_drift)
{
        resha_ticker t;
        resha_instant start = resha_now();

        SIM_ONLY();
        resha_ticker_init(&t, MS(10));
        for (int i = 1; i <= 5; i++) {
                ASSERT_EQ(resha_ticker_next(&t), 1);
                ASSERT_PASSED(start, i * 10);
                ASSERT_OK(resha_sleep(MS(i))); /* work */
        }
        return 0;
}

TASK(ticker_skips_what_it_missed)
{
        resha_ticker t;
        resha_instant start = resha_now();

        SIM_ONLY();
        resha_ticker_init(&t, MS(10));
        ASSERT_EQ(resha_ticker_next(&t), 1);
        ASSERT_OK(resha_sleep(MS(25))); /* to 35: 20 and 30 are missed */
        ASSERT_EQ(resha_ticker_next(&t), 1);
        ASSERT_PASSED(start, 40);
        ASSERT_EQ(resha_ticker_next(&t), 1);
        ASSERT_PASSED(start, 50);
        return 0;
}

TASK(ticker_in_real_time_is_never_early)
{
        resha_ticker t;
        resha_instant start = resha_now();

        resha_ticker_init(&t, MS(2));
        for (int i = 1; i <= 3; i++) {
                ASSERT_EQ(resha_ticker_next(&t), 1);
                ASSERT_TRUE(ms_since(start) >= i * 2);
        }
        return 0;
}

TASK(ticker_needs_a_period)
{
        resha_ticker t;

        resha_ticker_init(&t, MS(0));
        ASSERT_EQ(resha_ticker_next(&t), -EINVAL);
        resha_ticker_init(&t, MS(-1));
        ASSERT_EQ(resha_ticker_next(&t), -EINVAL);
        return 0;
}

static int tick(__attribute__((unused)) void *arg)
{
        resha_ticker t;

        resha_ticker_init(&t, RESHA_S(100));
        return resha_ticker_next(&t);
}

TASK(ticker_can_be_cancelled)
{
        ASSERT_EQ(status_when_cancelled(1, tick, NULL), -ECANCELED);
        return 0;
}
