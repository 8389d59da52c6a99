/* SPDX-License-Identifier: MIT */
/* Subscriptions to real signals: who sent them, their order, what the process does before, during and after, on which
 * threads. */

#include "common.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static resha_signals *open_for(int sig)
{
        resha_signals *s = NULL;

        ASSERT_OK(resha_signal_open(&sig, 1, &s));
        return s;
}

static resha_signal_info take(resha_signals *s)
{
        resha_signal_info info = { 0 };

        ASSERT_EQ(resha_signal_next(s, &info), 1);
        return info;
}

static struct sigaction action_of(int sig)
{
        struct sigaction now;

        ASSERT_EQ(sigaction(sig, NULL, &now), 0);
        return now;
}

static void send_value(pid_t pid, int sig, intptr_t value)
{
        ASSERT_EQ(sigqueue(pid, sig, (union sigval){ .sival_ptr = (void *)value }), 0);
}

/* fn in a child process that is waited for. */
static void by_a_child(void (*fn)(pid_t parent), pid_t *ret_pid)
{
        pid_t me = getpid(), pid = fork();
        int status;

        if (pid == 0) {
                fn(me);
                _exit(0);
        }
        *ret_pid = pid;
        ASSERT_EQ(waitpid(pid, &status, 0), pid);
        ASSERT_EQ(status, 0);
}

static void kill_parent(pid_t parent)
{
        kill(parent, SIGUSR1);
}

/* TSan puts signals off, and keeps one of each number then: more of a real-time signal are lost, and waited for in
 * vain. */
static int values(void)
{
        return real_under_tsan() ? 1 : 2;
}

static void send_values(pid_t parent)
{
        sigqueue(parent, SIGRTMIN + 2, (union sigval){ .sival_int = 7 });
        if (values() == 2)
                sigqueue(parent, SIGRTMIN + 2, (union sigval){ .sival_int = 8 });
}

TASK(a_signal_says_who_sent_it_and_with_what_value)
{
        RESHA_CLEANUP(resha_signal_closep) resha_signals *s = NULL;
        pid_t pid;

        ASSERT_OK(resha_signal_open((const int[]){ SIGUSR1, SIGRTMIN + 2 }, 2, &s));
        by_a_child(kill_parent, &pid);
        resha_signal_info info = take(s);
        ASSERT_EQ(info.signal, SIGUSR1);
        ASSERT_EQ(info.code, SI_USER);
        ASSERT_EQ(info.pid, pid);
        ASSERT_EQ(info.uid, getuid());
        by_a_child(send_values, &pid);
        for (int i = 7; i < 7 + values(); i++) {
                info = take(s);
                ASSERT_EQ(info.code, SI_QUEUE);
                ASSERT_EQ(info.pid, pid);
                ASSERT_EQ((int)info.value, i);
        }
        return 0;
}

TASK(realtime_signals_come_in_order)
{
        RESHA_CLEANUP(resha_signal_closep) resha_signals *s = open_for(SIGRTMIN + 3);

        if (real_under_tsan())
                test_skip("TSan keeps one signal of each number");
        for (int i = 0; i < 300; i++)
                send_value(getpid(), SIGRTMIN + 3, i);
        for (int i = 0; i < 300; i++)
                ASSERT_EQ(take(s).value, i);
        for (int i = 0; i < RESHA_SIGNAL_QUEUE + 50; i++)
                send_value(getpid(), SIGRTMIN + 3, i);
        ASSERT_EQ(take(s).lost, 50);
        for (int i = 1; i < RESHA_SIGNAL_QUEUE; i++)
                ASSERT_EQ(take(s).value, i);
        return 0;
}

/* ---- senders on threads of their own ---- */

enum { SENDERS = 4, EACH = 100 };

static void *sender(void *arg)
{
        for (int i = 0; i < EACH; i++)
                pthread_sigqueue(pthread_self(), SIGRTMIN + 4, (union sigval){ .sival_int = *(int *)arg * EACH + i });
        return NULL;
}

/* Their handlers run at the same time, on all of them. */
TASK(signals_that_come_on_many_threads_at_once_are_all_there)
{
        RESHA_CLEANUP(resha_signal_closep) resha_signals *s = open_for(SIGRTMIN + 4);
        pthread_t t[SENDERS];
        int number[SENDERS], next[SENDERS] = { 0 };

        if (real_under_tsan())
                test_skip("TSan runs handlers later");
        for (int i = 0; i < SENDERS; i++) {
                number[i] = i;
                ASSERT_EQ(pthread_create(&t[i], NULL, sender, &number[i]), 0);
        }
        for (int i = 0; i < SENDERS * EACH; i++) {
                resha_signal_info info = take(s);
                int value = (int)info.value;
                ASSERT_EQ(info.lost, 0);
                ASSERT_EQ(next[value / EACH]++, value % EACH); /* of each sender in its order */
        }
        for (int i = 0; i < SENDERS; i++)
                ASSERT_EQ(pthread_join(t[i], NULL), 0);
        return 0;
}

/* ---- dispositions ---- */

static void own_handler(int sig)
{
        (void)sig;
}

static void other_handler(int sig)
{
        (void)sig;
}

/* With its mask and flags. */
TASK(semantics_298_a_signal_is_given_back_when_nobody_asks_for_it)
{
        struct sigaction mine = { .sa_handler = own_handler, .sa_flags = SA_NODEFER };

        sigaddset(&mine.sa_mask, SIGUSR2);
        ASSERT_EQ(sigaction(SIGUSR1, &mine, NULL), 0);
        resha_signals *one = open_for(SIGUSR1), *two = open_for(SIGUSR1);
        resha_signal_close(one);
        ASSERT_TRUE(action_of(SIGUSR1).sa_handler != own_handler);
        raise(SIGUSR1);
        ASSERT_EQ(take(two).signal, SIGUSR1);
        resha_signal_close(two);
        struct sigaction now = action_of(SIGUSR1);
        ASSERT_TRUE(now.sa_handler == own_handler);
        ASSERT_EQ(now.sa_flags & SA_NODEFER, SA_NODEFER);
        ASSERT_EQ(now.sa_flags & SA_SIGINFO, 0);
        ASSERT_EQ(sigismember(&now.sa_mask, SIGUSR2), 1);
        ASSERT_EQ(sigismember(&now.sa_mask, SIGUSR1), 0);
        return 0;
}

TASK(a_handler_that_the_program_has_set_meanwhile_stays)
{
        resha_signals *s = open_for(SIGUSR1);

        signal(SIGUSR1, other_handler);
        resha_signal_close(s);
        ASSERT_TRUE(action_of(SIGUSR1).sa_handler == other_handler);
        s = open_for(SIGUSR1); /* and is what comes back the next time */
        ASSERT_TRUE(action_of(SIGUSR1).sa_handler != other_handler);
        resha_signal_close(s);
        ASSERT_TRUE(action_of(SIGUSR1).sa_handler == other_handler);
        return 0;
}

static int raise_after_close(void *arg)
{
        (void)arg;
        resha_signals *s = open_for(SIGTERM);
        raise(SIGTERM);
        ASSERT_EQ(take(s).signal, SIGTERM);
        resha_signal_close(s);
        raise(SIGTERM);
        return 0;
}

static int run_alone(void *arg)
{
        return test_run_opts(arg, NULL, NULL) < 0;
}

TEST(after_close_a_signal_does_what_it_did_before)
{
        struct test_child c;

        test_child(run_alone, (void *)raise_after_close, &c);
        ASSERT_TRUE(WIFSIGNALED(c.status));
        ASSERT_EQ(WTERMSIG(c.status), SIGTERM);
}

static int refuse_to_catch(enum rs_syscall call)
{
        static unsigned n;

        return call == RS_SYS_SIGACTION && ++n == 4 ? -EINVAL : 0; /* of the second signal */
}

TASK(an_open_that_fails_gives_back_what_it_has)
{
        resha_signals *s = NULL;

        rs_fault_hook = refuse_to_catch;
        int rc = resha_signal_open((const int[]){ SIGUSR1, SIGUSR2 }, 2, &s);
        rs_fault_hook = NULL;
        ASSERT_EQ(rc, -EINVAL);
        ASSERT_TRUE(action_of(SIGUSR1).sa_handler == SIG_DFL);
        ASSERT_TRUE(action_of(SIGUSR2).sa_handler == SIG_DFL);
        return 0;
}

/* ---- abnormal ends ---- */

static int hold_on(void *arg)
{
        (void)open_for(SIGUSR1);
        for (;;)
                if (resha_shielded(RESHA_FOREVER, arg, NULL) == 1)
                        return 0;
}

static int sleep_long(void *arg)
{
        (void)arg;
        return resha_sleep(RESHA_S(100));
}

static int stuck(void *arg)
{
        RESHA_GROUP(g);

        (void)arg;
        resha_group_begin(&g, NULL);
        resha_spawn(&g, hold_on, sleep_long);
        raise(SIGTERM);
        return resha_group_end(&g, 0);
}

static int given_up(void *arg)
{
        resha_run_opts opts = { .grace = RESHA_MS(20), .terminate = true };

        (void)arg;
        ASSERT_EQ(test_run_opts(stuck, NULL, &opts), -ECANCELED);
        ASSERT_TRUE(action_of(SIGUSR1).sa_handler == SIG_DFL);
        ASSERT_TRUE(action_of(SIGTERM).sa_handler == SIG_DFL);
        ASSERT_TRUE(action_of(SIGINT).sa_handler == SIG_DFL);
        return 42;
}

TEST(dispositions_come_back_where_the_grace_was_over)
{
        struct test_child c;

        test_child(given_up, NULL, &c);
        ASSERT_STR(c.text, "");
        ASSERT_TRUE(WIFEXITED(c.status));
        ASSERT_EQ(WEXITSTATUS(c.status), 42);
}

static int at_once(void *arg)
{
        (void)arg;
        return 0;
}

TEST(dispositions_come_back_where_a_run_could_not_begin)
{
        resha_run_opts opts = { .terminate = true, .overflow_report = true };
        int rc = -1;

        for (unsigned n = 1; n < 100; n++) { /* whichever system call fails */
                real_fail_nth(n, -EMFILE);
                rc = test_run_opts(at_once, NULL, &opts);
                rs_fault_hook = NULL;
                ASSERT_TRUE(action_of(SIGTERM).sa_handler == SIG_DFL);
                ASSERT_TRUE(action_of(SIGINT).sa_handler == SIG_DFL);
                ASSERT_TRUE(action_of(SIGPIPE).sa_handler == SIG_DFL);
        }
        ASSERT_OK(rc);
}

/* ---- threads ---- */

static bool blocks(int sig)
{
        sigset_t mask;

        ASSERT_EQ(pthread_sigmask(SIG_SETMASK, NULL, &mask), 0);
        return sigismember(&mask, sig);
}

static void block(int sig)
{
        sigset_t mask;

        sigemptyset(&mask);
        sigaddset(&mask, sig);
        ASSERT_EQ(pthread_sigmask(SIG_BLOCK, &mask, NULL), 0);
}

/* As where the parent had it blocked, and exec has kept that. */
TASK(a_signal_that_the_thread_blocks_comes_all_the_same)
{
        block(SIGUSR1);
        raise(SIGUSR1); /* and waits in the kernel */
        resha_signals *one = open_for(SIGUSR1), *two = open_for(SIGUSR1);
        ASSERT_EQ(take(one).signal, SIGUSR1);
        resha_signal_close(one);
        ASSERT_FALSE(blocks(SIGUSR1));
        raise(SIGUSR1);
        ASSERT_EQ(take(two).signal, SIGUSR1);
        resha_signal_close(two);
        ASSERT_TRUE(blocks(SIGUSR1));
        return 0;
}

static int wait_while_blocked(void *arg)
{
        int sig;

        return resha_timeout(RESHA_MS(1), arg, &sig) == -ETIME ? 0 : -EIO;
}

static int wait_usr1(void *arg)
{
        return resha_signal_wait((const int[]){ SIGUSR1 }, 1, arg);
}

TEST(a_signal_that_the_thread_blocks_is_blocked_again_after_the_run)
{
        block(SIGINT);
        block(SIGUSR1);
        RUN(wait_while_blocked, wait_usr1);
        ASSERT_TRUE(blocks(SIGINT));
        ASSERT_TRUE(blocks(SIGUSR1));
}

static int blocks_all(void *arg)
{
        (void)arg;
        for (int sig = 1; sig < 32; sig++)
                if (sig != SIGKILL && sig != SIGSTOP && !blocks(sig))
                        return 0;
        return 1;
}

TASK(threads_of_pools_block_all_signals)
{
        ASSERT_EQ(resha_pool_run(NULL, blocks_all, NULL, NULL), 1);
        ASSERT_EQ(blocks_all(NULL), 0);
        return 0;
}

enum { LOOPS = 4 };

static unsigned ready;

static int take_both(void *arg)
{
        RESHA_CLEANUP(resha_signal_closep) resha_signals *s = open_for(SIGUSR1);
        int sig;

        (void)arg;
        __atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
        ASSERT_EQ(take(s).signal, SIGUSR1);
        ASSERT_EQ(resha_timeout(RESHA_MS(1), wait_usr1, &sig), -ETIME);
        __atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
        ASSERT_OK(wait_usr1(&sig));
        ASSERT_EQ(take(s).signal, SIGUSR1);
        return 0;
}

static void *loop_thread(void *arg)
{
        RUN(take_both, arg);
        return NULL;
}

static void wait_until_ready(unsigned n)
{
        while (__atomic_load_n(&ready, __ATOMIC_SEQ_CST) < n)
                usleep(100);
}

/* One on the main thread, which is none, and others. */
TEST(several_loops_each_get_a_signal)
{
        pthread_t t[LOOPS];

        for (int i = 0; i < LOOPS; i++)
                ASSERT_EQ(pthread_create(&t[i], NULL, loop_thread, NULL), 0);
        wait_until_ready(LOOPS);
        kill(getpid(), SIGUSR1);
        wait_until_ready(2 * LOOPS);
        kill(getpid(), SIGUSR1);
        for (int i = 0; i < LOOPS; i++)
                ASSERT_EQ(pthread_join(t[i], NULL), 0);
        ASSERT_TRUE(action_of(SIGUSR1).sa_handler == SIG_DFL);
}

/* ---- children ---- */

static void exit_soon(pid_t parent)
{
        (void)parent;
        usleep(1000);
}

TASK(sigchld_tells_of_a_child_and_leaves_it_to_who_waits)
{
        RESHA_CLEANUP(resha_signal_closep) resha_signals *s = open_for(SIGCHLD);
        pid_t pid;

        if (real_under_tsan() && strcmp(test_backend(), "epoll") != 0)
                test_skip("TSan does not see io_uring wait, and puts signals off meanwhile");
        by_a_child(exit_soon, &pid); /* waits for it by waitpid(2) */
        resha_signal_info info = take(s);
        ASSERT_EQ(info.code, CLD_EXITED);
        ASSERT_EQ(info.pid, pid);
        ASSERT_EQ(info.status, 0);
        pid = fork();
        if (pid == 0)
                raise(SIGKILL);
        info = take(s);
        ASSERT_EQ(info.code, CLD_KILLED);
        ASSERT_EQ(info.pid, pid);
        ASSERT_EQ(info.status, SIGKILL);
        ASSERT_EQ(waitpid(pid, NULL, 0), pid);
        return 0;
}

/* Who ignores SIGCHLD waits for nobody, and must have no zombies while somebody subscribes. */
TASK(children_that_are_reaped_by_themselves_still_are)
{
        signal(SIGCHLD, SIG_IGN);
        resha_signals *s = open_for(SIGCHLD);
        pid_t pid = fork();

        if (real_under_tsan() && strcmp(test_backend(), "epoll") != 0)
                test_skip("TSan does not see io_uring wait, and puts signals off meanwhile");
        if (pid == 0)
                _exit(3);
        resha_signal_info info = take(s);
        ASSERT_EQ(info.pid, pid);
        ASSERT_EQ(info.status, 3);
        ASSERT_EQ(waitpid(pid, NULL, 0), -1);
        ASSERT_EQ(errno, ECHILD);
        resha_signal_close(s);
        ASSERT_TRUE(action_of(SIGCHLD).sa_handler == SIG_IGN);
        return 0;
}

static int in_the_child(void *arg)
{
        resha_signal_info info;

        ASSERT_EQ(resha_signal_next(arg, &info), -EPERM);
        resha_signal_close(arg); /* the parent's: left alone */
        ASSERT_TRUE(action_of(SIGUSR1).sa_handler == SIG_IGN);
        ASSERT_TRUE(blocks(SIGUSR1));
        return 0;
}

/* A signal that has come and was not taken is the parent's alone. */
TASK(a_subscription_stays_with_the_parent)
{
        struct test_child c;

        signal(SIGUSR1, SIG_IGN);
        block(SIGUSR1);
        RESHA_CLEANUP(resha_signal_closep) resha_signals *s = open_for(SIGUSR1);
        raise(SIGUSR1);
        test_child(in_the_child, s, &c);
        ASSERT_STR(c.text, "");
        ASSERT_EQ(c.status, 0);
        ASSERT_EQ(take(s).count, 1);
        return 0;
}

/* ---- SIGTERM ---- */

static int terminated(void *arg)
{
        (void)arg;
        raise(SIGTERM);
        int rc = resha_sleep(RESHA_S(30));
        raise(SIGTERM); /* as of those who send it to the process and to its group */
        printf("cleaned up after %s\n", resha_errname(rc));
        return rc;
}

static int main_of(void *arg)
{
        setenv("RESHA_BACKEND", test_backend(), 1);
        return resha_main(arg, NULL);
}

TEST(sigterm_ends_a_main_in_order)
{
        struct test_child c;

        test_child(main_of, (void *)terminated, &c);
        ASSERT_STR(c.text, "cleaned up after ECANCELED\n");
        ASSERT_TRUE(WIFEXITED(c.status));
        ASSERT_EQ(WEXITSTATUS(c.status), 128 + SIGTERM);
}

static int asks_for_sigterm(void *arg)
{
        RESHA_CLEANUP(resha_signal_closep) resha_signals *s = open_for(SIGTERM);

        (void)arg;
        raise(SIGTERM);
        ASSERT_EQ(take(s).signal, SIGTERM);
        ASSERT_OK(resha_sleep(RESHA_MS(1)));
        printf("drained\n");
        return 0;
}

TEST(sigterm_is_left_to_who_asks_for_it)
{
        struct test_child c;

        test_child(main_of, (void *)asks_for_sigterm, &c);
        ASSERT_STR(c.text, "drained\n");
        ASSERT_EQ(c.status, 0);
}

static int raises_term(void *arg)
{
        (void)arg;
        raise(SIGTERM);
        return resha_sleep(RESHA_MS(1));
}

static int with_sigterm_ignored(void *arg)
{
        signal(SIGTERM, SIG_IGN);
        return main_of(arg);
}

TEST(sigterm_that_is_ignored_stays_so)
{
        struct test_child c;

        test_child(with_sigterm_ignored, (void *)raises_term, &c);
        ASSERT_EQ(c.status, 0);
}

static int plain_run(void *arg)
{
        return test_run_opts(arg, NULL, NULL);
}

TEST(sigterm_of_a_run_that_did_not_ask_ends_the_process)
{
        struct test_child c;

        test_child(plain_run, (void *)raises_term, &c);
        ASSERT_TRUE(WIFSIGNALED(c.status));
        ASSERT_EQ(WTERMSIG(c.status), SIGTERM);
}
