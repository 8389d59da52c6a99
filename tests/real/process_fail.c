/* SPDX-License-Identifier: MIT */
/* What can go wrong with processes: programs that cannot be started, statuses that are lost, no descriptors, no
 * processes, no pidfds; and that nothing is left behind. */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"

static char folder[] = "/tmp/resha-fail-XXXXXX";
static char path[64];

static void make_folder(void)
{
        ASSERT_TRUE(mkdtemp(folder) != NULL);
}

static const char *in_folder(const char *name)
{
        snprintf(path, sizeof path, "%s/%s", folder, name);
        return path;
}

static const char *make_file(const char *name, const char *text, mode_t mode)
{
        FILE *f = fopen(in_folder(name), "w");

        ASSERT_TRUE(f != NULL);
        fputs(text, f);
        fclose(f);
        ASSERT_EQ(chmod(path, mode), 0);
        return path;
}

static void remove_folder(void)
{
        ASSERT_EQ(rmdir(folder), 0);
}

/* All of it fails with that code, its record has that text, and no child or descriptor is left. */
static void fails(resha_process_opts o, int code, const char *text)
{
        resha_process *p = NULL;
        unsigned fds = real_fds();

        o.in = RESHA_PIPE;
        o.out = RESHA_PIPE;
        ASSERT_EQ(resha_process_spawn(&o, &p), code);
        ASSERT_HAS(resha_error_of(code)->text, text);
        ASSERT_PTR(p, NULL);
        ASSERT_EQ(real_fds(), fds);
        assert_no_children();
}

static void program_fails(const char *program, int code, const char *text)
{
        const char *const argv[] = { program, NULL };

        fails((resha_process_opts){ .argv = argv }, code, text);
}

/* ---- programs that cannot be started ---- */

/* semantics 289 same
 * asyncio: if the program cannot be started, the creating call raises, as FileNotFoundError.
 * resha: resha_process_spawn() fails with the code, and a record that says what is missing; no zombie is left. */
TASK(semantics_289_a_program_that_is_not_there_is_an_error_of_spawn)
{
        CHILD_EXEC_IS_KNOWN();
        program_fails("resha-no-such-program", -ENOENT, "resha-no-such-program: there is no such program in PATH (/");
        program_fails("/nowhere/at/all", -ENOENT, "/nowhere/at/all: No such file or directory");
        program_fails("/dev/null/x", -ENOTDIR, "/dev/null/x: Not a directory");
        return 0;
}

TASK(a_path_that_is_too_long_for_the_record_is_cut_visibly)
{
        static char many[640], old[4096];
        const char *had = getenv("PATH");

        CHILD_EXEC_IS_KNOWN();
        ASSERT_TRUE((size_t)snprintf(old, sizeof old, "%s", had ? had : "") < sizeof old);
        ASSERT_OK(setenv("PATH", "/bin:/usr/bin", 1));
        program_fails("resha-no-such-program", -ENOENT, "there is no such program in PATH (/bin:/usr/bin)");
        for (size_t i = 0; i + 8 < sizeof many; i += 8)
                memcpy(many + i, i ? ":/no/bin" : "/usr/bin", 8);
        ASSERT_OK(setenv("PATH", many, 1));
        program_fails("resha-no-such-program", -ENOENT, "/no/bin:/no...)");
        ASSERT_OK(had ? setenv("PATH", old, 1) : unsetenv("PATH"));
        return 0;
}

TASK(an_interpreter_that_is_not_there)
{
        CHILD_EXEC_IS_KNOWN();
        make_folder();
        program_fails(make_file("script", "#! /nowhere/interpreter -x\n", 0700), -ENOENT,
                      "script: its interpreter \"/nowhere/interpreter\" (first line of the file): No such file");
        ASSERT_EQ(unlink(path), 0);
        remove_folder();
        return 0;
}

TASK(a_directory_that_is_not_there)
{
        static const char *const argv[] = { "true", NULL };

        CHILD_EXEC_IS_KNOWN();
        fails((resha_process_opts){ .argv = argv, .dir = "/nowhere" }, -ENOENT,
              "true: its directory \"/nowhere\": No such file or directory");
        fails((resha_process_opts){ .argv = argv, .dir = "/dev/null" }, -ENOTDIR,
              "true: its directory \"/dev/null\": Not a directory");
        return 0;
}

TASK(a_relative_program_is_looked_for_in_its_directory)
{
        static const char *const argv[] = { "./script", NULL };
        resha_process *p = NULL;

        CHILD_EXEC_IS_KNOWN();
        make_folder();
        fails((resha_process_opts){ .argv = argv, .dir = folder }, -ENOENT, "/./script: No such file or directory");
        make_file("script", "#!/bin/sh\nexit 9\n", 0700);
        ASSERT_OK(resha_process_spawn(&(resha_process_opts){ .argv = argv, .dir = folder }, &p));
        ASSERT_OK(wait_task(p));
        ASSERT_STR(notes(), "status9");
        close_process(p);
        ASSERT_EQ(unlink(in_folder("script")), 0);
        remove_folder();
        return 0;
}

TASK(a_file_that_may_not_be_executed)
{
        CHILD_EXEC_IS_KNOWN();
        make_folder();
        program_fails(make_file("text", "#!/bin/sh\n", 0600), -EACCES, "text: it may not be executed");
        ASSERT_EQ(unlink(path), 0);
        program_fails(folder, -EACCES, folder);
        remove_folder();
        return 0;
}

TASK(a_file_that_is_no_program)
{
        CHILD_EXEC_IS_KNOWN();
        make_folder();
        program_fails(make_file("text", "exit 0\n", 0700), -ENOEXEC, "text: it is no program for this machine, or");
        ASSERT_EQ(unlink(path), 0);
        int fd = open(make_file("open", "#!/bin/sh\n", 0700), O_WRONLY | O_CLOEXEC);
        program_fails(path, -ETXTBSY, "open: somebody has it open for writing");
        ASSERT_EQ(close(fd) | unlink(path), 0);
        remove_folder();
        return 0;
}

TASK(arguments_that_are_too_long)
{
        enum { SIZE = 200 * 1024 };
        char *text = resha_malloc(SIZE);
        const char *const argv[] = { "true", text, NULL };

        CHILD_EXEC_IS_KNOWN();
        memset(text, 'x', SIZE - 1);
        text[SIZE - 1] = 0;
        fails((resha_process_opts){ .argv = argv }, -E2BIG, "true: arguments (20");
        resha_free(text);
        return 0;
}

TASK(descriptors_that_are_not_open)
{
        static const char *const argv[] = { "true", NULL };
        int fd = dup(0);

        ASSERT_EQ(close(fd), 0);
        fails((resha_process_opts){ .argv = argv, .err = RESHA_DESCRIPTOR, .err_fd = fd }, -EBADF,
              "is not open: it was to be descriptor 2 of the program");
        fails((resha_process_opts){ .argv = argv, .fds = (int[]){ 0, -1 }, .n_fds = 2 }, -EBADF,
              "descriptor -1 is not open: it was to be descriptor 4 of the program");
        return 0;
}

/* ---- limits ---- */

TASK(no_descriptors_are_left)
{
        struct rlimit limit, tight;
        unsigned failed = 0;

        ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
        for (rlim_t n = 3; n < 40; n++) {
                static const char *const argv[] = { "true", NULL };
                resha_process *p = NULL;
                resha_process_opts o = { .argv = argv, .in = RESHA_PIPE, .out = RESHA_PIPE, .err = RESHA_NULL };
                tight = (struct rlimit){ n, limit.rlim_max };
                ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &tight), 0);
                int rc = resha_process_spawn(&o, &p);
                ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
                if (rc == 0)
                        ASSERT_OK(resha_process_check(p));
                else
                        ASSERT_EQ(rc, -EMFILE);
                failed += rc < 0;
                close_process(p);
        }
        ASSERT_TRUE(failed > 0 && failed < 37);
        return 0;
}

/* The limit may be lowered below numbers that are in use, and those that the program is to have may be above it. */
TASK(descriptors_above_the_limit)
{
        static const char *const argv[] = { "true", NULL };
        int high = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 150), many[120] = { 0 };
        struct rlimit limit, tight = { 100, 0 };

        ASSERT_TRUE(high >= 150);
        ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
        tight.rlim_max = limit.rlim_max;
        ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &tight), 0);
        fails((resha_process_opts){ .argv = argv, .fds = &high, .n_fds = 1 }, -EMFILE,
              "true: a descriptor that it gets, here or there, is not below the limit of open files (ulimit -n)");
        fails((resha_process_opts){ .argv = argv, .fds = many, .n_fds = 120 }, -EMFILE,
              "true: a descriptor for it: Too many open files");
        int next = dup(STDIN_FILENO);
        ASSERT_EQ(close(next), 0);
        tight.rlim_cur = (rlim_t)next + 1;
        ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &tight), 0);
        for (int i = 0; i < 2; i++) /* the text of the second is not put behind that of the first */
                fails((resha_process_opts){ .argv = argv }, -EMFILE, "true: its standard input: Too many open files");
        ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
        ASSERT_EQ(close(high), 0);
        return 0;
}

static int no_more_processes(void *arg)
{
        static const char *const argv[] = { "true", NULL };
        resha_process *p = NULL;

        (void)arg;
        int rc = resha_process_spawn(&(resha_process_opts){ .argv = argv }, &p);
        printf("%s: %s", resha_errname(rc), resha_error_of(rc)->text);
        fflush(stdout);
        return 0;
}

static int as_nobody(void *arg)
{
        enum { NOBODY = 54321 };
        struct rlimit none = { 0, 0 };

        (void)arg;
        if (getuid() == 0 && setuid(NOBODY) < 0) /* root has no such limit */
                return 77;
        return setrlimit(RLIMIT_NPROC, &none) < 0 ? 77 : test_run_opts(no_more_processes, NULL, NULL);
}

TEST(no_processes_are_left)
{
        struct test_child c;

        CHILD_EXEC_IS_KNOWN();
        test_child(as_nobody, NULL, &c);
        if (WIFEXITED(c.status) && WEXITSTATUS(c.status) == 77)
                test_skip("cannot take other credentials");
        ASSERT_HAS(c.text, "EAGAIN: true: there may be no more processes (ulimit -u, ");
}

static int closed_stdio(void *arg)
{
        static const char *const argv[] = { "sh", "-c", "cat; ls /proc/self/fd | tr '\\n' ' '", NULL };
        resha_process *p = NULL;
        char text[64];

        ASSERT_EQ(dup2(1, 100), 100);
        for (int fd = 0; fd < 3; fd++)
                close(fd);
        ASSERT_OK(resha_process_spawn(&(resha_process_opts){ .argv = argv, .out = RESHA_PIPE }, &p));
        ssize_t n = resha_read_exactly(resha_process_stdout(p), text, sizeof text);
        ASSERT_OK(n);
        ASSERT_OK(resha_process_check(p));
        resha_process_close(p);
        (void)arg;
        return write(100, text, (size_t)n) == n ? 0 : -EIO;
}

static int run_closed(void *arg)
{
        return test_run_opts(closed_stdio, arg, NULL);
}

TEST(standard_descriptors_that_are_closed_here)
{
        struct test_child c;

        test_child(run_closed, NULL, &c);
        ASSERT_STR(c.text, "0 1 2 3 ");
        ASSERT_EQ(c.status, 0);
}

/* ---- statuses that are lost ---- */

TASK(sigchld_is_ignored_at_the_start)
{
        static const char *const argv[] = { "true", NULL };

        signal(SIGCHLD, SIG_IGN);
        fails((resha_process_opts){ .argv = argv }, -ECHILD,
              "true: SIGCHLD is ignored (SIG_IGN), so that the kernel keeps no status; set it to SIG_DFL before");
        ASSERT_EQ(sigaction(SIGCHLD, &(struct sigaction){ .sa_flags = SA_NOCLDWAIT }, NULL), 0);
        fails((resha_process_opts){ .argv = argv }, -ECHILD, "true: SIGCHLD is ignored (SA_NOCLDWAIT)");
        signal(SIGCHLD, SIG_DFL);
        return 0;
}

TASK(sigchld_is_ignored_later)
{
        resha_process *p = shell("read x", (resha_process_opts){ .in = RESHA_PIPE });

        signal(SIGCHLD, SIG_IGN);
        resha_process_close_stdin(p);
        for (int i = 0; i < 2; i++) {
                ASSERT_EQ(resha_process_wait(p, NULL), -ECHILD);
                ASSERT_HAS(resha_error_of(-ECHILD)->text, "sh: SIGCHLD is ignored (SIG_IGN)");
        }
        ASSERT_EQ(resha_process_signal(p, SIGTERM), -ESRCH);
        close_process(p);
        signal(SIGCHLD, SIG_DFL);
        return 0;
}

TASK(somebody_else_has_fetched_it)
{
        resha_process *p = shell("read x", (resha_process_opts){ .in = RESHA_PIPE });
        int status;

        resha_process_close_stdin(p);
        ASSERT_EQ(waitpid(-1, &status, 0), resha_process_pid(p));
        ASSERT_EQ(resha_process_wait(p, NULL), -ECHILD);
        ASSERT_HAS(resha_error_of(-ECHILD)->text,
                   "sh: its status is gone: something else in this program waits for any");
        ASSERT_EQ(resha_process_signal(p, SIGTERM), -ESRCH);
        close_process(p);
        return 0;
}

TASK(somebody_else_fetches_it_before_the_close)
{
        resha_process *p = shell("exit 0", (resha_process_opts){ .group = true });

        ASSERT_EQ(waitpid(-1, NULL, 0), resha_process_pid(p));
        close_process(p);
        return 0;
}

/* ---- without pidfds ---- */

static int refusal;

static int refuse_pidfd(enum rs_syscall call)
{
        return call == RS_SYS_PIDFD ? refusal : 0;
}

static void on_report(const resha_report *r, void *arg)
{
        (void)arg;
        ASSERT_EQ(r->kind, RESHA_REPORT_FALLBACK);
        note("%d", r->code);
        ASSERT_HAS(r->text, "a thread waits for each process");
}

static int three_processes(void *arg)
{
        unsigned threads = real_threads();
        resha_process *p[3];

        (void)arg;
        for (int i = 0; i < 3; i++)
                p[i] = shell("read x; exit 8", (resha_process_opts){ .in = RESHA_PIPE });
        if (!real_under_tsan())
                ASSERT_EQ(real_threads(), threads + 3);
        ASSERT_EQ(resha_timeout(RESHA_MS(5), wait_task, p[0]), -ETIME);
        resha_process_close_stdin(p[0]);
        ASSERT_OK(wait_task(p[0]));
        for (int i = 0; i < 3; i++)
                resha_process_close(p[i]);
        real_threads_left(threads);
        return 0;
}

/* semantics 294 same
 * asyncio: a pidfd is used if there is one; else one waiting thread for each child.
 * resha: the same, and the threads are reported (RESHA_REPORT_FALLBACK). */
TEST(semantics_294_a_thread_waits_where_there_is_no_pidfd)
{
        char text[16];

        refusal = -EPERM; /* of a filter of system calls */
        rs_fault_hook = refuse_pidfd;
        ASSERT_OK(test_run_opts(three_processes, NULL, &(resha_run_opts){ .report = on_report }));
        rs_fault_hook = NULL;
        snprintf(text, sizeof text, "%d status8", -EPERM);
        ASSERT_STR(notes(), text); /* reported once */
        assert_no_children();
}

static atomic_uint waits;

static int no_pidfd_no_wait(enum rs_syscall call)
{
        if (call == RS_SYS_PIDFD)
                return -ENOSYS;
        return call == RS_SYS_WAIT && atomic_fetch_add(&waits, 1) == 0 ? -EPERM : 0; /* that of the thread */
}

static int cannot_wait(void *arg)
{
        resha_process *p = shell("exec sleep 60", (resha_process_opts){ 0 });

        (void)arg;
        ASSERT_EQ(resha_process_wait(p, NULL), -EPERM);
        ASSERT_HAS(resha_error_of(-EPERM)->text, "sh: its status: Operation not permitted");
        close_process(p);
        return 0;
}

TEST(a_thread_that_cannot_wait_makes_nobody_hang)
{
        rs_fault_hook = no_pidfd_no_wait; /* to the end: threads look at it */
        ASSERT_OK(test_run_opts(cannot_wait, NULL, NULL));
}

TASK(one_that_cannot_be_watched_is_not_left)
{
        static const char *const argv[] = { "sleep", "60", NULL };

        refusal = -EMFILE;
        rs_fault_hook = refuse_pidfd;
        fails((resha_process_opts){ .argv = argv }, -EMFILE,
              "sleep was started, but cannot be waited for, and was killed");
        rs_fault_hook = NULL;
        return 0;
}

/* ---- one that may not be signalled ---- */

static int refuse_kill(enum rs_syscall call)
{
        return call == RS_SYS_KILL ? -EPERM : 0;
}

static void on_stuck(const resha_report *r, void *arg)
{
        (void)arg;
        if (r->kind == RESHA_REPORT_FALLBACK)
                return;
        ASSERT_EQ(r->kind, RESHA_REPORT_STUCK);
        ASSERT_HAS(r->text, "cannot be ended, and is left: Operation not permitted");
        note("stuck");
}

static int leaves_it(void *arg)
{
        resha_process *p = shell("read x", (resha_process_opts){ .in = RESHA_DESCRIPTOR, .in_fd = ((int *)arg)[0] });

        resha_process_close(p);
        return 0;
}

TEST(one_with_other_credentials_is_left_and_reaped)
{
        int fds[2];
        siginfo_t info;

        ASSERT_EQ(pipe2(fds, O_CLOEXEC), 0);
        rs_fault_hook = refuse_kill; /* to the end: a thread looks at it */
        ASSERT_OK(test_run_opts(leaves_it, fds, &(resha_run_opts){ .report = on_stuck }));
        ASSERT_STR(notes(), "stuck");
        ASSERT_EQ(close(fds[0]) | close(fds[1]), 0);
        for (int i = 0; i < 1000 && waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0; i++)
                usleep(5000);
        assert_no_children();
}

/* ---- many threads ---- */

enum { THREADS = 4, EACH = 25 };
static atomic_uint leaks;

static int lists_descriptors(void *arg)
{
        (void)arg;
        for (int i = 0; i < EACH; i++) {
                resha_process_opts o = { .in = RESHA_PIPE, .out = RESHA_PIPE, .err = RESHA_PIPE };
                resha_process *p = shell("ls /proc/self/fd | tr '\\n' ' '", o);
                char text[64] = "";
                ssize_t n = resha_read_exactly(resha_process_stdout(p), text, sizeof text - 1);
                leaks += n < 0 || strcmp(text, "0 1 2 3 ") != 0 || resha_process_check(p) < 0;
                resha_process_close(p);
        }
        return 0;
}

static void *a_loop(void *arg)
{
        return test_run_opts(lists_descriptors, arg, NULL) < 0 ? arg : NULL;
}

TEST(loops_that_spawn_at_once_leak_nothing_into_each_others_children)
{
        pthread_t t[THREADS];

        for (int i = 0; i < THREADS; i++)
                ASSERT_EQ(pthread_create(&t[i], NULL, a_loop, folder), 0);
        for (int i = 0; i < THREADS; i++) {
                void *result = NULL;
                ASSERT_EQ(pthread_join(t[i], &result), 0);
                ASSERT_PTR(result, NULL);
        }
        ASSERT_EQ(leaks, 0);
        assert_no_children();
}

/* ---- every system call fails once ---- */

static int all_of_it(void *arg)
{
        (void)arg;
        resha_process_opts o = { .in = RESHA_PIPE, .out = RESHA_PIPE, .err = RESHA_NULL, .grace = RESHA_MS(50) };
        static const char *const argv[] = { "sh", "-c", "cat; exit 3", NULL };
        resha_process *p RESHA_CLEANUP(resha_process_closep) = NULL;
        char text[16];

        o.argv = argv;
        int rc = resha_process_spawn(&o, &p);
        if (rc < 0)
                return rc;
        rc = resha_write_all(resha_process_stdin(p), "abc", 3, NULL);
        if (rc < 0)
                return rc;
        resha_process_close_stdin(p);
        ssize_t n = resha_read_exactly(resha_process_stdout(p), text, sizeof text);
        rc = n < 0 ? (int)n : resha_process_check(p);
        return rc == RESHA_EPROCESS ? 0 : rc;
}

/* Each in a run of its own: after some failures the backend is good for nothing more. */
static void fail_each(int code)
{
        unsigned n = 0, refused = 0;
        bool failed = true;

        ASSERT_OK(test_run_opts(all_of_it, NULL, NULL));
        for (unsigned fds = real_fds(); failed && n < 500;) {
                real_fail_nth(++n, code);
                int rc = test_run_opts(all_of_it, NULL, NULL);
                failed = real_failed() != RS_SYS_COUNT;
                rs_fault_hook = NULL;
                if (rc < 0 && !failed)
                        FAIL("call %u: %s", n, resha_strerror(rc));
                refused += rc < 0;
                ASSERT_EQ(real_fds(), fds);
                assert_no_children();
        }
        ASSERT_TRUE(n > 10 && n < 500);
        ASSERT_EQ(refused > 0, code != -EINTR);
}

TEST(nothing_is_left_when_the_nth_system_call_fails)
{
        fail_each(-ENOMEM);
        fail_each(-EMFILE);
        fail_each(-EINTR); /* not to be seen at all */
}
