/* SPDX-License-Identifier: MIT */
/* The trials themselves: bugs are planted in programs, as people make them, and must be found; and what a failure
 * prints must repeat it. */

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "trial.h"

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

static void permits_check(void *state, int rc, const struct trial *t)
{
        struct permits *s = state;

        (void)rc, (void)t;
        if (s->begun)
                ASSERT_EQ(resha_semaphore_available(&s->sem), 1);
}

static const struct scenario permit_lost = { .size = sizeof(struct permits),
                                             .fn = permits_main,
                                             .check = permits_check };

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

static void no_check(void *state, int rc, const struct trial *t)
{
        (void)state, (void)rc, (void)t;
}

static const struct scenario memory_lost = { .size = 1, .fn = leak_main, .check = no_check };

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

static void order_check(void *state, int rc, const struct trial *t)
{
        (void)rc, (void)t;
        ASSERT_FALSE(((struct order *)state)->swapped);
}

static const struct scenario order_assumed = { .size = sizeof(struct order), .fn = order_main, .check = order_check };

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

static const struct scenario never_ends = { .size = sizeof(resha_event), .fn = stuck_main, .check = no_check };

/* ---- found, and found again ---- */

static int run_in_child(void *arg)
{
        trial_seeds(arg, 5);
        return 0;
}

/* The trial that the text names, as the environment wants it. */
static bool trial_in(const char *text, char *ret_trial, size_t size)
{
        const char *from = strstr(text, "SIM_TRIAL='"), *to = from ? strchr(from + 11, '\'') : NULL;

        if (!to || (size_t)(to - from) >= size)
                return false;
        snprintf(ret_trial, size, "%.*s", (int)(to - from - 11), from + 11);
        return true;
}

static void must_be_found(const struct scenario *s, const char *where)
{
        static struct test_child first, again;
        char trial[160];

        test_child(run_in_child, (void *)(uintptr_t)s, &first);
        ASSERT_TRUE(!WIFEXITED(first.status) || WEXITSTATUS(first.status) != 0);
        ASSERT_HAS(first.text, where);
        ASSERT_TRUE(trial_in(first.text, trial, sizeof trial));
        setenv("SIM_TRIAL", trial, 1);
        test_child(run_in_child, (void *)(uintptr_t)s, &again);
        ASSERT_STR(again.text, first.text);
}

TEST(planted_lost_permit)
{
        must_be_found(&permit_lost, "resha_semaphore_available");
}
TEST(planted_lost_memory)
{
        must_be_found(&memory_lost, "rs_alloc_live");
}
TEST(planted_assumed_order)
{
        must_be_found(&order_assumed, "swapped");
}
TEST(planted_clean_up_that_never_ends)
{
        must_be_found(&never_ends, "deadlock");
}
