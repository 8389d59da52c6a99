/* SPDX-License-Identifier: MIT */
/* How connections end: half, in order, broken, aborted, closed; and what a reader or writer that is slow does to the
 * other. */

#include "pair.h"

#include "net/stream.h"

/* ---- flow ---- */

struct flow {
        resha_stream *from;
        size_t sent;
        int rc;
};

static int write_without_end(void *arg)
{
        static const char much[64 * 1024];
        struct flow *f = arg;
        int rc = 0;

        while (rc == 0) {
                size_t written = 0;
                rc = resha_write_all(f->from, much, sizeof much, &written);
                f->sent += written;
        }
        f->rc = rc;
        return 0;
}

/* Until the writer gets no further. */
static int until_it_waits(const struct flow *f)
{
        size_t before;
        int rc;

        do {
                before = f->sent;
                rc = resha_sleep(RESHA_MS(20));
        } while (rc == 0 && f->sent != before);
        return rc;
}

/* semantics 253 better
 * asyncio: a reader whose buffer holds more than twice its limit stops reading from the socket until that is taken.
 * resha: a stream reads from its connection only while a task reads from the stream, so nothing piles up: it holds at
 * most twice the largest size asked for, 4 KiB at least, and the peer waits. */
TASK(semantics_253_stream_that_nobody_reads_makes_the_peer_wait)
{
        char buf[16];
        int rc;

        PAIR(p);
        struct flow f = { .from = p.here };
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, write_without_end, &f);
        ASSERT_OK(until_it_waits(&f));
        for (int i = 0; i < 3; i++) {
                ASSERT_EQ(resha_read_line(p.there, buf, sizeof buf), -EMSGSIZE);
                ASSERT_TRUE(p.there->in.capacity <= 4096);
                ASSERT_OK(until_it_waits(&f));
                ASSERT_EQ(f.rc, 0); /* it still waits to write */
        }
        resha_group_cancel(&g);
        rc = resha_group_end(&g, 0);
        ASSERT_EQ(f.rc, -ECANCELED);
        return rc;
}

/* semantics 255 better
 * asyncio: write() never waits; what the socket does not take is kept in memory without bound.
 * resha: resha_write_all() waits until all is taken. Nothing is kept, or at most what resha_stream_buffer() allows:
 * what was not taken is still the caller's, who knows how much that is. */
TASK(semantics_255_write_waits_for_a_peer_that_does_not_read)
{
        char buf[4096];
        size_t got = 0;

        PAIR(p);
        struct flow f = { .from = p.here };
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, write_without_end, &f);
        ASSERT_OK(until_it_waits(&f));
        ASSERT_EQ(f.rc, 0);
        ASSERT_TRUE(p.here->out.data == NULL);
        resha_group_cancel(&g);
        ASSERT_OK(resha_group_end(&g, 0));
        resha_stream_closep(&p.here);
        for (ssize_t n; (n = resha_read(p.there, buf, sizeof buf)) > 0;)
                got += (size_t)n;
        ASSERT_TRUE(f.sent > 0);
        ASSERT_EQ(got, f.sent);
        return 0;
}

enum { WRITES = 640, TURNS = WRITES / 64 - 1 };

static int take_turns(void *arg)
{
        unsigned *turns = arg;
        int rc = 0;

        while (rc == 0 && *turns < TURNS) {
                rc = resha_yield();
                *turns += rc == 0;
        }
        return rc;
}

static int read_to_the_end(void *arg)
{
        char buf[512];
        ssize_t n;

        while ((n = resha_read(arg, buf, sizeof buf)) > 0)
                ;
        return (int)n;
}

static int write_a_byte(void *arg)
{
        size_t written = 7;
        int rc = resha_write_all(arg, "x", 1, &written);

        ASSERT_EQ(written, rc == 0);
        return rc;
}

/* semantics 256 better
 * asyncio: drain() suspends only above the high mark; below it, a writer lets nobody else run and sees no cancel.
 * resha: each write looks for a cancel first, with or without a buffer, and one that need not wait gives way to others
 * after 64 such calls. */
TASK(semantics_256_writer_with_room_sees_its_cancel_and_takes_turns)
{
        unsigned turns = 0;

        PAIR(p);
        RESHA_GROUP(g);
        ASSERT_EQ(resha_timeout(RESHA_MS(0), write_a_byte, p.here), -ETIME);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, read_to_the_end, p.there);
        resha_spawn(&g, take_turns, &turns);
        for (int i = 0; i < WRITES; i++)
                ASSERT_OK(write_a_byte(p.here));
        ASSERT_EQ(turns, TURNS);
        ASSERT_OK(resha_stream_shutdown(p.here));
        return resha_group_end(&g, 0);
}

/* ---- broken ---- */

/* Resets the connection under p->here, and waits until it is known there. */
static int reset(struct pair *p)
{
        resha_stream_abort(p->there);
        resha_stream_closep(&p->there);
        return resha_sleep(RESHA_MS(20));
}

/* semantics 254 same
 * asyncio: after the connection has failed, every later read and drain raises that error.
 * resha: every later read and write returns the code of the failure, with a record that says so. What had come before
 * is read first. */
TASK(semantics_254_failure_is_told_by_every_later_read_and_write)
{
        char buf[8];

        PAIR(p);
        ASSERT_OK(write_a_byte(p.there));
        ASSERT_OK(resha_sleep(RESHA_MS(20)));
        ASSERT_OK(reset(&p));
        ASSERT_EQ(resha_read(p.here, buf, sizeof buf), 1);
        for (int i = 0; i < 3; i++) {
                ASSERT_EQ(resha_read(p.here, buf, sizeof buf), -ECONNRESET);
                ASSERT_HAS(resha_error_of(-ECONNRESET)->text, "Connection reset by peer");
                ASSERT_EQ(resha_write_all(p.here, "x", 1, NULL), -ECONNRESET);
                ASSERT_EQ(resha_read_exactly(p.here, buf, sizeof buf), -ECONNRESET);
                ASSERT_EQ(resha_read_line(p.here, buf, sizeof buf), -ECONNRESET);
        }
        return 0;
}

/* The kernel gives the writer the error, and the reader an end. */
TASK(semantics_254_reset_that_a_write_has_met_is_no_end_for_a_read)
{
        char buf[8];

        PAIR(p);
        ASSERT_OK(reset(&p));
        for (int i = 0; i < 3; i++)
                ASSERT_EQ(resha_write_all(p.here, "x", 1, NULL), -ECONNRESET);
        for (int i = 0; i < 3; i++)
                ASSERT_EQ(resha_read(p.here, buf, sizeof buf), -ECONNRESET);
        return 0;
}

TASK(what_a_failed_read_had_taken_is_still_read_after_the_failure)
{
        char buf[8];

        PAIR(p);
        ASSERT_OK(write_a_byte(p.there));
        ASSERT_OK(resha_sleep(RESHA_MS(20)));
        ASSERT_OK(reset(&p));
        ASSERT_EQ(resha_read_exactly(p.here, buf, sizeof buf), -ECONNRESET);
        ASSERT_EQ(resha_read_exactly(p.here, buf, 1), 1);
        ASSERT_EQ(resha_read_exactly(p.here, buf, 1), -ECONNRESET);
        return 0;
}

/* semantics 258 better
 * asyncio: once the connection is gone, write() does nothing and says nothing; drain() raises.
 * resha: the write itself fails, each time. */
TASK(semantics_258_write_to_a_connection_that_is_gone_fails)
{
        int rc = 0;
        char buf[8];

        PAIR(p);
        resha_stream_closep(&p.there);
        for (int i = 0; rc == 0 && i < 1000; i++) { /* the first may be on its way before the peer's answer is known */
                rc = resha_write_all(p.here, "x", 1, NULL);
                if (rc == 0)
                        rc = resha_sleep(RESHA_MS(1));
        }
        ASSERT_EQ(rc, -EPIPE);
        for (int i = 0; i < 3; i++)
                ASSERT_EQ(resha_write_all(p.here, "x", 1, NULL), rc);
        ASSERT_EQ(resha_read(p.here, buf, sizeof buf), 0); /* the peer had ended in order before */
        return 0;
}

/* ---- closed and aborted ---- */

enum { SOME = 50000 };

static int write_and_close(void *arg)
{
        static const char data[SOME];
        resha_stream **s = arg;
        int rc = resha_write_all(*s, data, sizeof data, NULL);

        resha_stream_closep(s);
        return rc;
}

/* semantics 259 better
 * asyncio: close() goes on sending in the background what was buffered; abort() drops it.
 * resha: what resha_write_all() has taken is the kernel's, which goes on sending after resha_stream_close(). Only what
 * resha_stream_buffer() lets the stream keep is dropped, and that is reported: resha_flush() and resha_stream_finish()
 * send it. After resha_stream_abort() all is dropped, and the peer sees a reset. */
TASK(semantics_259_close_lets_what_was_written_arrive)
{
        static char data[SOME];

        PAIR(p);
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, write_and_close, &p.here);
        ASSERT_OK(resha_sleep(RESHA_MS(20)));
        ASSERT_EQ(resha_read_exactly(p.there, data, sizeof data), SOME);
        ASSERT_EQ(resha_read(p.there, data, sizeof data), 0);
        return resha_group_end(&g, 0);
}

TASK(semantics_259_abort_resets)
{
        PAIR(p);
        struct flow f = { .from = p.here };
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, write_without_end, &f);
        ASSERT_OK(until_it_waits(&f));
        resha_stream_abort(p.here);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(f.rc, -ECONNABORTED);
        resha_stream_closep(&p.here);
        ASSERT_EQ(read_to_the_end(p.there), -ECONNRESET);
        return 0;
}

struct reader {
        resha_stream *from;
        int rc;
};

static int read_once(void *arg)
{
        struct reader *r = arg;
        char buf[8];

        r->rc = (int)resha_read(r->from, buf, sizeof buf);
        return 0;
}

TASK(an_abort_ends_those_who_wait_and_later_calls)
{
        char buf[8];

        PAIR(p);
        struct flow f = { .from = p.here };
        struct reader r = { .from = p.here };
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, read_once, &r);
        resha_spawn(&g, write_without_end, &f);
        ASSERT_OK(until_it_waits(&f));
        resha_stream_abort(p.here);
        resha_stream_abort(p.here);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(r.rc, -ECONNABORTED);
        ASSERT_EQ(f.rc, -ECONNABORTED);
        ASSERT_EQ(resha_read(p.here, buf, sizeof buf), -ECONNABORTED);
        ASSERT_EQ(resha_write_all(p.here, "x", 1, NULL), -ECONNABORTED);
        return 0;
}

/* As the other direction of a forwarder would end it, which does not know yet. */
TASK(a_connection_that_was_broken_off_gets_no_orderly_end)
{
        char buf[8];

        PAIR(p);
        ASSERT_OK(resha_write_all(p.here, "half", 4, NULL));
        ASSERT_EQ(resha_read_exactly(p.there, buf, 4), 4);
        resha_stream_abort(p.here);
        ASSERT_EQ(resha_stream_shutdown(p.here), -ECONNABORTED);
        ASSERT_EQ(resha_stream_finish(p.here), -ECONNABORTED);
        resha_stream_closep(&p.here);
        ASSERT_EQ(read_to_the_end(p.there), -ECONNRESET);
        return 0;
}

/* semantics 260 same
 * asyncio: write_eof() sends what is buffered and then ends the sending side; reading goes on, a later write raises.
 * resha: resha_stream_shutdown() ends the sending side behind what was written; reading goes on, a later write gives
 * -EPIPE. */
TASK(semantics_260_after_a_shutdown_reading_goes_on_and_writing_fails)
{
        char buf[16];

        PAIR(p);
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        speak(&g, p.here, "question", true);
        ASSERT_EQ(resha_read_exactly(p.there, buf, sizeof buf), 8);
        ASSERT_EQ(resha_read(p.there, buf, sizeof buf), 0);
        for (int i = 0; i < 2; i++)
                ASSERT_EQ(resha_write_all(p.here, "x", 1, NULL), -EPIPE);
        speak(&g, p.there, "answer", true);
        ASSERT_EQ(resha_read_exactly(p.here, buf, sizeof buf), 6);
        ASSERT_EQ(resha_read(p.here, buf, sizeof buf), 0);
        return resha_group_end(&g, 0);
}

/* semantics 261 better
 * asyncio: wait_closed() ends when the connection is lost, and raises what broke it, if anything did.
 * resha: there is no second call: resha_stream_close() returns when nobody is inside any more and all is released. Why
 * a connection broke, its reads and writes have said. */
TASK(semantics_261_close_returns_when_all_have_left)
{
        PAIR(p);
        struct flow f = { .from = p.here };
        struct reader r = { .from = p.here };
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, read_once, &r);
        resha_spawn(&g, write_without_end, &f);
        ASSERT_OK(until_it_waits(&f));
        resha_stream_closep(&p.here);
        ASSERT_EQ(r.rc, -EBADF);
        ASSERT_EQ(f.rc, -EBADF);
        return resha_group_end(&g, 0);
}

/* ---- closing, and breaking off, between two operations of one call ---- */

struct late_writer {
        resha_stream *s;
        int burnt; /* calls that complete at once, before it writes: it is made to yield in the midst of the writing */
        bool began;
        int rc;
};

static int write_a_lot(void *arg)
{
        static char data[8 << 20];
        struct late_writer *w = arg;
        resha_addr a;
        size_t n;

        for (int i = 0; i < w->burnt; i++)
                ASSERT_OK(resha_resolve("127.0.0.1", "1", &a, 1, &n));
        w->began = true;
        w->rc = resha_write_all(w->s, data, sizeof data, NULL);
        return 0;
}

/* The peer reads nothing. Nobody must wait for it. */
static void end_while_it_has_only_yielded(int burnt, bool aborts)
{
        struct pair p RESHA_CLEANUP(pair_close) = { NULL, NULL };
        resha_stream *pair[2];

        ASSERT_OK(resha_stream_pair(pair));
        p = (struct pair){ pair[0], pair[1] };
        struct late_writer w = { .s = p.here, .burnt = burnt };
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn(&g, write_a_lot, &w));
        while (!w.began)
                ASSERT_OK(resha_sleep(RESHA_NS(0)));
        if (aborts)
                resha_stream_abort(p.here);
        else
                resha_stream_closep(&p.here);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(w.rc, aborts ? -ECONNABORTED : -EBADF);
}

TASK(a_close_ends_a_write_that_has_only_yielded)
{
        for (int burnt = 55; burnt < 70; burnt++)
                end_while_it_has_only_yielded(burnt, false);
        return 0;
}

TASK(an_abort_ends_a_write_that_has_only_yielded)
{
        for (int burnt = 55; burnt < 70; burnt++)
                end_while_it_has_only_yielded(burnt, true);
        return 0;
}
