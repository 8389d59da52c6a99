/* SPDX-License-Identifier: MIT */
/* Condition, barrier and limiter under every seed, cancel and failure: no lock, notification or turn is lost or given
 * twice. A lost notification shows as a deadlock, which fails the trial. */

#include "scenario.h"

/* ---- condition: a store with room for two, made of a mutex and two conditions ---- */

enum { PRODUCERS = 2, CONSUMERS = 3, EACH = 4, ROOM = 2 };

struct store {
        resha_mutex mutex;
        resha_condition has_room, has_goods;
        int goods, made, taken, inside;
        int producers, consumers; /* that have not ended */
};

static bool can_make(void *arg)
{
        const struct store *s = arg;

        return s->goods < ROOM || s->consumers == 0;
}

static bool can_take(void *arg)
{
        const struct store *s = arg;

        return s->goods > 0 || s->producers == 0;
}

/* Locks, waits for pred, and moves `n` goods; 0 also if the other side has gone. One notification for each. */
static int move(struct store *s, resha_condition *wait_for, bool (*pred)(void *arg), resha_condition *tell, int n)
{
        int rc = resha_mutex_lock(&s->mutex);

        if (rc < 0)
                return rc;
        rc = resha_condition_wait_for(wait_for, pred, s);
        ASSERT_EQ(++s->inside, 1);
        if (rc >= 0 && s->goods + n >= 0 && s->goods + n <= ROOM) {
                s->goods += n;
                *(n > 0 ? &s->made : &s->taken) += 1;
                ASSERT_OK(resha_condition_notify(tell, 1));
                rc = 1;
        }
        s->inside--;
        ASSERT_OK(resha_mutex_unlock(&s->mutex)); /* it is held, whatever the result */
        return rc;
}

struct end {
        struct store *s;
        int *count;
};

static int tells_end(void *arg)
{
        struct end *e = arg;
        int rc = resha_mutex_lock(&e->s->mutex);

        if (rc < 0)
                return rc;
        if (--*e->count == 0) {
                ASSERT_OK(resha_condition_notify_all(&e->s->has_room));
                ASSERT_OK(resha_condition_notify_all(&e->s->has_goods));
        }
        return resha_mutex_unlock(&e->s->mutex);
}

static int ended(struct store *s, int *count, int rc)
{
        struct end e = { s, count };

        ASSERT_OK(resha_shielded(RESHA_FOREVER, tells_end, &e));
        return rc;
}

static int produces(void *arg)
{
        struct store *s = arg;
        int rc = 1;

        for (int i = 0; i < EACH && rc > 0; i++)
                rc = move(s, &s->has_room, can_make, &s->has_goods, 1);
        return ended(s, &s->producers, rc < 0 ? rc : 0);
}

static int consumes(void *arg)
{
        struct store *s = arg;
        int rc;

        while ((rc = move(s, &s->has_goods, can_take, &s->has_room, -1)) > 0)
                if ((rc = resha_sleep(RESHA_US(10))) < 0)
                        break;
        return ended(s, &s->consumers, rc);
}

static int store_main(void *arg)
{
        struct store *s = arg;

        resha_condition_init(&s->has_room, &s->mutex);
        resha_condition_init(&s->has_goods, &s->mutex);
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (int i = 0; i < CONSUMERS; i++)
                if (resha_spawn(&g, consumes, s) >= 0)
                        s->consumers++;
        for (int i = 0; i < PRODUCERS; i++)
                if (resha_spawn(&g, produces, s) >= 0)
                        s->producers++;
        return resha_group_end(&g, 0);
}

static void store_check(void *state, __attribute__((unused)) int rc, const resha_test_trial *t)
{
        const struct store *s = state;

        ASSERT_FALSE(resha_mutex_locked(&s->mutex));
        ASSERT_EQ(s->made, s->taken + s->goods);
        ASSERT_EQ(s->producers + s->consumers, 0);
        if (!t->disturbed)
                ASSERT_EQ(s->taken, PRODUCERS * EACH);
}

SCENARIO(sim_condition, store_main, .seeds = 30, .state = sizeof(struct store), .check = store_check)

/* ---- condition: waits without a predicate ---- */

struct bells {
        resha_mutex mutex;
        resha_condition bell;
        int waiting, rung, heard, given_up;
};

static int listens(void *arg)
{
        struct bells *s = arg;
        int rc = resha_mutex_lock(&s->mutex);

        if (rc < 0)
                return rc;
        s->waiting++;
        RESHA_SCOPE(scope);
        resha_timeout_begin(&scope, RESHA_US(35));
        rc = resha_condition_wait(&s->bell);
        int ended = resha_scope_end(&scope, rc);
        s->waiting--;
        *(rc < 0 ? &s->given_up : &s->heard) += 1;
        ASSERT_OK(resha_mutex_unlock(&s->mutex));
        return ended == -ETIME ? 0 : ended;
}

static int bells_main(void *arg)
{
        struct bells *s = arg;
        int rc = 0;

        resha_condition_init(&s->bell, &s->mutex);
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (int i = 0; i < 5; i++)
                resha_spawn(&g, listens, s);
        for (int i = 0; i < 4 && rc >= 0; i++) {
                rc = resha_sleep(RESHA_US(10));
                if (rc < 0 || (rc = resha_mutex_lock(&s->mutex)) < 0)
                        break;
                ASSERT_OK(resha_condition_notify(&s->bell, 1));
                s->rung++;
                rc = resha_sleep(RESHA_US(2)); /* those cancelled meanwhile wait for the mutex */
                ASSERT_OK(resha_mutex_unlock(&s->mutex));
        }
        return resha_group_end(&g, rc);
}

static void bells_check(void *state, __attribute__((unused)) int rc, const resha_test_trial *t)
{
        const struct bells *s = state;

        ASSERT_FALSE(resha_mutex_locked(&s->mutex));
        ASSERT_EQ(s->waiting, 0);
        ASSERT_TRUE(s->heard <= s->rung);
        if (!t->disturbed) { /* the rings at 10, 22 and 34 found somebody; by that at 46 all had given up */
                ASSERT_EQ(s->heard, 3);
                ASSERT_EQ(s->given_up, 2);
        }
}

SCENARIO(sim_condition_bell, bells_main, .seeds = 30, .state = sizeof(struct bells), .check = bells_check)

/* ---- barrier ---- */

enum { PARTIES = 3, ROUNDS = 3, ALL_PARTIES = (1 << PARTIES) - 1 };

struct walk {
        resha_barrier barrier;
        int seen[ROUNDS]; /* the indexes that were given, as bits */
};

static int walks(void *arg)
{
        struct walk *s = arg;

        for (int i = 0; i < ROUNDS; i++) {
                int rc = resha_sleep(RESHA_US(10));
                if (rc >= 0)
                        rc = resha_barrier_wait(&s->barrier);
                if (rc < 0) {
                        resha_barrier_abort(&s->barrier);
                        return rc == RESHA_EBROKEN ? 0 : rc;
                }
                ASSERT_EQ(s->seen[i] & 1 << rc, 0);
                s->seen[i] |= 1 << rc;
        }
        return 0;
}

static int walk_main(void *arg)
{
        struct walk *s = arg;

        ASSERT_OK(resha_barrier_init(&s->barrier, PARTIES));
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (int i = 0; i < PARTIES; i++)
                resha_spawn(&g, walks, s);
        return resha_group_end(&g, 0);
}

static void walk_check(void *state, __attribute__((unused)) int rc, const resha_test_trial *t)
{
        const struct walk *s = state;

        ASSERT_EQ(resha_barrier_waiting(&s->barrier), 0);
        for (int i = 0; i < ROUNDS; i++) /* a round is let through as a whole or not at all */
                ASSERT_TRUE(s->seen[i] == ALL_PARTIES || (t->disturbed && s->seen[i] == 0));
}

SCENARIO(sim_barrier, walk_main, .seeds = 30, .state = sizeof(struct walk), .check = walk_check)

/* ---- limiter ---- */

enum { CALLERS = 4, CALLS = 3 };

static const resha_rate rates[] = {
        { .count = 2, .per = { 100000 }, .burst = 2 },
        { .count = 5, .per = { 1000000 }, .burst = 3 },
};

struct road {
        resha_limiter limiter;
        int64_t at[CALLERS * CALLS + 1];
        int starts, late, next;
};

static int drives(void *arg)
{
        struct road *s = arg;
        bool hurries = s->next++ == 1;

        for (int i = 0; i < CALLS; i++) {
                int rc = hurries ? resha_limiter_acquire_by(&s->limiter, resha_after(RESHA_US(900)))
                                 : resha_limiter_acquire(&s->limiter);
                if (rc == -ETIME)
                        s->late++;
                else if (rc < 0)
                        return rc;
                else
                        s->at[s->starts++] = resha_now().ns;
        }
        return 0;
}

static int is_free_again(void *arg)
{
        struct road *s = arg;

        int rc = resha_sleep(RESHA_MS(2));
        ASSERT_OK(resha_limiter_try_acquire(&s->limiter));
        s->at[s->starts++] = resha_now().ns;
        return rc;
}

static int road_main(void *arg)
{
        struct road *s = arg;

        ASSERT_OK(resha_limiter_init_rates(&s->limiter, rates, 2));
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (int i = 0; i < CALLERS; i++)
                resha_spawn(&g, drives, s);
        int rc = resha_sleep(RESHA_US(150));
        if (rc >= 0)
                resha_limiter_pause_until(&s->limiter, resha_after(RESHA_US(70)));
        rc = resha_group_end(&g, rc);
        int free = resha_shielded(RESHA_FOREVER, is_free_again, s); /* nobody is left in the line */
        return rc < 0 ? rc : free;
}

static void road_check(void *state, __attribute__((unused)) int rc, const resha_test_trial *t)
{
        const struct road *s = state;

        for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++)
                for (int k = (int)rates[i].count; k < s->starts; k++)
                        ASSERT_TRUE(s->at[k] - s->at[k - (int)rates[i].count] >= rates[i].per.ns);
        if (!t->disturbed)
                ASSERT_EQ(s->starts + s->late, CALLERS * CALLS + 1);
}

SCENARIO(sim_limiter, road_main, .seeds = 30, .state = sizeof(struct road), .check = road_check)
