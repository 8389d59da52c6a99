/* SPDX-License-Identifier: MIT */
/* The trials themselves: bugs are planted in programs, as people make them, and must be found; and what a failure
 * prints must repeat it. */

#include <stdlib.h>

#include "planted.h"

/* ---- a permit that is not given back when the work under it is cancelled ---- */

struct permits {
        resha_semaphore sem;
        bool begun;
};

static int keeps_its_permit(void *arg)
{
        struct permits *s = arg;
        int rc = resha_semaphore_acquire(&s->sem);

        if (rc < 0 || (rc = resha_sleep(RESHA_US(10))) < 0)
                return rc; /* the bug: the second one */
        return resha_semaphore_release(&s->sem);
}

static int permits_main(void *arg)
{
        struct permits *s = arg;
        RESHA_GROUP(g);

        resha_semaphore_init(&s->sem, 1);
        s->begun = true;
        resha_group_begin(&g, &(resha_group_opts){ .keep_going = true });
        for (int i = 0; i < 3; i++)
                resha_spawn(&g, keeps_its_permit, s);
        return resha_group_end(&g, 0);
}

static void permits_check(void *state, int rc, const resha_test_trial *t)
{
        struct permits *s = state;

        (void)rc, (void)t;
        if (s->begun)
                ASSERT_EQ(resha_semaphore_available(&s->sem), 1);
}

static const struct planted permit_lost = { permits_main, { .state = sizeof(struct permits), .check = permits_check } };

/* ---- memory that is not released when there is no memory for the next piece ---- */

static int leak_main(void *arg)
{
        char *a = resha_malloc(10);
        char *b = resha_malloc(10);

        (void)arg;
        if (!a || !b)
                return -ENOMEM; /* the bug */
        int rc = resha_sleep(RESHA_US(10));
        resha_free(a);
        resha_free(b);
        return rc;
}

static const struct planted memory_lost = { leak_main, { 0 } };

/* ---- an order that only holds without luck ---- */

struct order {
        int last;
        bool swapped;
};

struct turn {
        struct order *s;
        int i;
};

static int takes_its_turn(void *arg)
{
        struct turn *t = arg;

        t->s->swapped |= t->s->last != t->i; /* the bug: tasks of one group may run in any order */
        t->s->last++;
        return 0;
}

static int order_main(void *arg)
{
        struct turn turns[3];

        for (int i = 0; i < 3; i++)
                turns[i] = (struct turn){ arg, i };
        return resha_gather(takes_its_turn, turns, 3, sizeof turns[0], NULL);
}

static void order_check(void *state, int rc, const resha_test_trial *t)
{
        (void)rc, (void)t;
        ASSERT_FALSE(((struct order *)state)->swapped);
}

static const struct planted order_assumed = { order_main, { .state = sizeof(struct order), .check = order_check } };

/* ---- a clean-up that waits for what nobody does ---- */

static int waits_for_nobody(void *arg)
{
        return resha_event_wait(arg);
}

static int stuck_main(void *arg)
{
        resha_event *never = arg;
        int rc = resha_sleep(RESHA_US(10));

        return rc < 0 ? resha_shielded(RESHA_FOREVER, waits_for_nobody, never) : rc; /* the bug */
}

static const struct planted never_ends = { stuck_main, { .state = sizeof(resha_event) } };

/* ---- an error that is thrown away ---- */

static int fails(void *arg)
{
        int rc = resha_sleep(RESHA_US(5));

        (void)arg;
        return rc < 0 ? rc : resha_fail(-EDOM, "the sum is wrong");
}

static int forgets_main(void *arg)
{
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        resha_spawn(&g, fails, arg);
        int rc = resha_sleep(RESHA_US(10));
        return rc == -ECANCELED ? 0 : rc; /* the bug: the group is left, and why is not looked at */
}

static const struct planted error_lost = { forgets_main, { 0 } };

/* ---- a loop that does not look ---- */

static int deaf_main(void *arg)
{
        (void)arg;
        for (int i = 0; i < 1500; i++) {
                int rc = resha_yield();
                (void)rc; /* the bug */
        }
        return 0;
}

static const struct planted goes_on = { deaf_main, { 0 } };

static int endless_main(void *arg)
{
        int rc;

        (void)arg;
        do
                rc = resha_yield();
        while (rc <= 0); /* the bug */
        return rc;
}

static const struct planted ends_never = { endless_main, { .checkpoints = 5000 } };

/* ---- a use after the end, which crashes ---- */

static int crash_main(void *arg)
{
        (void)arg;
        if (resha_sleep(RESHA_US(1)) < 0)
                abort(); /* as an assertion does */
        return 0;
}

static const struct planted crashes = { crash_main, { 0 } };

TEST(planted_lost_permit)
{
        must_be_found(&permit_lost, "resha_semaphore_available");
}
TEST(planted_lost_memory)
{
        must_be_found(&memory_lost, "not released");
}
TEST(planted_assumed_order)
{
        must_be_found(&order_assumed, "swapped");
}
TEST(planted_clean_up_that_never_ends)
{
        must_be_found(&never_ends, "nothing can wake it");
}
TEST(planted_lost_error)
{
        must_be_found(&error_lost, "the sum is wrong");
}
TEST(planted_loop_that_ignores_a_cancel)
{
        must_be_found(&goes_on, "goes on although");
}
TEST(planted_loop_without_end)
{
        must_be_found(&ends_never, "does not end within 5000 checkpoints");
}
TEST(planted_crash)
{
        must_be_found(&crashes, "cancel of the main task at checkpoint 1: it crashed");
}
