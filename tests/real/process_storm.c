/* SPDX-License-Identifier: MIT */
/* Ten thousand processes, some dozens at a time, of every kind: each status is right, and afterwards there is no child,
 * ended or not, and no descriptor more than before. $RESHA_PROCESS_STORM: how many [10,000]. */

#include "child.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEFAULT = 10000, AT_ONCE = 40, INPUT = 200 * 1000 };

static char input[INPUT];

struct storm {
        const char *program;
        size_t n, done[10];
};

struct one {
        struct storm *s;
        size_t i;
        resha_process *p;
};

#define OUTPUT(o) resha_output o RESHA_CLEANUP(resha_output_free) = { 0 }

/* Starts `what`, whose status is to be `status`. */
static int start(struct one *o, const char *what, int status, resha_process_opts opts)
{
        char number[16];
        const char *argv[] = { o->s->program, what, number, NULL };

        snprintf(number, sizeof number, "%d", status);
        opts.argv = argv;
        return resha_process_spawn(&opts, &o->p);
}

static void ends(struct one *o, bool signalled, int code)
{
        resha_exit e = { .code = -1 };

        ASSERT_OK(resha_process_wait(o->p, &e));
        ASSERT_EQ(e.code, code);
        ASSERT_EQ(e.signalled, signalled);
        ASSERT_EQ(resha_process_signal(o->p, SIGTERM), -ESRCH);
}

/* ---- the kinds ---- */

static void exits(struct one *o)
{
        ASSERT_OK(start(o, "exit", (int)(o->i & 0xff), (resha_process_opts){ .in = RESHA_NULL }));
        ends(o, false, (int)(o->i & 0xff));
}

static void copies(struct one *o)
{
        OUTPUT(out);
        size_t n = o->i * 7919 % 20000;

        ASSERT_OK(start(o, "copy", 1, (resha_process_opts){ .in = RESHA_PIPE, .out = RESHA_PIPE }));
        ASSERT_OK(resha_process_communicate(o->p, input, n, 0, &out, NULL));
        ASSERT_EQ(out.size, n);
        ASSERT_TRUE(n == 0 || memcmp(out.data, input, n) == 0);
        ASSERT_FALSE(out.held);
        ends(o, false, 1);
}

static void is_killed(struct one *o)
{
        int sig = o->i % 20 < 10 ? SIGKILL : SIGTERM;

        ASSERT_OK(start(o, "hang", 0, (resha_process_opts){ .in = RESHA_PIPE, .out = RESHA_PIPE }));
        ASSERT_OK(resha_process_signal(o->p, sig));
        ends(o, true, sig);
}

/* What it leaves behind holds the pipe for half a second. */
static void leaves_somebody(struct one *o)
{
        OUTPUT(out);
        resha_process_opts opts = { .in = RESHA_NULL, .out = RESHA_PIPE, .held = RESHA_NS(-1) };

        opts.group = o->i % 20 < 10;
        ASSERT_OK(start(o, "leave", 3, opts));
        ASSERT_OK(resha_process_communicate(o->p, NULL, 0, 0, &out, NULL));
        ASSERT_STR(out.data, "left");
        resha_exit e;
        ASSERT_OK(resha_process_wait(o->p, &e));
        ASSERT_EQ(e.code, 3);
}

static void is_deaf(struct one *o)
{
        OUTPUT(out);

        ASSERT_OK(start(o, "deaf", 4, (resha_process_opts){ .in = RESHA_PIPE, .out = RESHA_PIPE }));
        ASSERT_OK(resha_process_communicate(o->p, input, INPUT, 0, &out, NULL));
        ASSERT_EQ(out.size, 0);
        ends(o, false, 4);
}

static void is_not_there(struct one *o)
{
        const char *argv[] = { o->i % 20 < 10 ? "/nowhere/at/all" : "no-such-program-anywhere", NULL };

        ASSERT_EQ(resha_process_spawn(&(resha_process_opts){ .argv = argv, .out = RESHA_PIPE }, &o->p), -ENOENT);
        ASSERT_TRUE(o->p == NULL);
}

static int wait_it(void *arg)
{
        struct one *o = arg;

        return resha_process_wait(o->p, NULL);
}

/* It stops itself, sooner or later. */
static void is_stopped(struct one *o)
{
        int rc;

        ASSERT_OK(start(o, "stop", 6, (resha_process_opts){ .in = RESHA_NULL }));
        if (o->i % 20 < 10)
                return; /* and is closed so */
        while ((rc = resha_timeout(RESHA_MS(5), wait_it, o)) == -ETIME)
                (void)resha_process_signal(o->p, SIGCONT);
        ASSERT_OK(rc);
        ends(o, false, 6);
}

static void is_stubborn(struct one *o)
{
        char text[4];
        resha_process_opts opts = { .in = RESHA_NULL, .out = RESHA_PIPE, .grace = RESHA_MS(2) };

        ASSERT_OK(start(o, "stubborn", 0, opts));
        if (o->i % 20 < 10)
                ASSERT_EQ(resha_read_exactly(resha_process_stdout(o->p), text, sizeof text), 4);
}

static void babbles(struct one *o)
{
        OUTPUT(out);
        resha_process_opts opts = { .in = RESHA_NULL, .out = RESHA_PIPE, .err = RESHA_PIPE };

        ASSERT_OK(start(o, "babble", 8, opts));
        if (o->i % 20 < 10) {
                ASSERT_EQ(resha_process_communicate(o->p, NULL, 0, 1234, &out, NULL), -EMSGSIZE);
                ASSERT_EQ(out.size, 1234);
                return;
        }
        ASSERT_OK(resha_process_communicate(o->p, NULL, 0, 0, &out, NULL));
        ASSERT_EQ(out.size, 100 * 1000);
        ends(o, false, 8);
}

static int read_it(void *arg)
{
        struct one *o = arg;
        char c;

        return (int)resha_read(resha_process_stdout(o->p), &c, 1);
}

/* The time is over before it says a word; or not. */
static void is_late(struct one *o)
{
        ASSERT_OK(start(o, "hang", 0, (resha_process_opts){ .in = RESHA_NULL, .out = RESHA_PIPE }));
        int rc = resha_timeout(RESHA_MS(1), read_it, o);
        ASSERT_TRUE(rc == 1 || rc == -ETIME);
}

/* ---- all of them ---- */

static void (*const kinds[10])(struct one *o) = { exits,        copies,     is_killed,   leaves_somebody, is_deaf,
                                                  is_not_there, is_stopped, is_stubborn, babbles,         is_late };

static int one(void *arg)
{
        struct one *o = arg;
        size_t kind = o->i % 10;

        kinds[kind](o);
        resha_process_close(o->p);
        o->s->done[kind]++;
        return 0;
}

static int storm(void *arg)
{
        struct storm *s = arg;
        RESHA_GROUP(g);

        resha_group_begin(&g, &(resha_group_opts){ .limit = AT_ONCE });
        for (size_t i = 0; i < s->n; i++) {
                struct one o = { .s = s, .i = i };
                int rc = resha_spawn_copy(&g, one, &o);
                if (rc < 0)
                        return resha_group_end(&g, rc);
        }
        return resha_group_end(&g, 0);
}

/* As the system sees it. */
static size_t children_in_proc(void)
{
        DIR *d = opendir("/proc");
        size_t n = 0;

        for (struct dirent *e; d && (e = readdir(d));) {
                char name[300], line[512];
                int parent = 0;
                snprintf(name, sizeof name, "/proc/%s/stat", e->d_name);
                FILE *f = e->d_name[0] >= '1' && e->d_name[0] <= '9' ? fopen(name, "r") : NULL;
                const char *end = f && fgets(line, sizeof line, f) ? strrchr(line, ')') : NULL;
                if (end && sscanf(end + 1, " %*c %d", &parent) == 1 && parent == (int)getpid())
                        n++;
                if (f)
                        fclose(f);
        }
        if (d)
                closedir(d);
        return n;
}

TEST(ten_thousand_processes_leave_nothing_behind)
{
        const char *text = getenv("RESHA_PROCESS_STORM");
        struct storm s = { .program = getenv("RESHA_TINY"), .n = text ? strtoul(text, NULL, 10) : DEFAULT };

        CHILD_EXEC_IS_KNOWN();
        if (!s.program)
                test_skip("$RESHA_TINY names no program to start");
        ASSERT_TRUE(s.n >= 10);
        for (size_t i = 0; i < INPUT; i++)
                input[i] = (char)('a' + i % 26);
        RUN(storm, &s);
        assert_no_children();
        ASSERT_EQ(children_in_proc(), 0);
        for (size_t kind = 0; kind < 10; kind++)
                ASSERT_EQ(s.done[kind], (s.n + 9 - kind) / 10);
}
