/* SPDX-License-Identifier: MIT */
/* The condition: waiting for what a mutex guards. */

#include "job.h"

struct shared {
        resha_mutex mutex;
        resha_condition changed;
        int value, inside;
};

struct waiter {
        struct shared *s;
        const char *name;
        int64_t ms; /* holds the mutex for this after the wait */
        resha_task task;
};

#define WAITER(n) \
        { \
                .s = &s, .name = n \
        }

/* "a0": a's wait gave 0; "a!": it was cancelled. Only one is ever inside. */
static int waits(void *arg)
{
        struct waiter *w = arg;
        struct shared *s = w->s;
        int rc = resha_mutex_lock(&s->mutex);

        if (rc < 0)
                return rc;
        rc = resha_condition_wait(&s->changed);
        if (rc == -ECANCELED)
                note("%s!", w->name);
        else
                note("%s%d", w->name, rc);
        ASSERT_EQ(++s->inside, 1);
        int slept = w->ms ? resha_sleep(MS(w->ms)) : 0;
        s->inside--;
        ASSERT_OK(resha_mutex_unlock(&s->mutex)); /* it is held, whatever the result */
        return rc < 0 ? rc : slept;
}

static void spawn_waiters(resha_group *g, struct waiter *w, size_t n)
{
        resha_group_begin(g, &(resha_group_opts){ .keep_going = true });
        resha_condition_init(&w->s->changed, &w->s->mutex);
        for (size_t i = 0; i < n; i++)
                ASSERT_OK(resha_spawn_task(g, waits, &w[i], &w[i].task));
}

TASK(condition_notifies_the_first_n)
{
        struct shared s = { 0 };
        struct waiter w[] = { WAITER("a"), WAITER("b"), WAITER("c"), WAITER("d") };

        RESHA_GROUP(g);
        spawn_waiters(&g, w, 4);
        ASSERT_OK(resha_yield());
        ASSERT_FALSE(resha_mutex_locked(&s.mutex)); /* all four wait, and gave it away */
        ASSERT_OK(resha_mutex_lock(&s.mutex));
        ASSERT_OK(resha_condition_notify(&s.changed, 0));
        ASSERT_OK(resha_condition_notify(&s.changed, 1));
        ASSERT_OK(resha_condition_notify(&s.changed, 2));
        ASSERT_OK(resha_mutex_unlock(&s.mutex));
        ASSERT_OK(resha_sleep(MS(2)));
        ASSERT_STR(notes(), "a0 b0 c0");
        ASSERT_OK(resha_mutex_lock(&s.mutex));
        ASSERT_OK(resha_condition_notify(&s.changed, 7));
        ASSERT_OK(resha_condition_notify_all(&s.changed)); /* nobody is left */
        ASSERT_OK(resha_mutex_unlock(&s.mutex));
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "d0");
        return 0;
}

static int misuses(void *arg)
{
        struct shared *s = arg;

        /* The mutex is held, but by another task. */
        ASSERT_EQ(resha_condition_wait(&s->changed), -EPERM);
        ASSERT_HAS(resha_error_of(-EPERM)->text, "does not hold the condition's mutex");
        ASSERT_EQ(resha_condition_notify(&s->changed, 1), -EPERM);
        ASSERT_EQ(resha_condition_notify_all(&s->changed), -EPERM);
        return 0;
}

/* semantics 196 better
 * asyncio: wait and notify check that the lock is held, by whomever.
 * resha: they check that this task holds it, else -EPERM and a record that says so. */
TASK(semantics_196_condition_looks_whether_this_task_holds_the_mutex)
{
        struct shared s = { 0 };

        resha_condition_init(&s.changed, &s.mutex);
        ASSERT_EQ(resha_condition_wait(&s.changed), -EPERM);
        ASSERT_EQ(resha_condition_notify(&s.changed, 1), -EPERM);
        ASSERT_EQ(resha_condition_notify_all(&s.changed), -EPERM);
        ASSERT_OK(resha_mutex_lock(&s.mutex));
        ASSERT_OK(resha_gather(misuses, &s, 1, sizeof s, NULL));
        ASSERT_OK(resha_condition_notify_all(&s.changed));
        ASSERT_OK(resha_mutex_unlock(&s.mutex));
        return 0;
}

/* semantics 198 same
 * asyncio: a notified waiter comes back once it has the lock again.
 * resha: so it does; notified ones stand in the mutex's own line, and none runs before it is the owner. */
TASK(semantics_198_condition_waiter_returns_with_the_mutex)
{
        struct shared s = { 0 };
        struct waiter w[] = { WAITER("a"), WAITER("b") };

        RESHA_GROUP(g);
        w[0].ms = 3;
        spawn_waiters(&g, w, 2);
        ASSERT_OK(resha_yield());
        ASSERT_OK(resha_mutex_lock(&s.mutex));
        ASSERT_OK(resha_condition_notify_all(&s.changed));
        ASSERT_OK(resha_sleep(MS(2)));
        note("unlock");
        ASSERT_OK(resha_mutex_unlock(&s.mutex));
        ASSERT_OK(resha_mutex_lock(&s.mutex)); /* behind both */
        note("main");
        ASSERT_OK(resha_mutex_unlock(&s.mutex));
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "unlock a0 b0 main");
        return 0;
}

/* semantics 199 same
 * asyncio: a cancelled waiter takes the lock before the cancel leaves the wait; while the lock is busy, that is later.
 * resha: the same. Taking the mutex again is no cancellation point; -ECANCELED always comes with the mutex held. */
TASK(semantics_199_condition_waiter_that_is_cancelled_has_the_mutex)
{
        struct shared s = { 0 };
        struct waiter w[] = { WAITER("a"), WAITER("b") };

        RESHA_GROUP(g);
        spawn_waiters(&g, w, 2);
        ASSERT_OK(resha_yield());
        resha_task_cancel(&w[0].task); /* the mutex is free: at once */
        ASSERT_TRUE(resha_mutex_locked(&s.mutex));
        ASSERT_OK(resha_yield());
        ASSERT_STR(notes(), "a!");
        ASSERT_OK(resha_mutex_lock(&s.mutex));
        resha_task_cancel(&w[1].task);
        ASSERT_OK(resha_sleep(MS(2)));
        note("unlock");
        ASSERT_OK(resha_mutex_unlock(&s.mutex));
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "unlock b!");
        ASSERT_FALSE(resha_mutex_locked(&s.mutex));
        return 0;
}

static int counts_turns(void *arg)
{
        int rc = 0;

        for (int i = 0; i < 20 && rc >= 0; i++) {
                ++*(int *)arg;
                rc = resha_yield();
        }
        return rc;
}

/* semantics 200 better
 * asyncio: cancelled again and again while it takes the lock, a waiter tries again each time and raises the last one.
 * resha: a cancel stays until its scope ends, so there is one; the waiter stands in the mutex's line and does not run
 * before it has it, however often it is cancelled. */
TASK(semantics_200_condition_waiter_that_is_cancelled_does_not_spin)
{
        struct shared s = { 0 };
        struct waiter w = WAITER("a");
        int turns = 0;

        RESHA_GROUP(g);
        spawn_waiters(&g, &w, 1);
        ASSERT_OK(resha_yield());
        ASSERT_OK(resha_mutex_lock(&s.mutex));
        for (int i = 0; i < 3; i++) {
                resha_task_cancel(&w.task);
                ASSERT_OK(resha_yield());
        }
        /* Only we and the counter run: each of its turns is one of ours. */
        resha_spawn(&g, counts_turns, &turns);
        for (int i = 0; i < 10; i++) {
                ASSERT_EQ(turns, i);
                ASSERT_OK(resha_yield());
        }
        ASSERT_STR(notes(), "");
        ASSERT_OK(resha_mutex_unlock(&s.mutex));
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "a!");
        return 0;
}

/* semantics 201 better
 * asyncio: the notification of a waiter that is cancelled at the same time goes to another one (it was lost once).
 * resha: what was notified is done: that waiter gets 0 and uses its notification, its next call sees the cancel; one
 * that was cancelled first uses none up. */
TASK(semantics_201_condition_notified_then_cancelled_is_done)
{
        struct shared s = { 0 };
        struct waiter w[] = { WAITER("a"), WAITER("b"), WAITER("c") };

        RESHA_GROUP(g);
        w[0].ms = 1000;
        spawn_waiters(&g, w, 3);
        ASSERT_OK(resha_yield());
        ASSERT_OK(resha_mutex_lock(&s.mutex));
        ASSERT_OK(resha_condition_notify(&s.changed, 1));
        resha_task_cancel(&w[0].task); /* too late */
        resha_task_cancel(&w[1].task);
        ASSERT_OK(resha_condition_notify(&s.changed, 1)); /* c's: b has left the line */
        ASSERT_OK(resha_mutex_unlock(&s.mutex));
        int status;
        ASSERT_OK(resha_task_wait(&w[0].task, &status));
        ASSERT_EQ(status, -ECANCELED); /* its sleep */
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "a0 b! c0");
        return 0;
}

struct box {
        struct shared s;
        int items, asked;
};

static bool has_item(void *arg)
{
        struct box *b = arg;

        b->asked++;
        ASSERT_TRUE(resha_mutex_locked(&b->s.mutex));
        return b->items > 0;
}

static int takes(void *arg)
{
        struct box *b = arg;
        int rc = resha_mutex_lock(&b->s.mutex);

        if (rc < 0)
                return rc;
        rc = resha_condition_wait_for(&b->s.changed, has_item, b);
        if (rc >= 0) {
                b->items--;
                ASSERT_TRUE(b->items >= 0);
        }
        ASSERT_OK(resha_mutex_unlock(&b->s.mutex));
        return rc;
}

static int puts_item(void *arg)
{
        struct box *b = arg;
        int rc = resha_mutex_lock(&b->s.mutex);

        if (rc < 0)
                return rc;
        b->items++;
        ASSERT_OK(resha_condition_notify(&b->s.changed, 1));
        ASSERT_OK(resha_mutex_unlock(&b->s.mutex));
        return 0;
}

/* semantics 202 same
 * asyncio: a wait may return although nothing is there for it, so its predicate must be asked again.
 * resha: a notified waiter may find what it waited for taken by one that stood before it in the mutex's line;
 * resha_condition_wait_for() asks again, and returns 0 only when it is true. */
TASK(semantics_202_condition_predicate_is_asked_again)
{
        struct box b = { 0 };

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_condition_init(&b.s.changed, &b.s.mutex);
        resha_spawn(&g, takes, &b);
        ASSERT_OK(resha_yield());
        ASSERT_EQ(b.asked, 1);
        ASSERT_OK(resha_mutex_lock(&b.s.mutex));
        resha_spawn(&g, takes, &b); /* stands in the mutex's line before the notified one */
        ASSERT_OK(resha_yield());
        b.items = 1;
        ASSERT_OK(resha_condition_notify(&b.s.changed, 1));
        ASSERT_OK(resha_mutex_unlock(&b.s.mutex));
        ASSERT_OK(resha_sleep(MS(2)));
        ASSERT_EQ(b.items, 0);
        ASSERT_EQ(b.asked, 3); /* the first one's second time was for nothing */
        ASSERT_OK(puts_item(&b));
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(b.items, 0);
        ASSERT_EQ(b.asked, 4);
        return 0;
}

/* semantics 204 same
 * asyncio: when a timeout strikes a wait inside the condition's block, the lock is held when it leaves the wait.
 * resha: the same, for waits in a timeout's scope that lies inside the locked stretch. */
TASK(semantics_204_condition_wait_under_a_timeout_has_the_mutex)
{
        struct box b = { 0 };
        resha_instant start = resha_now();

        resha_condition_init(&b.s.changed, &b.s.mutex);
        ASSERT_OK(resha_mutex_lock(&b.s.mutex));
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, MS(3));
        int rc = resha_condition_wait_for(&b.s.changed, has_item, &b);
        ASSERT_EQ(rc, -ECANCELED);
        ASSERT_TRUE(resha_mutex_locked(&b.s.mutex));
        /* Cancelled from the start: the mutex is not given away. */
        ASSERT_EQ(resha_condition_wait(&b.s.changed), -ECANCELED);
        ASSERT_EQ(resha_scope_end(&s, rc), -ETIME);
        ASSERT_PASSED(start, 3);
        ASSERT_OK(resha_condition_notify_all(&b.s.changed)); /* nobody is left in its line */
        ASSERT_OK(resha_mutex_unlock(&b.s.mutex));
        return 0;
}

TASK(condition_wait_for_what_is_true_gives_nothing_away)
{
        struct box b = { .items = 1 };

        resha_condition_init(&b.s.changed, &b.s.mutex);
        ASSERT_OK(resha_mutex_lock(&b.s.mutex));
        for (int i = 0; i < 200; i++) /* it may yield, as any call */
                ASSERT_OK(resha_condition_wait_for(&b.s.changed, has_item, &b));
        ASSERT_EQ(b.asked, 200);
        ASSERT_OK(resha_mutex_unlock(&b.s.mutex));
        return 0;
}

TASK(condition_wait_for_looks_for_a_cancel_first)
{
        struct box b = { .items = 1 };

        resha_condition_init(&b.s.changed, &b.s.mutex);
        ASSERT_OK(resha_mutex_lock(&b.s.mutex));
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, MS(0));
        int rc = resha_condition_wait_for(&b.s.changed, has_item, &b);
        ASSERT_EQ(rc, -ECANCELED);
        ASSERT_EQ(b.asked, 0);
        ASSERT_EQ(resha_scope_end(&s, rc), -ETIME);
        ASSERT_OK(resha_mutex_unlock(&b.s.mutex));
        return 0;
}

TASK(condition_misuse_comes_before_a_cancel)
{
        struct shared s = { 0 };

        resha_condition_init(&s.changed, &s.mutex);
        RESHA_SCOPE(scope);
        resha_timeout_begin(&scope, MS(0));
        ASSERT_EQ(resha_condition_wait(&s.changed), -EPERM);
        ASSERT_EQ(resha_condition_wait(&(resha_condition){ { 0 } }), -EINVAL);
        ASSERT_HAS(resha_error_of(-EINVAL)->text, "resha_condition_init()");
        ASSERT_EQ(resha_condition_notify(&(resha_condition){ { 0 } }, 1), -EINVAL);
        ASSERT_EQ(resha_scope_end(&scope, 0), 0);
        return 0;
}

TASK(condition_two_of_one_mutex)
{
        struct shared s = { 0 };
        resha_condition other;
        struct waiter w = WAITER("a");

        resha_condition_init(&other, &s.mutex);
        RESHA_GROUP(g);
        spawn_waiters(&g, &w, 1);
        ASSERT_OK(resha_yield());
        ASSERT_OK(resha_mutex_lock(&s.mutex));
        ASSERT_OK(resha_condition_notify_all(&other));
        ASSERT_OK(resha_mutex_unlock(&s.mutex));
        ASSERT_OK(resha_sleep(MS(1)));
        ASSERT_STR(notes(), "");
        ASSERT_OK(resha_mutex_lock(&s.mutex));
        ASSERT_OK(resha_condition_notify_all(&s.changed));
        ASSERT_OK(resha_mutex_unlock(&s.mutex));
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "a0");
        return 0;
}

static int crowd(__attribute__((unused)) void *arg)
{
        struct box b = { 0 };

        resha_condition_init(&b.s.changed, &b.s.mutex);
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (int i = 0; i < 30; i++) {
                resha_spawn(&g, i % 3 ? takes : puts_item, &b);
                resha_spawn(&g, i % 3 ? puts_item : takes, &b);
        }
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(b.items, 0);
        ASSERT_FALSE(resha_mutex_locked(&b.s.mutex));
        return 0;
}

TEST(condition_under_many_seeds)
{
        RUN_SEEDS(crowd, NULL, 50);
}

TEST(condition_outside_a_task)
{
        struct shared s = { 0 };

        resha_condition_init(&s.changed, &s.mutex);
        ASSERT_EQ(resha_condition_wait(&s.changed), -EPERM);
        ASSERT_EQ(resha_condition_wait_for(&s.changed, has_item, NULL), -EPERM);
        ASSERT_EQ(resha_condition_notify(&s.changed, 1), -EPERM);
}
