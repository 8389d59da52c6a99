/* SPDX-License-Identifier: MIT */
/* Streams: what every kind has in common. A call enters (one reader, one writer, not closed), lets the kind's own
 * function do the work, and leaves.
 *
 * Bytes that a call has taken from the kind but does not deliver are kept in the stream's buffer, and every later
 * read takes them from there first: what is behind a line, and what a read_exactly() had when it failed. A stream
 * that is only read and written has no buffer, and neither call allocates.
 *
 * A failure of the connection is told again by every later call that needs the connection. The kernel tells it once:
 * after a reset that a write has met, reading would find an end, as if the peer had said all.
 *
 * Closing: new calls are refused; the kind ends the waits of those that are inside, and frees its part; the stream is
 * freed when the last one has left. */

#include "net/stream.h"

#include <string.h>

#include <resha/alloc.h>

enum {
        PIECE_MIN = 2,
        PIECE_MAX = 1 << 24,
        BUFFER_FIRST = 4096,
};

/* ---- entering and leaving ---- */

static int refuse(const resha_stream *s, const struct rs_loop *l, const char *verb)
{
        if (s->loop != l)
                return resha_fail_at(-EPERM, NULL, "the %s stream belongs to another loop", s->ops->kind);
        if (s->closing)
                return resha_fail_at(-EBADF, NULL, "the stream is closed");
        return resha_fail_at(-EBUSY, NULL, "another task %s this %s stream", verb, s->ops->kind);
}

static inline int enter(resha_stream *s, bool *inside, const char *verb, struct rs_loop **ret_loop)
{
        int rc = rs_enter(ret_loop);

        if (RS_UNLIKELY(rc < 0))
                return rc;
        if (RS_UNLIKELY(s->loop != *ret_loop || s->closing || *inside))
                return refuse(s, *ret_loop, verb);
        *inside = true;
        return 0;
}

static inline void leave(resha_stream *s, bool *inside)
{
        *inside = false;
        if (RS_UNLIKELY(s->closer != NULL)) {
                struct rs_wait *w = s->closer;
                s->closer = NULL;
                rs_wake(w, 0);
        }
}

/* ---- failures ---- */

/* Codes that speak of the call, or of what the machine was short of; all others of the connection. */
static bool passes(int code)
{
        switch (code) {
        case -ECANCELED:
        case -ETIME:
        case -EBADF:
        case -EBUSY:
        case -EDEADLK:
        case -EPERM:
        case -EINVAL:
        case -EFAULT:
        case -EAGAIN:
        case -EINTR:
        case -ENOBUFS:
        case -ENOMEM: return true;
        default: return false;
        }
}

static __attribute__((noinline, cold)) int failed_before(const resha_stream *s, int code)
{
        if (code == -ENOMEM)
                return resha_fail_at(code, NULL, "bytes of this stream were lost for lack of memory");
        return resha_fail_at(code, NULL, "the %s connection has failed: %s", s->ops->kind, resha_strerror(code));
}

/* What reading gave when it gave no bytes. */
static __attribute__((noinline)) ssize_t no_bytes(resha_stream *s, int rc)
{
        if (rc == 0) {
                /* -EPIPE: the peer has ended before it broke off, or this end did. Then this is the end indeed. */
                if (!s->write_failed || s->write_failed == -EPIPE)
                        return 0;
                s->read_failed = s->write_failed;
                return failed_before(s, s->read_failed);
        }
        if (!passes(rc)) {
                s->read_failed = rc;
                if (!s->write_failed)
                        s->write_failed = rc;
        }
        return rc;
}

/* Some bytes of the kind, 0 at the end, or negative. */
static inline ssize_t pull(resha_stream *s, void *buf, size_t size)
{
        if (RS_UNLIKELY(s->read_failed))
                return failed_before(s, s->read_failed);
        ssize_t n = s->ops->read(s->impl, buf, size);
        return RS_LIKELY(n > 0) ? n : no_bytes(s, (int)n);
}

/* ---- the buffer ---- */

static size_t buffered(const resha_stream *s)
{
        return s->end - s->start;
}

static size_t take(resha_stream *s, void *buf, size_t size)
{
        size_t n = buffered(s) < size ? buffered(s) : size;

        if (n)
                memcpy(buf, s->buffer + s->start, n);
        s->start += n;
        if (s->start == s->end)
                s->start = s->end = 0;
        return n;
}

static int grow(resha_stream *s, size_t capacity)
{
        if (capacity <= s->capacity)
                return 0;
        char *buffer = resha_realloc(s->buffer, capacity);
        if (!buffer)
                return -ENOMEM;
        s->buffer = buffer;
        s->capacity = capacity;
        return 0;
}

/* The buffer is empty: what a failed call had taken is all there is. */
static void put_back(resha_stream *s, const void *data, size_t n)
{
        if (!n)
                return;
        if (grow(s, n) < 0) {
                s->read_failed = -ENOMEM;
                return;
        }
        memcpy(s->buffer, data, n);
        s->start = 0;
        s->end = n;
}

/* Room behind the bytes in the buffer. */
static int make_room(resha_stream *s)
{
        if (s->end < s->capacity)
                return 0;
        if (s->start == 0)
                return grow(s, s->capacity ? s->capacity * 2 : BUFFER_FIRST);
        memmove(s->buffer, s->buffer + s->start, buffered(s));
        s->end -= s->start;
        s->start = 0;
        return 0;
}

/* ---- reading ---- */

ssize_t resha_read(resha_stream *s, void *buf, size_t size)
{
        struct rs_loop *l;
        int rc = enter(s, &s->reading, "reads", &l);

        if (RS_UNLIKELY(rc < 0))
                return rc;
        ssize_t n;
        if (RS_UNLIKELY(buffered(s) || !size))
                n = rs_complete(l, (int)take(s, buf, size < INT32_MAX ? size : INT32_MAX));
        else
                n = pull(s, buf, size);
        leave(s, &s->reading);
        return n;
}

/* Bytes, fewer than size at the end, or negative with *ret_done bytes in buf. */
static ssize_t read_full(resha_stream *s, char *buf, size_t size, size_t *ret_done)
{
        struct rs_loop *l;

        *ret_done = take(s, buf, size);
        while (*ret_done < size) {
                ssize_t n = pull(s, buf + *ret_done, size - *ret_done);
                if (n <= 0)
                        return n < 0 ? n : (ssize_t)*ret_done;
                *ret_done += (size_t)n;
                int rc = *ret_done < size ? rs_enter(&l) : 0;
                if (rc < 0)
                        return rc;
        }
        return (ssize_t)size;
}

ssize_t resha_read_exactly(resha_stream *s, void *buf, size_t size)
{
        struct rs_loop *l;
        size_t done;
        int rc = enter(s, &s->reading, "reads", &l);

        if (rc < 0)
                return rc;
        bool at_once = buffered(s) >= size;
        ssize_t n = read_full(s, buf, size, &done);
        if (n < 0)
                put_back(s, buf, done);
        if (at_once)
                (void)rs_complete(l, 0);
        leave(s, &s->reading);
        return n;
}

/* ---- up to a separator ---- */

struct search {
        const resha_separator *separators;
        size_t count;
        size_t which; /* found; count: none */
};

static size_t size_of(const resha_separator *p)
{
        return p->size ? p->size : strlen(p->text);
}

static const char *find_bytes(const char *data, size_t size, const char *text, size_t length)
{
        return length == 1 ? memchr(data, text[0], size) : memmem(data, size, text, length);
}

/* How many bytes the separator that ends first ends, of those of data; no whole one lies in the first `seen` of them.
 * 0: there is none. Of two that end together it is the one that the caller named first. */
static size_t search(struct search *q, const char *data, size_t seen, size_t size)
{
        size_t found = 0;

        q->which = q->count;
        for (size_t i = 0; i < q->count; i++) {
                size_t length = size_of(&q->separators[i]), from = seen < length ? 0 : seen - length + 1;
                if (from + length > size)
                        continue;
                const char *at = find_bytes(data + from, size - from, q->separators[i].text, length);
                if (!at)
                        continue;
                found = (size_t)(at - data) + length;
                size = found - 1; /* the next must end before */
                q->which = i;
        }
        return found;
}

static int does_not_fit(const resha_stream *s, struct search *q, size_t most)
{
        size_t end = search(q, s->buffer + s->start, most, buffered(s));

        if (end)
                return resha_fail_at(-EMSGSIZE, NULL, "the separator ends at byte %zu, and there is room for %zu", end,
                                     most);
        return resha_fail_at(-EMSGSIZE, NULL, "no separator in the first %zu bytes, and there is room for %zu",
                             buffered(s), most);
}

/* How many bytes there are up to a separator, at the start of the buffer; up to the end of the stream, if there is
 * none. 0 at the end, -EMSGSIZE for more than `most`, or what reading said: then all bytes are in the buffer still. */
static ssize_t find_piece(resha_stream *s, struct search *q, size_t most)
{
        struct rs_loop *l;
        size_t seen = 0;

        for (;;) {
                size_t n = buffered(s) < most ? buffered(s) : most;
                size_t end = n > seen ? search(q, s->buffer + s->start, seen, n) : 0; /* there is no buffer at first */
                if (end)
                        return (ssize_t)end;
                if (n == most)
                        return does_not_fit(s, q, most);
                seen = n;
                int rc = make_room(s);
                if (rc < 0)
                        return rc;
                ssize_t got = pull(s, s->buffer + s->end, s->capacity - s->end);
                if (got <= 0)
                        return got < 0 ? got : (ssize_t)n;
                s->end += (size_t)got;
                if ((rc = rs_enter(&l)) < 0)
                        return rc;
        }
}

static ssize_t read_piece(resha_stream *s, struct search *q, char *buf, size_t size)
{
        struct rs_loop *l;
        int rc = enter(s, &s->reading, "reads", &l);

        if (rc < 0)
                return rc;
        ssize_t n = -EINVAL;
        bool at_once = buffered(s) > 0;
        if (size >= PIECE_MIN && size <= PIECE_MAX)
                n = find_piece(s, q, size - 1);
        if (n >= 0) {
                take(s, buf, (size_t)n);
                buf[n] = '\0';
        }
        if (at_once)
                (void)rs_complete(l, 0);
        leave(s, &s->reading);
        return n;
}

ssize_t resha_read_line(resha_stream *s, char *buf, size_t size)
{
        static const resha_separator newline = { "\n", 1 };
        struct search q = { .separators = &newline, .count = 1, .which = 1 };

        return read_piece(s, &q, buf, size);
}

ssize_t resha_read_until(resha_stream *s, const resha_separator *separators, size_t n, char *buf, size_t size,
                         size_t *ret_which)
{
        struct search q = { .separators = separators, .count = n, .which = n };
        bool valid = n > 0;

        for (size_t i = 0; valid && i < n; i++)
                valid = separators[i].text && size_of(&separators[i]) > 0;
        if (!valid)
                q.count = size = 0; /* refused there, after what every call looks at first */
        ssize_t got = read_piece(s, &q, buf, size);
        if (got >= 0 && ret_which)
                *ret_which = q.which;
        return got;
}

/* ---- writing ---- */

static int not_written(resha_stream *s, int rc)
{
        if (!passes(rc))
                s->write_failed = rc;
        return rc;
}

static int write_rest(resha_stream *s, const char *data, size_t size, size_t *done)
{
        struct rs_loop *l;

        while (*done < size) {
                ssize_t n = s->ops->write(s->impl, data + *done, size - *done);
                if (RS_UNLIKELY(n <= 0))
                        return not_written(s, n < 0 ? (int)n : -EIO);
                *done += (size_t)n;
                int rc = RS_UNLIKELY(*done < size) ? rs_enter(&l) : 0;
                if (rc < 0)
                        return rc;
        }
        return 0;
}

int resha_write_all(resha_stream *s, const void *data, size_t size, size_t *ret_written)
{
        struct rs_loop *l;
        size_t done = 0;
        int rc = enter(s, &s->writing, "writes", &l);

        if (RS_LIKELY(rc == 0)) {
                if (RS_UNLIKELY(s->write_failed))
                        rc = failed_before(s, s->write_failed);
                else
                        rc = write_rest(s, data, size, &done);
                leave(s, &s->writing);
        }
        if (ret_written)
                *ret_written = done;
        return rc;
}

int resha_stream_shutdown(resha_stream *s)
{
        if (s->loop != rs_loop_current || s->closing)
                return refuse(s, rs_loop_current, "closes");
        return s->ops->shutdown(s->impl);
}

int resha_stream_addr(resha_stream *s, bool peer, resha_addr *ret_addr)
{
        if (s->loop != rs_loop_current || s->closing)
                return refuse(s, rs_loop_current, "closes");
        if (!s->ops->addr)
                return resha_fail_at(-EOPNOTSUPP, NULL, "this kind of stream has no addresses");
        return s->ops->addr(s->impl, peer, ret_addr);
}

/* ---- beginning and end ---- */

int resha_stream_new(const resha_stream_ops *ops, void *impl, resha_stream **ret_stream)
{
        struct rs_loop *l = rs_loop_current;

        if (!l)
                return -EPERM;
        for (size_t i = 0; i < sizeof ops->_reserved / sizeof ops->_reserved[0]; i++)
                if (ops->_reserved[i])
                        return resha_fail_at(-EINVAL, NULL, "a reserved word of stream operations is not zero");
        resha_stream *s = resha_calloc(1, sizeof *s);
        if (!s)
                return -ENOMEM;
        s->ops = ops;
        s->impl = impl;
        s->loop = l;
        l->open++;
        *ret_stream = s;
        return 0;
}

void resha_stream_abort(resha_stream *s)
{
        if (s->loop != rs_loop_current || s->closing)
                return;
        if (!s->read_failed)
                s->read_failed = -ECONNABORTED;
        if (!s->write_failed)
                s->write_failed = -ECONNABORTED;
        if (s->ops->abort)
                s->ops->abort(s->impl);
}

void rs_stream_wait_idle(resha_stream *s)
{
        while (s->reading || s->writing) {
                struct rs_wait w = { .what = "close", .object = s };

                s->closer = &w;
                rs_wait(s->loop, &w);
        }
}

void resha_stream_close(resha_stream *s)
{
        struct rs_loop *l;

        if (!s || s->closing)
                return;
        int rc = rs_enter_shielded(&l);
        if (s->loop != rs_loop_current || (rc < 0 && (s->reading || s->writing)))
                return; /* nobody could wait for those inside: rather a leak than a stream that is gone under them */
        s->closing = true;
        s->ops->close(s->impl);
        rs_stream_wait_idle(s);
        s->loop->open--;
        resha_free(s->buffer);
        resha_free(s);
}

void resha_stream_closep(resha_stream **s)
{
        resha_stream_close(*s);
        *s = NULL;
}
