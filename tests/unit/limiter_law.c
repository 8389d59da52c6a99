/* SPDX-License-Identifier: MIT */
/* What holds for any rates and any traffic: no window has one too many, none is slower than it must be, and
 * acquire_by foresees. */

#include "job.h"

enum { CALLERS = 40, CALLS = 5 };

struct traffic {
        resha_limiter limiter;
        resha_rate rates[RESHA_RATES_MAX];
        size_t n;
        uint64_t seed;
        int64_t at[CALLERS * CALLS];
        size_t starts;
        resha_task task[CALLERS];
};

static uint64_t chance(struct traffic *t, uint64_t below)
{
        t->seed = t->seed * 6364136223846793005 + 1442695040888963407;
        return (t->seed >> 33) % below;
}

static int one_call(struct traffic *t)
{
        switch (chance(t, 4)) {
        case 0: return resha_limiter_try_acquire(&t->limiter);
        case 1: return resha_limiter_acquire_by(&t->limiter, resha_after(RESHA_MS(chance(t, 3000))));
        default: return resha_limiter_acquire(&t->limiter);
        }
}

static int calls(void *arg)
{
        struct traffic *t = arg;

        for (int i = 0; i < CALLS; i++) {
                int rc = chance(t, 3) ? 0 : resha_sleep(RESHA_US(chance(t, 700000)));
                if (rc >= 0)
                        rc = one_call(t);
                if (rc == 0)
                        t->at[t->starts++] = resha_now().ns;
                if (rc == -ECANCELED)
                        return rc;
        }
        return 0;
}

static void random_rates(struct traffic *t)
{
        t->n = 1 + chance(t, RESHA_RATES_MAX);
        for (size_t i = 0; i < t->n; i++) {
                unsigned count = 1 + (unsigned)chance(t, 12);
                t->rates[i] = (resha_rate){ .count = count,
                                            .per = RESHA_US(1 + chance(t, 900000)),
                                            .burst = (unsigned)chance(t, count + 1) };
        }
        ASSERT_OK(resha_limiter_init_rates(&t->limiter, t->rates, t->n));
}

/* No window of any rate has one too many. */
static int any_traffic(void *seed)
{
        struct traffic t = { .seed = *(uint64_t *)seed };

        random_rates(&t);
        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .keep_going = true });
        for (int i = 0; i < CALLERS; i++)
                ASSERT_OK(resha_spawn_task(&g, calls, &t, &t.task[i]));
        for (int i = 0; i < 10; i++) {
                ASSERT_OK(resha_sleep(RESHA_US(chance(&t, 300000))));
                if (chance(&t, 2))
                        resha_task_cancel(&t.task[chance(&t, CALLERS)]);
                else
                        resha_limiter_pause_until(&t.limiter, resha_after(RESHA_US(chance(&t, 400000))));
        }
        ASSERT_OK(resha_group_end(&g, 0));
        for (size_t i = 0; i < t.n; i++)
                for (size_t k = t.rates[i].count; k < t.starts; k++)
                        ASSERT_TRUE(t.at[k] - t.at[k - t.rates[i].count] >= t.rates[i].per.ns);
        return t.starts > 0 ? 0 : -ENODATA;
}

TEST(limiter_no_window_of_any_rate_has_more_than_count)
{
        for (uint64_t seed = 0; seed < 300; seed++) {
                char world[32];
                snprintf(world, sizeof world, "sim:%u", (unsigned)seed);
                ASSERT_OK(resha_run(any_traffic, &seed, &(resha_run_opts){ .backend = world }));
        }
}

/* And no rate is slower than it must be: who always has work gets `count` in each `per`. */
static int saturated(void *seed)
{
        struct traffic t = { .seed = *(uint64_t *)seed };
        resha_instant zero = resha_now();

        random_rates(&t);
        ASSERT_OK(resha_limiter_init_rates(&t.limiter, t.rates, 1));
        const resha_rate *r = &t.rates[0];
        for (unsigned i = 1; i <= 60; i++) {
                ASSERT_OK(resha_limiter_acquire(&t.limiter));
                /* i - 1 starts before it, each late by less than a nanosecond for each of its count */
                ASSERT_TRUE(resha_between(zero, resha_now()).ns <=
                            (i - 1) * (r->per.ns / r->count + r->count) + r->count);
        }
        return 0;
}

TEST(limiter_no_rate_is_slower_than_it_must_be)
{
        for (uint64_t seed = 0; seed < 100; seed++)
                ASSERT_OK(resha_run(saturated, &seed, &(resha_run_opts){ .backend = "sim:0" }));
}

static int acquires(void *arg)
{
        struct traffic *t = arg;

        return resha_limiter_acquire(&t->limiter);
}

/* What acquire_by sees coming is what comes: a nanosecond before its turn is refused, its turn is not. */
static int foresees(void *seed)
{
        struct traffic t = { .seed = *(uint64_t *)seed };
        size_t before = chance(&t, 20), busy = chance(&t, 30);
        int64_t turn = 0;

        random_rates(&t);
        for (int round = 0; round < 2; round++) {
                struct traffic again = t;
                resha_instant zero = resha_now();
                RESHA_GROUP(g);
                resha_group_begin(&g, &(resha_group_opts){ .background = true });
                ASSERT_OK(resha_limiter_init_rates(&again.limiter, t.rates, t.n));
                for (size_t i = 0; i < busy; i++)
                        ASSERT_OK(resha_limiter_acquire(&again.limiter));
                for (size_t i = 0; i < before; i++)
                        ASSERT_OK(resha_spawn_task(&g, acquires, &again, &again.task[i]));
                resha_limiter_pause_until(&again.limiter, resha_after(RESHA_MS(chance(&again, 2000))));
                ASSERT_OK(resha_yield());
                for (size_t i = 0; i < before; i += 3)
                        resha_task_cancel(&again.task[i]);
                if (round == 1) {
                        resha_instant now = resha_now();
                        resha_instant early = { zero.ns + turn - 1 }, right = { zero.ns + turn };
                        ASSERT_EQ(resha_limiter_acquire_by(&again.limiter, early), -ETIME);
                        ASSERT_EQ(resha_now().ns, now.ns);
                        ASSERT_OK(resha_limiter_acquire_by(&again.limiter, right));
                } else {
                        ASSERT_OK(resha_limiter_acquire(&again.limiter));
                }
                ASSERT_EQ(round ? resha_between(zero, resha_now()).ns : turn, turn);
                turn = resha_between(zero, resha_now()).ns;
                ASSERT_OK(resha_group_end(&g, 0));
        }
        return 0;
}

TEST(limiter_acquire_by_foresees_its_turn_exactly)
{
        for (uint64_t seed = 0; seed < 200; seed++)
                ASSERT_OK(resha_run(foresees, &seed, &(resha_run_opts){ .backend = "sim:0" }));
}
