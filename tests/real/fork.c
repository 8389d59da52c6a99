/* SPDX-License-Identifier: MIT */
/* Processes that are forked inside a run, and go on without exec. */

#include "common.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <resha/test.h>

/* fn in a forked child: its exit code, or -1. Under TSan there is no child with threads of its own. */
static int in_child(int (*fn)(void *arg), void *arg)
{
        struct test_child c;

        test_child(fn, arg, &c);
        fputs(c.text, stderr);
        return WIFEXITED(c.status) ? WEXITSTATUS(c.status) : -1;
}

/* ---- outside of the parent's loop ---- */

static int use_parents_loop(void *arg)
{
        struct real_pair *p = arg;
        char c;

        ASSERT_FALSE(resha_in_task());
        ASSERT_STR(resha_backend(), NULL);
        ASSERT_EQ(resha_sleep(RESHA_MS(1)), -EPERM);
        ASSERT_EQ(resha_read(p->there, &c, 1), -EPERM);
        ASSERT_EQ(resha_write_all(p->here, "x", 1, NULL), -EPERM);
        resha_stream_close(p->here); /* the parent's: left alone */
        resha_stream_close(p->there);
        return 0;
}

static int read_two(void *arg)
{
        struct real_pair *p = arg;
        char buf[4];

        ASSERT_EQ(resha_read_exactly(p->there, buf, 2), 2);
        ASSERT_EQ(memcmp(buf, "ab", 2), 0);
        return 0;
}

/* semantics 300 same
 * asyncio: a forked child does not share the running loop, the current task or the wake-up descriptor of its parent.
 * resha: in a child that was forked inside a run, calls of tasks give -EPERM and leave the parent's objects alone; it
 * may have a run, signals and look-ups of its own, of which the parent notices nothing. */
TASK(semantics_300_forked_child_is_outside_of_the_loop)
{
        struct real_pair p;
        RESHA_GROUP(g);

        real_pair(&p);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, read_two, &p);
        ASSERT_OK(resha_sleep(RESHA_MS(1))); /* both ends are known to epoll, which the child has a copy of */
        ASSERT_EQ(in_child(use_parents_loop, &p), 0);
        ASSERT_OK(resha_write_all(p.here, "a", 1, NULL));
        ASSERT_OK(resha_sleep(RESHA_MS(1)));
        ASSERT_OK(resha_write_all(p.here, "b", 1, NULL));
        ASSERT_OK(resha_group_end(&g, 0));
        real_pair_close(&p);
        return 0;
}

/* ---- a run of its own ---- */

static int wait_usr1(void *arg)
{
        int sig;

        (void)arg;
        return resha_signal_wait((int[]){ SIGUSR1 }, 1, &sig);
}

static int raise_usr1(void *arg)
{
        int rc = resha_sleep(RESHA_MS(2));

        (void)arg;
        if (rc == 0)
                rc = test_is_sim() ? resha_test_signal(SIGUSR1) : raise(SIGUSR1);
        return rc;
}

static int add_one(void *arg)
{
        return ++*(int *)arg;
}

static int childs_program(void *arg)
{
        resha_addr addrs[4];
        size_t n = 0;
        int number = 1;
        struct real_pair p;
        RESHA_GROUP(g);

        (void)arg;
        real_pair(&p);
        ASSERT_OK(resha_write_all(p.here, "x", 1, NULL));
        real_pair_close(&p);
        ASSERT_EQ(resha_pool_run(NULL, add_one, &number, NULL), 2);
        ASSERT_OK(resha_resolve("localhost", "80", addrs, 4, &n));
        resha_group_begin(&g, NULL);
        resha_spawn(&g, wait_usr1, NULL);
        resha_spawn(&g, raise_usr1, NULL);
        return resha_group_end(&g, 0);
}

static int run_in_child(void *arg)
{
        return test_run_opts(childs_program, arg, NULL) == 0 ? 42 : 1;
}

TASK(semantics_300_forked_child_has_a_run_of_its_own)
{
        resha_addr addrs[4];
        size_t n = 0;
        int number = 1;

        if (real_under_tsan())
                test_skip("TSan knows no threads in a forked child");
        ASSERT_EQ(resha_pool_run(NULL, add_one, &number, NULL), 2);
        ASSERT_OK(resha_resolve("localhost", "80", addrs, 4, &n)); /* its thread stays with the parent */
        ASSERT_EQ(resha_timeout(RESHA_MS(1), wait_usr1, NULL), -ETIME);
        ASSERT_EQ(in_child(run_in_child, NULL), 42);
        ASSERT_EQ(resha_timeout(RESHA_MS(5), wait_usr1, NULL), -ETIME); /* the signal was the child's */
        ASSERT_OK(resha_resolve("localhost", "80", addrs, 4, &n));
        ASSERT_EQ(resha_pool_run(NULL, add_one, &number, NULL), 3);
        return 0;
}

/* Also where no run is going on, but has been. */
TEST(semantics_300_child_between_runs_has_a_run_of_its_own)
{
        if (real_under_tsan())
                test_skip("TSan knows no threads in a forked child");
        RUN(childs_program, NULL);
        ASSERT_EQ(in_child(run_in_child, NULL), 42);
}

/* ---- signals ---- */

static int dispositions(void *arg)
{
        struct sigaction now;

        (void)arg;
        ASSERT_EQ(sigaction(SIGPIPE, NULL, &now), 0);
        ASSERT_TRUE(now.sa_handler == SIG_DFL);
        ASSERT_EQ(sigaction(SIGUSR1, NULL, &now), 0);
        ASSERT_TRUE(now.sa_handler == SIG_IGN);
        ASSERT_EQ(sigaction(SIGINT, NULL, &now), 0);
        ASSERT_TRUE(now.sa_handler == SIG_DFL);
        return 0;
}

static int wait_and_fork(void *arg)
{
        ASSERT_EQ(resha_timeout(RESHA_MS(1), wait_usr1, arg), -ETIME);
        return in_child(dispositions, NULL);
}

TEST(a_forked_child_has_the_dispositions_from_before_the_run)
{
        signal(SIGUSR1, SIG_IGN);
        RUN(wait_and_fork, NULL);
}

static bool signals_come;
static volatile sig_atomic_t own_signals;

static void own_handler(int sig)
{
        own_signals += sig == SIGUSR2;
}

/* In the child, before the library has its turn: as a signal to the group of both would come. */
static void early(void)
{
        if (!signals_come)
                return;
        raise(SIGUSR1);
        raise(SIGUSR2);
        raise(SIGWINCH);
}

__attribute__((constructor)) static void before_the_library(void)
{
        (void)pthread_atfork(NULL, NULL, early);
}

static int had_own_signals(void *arg)
{
        struct sigaction now;

        ASSERT_EQ(own_signals, 1);
        ASSERT_EQ(sigaction(SIGUSR2, NULL, &now), 0);
        ASSERT_TRUE(now.sa_handler == own_handler);
        return dispositions(arg);
}

static int subscribe_and_fork(void *arg)
{
        RESHA_CLEANUP(resha_signal_closep) resha_signals *s = NULL;

        ASSERT_OK(resha_signal_open((const int[]){ SIGUSR1, SIGUSR2, SIGWINCH }, 3, &s));
        signals_come = true;
        int rc = in_child(had_own_signals, arg);
        signals_come = false;
        return rc;
}

TEST(signals_that_come_with_the_fork_do_what_they_did_before)
{
        if (real_under_tsan())
                test_skip("TSan runs handlers later");
        signal(SIGUSR1, SIG_IGN);
        signal(SIGUSR2, own_handler);
        RUN(subscribe_and_fork, NULL);
}

/* ---- no way back ---- */

static int fork_here(void *arg)
{
        pid_t *pid = arg;

        fflush(NULL);
        *pid = fork();
        return 0; /* in both */
}

static int fork_in_a_task(void *arg)
{
        pid_t pid = -1;
        int status;
        RESHA_GROUP(g);

        (void)arg;
        resha_group_begin(&g, NULL);
        resha_spawn(&g, fork_here, &pid);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_TRUE(pid > 0); /* the child does not come here */
        ASSERT_EQ(waitpid(pid, &status, 0), pid);
        return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT ? 42 : 1;
}

static int run_fork_in_a_task(void *arg)
{
        return test_run_opts(arg, NULL, NULL);
}

static int fork_in_main_task(void *arg)
{
        pid_t pid = -1;
        int status;

        (void)fork_here(&pid);
        if (pid == 0)
                return 0;
        (void)arg;
        ASSERT_EQ(waitpid(pid, &status, 0), pid);
        return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT ? 42 : 1;
}

TEST(a_forked_child_that_returns_into_the_loop_aborts)
{
        resha_fn *const programs[] = { fork_in_a_task, fork_in_main_task };

        for (int i = 0; i < 2; i++) {
                struct test_child c;
                test_child(run_fork_in_a_task, (void *)programs[i], &c);
                ASSERT_HAS(c.text, "a forked child returns into its parent's loop");
                ASSERT_TRUE(WIFEXITED(c.status));
                ASSERT_EQ(WEXITSTATUS(c.status), 42);
        }
}
