/* SPDX-License-Identifier: MIT */
/* resha_process_communicate() and resha_process_run() with real programs: real pipes, real grandchildren. */

#include "child.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OUTPUT(o) resha_output o RESHA_CLEANUP(resha_output_free) = { 0 }
#define ALL_PIPES \
        (resha_process_opts) \
        { \
                .in = RESHA_PIPE, .out = RESHA_PIPE, .err = RESHA_PIPE \
        }

enum { MUCH = 3 << 20 };

static char *much(void)
{
        char *text = resha_malloc(MUCH);

        ASSERT_TRUE(text != NULL);
        for (size_t i = 0; i < MUCH; i++)
                text[i] = (char)('a' + (i * 7 + i / 1000) % 26);
        return text;
}

static void free_text(char **text)
{
        resha_free(*text);
}

TASK(much_goes_in_and_comes_back_on_both)
{
        char *text RESHA_CLEANUP(free_text) = much();
        OUTPUT(out);
        OUTPUT(err);
        resha_process *p = shell("tee /dev/stderr", ALL_PIPES);

        ASSERT_OK(resha_process_communicate(p, text, MUCH, 0, &out, &err));
        ASSERT_EQ(out.size, MUCH);
        ASSERT_EQ(err.size, MUCH);
        ASSERT_TRUE(memcmp(out.data, text, MUCH) == 0 && memcmp(err.data, text, MUCH) == 0);
        ASSERT_OK(resha_process_check(p));
        close_process(p);
        return 0;
}

TASK(one_that_reads_a_line_only)
{
        char *text RESHA_CLEANUP(free_text) = much();
        OUTPUT(out);
        resha_process *p = shell("head -c 3; exit 5", ALL_PIPES);
        resha_exit e;

        ASSERT_OK(resha_process_communicate(p, text, MUCH, 0, &out, NULL));
        ASSERT_EQ(out.size, 3);
        ASSERT_OK(resha_process_wait(p, &e));
        ASSERT_EQ(e.code, 5);
        close_process(p);
        return 0;
}

/* The daemon has the output open; what the process itself has written is there to the last byte. */
TASK(a_daemon_does_not_hold_it_up)
{
        OUTPUT(out);
        OUTPUT(err);
        resha_process_opts o = ALL_PIPES;
        resha_instant t = resha_now();

        o.held = RESHA_MS(50);
        o.group = true;
        resha_process *p = shell("sleep 1000 & head -c 60000 /dev/zero; echo started >&2", o);
        ASSERT_OK(resha_process_communicate(p, NULL, 0, 0, &out, &err));
        ASSERT_TRUE(test_ms_since(t) < 100 * 1000);
        ASSERT_EQ(out.size, 60000);
        ASSERT_STR(err.data, "started\n");
        ASSERT_TRUE(out.held && err.held);
        ASSERT_OK(resha_process_check(p));
        close_process(p); /* of the group: the daemon is killed */
        return 0;
}

TASK(what_a_daemon_says_in_time_is_read)
{
        OUTPUT(out);
        resha_process_opts o = ALL_PIPES;

        o.held = RESHA_FOREVER;
        resha_process *p = shell("(sleep 0.1; echo late) & echo early", o);
        ASSERT_OK(resha_process_communicate(p, NULL, 0, 0, &out, NULL));
        ASSERT_STR(out.data, "early\nlate\n");
        ASSERT_FALSE(out.held);
        close_process(p);
        return 0;
}

TASK(no_more_than_the_limit)
{
        OUTPUT(out);
        resha_process *p = shell("yes", (resha_process_opts){ .out = RESHA_PIPE });

        ASSERT_EQ(resha_process_communicate(p, NULL, 0, 100000, &out, NULL), -EMSGSIZE);
        ASSERT_EQ(out.size, 100000);
        close_process(p);
        return 0;
}

struct whole {
        const char *text;
        resha_output *out;
        resha_exit *exit;
};

static int whole(void *arg)
{
        struct whole *w = arg;
        const char *const argv[] = { "sh", "-c", w->text, NULL };
        resha_process_opts o = { .argv = argv, .grace = RESHA_S(30) };

        return resha_process_run(&o, NULL, 0, 0, w->out, NULL, w->exit);
}

TASK(run_that_is_over_in_time_and_run_that_is_not)
{
        OUTPUT(out);
        resha_exit e = { .code = -1 };
        struct whole w = { "echo fast; exit 3", &out, &e };

        ASSERT_OK(resha_timeout(RESHA_S(60), whole, &w));
        ASSERT_STR(out.data, "fast\n");
        ASSERT_EQ(e.code, 3);
        w.text = "echo slow; trap 'exit 0' TERM; while :; do sleep 0.01; done";
        ASSERT_EQ(resha_timeout(RESHA_MS(300), whole, &w), -ETIME);
        assert_no_children();
        ASSERT_STR(out.data, "fast\nslow\n");
        w.exit = NULL;
        w.text = "exit 4";
        ASSERT_EQ(whole(&w), RESHA_EPROCESS);
        ASSERT_HAS(resha_error_of(RESHA_EPROCESS)->text, "exit status 4");
        assert_no_children();
        return 0;
}

/* ---- each system call fails ---- */

static int run_it(void *arg)
{
        OUTPUT(out);
        OUTPUT(err);
        static const char *const argv[] = { "sh", "-c", "cat; echo done >&2", NULL };
        resha_process_opts o = { .argv = argv, .grace = RESHA_MS(50) };
        int rc = resha_process_run(&o, "abc", 3, 0, &out, &err, NULL);

        if (rc == 0 || rc == RESHA_EPROCESS)
                *(bool *)arg = rc == 0 && (out.size != 3 || strcmp(err.data, "done\n") != 0);
        return rc == RESHA_EPROCESS ? 0 : rc;
}

TEST(nothing_is_left_of_a_run_when_the_nth_system_call_fails)
{
        static const int codes[] = { -ENOMEM, -EMFILE, -EINTR };

        CHILD_EXEC_IS_KNOWN();
        for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
                bool failed = true, wrong = false;
                for (unsigned n = 0, fds = real_fds(); failed && n < 500;) {
                        real_fail_nth(++n, codes[i]);
                        int rc = test_run_opts(run_it, &wrong, NULL);
                        failed = real_failed() != RS_SYS_COUNT;
                        rs_fault_hook = NULL;
                        if (wrong || (rc < 0 && (!failed || codes[i] == -EINTR)))
                                FAIL("call %u: %s", n, wrong ? "it succeeds without all output" : resha_strerror(rc));
                        ASSERT_EQ(real_fds(), fds);
                        assert_no_children();
                }
                ASSERT_FALSE(failed);
        }
}
