/* SPDX-License-Identifier: MIT */
/* Signals: waits, flags between waits, dispositions, Ctrl-C. */

#include "common.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int wait_for(int sig)
{
        int got = -1;
        int rc = resha_signal_wait(&sig, 1, &got);

        return rc < 0 ? rc : got;
}

static int wait_usr1(void *arg)
{
        (void)arg;
        return wait_for(SIGUSR1);
}

static int raise_soon(void *arg)
{
        (void)arg;
        ASSERT_OK(resha_sleep(RESHA_MS(1)));
        return raise(SIGUSR1);
}

TASK(a_signal_wakes_everybody_who_waits_for_it)
{
        RESHA_GROUP(g);
        int got = 0;

        resha_group_begin(&g, NULL);
        resha_spawn(&g, wait_usr1, NULL);
        resha_spawn(&g, wait_usr1, NULL);
        resha_spawn(&g, raise_soon, NULL);
        ASSERT_OK(resha_signal_wait((int[]){ SIGUSR2, SIGUSR1 }, 2, &got));
        ASSERT_EQ(got, SIGUSR1);
        ASSERT_OK(resha_group_end(&g, 0));
        return 0;
}

TASK(a_signal_between_two_waits_is_not_lost)
{
        ASSERT_EQ(resha_timeout(RESHA_MS(1), wait_usr1, NULL), -ETIME);
        raise(SIGUSR1);
        raise(SIGUSR1);
        ASSERT_EQ(wait_for(SIGUSR1), SIGUSR1);
        ASSERT_EQ(resha_timeout(RESHA_MS(1), wait_usr1, NULL), -ETIME); /* two are one */
        return 0;
}

static void *send_signals(void *arg)
{
        (void)arg;
        for (int i = 0; i < 20; i++) {
                usleep(500);
                kill(getpid(), SIGUSR1);
        }
        return NULL;
}

TASK(a_signal_ends_the_sleep_of_the_loop)
{
        pthread_t t;

        ASSERT_EQ(resha_timeout(RESHA_MS(0), wait_usr1, NULL), -ETIME);
        ASSERT_EQ(resha_timeout(RESHA_MS(1), wait_usr1, NULL), -ETIME); /* caught from here on */
        ASSERT_EQ(pthread_create(&t, NULL, send_signals, NULL), 0);
        ASSERT_EQ(wait_for(SIGUSR1), SIGUSR1);
        pthread_join(t, NULL);
        return 0;
}

TASK(what_cannot_be_caught_is_refused)
{
        ASSERT_EQ(wait_for(SIGKILL), -EINVAL);
        ASSERT_EQ(wait_for(SIGSTOP), -EINVAL);
        ASSERT_EQ(wait_for(SIGSEGV), -EINVAL);
        ASSERT_EQ(wait_for(0), -EINVAL);
        ASSERT_EQ(wait_for(65), -EINVAL);
        ASSERT_EQ(resha_signal_wait(NULL, 0, NULL), -EINVAL);
        ASSERT_EQ(wait_for(SIGINT), -EINVAL);
        ASSERT_HAS(resha_error_of(-EINVAL)->text, "keep_sigint");
        return 0;
}

static void own_handler(int sig)
{
        (void)sig;
}

static void (*handler_of(int sig))(int)
{
        struct sigaction s;

        sigaction(sig, NULL, &s);
        return s.sa_handler;
}

static int brief_wait(void *arg)
{
        (void)arg;
        ASSERT_EQ(resha_timeout(RESHA_MS(1), wait_usr1, NULL), -ETIME);
        ASSERT_TRUE(handler_of(SIGUSR1) != own_handler);
        ASSERT_TRUE(handler_of(SIGINT) != SIG_DFL);
        return 0;
}

TEST(dispositions_come_back_after_the_run)
{
        signal(SIGUSR1, own_handler);
        RUN(brief_wait, NULL);
        ASSERT_TRUE(handler_of(SIGUSR1) == own_handler);
        ASSERT_TRUE(handler_of(SIGINT) == SIG_DFL);
}

static int sigint_handler_here(void *ret)
{
        *(void (**)(int))ret = handler_of(SIGINT);
        return 0;
}

TEST(a_sigint_that_is_ignored_or_handled_is_left_alone)
{
        void (*seen)(int) = NULL;

        signal(SIGINT, SIG_IGN);
        RUN(sigint_handler_here, &seen);
        ASSERT_TRUE(seen == SIG_IGN);
        signal(SIGINT, own_handler);
        RUN(sigint_handler_here, &seen);
        ASSERT_TRUE(seen == own_handler);
        signal(SIGINT, SIG_DFL);
        ASSERT_OK(test_run_opts(sigint_handler_here, &seen, &(resha_run_opts){ .keep_sigint = true }));
        ASSERT_TRUE(seen == SIG_DFL);
}

static int brief_wait_for_sigint(void *arg)
{
        (void)arg;
        return wait_for(SIGINT);
}

static int take_sigint(void *arg)
{
        ASSERT_EQ(resha_timeout(RESHA_MS(1), brief_wait_for_sigint, arg), -ETIME);
        raise(SIGINT);
        ASSERT_EQ(wait_for(SIGINT), SIGINT);
        raise(SIGINT);
        return wait_for(SIGINT);
}

TEST(with_keep_sigint_it_is_a_signal_as_others)
{
        ASSERT_EQ(test_run_opts(take_sigint, NULL, &(resha_run_opts){ .keep_sigint = true }), SIGINT);
}

/* ---- Ctrl-C ---- */

static int sleep_long(void *arg)
{
        (void)arg;
        raise(SIGINT);
        int rc = resha_sleep(RESHA_S(30));
        printf("main task: %s\n", resha_errname(rc));
        return rc;
}

static int main_with_ctrl_c(void *arg)
{
        (void)arg;
        setenv("RESHA_BACKEND", test_backend(), 1);
        return resha_main(sleep_long, NULL);
}

TEST(the_first_ctrl_c_cancels_the_main_task)
{
        struct test_child c;

        test_child(main_with_ctrl_c, NULL, &c);
        ASSERT_STR(c.text, "main task: ECANCELED\n");
        ASSERT_TRUE(WIFEXITED(c.status));
        ASSERT_EQ(WEXITSTATUS(c.status), 130);
}

static int ignore_cancel(void *arg)
{
        (void)arg;
        raise(SIGINT);
        while (resha_sleep(RESHA_S(30)) < 0) {
                static int n;
                if (n++ == 3)
                        raise(SIGINT);
        }
        return 0;
}

static int main_with_two(void *arg)
{
        (void)arg;
        return test_run_opts(ignore_cancel, NULL, NULL);
}

TEST(the_second_ctrl_c_ends_the_process_at_once)
{
        struct test_child c;

        test_child(main_with_two, NULL, &c);
        ASSERT_TRUE(WIFSIGNALED(c.status));
        ASSERT_EQ(WTERMSIG(c.status), SIGINT);
}

/* A child process without exec has copies of handler and loop, but they are not its own. */
static int fork_and_raise(void *arg)
{
        int status;

        (void)arg;
        pid_t pid = fork();
        if (pid == 0) {
                raise(SIGINT);
                _exit(0);
        }
        ASSERT_EQ(waitpid(pid, &status, 0), pid);
        ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
        return resha_sleep(RESHA_MS(1));
}

TASK(in_a_forked_child_signals_do_as_by_default)
{
        if (real_under_tsan())
                test_skip("TSan runs handlers later");
        return fork_and_raise(NULL);
}

TASK(a_task_that_waits_for_a_signal_is_not_a_deadlock)
{
        ASSERT_EQ(resha_timeout(RESHA_MS(1), wait_usr1, NULL), -ETIME);
        alarm(1);
        return wait_for(SIGALRM) == SIGALRM ? 0 : -EIO;
}

static int handler_churn(void *arg)
{
        (void)arg;
        return resha_timeout(RESHA_US(50), wait_usr1, NULL) == -EINVAL ? -EIO : 0;
}

static void *shower(void *stop)
{
        while (!__atomic_load_n((int *)stop, __ATOMIC_ACQUIRE)) {
                kill(getpid(), SIGUSR1);
                usleep(50);
        }
        return NULL;
}

/* Runs begin and end while signals come in on another thread. */
TEST(a_signal_at_the_end_of_a_run_finds_nothing_freed)
{
        pthread_t t;
        int stop = 0;

        signal(SIGUSR1, own_handler);
        ASSERT_EQ(pthread_create(&t, NULL, shower, &stop), 0);
        for (int i = 0; i < 300; i++)
                RUN(handler_churn, NULL);
        __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
        pthread_join(t, NULL);
}
