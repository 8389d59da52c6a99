/* SPDX-License-Identifier: MIT */
/* Forks from wherever a program runs while there is a loop: a task, a thread job, another thread; and how such a child
 * ends: _exit(), exit(), exec, a fork of its own. None may hang, whatever its parent was doing. */

#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <resha/process.h>
#include <resha/test.h>

#include "net/lookup.h"

/* A child that hangs is ended by the alarm. */
static pid_t fork_here(void)
{
        fflush(NULL);
        pid_t pid = fork();

        ASSERT_TRUE(pid >= 0);
        if (pid == 0)
                alarm(30);
        return pid;
}

static int status_of(pid_t pid)
{
        int status = -1;

        ASSERT_EQ(waitpid(pid, &status, 0), pid);
        return status;
}

static void exits_with(pid_t pid, int code)
{
        int status = status_of(pid);

        ASSERT_FALSE(WIFSIGNALED(status));
        ASSERT_EQ(WEXITSTATUS(status), code);
}

static int add_one(void *arg)
{
        return ++*(int *)arg;
}

/* ---- exec ---- */

static void exec_shell(const char *script)
{
        execl("/bin/sh", "sh", "-c", script, (char *)NULL);
        _exit(127);
}

/* What is exec'ed has signals as any program: it can be ended, and by a pipe that nobody reads, too. */
static int a_script_dies_by(void *arg)
{
        pid_t pid = fork_here();

        if (pid == 0)
                exec_shell(strcmp(arg, "TERM") == 0 ? "kill -TERM $$" : "kill -PIPE $$");
        int status = status_of(pid);
        return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

TASK(what_is_execed_has_signals_as_any_program)
{
        RESHA_CLEANUP(resha_signal_closep) resha_signals *s = NULL;

        ASSERT_OK(resha_signal_open((const int[]){ SIGTERM }, 1, &s));
        ASSERT_EQ(a_script_dies_by((char *)"TERM"), SIGTERM);
        ASSERT_EQ(a_script_dies_by((char *)"PIPE"), SIGPIPE);
        ASSERT_EQ(resha_pool_run(NULL, a_script_dies_by, (char *)"TERM", NULL), SIGTERM);
        ASSERT_EQ(resha_pool_run(NULL, a_script_dies_by, (char *)"PIPE", NULL), SIGPIPE);
        return 0;
}

/* Descriptors that exec leaves open. */
static int inherited(void)
{
        int n = 0;

        for (int fd = 0; fd < 1000; fd++) {
                int flags = fcntl(fd, F_GETFD);
                n += flags >= 0 && !(flags & FD_CLOEXEC);
        }
        return n;
}

static int open_all(void *arg)
{
        RESHA_CLEANUP(resha_stream_closep) resha_stream *in = NULL;
        struct real_pair p;
        int number = 1;

        ASSERT_EQ(resha_pool_run(NULL, add_one, &number, NULL), 2);
        ASSERT_OK(resha_stream_stdio(0, &in));
        real_pair(&p);
        ASSERT_OK(resha_sleep(RESHA_MS(1)));
        *(int *)arg = inherited();
        real_pair_close(&p);
        return 0;
}

TEST(no_descriptor_of_the_loop_is_there_after_exec)
{
        int before = inherited(), during = -1;

        RUN(open_all, &during);
        ASSERT_EQ(during, before);
}

/* ---- exit ---- */

static void say_bye(void)
{
        printf("bye\n");
        fflush(stdout);
}

static int exit_in_a_child(void *arg)
{
        (void)arg;
        atexit(say_bye);
        exit(resha_sleep(RESHA_MS(1)) == -EPERM ? 4 : 3);
}

/* exit() runs what was to run at exit, and returns to nobody. */
TASK(a_child_may_exit_in_a_task)
{
        struct test_child c;

        if (real_under_asan())
                test_skip("leaks are looked for at exit, and the stacks of tasks are not looked at");
        test_child(exit_in_a_child, NULL, &c);
        ASSERT_STR(c.text, "bye\n");
        ASSERT_TRUE(WIFEXITED(c.status));
        ASSERT_EQ(WEXITSTATUS(c.status), 4);
        return 0;
}

/* ---- thread jobs ---- */

static int forks_and_exits(void *arg)
{
        pid_t pid = fork_here();

        if (pid == 0)
                _exit(resha_sleep(RESHA_MS(1)) == -EPERM ? 7 : 1);
        exits_with(pid, 7);
        return *(int *)arg;
}

TASK(a_thread_job_may_fork)
{
        ASSERT_EQ(resha_pool_run(NULL, forks_and_exits, &(int){ 5 }, NULL), 5);
        ASSERT_EQ(resha_pool_run(NULL, forks_and_exits, &(int){ 6 }, NULL), 6);
        return 0;
}

static int forks_and_returns(void *arg)
{
        pid_t pid = fork_here();

        (void)arg;
        if (pid == 0)
                return 0;
        int status = status_of(pid);
        return WIFSIGNALED(status) ? WTERMSIG(status) : -EIO;
}

static int job_that_returns(void *arg)
{
        return resha_pool_run(NULL, forks_and_returns, arg, NULL);
}

static int run_job_that_returns(void *arg)
{
        int rc = test_run_opts(job_that_returns, arg, NULL);

        return rc < 0 ? 1 : rc;
}

TEST(a_forked_child_that_returns_from_a_thread_job_aborts)
{
        struct test_child c;

        test_child(run_job_that_returns, NULL, &c);
        ASSERT_HAS(c.text, "a forked child returns ");
        ASSERT_TRUE(WIFEXITED(c.status));
        ASSERT_EQ(WEXITSTATUS(c.status), SIGABRT);
}

/* ---- other threads, while the loop is busy ---- */

enum { FORKS = 60 };

static int small_program(void *arg)
{
        int number = 1;
        void *p = resha_malloc(100);

        (void)arg;
        resha_free(p);
        ASSERT_EQ(resha_pool_run(NULL, add_one, &number, NULL), 2);
        ASSERT_OK(resha_sleep(RESHA_US(100)));
        resha_addr addrs[4];
        size_t n;
        return resha_resolve("localhost", "80", addrs, 4, &n);
}

/* A child, of a child if there is to be one. */
static int run_in_the_child(int generations)
{
        if (generations > 1) {
                pid_t pid = fork_here();
                if (pid == 0)
                        _exit(run_in_the_child(generations - 1));
                return WEXITSTATUS(status_of(pid));
        }
        resha_run_opts opts = { .overflow_report = true, .terminate = true };
        return test_run_opts(small_program, NULL, &opts) < 0 ? 1 : 42;
}

static bool forking;

static void *forker(void *arg)
{
        (void)arg;
        for (int i = 0; i < FORKS; i++) {
                pid_t pid = fork_here();
                if (pid == 0 && i % 3 == 0)
                        _exit(42);
                if (pid == 0)
                        _exit(run_in_the_child(i % 3));
                exits_with(pid, 42);
        }
        __atomic_store_n(&forking, false, __ATOMIC_SEQ_CST);
        return NULL;
}

static int look_up(void *arg)
{
        resha_addr addrs[4];
        size_t n;

        (void)arg;
        while (__atomic_load_n(&forking, __ATOMIC_SEQ_CST)) {
                resha_resolve_forget();
                int rc = resha_resolve("localhost", "80", addrs, 4, &n);
                if (rc < 0)
                        return rc;
        }
        return 0;
}

static int subscribe(void *arg)
{
        (void)arg;
        while (__atomic_load_n(&forking, __ATOMIC_SEQ_CST)) {
                RESHA_CLEANUP(resha_signal_closep) resha_signals *s = NULL;
                resha_signal_info info;
                int rc = resha_signal_open((const int[]){ SIGHUP, SIGRTMIN }, 2, &s);
                if (rc == 0)
                        rc = test_is_sim() ? resha_test_signal(SIGHUP) : raise(SIGHUP);
                if (rc == 0)
                        rc = resha_signal_next(s, &info);
                if (rc < 0)
                        return rc;
        }
        return 0;
}

static int compute(void *arg)
{
        int number;

        (void)arg;
        while (__atomic_load_n(&forking, __ATOMIC_SEQ_CST)) {
                number = 1;
                int rc = resha_pool_run(NULL, add_one, &number, NULL);
                if (rc < 0)
                        return rc;
        }
        return 0;
}

/* The locks of the process, for signals, look-ups, pools and memory, are taken all the time: a child that inherited one
 * as taken would hang. */
static int busy(void *arg)
{
        pthread_t t;
        RESHA_GROUP(g);

        (void)arg;
        forking = true;
        ASSERT_EQ(pthread_create(&t, NULL, forker, NULL), 0);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, look_up, NULL);
        resha_spawn(&g, subscribe, NULL);
        resha_spawn(&g, compute, NULL);
        int rc = resha_group_end(&g, 0);
        ASSERT_EQ(pthread_join(t, NULL), 0);
        return rc;
}

TEST(another_thread_may_fork_while_the_loop_is_busy)
{
        if (real_under_tsan() || real_under_asan())
                test_skip("the sanitizer's own locks may be taken in the child");
        RUN(busy, NULL);
}

/* The C library's lock for getaddrinfo() is not given up in a child, so no look-up may be in the middle of it. */
static atomic_int looking;
static atomic_bool holds, forked;

static int looks_slowly(enum rs_syscall call)
{
        if (call != RS_SYS_GETADDRINFO)
                return 0;
        atomic_store(&looking, 1);
        for (int i = 0; atomic_load(&holds) ? !atomic_load(&forked) : i < 200; i++)
                usleep(100);
        atomic_store(&looking, 2);
        return -EIO;
}

static int look_up_once(void *arg)
{
        resha_addr addrs[4];
        size_t n;

        resha_resolve_forget();
        return resha_resolve(arg, "80", addrs, 4, &n) < 0 ? 0 : -EIO;
}

static int fork_meanwhile(__attribute__((unused)) void *arg)
{
        while (!atomic_load(&looking))
                usleep(100);
        pid_t pid = fork_here();
        if (pid == 0)
                _exit(atomic_load(&looking));
        atomic_store(&forked, true);
        return WEXITSTATUS(status_of(pid));
}

/* What a child of the thread that forks while the other looks up sees of it. */
static int forked_while_it_looks(int64_t at_most)
{
        int64_t before = rs_lookup_long_ns;
        RESHA_GROUP(g);

        rs_lookup_long_ns = at_most;
        atomic_store(&looking, 0);
        atomic_store(&forked, false);
        atomic_store(&holds, at_most == 0);
        rs_fault_hook = looks_slowly;
        resha_group_begin(&g, NULL);
        resha_spawn(&g, look_up_once, (char *)"localhost");
        int seen = resha_pool_run(NULL, fork_meanwhile, NULL, NULL);
        ASSERT_OK(resha_group_end(&g, 0));
        rs_fault_hook = NULL;
        rs_lookup_long_ns = before;
        return seen;
}

TASK(a_fork_comes_between_look_ups_that_take_a_short_time)
{
        if (test_is_sim() || real_under_tsan())
                test_skip("there is no thread, or no fork with threads");
        ASSERT_EQ(forked_while_it_looks(INT64_C(20000000000)), 2);
        ASSERT_EQ(forked_while_it_looks(0), 1); /* one that takes long is not waited for */
        return 0;
}

TASK(a_child_may_fork_and_so_on)
{
        if (real_under_tsan())
                test_skip("TSan knows no threads in a forked child");
        pid_t pid = fork_here();
        if (pid == 0)
                _exit(run_in_the_child(3));
        exits_with(pid, 42);
        return 0;
}

/* ---- the ring ---- */

static int rings(void)
{
        FILE *f = fopen("/proc/self/maps", "re");
        char line[512];
        int n = 0;

        ASSERT_TRUE(f != NULL);
        while (fgets(line, sizeof line, f))
                n += strstr(line, "io_uring") != NULL;
        fclose(f);
        return n;
}

static int no_rings(void *arg)
{
        (void)arg;
        return rings();
}

/* A child that wrote to the queues would write to its parent's. */
TASK(a_forked_child_does_not_have_the_ring)
{
        struct test_child c;

        if (strcmp(resha_backend(), "uring") == 0)
                ASSERT_TRUE(rings() > 0);
        test_child(no_rings, NULL, &c);
        ASSERT_EQ(c.status, 0);
        return 0;
}

/* ---- what is alive ---- */

static int closes_the_parents(void *arg)
{
        resha_process *p = arg;
        resha_exit e;

        ASSERT_EQ(resha_process_wait(p, &e), -EPERM);
        resha_process_close(p); /* not its own: no signal, and nothing reaped */
        return 0;
}

TASK(a_process_stays_with_the_parent)
{
        struct test_child c;
        const char *const argv[] = { "sleep", "100", NULL };
        RESHA_CLEANUP(resha_process_closep) resha_process *p = NULL;
        resha_exit e;

        ASSERT_OK(resha_process_spawn(&(resha_process_opts){ .argv = argv }, &p));
        test_child(closes_the_parents, p, &c);
        ASSERT_STR(c.text, "");
        ASSERT_EQ(c.status, 0);
        ASSERT_OK(resha_process_signal(p, SIGUSR1)); /* it lives; until now */
        ASSERT_OK(resha_process_wait(p, &e));
        ASSERT_TRUE(e.signalled);
        ASSERT_EQ(e.code, SIGUSR1);
        return 0;
}
