/* SPDX-License-Identifier: MIT */
/* The end of processes: by their owner, by the end of a run, and of what they have started themselves. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "child.h"

static resha_process_opts piped(void)
{
        return (resha_process_opts){ .in = RESHA_PIPE, .out = RESHA_PIPE };
}

static void wait_for_line(resha_process *p, const char *line)
{
        char text[64];

        ASSERT_OK(resha_read_line(resha_process_stdout(p), text, sizeof text));
        ASSERT_STR(text, line);
}

/* Closes it, and says how long that took. */
static int64_t close_took(resha_process *p)
{
        struct timespec a, b;

        clock_gettime(CLOCK_MONOTONIC, &a); /* its time, also in the simulated world */
        close_process(p);
        clock_gettime(CLOCK_MONOTONIC, &b);
        return (b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000;
}

/* ---- by its owner ---- */

TASK(one_that_ends_in_time_is_not_killed)
{
        char name[] = "/tmp/resha-process-XXXXXX", text[8] = "";
        int fd = mkstemp(name);
        resha_process_opts o = piped();

        o.out = RESHA_DESCRIPTOR;
        o.out_fd = fd;
        o.err = RESHA_PIPE;
        o.grace = RESHA_S(20);
        resha_process *p = shell("trap 'sleep 0.1; echo end; exit' TERM; echo >&2; while :; do sleep 0.01; done", o);
        ASSERT_EQ(resha_read(resha_process_stderr(p), text, sizeof text), 1);
        ASSERT_TRUE(close_took(p) < 15000);
        ASSERT_EQ(pread(fd, text, sizeof text, 0), 4);
        ASSERT_EQ(memcmp(text, "end\n", 4), 0);
        ASSERT_EQ(close(fd) | unlink(name), 0);
        return 0;
}

TASK(one_that_does_not_is_killed_after_the_grace)
{
        resha_process_opts o = piped();

        o.grace = RESHA_MS(150);
        resha_process *p = shell("trap '' TERM; echo ready; while :; do sleep 0.01; done", o);
        wait_for_line(p, "ready\n");
        int64_t took = close_took(p);
        ASSERT_TRUE(took >= 150 && took < 10000);
        return 0;
}

TASK(a_negative_grace_is_none)
{
        resha_process_opts o = piped();

        o.grace = RESHA_MS(-1);
        resha_process *p = shell("trap 'echo end; exit' TERM; echo ready; while :; do sleep 0.01; done", o);
        wait_for_line(p, "ready\n");
        ASSERT_TRUE(close_took(p) < 2000);
        return 0;
}

TASK(one_that_was_stopped_is_ended)
{
        resha_process_opts o = piped();

        o.grace = RESHA_S(30);
        resha_process *p = shell("trap 'exit 0' TERM; kill -STOP $$; while :; do sleep 0.01; done", o);
        siginfo_t info;
        ASSERT_EQ(waitid(P_PID, (id_t)resha_process_pid(p), &info, WSTOPPED | WNOWAIT), 0);
        ASSERT_TRUE(close_took(p) < 20000);
        return 0;
}

static int owner(void *arg)
{
        resha_process *p RESHA_CLEANUP(resha_process_closep) = shell("exec sleep 60", (resha_process_opts){ 0 });

        *(int *)arg = resha_process_pid(p);
        return resha_process_check(p);
}

TASK(a_cancel_of_its_owner_ends_it)
{
        int pid = 0;

        ASSERT_EQ(resha_timeout(RESHA_MS(20), owner, &pid), -ETIME);
        ASSERT_TRUE(pid > 0 && is_gone(pid));
        assert_no_children();
        return 0;
}

static int closes(void *arg)
{
        resha_process_close(arg);
        return 0;
}

static int reads(void *arg)
{
        char buf[16];

        return (int)resha_read(resha_process_stdout(arg), buf, sizeof buf);
}

TASK(others_that_wait_are_sent_away)
{
        resha_process *p = shell("exec sleep 60", piped());
        resha_task waiter[2] = { 0 }, reader = { 0 };
        RESHA_GROUP(g);

        resha_group_begin(&g, &(resha_group_opts){ .keep_going = true });
        resha_spawn_task(&g, wait_task, p, &waiter[0]);
        resha_spawn_task(&g, wait_task, p, &waiter[1]);
        resha_spawn_task(&g, reads, p, &reader);
        ASSERT_OK(resha_sleep(RESHA_MS(5)));
        resha_spawn(&g, closes, p);
        ASSERT_EQ(resha_group_end(&g, 0), -EBADF);
        assert_no_children();
        return 0;
}

TASK(one_that_has_ended_is_closed_at_once)
{
        resha_process *p = shell("exit 2", piped());

        ASSERT_OK(wait_task(p));
        ASSERT_TRUE(close_took(p) < 2000);
        resha_process_close(NULL);
        return 0;
}

/* ---- what it leaves behind ---- */

TASK(a_grandchild_that_holds_the_pipe)
{
        resha_process *p = shell("exec 3<&0; (read x <&3; echo late) & echo early; exit 6", piped());
        char text[16];

        ASSERT_OK(wait_task(p)); /* which is no matter of the pipe */
        ASSERT_STR(notes(), "status6");
        wait_for_line(p, "early\n");
        ASSERT_EQ(resha_timeout(RESHA_MS(20), reads, p), -ETIME); /* no end yet */
        ASSERT_OK(resha_write_all(resha_process_stdin(p), "\n", 1, NULL));
        wait_for_line(p, "late\n");
        ASSERT_EQ(resha_read(resha_process_stdout(p), text, sizeof text), 0);
        close_process(p);
        return 0;
}

TASK(a_grandchild_does_not_hold_up_the_close)
{
        resha_process *p = shell("sleep 5 & echo $!; exit 0", piped());
        char line[16] = "";

        ASSERT_OK(resha_read_line(resha_process_stdout(p), line, sizeof line));
        ASSERT_TRUE(close_took(p) < 3000);
        ASSERT_FALSE(child_is_dead(number(line)));
        ASSERT_EQ(kill(number(line), SIGKILL), 0);
        return 0;
}

TASK(one_that_does_not_read_its_input)
{
        resha_process *p = shell("exec <&-; echo closed; exec sleep 60", piped());
        char byte = 0;

        wait_for_line(p, "closed\n");
        ASSERT_EQ(resha_write_all(resha_process_stdin(p), &byte, 1, NULL), -EPIPE);
        close_process(p);
        return 0;
}

/* ---- groups ---- */

/* In a program that is this one, started again: it leaves the group that was made for it. */
__attribute__((constructor)) static void leave_the_group(void)
{
        if (!getenv("RESHA_TEST_LEAVES"))
                return;
        char said = setpgid(0, getpgid(getppid())) == 0 ? '+' : '-';
        if (write(STDOUT_FILENO, &said, 1) == 1)
                poll(NULL, 0, 20000);
        _exit(0);
}

TASK(one_that_has_left_its_group_is_ended_too)
{
        const char *const argv[] = { program_invocation_name, NULL }, *const env[] = { "RESHA_TEST_LEAVES=1", NULL };
        resha_process *p = NULL;
        char said = 0;
        resha_process_opts o = { .argv = argv, .add_env = env, .out = RESHA_PIPE, .group = true };

        int rc = resha_process_spawn(&o, &p);
        if (rc == -ENOEXEC)
                test_skip("a program of another machine");
        ASSERT_OK(rc);
        ASSERT_EQ(resha_read(resha_process_stdout(p), &said, 1), 1);
        ASSERT_EQ(said, '+');
        ASSERT_EQ(resha_process_signal(p, 0), 0);
        ASSERT_TRUE(close_took(p) < 10000);
        return 0;
}

TASK(a_group_whose_first_process_was_reaped_by_others_gets_no_signal)
{
        resha_process_opts o = piped();
        char line[16] = "";

        o.group = true;
        resha_process *p = shell("sleep 60 & echo $!; exit 0", o);
        ASSERT_OK(resha_read_line(resha_process_stdout(p), line, sizeof line));
        ASSERT_OK(wait_task(p));
        ASSERT_EQ(resha_process_signal(p, 0), 0);
        ASSERT_EQ(waitpid(resha_process_pid(p), NULL, 0), resha_process_pid(p)); /* its number is free from now on */
        ASSERT_EQ(resha_process_signal(p, SIGKILL), -ESRCH);
        close_process(p);
        ASSERT_FALSE(child_is_dead(number(line)));
        ASSERT_EQ(kill(number(line), SIGKILL), 0);
        return 0;
}

/* ---- the end of the run ---- */

static int left_pid;

static void on_report(const resha_report *r, void *arg)
{
        (void)arg;
        if (r->kind == RESHA_REPORT_FALLBACK)
                return; /* no pidfds */
        note("%d", (int)r->kind);
        ASSERT_HAS(r->text, "process sh (");
        ASSERT_HAS(r->text, ") was not closed before the run ended; it is ended now");
}

static int forgets(void *arg)
{
        resha_process *p = shell("exec sleep 60", piped());

        (void)arg;
        left_pid = resha_process_pid(p);
        return 0;
}

TEST(one_that_is_left_over_is_ended_with_the_run)
{
        char text[16];

        ASSERT_OK(test_run_opts(forgets, NULL, &(resha_run_opts){ .report = on_report }));
        snprintf(text, sizeof text, "%d", RESHA_REPORT_LEFT_OPEN);
        ASSERT_STR(notes(), text);
        ASSERT_TRUE(is_gone(left_pid));
        assert_no_children();
}

static int cannot_end(void *arg)
{
        (void)arg;
        RESHA_SCOPE(s);
        resha_shield_begin(&s, RESHA_FOREVER);
        while (resha_sleep(RESHA_S(3600)) == 0)
                ;
        return 0;
}

static int forgets_and_hangs(void *arg)
{
        forgets(arg);
        ASSERT_EQ(raise(SIGINT), 0);
        return cannot_end(NULL);
}

static int waits_and_hangs(void *arg)
{
        resha_process *p = shell("exit 0", (resha_process_opts){ .group = true });

        left_pid = resha_process_pid(p);
        ASSERT_OK(resha_process_wait(p, NULL)); /* its number is kept for the rest of the group */
        ASSERT_EQ(raise(SIGINT), 0);
        return cannot_end(arg);
}

static int given_up(void *arg)
{
        int rc = test_run_opts(arg ? waits_and_hangs : forgets_and_hangs, NULL,
                               &(resha_run_opts){ .grace = RESHA_MS(50) });
        for (int i = 0; i < 1000 && !is_gone(left_pid); i++)
                usleep(5000); /* a thread reaps it where there are no pidfds */
        assert_no_children();
        printf("%s\n", resha_errname(rc));
        fflush(stdout);
        return is_gone(left_pid) ? 0 : 1;
}

TEST(a_run_that_is_given_up_leaves_none)
{
        struct test_child c;

        if (test_is_sim())
                test_skip("needs the time that the process needs");
        for (int i = 0; i < 2; i++) {
                test_child(given_up, i ? &c : NULL, &c);
                ASSERT_STR(c.text, "ECANCELED\n");
                ASSERT_EQ(c.status, 0);
        }
}

/* ---- misuse ---- */

TEST(outside_of_a_task)
{
        const char *const argv[] = { "true", NULL };
        resha_process *p = NULL;

        ASSERT_EQ(resha_process_spawn(&(resha_process_opts){ .argv = argv }, &p), -EPERM);
}

TASK(options_that_are_wrong)
{
        static const char *const argv[] = { "true", NULL }, *const empty[] = { "", NULL }, *const none[] = { NULL };
        static const char *const nameless[] = { "=x", NULL };
        const resha_process_opts wrong[] = {
                { 0 },
                { .argv = none },
                { .argv = empty },
                { .argv = argv, .out = RESHA_TO_STDOUT },
                { .argv = argv, .in = (enum resha_stdio)9 },
                { .argv = argv, .fds = (int[1025]){ 0 }, .n_fds = 1025 },
                { .argv = argv, .n_fds = 1 },
                { .argv = argv, .add_env = nameless },
                { .argv = argv, ._reserved = { 1 } },
        };
        resha_process *p = NULL;

        ASSERT_EQ(resha_process_spawn(NULL, &p), -EINVAL);
        for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
                ASSERT_EQ(resha_process_spawn(&wrong[i], &p), -EINVAL);
        ASSERT_PTR(p, NULL);
        return 0;
}

struct stranger {
        resha_process *p;
        int rc[2];
};

static int of_another_loop(void *arg)
{
        struct stranger *s = arg;

        s->rc[0] = resha_process_wait(s->p, NULL);
        s->rc[1] = resha_process_signal(s->p, SIGTERM);
        ASSERT_PTR(resha_process_stdin(s->p), NULL);
        resha_process_close(s->p); /* nothing */
        return 0;
}

static void *another_loop(void *arg)
{
        ASSERT_OK(resha_run(of_another_loop, arg, &(resha_run_opts){ .backend = "epoll" }));
        return NULL;
}

TASK(one_of_another_loop)
{
        struct stranger s = { .p = shell("read x; exit 1", piped()) };
        pthread_t t;

        ASSERT_EQ(pthread_create(&t, NULL, another_loop, &s), 0);
        ASSERT_EQ(pthread_join(t, NULL), 0);
        ASSERT_EQ(s.rc[0], -EPERM);
        ASSERT_EQ(s.rc[1], -EPERM);
        resha_process_close_stdin(s.p);
        ASSERT_OK(wait_task(s.p));
        close_process(s.p);
        return 0;
}
