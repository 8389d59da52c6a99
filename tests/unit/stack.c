/* SPDX-License-Identifier: MIT */
/* Stacks: guards, reuse, warm stacks, limits. */

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "core/core.h"
#include "job.h"

static int recurse(int depth)
{
        volatile char page[1024];

        memset((char *)page, depth, sizeof page);
        return depth > 1000000 ? 0 : recurse(depth + 1) + page[7];
}

static int overflows(__attribute__((unused)) void *arg)
{
        return recurse(0);
}

static int jumps_over_a_page(__attribute__((unused)) void *arg)
{
        volatile char locals[230 * 1024]; /* its end lies 38 KiB into the guard; one of a page would not be hit */

        __asm__ volatile("" : : "r"(locals) : "memory"); /* all of it is used */
        locals[0] = 1;
        return locals[0];
}

static int run_task(void *arg)
{
        resha_fn *fn = (resha_fn *)arg;

        return test_run_opts(fn, NULL, NULL);
}

static void ends_by_its_guard(resha_fn *fn)
{
        struct test_child c;

        test_child(run_task, (void *)fn, &c);
#if TEST_ASAN || TEST_TSAN
        ASSERT_TRUE(!WIFEXITED(c.status) || WEXITSTATUS(c.status) != 0);
#else
        ASSERT_TRUE(WIFSIGNALED(c.status));
        ASSERT_TRUE(WTERMSIG(c.status) == SIGSEGV || WTERMSIG(c.status) == SIGBUS);
#endif
}

TEST(stack_overflow_hits_the_guard)
{
        ends_by_its_guard(overflows);
}
TEST(stack_overflow_by_one_large_frame_hits_the_guard)
{
        ends_by_its_guard(jumps_over_a_page);
}

static int spawns_one_that_overflows(__attribute__((unused)) void *arg)
{
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, overflows, NULL);
        return resha_group_end(&g, 0);
}

static int run_with_report(void *arg)
{
        return test_run_opts((resha_fn *)arg, NULL, &(resha_run_opts){ .overflow_report = true });
}

/* After the report the fault happens again, with what there was before. */
TEST(stack_overflow_report_names_the_task)
{
        struct test_child c;

#if TEST_ASAN || TEST_TSAN
        test_skip("the sanitizer reports it");
#endif
        test_child(run_with_report, (void *)spawns_one_that_overflows, &c);
        ASSERT_TRUE(WIFSIGNALED(c.status));
        ASSERT_EQ(WTERMSIG(c.status), SIGSEGV);
        ASSERT_HAS(c.text, "resha: stack overflow in task \"overflows\" spawned at tests/unit/stack.c:");
}

static int null_pointer(void *arg)
{
        return *(volatile int *)arg;
}

TEST(stack_overflow_report_is_silent_about_other_faults)
{
        struct test_child c;

#if TEST_ASAN || TEST_TSAN
        test_skip("the sanitizer reports it");
#endif
        test_child(run_with_report, (void *)null_pointer, &c);
        ASSERT_TRUE(WIFSIGNALED(c.status));
        ASSERT_EQ(WTERMSIG(c.status), SIGSEGV);
        ASSERT_TRUE(!strstr(c.text, "resha")); /* an emulator may say something of its own */
}

static int where(void *arg)
{
        *(void **)arg = __builtin_frame_address(0);
        return 0;
}

TASK(stack_is_used_again)
{
        char *first = NULL, *second = NULL;

        ASSERT_OK(resha_gather(where, &first, 1, sizeof first, NULL));
        ASSERT_OK(resha_gather(where, &second, 1, sizeof second, NULL));
        ASSERT_TRUE(first && first == second); /* the hot one */
        return 0;
}

TASK(stack_of_tasks_that_never_wait_is_one)
{
        char *at[100] = { NULL };

        ASSERT_OK(resha_gather(where, at, 100, sizeof at[0], NULL));
        for (size_t i = 1; i < 100; i++)
                ASSERT_PTR(at[i], at[0]);
        /* Where guards cost mappings each promise makes its stack ready, though they all run on the hot one. */
        ASSERT_TRUE(rs_loop_current->stacks.made <= (rs_loop_current->stacks.light_guards ? 2 : 102));
        return 0;
}

static int where_and_wait(void *arg)
{
        where(arg);
        return resha_sleep(MS(1));
}

TASK(stacks_of_waiting_tasks_are_apart)
{
        char *at[50] = { NULL };

        ASSERT_OK(resha_gather(where_and_wait, at, 50, sizeof at[0], NULL));
        for (size_t i = 0; i < 50; i++)
                for (size_t k = 0; k < i; k++)
                        ASSERT_TRUE(at[i] - at[k] > 100 * 1024 || at[k] - at[i] > 100 * 1024);
        return 0;
}

TASK(stack_size_for_one_task_is_checked)
{
        struct job j = JOB("a", 1);

        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .keep_going = true });
        int rc = resha_spawn_opt(&g, job, &j, &(resha_spawn_opts){ .stack = SIZE_MAX / 2 });
        ASSERT_TRUE(rc == -ENOMEM || rc == -EINVAL || rc == -EAGAIN);
        rc = resha_group_end(&g, 0);
        ASSERT_TRUE(rc <= 0);
        ASSERT_STR(notes(), "");
        return 0;
}
