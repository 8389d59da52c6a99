/* SPDX-License-Identifier: MIT */
/* Both backends of the kernel, operation by operation: one script, run on each, must give the same results.
 *
 * A script is made from a seed. It works on pairs of ends (TCP, Unix, pipes) with two tasks for each end, and tells
 * the results of what it did: bytes moved, ends, errors, in an order that the kernel cannot change: each step is waited
 * for, or is one that cannot be done, and cancelled. What is told is the same text on both, or a seed is named. */

#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STEPS = 60, SEEDS = 10, LINE = 64 };

struct script {
        uint64_t luck;
        char told[2][STEPS * LINE];
        size_t used;
        int run;
};

static struct script script;

static unsigned roll(unsigned n)
{
        script.luck = script.luck * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (unsigned)(script.luck >> 33) % n;
}

static void tell(const char *format, ...) RESHA_PRINTF(1, 2);
static void tell(const char *format, ...)
{
        char *at = script.told[script.run] + script.used;
        va_list args;

        va_start(args, format);
        int n = vsnprintf(at, LINE, format, args);
        va_end(args);
        script.used += (size_t)(n < LINE ? n : LINE - 1);
        ASSERT_TRUE(script.used + LINE < sizeof script.told[0]);
}

/* ---- the ends ---- */

struct ends {
        resha_stream *a, *b;
        bool open_a, open_b;
        int one_way; /* a pipe: from b to a */
};

static void make_ends(struct ends *e, unsigned kind)
{
        resha_stream *two[2];

        *e = (struct ends){ .open_a = true, .open_b = true };
        if (kind == 0) {
                struct real_pair p;
                real_pair(&p);
                e->a = p.here;
                e->b = p.there;
        } else if (kind == 1) {
                ASSERT_OK(resha_stream_pair(two));
                e->a = two[0];
                e->b = two[1];
        } else {
                ASSERT_OK(resha_pipe(&e->a, &e->b));
                e->one_way = 1;
        }
        tell("kind %u;", kind);
}

/* ---- the steps ---- */

struct call {
        resha_stream *s;
        char data[4096];
        size_t size, done;
        ssize_t result;
};

static int reads(void *arg)
{
        struct call *c = arg;

        c->result = resha_read(c->s, c->data, c->size);
        return c->result < 0 ? (int)c->result : 0;
}

static int writes(void *arg)
{
        struct call *c = arg;
        struct iovec parts[3] = { { c->data, c->size / 3 },
                                  { c->data + c->size / 3, c->size / 3 },
                                  { c->data + 2 * (c->size / 3), c->size - 2 * (c->size / 3) } };

        c->result = c->size % 2 ? resha_write_all(c->s, c->data, c->size, &c->done)
                                : resha_write_vec(c->s, parts, 3, &c->done);
        return (int)c->result;
}

static unsigned sum(const char *p, size_t n)
{
        unsigned s = 0;

        for (size_t i = 0; i < n; i++)
                s = s * 31 + (unsigned char)p[i];
        return s;
}

/* Written, and read to the last byte by the other side. */
static void step_bytes(resha_stream *from, resha_stream *to)
{
        struct call w = { .s = from, .size = 1 + roll(4096) }, r = { .s = to };

        for (size_t i = 0; i < w.size; i++)
                w.data[i] = (char)(i * w.size);
        int rc = writes(&w);
        tell("write %d of %zu: %zu;", rc, w.size, w.done);
        size_t got = 0;
        while (rc == 0 && got < w.done) {
                r.size = sizeof r.data - got;
                ssize_t n = resha_read(to, r.data + got, w.done - got);
                if (n <= 0) {
                        tell("read %zd;", n);
                        return;
                }
                got += (size_t)n;
        }
        tell("read %zu sum %x;", got, sum(r.data, got));
}

/* A read of what does not come, given up. */
static void step_cancel(resha_stream *s)
{
        struct call c = { .s = s, .size = 100 };
        int rc = resha_timeout(RESHA_US(200), reads, &c);

        tell("cancelled read %zd, %d;", c.result, rc);
}

/* The reader waits before anything is there. */
static void step_late(resha_stream *from, resha_stream *to)
{
        struct call c = { .s = to, .size = 64 };
        resha_task t = { 0 };
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, reads, &c, &t));
        ASSERT_OK(resha_sleep(RESHA_US(100)));
        int rc = resha_write_all(from, "late bytes", 10, NULL);
        if (rc < 0)
                resha_group_cancel(&g);
        int end = resha_group_end(&g, 0);
        tell("late %d: %zd, %d;", rc, c.result, end);
}

/* Writes until nothing more goes, then is given up; all that was counted is there. */
struct flood {
        resha_stream *s;
        size_t done;
};

static char big[16 << 20];

static int floods(void *arg)
{
        struct flood *f = arg;

        return resha_write_all(f->s, big, sizeof big, &f->done);
}

static void step_fill(resha_stream *from, resha_stream *to)
{
        struct flood f = { .s = from };
        size_t got = 0;
        int rc = resha_timeout(RESHA_MS(5), floods, &f);

        while (got < f.done) {
                ssize_t n = resha_read(to, big, f.done - got);
                if (n <= 0)
                        break;
                got += (size_t)n;
        }
        tell("fill %d, all read %d;", rc, got == f.done);
}

static void step_end(struct ends *e, resha_stream *from, resha_stream *to)
{
        char c;
        int rc = e->one_way ? (resha_stream_closep(&e->b), 0) : resha_stream_shutdown(from);

        e->open_b = e->open_b && !e->one_way;
        ssize_t first = resha_read(to, &c, 1), second = resha_read(to, &c, 1);
        tell("end %d: %zd %zd;", rc, first, second);
        if (!e->one_way)
                tell("write after %d;", resha_write_all(from, "x", 1, NULL));
}

/* The reading side goes away under the writer. */
static void step_gone(struct ends *e)
{
        int rc = 0;

        resha_stream_closep(&e->a);
        for (int i = 0; rc == 0 && i < 3; i++) {
                rc = resha_write_all(e->b, "x", 1, NULL);
                ASSERT_OK(resha_sleep(RESHA_US(300)));
        }
        tell("gone %s;", rc == -EPIPE || rc == -ECONNRESET ? "broken" : rc == 0 ? "nothing" : "other");
}

static void play_on(struct ends *e)
{
        for (int i = 0; i < STEPS / 6; i++) {
                bool back = !e->one_way && roll(2);
                resha_stream *from = back ? e->a : e->b, *to = back ? e->b : e->a;
                switch (roll(4)) {
                case 0: step_bytes(from, to); break;
                case 1: step_cancel(to); break;
                case 2: step_late(from, to); break;
                default: step_fill(from, to);
                }
        }
        if (roll(2))
                step_end(e, e->b, e->a);
        else
                step_gone(e);
        resha_stream_closep(&e->a);
        resha_stream_closep(&e->b);
}

static int play(__attribute__((unused)) void *arg)
{
        for (unsigned kind = 0; kind < 3; kind++) {
                struct ends e;
                make_ends(&e, kind);
                play_on(&e);
        }
        return 0;
}

/* ---- errors ---- */

static int errors(__attribute__((unused)) void *arg)
{
        resha_stream *s = NULL;
        resha_listener *n = NULL;
        resha_addr a;
        uint16_t port;
        char c;
        int fd = real_listen(1, &port);

        close(fd);
        ASSERT_OK(resha_addr_parse("127.0.0.1", port, &a));
        tell("refused %d;", resha_tcp_connect_addr(&a, &s));
        ASSERT_OK(resha_addr_unix("@no-such-listener", &a));
        tell("unix %d;", resha_connect(&a, NULL, &s));
        ASSERT_OK(resha_tcp_listen("127.0.0.1", 0, &n));
        ASSERT_OK(resha_listener_addr(n, &a));
        tell("in use %d;", resha_tcp_listen("127.0.0.1", resha_addr_port(&a), &n));
        resha_listener_close(n);
        fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        ASSERT_OK(resha_stream_adopt(fd, &s));
        tell("file %zd;", resha_read(s, &c, 1));
        tell("write to it %d;", resha_write_all(s, "x", 1, NULL));
        resha_stream_close(s);
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
        ASSERT_OK(resha_stream_adopt(fd, &s));
        tell("null %zd %d;", resha_read(s, &c, 1), resha_write_all(s, "x", 1, NULL));
        resha_stream_close(s);
        fd = open("/", O_RDONLY | O_CLOEXEC);
        int rc = resha_stream_adopt(fd, &s);
        tell("directory %d %zd;", rc, rc == 0 ? resha_read(s, &c, 1) : 0);
        if (rc == 0)
                resha_stream_close(s);
        else
                close(fd);
        return 0;
}

/* ---- both ---- */

static void compare(resha_fn *fn, uint64_t seed)
{
        static const char *const backends[] = { "epoll", "uring" };
        static char context[48];

        snprintf(context, sizeof context, " (seed %llu)", (unsigned long long)seed);
        test_context(context);
        for (int i = 0; i < 2; i++) {
                resha_error e = { 0 };
                script.luck = seed * 2654435761u + 1;
                script.used = 0;
                script.run = i;
                int rc = resha_run(fn, NULL, &(resha_run_opts){ .backend = backends[i], .ret_error = &e });
                if (rc < 0)
                        FAIL("%s: %d %s", backends[i], rc, e.text);
        }
        ASSERT_STR(script.told[1], script.told[0]);
        test_context("");
}

TEST(differential_scripts_of_all_seeds_end_the_same_on_both)
{
        if (strcmp(test_backend(), "uring") != 0)
                test_skip("compares it with epoll");
        for (uint64_t seed = 1; seed <= SEEDS; seed++)
                compare(play, seed);
}

TEST(differential_errors_are_the_same_on_both)
{
        if (strcmp(test_backend(), "uring") != 0)
                test_skip("compares it with epoll");
        compare(errors, 0);
        printf("%s\n", script.told[0]);
}
