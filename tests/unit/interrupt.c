/* SPDX-License-Identifier: MIT */
/* Ctrl-C: the first cancels the main task, the second ends the process; and how a run ends that something holds up.
 * Always on epoll: the simulated world leaves signals alone. */

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "job.h"

static int as_main(void *arg)
{
        setenv("RESHA_BACKEND", "epoll", 1);
        return resha_main(arg, NULL);
}

static int interrupted_in_a_sleep(__attribute__((unused)) void *arg)
{
        raise(SIGINT);
        int rc = resha_sleep(RESHA_S(100));
        printf("sleep %d\n", rc);
        return rc;
}

/* semantics 307 same
 * asyncio: SIGINT cancels the main task; if that ends cancelled, run() raises KeyboardInterrupt.
 * resha: the first Ctrl-C cancels the main task; if it ends so, resha_run() returns -ECANCELED and says that it was
 * interrupted, and resha_main() gives the status 130. */
TEST(semantics_307_first_ctrl_c_cancels_the_main_task)
{
        struct test_child c;

        test_child(as_main, (void *)interrupted_in_a_sleep, &c);
        ASSERT_TRUE(WIFEXITED(c.status));
        ASSERT_EQ(WEXITSTATUS(c.status), 130);
        ASSERT_STR(c.text, "sleep -125\n");
}

static int children_clean_up(__attribute__((unused)) void *arg)
{
        struct job j[] = { JOB("a", 100000, .clean = 5), JOB("b", 100000) };

        raise(SIGINT);
        int rc = resha_gather(job, j, 2, sizeof j[0], NULL);
        printf("%s\n", notes());
        return rc;
}

TEST(ctrl_c_reaches_all_tasks_and_waits_for_their_cleanup)
{
        struct test_child c;

        test_child(as_main, (void *)children_clean_up, &c);
        ASSERT_EQ(WEXITSTATUS(c.status), 130);
        ASSERT_HAS(c.text, "a!\n");
        ASSERT_HAS(c.text, "b!");
}

static int swallows_the_interrupt(__attribute__((unused)) void *arg)
{
        raise(SIGINT);
        int rc = resha_sleep(RESHA_S(100));
        return rc == -ECANCELED ? 5 : rc;
}

static int is_not_interrupted(__attribute__((unused)) void *arg)
{
        return 6;
}

/* semantics 308 better
 * asyncio: a main task that swallows the cancel of SIGINT and returns makes run() return as if nothing had been.
 * resha: the result is the main task's, too, but the run tells its caller that it was interrupted (ret_interrupted in
 * its options). */
TEST(semantics_308_main_task_that_handles_ctrl_c_decides_the_result)
{
        struct test_child c;

        bool interrupted = false;
        resha_run_opts opts = { .backend = "epoll", .ret_interrupted = &interrupted };

        test_child(as_main, (void *)swallows_the_interrupt, &c);
        ASSERT_EQ(WEXITSTATUS(c.status), 0);
        ASSERT_EQ(resha_run(swallows_the_interrupt, NULL, &opts), 5);
        ASSERT_TRUE(interrupted);
        ASSERT_EQ(resha_run(is_not_interrupted, NULL, &opts), 6);
        ASSERT_FALSE(interrupted);
}

static int fails_after_the_interrupt(__attribute__((unused)) void *arg)
{
        raise(SIGINT);
        int rc = resha_sleep(RESHA_S(100));
        return rc == -ECANCELED ? resha_fail(-EIO, "could not save") : rc;
}

TEST(ctrl_c_and_then_a_failure_is_a_failure)
{
        struct test_child c;

        test_child(as_main, (void *)fails_after_the_interrupt, &c);
        ASSERT_EQ(WEXITSTATUS(c.status), 1);
        ASSERT_HAS(c.text, "could not save");
}

static int interrupted_twice(__attribute__((unused)) void *arg)
{
        raise(SIGINT);
        int rc = resha_sleep(RESHA_S(100));
        raise(SIGINT);
        printf("not reached\n");
        return rc;
}

/* semantics 309 same
 * asyncio: a second SIGINT raises KeyboardInterrupt at once.
 * resha: a second Ctrl-C ends the process at once, by the signal. */
TEST(semantics_309_second_ctrl_c_ends_the_process)
{
        struct test_child c;

        test_child(as_main, (void *)interrupted_twice, &c);
        ASSERT_TRUE(WIFSIGNALED(c.status));
        ASSERT_EQ(WTERMSIG(c.status), SIGINT);
        ASSERT_STR(c.text, "");
}

static volatile sig_atomic_t handled;

static void on_sigint(__attribute__((unused)) int sig)
{
        handled++;
}

static int raises_once(__attribute__((unused)) void *arg)
{
        raise(SIGINT);
        return resha_sleep(MS(5));
}

static void is_left_alone(bool keep_sigint)
{
        struct sigaction mine = { .sa_handler = on_sigint }, now;

        ASSERT_EQ(sigaction(SIGINT, &mine, NULL), 0);
        ASSERT_EQ(resha_run(raises_once, NULL, &(resha_run_opts){ .backend = "epoll", .keep_sigint = keep_sigint }), 0);
        ASSERT_EQ(handled, 1);
        ASSERT_EQ(sigaction(SIGINT, NULL, &now), 0);
        ASSERT_TRUE(now.sa_handler == on_sigint);
}

/* semantics 310 same
 * asyncio: a SIGINT handler of the program's own is left alone.
 * resha: it is, and so is a SIGINT that is ignored. */
TEST(semantics_310_handler_of_the_programs_own_is_left_alone)
{
        is_left_alone(false);
}
TEST(ctrl_c_is_left_alone_when_asked)
{
        is_left_alone(true);
}

/* semantics 298 better
 * asyncio: a handler that is removed leaves the default behind; closing the loop removes all.
 * resha: a signal that nobody asks for any more, at the latest at the end of the run, has the disposition that it had
 * before, also one of the program's own; what the program has set meanwhile stays. */
TEST(semantics_298_former_disposition_comes_back)
{
        struct sigaction now;

        ASSERT_EQ(resha_run(raises_once, NULL, &(resha_run_opts){ .backend = "epoll" }), -ECANCELED);
        ASSERT_EQ(sigaction(SIGINT, NULL, &now), 0);
        ASSERT_TRUE(now.sa_handler == SIG_DFL);
        ASSERT_EQ(resha_run(raises_once, NULL, &(resha_run_opts){ .backend = "epoll" }), -ECANCELED); /* and again */
}

static int stuck_child(__attribute__((unused)) void *arg)
{
        for (;;)
                if (resha_shielded(RESHA_FOREVER, job_clean, &(struct job){ .clean = 100000000 }) == 1)
                        return 0;
}

static int stuck(__attribute__((unused)) void *arg)
{
        raise(SIGINT);
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, stuck_child, NULL);
        return resha_group_end(&g, 0);
}

static void print_report(const resha_report *r, __attribute__((unused)) void *arg)
{
        printf("report %d %s: %s\n", r->kind, r->task ? r->task : "-", r->text);
}

static int run_with_a_short_grace(__attribute__((unused)) void *arg)
{
        int rc = resha_run(stuck, NULL,
                           &(resha_run_opts){ .backend = "epoll", .grace = MS(20), .report = print_report });

        printf("ended with %d\n", rc);
        return 0;
}

/* semantics 304 better
 * asyncio: run() waits without limit for a task that swallows its cancel.
 * resha: the run ends after its grace, reports what is stuck, with the place of its spawn, and leaves it behind. */
TEST(semantics_304_run_ends_after_its_grace_and_says_what_is_stuck)
{
        struct test_child c;

        test_child(run_with_a_short_grace, NULL, &c);
        ASSERT_TRUE(WIFEXITED(c.status));
        ASSERT_EQ(WEXITSTATUS(c.status), 0);
        ASSERT_HAS(c.text, "report 3 stuck_child: ");
        ASSERT_HAS(c.text, "ended with -125\n");
}

static int stuck_once_cancelled(__attribute__((unused)) void *arg)
{
        resha_event never = { { 0 } };
        int rc = resha_event_wait(&never);

        return rc < 0 ? stuck_child(NULL) : 0;
}

static int deadlocked(__attribute__((unused)) void *arg)
{
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, stuck_once_cancelled, NULL);
        return resha_group_end(&g, 0);
}

static int run_into_a_deadlock(__attribute__((unused)) void *arg)
{
        int rc = resha_run(deadlocked, NULL,
                           &(resha_run_opts){ .backend = "epoll", .grace = MS(20), .report = print_report });

        printf("ended with %d\n", rc);
        return 0;
}

TEST(run_ends_within_the_grace_after_a_deadlock_too)
{
        struct test_child c;

        test_child(run_into_a_deadlock, NULL, &c);
        ASSERT_TRUE(WIFEXITED(c.status));
        ASSERT_EQ(WEXITSTATUS(c.status), 0);
        ASSERT_HAS(c.text, "report 3 stuck_once_cancelled: ");
        ASSERT_HAS(c.text, "ended with -35\n");
}

static int waits_for_term(__attribute__((unused)) void *arg)
{
        int sig;

        return resha_signal_wait((int[]){ SIGTERM }, 1, &sig);
}

static int takes_signals(__attribute__((unused)) void *arg)
{
        int signals[] = { SIGTERM, SIGUSR1 }, sig = 0;

        ASSERT_EQ(resha_timeout(MS(1), waits_for_term, NULL), -ETIME);
        raise(SIGTERM); /* between two waits: kept */
        raise(SIGTERM);
        ASSERT_OK(resha_sleep(MS(1)));
        ASSERT_OK(resha_signal_wait(signals, 2, &sig));
        ASSERT_EQ(sig, SIGTERM);
        ASSERT_EQ(resha_timeout(MS(1), waits_for_term, NULL), -ETIME);
        return 0;
}

/* semantics 296 better
 * asyncio: the callback of a signal runs on the loop, not in the signal handler.
 * resha: there is no callback: a task waits for signals, and goes on when one comes. One that comes between two waits
 * is kept. */
TEST(semantics_296_signals_are_waited_for)
{
        ASSERT_OK(resha_run(takes_signals, NULL, &(resha_run_opts){ .backend = "epoll" }));
        struct sigaction now;
        ASSERT_EQ(sigaction(SIGTERM, NULL, &now), 0);
        ASSERT_TRUE(now.sa_handler == SIG_DFL);
}

static int takes_its_own_signal(void *arg)
{
        int sig = 0, refused[] = { SIGKILL, SIGSTOP, 0, -1, 1000 };

        for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
                ASSERT_EQ(resha_signal_wait(&refused[i], 1, &sig), -EINVAL);
        ASSERT_EQ(resha_signal_wait(NULL, 0, &sig), -EINVAL);
        ASSERT_EQ(resha_timeout(MS(1), waits_for_term, NULL), -ETIME);
        ASSERT_EQ(kill(getpid(), SIGTERM), 0);
        ASSERT_OK(waits_for_term(NULL));
        *(bool *)arg = true;
        return 0;
}

static void *run_that_takes_a_signal(void *arg)
{
        ASSERT_OK(resha_run(takes_its_own_signal, arg, &(resha_run_opts){ .backend = "epoll" }));
        return NULL;
}

/* semantics 297 better
 * asyncio: signals are handled on the main thread only; a number that cannot be caught or does not exist is an error.
 * resha: a run on any thread may wait for signals; such a number is -EINVAL. */
TEST(semantics_297_signals_work_on_any_thread)
{
        pthread_t t;
        bool taken = false;

        ASSERT_EQ(pthread_create(&t, NULL, run_that_takes_a_signal, &taken), 0);
        ASSERT_EQ(pthread_join(t, NULL), 0);
        ASSERT_TRUE(taken);
}
