/* SPDX-License-Identifier: MIT */
/* The lock between tasks. */

#include <string.h>

#include "core/core.h"
#include "job.h"

struct locker {
        resha_mutex *mutex;
        const char *name;
        int64_t ms; /* holds it for this */
        resha_task task;
};

static int locks(void *arg)
{
        struct locker *l = arg;
        int rc = resha_mutex_lock(l->mutex);

        if (rc < 0) {
                note("%s!", l->name);
                return rc;
        }
        note("%s+", l->name);
        rc = l->ms ? resha_sleep(MS(l->ms)) : 0;
        note("%s-", l->name);
        ASSERT_OK(resha_mutex_unlock(l->mutex));
        return rc;
}

TASK(mutex_alone)
{
        resha_mutex m = { { 0 } };

        ASSERT_FALSE(resha_mutex_locked(&m));
        ASSERT_OK(resha_mutex_lock(&m));
        ASSERT_TRUE(resha_mutex_locked(&m));
        ASSERT_OK(resha_mutex_unlock(&m));
        ASSERT_FALSE(resha_mutex_locked(&m));
        ASSERT_OK(resha_mutex_try_lock(&m));
        ASSERT_TRUE(resha_mutex_locked(&m));
        ASSERT_OK(resha_mutex_unlock(&m));
        return 0;
}

struct counter {
        resha_mutex *mutex;
        int *value;
};

static int adds_one(void *arg)
{
        struct counter *c = arg;
        int rc = c->mutex ? resha_mutex_lock(c->mutex) : 0;

        if (rc < 0)
                return rc;
        int seen = *c->value;
        rc = resha_sleep(MS(1));
        *c->value = seen + 1;
        if (c->mutex)
                ASSERT_OK(resha_mutex_unlock(c->mutex));
        return rc;
}

static int hundred_add(void *arg)
{
        bool with_lock = *(bool *)arg;
        resha_mutex m = { { 0 } };
        int value = 0;

        RESHA_GROUP(g);
        struct counter c = { with_lock ? &m : NULL, &value };
        resha_group_begin(&g, NULL);
        for (int i = 0; i < 100; i++)
                ASSERT_OK(resha_spawn_copy(&g, adds_one, &c));
        ASSERT_OK(resha_group_end(&g, 0));
        if (with_lock)
                ASSERT_EQ(value, 100);
        else
                ASSERT_TRUE(value < 100);
        return 0;
}

TEST(mutex_keeps_a_counter)
{
        RUN_SEEDS(hundred_add, &(bool){ true }, 20);
}
TEST(mutex_without_it_the_counter_is_wrong)
{
        RUN(hundred_add, &(bool){ false });
}

/* semantics 184 same
 * asyncio: waiters get the lock first in, first out; nobody overtakes one that was woken.
 * resha: the same; unlocking makes the first waiter the owner, so there is no moment in which it could be
 * overtaken. */
TASK(semantics_184_mutex_first_come_first_served)
{
        resha_mutex m = { { 0 } };
        struct locker l[] = { { .mutex = &m, .name = "a", .ms = 3 },
                              { .mutex = &m, .name = "b", .ms = 2 },
                              { .mutex = &m, .name = "c", .ms = 1 } };

        ASSERT_OK(resha_gather(locks, l, 3, sizeof l[0], NULL));
        ASSERT_STR(notes(), "a+ a- b+ b- c+ c-");
        return 0;
}

TASK(mutex_unlock_hands_over_and_nobody_overtakes)
{
        resha_mutex m = { { 0 } };
        struct locker l = { .mutex = &m, .name = "waiter" };

        ASSERT_OK(resha_mutex_lock(&m));
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, locks, &l);
        ASSERT_OK(resha_yield());
        ASSERT_OK(resha_mutex_unlock(&m));
        ASSERT_TRUE(resha_mutex_locked(&m)); /* it is the waiter's already */
        ASSERT_EQ(resha_mutex_try_lock(&m), -EAGAIN);
        ASSERT_EQ(resha_mutex_unlock(&m), -EPERM);
        ASSERT_OK(resha_mutex_lock(&m)); /* behind it */
        note("main");
        ASSERT_OK(resha_mutex_unlock(&m));
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "waiter+ waiter- main");
        return 0;
}

/* semantics 186 same
 * asyncio: releasing a lock that is not taken is an error.
 * resha: resha_mutex_unlock() gives -EPERM. */
TASK(semantics_186_unlock_of_a_free_mutex)
{
        resha_mutex m = { { 0 } };

        ASSERT_EQ(resha_mutex_unlock(&m), -EPERM);
        return 0;
}

static int unlocks(void *arg)
{
        return resha_mutex_unlock(arg);
}

/* semantics 187 better
 * asyncio: a lock has no owner: any task may release it.
 * resha: the task that took it is its owner; resha_mutex_unlock() by another gives -EPERM and does nothing. */
TASK(semantics_187_unlock_by_another_task)
{
        resha_mutex m = { { 0 } };

        ASSERT_OK(resha_mutex_lock(&m));
        ASSERT_EQ(resha_gather(unlocks, &m, 1, sizeof m, NULL), -EPERM);
        ASSERT_TRUE(resha_mutex_locked(&m));
        ASSERT_OK(resha_mutex_unlock(&m));
        return 0;
}

/* semantics 188 better
 * asyncio: a task that takes a lock it holds waits for ever.
 * resha: it gets -EDEADLK at once. */
TASK(semantics_188_locking_twice)
{
        resha_mutex m = { { 0 } };

        ASSERT_OK(resha_mutex_lock(&m));
        ASSERT_EQ(resha_mutex_lock(&m), -EDEADLK);
        ASSERT_EQ(resha_mutex_try_lock(&m), -EDEADLK);
        ASSERT_OK(resha_mutex_unlock(&m));
        ASSERT_FALSE(resha_mutex_locked(&m));
        return 0;
}

static int counts(void *n)
{
        ++*(int *)n;
        return 0;
}

/* semantics 189 better
 * asyncio: taking a free lock never suspends, and so sees no cancel.
 * resha: it is taken at once, but the call looks for a cancel first, and each 64th that need not wait lets others
 * run. */
TASK(semantics_189_free_mutex_is_taken_at_once)
{
        resha_mutex m = { { 0 } };
        int turns = 0;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, counts, &turns);
        for (int i = 0; i < 63; i++) {
                ASSERT_OK(resha_mutex_lock(&m));
                ASSERT_OK(resha_mutex_unlock(&m));
                ASSERT_EQ(turns, 0);
        }
        ASSERT_OK(resha_mutex_lock(&m));
        ASSERT_EQ(turns, 1);
        ASSERT_OK(resha_mutex_unlock(&m));
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, MS(0));
        int rc = resha_mutex_lock(&m);
        ASSERT_EQ(rc, -ECANCELED);
        ASSERT_EQ(resha_scope_end(&s, rc), -ETIME);
        ASSERT_FALSE(resha_mutex_locked(&m));
        return resha_group_end(&g, 0);
}

/* semantics 190 better
 * asyncio: a waiter that is cancelled after it was woken passes the wake-up on to the next.
 * resha: it has been given the lock, and gets 0: it unlocks as always, its next call sees the cancel. Nothing is
 * lost either. */
TASK(semantics_190_waiter_that_was_given_the_lock_and_is_cancelled_has_it)
{
        resha_mutex m = { { 0 } };
        struct locker l[] = { { .mutex = &m, .name = "a", .ms = 5 }, { .mutex = &m, .name = "b" } };

        ASSERT_OK(resha_mutex_lock(&m));
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (size_t i = 0; i < 2; i++)
                ASSERT_OK(resha_spawn_task(&g, locks, &l[i], &l[i].task));
        ASSERT_OK(resha_yield());
        ASSERT_OK(resha_mutex_unlock(&m));
        resha_task_cancel(&l[0].task);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "a+ a- b+ b-"); /* its sleep was cut short, the lock went on */
        ASSERT_FALSE(resha_mutex_locked(&m));
        return 0;
}

TASK(mutex_cancelled_waiter_leaves_the_line)
{
        resha_mutex m = { { 0 } };
        struct locker l[] = { { .mutex = &m, .name = "a" },
                              { .mutex = &m, .name = "b" },
                              { .mutex = &m, .name = "c" } };

        ASSERT_OK(resha_mutex_lock(&m));
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (size_t i = 0; i < 3; i++)
                ASSERT_OK(resha_spawn_task(&g, locks, &l[i], &l[i].task));
        ASSERT_OK(resha_yield());
        resha_task_cancel(&l[1].task);
        ASSERT_OK(resha_yield());
        ASSERT_OK(resha_mutex_unlock(&m));
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "b! a+ a- c+ c-");
        return 0;
}

TASK(mutex_wait_under_a_timeout)
{
        resha_mutex m = { { 0 } };
        struct locker l = { .mutex = &m, .name = "a", .ms = 1000 };

        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        resha_spawn(&g, locks, &l);
        ASSERT_OK(resha_yield());
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, MS(2));
        int rc = resha_mutex_lock(&m);
        ASSERT_EQ(resha_scope_end(&s, rc), -ETIME);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_FALSE(resha_mutex_locked(&m));
        return 0;
}

TEST(mutex_outside_a_task)
{
        resha_mutex m = { { 0 } };

        ASSERT_EQ(resha_mutex_lock(&m), -EPERM);
        ASSERT_EQ(resha_mutex_try_lock(&m), -EPERM);
        ASSERT_EQ(resha_mutex_unlock(&m), -EPERM);
}

/* A loop that runs for months starts more tasks than 32 bits count. */
TASK(mutex_held_since_four_thousand_million_tasks)
{
        resha_mutex m = { { 0 } };
        struct locker l[] = { { &m, "a", 0, { 0 } }, { &m, "b", 0, { 0 } } };

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_mutex_lock(&m));
        rs_loop_current->last_mark += UINT32_MAX;
        for (int i = 0; i < 2; i++)
                ASSERT_OK(resha_spawn(&g, locks, &l[i]));
        ASSERT_OK(resha_yield());
        ASSERT_STR(notes(), "");
        ASSERT_OK(resha_mutex_unlock(&m));
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "a+ a- b+ b-");
        return 0;
}
