/* SPDX-License-Identifier: MIT */
/* The stream: bytes between an engine and the stream below. The engine says what it lacks; this fetches it, and waits.
 *
 * Two tasks may be inside, a reader and a writer. Below, too, there can be one of each, and they need not be the same:
 * a reader has to send what answers the peer (key updates), a writer may have to read (the rest of a message that has
 * come in part). So each direction below is a turn that one task has; the other one waits until it is over, and looks
 * again: mostly there is nothing left to do.
 *
 * A write gives the engine what it takes, and a flush behind the last one of a call sends it. If a cancel comes while
 * it is sent, the bytes are taken all the same: they are encrypted, and a record cannot be taken back. They stay in
 * `out`, and whoever comes next sends them first: the next write or flush, a reader before it waits, finish and close.
 * A reader that waits already is told to look again.
 *
 * A reader sends what is there before it waits, for ANSWER_MS at most: a peer that does not read now, because it
 * writes, must not keep us from reading. What did not go out by then it tries again every READ_MS. When answers pile up
 * the engine reads no further, and the reader waits in earnest.
 *
 * Each wait below has a scope of its own, so that a close can end it without touching the stream below, which is
 * borrowed. What is broken off below stays so: what has failed to go out is dropped, and reading goes on to the end of
 * what came. */

#include <string.h>

#include "tls.h"

#include <resha/alloc.h>

enum { ANSWER_MS = 20, READ_MS = 100 };

/* ---- turns ---- */

/* Why a task that has waited should not go on. */
static int go_on(const struct rs_tls_stream *t, bool closer)
{
        if (t->aborted)
                return resha_fail(-ECONNABORTED, "the TLS stream was broken off here");
        return t->closing && !closer ? -EBADF : 0;
}

static int wait_for_turn(struct rs_tls_turn *turn, resha_event *over)
{
        turn->awaited = true;
        resha_event_clear(over);
        return resha_event_wait(over);
}

static inline void end_turn(struct rs_tls_turn *turn, resha_event *over)
{
        turn->busy = false;
        turn->scope = NULL;
        if (turn->awaited) {
                turn->awaited = false;
                resha_event_set(over);
        }
}

/* One call below in a scope that close, or `again`, can end. That shows as a cancel which is none of the caller's. */
#define BELOW(t, turn, over, n, ...) \
        do { \
                RESHA_SCOPE(scope_); \
                resha_deadline_begin(&scope_, RESHA_NEVER); \
                (turn)->busy = true; \
                (turn)->again = false; \
                (turn)->scope = &scope_; \
                n = (__VA_ARGS__); \
                end_turn(turn, over); \
                int rc_ = resha_scope_end(&scope_, n < 0 ? (int)n : 0); \
                if (n < 0) \
                        n = rc_ < 0 ? rc_ : -EBADF; \
        } while (0)

static ssize_t read_below(struct rs_tls_stream *t, void *buf, size_t size)
{
        ssize_t n;

        BELOW(t, &t->fill, &t->fill_over, n, resha_read(t->under, buf, size));
        return n;
}

/* What a stream below keeps of it goes out, too. */
static int write_all_below(struct rs_tls_stream *t, const void *data, size_t size, size_t *ret_written)
{
        int rc = size ? resha_write_all(t->under, data, size, ret_written) : 0;

        t->kept_below |= rc < 0 || resha_stream_buffered(t->under);
        if (rc == 0 && t->kept_below && (rc = resha_flush(t->under)) == 0)
                t->kept_below = false;
        return rc;
}

static int write_below(struct rs_tls_stream *t, const void *data, size_t size, size_t *ret_written)
{
        int rc;

        *ret_written = 0;
        BELOW(t, &t->flush, &t->flush_over, rc, write_all_below(t, data, size, ret_written));
        return rc;
}

/* ---- in and out ---- */

int rs_tls_stream_fill(struct rs_tls_stream *t)
{
        size_t size;

        if (rs_tls_engine_ready(&t->engine)) /* another task has read it, while this one sent */
                return 0;
        if (t->fill.busy) {
                int rc = wait_for_turn(&t->fill, &t->fill_over);
                return rc < 0 ? rc : go_on(t, false);
        }
        char *room = rs_tls_engine_room(&t->engine, &size);
        if (!room)
                return resha_fail(-ENOMEM, "no memory for what comes by TLS");
        ssize_t n = read_below(t, room, size);
        rs_tls_engine_came(&t->engine, n > 0 ? (size_t)n : 0);
        int rc = go_on(t, false);
        if (rc < 0)
                return rc;
        if (n > 0 || (n == -EBADF && t->fill.again))
                return 0;
        return n < 0 ? (int)n : rs_tls_engine_cut(&t->engine);
}

/* Codes after which what is left in `out` may still go out. */
static bool passes(int code)
{
        switch (code) {
        case -ECANCELED:
        case -ETIME:
        case -EBADF:
        case -EBUSY:
        case -EDEADLK:
        case -EPERM:
        case -EINTR:
        case -EAGAIN:
        case -ENOBUFS:
        case -ENOMEM: return true;
        default: return false;
        }
}

static int send_out(struct rs_tls_stream *t)
{
        struct rs_tls_bytes *out = &t->engine.out;
        const char *data = out->data ? out->data + out->start : NULL;
        size_t written;
        int rc = write_below(t, data, rs_tls_bytes_left(out), &written);

        if (rc < 0 && !passes(rc)) {
                t->unsent = rc;
                t->kept_below = false;
                written = rs_tls_bytes_left(out); /* nobody will get it */
        }
        if (written)
                rs_tls_engine_went(&t->engine, written);
        return rc;
}

static bool is_unsent(const struct rs_tls_stream *t)
{
        return rs_tls_bytes_left(&t->engine.out) || t->kept_below;
}

static int flush(struct rs_tls_stream *t, bool closer)
{
        int rc = 0;

        while (rc == 0 && is_unsent(t)) {
                if (t->unsent)
                        return resha_fail(t->unsent, "the stream under TLS has failed: %s", resha_strerror(t->unsent));
                rc = t->flush.busy ? wait_for_turn(&t->flush, &t->flush_over) : send_out(t);
                if (rc == 0)
                        rc = go_on(t, closer);
        }
        return rc;
}

int rs_tls_stream_flush(struct rs_tls_stream *t)
{
        return flush(t, false);
}

static __attribute__((noinline)) int in_time(struct rs_tls_stream *t, int (*fn)(struct rs_tls_stream *t), int ms)
{
        RESHA_SCOPE(s);

        resha_timeout_begin(&s, RESHA_MS(ms));
        int rc = resha_scope_end(&s, fn(t));
        return rc == -ETIME && resha_scope_expired(&s) ? 0 : rc;
}

/* A failure to send is the writers' matter. */
int rs_tls_stream_answer(struct rs_tls_stream *t)
{
        if (!is_unsent(t) || t->flush.busy || t->unsent)
                return 0;
        int rc = in_time(t, rs_tls_stream_flush, ANSWER_MS);
        return rc == -ECANCELED || rc == -EBADF || rc == -ECONNABORTED ? rc : 0;
}

/* ---- the calls of a stream ---- */

static void enter(struct rs_tls_stream *t)
{
        t->inside++;
}

static void leave(struct rs_tls_stream *t)
{
        t->inside--;
        if (t->closing)
                resha_event_set(&t->left);
}

/* A writer leaves something unsent: who waits for bytes has to send it from now on, and would not know. */
static void hand_over(struct rs_tls_stream *t)
{
        if (!is_unsent(t) || t->unsent || t->flush.busy || !t->fill.scope || t->fill.again)
                return;
        t->fill.again = true;
        resha_scope_cancel(t->fill.scope);
}

/* What the engine lacks. As long as something has not gone out, reading and writing take turns. */
static int supply(struct rs_tls_stream *t, ssize_t want)
{
        if (want == RS_TLS_WANT_ROOM)
                return flush(t, false);
        int rc = rs_tls_stream_answer(t);
        if (rc < 0)
                return rc;
        if (is_unsent(t) && !t->flush.busy && !t->unsent)
                return in_time(t, rs_tls_stream_fill, READ_MS);
        return rs_tls_stream_fill(t);
}

static bool is_want(ssize_t n)
{
        return n == RS_TLS_WANT_BYTES || n == RS_TLS_WANT_ROOM;
}

static ssize_t tls_read(void *impl, void *buf, size_t size)
{
        struct rs_tls_stream *t = impl;
        ssize_t n;

        enter(t);
        while (is_want(n = rs_tls_engine_read(&t->engine, buf, size))) {
                int rc = supply(t, n);
                if (rc < 0) {
                        n = rc;
                        break;
                }
        }
        leave(t);
        return n;
}

/* The parts' first bytes in one piece, which is encrypted as one record. */
static ssize_t put_in_gathered(struct rs_tls_stream *t, const struct iovec *parts, size_t count)
{
        struct rs_tls_bytes b = { 0 };

        if (rs_tls_block_borrow(t->engine.pool, &b) < 0)
                return rs_tls_engine_write(&t->engine, parts->iov_base, parts->iov_len);
        for (size_t i = 0; i < count && b.end < RS_TLS_RECORD; i++) {
                size_t n = parts[i].iov_len < RS_TLS_RECORD - b.end ? parts[i].iov_len : RS_TLS_RECORD - b.end;
                memcpy(b.data + b.end, parts[i].iov_base, n);
                b.end += n;
        }
        ssize_t n = rs_tls_engine_write(&t->engine, b.data, b.end);
        OPENSSL_cleanse(b.data, b.end); /* blocks are for what is encrypted */
        rs_tls_block_return(t->engine.pool, &b);
        return n;
}

static ssize_t put_in(struct rs_tls_stream *t, const struct iovec *parts, size_t count)
{
        if (t->unsent)
                return resha_fail(t->unsent, "the stream under TLS has failed: %s", resha_strerror(t->unsent));
        if (count == 1 || parts->iov_len >= RS_TLS_RECORD)
                return rs_tls_engine_write(&t->engine, parts->iov_base, parts->iov_len);
        return put_in_gathered(t, parts, count);
}

/* Encrypts as much as there is room for; tls_flush() sends it. */
static ssize_t tls_write_vec(void *impl, const struct iovec *parts, size_t count)
{
        struct rs_tls_stream *t = impl;
        ssize_t n;

        enter(t);
        while (is_want(n = put_in(t, parts, count))) {
                int rc = supply(t, n);
                if (rc < 0) {
                        n = rc;
                        break;
                }
        }
        if (n < 0 || resha_cancelled()) /* no flush may follow */
                hand_over(t);
        leave(t);
        return n;
}

static ssize_t tls_write(void *impl, const void *data, size_t size)
{
        return tls_write_vec(impl, &(struct iovec){ (void *)(uintptr_t)data, size }, 1);
}

static int tls_flush(void *impl)
{
        struct rs_tls_stream *t = impl;

        enter(t);
        int rc = flush(t, false);
        hand_over(t);
        leave(t);
        return rc;
}

/* ---- the end ---- */

static int tls_shutdown(__attribute__((unused)) void *impl)
{
        return -EOPNOTSUPP;
}

/* close_notify, and all before it, to the stream below. */
static int say_end(struct rs_tls_stream *t, bool closer)
{
        int rc;

        while ((rc = rs_tls_engine_end(&t->engine)) == RS_TLS_WANT_ROOM)
                if ((rc = flush(t, closer)) < 0)
                        return rc;
        int sent = flush(t, closer);
        return rc < 0 ? rc : sent;
}

static int tls_finish(void *impl)
{
        struct rs_tls_stream *t = impl;

        enter(t);
        int rc = say_end(t, false);
        leave(t);
        return rc;
}

/* Ends the waits of those inside, and waits for them. */
static __attribute__((noinline)) void turn_out(struct rs_tls_stream *t)
{
        RESHA_SCOPE(shield);

        resha_shield_begin(&shield, RESHA_FOREVER);
        if (t->fill.scope)
                resha_scope_cancel(t->fill.scope);
        if (t->flush.scope)
                resha_scope_cancel(t->flush.scope);
        resha_event_set(&t->fill_over);
        resha_event_set(&t->flush_over);
        while (t->inside) {
                resha_event_clear(&t->left);
                if (resha_event_wait(&t->left) < 0)
                        break;
        }
}

static __attribute__((noinline)) void say_end_in_time(struct rs_tls_stream *t)
{
        RESHA_SCOPE(shield);

        resha_shield_begin(&shield, t->tls->shutdown);
        (void)say_end(t, true);
}

static void tls_close(void *impl)
{
        struct rs_tls_stream *t = impl;

        t->closing = true;
        if (t->inside)
                turn_out(t);
        if (!t->aborted && !t->unsent)
                say_end_in_time(t);
        if (t->owned)
                resha_stream_close(t->under);
        if (t->closed)
                t->closed(t->closed_arg);
        rs_tls_stream_free(t);
}

static void tls_abort(void *impl)
{
        struct rs_tls_stream *t = impl;

        t->aborted = true;
        resha_stream_abort(t->under);
        resha_event_set(&t->fill_over);
        resha_event_set(&t->flush_over);
}

/* ---- about it ---- */

static int tls_addr(void *impl, bool peer, resha_addr *ret_addr)
{
        struct rs_tls_stream *t = impl;

        return resha_stream_addr(t->under, peer, ret_addr);
}

static int tls_option(void *impl, enum resha_stream_option which, int *value, bool set)
{
        struct rs_tls_stream *t = impl;

        return set ? resha_stream_set(t->under, which, *value) : resha_stream_get(t->under, which, value);
}

const resha_stream_ops rs_tls_stream_ops = {
        .kind = "tls",
        .read = tls_read,
        .write = tls_write,
        .shutdown = tls_shutdown,
        .addr = tls_addr,
        .close = tls_close,
        .abort = tls_abort,
        .write_vec = tls_write_vec,
        .option = tls_option,
        .finish = tls_finish,
        .flush = tls_flush,
};

/* ---- making and releasing it ---- */

int rs_tls_stream_new(resha_stream *under, resha_tls *tls, const resha_tls_start_opts *opts,
                      struct rs_tls_stream **ret_stream)
{
        const char *host = opts && opts->host ? opts->host : "";
        size_t size = strlen(host) + 1;
        SSL *ssl;
        int rc = rs_tls_ssl_new(tls, opts, &ssl);

        if (rc < 0)
                return rc;
        struct rs_tls_stream *t = resha_calloc(1, sizeof *t + size);
        if (!t) {
                SSL_free(ssl);
                return resha_fail(-ENOMEM, "no memory for a TLS stream");
        }
        memcpy(t->host, host, size);
        rc = rs_tls_engine_init(&t->engine, ssl, *host ? t->host : NULL);
        if (rc < 0) {
                resha_free(t);
                return rc;
        }
        t->tls = resha_tls_ref(tls);
        t->under = under;
        *ret_stream = t;
        return 0;
}

void rs_tls_stream_free(struct rs_tls_stream *t)
{
        rs_tls_engine_done(&t->engine);
        resha_tls_unref(t->tls);
        resha_free(t);
}
