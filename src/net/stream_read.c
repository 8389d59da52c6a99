/* SPDX-License-Identifier: MIT */
/* Reading streams: what is there, exactly so much, up to a separator.
 *
 * Bytes that a call has taken from the kind but does not deliver are kept in the stream, and every later read takes
 * them from there first: what is behind a line, and what a read_exactly() had when it failed. A stream that is only
 * read has no buffer, and resha_read() never allocates. */

#include "net/stream.h"

enum {
        PIECE_MIN = 2,
        PIECE_MAX = 1 << 24,
        BUFFER_FIRST = 4096,
};

/* What reading gave when it gave no bytes. */
static __attribute__((noinline)) ssize_t no_bytes(resha_stream *s, int rc)
{
        if (rc == 0) {
                /* -EPIPE: the peer has ended before it broke off, or this end did. Then this is the end indeed. */
                if (!s->write_failed || s->write_failed == -EPIPE)
                        return 0;
                s->read_failed = s->write_failed;
                return rs_stream_failed_before(s, s->read_failed);
        }
        if (!rs_stream_passes(rc)) {
                s->read_failed = rc;
                if (!s->write_failed)
                        s->write_failed = rc;
        }
        return rc;
}

static inline __attribute__((always_inline)) ssize_t pull(resha_stream *s, void *buf, size_t size)
{
        if (RS_UNLIKELY(s->read_failed))
                return rs_stream_failed_before(s, s->read_failed);
        ssize_t n = s->ops->read(s->impl, buf, size);
        rs_stream_count(s);
        return RS_LIKELY(n > 0) ? n : no_bytes(s, (int)n);
}

ssize_t rs_stream_pull(resha_stream *s, void *buf, size_t size)
{
        return pull(s, buf, size);
}

/* ---- the buffer ---- */

static size_t take(resha_stream *s, void *buf, size_t size)
{
        size_t n = rs_span_size(&s->in) < size ? rs_span_size(&s->in) : size;

        if (n)
                memcpy(buf, s->in.data + s->in.start, n);
        rs_span_skip(&s->in, n);
        return n;
}

/* The buffer is empty: what a failed call had taken is all there is. */
static void put_back(resha_stream *s, const void *data, size_t n)
{
        if (!n)
                return;
        if (rs_span_grow(&s->in, n) < 0) {
                s->read_failed = -ENOMEM;
                return;
        }
        memcpy(s->in.data, data, n);
        s->in.start = 0;
        s->in.end = n;
}

/* Room behind the bytes in the buffer. */
static int make_room(struct rs_span *in)
{
        if (in->end < in->capacity)
                return 0;
        if (in->start == 0)
                return rs_span_grow(in, in->capacity ? in->capacity * 2 : BUFFER_FIRST);
        rs_span_pack(in);
        return 0;
}

size_t resha_stream_unread(const resha_stream *s)
{
        return rs_span_size(&s->in);
}

/* ---- reading ---- */

ssize_t resha_read(resha_stream *s, void *buf, size_t size)
{
        struct rs_loop *l;
        int rc = rs_stream_enter(s, &s->reading, "reads", &l);

        if (RS_UNLIKELY(rc < 0))
                return rc;
        ssize_t n;
        if (RS_UNLIKELY(rs_span_size(&s->in) || !size))
                n = rs_complete(l, (int)take(s, buf, size < INT32_MAX ? size : INT32_MAX));
        else
                n = pull(s, buf, size);
        rs_stream_leave(s, &s->reading);
        return n;
}

/* Bytes, fewer than size at the end, or negative with *ret_done bytes in buf. */
static ssize_t read_full(resha_stream *s, char *buf, size_t size, size_t *ret_done)
{
        *ret_done = take(s, buf, size);
        while (*ret_done < size) {
                ssize_t n = pull(s, buf + *ret_done, size - *ret_done);
                if (n <= 0)
                        return n < 0 ? n : (ssize_t)*ret_done;
                *ret_done += (size_t)n;
                int rc = *ret_done < size ? rs_stream_go_on(s, &s->read_failed) : 0;
                if (rc < 0)
                        return rc;
        }
        return (ssize_t)size;
}

ssize_t resha_read_exactly(resha_stream *s, void *buf, size_t size)
{
        struct rs_loop *l;
        size_t done;
        int rc = rs_stream_enter(s, &s->reading, "reads", &l);

        if (rc < 0)
                return rc;
        bool at_once = rs_span_size(&s->in) >= size;
        ssize_t n = read_full(s, buf, size, &done);
        if (n < 0)
                put_back(s, buf, done);
        if (at_once)
                (void)rs_complete(l, 0);
        rs_stream_leave(s, &s->reading);
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
        size_t end = search(q, s->in.data + s->in.start, most, rs_span_size(&s->in));

        if (end)
                return resha_fail_at(-EMSGSIZE, NULL, "the separator ends at byte %zu, and there is room for %zu", end,
                                     most);
        return resha_fail_at(-EMSGSIZE, NULL, "no separator in the first %zu bytes, and there is room for %zu",
                             rs_span_size(&s->in), most);
}

/* How many bytes there are up to a separator, at the start of the buffer; up to the end of the stream, if there is
 * none. 0 at the end, -EMSGSIZE for more than `most`, or what reading said: then all bytes are in the buffer still. */
static ssize_t find_piece(resha_stream *s, struct search *q, size_t most)
{
        size_t seen = 0;

        for (;;) {
                size_t n = rs_span_size(&s->in) < most ? rs_span_size(&s->in) : most;
                /* there is no buffer at first */
                size_t end = n > seen ? search(q, s->in.data + s->in.start, seen, n) : 0;
                if (end)
                        return (ssize_t)end;
                if (rs_span_size(&s->in) > most)
                        return does_not_fit(s, q, most);
                seen = n; /* as many as there is room for: it fits if this is the end, so it has to look */
                int rc = make_room(&s->in);
                if (rc < 0)
                        return rc;
                ssize_t got = pull(s, s->in.data + s->in.end, s->in.capacity - s->in.end);
                if (got <= 0)
                        return got < 0 ? got : (ssize_t)n;
                s->in.end += (size_t)got;
                if ((rc = rs_stream_go_on(s, &s->read_failed)) < 0)
                        return rc;
        }
}

static ssize_t read_piece(resha_stream *s, struct search *q, char *buf, size_t size)
{
        struct rs_loop *l;
        int rc = rs_stream_enter(s, &s->reading, "reads", &l);

        if (rc < 0)
                return rc;
        ssize_t n = -EINVAL;
        bool at_once = rs_span_size(&s->in) > 0;
        if (size >= PIECE_MIN && size <= PIECE_MAX)
                n = find_piece(s, q, size - 1);
        if (n >= 0) {
                take(s, buf, (size_t)n);
                buf[n] = '\0';
        }
        if (at_once)
                (void)rs_complete(l, 0);
        rs_stream_leave(s, &s->reading);
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
