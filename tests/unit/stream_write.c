/* SPDX-License-Identifier: MIT */
/* Writing in parts and with a buffer: nothing lost, doubled or in another order, whatever is taken at a time, wherever
 * it fails, whenever it is cancelled. */

#include "pair.h"

#include <stdlib.h>

#include "net/stream.h"

/* ---- a tape that takes so much at a time, and fails at some point ---- */

enum { TAPE_SIZE = 8192 };

struct tape {
        size_t step;     /* what it takes at most at once */
        size_t fails_at; /* bytes; SIZE_MAX: never */
        unsigned calls;
        const void *last; /* the last part of the latest call */
        size_t parts;     /* of the latest call */
        size_t size;
        bool ended, aborted;
        char data[TAPE_SIZE];
};

static ssize_t tape_write(void *impl, const void *data, size_t size)
{
        struct tape *t = impl;
        size_t n = size < t->step ? size : t->step;

        t->calls++;
        t->parts = 1;
        t->last = data;
        if (t->size == t->fails_at)
                return -ECONNRESET;
        if (n > t->fails_at - t->size)
                n = t->fails_at - t->size;
        memcpy(t->data + t->size, data, n);
        t->size += n;
        return (ssize_t)n;
}

static ssize_t tape_write_vec(void *impl, const struct iovec *parts, size_t n)
{
        struct tape *t = impl;
        size_t room = t->step < t->fails_at - t->size ? t->step : t->fails_at - t->size, done = 0;

        ASSERT_TRUE(n >= 1 && n <= 64);
        t->calls++;
        t->parts = n;
        t->last = parts[n - 1].iov_base;
        if (t->size == t->fails_at)
                return -ECONNRESET;
        for (size_t i = 0; i < n && done < room; i++) {
                size_t size = parts[i].iov_len < room - done ? parts[i].iov_len : room - done;
                ASSERT_TRUE(parts[i].iov_len > 0);
                memcpy(t->data + t->size, parts[i].iov_base, size);
                t->size += size;
                done += size;
        }
        return (ssize_t)done;
}

static int tape_shutdown(void *impl)
{
        ((struct tape *)impl)->ended = true;
        return 0;
}

static void tape_close(void *impl)
{
        (void)impl;
}

static const resha_stream_ops whole_ops = {
        .kind = "tape",
        .write = tape_write,
        .write_vec = tape_write_vec,
        .shutdown = tape_shutdown,
        .close = tape_close,
};

static const resha_stream_ops plain_ops = {
        .kind = "tape",
        .write = tape_write,
        .shutdown = tape_shutdown,
        .close = tape_close,
};

static const resha_stream_ops *const both[] = { &whole_ops, &plain_ops };

/* ---- parts ---- */

enum { PARTS = 150 };

/* Parts of all sizes from 0 to 8 of a text of which every byte tells where it stands. */
struct text {
        char data[1024];
        struct iovec parts[PARTS];
        size_t size;
};

static void text_make(struct text *t)
{
        size_t at = 0;

        for (size_t i = 0; i < sizeof t->data; i++)
                t->data[i] = (char)(i * 7 + i / 256);
        for (size_t i = 0; i < PARTS; i++) {
                t->parts[i] = (struct iovec){ i % 9 ? t->data + at : NULL, i % 9 };
                at += i % 9;
        }
        t->size = at;
}

TASK(parts_are_written_as_if_they_were_one)
{
        struct text text;

        text_make(&text);
        for (size_t step = 1; step <= text.size; step += step < 20 ? 1 : 83) {
                for (size_t kind = 0; kind < 2; kind++) {
                        struct tape t = { .step = step, .fails_at = SIZE_MAX };
                        resha_stream *s RESHA_CLEANUP(resha_stream_closep) = NULL;
                        size_t written = 0;
                        ASSERT_OK(resha_stream_new(both[kind], &t, &s));
                        ASSERT_OK(resha_write_vec(s, text.parts, PARTS, &written));
                        ASSERT_EQ(written, text.size);
                        ASSERT_EQ(t.size, text.size);
                        ASSERT_EQ(memcmp(t.data, text.data, text.size), 0);
                }
        }
        return 0;
}

TASK(no_parts_and_empty_parts_are_nothing_to_write)
{
        struct iovec empty[3] = { { NULL, 0 }, { NULL, 0 }, { NULL, 0 } };
        struct tape t = { .step = 10, .fails_at = SIZE_MAX };
        resha_stream *s RESHA_CLEANUP(resha_stream_closep) = NULL;
        size_t written = 7;

        ASSERT_OK(resha_stream_new(&whole_ops, &t, &s));
        ASSERT_OK(resha_write_vec(s, NULL, 0, &written));
        ASSERT_EQ(written, 0);
        ASSERT_OK(resha_write_vec(s, empty, 3, NULL));
        ASSERT_OK(resha_stream_buffer(s, 16));
        ASSERT_OK(resha_write_vec(s, empty, 3, NULL));
        ASSERT_OK(resha_flush(s));
        ASSERT_EQ(t.calls, 0);
        return 0;
}

TASK(more_bytes_than_can_be_counted_are_refused)
{
        struct iovec parts[2] = { { (void *)1, SIZE_MAX / 2 }, { (void *)1, SIZE_MAX / 2 } };
        struct tape t = { .step = 10, .fails_at = SIZE_MAX };
        resha_stream *s RESHA_CLEANUP(resha_stream_closep) = NULL;
        size_t written = 7;

        ASSERT_OK(resha_stream_new(&whole_ops, &t, &s));
        ASSERT_EQ(resha_write_vec(s, parts, 2, &written), -EINVAL);
        ASSERT_EQ(written, 0);
        ASSERT_EQ(t.calls, 0);
        return 0;
}

struct many {
        resha_stream *stream;
        struct iovec parts[2500];
        size_t written;
};

static int write_many(void *arg)
{
        struct many *m = arg;
        int rc = resha_write_vec(m->stream, m->parts, 2500, &m->written);

        return rc < 0 ? rc : resha_stream_shutdown(m->stream);
}

/* More than IOV_MAX. */
TASK(any_number_of_parts_goes_through_a_connection)
{
        static struct many m;
        static int numbers[2500], got[2501];

        PAIR(p);
        m.stream = p.here;
        for (int i = 0; i < 2500; i++) {
                numbers[i] = i;
                m.parts[i] = (struct iovec){ &numbers[i], sizeof numbers[i] };
        }
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, write_many, &m);
        ASSERT_EQ(resha_read_exactly(p.there, got, sizeof got), sizeof numbers);
        ASSERT_EQ(memcmp(got, numbers, sizeof numbers), 0);
        ASSERT_EQ(m.written, sizeof numbers);
        return resha_group_end(&g, 0);
}

/* ---- a buffer ---- */

static void say(resha_stream *s, const char *text)
{
        size_t written = 0;

        ASSERT_OK(resha_write_all(s, text, strlen(text), &written));
        ASSERT_EQ(written, strlen(text));
}

TASK(small_writes_are_kept_until_they_are_more_than_the_mark)
{
        static const char large[] = "0123456789abcdef";
        struct tape t = { .step = 100, .fails_at = SIZE_MAX };
        resha_stream *s RESHA_CLEANUP(resha_stream_closep) = NULL;

        ASSERT_OK(resha_stream_new(&whole_ops, &t, &s));
        ASSERT_OK(resha_stream_buffer(s, 10));
        say(s, "abcd");
        say(s, "efghij");
        ASSERT_EQ(resha_stream_buffered(s), 10);
        ASSERT_EQ(t.calls, 0);
        say(s, large);
        ASSERT_EQ(t.calls, 1); /* both, and the large one where it lay */
        ASSERT_EQ(t.parts, 2);
        ASSERT_PTR(t.last, large);
        ASSERT_EQ(resha_stream_buffered(s), 0);
        say(s, "xyz");
        ASSERT_EQ(t.calls, 1);
        ASSERT_OK(resha_flush(s));
        ASSERT_OK(resha_flush(s));
        ASSERT_EQ(t.calls, 2);
        ASSERT_STR(t.data, "abcdefghij0123456789abcdefxyz");
        return 0;
}

TASK(a_lower_mark_keeps_what_was_kept_until_the_next_write)
{
        struct tape t = { .step = 3, .fails_at = SIZE_MAX };
        resha_stream *s RESHA_CLEANUP(resha_stream_closep) = NULL;

        ASSERT_OK(resha_stream_new(&plain_ops, &t, &s));
        ASSERT_OK(resha_stream_buffer(s, 100));
        say(s, "0123456789");
        ASSERT_OK(resha_stream_buffer(s, 4));
        ASSERT_EQ(resha_stream_buffered(s), 10);
        say(s, "a");
        ASSERT_STR(t.data, "0123456789a");
        say(s, "bc");
        ASSERT_OK(resha_stream_buffer(s, 0));
        ASSERT_EQ(resha_stream_buffered(s), 2);
        say(s, "d");
        ASSERT_STR(t.data, "0123456789abcd");
        say(s, "e");
        ASSERT_STR(t.data, "0123456789abcde");
        ASSERT_EQ(resha_stream_buffer(s, SIZE_MAX), -EINVAL);
        return 0;
}

/* Writes of all kinds, one behind the other; what each says it has taken. */
static size_t write_mixed(resha_stream *s, const struct text *text, int *ret_rc)
{
        size_t taken = 0, at = 0;
        int rc = 0;

        for (unsigned i = 0; rc == 0 && at < 300; i++) {
                size_t size = 1 + i * 5 % 23, written = 0;
                struct iovec parts[2] = { { (char *)(uintptr_t)text->data + at, size / 2 },
                                          { (char *)(uintptr_t)text->data + at + size / 2, size - size / 2 } };
                if (i % 3 == 0)
                        rc = resha_write_vec(s, parts, 2, &written);
                else
                        rc = resha_write_all(s, text->data + at, size, &written);
                taken += written;
                at += size;
                ASSERT_TRUE(rc < 0 ? written <= size : written == size);
                if (rc == 0 && i % 7 == 6)
                        rc = resha_flush(s);
        }
        *ret_rc = rc;
        return taken;
}

TASK(where_a_write_fails_all_that_was_taken_is_accounted_for)
{
        struct text text;

        text_make(&text);
        for (size_t fails_at = 0; fails_at < 300; fails_at++) {
                for (size_t mark = 0; mark <= 40; mark += 10) {
                        struct tape t = { .step = 1 + fails_at % 13, .fails_at = fails_at };
                        resha_stream *s RESHA_CLEANUP(resha_stream_closep) = NULL;
                        int rc;
                        ASSERT_OK(resha_stream_new(both[fails_at % 2], &t, &s));
                        ASSERT_OK(resha_stream_buffer(s, mark));
                        size_t taken = write_mixed(s, &text, &rc);
                        if (rc == 0)
                                rc = resha_flush(s);
                        ASSERT_EQ(rc, -ECONNRESET);
                        ASSERT_EQ(t.size, fails_at);
                        ASSERT_EQ(taken, t.size + resha_stream_buffered(s));
                        ASSERT_EQ(memcmp(t.data, text.data, t.size), 0);
                        unsigned calls = t.calls;
                        ASSERT_EQ(resha_write_all(s, "x", 1, &taken), -ECONNRESET); /* and every later call says so */
                        ASSERT_EQ(taken, 0);
                        ASSERT_EQ(resha_write_vec(s, text.parts, 9, NULL), -ECONNRESET);
                        ASSERT_EQ(resha_flush(s), -ECONNRESET);
                        ASSERT_EQ(t.calls, calls);
                }
        }
        return 0;
}

/* ---- cancelled at any moment ---- */

struct sender {
        resha_stream *stream;
        uint32_t next; /* number */
        size_t skip;   /* bytes of it that were taken */
        unsigned turn;
};

/* The next few numbers, in one of several ways. */
static int send_some(void *arg)
{
        struct sender *s = arg;
        uint32_t numbers[64];
        size_t n = 1 + s->turn % 64, written = 0;

        for (uint32_t i = 0; i < n; i++)
                numbers[i] = s->next + i;
        char *data = (char *)numbers + s->skip;
        size_t size = n * sizeof numbers[0] - s->skip;
        struct iovec parts[3] = { { data, 1 }, { data + 1, size / 3 }, { data + 1 + size / 3, size - 1 - size / 3 } };
        int rc = s->turn % 3 ? resha_write_all(s->stream, data, size, &written)
                             : resha_write_vec(s->stream, parts, 3, &written);
        written += s->skip;
        s->next += (uint32_t)(written / sizeof numbers[0]);
        s->skip = written % sizeof numbers[0];
        if (rc == 0 && s->turn % 5 == 0)
                rc = resha_flush(s->stream);
        return rc;
}

static int send_with_cancels(void *arg)
{
        struct sender s = { .stream = arg };
        int rc = 0;

        for (; s.next < 3000; s.turn++) {
                rc = resha_stream_buffer(s.stream, s.turn % 4 * 50);
                if (rc == 0)
                        rc = resha_timeout(RESHA_US(s.turn % 37), send_some, &s);
                if (rc < 0 && rc != -ETIME)
                        return rc;
        }
        rc = resha_flush(s.stream);
        return rc < 0 ? rc : resha_stream_shutdown(s.stream);
}

static int numbers_arrive(void *unused)
{
        uint32_t number, expected = 0;
        ssize_t n;

        (void)unused;
        PAIR(p);
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, send_with_cancels, p.here);
        while ((n = resha_read_exactly(p.there, &number, sizeof number)) == sizeof number)
                ASSERT_EQ(number, expected++);
        ASSERT_TRUE(n >= 0);
        ASSERT_TRUE(expected >= 3000);
        return resha_group_end(&g, 0);
}

TEST(no_byte_is_lost_doubled_or_reordered_by_cancels_of_writes)
{
        RUN_SEEDS(numbers_arrive, NULL, 30);
}

/* ---- the end of what is kept ---- */

static void on_report(const resha_report *r, void *arg)
{
        if (r->kind == RESHA_REPORT_DROPPED) {
                ++*(unsigned *)arg;
                ASSERT_HAS(r->text, "3 bytes");
        }
}

enum ending { CLOSED, ABORTED, FAILED, FLUSHED };

static int end_with_bytes(void *arg)
{
        struct tape t = { .step = 100, .fails_at = SIZE_MAX };
        enum ending how = *(enum ending *)arg;
        resha_stream *s;

        ASSERT_OK(resha_stream_new(&whole_ops, &t, &s));
        ASSERT_OK(resha_stream_buffer(s, 10));
        say(s, "abc");
        if (how == ABORTED)
                resha_stream_abort(s);
        t.fails_at = how == FAILED ? 0 : t.fails_at;
        if (how == FAILED || how == FLUSHED)
                ASSERT_EQ(resha_flush(s), how == FAILED ? -ECONNRESET : 0);
        resha_stream_close(s);
        ASSERT_EQ(t.size, how == FLUSHED ? 3 : 0);
        return 0;
}

TEST(a_close_that_drops_kept_bytes_is_reported)
{
        for (enum ending how = CLOSED; how <= FLUSHED; how++) {
                unsigned reports = 0;
                ASSERT_OK(test_run_opts(end_with_bytes, &how,
                                        &(resha_run_opts){ .report = on_report, .report_arg = &reports }));
                ASSERT_EQ(reports, how == CLOSED);
        }
}

TASK(a_shutdown_does_not_pass_by_kept_bytes)
{
        struct tape t = { .step = 100, .fails_at = SIZE_MAX };
        resha_stream *s RESHA_CLEANUP(resha_stream_closep) = NULL;

        ASSERT_OK(resha_stream_new(&whole_ops, &t, &s));
        ASSERT_OK(resha_stream_buffer(s, 10));
        say(s, "abc");
        ASSERT_EQ(resha_stream_shutdown(s), -EBUSY);
        ASSERT_HAS(resha_error_of(-EBUSY)->text, "resha_flush");
        ASSERT_FALSE(t.ended);
        ASSERT_OK(resha_flush(s));
        ASSERT_OK(resha_stream_shutdown(s));
        ASSERT_TRUE(t.ended);
        for (int i = 0; i < 2; i++) {
                ASSERT_EQ(resha_write_all(s, "x", 1, NULL), -EPIPE);
                ASSERT_EQ(resha_write_vec(s, &(struct iovec){ "x", 1 }, 1, NULL), -EPIPE);
                ASSERT_OK(resha_flush(s)); /* nothing is left to send */
                ASSERT_OK(resha_stream_shutdown(s));
        }
        return 0;
}

static int write_for_ever(void *arg)
{
        static const char much[4096];
        int rc = 0;

        while (rc == 0)
                rc = resha_write_all(arg, much, sizeof much, NULL);
        return rc;
}

TASK(the_buffer_stays_as_it_is_while_a_task_writes)
{
        PAIR(p);
        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        ASSERT_OK(resha_stream_buffer(p.here, 1024));
        resha_spawn(&g, write_for_ever, p.here);
        ASSERT_OK(resha_sleep(RESHA_MS(20)));
        ASSERT_EQ(resha_stream_buffer(p.here, 1 << 20), -EBUSY);
        ASSERT_EQ(resha_flush(p.here), -EBUSY);
        ASSERT_EQ(resha_write_vec(p.here, NULL, 0, NULL), -EBUSY);
        return resha_group_end(&g, 0);
}

/* ---- turns ---- */

static int count_turns(void *arg)
{
        int rc = 0;

        while (rc == 0) {
                ++*(unsigned *)arg;
                rc = resha_yield();
        }
        return rc;
}

/* What is done at once, by a kind of its own, too. */
TASK(writes_that_never_wait_let_others_run)
{
        static struct tape t = { .step = 1, .fails_at = SIZE_MAX };
        resha_stream *s RESHA_CLEANUP(resha_stream_closep) = NULL;
        unsigned turns = 0;
        RESHA_GROUP(g);

        ASSERT_OK(resha_stream_new(&plain_ops, &t, &s));
        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        resha_spawn(&g, count_turns, &turns);
        for (int i = 0; i < 640; i++)
                ASSERT_OK(resha_write_all(s, "x", 1, NULL));
        ASSERT_TRUE(turns >= 9);
        ASSERT_OK(resha_stream_buffer(s, 10000));
        turns = 0;
        for (int i = 0; i < 640; i++)
                ASSERT_OK(resha_write_all(s, "x", 1, NULL));
        ASSERT_TRUE(turns >= 9);
        turns = 0;
        ASSERT_OK(resha_flush(s)); /* a byte at a time */
        ASSERT_TRUE(turns >= 9);
        return resha_group_end(&g, 0);
}
