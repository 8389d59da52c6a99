/* SPDX-License-Identifier: MIT */
/* Permits. */

#include "job.h"

struct guest {
        resha_semaphore *semaphore;
        const char *name;
        int64_t ms;
        unsigned *inside, *most;
        resha_task task;
};

static int enters(void *arg)
{
        struct guest *g = arg;
        int rc = resha_semaphore_acquire(g->semaphore);

        if (rc < 0) {
                note("%s!", g->name);
                return rc;
        }
        note("%s+", g->name);
        if (++*g->inside > *g->most)
                *g->most = *g->inside;
        rc = g->ms ? resha_sleep(MS(g->ms)) : 0;
        --*g->inside;
        note("%s-", g->name);
        ASSERT_OK(resha_semaphore_release(g->semaphore));
        return rc;
}

#define GUEST(n, milliseconds) \
        { \
                .semaphore = &s, .name = n, .ms = milliseconds, .inside = &inside, .most = &most \
        }

TASK(semaphore_alone)
{
        resha_semaphore s;

        resha_semaphore_init(&s, 2);
        ASSERT_EQ(resha_semaphore_available(&s), 2);
        ASSERT_OK(resha_semaphore_acquire(&s));
        ASSERT_OK(resha_semaphore_try_acquire(&s));
        ASSERT_EQ(resha_semaphore_available(&s), 0);
        ASSERT_EQ(resha_semaphore_try_acquire(&s), -EAGAIN);
        ASSERT_OK(resha_semaphore_release(&s));
        ASSERT_OK(resha_semaphore_release(&s));
        ASSERT_EQ(resha_semaphore_available(&s), 2);
        return 0;
}

/* semantics 205 better
 * asyncio: a negative number of permits is refused.
 * resha: the number is a size_t, so there is none; 0 is one of them, and nobody gets in. */
TASK(semantics_205_semaphore_without_permits)
{
        resha_semaphore s;

        resha_semaphore_init(&s, 0);
        ASSERT_EQ(resha_semaphore_available(&s), 0);
        ASSERT_EQ(resha_semaphore_try_acquire(&s), -EAGAIN);
        RESHA_SCOPE(scope);
        resha_timeout_begin(&scope, MS(1));
        int rc = resha_semaphore_acquire(&s);
        ASSERT_EQ(resha_scope_end(&scope, rc), -ETIME);
        return 0;
}

/* semantics 212 better
 * asyncio: with a permit free and nobody waiting, acquire does not suspend, and so sees no cancel.
 * resha: it is taken at once, but the call looks for a cancel first, and each 64th that need not wait lets others
 * run. */
TASK(semantics_212_free_permit_is_taken_at_once)
{
        resha_semaphore s;
        unsigned inside = 0, most = 0;
        struct guest w = GUEST("other", 0);

        resha_semaphore_init(&s, 100);
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, enters, &w);
        for (int i = 0; i < 63; i++)
                ASSERT_OK(resha_semaphore_acquire(&s));
        ASSERT_STR(notes(), "");
        ASSERT_OK(resha_semaphore_acquire(&s));
        ASSERT_STR(notes(), "other+ other-");
        RESHA_SCOPE(scope);
        resha_timeout_begin(&scope, MS(0));
        int rc = resha_semaphore_acquire(&s);
        ASSERT_EQ(rc, -ECANCELED);
        ASSERT_EQ(resha_scope_end(&scope, rc), -ETIME);
        ASSERT_EQ(resha_semaphore_available(&s), 36);
        return resha_group_end(&g, 0);
}

/* semantics 211 better
 * asyncio: a release too many makes a Semaphore grow; a BoundedSemaphore raises.
 * resha: there is one kind, and it never grows: resha_semaphore_release() gives -EOVERFLOW. */
TASK(semantics_211_one_release_too_many)
{
        resha_semaphore s;

        resha_semaphore_init(&s, 1);
        ASSERT_EQ(resha_semaphore_release(&s), -EOVERFLOW);
        ASSERT_EQ(resha_semaphore_available(&s), 1);
        resha_semaphore_init(&s, 0);
        ASSERT_EQ(resha_semaphore_release(&s), -EOVERFLOW);
        ASSERT_EQ(resha_semaphore_try_acquire(&s), -EAGAIN);
        return 0;
}

TASK(semaphore_lets_three_in_first_come_first_served)
{
        resha_semaphore s;
        unsigned inside = 0, most = 0;
        struct guest g[] = { GUEST("a", 10), GUEST("b", 20), GUEST("c", 30), GUEST("d", 10), GUEST("e", 10) };

        SIM_ONLY();
        resha_semaphore_init(&s, 3);
        ASSERT_OK(resha_gather(enters, g, 5, sizeof g[0], NULL));
        ASSERT_EQ(most, 3);
        ASSERT_STR(notes(), "a+ b+ c+ a- d+ b- d- e+ c- e-");
        ASSERT_EQ(resha_semaphore_available(&s), 3);
        return 0;
}

static int crowd(__attribute__((unused)) void *arg)
{
        resha_semaphore s;
        unsigned inside = 0, most = 0;
        struct guest g[60];

        resha_semaphore_init(&s, 4);
        for (int i = 0; i < 60; i++)
                g[i] = (struct guest)GUEST("", i % 5);
        ASSERT_OK(resha_gather(enters, g, 60, sizeof g[0], NULL));
        notes();
        ASSERT_EQ(most, 4);
        ASSERT_EQ(resha_semaphore_available(&s), 4);
        return 0;
}

TEST(semaphore_under_many_seeds)
{
        RUN_SEEDS(crowd, NULL, 50);
}

/* semantics 207 same
 * asyncio: a release gives its permit to the first waiter.
 * resha: the same. */
TASK(semantics_207_release_hands_its_permit_to_the_first_waiter)
{
        resha_semaphore s;
        unsigned inside = 0, most = 0;
        struct guest w = GUEST("waiter", 0);

        resha_semaphore_init(&s, 1);
        ASSERT_OK(resha_semaphore_acquire(&s));
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, enters, &w);
        ASSERT_OK(resha_yield());
        ASSERT_OK(resha_semaphore_release(&s));
        ASSERT_EQ(resha_semaphore_available(&s), 0);         /* it is taken already */
        ASSERT_EQ(resha_semaphore_try_acquire(&s), -EAGAIN); /* nobody overtakes */
        ASSERT_OK(resha_semaphore_acquire(&s));
        note("main");
        ASSERT_OK(resha_semaphore_release(&s));
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "waiter+ waiter- main");
        return 0;
}

/* semantics 206 same
 * asyncio: while there are waiters a newcomer queues behind them, whatever the value; locked() is true.
 * resha: the same. While somebody waits no permit is free, and the try form gives -EAGAIN. */
TASK(semantics_206_semaphore_newcomer_stands_behind_those_who_wait)
{
        resha_semaphore s;
        unsigned inside = 0, most = 0;
        struct guest w[] = { GUEST("a", 0), GUEST("b", 0) };

        resha_semaphore_init(&s, 2);
        ASSERT_OK(resha_semaphore_acquire(&s));
        ASSERT_OK(resha_semaphore_acquire(&s));
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, enters, &w[0]);
        resha_spawn(&g, enters, &w[1]);
        ASSERT_OK(resha_yield());
        ASSERT_OK(resha_semaphore_release(&s));
        ASSERT_OK(resha_semaphore_release(&s)); /* one for each of them */
        ASSERT_EQ(resha_semaphore_available(&s), 0);
        ASSERT_EQ(resha_semaphore_try_acquire(&s), -EAGAIN);
        ASSERT_OK(resha_semaphore_acquire(&s));
        note("newcomer");
        ASSERT_OK(resha_semaphore_release(&s));
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "a+ a- b+ b- newcomer");
        return 0;
}

/* semantics 208 better
 * asyncio: if the first waiter is cancelled before it runs, its permit goes to the next.
 * resha: it has the permit, gets 0 and gives it back as always; its next call sees the cancel. No permit is lost. */
TASK(semantics_208_permit_of_a_waiter_cancelled_after_its_turn_is_not_lost)
{
        resha_semaphore s;
        unsigned inside = 0, most = 0;
        struct guest w[] = { GUEST("a", 5), GUEST("b", 0) };

        resha_semaphore_init(&s, 1);
        ASSERT_OK(resha_semaphore_acquire(&s));
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (size_t i = 0; i < 2; i++)
                ASSERT_OK(resha_spawn_task(&g, enters, &w[i], &w[i].task));
        ASSERT_OK(resha_yield());
        ASSERT_OK(resha_semaphore_release(&s));
        resha_task_cancel(&w[0].task);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "a+ a- b+ b-"); /* it had the permit, and gave it back */
        ASSERT_EQ(resha_semaphore_available(&s), 1);
        return 0;
}

/* semantics 210 same
 * asyncio: a waiter that is cancelled before its turn uses no permit up.
 * resha: the same. */
TASK(semantics_210_cancelled_waiter_takes_no_permit)
{
        resha_semaphore s;
        unsigned inside = 0, most = 0;
        struct guest w[] = { GUEST("a", 0), GUEST("b", 0) };

        resha_semaphore_init(&s, 1);
        ASSERT_OK(resha_semaphore_acquire(&s));
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (size_t i = 0; i < 2; i++)
                ASSERT_OK(resha_spawn_task(&g, enters, &w[i], &w[i].task));
        ASSERT_OK(resha_yield());
        resha_task_cancel(&w[0].task);
        ASSERT_OK(resha_yield());
        ASSERT_STR(notes(), "a!");
        ASSERT_OK(resha_semaphore_release(&s));
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "b+ b-");
        ASSERT_EQ(resha_semaphore_available(&s), 1);
        return 0;
}

static int random_cancels(__attribute__((unused)) void *arg)
{
        resha_semaphore s;
        unsigned inside = 0, most = 0;
        struct guest w[20];

        resha_semaphore_init(&s, 3);
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (int i = 0; i < 20; i++) {
                w[i] = (struct guest)GUEST("", i % 4);
                ASSERT_OK(resha_spawn_task(&g, enters, &w[i], &w[i].task));
        }
        for (int i = 0; i < 20; i += 3) {
                ASSERT_OK(resha_yield());
                resha_task_cancel(&w[i].task);
        }
        ASSERT_OK(resha_group_end(&g, 0));
        notes();
        ASSERT_EQ(inside, 0);
        ASSERT_EQ(resha_semaphore_available(&s), 3);
        return 0;
}

TEST(semaphore_loses_no_permit_to_cancels)
{
        RUN_SEEDS(random_cancels, NULL, 100);
}

TEST(semaphore_outside_a_task)
{
        resha_semaphore s;

        resha_semaphore_init(&s, 1);
        ASSERT_EQ(resha_semaphore_acquire(&s), -EPERM);
}
