/* SPDX-License-Identifier: MIT */
/* The barrier: tasks that go on together. */

#include "job.h"

struct party {
        resha_barrier *barrier;
        const char *name;
        resha_task task;
};

#define PARTY(n) \
        { \
                .barrier = &b, .name = n \
        }

/* "a0": a was let through with index 0; "a!": cancelled; "a#": it was broken. */
static int comes(void *arg)
{
        struct party *p = arg;
        int rc = resha_barrier_wait(p->barrier);

        if (rc == -ECANCELED)
                note("%s!", p->name);
        else if (rc == RESHA_EBROKEN)
                note("%s#", p->name);
        else
                note("%s%d", p->name, rc);
        return rc;
}

static void spawn_parties(resha_group *g, struct party *p, size_t n)
{
        resha_group_begin(g, &(resha_group_opts){ .keep_going = true });
        for (size_t i = 0; i < n; i++)
                ASSERT_OK(resha_spawn_task(g, comes, &p[i], &p[i].task));
}

/* semantics 213 same
 * asyncio: fewer than one party is refused; a barrier for one lets it through at once, with index 0.
 * resha: resha_barrier_init() gives -EINVAL for 0; a barrier for one never waits. */
TASK(semantics_213_barrier_parties)
{
        resha_barrier b;

        ASSERT_EQ(resha_barrier_init(&b, 0), -EINVAL);
        ASSERT_EQ(resha_barrier_init(&b, UINT32_MAX), -EINVAL);
        ASSERT_OK(resha_barrier_init(&b, 1));
        ASSERT_EQ(resha_barrier_wait(&b), 0);
        ASSERT_EQ(resha_barrier_wait(&b), 0);
        ASSERT_EQ(resha_barrier_waiting(&b), 0);
        return 0;
}

/* semantics 214 same
 * asyncio: once all have come, each gets an index of its own, 0 to n - 1, in order of arrival.
 * resha: the same; the index is the result of resha_barrier_wait(). */
TASK(semantics_214_barrier_index_is_the_order_of_arrival)
{
        resha_barrier b;
        struct party p[] = { PARTY("a"), PARTY("b"), PARTY("c") };

        ASSERT_OK(resha_barrier_init(&b, 4));
        RESHA_GROUP(g);
        spawn_parties(&g, p, 3);
        ASSERT_OK(resha_sleep(MS(2)));
        ASSERT_STR(notes(), "");
        ASSERT_EQ(resha_barrier_waiting(&b), 3);
        note("main%d", resha_barrier_wait(&b));
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "main3 a0 b1 c2");
        return 0;
}

/* semantics 216 same
 * asyncio: a waiter that is cancelled before all have come just leaves; the barrier is not broken.
 * resha: the same; those behind it move up, so that the indexes stay 0 to n - 1. */
TASK(semantics_216_barrier_cancelled_waiter_leaves)
{
        resha_barrier b;
        struct party p[] = { PARTY("a"), PARTY("b"), PARTY("c") };

        ASSERT_OK(resha_barrier_init(&b, 3));
        RESHA_GROUP(g);
        spawn_parties(&g, p, 2);
        ASSERT_OK(resha_yield());
        resha_task_cancel(&p[0].task);
        ASSERT_EQ(resha_barrier_waiting(&b), 1);
        ASSERT_FALSE(resha_barrier_broken(&b));
        ASSERT_OK(resha_spawn_task(&g, comes, &p[2], &p[2].task));
        ASSERT_OK(resha_sleep(MS(2)));
        ASSERT_STR(notes(), "a!");
        note("main%d", resha_barrier_wait(&b));
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "main2 b0 c1");
        return 0;
}

/* semantics 217 better
 * asyncio: a waiter that is cancelled after the last has come, before it ran, gets the cancel; the others go on.
 * resha: once the last has come the wait is done for all: each gets its index, and sees the cancel in its next call. */
TASK(semantics_217_barrier_completed_wait_wins_over_a_cancel)
{
        resha_barrier b;
        struct party p[] = { PARTY("a"), PARTY("b") };

        ASSERT_OK(resha_barrier_init(&b, 3));
        RESHA_GROUP(g);
        spawn_parties(&g, p, 2);
        ASSERT_OK(resha_yield());
        note("main%d", resha_barrier_wait(&b));
        resha_task_cancel(&p[0].task);
        resha_barrier_abort(&b); /* too late for this round */
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "main2 a0 b1");
        return 0;
}

/* semantics 218 same
 * asyncio: abort makes present and future waiters fail as broken, until reset.
 * resha: the same; they get RESHA_EBROKEN and a record that says why. */
TASK(semantics_218_barrier_abort)
{
        resha_barrier b;
        struct party p[] = { PARTY("a"), PARTY("b"), PARTY("c") };
        int status;

        ASSERT_OK(resha_barrier_init(&b, 2));
        RESHA_GROUP(g);
        spawn_parties(&g, p, 1);
        ASSERT_OK(resha_yield());
        resha_barrier_abort(&b);
        resha_barrier_abort(&b);
        ASSERT_TRUE(resha_barrier_broken(&b));
        ASSERT_EQ(resha_barrier_waiting(&b), 0);
        ASSERT_OK(resha_task_wait(&p[0].task, &status));
        ASSERT_EQ(status, RESHA_EBROKEN);
        ASSERT_EQ(resha_barrier_wait(&b), RESHA_EBROKEN);
        ASSERT_HAS(resha_error_of(RESHA_EBROKEN)->text, "reset it to use it again");
        resha_barrier_reset(&b);
        ASSERT_FALSE(resha_barrier_broken(&b));
        for (size_t i = 1; i < 3; i++)
                ASSERT_OK(resha_spawn_task(&g, comes, &p[i], &p[i].task));
        ASSERT_EQ(resha_group_end(&g, 0), RESHA_EBROKEN); /* a's */
        ASSERT_HAS(resha_error_of(RESHA_EBROKEN)->text, "aborted while this task waited");
        ASSERT_STR(notes(), "a# c1 b0");
        return 0;
}

/* semantics 219 same
 * asyncio: reset makes present waiters fail as broken; the barrier can be used again.
 * resha: the same. */
TASK(semantics_219_barrier_reset)
{
        resha_barrier b;
        struct party p[] = { PARTY("a"), PARTY("b"), PARTY("c") };

        ASSERT_OK(resha_barrier_init(&b, 2));
        RESHA_GROUP(g);
        spawn_parties(&g, p, 1);
        ASSERT_OK(resha_yield());
        resha_barrier_reset(&b);
        ASSERT_FALSE(resha_barrier_broken(&b));
        for (size_t i = 1; i < 3; i++)
                ASSERT_OK(resha_spawn_task(&g, comes, &p[i], &p[i].task));
        ASSERT_EQ(resha_group_end(&g, 0), RESHA_EBROKEN);
        ASSERT_HAS(resha_error_of(RESHA_EBROKEN)->text, "reset while this task waited");
        ASSERT_STR(notes(), "a# c1 b0");
        return 0;
}

/* semantics 220 better
 * asyncio: n_waiting counts while the barrier fills; it is 0 while those let through leave, and nobody else may enter.
 * resha: resha_barrier_waiting() is 0 as soon as the last has come, and the next round may begin at once. */
TASK(semantics_220_barrier_waiting_counts_this_round_only)
{
        resha_barrier b;
        struct party p[] = { PARTY("a"), PARTY("b") };

        ASSERT_OK(resha_barrier_init(&b, 2));
        ASSERT_EQ(resha_barrier_waiting(&b), 0);
        RESHA_GROUP(g);
        spawn_parties(&g, p, 1);
        ASSERT_OK(resha_yield());
        ASSERT_EQ(resha_barrier_waiting(&b), 1);
        note("main%d", resha_barrier_wait(&b));
        ASSERT_EQ(resha_barrier_waiting(&b), 0);
        resha_spawn(&g, comes, &p[1]);
        note("main%d", resha_barrier_wait(&b)); /* "a" has not run yet; the second round fills */
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "main1 a0 b1 main0");
        return 0;
}

TASK(barrier_wait_under_a_timeout)
{
        resha_barrier b;
        resha_instant start = resha_now();

        ASSERT_OK(resha_barrier_init(&b, 2));
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, MS(3));
        int rc = resha_barrier_wait(&b);
        ASSERT_EQ(resha_scope_end(&s, rc), -ETIME);
        ASSERT_PASSED(start, 3);
        ASSERT_EQ(resha_barrier_waiting(&b), 0);
        return 0;
}

enum { WORKERS = 5, ROUNDS = 8 };

struct rounds {
        resha_barrier barrier;
        int done[WORKERS], next;
        int leaders[ROUNDS];
};

static int works(void *arg)
{
        struct rounds *r = arg;
        int me = r->next++;

        for (int i = 0; i < ROUNDS; i++) {
                int rc = resha_sleep(RESHA_US((me * 7 + i * 3) % 5 * 100));
                if (rc < 0)
                        return rc;
                r->done[me]++;
                rc = resha_barrier_wait(&r->barrier);
                if (rc < 0)
                        return rc;
                r->leaders[i] += rc == 0;
                for (int other = 0; other < WORKERS; other++) /* nobody is behind; nobody was let through twice */
                        ASSERT_TRUE(r->done[other] == i + 1 || r->done[other] == i + 2);
        }
        return 0;
}

static int many_rounds(__attribute__((unused)) void *arg)
{
        struct rounds r = { 0 };

        ASSERT_OK(resha_barrier_init(&r.barrier, WORKERS));
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (int i = 0; i < WORKERS; i++)
                resha_spawn(&g, works, &r);
        ASSERT_OK(resha_group_end(&g, 0));
        for (int i = 0; i < ROUNDS; i++)
                ASSERT_EQ(r.leaders[i], 1);
        return 0;
}

TEST(barrier_rounds_under_many_seeds)
{
        RUN_SEEDS(many_rounds, NULL, 50);
}

static int counts(void *n)
{
        ++*(int *)n;
        return 0;
}

TASK(barrier_that_is_broken_lets_others_run)
{
        resha_barrier b;
        int turns = 0;

        ASSERT_OK(resha_barrier_init(&b, 2));
        resha_barrier_abort(&b);
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, counts, &turns);
        for (int i = 0; i < 64; i++)
                ASSERT_EQ(resha_barrier_wait(&b), RESHA_EBROKEN);
        ASSERT_EQ(turns, 1);
        return resha_group_end(&g, 0);
}

TASK(barrier_without_init)
{
        resha_barrier b = { { 0 } };

        ASSERT_EQ(resha_barrier_wait(&b), -EINVAL);
        ASSERT_HAS(resha_error_of(-EINVAL)->text, "resha_barrier_init()");
        return 0;
}

TEST(barrier_outside_a_task)
{
        resha_barrier b;

        ASSERT_OK(resha_barrier_init(&b, 1));
        ASSERT_EQ(resha_barrier_wait(&b), -EPERM);
        ASSERT_STR(resha_errname(RESHA_EBROKEN), "RESHA_EBROKEN");
        ASSERT_STR(resha_strerror(RESHA_EBROKEN), "barrier is broken");
        ASSERT_EQ(RESHA_EBROKEN, -3999);
}
