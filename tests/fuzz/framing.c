/* SPDX-License-Identifier: MIT */
/* Framing: bytes that come in steps of any size, late or at once, are read in pieces of any kind, some under a timeout.
 * What is read may depend on the bytes alone: each call is compared with what a look at all of them says.
 *
 * An input is two bytes with the number of content bytes, a byte of flags, the content, and then orders: what is done
 * and how the bytes come. */

#include "fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <resha/alloc.h>
#include <resha/resha.h>

enum { CALLS_MAX = 100, BUF_MAX = 1 << 15, SEPARATORS_MAX = 3 };

enum { ENDS_BADLY = 1, COMES_LATE = 2 }; /* flags */

static const resha_separator known[] = {
        { .text = "\n" }, { .text = "\r\n" }, { .text = "\r\n\r\n" }, { .text = "a" },
        { .text = "ab" }, { .text = "aba" },  { .text = "aab" },      { .text = "bb" },
        { "\0", 1 },      { "\0\0", 2 },      { .text = "abababac" }, { .text = "\n\n" },
};

struct tape {
        const uint8_t *content, *orders;
        size_t size, at, done; /* bytes of content: all, read from the tape, read by the test */
        size_t left;           /* orders */
        unsigned flags;
};

/* What a call is, and what it says. */
struct call {
        struct tape *tape;
        resha_stream *stream;
        unsigned kind;
        size_t size, which, n;
        resha_separator separators[SEPARATORS_MAX];
        char *buf;
        ssize_t got;
};

static void hold(bool ok)
{
        if (!ok)
                abort();
}

static unsigned order(struct tape *t)
{
        if (t->left == 0)
                return 0;
        t->left--;
        return *t->orders++;
}

/* ---- the stream ---- */

static ssize_t tape_read(void *impl, void *buf, size_t size)
{
        struct tape *t = impl;
        unsigned how = order(t);
        size_t n = how % 61 + 1;

        if (t->flags & COMES_LATE) {
                int rc = resha_sleep(RESHA_MS(how / 61));
                if (rc < 0)
                        return rc;
        }
        n = n < size ? n : size;
        n = n < t->size - t->at ? n : t->size - t->at;
        if (n == 0)
                return size > 0 && (t->flags & ENDS_BADLY) ? -ECONNRESET : 0;
        memcpy(buf, t->content + t->at, n);
        t->at += n;
        return (ssize_t)n;
}

static void tape_close(void *impl)
{
        (void)impl;
}

static const resha_stream_ops tape_ops = { .kind = "tape", .read = tape_read, .close = tape_close };

/* ---- what it must be ---- */

static ssize_t at_the_end(const struct tape *t)
{
        return t->flags & ENDS_BADLY ? -ECONNRESET : 0;
}

/* Whether a separator ends behind `n` bytes of what is left; the first one that does. */
static bool ends_at(const struct call *c, size_t n, size_t *ret_which)
{
        for (size_t i = 0; i < c->n; i++) {
                const resha_separator *s = &c->separators[i];
                size_t size = s->size ? s->size : strlen(s->text);
                if (size <= n && memcmp(c->tape->content + c->tape->done + n - size, s->text, size) == 0) {
                        *ret_which = i;
                        return true;
                }
        }
        return false;
}

static void check_until(const struct call *c, size_t left)
{
        size_t n = 1, which = c->n;

        while (n <= left && !ends_at(c, n, &which))
                n++;
        if (n > left)
                n = left;
        if (n > c->size - 1) {
                hold(c->got == -EMSGSIZE);
        } else if (which == c->n && at_the_end(c->tape) < 0) {
                hold(c->got == at_the_end(c->tape));
        } else {
                hold(c->got == (ssize_t)n && c->buf[n] == '\0');
                hold(c->kind != 3 || c->which == which);
        }
}

static void check(const struct call *c)
{
        const struct tape *t = c->tape;
        size_t left = t->size - t->done;

        switch (c->kind) {
        case 0:
                if (c->size == 0)
                        hold(c->got == 0);
                else if (left == 0)
                        hold(c->got == at_the_end(t));
                else
                        hold(c->got > 0 && (size_t)c->got <= (left < c->size ? left : c->size));
                break;
        case 1:
                if (c->size <= left)
                        hold(c->got == (ssize_t)c->size);
                else
                        hold(c->got == (at_the_end(t) < 0 ? at_the_end(t) : (ssize_t)left));
                break;
        default: check_until(c, left);
        }
        if (c->got > 0)
                hold(memcmp(c->buf, t->content + t->done, (size_t)c->got) == 0);
}

/* ---- the calls ---- */

static int make_call(void *arg)
{
        struct call *c = arg;

        switch (c->kind) {
        case 0: c->got = resha_read(c->stream, c->buf, c->size); break;
        case 1: c->got = resha_read_exactly(c->stream, c->buf, c->size); break;
        case 2: c->got = resha_read_line(c->stream, c->buf, c->size); break;
        default: c->got = resha_read_until(c->stream, c->separators, c->n, c->buf, c->size, &c->which);
        }
        return c->got < 0 ? (int)c->got : 0;
}

static void one_call(struct call *c)
{
        unsigned what = order(c->tape);

        c->kind = what & 3;
        c->size = order(c->tape) % (what & 4 ? 256 : 16);
        if (what & 8)
                c->size *= 100;
        if (c->kind >= 2 && c->size < 2)
                c->size = 2;
        c->n = c->kind == 2 ? 1 : 1 + (what >> 4) % SEPARATORS_MAX;
        for (size_t i = 0; i < c->n; i++)
                c->separators[i] = known[c->kind == 2 ? 0 : order(c->tape) % (sizeof known / sizeof known[0])];
        c->got = 1;
        if (!(what & 64)) {
                make_call(c);
        } else if (resha_timeout(RESHA_MS(order(c->tape) % 8), make_call, c) == -ETIME) {
                hold(c->got == -ECANCELED);
                return; /* and nothing has been lost, as the next call shows */
        }
        check(c);
        if (c->got > 0)
                c->tape->done += (size_t)c->got;
}

static int read_all(void *arg)
{
        struct call c = { .tape = arg };

        c.buf = resha_malloc(BUF_MAX);
        if (!c.buf || resha_stream_new(&tape_ops, arg, &c.stream) < 0)
                abort();
        for (int i = 0; i < CALLS_MAX && (c.tape->left > 0 || i < 10); i++)
                one_call(&c);
        resha_stream_close(c.stream);
        resha_free(c.buf);
        return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        const resha_run_opts opts = { .backend = "sim:0", .keep_sigint = true };

        if (size < 3)
                return 0;
        struct tape t = { .content = data + 3, .size = data[0] | (size_t)data[1] << 8, .flags = data[2] };
        if (t.size > size - 3)
                t.size = size - 3;
        t.orders = t.content + t.size;
        t.left = size - 3 - t.size;
        if (resha_run(read_all, &t, &opts) != 0)
                abort();
        return 0;
}
