/* SPDX-License-Identifier: MIT */
/* Streams: what every kind has in common. A call enters (one reader, one writer, not closed), lets the kind's own
 * function do the work, and leaves. Reading is in stream_read.c, writing in stream_write.c; here are failures, the
 * beginning and the end.
 *
 * A failure of the connection is told again by every later call that needs the connection. The kernel tells it once:
 * after a reset that a write has met, reading would find an end, as if the peer had said all.
 *
 * Closing: new calls are refused; the kind ends the waits of those that are inside, and frees its part; the stream is
 * freed when the last one has left. */

#include "net/stream.h"

#include <stdio.h>

int rs_stream_refuse(const resha_stream *s, const struct rs_loop *l, const char *verb)
{
        if (s->loop != l)
                return resha_fail_at(-EPERM, NULL, "the %s stream belongs to another loop", s->ops->kind);
        if (s->closing)
                return resha_fail_at(-EBADF, NULL, "the stream is closed");
        return resha_fail_at(-EBUSY, NULL, "another task %s this %s stream", verb, s->ops->kind);
}

/* ---- failures ---- */

bool rs_stream_passes(int code)
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
        case -ENOSPC:
        case -EDQUOT:
        case -ENOBUFS:
        case -ENOMEM: return true;
        default: return false;
        }
}

int rs_stream_failed_before(const resha_stream *s, int code)
{
        if (code == -ENOMEM)
                return resha_fail_at(code, NULL, "bytes of this stream were lost for lack of memory");
        if (code == -EPIPE && s->shut)
                return resha_fail_at(code, NULL, "the writing side of this %s stream was ended here", s->ops->kind);
        return resha_fail_at(code, NULL, "the %s stream has failed: %s", s->ops->kind, resha_strerror(code));
}

/* ---- the beginning ---- */

/* To whom it leads; what is kept in it. */
static void describe(const void *object, char *text, size_t size)
{
        const resha_stream *s = object;
        char peer[RESHA_ADDR_TEXT_MAX];
        resha_addr addr;
        int n = 0;

        text[0] = '\0';
        if (!s->closing && s->ops->addr && s->ops->addr(s->impl, true, &addr) == 0)
                n = snprintf(text, size, "%s", resha_addr_format(&addr, peer, sizeof peer));
        if (s->closing)
                snprintf(text, size, "is being closed");
        else if (n >= 0 && (size_t)n < size && (rs_span_size(&s->in) || rs_span_size(&s->out)))
                snprintf(text + n, size - (size_t)n, "%s%zu bytes read ahead, %zu kept back", n ? ", " : "",
                         rs_span_size(&s->in), rs_span_size(&s->out));
}

void rs_stream_begin(resha_stream *s, int fd)
{
        static const resha_shown_kind kind = { .kind = "stream", .describe = describe };

        s->loop->open++;
        rs_shown_add(s->loop, &s->shown, &kind, s, fd);
        s->shown.name = s->ops->kind;
}

void resha_stream_opened_by(resha_stream *s, const void *address)
{
        if (s->loop == rs_loop_current && !s->closing)
                rs_shown_opened(&s->shown, address);
}

int resha_stream_new(const resha_stream_ops *ops, void *impl, resha_stream **ret_stream)
{
        struct rs_loop *l = rs_loop_current;

        if (!l)
                return rs_outside();
        for (size_t i = 0; i < sizeof ops->_reserved / sizeof ops->_reserved[0]; i++)
                if (ops->_reserved[i])
                        return resha_fail_at(-EINVAL, NULL, "a reserved word of stream operations is not zero");
        resha_stream *s = resha_calloc(1, sizeof *s);
        if (!s)
                return -ENOMEM;
        s->ops = ops;
        s->impl = impl;
        s->loop = l;
        s->foreign = true;
        rs_stream_begin(s, -1);
        RS_OPENED_HERE(&s->shown);
        *ret_stream = s;
        return 0;
}

void *resha_stream_impl(const resha_stream *s, const resha_stream_ops *ops)
{
        return s->foreign && s->ops == ops && !s->closing ? s->impl : NULL;
}

/* ---- about it ---- */

/* What calls that do not wait look at first. */
static int look(const resha_stream *s)
{
        return s->loop != rs_loop_current || s->closing ? rs_stream_refuse(s, rs_loop_current, "closes") : 0;
}

const char *resha_stream_kind(const resha_stream *s)
{
        return s->ops->kind;
}

int resha_stream_addr(resha_stream *s, bool peer, resha_addr *ret_addr)
{
        int rc = look(s);

        if (rc < 0)
                return rc;
        if (!s->ops->addr)
                return resha_fail_at(-EOPNOTSUPP, NULL, "a %s stream has no addresses", s->ops->kind);
        return s->ops->addr(s->impl, peer, ret_addr);
}

static int option(resha_stream *s, enum resha_stream_option which, int *value, bool set)
{
        int rc = look(s);

        if (rc < 0)
                return rc;
        if (which < RESHA_STREAM_NODELAY || which > RESHA_STREAM_RECEIVE_BUFFER || (set && *value < 0))
                return resha_fail_at(-EINVAL, NULL, "stream option %d, value %d: no such one", (int)which,
                                     set ? *value : 0);
        rc = s->ops->option ? s->ops->option(s->impl, which, value, set) : -EOPNOTSUPP;
        if (rc == -EOPNOTSUPP)
                return resha_fail_at(rc, NULL, "a %s stream does not have option %d", s->ops->kind, (int)which);
        return rc;
}

int resha_stream_get(resha_stream *s, enum resha_stream_option which, int *ret_value)
{
        int value = 0, rc = option(s, which, &value, false);

        if (rc == 0)
                *ret_value = value;
        return rc;
}

int resha_stream_set(resha_stream *s, enum resha_stream_option which, int value)
{
        return option(s, which, &value, true);
}

/* ---- the end ---- */

static int end_writing(resha_stream *s, int (*end)(void *impl))
{
        int rc = s->shut ? 0 : end(s->impl);

        if (rc < 0 || s->shut)
                return rc;
        s->shut = true;
        if (!s->write_failed)
                s->write_failed = -EPIPE;
        return rc;
}

int resha_stream_shutdown(resha_stream *s)
{
        int rc = look(s);

        if (rc < 0)
                return rc;
        if (s->aborted) /* an end would tell the peer that this was all */
                return rs_stream_failed_before(s, -ECONNABORTED);
        if (rs_span_size(&s->out))
                return resha_fail_at(-EBUSY, NULL, "%zu bytes are kept in the stream: call resha_flush() first",
                                     rs_span_size(&s->out));
        rc = end_writing(s, s->ops->shutdown);
        if (rc == -EOPNOTSUPP)
                return resha_fail_at(rc, NULL, "a %s stream has no end that its reader could see", s->ops->kind);
        if (rc == -ENOTCONN)
                return resha_fail_at(rc, NULL, "the %s stream has no peer any more that could see its end",
                                     s->ops->kind);
        return rc;
}

/* Until the peer has ended. In a frame of its own, below that of the caller's scope: where the two are one, the check
 * of frames takes the scope for one of a function that has returned. */
static __attribute__((noinline)) int drop_rest(resha_stream *s)
{
        char buf[4096];
        size_t dropped = rs_span_size(&s->in);
        int rc = 0;

        rs_span_skip(&s->in, dropped);
        while (rc == 0 && dropped <= RESHA_FINISH_BYTES) {
                ssize_t n = rs_stream_pull(s, buf, sizeof buf);
                if (n <= 0)
                        return (int)n;
                dropped += (size_t)n;
                rc = rs_stream_go_on(s, &s->read_failed);
        }
        return rc < 0 ? rc : resha_fail_at(-EMSGSIZE, NULL, "the peer goes on: %zu bytes were dropped", dropped);
}

static int linger(resha_stream *s)
{
        RESHA_SCOPE(most);

        resha_timeout_begin(&most, RESHA_S(RESHA_FINISH_SECONDS));
        int rc = resha_scope_end(&most, drop_rest(s));
        if (rc == -ETIME && resha_scope_expired(&most))
                return resha_fail_at(-ETIMEDOUT, NULL, "the peer has not ended within %d s", RESHA_FINISH_SECONDS);
        return rc;
}

static int finish(resha_stream *s)
{
        int rc = s->write_failed && !s->shut ? rs_stream_failed_before(s, s->write_failed) : rs_stream_send_kept(s);

        if (rc == 0)
                rc = rs_stream_is_there(s);
        if (rc == 0)
                rc = end_writing(s, s->ops->finish ? s->ops->finish : s->ops->shutdown);
        if (rc == 0 && s->ops->finish) /* it may have waited */
                rc = rs_stream_go_on(s, &s->read_failed);
        if (rc == -EOPNOTSUPP)
                return 0;
        if (s->one_way || (rc < 0 && rc != -ENOTCONN))
                return rc;
        int rest = linger(s);
        return rest < 0 ? rest : rc; /* why it is not connected any more, reading says */
}

int resha_stream_finish(resha_stream *s)
{
        struct rs_loop *l;
        int rc = rs_stream_enter(s, &s->reading, "reads", &l);

        if (rc < 0)
                return rc;
        if (s->writing) {
                rs_stream_leave(s, &s->reading);
                return rs_stream_refuse(s, l, "writes");
        }
        s->writing = true;
        rc = finish(s);
        s->writing = false;
        rs_stream_leave(s, &s->reading);
        return rc;
}

void resha_stream_abort(resha_stream *s)
{
        if (s->loop != rs_loop_current || s->closing)
                return;
        s->aborted = true;
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

/* Nobody else can see it; but for a task that is cancelled, which does not end in order. */
static void report_dropped(const resha_stream *s)
{
        if (rs_span_size(&s->out) && !s->write_failed && !resha_cancelled())
                rs_report(s->loop, RESHA_REPORT_DROPPED, 0, s->loop->current,
                          "%zu bytes that were kept in a %s stream are dropped by its close; call resha_flush() before",
                          rs_span_size(&s->out), s->ops->kind);
}

void rs_stream_free(resha_stream *s)
{
        s->loop->open--;
        rs_shown_remove(&s->shown);
        resha_free(s->in.data);
        resha_free(s->out.data);
        resha_free(s);
}

void resha_stream_close(resha_stream *s)
{
        struct rs_loop *l;

        if (!s || s->closing)
                return;
        int rc = rs_enter_shielded(&l);
        if (s->loop != rs_loop_current || (rc < 0 && (s->reading || s->writing)))
                return; /* nobody could wait for those inside: rather a leak than a stream that is gone under them */
        if (s->server) {
                (void)rs_misuse(-EBUSY, "resha_serve() closes this stream when its handler returns");
                return;
        }
        s->closing = true;
        s->ops->close(s->impl);
        rs_stream_wait_idle(s);
        report_dropped(s);
        rs_stream_free(s);
}

void resha_stream_closep(resha_stream **s)
{
        resha_stream_close(*s);
        *s = NULL;
}
