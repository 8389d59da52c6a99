/* SPDX-License-Identifier: MIT */
/* Programs of the simulated world: what a process of one is, as its owner and as the program see it. */

#include <resha/test.h>

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "test.h"

static int start(const char *name, resha_test_program_fn *fn, void *arg, resha_process_opts o, resha_process **ret)
{
        const char *argv[] = { name, "a", "b", NULL };
        int rc = resha_test_program(name, fn, arg);

        o.argv = o.argv ? o.argv : argv;
        return rc < 0 ? rc : resha_process_spawn(&o, ret);
}

static const char *exit_text(resha_process *p)
{
        static char text[64];
        resha_exit e;

        ASSERT_EQ(resha_process_wait(p, &e), 0);
        snprintf(text, sizeof text, "%s %d", e.signalled ? "signal" : "status", e.code);
        return text;
}

/* ---- bytes ---- */

static int upper(resha_test_process *p, void *arg)
{
        char c;
        ssize_t n;
        int rc = 0;

        (void)arg;
        while (rc == 0 && (n = resha_read(resha_test_process_stream(p, 0), &c, 1)) > 0) {
                c = (char)toupper(c);
                rc = resha_write_all(resha_test_process_stream(p, 1), &c, 1, NULL);
        }
        return rc;
}

TASK(a_program_reads_and_writes)
{
        resha_process *p RESHA_CLEANUP(resha_process_closep) = NULL;
        char buf[16];

        SIM_ONLY();
        ASSERT_EQ(start("upper", upper, NULL, (resha_process_opts){ .in = RESHA_PIPE, .out = RESHA_PIPE }, &p), 0);
        ASSERT_TRUE(resha_process_pid(p) > 1 << 23);
        ASSERT_EQ(resha_write_all(resha_process_stdin(p), "abc", 3, NULL), 0);
        ASSERT_EQ(resha_read_exactly(resha_process_stdout(p), buf, 3), 3);
        ASSERT_TRUE(memcmp(buf, "ABC", 3) == 0);
        resha_process_close_stdin(p);
        ASSERT_EQ(resha_read(resha_process_stdout(p), buf, sizeof buf), 0);
        ASSERT_STR(exit_text(p), "status 0");
        ASSERT_EQ(resha_process_signal(p, SIGTERM), -ESRCH);
        return 0;
}

static int stops_reading(resha_test_process *p, void *arg)
{
        (void)arg;
        resha_test_process_close(p, 0);
        resha_test_process_close(p, 0);
        resha_test_process_close(p, 99);
        ASSERT_TRUE(resha_test_process_stream(p, 0) == NULL);
        return resha_sleep(RESHA_S(1));
}

TASK(a_program_that_closes_its_input_breaks_the_pipe)
{
        resha_process *p RESHA_CLEANUP(resha_process_closep) = NULL;

        SIM_ONLY();
        ASSERT_EQ(start("deaf", stops_reading, NULL, (resha_process_opts){ .in = RESHA_PIPE }, &p), 0);
        ASSERT_EQ(resha_sleep(RESHA_MS(1)), 0);
        ASSERT_EQ(resha_write_all(resha_process_stdin(p), "x", 1, NULL), -EPIPE);
        ASSERT_STR(exit_text(p), "status 0");
        return 0;
}

static int speaks(resha_test_process *p, void *arg)
{
        for (int fd = 1; fd <= 2; fd++) {
                int rc = resha_write_all(resha_test_process_stream(p, fd), fd == 1 ? "out" : "err", 3, NULL);
                if (rc < 0)
                        return rc;
        }
        char c;
        return arg ? (int)resha_read(resha_test_process_stream(p, 0), &c, 1) : 0;
}

TASK(both_outputs_may_be_one)
{
        resha_process *p RESHA_CLEANUP(resha_process_closep) = NULL;
        char buf[8];

        SIM_ONLY();
        ASSERT_EQ(start("speaks", speaks, NULL, (resha_process_opts){ .out = RESHA_PIPE, .err = RESHA_TO_STDOUT }, &p),
                  0);
        ASSERT_TRUE(resha_process_stderr(p) == NULL);
        ASSERT_EQ(resha_read_exactly(resha_process_stdout(p), buf, 8), 6);
        ASSERT_TRUE(memcmp(buf, "outerr", 6) == 0);
        return 0;
}

TASK(nothing_is_there_to_read_and_to_write_to)
{
        resha_process *p RESHA_CLEANUP(resha_process_closep) = NULL;
        resha_process_opts o = { .in = RESHA_NULL, .out = RESHA_NULL, .err = RESHA_NULL };

        SIM_ONLY();
        ASSERT_EQ(start("speaks", speaks, "reads", o, &p), 0);
        ASSERT_STR(exit_text(p), "status 0");
        return 0;
}

static int speaks_to_3(resha_test_process *p, void *arg)
{
        (void)arg;
        return resha_write_all(resha_test_process_stream(p, 3), "three", 5, NULL);
}

static void close_both(int (*fds)[2])
{
        close((*fds)[0]);
        close((*fds)[1]);
}

TASK(real_descriptors_are_lent_to_it)
{
        resha_process *p RESHA_CLEANUP(resha_process_closep) = NULL, *q RESHA_CLEANUP(resha_process_closep) = NULL;
        int fds[2] RESHA_CLEANUP(close_both) = { -1, -1 };
        char buf[16];

        SIM_ONLY();
        ASSERT_EQ(pipe2(fds, O_CLOEXEC), 0);
        resha_process_opts o = { .out = RESHA_DESCRIPTOR, .out_fd = fds[1], .err = RESHA_NULL };
        ASSERT_EQ(start("speaks", speaks, NULL, o, &p), 0);
        ASSERT_STR(exit_text(p), "status 0");
        o = (resha_process_opts){ .fds = &fds[1], .n_fds = 1 };
        ASSERT_EQ(start("three", speaks_to_3, NULL, o, &q), 0);
        ASSERT_STR(exit_text(q), "status 0");
        ASSERT_EQ(read(fds[0], buf, sizeof buf), 8);
        ASSERT_TRUE(memcmp(buf, "outthree", 8) == 0);
        o.fds = &(int){ 999 };
        resha_process *none = NULL;
        ASSERT_EQ(start("three", speaks_to_3, NULL, o, &none), -EBADF);
        return 0;
}

static int inherits(void *unused)
{
        resha_process *p RESHA_CLEANUP(resha_process_closep) = NULL;

        (void)unused;
        ASSERT_EQ(start("speaks", speaks, NULL, (resha_process_opts){ .in = RESHA_NULL }, &p), 0);
        return resha_process_wait(p, NULL);
}

static int in_child(void *unused)
{
        (void)unused;
        return test_run_opts(inherits, NULL, NULL) < 0;
}

TEST(it_inherits_what_the_test_has)
{
        struct test_child c;

        SIM_ONLY();
        test_child(in_child, NULL, &c);
        ASSERT_EQ(c.status, 0);
        ASSERT_STR(c.text, "outerr");
}

/* ---- what it knows ---- */

static int knows(resha_test_process *p, void *arg)
{
        (void)arg;
        for (const char *const *a = resha_test_process_argv(p); *a; a++)
                note("%s", *a);
        note("%s", resha_test_process_env(p, "COLOUR"));
        ASSERT_TRUE(resha_test_process_env(p, "COLOU") == NULL);
        note("%s", resha_test_process_dir(p) ? resha_test_process_dir(p) : "-");
        return 0;
}

TASK(it_knows_its_arguments_and_environment)
{
        resha_process *p RESHA_CLEANUP(resha_process_closep) = NULL, *q RESHA_CLEANUP(resha_process_closep) = NULL;
        char add[] = "COLOUR=red";
        const char *env[] = { "COLOUR=blue", "SHAPE=round", NULL }, *changes[] = { add, NULL };

        SIM_ONLY();
        ASSERT_EQ(start("knows", knows, NULL, (resha_process_opts){ .env = env, .dir = "/tmp" }, &p), 0);
        ASSERT_STR(exit_text(p), "status 0");
        ASSERT_STR(notes(), "knows a b blue /tmp");
        ASSERT_EQ(start("knows", knows, NULL, (resha_process_opts){ .env = env, .add_env = changes }, &q), 0);
        memset(add, 'x', sizeof add - 1);
        ASSERT_STR(exit_text(q), "status 0");
        ASSERT_STR(notes(), "knows a b red -");
        return 0;
}

/* ---- status ---- */

static int gives(resha_test_process *p, void *arg)
{
        int *code = arg;

        (void)p;
        return *code;
}

TASK(its_result_is_the_status)
{
        static const struct {
                int code;
                const char *text;
        } cases[] = { { 0, "status 0" }, { 7, "status 7" }, { 256 + 3, "status 3" }, { -EIO, "status 1" } };

        SIM_ONLY();
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                resha_process *p RESHA_CLEANUP(resha_process_closep) = NULL;
                int code = cases[i].code;
                ASSERT_EQ(start("gives", gives, &code, (resha_process_opts){ 0 }, &p), 0);
                ASSERT_STR(exit_text(p), cases[i].text);
        }
        return 0;
}

TASK(a_missing_program_is_an_error_of_spawn)
{
        resha_process *p = NULL;

        SIM_ONLY();
        ASSERT_EQ(start("upper", upper, NULL, (resha_process_opts){ 0 }, &p), 0);
        resha_process_close(p);
        p = NULL;
        ASSERT_EQ(start("upper", NULL, NULL, (resha_process_opts){ .out = RESHA_PIPE }, &p), -ENOENT);
        ASSERT_TRUE(p == NULL);
        ASSERT_HAS(resha_error_of(-ENOENT)->text, "upper");
        return 0;
}

/* ---- signals ---- */

static int sleeps(resha_test_process *p, void *arg)
{
        resha_duration *d = arg;

        (void)p;
        return resha_sleep(*d);
}

static resha_duration ten_s = { .ns = INT64_C(10000000000) };

TASK(a_signal_that_it_does_not_handle_ends_it)
{
        static const int signals[] = { SIGTERM, SIGINT, SIGUSR1, SIGKILL, SIGHUP };

        SIM_ONLY();
        for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
                resha_process *p RESHA_CLEANUP(resha_process_closep) = NULL;
                char expected[32];
                resha_instant t = resha_now();
                ASSERT_EQ(start("sleeps", sleeps, &ten_s, (resha_process_opts){ 0 }, &p), 0);
                ASSERT_EQ(resha_sleep(RESHA_MS(1)), 0);
                ASSERT_EQ(resha_process_signal(p, 0), 0);
                ASSERT_EQ(resha_process_signal(p, SIGCHLD), 0);
                ASSERT_EQ(resha_process_signal(p, signals[i]), 0);
                snprintf(expected, sizeof expected, "signal %d", signals[i]);
                ASSERT_STR(exit_text(p), expected);
                ASSERT_ELAPSED(t, 1);
        }
        return 0;
}

static int cleans_up(resha_test_process *p, void *arg)
{
        int rc = sleeps(p, arg);

        return rc == -ECANCELED ? 42 : rc;
}

TASK(a_handler_gives_a_status_of_its_own)
{
        resha_process *p RESHA_CLEANUP(resha_process_closep) = NULL;

        SIM_ONLY();
        ASSERT_EQ(start("cleans", cleans_up, &ten_s, (resha_process_opts){ 0 }, &p), 0);
        ASSERT_EQ(resha_yield(), 0);
        ASSERT_EQ(resha_process_signal(p, SIGTERM), 0);
        ASSERT_STR(exit_text(p), "status 42");
        return 0;
}

static int stubborn(resha_test_process *p, void *arg)
{
        ASSERT_EQ(resha_test_process_on(p, SIGTERM, RESHA_TEST_IGNORE), 0);
        ASSERT_EQ(resha_test_process_on(p, SIGKILL, RESHA_TEST_IGNORE), -EINVAL);
        ASSERT_EQ(resha_test_process_on(p, 0, RESHA_TEST_IGNORE), -EINVAL);
        return sleeps(p, arg);
}

TASK(one_that_ignores_sigterm_is_killed_after_the_grace)
{
        resha_process *p = NULL;
        resha_instant t = resha_now();

        SIM_ONLY();
        ASSERT_EQ(start("stubborn", stubborn, &ten_s, (resha_process_opts){ .grace = RESHA_S(2) }, &p), 0);
        ASSERT_EQ(resha_yield(), 0);
        resha_process_close(p);
        ASSERT_ELAPSED(t, 2000);
        return 0;
}

static int shielded_sleep(void *arg)
{
        resha_duration *d = arg;

        return resha_sleep(*d);
}

static int hides(resha_test_process *p, void *arg)
{
        (void)p;
        (void)!resha_shielded(RESHA_FOREVER, shielded_sleep, arg);
        return 5;
}

TASK(nothing_hides_from_sigkill)
{
        resha_process *p RESHA_CLEANUP(resha_process_closep) = NULL;
        resha_instant t = resha_now();

        SIM_ONLY();
        ASSERT_EQ(start("hides", hides, &ten_s, (resha_process_opts){ 0 }, &p), 0);
        ASSERT_EQ(resha_yield(), 0);
        ASSERT_EQ(resha_process_signal(p, SIGTERM), 0);
        ASSERT_EQ(resha_sleep(RESHA_MS(5)), 0);
        ASSERT_EQ(resha_process_signal(p, SIGKILL), 0);
        ASSERT_STR(exit_text(p), "signal 9");
        ASSERT_ELAPSED(t, 5);
        return 0;
}

TASK(one_that_is_killed_before_it_runs_never_does)
{
        resha_process *p RESHA_CLEANUP(resha_process_closep) = NULL;

        SIM_ONLY();
        ASSERT_EQ(start("knows", knows, NULL, (resha_process_opts){ 0 }, &p), 0);
        ASSERT_EQ(resha_process_signal(p, SIGKILL), 0);
        ASSERT_STR(exit_text(p), "signal 9");
        ASSERT_STR(notes(), "");
        return 0;
}

static int keeps(resha_test_process *p, void *arg)
{
        int sig = 0, rc = resha_test_process_on(p, SIGHUP, RESHA_TEST_KEEP);

        (void)arg;
        for (int i = 0; i < 2 && rc == 0; i++) {
                rc = resha_test_process_signal(p, &sig);
                note("%d", sig);
        }
        return rc;
}

TASK(signals_that_it_keeps_are_seen)
{
        resha_process *p RESHA_CLEANUP(resha_process_closep) = NULL;

        SIM_ONLY();
        ASSERT_EQ(start("keeps", keeps, NULL, (resha_process_opts){ 0 }, &p), 0);
        for (int i = 0; i < 2; i++) {
                ASSERT_EQ(resha_yield(), 0);
                ASSERT_EQ(resha_process_signal(p, SIGHUP), 0);
        }
        ASSERT_STR(exit_text(p), "status 0");
        ASSERT_STR(notes(), "1 1");
        return 0;
}

TASK(a_stopped_one_hears_later)
{
        resha_process *p RESHA_CLEANUP(resha_process_closep) = NULL;
        resha_instant t = resha_now();

        SIM_ONLY();
        ASSERT_EQ(start("sleeps", sleeps, &ten_s, (resha_process_opts){ 0 }, &p), 0);
        ASSERT_EQ(resha_yield(), 0);
        ASSERT_EQ(resha_process_signal(p, SIGSTOP), 0);
        ASSERT_EQ(resha_process_signal(p, SIGTERM), 0);
        ASSERT_EQ(resha_sleep(RESHA_MS(3)), 0);
        ASSERT_EQ(resha_process_signal(p, SIGCONT), 0);
        ASSERT_STR(exit_text(p), "signal 15");
        ASSERT_ELAPSED(t, 3);
        return 0;
}

static int crashes(resha_test_process *p, void *arg)
{
        (void)arg;
        ASSERT_EQ(resha_test_process_raise(p, SIGCHLD), 0);
        ASSERT_EQ(resha_test_process_raise(p, 0), -EINVAL);
        return resha_test_process_raise(p, SIGSEGV);
}

TASK(it_may_crash)
{
        resha_process *p RESHA_CLEANUP(resha_process_closep) = NULL;

        SIM_ONLY();
        ASSERT_EQ(start("crashes", crashes, NULL, (resha_process_opts){ 0 }, &p), 0);
        ASSERT_EQ(resha_process_check(p), RESHA_EPROCESS);
        ASSERT_STR(exit_text(p), "signal 11");
        return 0;
}

/* ---- what it leaves behind ---- */

static int leaves_behind(resha_test_process *p, void *arg)
{
        int rc = resha_test_process_fork(p, sleeps, arg);

        return rc < 0 ? rc : resha_write_all(resha_test_process_stream(p, 1), "x", 1, NULL);
}

TASK(the_pipe_is_held_by_what_it_leaves_behind)
{
        resha_process *p RESHA_CLEANUP(resha_process_closep) = NULL;
        resha_instant t = resha_now();
        char buf[4];

        SIM_ONLY();
        ASSERT_EQ(start("leaves", leaves_behind, &ten_s, (resha_process_opts){ .out = RESHA_PIPE }, &p), 0);
        ASSERT_STR(exit_text(p), "status 0");
        ASSERT_ELAPSED(t, 0);
        ASSERT_EQ(resha_read(resha_process_stdout(p), buf, sizeof buf), 1);
        ASSERT_EQ(resha_read(resha_process_stdout(p), buf, sizeof buf), 0);
        ASSERT_ELAPSED(t, 10000);
        return 0;
}

TASK(what_is_left_behind_ends_with_the_run)
{
        static resha_duration day = { .ns = INT64_C(86400000000000) };
        resha_process *p RESHA_CLEANUP(resha_process_closep) = NULL;

        SIM_ONLY();
        ASSERT_EQ(start("leaves", leaves_behind, &day, (resha_process_opts){ .out = RESHA_PIPE }, &p), 0);
        ASSERT_STR(exit_text(p), "status 0");
        return 0;
}

TASK(a_group_gets_signals_all_of_it)
{
        resha_process *p RESHA_CLEANUP(resha_process_closep) = NULL;
        resha_instant t = resha_now();
        char buf[4];

        SIM_ONLY();
        ASSERT_EQ(start("leaves", leaves_behind, &ten_s, (resha_process_opts){ .out = RESHA_PIPE, .group = true }, &p),
                  0);
        ASSERT_STR(exit_text(p), "status 0");
        ASSERT_EQ(resha_process_signal(p, SIGTERM), 0);
        ASSERT_EQ(resha_read(resha_process_stdout(p), buf, sizeof buf), 1);
        ASSERT_EQ(resha_read(resha_process_stdout(p), buf, sizeof buf), 0);
        ASSERT_ELAPSED(t, 0);
        return 0;
}

/* ---- whose it is ---- */

static int waits_for_it(void *arg)
{
        return resha_process_wait(arg, NULL);
}

TASK(no_cancel_of_its_spawner_reaches_it)
{
        static resha_duration second = { .ns = INT64_C(1000000000) };
        resha_process *p RESHA_CLEANUP(resha_process_closep) = NULL;

        SIM_ONLY();
        ASSERT_EQ(start("sleeps", sleeps, &second, (resha_process_opts){ 0 }, &p), 0);
        ASSERT_EQ(resha_timeout(RESHA_MS(5), waits_for_it, p), -ETIME);
        ASSERT_STR(exit_text(p), "status 0");
        return 0;
}

TASK(there_is_no_such_program_on_the_kernel)
{
        if (test_is_sim())
                test_skip("is about the others");
        ASSERT_EQ(resha_test_program("upper", upper, NULL), -EPERM);
        return 0;
}

TASK(a_program_has_a_name)
{
        SIM_ONLY();
        ASSERT_EQ(resha_test_program("", upper, NULL), -EINVAL);
        ASSERT_EQ(resha_test_program(NULL, upper, NULL), -EINVAL);
        return 0;
}
