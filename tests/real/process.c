/* SPDX-License-Identifier: MIT */
/* Processes: what they get, waiting for them, signals, their end. With RESHA_TEST_NO_PIDFD=1 all of it without pidfds,
 * as on an old kernel. */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"

/* ---- how it ends ---- */

TASK(a_status_is_a_struct)
{
        resha_process *p = shell("exit 7", (resha_process_opts){ 0 });
        resha_exit e;

        ASSERT_TRUE(resha_process_pid(p) > 1);
        ASSERT_OK(resha_process_wait(p, &e));
        ASSERT_FALSE(e.signalled);
        ASSERT_FALSE(e.core);
        ASSERT_EQ(e.code, 7);
        ASSERT_OK(resha_process_wait(p, NULL)); /* again */
        ASSERT_EQ(resha_process_check(p), RESHA_EPROCESS);
        ASSERT_STR(resha_error_of(RESHA_EPROCESS)->text, "sh: exit status 7");
        close_process(p);
        return 0;
}

/* semantics 285 better
 * asyncio: the return code of a process that a signal has ended is its negative number.
 * resha: resha_exit says whether a signal has ended it, and the code is a positive number in both cases. */
TASK(semantics_285_a_signal_that_ended_it_is_told)
{
        resha_process *p = shell("kill -9 $$", (resha_process_opts){ 0 });
        resha_exit e;

        ASSERT_OK(resha_process_wait(p, &e));
        ASSERT_TRUE(e.signalled);
        ASSERT_EQ(e.code, SIGKILL);
        ASSERT_EQ(resha_process_check(p), RESHA_EPROCESS);
        ASSERT_STR(resha_error_of(RESHA_EPROCESS)->text, "sh: killed by signal 9 (SIGKILL)");
        close_process(p);
        return 0;
}

/* semantics 284 same
 * asyncio: several tasks wait for a process, and all get its return code.
 * resha: the same. */
TASK(semantics_284_all_who_wait_get_the_status)
{
        resha_process *p = shell("read x; exit 3", (resha_process_opts){ .in = RESHA_PIPE });
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        for (int i = 0; i < 5; i++)
                resha_spawn(&g, wait_task, p);
        ASSERT_OK(resha_sleep(RESHA_MS(5)));
        resha_process_close_stdin(p);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "status3 status3 status3 status3 status3");
        close_process(p);
        return 0;
}

TASK(who_polls_for_others_may_be_cancelled)
{
        resha_process *p = shell("read x", (resha_process_opts){ .in = RESHA_PIPE });
        resha_task first = { 0 }, second = { 0 };
        RESHA_GROUP(g);

        resha_group_begin(&g, &(resha_group_opts){ .keep_going = true });
        ASSERT_OK(resha_spawn_task(&g, wait_task, p, &first));
        ASSERT_OK(resha_spawn_task(&g, wait_task, p, &second));
        resha_spawn(&g, wait_task, p);
        ASSERT_OK(resha_sleep(RESHA_MS(2)));
        resha_task_cancel(&first);
        resha_task_cancel(&second); /* which polls from now on, or has not begun yet */
        ASSERT_OK(resha_sleep(RESHA_MS(2)));
        ASSERT_EQ(resha_process_signal(p, SIGTERM), 0);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "signal15");
        close_process(p);
        return 0;
}

/* semantics 286 same
 * asyncio: a signal after the exit was processed is an error; in the race before that it is ignored.
 * resha: -ESRCH once it has been waited for, and 0 before; a process that was reaped is never signalled. */
TASK(semantics_286_no_signal_goes_to_one_that_was_reaped)
{
        resha_process *p = shell("exit 0", (resha_process_opts){ 0 });
        siginfo_t info;

        ASSERT_EQ(waitid(P_PID, (id_t)resha_process_pid(p), &info, WEXITED | WNOWAIT), 0); /* it has ended */
        ASSERT_EQ(resha_process_signal(p, SIGTERM), 0);
        ASSERT_OK(resha_process_wait(p, NULL));
        ASSERT_EQ(resha_process_signal(p, SIGTERM), -ESRCH);
        ASSERT_STR(resha_error_of(-ESRCH)->text, "signal 15 to process sh: it has ended");
        close_process(p);
        return 0;
}

TASK(no_such_signal)
{
        resha_process *p = shell("read x", (resha_process_opts){ .in = RESHA_PIPE });

        ASSERT_EQ(resha_process_signal(p, 1000), -EINVAL);
        ASSERT_EQ(resha_process_signal(p, 0), 0); /* whether there could be one */
        close_process(p);
        return 0;
}

/* semantics 283 better
 * asyncio: a wait() that is cancelled leaves the process running, and nobody ends it.
 * resha: it goes on, too; its owner ends it: SIGTERM, then SIGKILL, and reaps it. */
TASK(semantics_283_a_cancelled_wait_leaves_it_to_its_owner)
{
        resha_process *p = shell("exec sleep 60", (resha_process_opts){ 0 });
        int pid = resha_process_pid(p);

        ASSERT_EQ(resha_timeout(RESHA_MS(20), wait_task, p), -ETIME);
        ASSERT_EQ(resha_process_signal(p, 0), 0);
        ASSERT_FALSE(is_gone(pid));
        close_process(p);
        ASSERT_TRUE(is_gone(pid));
        return 0;
}

/* semantics 288 same
 * asyncio: if output is piped and nobody reads it, a wait may never end.
 * resha: the same, and the comment of resha_process_wait() says so; resha_process_communicate() reads. */
TASK(semantics_288_a_pipe_that_nobody_reads_holds_it_up)
{
        resha_process *p = shell("head -c 300000 /dev/zero; exit 5", (resha_process_opts){ .out = RESHA_PIPE });
        char buf[8192];
        ssize_t n;
        size_t all = 0;

        ASSERT_EQ(resha_timeout(RESHA_MS(50), wait_task, p), -ETIME);
        while ((n = resha_read(resha_process_stdout(p), buf, sizeof buf)) > 0)
                all += (size_t)n;
        ASSERT_OK(n);
        ASSERT_EQ(all, 300000);
        ASSERT_OK(wait_task(p));
        ASSERT_STR(notes(), "status5");
        close_process(p);
        return 0;
}

/* semantics 292 same
 * asyncio: output that is in the pipe when the process has exited can still be read.
 * resha: the same, until resha_process_close(). */
TASK(semantics_292_output_is_read_after_the_exit)
{
        resha_process *p = shell("echo late; exit 1", (resha_process_opts){ .out = RESHA_PIPE });

        ASSERT_OK(wait_task(p));
        ASSERT_STR(read_all(p), "late\n");
        close_process(p);
        return 0;
}

/* semantics 291 better
 * asyncio: closing the transport kills a process that still runs.
 * resha: resha_process_close() asks it to end first (SIGTERM, and the grace), and returns when it is reaped. */
TASK(semantics_291_a_close_ends_it)
{
        resha_process *p = shell("trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.01; done",
                                 (resha_process_opts){ .out = RESHA_PIPE });
        char line[16];
        int pid = resha_process_pid(p);

        ASSERT_EQ(resha_read_line(resha_process_stdout(p), line, sizeof line), 6);
        close_process(p);
        ASSERT_TRUE(is_gone(pid));
        return 0;
}

/* semantics 290 same
 * asyncio: if the call that creates it is cancelled, the process is killed and reaped before that is known.
 * resha: spawning does not wait, so it either has not begun, or is done: no process is left that nobody owns. */
TASK(semantics_290_a_cancelled_spawn_starts_nothing)
{
        const char *const argv[] = { "true", NULL };
        resha_process *p = NULL;
        RESHA_SCOPE(s);

        resha_timeout_begin(&s, RESHA_S(0));
        int rc = resha_process_spawn(&(resha_process_opts){ .argv = argv }, &p);
        ASSERT_EQ(rc, -ECANCELED);
        ASSERT_PTR(p, NULL);
        assert_no_children();
        ASSERT_EQ(resha_scope_end(&s, rc), -ETIME);
        return 0;
}

/* ---- what it gets ---- */

TASK(pipes_are_real_and_block_for_the_program)
{
        /* opened again by its name; flags are octal, and 4000 is O_NONBLOCK */
        resha_process *p = shell("cat /dev/stdin; grep flags /proc/self/fdinfo/0 /proc/self/fdinfo/1 >&2",
                                 (resha_process_opts){ .in = RESHA_PIPE, .out = RESHA_PIPE, .err = RESHA_PIPE });
        char text[256];

        ASSERT_STR(resha_stream_kind(resha_process_stdin(p)), "pipe");
        ASSERT_OK(resha_write_all(resha_process_stdin(p), "abc\n", 4, NULL));
        resha_process_close_stdin(p);
        resha_process_close_stdin(p);
        ASSERT_PTR(resha_process_stdin(p), NULL);
        ASSERT_STR(read_all(p), "abc\n");
        ssize_t n = resha_read_exactly(resha_process_stderr(p), text, sizeof text - 1);
        ASSERT_OK(n);
        text[n] = 0;
        ASSERT_HAS(text, "flags");
        for (const char *f = text; (f = strstr(f, "flags:\t")); f++)
                ASSERT_EQ(strtol(f + 7, NULL, 8) & O_NONBLOCK, 0);
        close_process(p);
        return 0;
}

TASK(null_reads_and_takes_nothing)
{
        resha_process_opts o = { .in = RESHA_NULL, .err = RESHA_NULL };

        ASSERT_STR(output_of("cat; echo gone >&2; echo end", o), "end\n");
        return 0;
}

TASK(error_goes_where_output_goes)
{
        ASSERT_STR(output_of("echo a; echo b >&2; echo c", (resha_process_opts){ .err = RESHA_TO_STDOUT }),
                   "a\nb\nc\n");
        return 0;
}

TASK(descriptors_become_what_they_are_to_be)
{
        int a[2], b[2];

        ASSERT_EQ(pipe2(a, O_CLOEXEC), 0);
        ASSERT_EQ(pipe2(b, O_CLOEXEC), 0);
        ASSERT_EQ(write(a[1], "A", 1), 1);
        ASSERT_EQ(write(b[1], "B", 1), 1);
        ASSERT_EQ(close(a[1]) | close(b[1]), 0);
        /* crosswise: each stands where another one is to come */
        resha_process_opts o = {
                .in = RESHA_DESCRIPTOR, .in_fd = a[0], .fds = (int[]){ b[0], a[0], b[0] }, .n_fds = 3
        };
        ASSERT_STR(output_of("cat <&3; cat; cat <&4; cat <&5", o), "BA");
        ASSERT_TRUE(fcntl(a[0], F_GETFD) == FD_CLOEXEC);
        ASSERT_EQ(close(a[0]) | close(b[0]), 0);
        return 0;
}

TASK(numbers_that_are_their_own_or_anothers)
{
        int low[3], all[24];

        for (int i = 0; i < 3; i++) {
                int fds[2];
                ASSERT_EQ(pipe2(fds, O_CLOEXEC), 0);
                ASSERT_EQ(write(fds[1], &"abc"[i], 1), 1);
                ASSERT_EQ(close(fds[1]), 0);
                low[i] = fds[0];
        }
        for (int i = 0; i < 24; i++)
                all[i] = low[(i + 1) % 3];
        ASSERT_STR(output_of("cat /dev/fd/9 /dev/fd/10 /dev/fd/11; exec 2>&-; ls /proc/self/fd | wc -l",
                             (resha_process_opts){ .fds = all, .n_fds = 24 }),
                   "bca27\n"); /* 0, 1, 3 to 26, and the folder's */
        for (int i = 0; i < 3; i++)
                ASSERT_EQ(close(low[i]), 0);
        return 0;
}

TASK(it_inherits_nothing_else)
{
        int open_on_exec = open("/dev/null", O_RDWR), high = fcntl(open_on_exec, F_DUPFD, 200);

        ASSERT_TRUE(open_on_exec >= 0 && high >= 200);
        ASSERT_STR(output_of("ls /proc/self/fd | tr '\\n' ' '", (resha_process_opts){ 0 }), "0 1 2 3 ");
        ASSERT_EQ(close(open_on_exec) | close(high), 0);
        return 0;
}

TASK(its_environment)
{
        setenv("RS_A", "1", 1);
        setenv("RS_B", "2", 1);
        const char *const add[] = { "RS_A=x=y", "RS_B", "RS_C=old", "RS_C=new", "RS_ABSENT", NULL };
        const char *const only[] = { "PATH=/bin:/usr/bin", "RS_Z=z", NULL };

        ASSERT_STR(output_of("echo $RS_A,${RS_B-none},$RS_C", (resha_process_opts){ .add_env = add }),
                   "x=y,none,new\n");
        ASSERT_STR(output_of("echo $RS_A,$RS_B", (resha_process_opts){ 0 }), "1,2\n");
        ASSERT_STR(output_of("echo ${RS_A-none},$RS_Z", (resha_process_opts){ .env = only }), "none,z\n");
        ASSERT_STR(output_of("env | grep -c RS_", (resha_process_opts){ .env = only, .add_env = add }), "3\n");
        return 0;
}

TASK(its_directory)
{
        ASSERT_STR(output_of("pwd", (resha_process_opts){ .dir = "/usr/lib" }), "/usr/lib\n");
        return 0;
}

enum { C_LIBRARY = 3 }; /* the two signals of the C library, 32 and 33, are ignored by its posix_spawn() */

static unsigned long long signals_of(const char *line)
{
        char text[128];

        snprintf(text, sizeof text, "grep %s: /proc/self/status | cut -f2", line);
        return strtoull(output_of(text, (resha_process_opts){ 0 }), NULL, 16) & ~((unsigned long long)C_LIBRARY << 31);
}

TASK(no_signal_is_blocked_or_ignored_there)
{
        sigset_t set;

        sigemptyset(&set);
        sigaddset(&set, SIGUSR1);
        ASSERT_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
        signal(SIGUSR2, SIG_IGN);
        ASSERT_EQ(signals_of("SigBlk"), 0);
        ASSERT_EQ(signals_of("SigIgn"), 0); /* SIGPIPE is ignored here */
        ASSERT_EQ(pthread_sigmask(SIG_UNBLOCK, &set, NULL), 0);
        signal(SIGUSR2, SIG_DFL);
        return 0;
}

TASK(what_a_terminal_says_stays_ignored)
{
        signal(SIGHUP, SIG_IGN);
        signal(SIGQUIT, SIG_IGN);
        ASSERT_EQ(signals_of("SigIgn"), 1 << (SIGHUP - 1) | 1 << (SIGQUIT - 1));
        signal(SIGHUP, SIG_DFL);
        signal(SIGQUIT, SIG_DFL);
        return 0;
}

/* ---- groups ---- */

TASK(signals_of_a_group_are_for_all_of_it)
{
        resha_process *p =
                shell("trap 'exit 4' TERM; (trap 'echo sub; exit 0' TERM; echo ready; while :; do sleep 0.01; "
                      "done) & wait; wait",
                      (resha_process_opts){ .out = RESHA_PIPE, .group = true });
        char line[16];

        ASSERT_EQ(getpgid(resha_process_pid(p)), resha_process_pid(p));
        ASSERT_EQ(resha_read_line(resha_process_stdout(p), line, sizeof line), 6);
        ASSERT_EQ(resha_process_signal(p, SIGTERM), 0);
        ASSERT_HAS(read_all(p), "sub\n");
        ASSERT_OK(wait_task(p));
        ASSERT_STR(notes(), "status4");
        close_process(p);
        return 0;
}

TASK(what_is_left_of_a_group_is_killed)
{
        resha_process *p =
                shell("trap '' TERM; sleep 60 & echo $!", (resha_process_opts){ .out = RESHA_PIPE, .group = true });
        char line[16] = "";

        ASSERT_TRUE(resha_read_line(resha_process_stdout(p), line, sizeof line) > 1);
        ASSERT_OK(wait_task(p));
        ASSERT_STR(notes(), "status0");
        ASSERT_FALSE(child_is_dead(number(line)));
        ASSERT_EQ(resha_process_signal(p, 0), 0); /* the group is there */
        close_process(p);
        wait_until_dead(number(line));
        return 0;
}

TASK(a_session_of_its_own)
{
        resha_process *p = shell("read x", (resha_process_opts){ .in = RESHA_PIPE, .session = true });

        ASSERT_EQ(getsid(resha_process_pid(p)), resha_process_pid(p));
        close_process(p);
        return 0;
}
