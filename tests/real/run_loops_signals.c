/* SPDX-License-Identifier: MIT */
/* Several loops at once, and signals: faults reach who handles them on every thread, and a signal that tasks of one
 * loop wait for ends no other one. */

#include "common.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <resha/loops.h>
#include <resha/signal.h>

#include "../lib/sanitized.h"

enum { LOOPS = 3 };

static int numbers[LOOPS] = { 0, 1, 2 };

static int run_loops(resha_fn *fn)
{
        return resha_run_loops(
                fn, numbers, LOOPS, sizeof numbers[0],
                &(resha_run_opts){ .backend = test_backend(), .terminate = true, .overflow_report = true });
}

/* ---- faults ---- */

static __attribute__((noinline)) int recurse(int depth)
{
        volatile char locals[512];

        locals[0] = (char)depth;
        return depth == -1 ? 0 : recurse(depth + 1) + locals[0];
}

static int the_last_overflows(void *arg)
{
        return *(int *)arg == LOOPS - 1 ? recurse(0) : resha_sleep(RESHA_S(60));
}

static int run(void *fn)
{
        return run_loops((resha_fn *)fn);
}

TEST(a_stack_overflow_on_any_loop_is_reported)
{
        struct test_child c;

        if (TEST_ASAN || TEST_TSAN || test_is_sim())
                test_skip("the sanitizer reports it, or there is one thread");
        test_child(run, (void *)the_last_overflows, &c);
        ASSERT_TRUE(WIFSIGNALED(c.status));
        ASSERT_EQ(WTERMSIG(c.status), SIGSEGV);
        ASSERT_HAS(c.text, "resha: stack overflow in task \"");
}

static void says_and_ends(int sig)
{
        static const char text[] = "handled\n";

        _exit(sig == SIGBUS && write(2, text, sizeof text - 1) > 0 ? 7 : 8);
}

/* Of the thread itself, as a fault is. */
static int the_last_faults(void *arg)
{
        return *(int *)arg == LOOPS - 1 ? raise(SIGBUS) : resha_sleep(RESHA_S(60));
}

static int run_handled(void *fn)
{
        signal(SIGBUS, says_and_ends);
        return run(fn);
}

TEST(a_fault_on_any_loop_comes_to_the_programs_handler)
{
        struct test_child c;

        if (TEST_ASAN || TEST_TSAN || test_is_sim())
                test_skip("the sanitizer has handlers of its own, or there is one thread");
        test_child(run_handled, (void *)the_last_faults, &c);
        ASSERT_TRUE(WIFEXITED(c.status));
        ASSERT_EQ(WEXITSTATUS(c.status), 7);
        ASSERT_HAS(c.text, "handled");
}

/* ---- SIGTERM ---- */

static atomic_int begun;

static int one_waits_for_it(void *arg)
{
        bool waits = *(int *)arg == 1;
        RESHA_CLEANUP(resha_signal_closep) resha_signals *s = NULL;
        resha_signal_info info;
        int rc = waits ? resha_signal_open((const int[]){ SIGTERM }, 1, &s) : 0;

        atomic_fetch_add(&begun, 1);
        while (rc == 0 && atomic_load(&begun) < LOOPS)
                rc = resha_sleep(RESHA_MS(1));
        if (rc < 0)
                return rc;
        if (!waits)
                return resha_sleep(RESHA_MS(50));
        ASSERT_OK(kill(getpid(), SIGTERM));
        rc = resha_signal_next(s, &info);
        ASSERT_TRUE(rc == 1 && info.signal == SIGTERM);
        return resha_sleep(RESHA_MS(50));
}

TEST(a_signal_that_one_loop_waits_for_ends_no_other)
{
        if (test_is_sim() || TEST_TSAN)
                test_skip("signals of the process are not those of a simulated world, and TSan puts them off");
        begun = 0;
        ASSERT_OK(run_loops(one_waits_for_it));
}

static int nobody_waits_for_it(void *arg)
{
        atomic_fetch_add(&begun, 1);
        while (atomic_load(&begun) < LOOPS) {
                int rc = resha_sleep(RESHA_MS(1));
                if (rc < 0)
                        return rc;
        }
        if (*(int *)arg == 1)
                ASSERT_OK(kill(getpid(), SIGTERM));
        return resha_sleep(RESHA_S(60));
}

TEST(a_signal_that_no_loop_waits_for_ends_all)
{
        if (test_is_sim() || TEST_TSAN)
                test_skip("signals of the process are not those of a simulated world, and TSan puts them off");
        begun = 0;
        ASSERT_EQ(run_loops(nobody_waits_for_it), -ECANCELED);
}
