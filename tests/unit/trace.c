/* SPDX-License-Identifier: MIT */
/* Stacks of tasks: parked, running, not started, ended; deep, and with little room left. */

#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "job.h"

enum { DEPTH = 64 };

/* Functions of the stack, innermost first: "a b c"; those of libresha are left out. */
static const char *names_of(const resha_task *t, size_t max)
{
        static char names[2048];
        const void *stack[DEPTH];
        size_t depth = resha_task_stack(t, stack, max);

        names[0] = 0;
        for (size_t i = 0; i < depth; i++) {
                char line[256];
                ASSERT_TRUE(resha_frame_format(stack[i], line, sizeof line));
                line[strcspn(line, "+.")] = 0;
                if (strncmp(line, "resha_", 6) == 0 || strncmp(line, "rs_", 3) == 0 || strcmp(line, "sleep_until") == 0)
                        continue;
                snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", names[0] ? " " : "", line);
        }
        return names;
}

/* Something to do after the call, so that none is the last one of its function. */
static volatile int after_call;

#define FRAME __attribute__((noinline, noclone))
#if defined(__clang__)
#undef FRAME
#define FRAME __attribute__((noinline))
#endif

static FRAME int inner(resha_event *e)
{
        int rc = resha_event_wait(e);

        after_call++;
        return rc;
}

static FRAME int middle(resha_event *e)
{
        int rc = inner(e);

        after_call++;
        return rc;
}

static FRAME int outer(void *arg)
{
        int rc = middle(arg);

        after_call++;
        return rc;
}

/* semantics 46 better
 * asyncio: the stack of a suspended task has one frame only.
 * resha: resha_task_stack() gives all calls of a task that waits, from the wait outwards to its function. */
TASK(semantics_46_stack_of_a_parked_task_is_that_of_its_calls_in_order)
{
        resha_event e = { { 0 } };
        resha_task t = { 0 };

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, outer, &e, &t));
        ASSERT_STR(names_of(&t, DEPTH), ""); /* it has not started */
        ASSERT_OK(resha_yield());
        ASSERT_STR(names_of(&t, DEPTH), "inner middle outer");
        ASSERT_STR(names_of(&t, DEPTH), "inner middle outer"); /* reading it has changed nothing */
        resha_event_set(&e);
        int rc = resha_group_end(&g, 0);
        ASSERT_STR(names_of(&t, DEPTH), ""); /* it has ended */
        return rc;
}

TASK(stack_of_the_innermost_calls_alone)
{
        resha_event e = { { 0 } };
        resha_task t = { 0 };
        const void *all[DEPTH], *two[2];

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, outer, &e, &t));
        ASSERT_OK(resha_yield());
        ASSERT_TRUE(resha_task_stack(&t, all, DEPTH) >= 4); /* the wait, and the three */
        ASSERT_EQ(resha_task_stack(&t, two, 2), 2);
        ASSERT_PTR(two[0], all[0]);
        ASSERT_PTR(two[1], all[1]);
        ASSERT_EQ(resha_task_stack(&t, two, 0), 0);
        resha_event_set(&e);
        return resha_group_end(&g, 0);
}

static FRAME int here(void *arg)
{
        snprintf(arg, 64, "%s", names_of(NULL, DEPTH));
        after_call++;
        return 0;
}

static FRAME int calls_here(void *arg)
{
        int rc = here(arg);

        after_call++;
        return rc;
}

TASK(stack_of_the_current_task)
{
        char names[64];

        ASSERT_OK(resha_gather(calls_here, names, 1, sizeof names, NULL));
        ASSERT_STR(names, "names_of here calls_here");
        return 0;
}

TEST(stack_outside_of_a_loop_is_none)
{
        const void *stack[4];

        ASSERT_EQ(resha_task_stack(NULL, stack, 4), 0);
        ASSERT_EQ(resha_report_tasks(), -EPERM);
}

/* ---- where it lies ---- */

static FRAME int recurse(int n, resha_event *e)
{
        int rc = n ? recurse(n - 1, e) : inner(e);

        after_call++;
        return rc;
}

static int hundred_deep(void *arg)
{
        return recurse(100, arg);
}

TASK(stack_deeper_than_the_list_is_cut)
{
        resha_event e = { { 0 } };
        resha_task t = { 0 };
        const void *stack[DEPTH];

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, hundred_deep, &e, &t));
        ASSERT_OK(resha_yield());
        ASSERT_EQ(resha_task_stack(&t, stack, DEPTH), DEPTH);
        resha_event_set(&e);
        return resha_group_end(&g, 0);
}

/* Uses the stack up to `room` bytes above the guard, then calls. */
static FRAME int fill(size_t room, int (*fn)(void *arg), void *arg)
{
        const struct rs_loop *l = rs_loop_current;
        char block[1024];

        memset(block, 1, sizeof block);
        __asm__ volatile("" : : "r"(block) : "memory");
        const char *low = l->current->stack->base + l->stacks.guard;
        int rc = (size_t)(block - low) > room ? fill(room, fn, arg) : fn(arg);
        __asm__ volatile("" : : "r"(block) : "memory");
        return rc;
}

static int depth_here(void *arg)
{
        const void *stack[4];

        *(size_t *)arg = resha_task_stack(NULL, stack, 4);
        return 0;
}

TASK(stack_with_little_room_is_not_looked_at_by_its_own_task)
{
        size_t depth = 1;

        ASSERT_OK(fill((size_t)40 * 1024, depth_here, &depth));
        ASSERT_EQ(depth, 4);
        ASSERT_OK(fill((size_t)8 * 1024, depth_here, &depth));
        ASSERT_EQ(depth, 0);
        return 0;
}

static int waits_at_the_end(void *arg)
{
        return fill((size_t)6 * 1024, outer, arg);
}

TASK(stack_that_is_nearly_full_is_read_by_others)
{
        resha_event e = { { 0 } };
        resha_task t = { 0 };

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, waits_at_the_end, &e, &t));
        ASSERT_OK(resha_yield());
        ASSERT_TRUE(strncmp(names_of(&t, DEPTH), "inner middle outer fill fill", 28) == 0);
        resha_event_set(&e);
        return resha_group_end(&g, 0);
}

/* A task that takes the stack of one that has ended over. */
TASK(stack_that_was_taken_over)
{
        resha_event e = { { 0 } };
        resha_task t = { 0 };
        struct job j = JOB("a", 0);

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, depth_here, &(size_t){ 0 });
        ASSERT_OK(resha_spawn_task(&g, outer, &e, &t));
        resha_spawn(&g, job, &j);
        ASSERT_OK(resha_yield());
        ASSERT_OK(resha_yield());
        ASSERT_STR(names_of(&t, DEPTH), "inner middle outer");
        resha_event_set(&e);
        int rc = resha_group_end(&g, 0);
        notes();
        return rc;
}

/* ---- seen by the report sink ---- */

static char seen_by_sink[2048];

static void sink_that_looks(__attribute__((unused)) const resha_report *r, void *arg)
{
        snprintf(seen_by_sink, sizeof seen_by_sink, "%s", names_of(arg, DEPTH));
}

static FRAME int ignores_cancels(void *arg)
{
        for (int i = 0; i < 1500; i++)
                after_call += resha_sleep(RESHA_S(1)) == -ECANCELED;
        (void)arg;
        return 0;
}

static int cancels_one_that_ignores(void *arg)
{
        resha_task *t = arg;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, ignores_cancels, NULL, t));
        ASSERT_OK(resha_yield());
        resha_task_cancel(t);
        return resha_group_end(&g, 0);
}

/* The task runs, although none does while the sink is called. */
TEST(stack_of_the_task_that_reports)
{
        resha_task t = { 0 };

        ASSERT_OK(test_run_opts(cancels_one_that_ignores, &t,
                                &(resha_run_opts){ .report = sink_that_looks, .report_arg = &t }));
        ASSERT_STR(seen_by_sink, "ignores_cancels");
}
