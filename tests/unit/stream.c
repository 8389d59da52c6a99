/* SPDX-License-Identifier: MIT */
/* Streams: what every kind and both worlds have in common. */

#include "pair.h"

#include <resha/alloc.h>

#include "base/alloc.h"

static void say(resha_stream *s, const char *text)
{
        size_t written;

        ASSERT_OK(resha_write_all(s, text, strlen(text), &written));
        ASSERT_EQ(written, strlen(text));
}

/* semantics 244 same
 * asyncio: read(n) returns as soon as there is a byte, nothing only at the end; read(0) returns at once; read(-1) reads
 * to the end.
 * resha: resha_read() returns what is there, 0 at the end, and at once if asked for nothing. To read to the end ask
 * resha_read_exactly() for more: there is no buffer without a size. */
TASK(semantics_244_read_gives_what_is_there)
{
        char buf[16];

        PAIR(p);
        ASSERT_EQ(resha_read(p.there, buf, 0), 0);
        ASSERT_OK(resha_write_all(p.here, "a", 1, NULL));
        ASSERT_EQ(resha_read(p.there, buf, sizeof buf), 1);
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        speak(&g, p.here, "bcdefg", true);
        ASSERT_EQ(resha_read(p.there, buf, 0), 0);
        ASSERT_EQ(resha_read_exactly(p.there, buf, sizeof buf), 6);
        ASSERT_EQ(memcmp(buf, "bcdefg", 6), 0);
        ASSERT_EQ(resha_read(p.there, buf, sizeof buf), 0);
        ASSERT_EQ(resha_read_exactly(p.there, buf, sizeof buf), 0);
        return resha_group_end(&g, 0);
}

/* ---- lines ---- */

static void expect_line(resha_stream *s, const char *line)
{
        char buf[32];

        ASSERT_EQ(resha_read_line(s, buf, sizeof buf), strlen(line));
        ASSERT_STR(buf, line);
}

TASK(bytes_behind_a_line_are_read_next)
{
        char buf[32];

        PAIR(p);
        say(p.here, "head\nbody");
        expect_line(p.there, "head\n");
        ASSERT_EQ(resha_read(p.there, buf, 2), 2);
        ASSERT_EQ(memcmp(buf, "bo", 2), 0);
        say(p.here, "more");
        ASSERT_EQ(resha_read_exactly(p.there, buf, 6), 6);
        ASSERT_EQ(memcmp(buf, "dymore", 6), 0);
        return 0;
}

static int write_long_lines(void *arg)
{
        static char line[60000];

        memset(line, 'x', sizeof line);
        line[sizeof line - 1] = '\n';
        for (int i = 0; i < 5; i++) {
                int rc = resha_write_all(arg, line, sizeof line, NULL);
                if (rc < 0)
                        return rc;
        }
        return resha_stream_shutdown(arg);
}

TASK(lines_up_to_64_KiB_make_the_buffer_grow)
{
        static char buf[65536];
        PAIR(p);
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, write_long_lines, p.here);
        for (int i = 0; i < 5; i++) {
                ASSERT_EQ(resha_read_line(p.there, buf, sizeof buf), 60000);
                ASSERT_EQ(strlen(buf), 60000);
        }
        ASSERT_EQ(resha_read_line(p.there, buf, sizeof buf), 0);
        ASSERT_OK(resha_group_end(&g, 0));
        return 0;
}

/* ---- exactly ---- */

TASK(read_exactly_gives_less_only_at_the_end)
{
        char buf[16];

        PAIR(p);
        say(p.here, "abcdef");
        ASSERT_EQ(resha_read_exactly(p.there, buf, 4), 4);
        ASSERT_OK(resha_stream_shutdown(p.here));
        ASSERT_EQ(resha_read_exactly(p.there, buf, 4), 2);
        ASSERT_EQ(resha_read_exactly(p.there, buf, 4), 0);
        ASSERT_EQ(resha_read_exactly(p.there, buf, 0), 0);
        return 0;
}

static int read_eight(void *arg)
{
        char buf[8];

        return (int)resha_read_exactly(arg, buf, sizeof buf);
}

static int read_one_line(void *arg)
{
        char buf[16];

        return (int)resha_read_line(arg, buf, sizeof buf);
}

/* semantics 271 same
 * asyncio: a socket read that was cancelled and is called again at once works.
 * resha: so does every read; what a cancelled one had taken is what the next one gets first. */
TASK(semantics_271_read_that_was_cancelled_is_called_again)
{
        char buf[16];

        PAIR(p);
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        speak(&g, p.here, "abc", false);
        ASSERT_EQ(resha_timeout(RESHA_MS(20), read_eight, p.there), -ETIME);
        ASSERT_EQ(resha_timeout(RESHA_MS(0), read_eight, p.there), -ETIME);
        speak(&g, p.here, "de", false);
        ASSERT_EQ(resha_timeout(RESHA_MS(20), read_one_line, p.there), -ETIME);
        ASSERT_EQ(resha_timeout(RESHA_MS(20), read_eight, p.there), -ETIME);
        speak(&g, p.here, "f\n", false);
        ASSERT_EQ(resha_read_line(p.there, buf, sizeof buf), 7);
        ASSERT_STR(buf, "abcdef\n");
        return resha_group_end(&g, 0);
}

static int lose_bytes(void *unused)
{
        char buf[16];

        (void)unused;
        PAIR(p);
        say(p.here, "abc");
        rs_alloc_fail_after(1, true);
        int rc = resha_timeout(RESHA_MS(5), read_eight, p.there);
        rs_alloc_fail_after(0, false);
        ASSERT_EQ(rc, -ETIME);
        ASSERT_EQ(resha_read(p.there, buf, sizeof buf), -ENOMEM);
        ASSERT_HAS(resha_error_of(-ENOMEM)->text, "lost");
        return 0;
}

TEST(bytes_that_cannot_be_kept_are_an_error_of_every_later_read)
{
        rs_alloc_watch(true);
        RUN(lose_bytes, NULL);
}

/* ---- two at once ---- */

static int read_some(void *arg)
{
        char buf[8];

        return (int)resha_read(arg, buf, sizeof buf);
}

static int second_reader(void *arg)
{
        ASSERT_EQ(read_some(arg), -EBUSY);
        ASSERT_EQ(read_one_line(arg), -EBUSY);
        ASSERT_EQ(read_eight(arg), -EBUSY);
        ASSERT_OK(resha_write_all(arg, "go", 2, NULL)); /* writing is another direction */
        return 0;
}

TASK(a_second_reader_is_refused_and_a_writer_is_not)
{
        PAIR(p);
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, read_some, p.there);
        ASSERT_OK(resha_sleep(RESHA_MS(1)));
        resha_spawn(&g, second_reader, p.there);
        ASSERT_EQ(read_some(p.here), 2);
        say(p.here, "x");
        ASSERT_OK(resha_group_end(&g, 0));
        return 0;
}

TASK(close_works_where_everything_is_cancelled)
{
        RESHA_SCOPE(s);
        PAIR(p);
        RESHA_GROUP(g);
        resha_timeout_begin(&s, RESHA_MS(0));
        resha_group_begin(&g, NULL);
        ASSERT_TRUE(resha_cancelled());
        resha_stream_closep(&p.here);
        resha_stream_closep(&p.there);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_OK(resha_scope_end(&s, 0));
        return 0;
}

/* ---- cancelled writes ---- */

struct flow {
        resha_stream *from, *to;
        size_t sent, got;
};

static int send_much(void *arg)
{
        static char much[8 << 20];
        struct flow *f = arg;

        return resha_write_all(f->from, much, sizeof much, &f->sent);
}

static int drain(void *arg)
{
        static char buf[65536];
        struct flow *f = arg;
        ssize_t n;

        while ((n = resha_read(f->to, buf, sizeof buf)) > 0)
                f->got += (size_t)n;
        return (int)n;
}

/* semantics 272 better
 * asyncio: when sock_sendall() is cancelled, an unknown part has been sent.
 * resha: resha_write_all() says how much was taken, always: the writer can go on from there. */
TASK(semantics_272_cancelled_write_says_how_much_was_taken)
{
        PAIR(p);
        struct flow f = { .from = p.here, .to = p.there };
        ASSERT_EQ(resha_timeout(RESHA_MS(5), send_much, &f), -ETIME);
        resha_stream_closep(&p.here);
        ASSERT_OK(drain(&f));
        ASSERT_TRUE(f.sent > 0);
        ASSERT_EQ(f.got, f.sent);
        return 0;
}

/* ---- a cancel at any moment loses nothing ---- */

enum { NUMBERS = 400 };

static int send_numbers(void *arg)
{
        for (int i = 1; i <= NUMBERS; i++) {
                int rc = resha_write_all(arg, &i, sizeof i, NULL);
                if (rc == 0 && i % 7 == 0)
                        rc = resha_sleep(RESHA_US(i % 5 * 50));
                if (rc < 0)
                        return rc;
        }
        return resha_stream_shutdown(arg);
}

struct number {
        resha_stream *stream;
        int value;
};

static int read_number(void *arg)
{
        struct number *n = arg;

        return (int)resha_read_exactly(n->stream, &n->value, sizeof n->value);
}

static int numbers(void *unused)
{
        RESHA_GROUP(g);
        int next = 1, tries = 0;

        (void)unused;
        PAIR(p);
        struct number n = { .stream = p.there };
        resha_group_begin(&g, NULL);
        resha_spawn(&g, send_numbers, p.here);
        for (;; tries++) {
                int rc = resha_timeout(RESHA_US(tries % 60), read_number, &n);
                if (rc == 0)
                        break;
                if (rc == -ETIME)
                        continue;
                ASSERT_EQ(rc, sizeof n.value);
                ASSERT_EQ(n.value, next++);
        }
        ASSERT_EQ(next, NUMBERS + 1);
        ASSERT_OK(resha_group_end(&g, 0));
        return 0;
}

/* semantics 252 same
 * asyncio: no byte is lost when a read is cancelled.
 * resha: nor here, by a cancel at any moment: what a read has taken and does not return goes back into the stream. */
TEST(semantics_252_no_byte_is_lost_by_cancels_at_any_moment)
{
        RUN_SEEDS(numbers, NULL, 20);
}

/* ---- a kind of one's own ---- */

struct tape {
        const char *text;
        size_t at, step;
        char out[64];
        size_t out_size;
        bool ended, closed;
        size_t flushed; /* of what is in out */
        unsigned flushes;
};

static ssize_t tape_read(void *impl, void *buf, size_t size)
{
        struct tape *t = impl;
        size_t n = strlen(t->text + t->at);

        n = n > t->step ? t->step : n;
        n = n > size ? size : n;
        memcpy(buf, t->text + t->at, n);
        t->at += n;
        return (ssize_t)n;
}

static ssize_t tape_write(void *impl, const void *data, size_t size)
{
        struct tape *t = impl;
        size_t n = size > t->step ? t->step : size;

        memcpy(t->out + t->out_size, data, n);
        t->out_size += n;
        return (ssize_t)n;
}

static int tape_shutdown(void *impl)
{
        ((struct tape *)impl)->ended = true;
        return 0;
}

static void tape_close(void *impl)
{
        ((struct tape *)impl)->closed = true;
}

TASK(a_stream_of_ones_own_kind_reads_lines_and_writes_all)
{
        static const resha_stream_ops ops = {
                .kind = "tape",
                .read = tape_read,
                .write = tape_write,
                .shutdown = tape_shutdown,
                .close = tape_close,
        };
        struct tape t = { .text = "first line\nsecond\nrest", .step = 3 };
        resha_stream *s;
        resha_addr a;
        char buf[8];

        ASSERT_OK(resha_stream_new(&ops, &t, &s));
        expect_line(s, "first line\n");
        expect_line(s, "second\n");
        ASSERT_EQ(resha_read_exactly(s, buf, 8), 4);
        say(s, "0123456789");
        ASSERT_STR(t.out, "0123456789");
        ASSERT_EQ(resha_stream_addr(s, true, &a), -EOPNOTSUPP);
        ASSERT_OK(resha_stream_shutdown(s));
        ASSERT_TRUE(t.ended);
        resha_stream_close(s);
        ASSERT_TRUE(t.closed);
        return 0;
}

static int tape_flush(void *impl)
{
        struct tape *t = impl;

        t->flushed = t->out_size;
        t->flushes++;
        return 0;
}

/* Behind the last write of each call, whether the stream keeps bytes or not; where nothing is written it is not
 * asked. */
TASK(a_kind_with_a_flush_is_asked_once_for_each_write)
{
        static const resha_stream_ops ops = {
                .kind = "tape",
                .read = tape_read,
                .write = tape_write,
                .shutdown = tape_shutdown,
                .close = tape_close,
                .flush = tape_flush,
        };
        struct tape t = { .text = "", .step = 3 };
        resha_stream *s;
        size_t written;

        ASSERT_OK(resha_stream_new(&ops, &t, &s));
        say(s, "0123456789");
        ASSERT_EQ(t.flushed, 10);
        ASSERT_EQ(t.flushes, 1);
        ASSERT_OK(resha_write_all(s, NULL, 0, &written));
        ASSERT_EQ(t.flushes, 1);
        ASSERT_EQ(resha_write_all(s, "x", SIZE_MAX, &written), -EINVAL);
        ASSERT_EQ(t.out_size, 10);
        ASSERT_OK(resha_stream_buffer(s, 4));
        say(s, "abc");
        ASSERT_EQ(t.flushes, 1);
        say(s, "def");
        ASSERT_STR(t.out, "0123456789abcdef");
        ASSERT_EQ(t.flushed, 16);
        ASSERT_EQ(t.flushes, 2);
        ASSERT_OK(resha_stream_buffer(s, 0));
        say(s, "g");
        ASSERT_EQ(t.flushed, 17);
        ASSERT_EQ(t.flushes, 3);
        resha_stream_close(s);
        return 0;
}

TEST(outside_of_a_task_streams_say_so)
{
        resha_stream *s;
        resha_addr a = { { 0 } };

        ASSERT_EQ(resha_stream_new(NULL, NULL, &s), -EPERM);
        ASSERT_EQ(resha_tcp_connect_addr(&a, &s), -EPERM);
        ASSERT_EQ(resha_tcp_connect("localhost", 1, &s), -EPERM);
        resha_stream_close(NULL);
}
