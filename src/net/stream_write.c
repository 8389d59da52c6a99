/* SPDX-License-Identifier: MIT */
/* Writing streams: all of one piece, all of several, and what is kept back until there is more.
 *
 * A write without a buffer goes straight to the kind. With one,
 *
 *     kept + new <= mark     the new bytes are copied behind the kept ones
 *     kept + new >  mark     both go out, the kept ones first, in one gathered write; nothing is copied
 *
 * so that the order is that of the calls, and only what is small is copied. Whatever a write takes is first of the kept
 * bytes, then of the caller's: if it fails or is cancelled in the middle, the kept ones that are left stay, and the
 * caller learns how many of the others were taken. */

#include <limits.h>

#include "net/stream.h"

enum { MARK_MAX = 1 << 30 };

/* The caller's parts that are left. */
struct rest {
        const struct iovec *parts;
        size_t n;
        size_t skip; /* bytes of the first */
};

int rs_stream_not_written(resha_stream *s, ssize_t n)
{
        int rc = n < 0 ? (int)n : -EIO; /* a kind that takes nothing would be asked for ever */

        if (rs_stream_passes(rc))
                return rc;
        /* The reader was told how the connection broke, in this very moment, and the writer but that it has: EPIPE. */
        if (s->read_failed && s->write_failed == s->read_failed)
                return rs_stream_failed_before(s, s->write_failed);
        s->write_failed = rc;
        return rc;
}

/* ---- one piece, nothing kept ---- */

static int write_rest(resha_stream *s, const char *data, size_t size, size_t *done)
{
        while (*done < size) {
                ssize_t n = s->ops->write(s->impl, data + *done, size - *done);
                rs_stream_count(s);
                if (RS_UNLIKELY(n <= 0))
                        return rs_stream_not_written(s, n);
                *done += (size_t)n;
                int rc = RS_UNLIKELY(*done < size) ? rs_stream_go_on(s, &s->write_failed) : 0;
                if (rc < 0)
                        return rc;
        }
        return 0;
}

/* ---- several ---- */

/* What the next call takes at most: the kept bytes, then parts of r. How many; none of them is empty. */
static size_t gather(const resha_stream *s, const struct rest *r, struct iovec *to)
{
        size_t n = 0, skip = r->skip;

        if (rs_span_size(&s->out))
                to[n++] = (struct iovec){ s->out.data + s->out.start, rs_span_size(&s->out) };
        for (size_t i = 0; i < r->n && n < RS_PARTS_MAX; i++, skip = 0) {
                const struct iovec *part = &r->parts[i];
                if (part->iov_len > skip)
                        to[n++] = (struct iovec){ (char *)part->iov_base + skip, part->iov_len - skip };
        }
        return n;
}

/* n bytes were taken. Those of the caller's parts. */
static size_t advance(resha_stream *s, struct rest *r, size_t n)
{
        size_t kept = n < rs_span_size(&s->out) ? n : rs_span_size(&s->out), own = n - kept;

        rs_span_skip(&s->out, kept);
        for (n = own; r->n && n >= r->parts->iov_len - r->skip; r->n--) {
                n -= r->parts->iov_len - r->skip;
                r->parts++;
                r->skip = 0;
        }
        r->skip += n;
        return own;
}

int rs_stream_send_taken(resha_stream *s)
{
        int rc = rs_stream_is_there(s);

        if (rc == 0 && s->ops->flush)
                rc = s->ops->flush(s->impl);
        return rc < 0 ? rs_stream_not_written(s, rc) : 0;
}

static bool has_to_look(const resha_stream *s)
{
        return s->mark || rs_span_size(&s->out);
}

/* All that is kept, and then r. */
static int send_all(resha_stream *s, struct rest *r, size_t *done)
{
        struct iovec parts[RS_PARTS_MAX];
        size_t n;

        advance(s, r, 0); /* empty parts at the front */
        while ((n = gather(s, r, parts)) > 0) {
                ssize_t taken = n > 1 && s->ops->write_vec ? s->ops->write_vec(s->impl, parts, n)
                                                           : s->ops->write(s->impl, parts->iov_base, parts->iov_len);
                rs_stream_count(s);
                if (taken <= 0)
                        return rs_stream_not_written(s, taken);
                *done += advance(s, r, (size_t)taken);
                int rc = rs_span_size(&s->out) || r->n ? rs_stream_go_on(s, &s->write_failed) : 0;
                if (rc < 0)
                        return rc;
        }
        return 0;
}

/* `size` bytes of r behind the kept ones. */
static void keep(struct rs_span *out, const struct rest *r, size_t size)
{
        if (out->capacity - out->end < size)
                rs_span_pack(out);
        for (size_t i = 0; i < r->n; i++) {
                if (r->parts[i].iov_len)
                        memcpy(out->data + out->end, r->parts[i].iov_base, r->parts[i].iov_len);
                out->end += r->parts[i].iov_len;
        }
}

/* -1: more than can be. */
static ssize_t sum(const struct rest *r)
{
        size_t size = 0;

        for (size_t i = 0; i < r->n; i++)
                if (__builtin_add_overflow(size, r->parts[i].iov_len, &size) || size > SSIZE_MAX)
                        return -1;
        return (ssize_t)size;
}

/* Never a part of a caller's frame: it has room for many parts. */
static __attribute__((noinline)) int write_parts(struct rs_loop *l, resha_stream *s, struct rest *r, size_t *done)
{
        ssize_t size = sum(r);

        if (size < 0)
                return resha_fail_at(-EINVAL, NULL, "%zu parts are more than %zd bytes", r->n, (ssize_t)SSIZE_MAX);
        if (s->mark && (size_t)size + rs_span_size(&s->out) <= s->mark) {
                keep(&s->out, r, (size_t)size);
                *done = (size_t)size;
                return rs_complete(l, 0);
        }
        if (size == 0)
                return rs_complete(l, 0);
        int rc = send_all(s, r, done);
        s->keeps = has_to_look(s);
        return rc < 0 ? rc : rs_stream_send_taken(s);
}

/* ---- calls ---- */

static __attribute__((noinline)) int write_kept(struct rs_loop *l, resha_stream *s, const void *data, size_t size,
                                                size_t *done)
{
        struct iovec part = { (void *)(uintptr_t)data, size };

        return write_parts(l, s, &(struct rest){ &part, 1, 0 }, done);
}

int resha_write_all(resha_stream *s, const void *data, size_t size, size_t *ret_written)
{
        struct rs_loop *l;
        size_t done = 0;
        int rc = rs_stream_enter(s, &s->writing, "writes", &l);

        if (RS_LIKELY(rc == 0)) {
                if (RS_UNLIKELY(s->write_failed))
                        rc = rs_stream_failed_before(s, s->write_failed);
                else if (RS_UNLIKELY(s->keeps || (s->foreign && size - 1 >= SSIZE_MAX)))
                        rc = write_kept(l, s, data, size, &done);
                else if ((rc = write_rest(s, data, size, &done)) == 0 && s->foreign && s->ops->flush)
                        rc = rs_stream_send_taken(s);
                rs_stream_leave(s, &s->writing);
        }
        if (ret_written)
                *ret_written = done;
        return rc;
}

int resha_write_vec(resha_stream *s, const struct iovec *parts, size_t n, size_t *ret_written)
{
        struct rest r = { parts, n, 0 };
        struct rs_loop *l;
        size_t done = 0;
        int rc = rs_stream_enter(s, &s->writing, "writes", &l);

        if (rc == 0) {
                rc = s->write_failed ? rs_stream_failed_before(s, s->write_failed) : write_parts(l, s, &r, &done);
                rs_stream_leave(s, &s->writing);
        }
        if (ret_written)
                *ret_written = done;
        return rc;
}

/* ---- what is kept ---- */

int resha_stream_buffer(resha_stream *s, size_t mark)
{
        if (s->loop != rs_loop_current || s->closing || s->writing)
                return rs_stream_refuse(s, rs_loop_current, "writes");
        if (mark > MARK_MAX)
                return resha_fail_at(-EINVAL, NULL, "a mark of %zu bytes: at most %d", mark, MARK_MAX);
        if (rs_span_grow(&s->out, mark) < 0)
                return resha_fail_at(-ENOMEM, NULL, "no memory to keep %zu bytes", mark);
        s->mark = mark;
        s->keeps = has_to_look(s);
        if (!mark && !rs_span_size(&s->out)) {
                resha_free(s->out.data);
                s->out = (struct rs_span){ 0 };
        }
        return 0;
}

size_t resha_stream_buffered(const resha_stream *s)
{
        return rs_span_size(&s->out);
}

int rs_stream_send_kept(resha_stream *s)
{
        struct rest none = { NULL, 0, 0 };
        size_t done = 0;
        int rc = send_all(s, &none, &done);

        s->keeps = has_to_look(s);
        return rc;
}

int resha_flush(resha_stream *s)
{
        struct rs_loop *l;
        int rc = rs_stream_enter(s, &s->writing, "writes", &l);

        if (rc < 0)
                return rc;
        if (s->write_failed && (!s->shut || rs_span_size(&s->out)))
                rc = rs_stream_failed_before(s, s->write_failed);
        else if (!rs_span_size(&s->out) && !s->ops->flush)
                rc = rs_complete(l, 0);
        else if ((rc = rs_stream_send_kept(s)) == 0)
                rc = rs_stream_send_taken(s);
        rs_stream_leave(s, &s->writing);
        return rc;
}
