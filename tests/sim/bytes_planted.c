/* SPDX-License-Identifier: MIT */
/* The law of streams can be broken: streams around the real ones, each with a bug as people make them, are found
 * out. */

#include "bytes_law.h"
#include "planted.h"

struct around {
        resha_stream *inner;
};

/* ---- without a bug ---- */

static ssize_t plain_read(void *impl, void *buf, size_t size)
{
        return resha_read(((struct around *)impl)->inner, buf, size);
}

/* At most 7 at once. */
static ssize_t plain_write(void *impl, const void *data, size_t size)
{
        size_t n = size < 7 ? size : 7, written;
        int rc = resha_write_all(((struct around *)impl)->inner, data, n, &written);

        return written > 0 ? (ssize_t)written : rc;
}

static int around_shutdown(void *impl)
{
        return resha_stream_shutdown(((struct around *)impl)->inner);
}

static void around_abort(void *impl)
{
        resha_stream_abort(((struct around *)impl)->inner);
}

static void around_close(void *impl)
{
        struct around *a = impl;

        resha_stream_close(a->inner);
        resha_free(a);
}

/* ---- with one ---- */

/* What was read is lost if the wait behind it is cancelled. */
static ssize_t read_and_lose(void *impl, void *buf, size_t size)
{
        ssize_t n = plain_read(impl, buf, size);
        int rc = n > 0 ? resha_sleep(RESHA_US(50)) : 0;

        return rc < 0 ? rc : n;
}

/* What was written is not told if the wait behind it is cancelled, and is written again. */
static ssize_t write_and_forget(void *impl, const void *data, size_t size)
{
        ssize_t n = plain_write(impl, data, size);
        int rc = n > 0 ? resha_sleep(RESHA_US(50)) : 0;

        return rc < 0 ? rc : n;
}

/* Two bytes that lie in the way of each other, now and then. */
static ssize_t write_crosswise(void *impl, const void *data, size_t size)
{
        const char *bytes = data;
        char crossed[2];

        if (size < 2 || resha_test_random() % 16)
                return plain_write(impl, data, size);
        crossed[0] = bytes[1];
        crossed[1] = bytes[0];
        return plain_write(impl, crossed, 2);
}

/* A failure, a cancel among them, that is taken for the end. */
static ssize_t read_to_any_end(void *impl, void *buf, size_t size)
{
        ssize_t n = plain_read(impl, buf, size);

        return n < 0 ? 0 : n;
}

/* Says that all was taken, when it was not. */
static ssize_t write_boasting(void *impl, const void *data, size_t size)
{
        ssize_t n = plain_write(impl, data, size);

        return n == 7 ? (ssize_t)(size < 8 ? size : 8) : n;
}

/* ---- found ---- */

#define AROUND(r, w) \
        { \
                .kind = "planted", .read = (r), .write = (w), .shutdown = around_shutdown, .close = around_close, \
                .abort = around_abort, \
        }

static const resha_stream_ops no_bug = AROUND(plain_read, plain_write), loses = AROUND(read_and_lose, plain_write),
                              doubles = AROUND(plain_read, write_and_forget),
                              crosses = AROUND(plain_read, write_crosswise),
                              ends = AROUND(read_to_any_end, plain_write), boasts = AROUND(plain_read, write_boasting);
static const resha_stream_ops *planted_ops;

static resha_stream *wrap(resha_stream *s)
{
        struct around *a = s ? resha_malloc(sizeof *a) : NULL;
        resha_stream *outer;

        if (!a) {
                resha_stream_close(s);
                return NULL;
        }
        a->inner = s;
        if (resha_stream_new(planted_ops, a, &outer) < 0) {
                around_close(a);
                return NULL;
        }
        return outer;
}

static int planted_main(void *arg)
{
        return bytes_converse(arg, 400);
}

static const struct planted law = {
        planted_main,
        { .state = sizeof(struct bytes), .check = bytes_check, .seeds = 20, .no_allocs = true, .no_operations = true }
};

static void find(const resha_stream_ops *ops, const char *where)
{
        planted_ops = ops;
        bytes_wrap = wrap;
        must_be_found(&law, where);
}

TEST(what_has_no_bug_keeps_the_law)
{
        resha_test_opts o = law.opts;

        o.most = 10;
        planted_ops = &no_bug;
        bytes_wrap = wrap;
        run_scenario("planted_main", law.fn, &o);
}
TEST(planted_bytes_lost_by_a_cancel)
{
        find(&loses, "bytes_law.c");
}
TEST(planted_bytes_doubled_by_a_cancel)
{
        find(&doubles, "bytes_law.c");
}
TEST(planted_bytes_out_of_order)
{
        find(&crosses, "memcmp");
}
TEST(planted_end_before_the_bytes)
{
        find(&ends, "bytes_law.c");
}
TEST(planted_bytes_that_were_never_written)
{
        find(&boasts, "bytes_law.c");
}
