/* SPDX-License-Identifier: MIT */
/* The flag that tasks wait for. */

#include "job.h"

struct waiter {
        resha_event *event;
        const char *name;
        resha_task task;
};

static int waits(void *arg)
{
        struct waiter *w = arg;
        int rc = resha_event_wait(w->event);

        note("%s%d", w->name, rc);
        return rc;
}

TASK(event_set_clear)
{
        resha_event e = { { 0 } };

        ASSERT_FALSE(resha_event_is_set(&e));
        resha_event_set(&e);
        resha_event_set(&e);
        ASSERT_TRUE(resha_event_is_set(&e));
        ASSERT_OK(resha_event_wait(&e));
        resha_event_clear(&e);
        resha_event_clear(&e);
        ASSERT_FALSE(resha_event_is_set(&e));
        return 0;
}

/* semantics 193 same
 * asyncio: set wakes all who wait; a later wait returns at once.
 * resha: the same. */
TASK(semantics_193_set_wakes_all_who_wait)
{
        resha_event e = { { 0 } };
        struct waiter w[] = { { .event = &e, .name = "a" },
                              { .event = &e, .name = "b" },
                              { .event = &e, .name = "c" } };

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (size_t i = 0; i < 3; i++)
                resha_spawn(&g, waits, &w[i]);
        ASSERT_OK(resha_sleep(MS(2)));
        note("set");
        resha_event_set(&e);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "set a0 b0 c0");
        return 0;
}

/* semantics 194 same
 * asyncio: who waited when it was set is woken, even if it is cleared before they run; they find it not set.
 * resha: the same. */
TASK(semantics_194_set_and_clear_at_once_still_wakes)
{
        resha_event e = { { 0 } };
        struct waiter w[] = { { .event = &e, .name = "a" },
                              { .event = &e, .name = "b" },
                              { .event = &e, .name = "late" } };

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, waits, &w[0]);
        resha_spawn(&g, waits, &w[1]);
        ASSERT_OK(resha_yield());
        resha_event_set(&e);
        resha_event_clear(&e);
        resha_spawn(&g, waits, &w[2]);
        ASSERT_OK(resha_sleep(MS(2)));
        ASSERT_STR(notes(), "a0 b0");
        ASSERT_FALSE(resha_event_is_set(&e));
        resha_event_set(&e);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "late0");
        return 0;
}

/* semantics 195 same
 * asyncio: a cancelled waiter leaves the list.
 * resha: the same, in the act of the cancel. */
TASK(semantics_195_cancelled_waiter_leaves_the_list)
{
        resha_event e = { { 0 } };
        struct waiter w[] = { { .event = &e, .name = "a" }, { .event = &e, .name = "b" } };

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (size_t i = 0; i < 2; i++)
                ASSERT_OK(resha_spawn_task(&g, waits, &w[i], &w[i].task));
        ASSERT_OK(resha_yield());
        resha_task_cancel(&w[0].task);
        ASSERT_OK(resha_yield());
        ASSERT_STR(notes(), "a-125");
        resha_event_set(&e);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "b0");
        return 0;
}

TASK(event_wait_under_a_timeout)
{
        resha_event e = { { 0 } };
        resha_instant start = resha_now();

        RESHA_SCOPE(s);
        resha_timeout_begin(&s, MS(3));
        int rc = resha_event_wait(&e);
        ASSERT_EQ(resha_scope_end(&s, rc), -ETIME);
        ASSERT_PASSED(start, 3);
        resha_event_set(&e); /* nobody is left in its list */
        return 0;
}

static int sets_then_cancels(void *arg)
{
        struct waiter *w = arg;

        resha_event_set(w->event);
        resha_task_cancel(&w->task);
        return 0;
}

TASK(event_that_was_set_wins_over_a_cancel)
{
        resha_event e = { { 0 } };
        struct waiter w = { .event = &e, .name = "a" };

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, waits, &w, &w.task));
        resha_spawn(&g, sets_then_cancels, &w);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "a0");
        return 0;
}

TEST(event_outside_a_task)
{
        resha_event e = { { 0 } };

        ASSERT_EQ(resha_event_wait(&e), -EPERM);
}
