/* SPDX-License-Identifier: MIT */
/* Stacks of tasks: parked, running, not started, ended; deep, and with little room left. */

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "job.h"
#include "sanitized.h"
#include "sys/unwind.h"

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

#ifdef RS_HAVE_UNWIND

/* ---- the unwinder for what was interrupted anywhere: from all registers, and from those that the kernel tells ---- */

static struct {
        const void *all[DEPTH], *few[DEPTH];
        size_t n_all, n_few;
} interrupted;

enum { COPIED = 16 * 1024 };

/* Not by memcpy(): a sanitizer would find what is between variables. */
__attribute__((no_sanitize("address"))) static size_t copy_words(uintptr_t *to, const char *from, const char *top)
{
        size_t n = (size_t)(top - from) / sizeof *to;

        n = n < COPIED / sizeof *to ? n : COPIED / sizeof *to;
        for (size_t i = 0; i < n; i++)
                to[i] = ((const volatile uintptr_t *)(const void *)from)[i];
        return n;
}

static void look_at_interrupted(int sig, siginfo_t *info, void *context)
{
        const struct rs_task *t = rs_loop_current->current;
        struct rs_registers c;

        (void)sig, (void)info;
        rs_registers_take(&c, context);
        static uintptr_t copy[COPIED / sizeof(uintptr_t)];
        uintptr_t sp = c.registers[RS_DWARF_SP] & ~(uintptr_t)7;
        size_t n = copy_words(copy, (const char *)sp, t->stack->top);
        struct rs_memory m = { { { sp, sp + n * sizeof copy[0], copy } }, 1 };
        const void *end = (const void *)(uintptr_t)rs_task_entry;
        interrupted.n_all = rs_unwind(&c, &m, end, interrupted.all, DEPTH);
        c.known = UINT32_C(1) << RS_DWARF_SP;
        interrupted.n_few = rs_unwind(&c, &m, end, interrupted.few, DEPTH);
        /* Garbage leads nowhere, and does no harm. */
        for (uintptr_t i = 0; i < 200; i++) {
                const void *to[DEPTH];
                struct rs_registers bad = c;
                bad.registers[RS_DWARF_SP] = sp + i * 8;
                bad.registers[RS_DWARF_FP] = i * UINT64_C(0x123456789abcdf);
                bad.known |= i % 2 << RS_DWARF_FP;
                ASSERT_TRUE(rs_unwind(&bad, &m, end, to, DEPTH) <= DEPTH);
        }
}

static FRAME int raises(volatile char *where)
{
        int rc = raise(SIGUSR1);

        where[0] = 1;
        return rc;
}

static FRAME int raises_below(size_t n)
{
        char room[256 + 32];
        volatile char *aligned = room + (n & 31);
        int rc = raises(aligned);

        after_call += aligned[0];
        return rc;
}

static bool has(const void *const *stack, size_t depth, const char *name)
{
        char line[256];

        for (size_t i = 0; i < depth; i++)
                if (resha_frame_format(stack[i], line, sizeof line) && strncmp(line, name, strlen(name)) == 0)
                        return true;
        return false;
}

TASK(stack_of_what_a_signal_interrupts)
{
        struct sigaction sa = { .sa_sigaction = look_at_interrupted, .sa_flags = SA_SIGINFO }, before;

        if (TEST_VALGRIND)
                test_skip("a stack is copied with all that was never written there");
        ASSERT_EQ(sigaction(SIGUSR1, &sa, &before), 0);
        ASSERT_EQ(raises_below(interrupted.n_all), 0);
        ASSERT_EQ(sigaction(SIGUSR1, &before, NULL), 0);
        const char *names[] = { "raises+", "raises_below+", "task_stack_of_what_a_signal_interrupts" };
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
                if (!has(interrupted.all, interrupted.n_all, names[i]))
                        FAIL("%s: not in the stack of %zu", names[i], interrupted.n_all);
                if (!has(interrupted.few, interrupted.n_few, names[i]))
                        FAIL("%s: not in the stack of %zu, by the stack pointer", names[i], interrupted.n_few);
        }
        return 0;
}

#endif
