/* SPDX-License-Identifier: MIT */
/* Streams: what every kind has in common. A call enters (one reader, one writer, not closed), lets the kind's own
 * function do the work, and leaves.
 *
 * Bytes that a call has taken from the kind but does not deliver are kept in the stream's buffer, and every later
 * read takes them from there first: what is behind a line, and what a read_exactly() had when it failed. A stream
 * that is only read and written has no buffer, and neither call allocates.
 *
 * Closing: new calls are refused; the kind ends the waits of those that are inside, and frees its part; the stream is
 * freed when the last one has left. */

#include "net/stream.h"

#include <string.h>

#include <resha/alloc.h>

enum {
        LINE_MIN = 2,
        LINE_MAX_BYTES = 65536,
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

static int enter_read(resha_stream *s, struct rs_loop **ret_loop)
{
        int rc = enter(s, &s->reading, "reads", ret_loop);

        if (RS_LIKELY(rc < 0 || !s->lost))
                return rc;
        leave(s, &s->reading);
        return resha_fail_at(-ENOMEM, NULL, "bytes of this stream were lost for lack of memory");
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
                s->lost = true;
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
        int rc = enter_read(s, &l);

        if (RS_UNLIKELY(rc < 0))
                return rc;
        ssize_t n;
        if (RS_UNLIKELY(buffered(s) || !size))
                n = rs_complete(l, (int)take(s, buf, size < INT32_MAX ? size : INT32_MAX));
        else
                n = s->ops->read(s->impl, buf, size);
        leave(s, &s->reading);
        return n;
}

/* Bytes, fewer than size at the end, or negative with *ret_done bytes in buf. */
static ssize_t read_full(resha_stream *s, char *buf, size_t size, size_t *ret_done)
{
        struct rs_loop *l;

        *ret_done = take(s, buf, size);
        while (*ret_done < size) {
                ssize_t n = s->ops->read(s->impl, buf + *ret_done, size - *ret_done);
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
        int rc = enter_read(s, &l);

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

/* The length of the line at the start of the buffer; the rest of the stream, if that is a line without an end. 0 at
 * the end, -EMSGSIZE for more than `most` bytes, or what reading said: then all bytes are in the buffer still. */
static ssize_t find_line(resha_stream *s, size_t most)
{
        struct rs_loop *l;
        size_t seen = 0;

        for (;;) {
                size_t n = buffered(s) < most ? buffered(s) : most;
                const char *line = n > seen ? s->buffer + s->start : NULL; /* there is no buffer at first */
                const char *end = line ? memchr(line + seen, '\n', n - seen) : NULL;
                if (end)
                        return end - line + 1;
                if (n == most)
                        return resha_fail_at(-EMSGSIZE, NULL, "a line of more than %zu bytes", most);
                seen = n;
                int rc = make_room(s);
                if (rc < 0)
                        return rc;
                ssize_t got = s->ops->read(s->impl, s->buffer + s->end, s->capacity - s->end);
                if (got <= 0)
                        return got < 0 ? got : (ssize_t)n;
                s->end += (size_t)got;
                if ((rc = rs_enter(&l)) < 0)
                        return rc;
        }
}

ssize_t resha_read_line(resha_stream *s, char *buf, size_t size)
{
        struct rs_loop *l;
        int rc = enter_read(s, &l);

        if (rc < 0)
                return rc;
        ssize_t n = -EINVAL;
        bool at_once = buffered(s) > 0;
        if (size >= LINE_MIN && size <= LINE_MAX_BYTES)
                n = find_line(s, size - 1);
        if (n >= 0) {
                take(s, buf, (size_t)n);
                buf[n] = '\0';
        }
        if (at_once)
                (void)rs_complete(l, 0);
        leave(s, &s->reading);
        return n;
}

/* ---- writing ---- */

static int write_rest(resha_stream *s, const char *data, size_t size, size_t *done)
{
        struct rs_loop *l;

        while (*done < size) {
                ssize_t n = s->ops->write(s->impl, data + *done, size - *done);
                if (n <= 0)
                        return n < 0 ? (int)n : -EIO;
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
        return s->ops->addr ? s->ops->addr(s->impl, peer, ret_addr) : -EOPNOTSUPP;
}

/* ---- beginning and end ---- */

int resha_stream_new(const resha_stream_ops *ops, void *impl, resha_stream **ret_stream)
{
        struct rs_loop *l = rs_loop_current;

        if (!l)
                return -EPERM;
        if (!rs_reserved_zero(ops->_reserved))
                return -EINVAL;
        resha_stream *s = resha_calloc(1, sizeof *s);
        if (!s)
                return -ENOMEM;
        s->ops = ops;
        s->impl = impl;
        s->loop = l;
        *ret_stream = s;
        return 0;
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
        resha_free(s->buffer);
        resha_free(s);
}

void resha_stream_closep(resha_stream **s)
{
        resha_stream_close(*s);
        *s = NULL;
}
