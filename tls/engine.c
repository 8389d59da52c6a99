/* SPDX-License-Identifier: MIT */
/* An SSL between two buffers. Nothing here waits: a call does what can be done with the bytes that are there, and says
 * what it lacks. Reading and writing may alternate as they like, in two tasks; that rests on this:
 *
 *   - Before the SSL is asked to read a record there are RS_TLS_RESERVE bytes of room in `out`, and before it is to
 *     write one there is room for that record and the reserve. So whatever it writes, also in answer to what it reads
 *     (key updates, alerts), goes out of it at once, and it never holds a record half written, on which the other task
 *     would fail.
 *   - It reads whole records only (bytes.c), one for each call. A peer that makes us answer more than the reserve
 *     holds, in one record, has failed; one whose answers pile up, because it does not read them, is not read any
 *     further until they are gone.
 *   - While one task waits below with the room of `in`, the other one's calls neither move `in` nor give it back.
 *   - RS_TLS_QUIET_MAX records in a row that bring nothing are an error: nobody needs that many key updates.
 *
 * A failure is final: OpenSSL allows no further call but SSL_free(). Its alert is in `out`, and goes out with a close.
 *
 * Each call of OpenSSL that encrypts or decrypts is made by `call`: on a stack that is large enough, with the error
 * queue emptied before and looked at after. */

#include <string.h>

#include <openssl/err.h>

#include "tls.h"

enum { HANDSHAKE, READ, WRITE, SHUTDOWN };

struct call {
        struct rs_tls_engine *e;
        int what;
        void *buf;
        size_t size, done;
};

static int make_call(void *arg)
{
        struct call *c = arg;
        SSL *ssl = c->e->ssl;
        int rc;

        if (ERR_peek_error()) /* much cheaper than clearing what is clear */
                ERR_clear_error();
        switch (c->what) {
        case HANDSHAKE: rc = SSL_do_handshake(ssl); break;
        case READ: rc = SSL_read_ex(ssl, c->buf, c->size, &c->done); break;
        case WRITE: rc = SSL_write_ex(ssl, c->buf, c->size, &c->done); break;
        default: rc = SSL_shutdown(ssl) >= 0; break;
        }
        return rc > 0 ? SSL_ERROR_NONE : SSL_get_error(ssl, rc);
}

/* What SSL_get_error() says. */
static int call(struct rs_tls_engine *e, int what, void *buf, size_t size, size_t *ret_done)
{
        struct call c = { .e = e, .what = what, .buf = buf, .size = size };
        int error = resha_deep_call(make_call, &c);

        *ret_done = c.done;
        return error;
}

/* ---- failures ---- */

static int remember(struct rs_tls_engine *e, int code)
{
        if (!e->failed)
                e->failed = code;
        return code;
}

static __attribute__((cold, noinline)) int failed(struct rs_tls_engine *e)
{
        if (!e->no_block && e->open && ERR_peek_error() == 0)
                return remember(e, resha_fail(RESHA_TLS_EPROTOCOL, "the peer wants more answers than it takes"));
        if (e->no_block)
                return remember(e, resha_fail(-ENOMEM, "no memory for what TLS has to send"));
        return remember(e, rs_tls_failed(e->ssl, !e->open, e->peer));
}

static __attribute__((cold, noinline)) int failed_before(const struct rs_tls_engine *e)
{
        return resha_fail(e->failed, "TLS has failed before: %s", resha_strerror(e->failed));
}

int rs_tls_engine_cut(struct rs_tls_engine *e)
{
        const char *where = e->open ? rs_tls_bytes_left(&e->in) ? "in the middle of a record" : "without close_notify"
                                    : "in the middle of the handshake";
        const char *peer = e->peer ? e->peer : SSL_is_server(e->ssl) ? "the client" : "the server";

        return remember(e, resha_fail(RESHA_TLS_ETRUNCATED, "the connection to %s ended %s%s", peer, where,
                                      e->open ? ": it may have been cut" : ""));
}

/* ---- the beginning and the end ---- */

int rs_tls_engine_init(struct rs_tls_engine *e, SSL *ssl, const char *peer)
{
        *e = (struct rs_tls_engine){ .ssl = ssl, .peer = peer, .fragment = RS_TLS_RECORD };
        e->in = (struct rs_tls_bytes){ e->small, 0, 0, sizeof e->small };
        e->pool = rs_tls_pool_join();
        int rc = rs_tls_bio_attach(e);
        if (rc < 0) {
                rs_tls_engine_done(e);
                return rc;
        }
        SSL_set_mode(ssl,
                     SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
        SSL_set_read_ahead(ssl, 1); /* as far as the window goes: a record in one piece */
        return 0;
}

static void empty_in(struct rs_tls_engine *e)
{
        if (e->in.data != e->small)
                rs_tls_block_return(e->pool, &e->in);
        e->in = (struct rs_tls_bytes){ e->small, 0, 0, sizeof e->small };
        e->window = 0;
}

void rs_tls_engine_done(struct rs_tls_engine *e)
{
        empty_in(e);
        if (e->out.data)
                rs_tls_block_return(e->pool, &e->out);
        rs_tls_pool_leave(e->pool);
        SSL_free(e->ssl);
}

/* ---- bytes from below, and to it ---- */

/* The size of the record at the start of `in`, its header included; 0: not all of the header is there. What is none is
 * as long as what is there: the SSL says what is wrong with it. */
static size_t record_size(const struct rs_tls_engine *e)
{
        const unsigned char *p = (const unsigned char *)e->in.data + e->in.start;
        size_t n = rs_tls_bytes_left(&e->in);

        if (n < RS_TLS_HEADER)
                return 0;
        size_t size = RS_TLS_HEADER + ((size_t)p[3] << 8 | p[4]);
        return p[0] < 20 || p[0] > 24 || p[1] != 3 || size > RS_TLS_RECORD_MAX ? n : size;
}

/* Shows the SSL the next record, if it is there. */
static bool open_window(struct rs_tls_engine *e)
{
        if (e->window > e->in.start)
                return true;
        size_t size = record_size(e);
        if (size == 0 || size > rs_tls_bytes_left(&e->in))
                return false;
        e->window = e->in.start + size;
        return true;
}

bool rs_tls_engine_ready(struct rs_tls_engine *e)
{
        return open_window(e);
}

/* After a call: a block with nothing in it goes back, unless a task is waiting below for bytes to put into it. */
static void close_window(struct rs_tls_engine *e)
{
        if (e->in.start == e->in.end && !e->lent)
                empty_in(e);
}

/* What is there to the front. 0, -ENOMEM. */
static int make_room(struct rs_tls_engine *e)
{
        struct rs_tls_bytes *b = &e->in;
        size_t moved = b->start;

        if (b->data == e->small && (b->end == b->size || (e->more && b->end == 0))) {
                if (rs_tls_block_borrow(e->pool, b) < 0)
                        return -ENOMEM;
        } else if (b->start && b->size - b->end < b->size / 2) {
                memmove(b->data, b->data + b->start, rs_tls_bytes_left(b));
                b->end -= b->start;
                b->start = 0;
        } else {
                return 0;
        }
        e->window = e->window > moved ? e->window - moved : 0;
        return 0;
}

char *rs_tls_engine_room(struct rs_tls_engine *e, size_t *ret_size)
{
        if (make_room(e) < 0)
                return NULL;
        e->lent = true;
        *ret_size = e->in.size - e->in.end;
        return e->in.data + e->in.end;
}

void rs_tls_engine_came(struct rs_tls_engine *e, size_t n)
{
        e->lent = false;
        e->more = n == e->in.size - e->in.end;
        e->in.end += n;
        close_window(e);
}

void rs_tls_engine_went(struct rs_tls_engine *e, size_t n)
{
        e->out.start += n;
        if (e->out.start == e->out.end)
                rs_tls_block_return(e->pool, &e->out);
}

static size_t room_out(const struct rs_tls_engine *e)
{
        return e->out.data ? e->out.size - e->out.end : RS_TLS_BLOCK;
}

/* ---- the calls ---- */

static void handshake_done(struct rs_tls_engine *e)
{
        const SSL_SESSION *session = SSL_get_session(e->ssl);
        unsigned code = session ? SSL_SESSION_get_max_fragment_length(session) : 0;

        e->open = true;
        e->fragment = code >= TLSEXT_max_fragment_length_512 && code <= TLSEXT_max_fragment_length_4096 ? 256u << code
                                                                                                        : RS_TLS_RECORD;
}

int rs_tls_engine_handshake(struct rs_tls_engine *e)
{
        size_t unused;

        for (;;) {
                (void)open_window(e);
                int error = call(e, HANDSHAKE, NULL, 0, &unused);
                close_window(e);
                switch (error) {
                case SSL_ERROR_NONE: handshake_done(e); return 0;
                case SSL_ERROR_WANT_WRITE: return RS_TLS_WANT_ROOM;
                case SSL_ERROR_WANT_READ:
                        if (!open_window(e)) /* the next one, if it is there */
                                return RS_TLS_WANT_BYTES;
                        break;
                default: return failed(e);
                }
        }
}

/* A record that brought nothing. */
static int quiet(struct rs_tls_engine *e)
{
        if (++e->quiet <= RS_TLS_QUIET_MAX)
                return 0;
        return remember(e, resha_fail(RESHA_TLS_EPROTOCOL, "%u records in a row have brought nothing", e->quiet));
}

ssize_t rs_tls_engine_read(struct rs_tls_engine *e, void *buf, size_t size)
{
        for (;;) {
                size_t n;
                if (e->failed)
                        return failed_before(e);
                if (e->ended)
                        return 0;
                if (SSL_pending(e->ssl) == 0 && !open_window(e))
                        return RS_TLS_WANT_BYTES;
                if (room_out(e) < RS_TLS_RESERVE)
                        return RS_TLS_WANT_ROOM;
                int error = call(e, READ, buf, size, &n), rc;
                close_window(e);
                switch (error) {
                case SSL_ERROR_NONE: e->quiet = 0; return (ssize_t)n;
                case SSL_ERROR_ZERO_RETURN: e->ended = true; return 0;
                case SSL_ERROR_WANT_READ:
                        if ((rc = quiet(e)) < 0)
                                return rc;
                        break;
                default: return failed(e);
                }
        }
}

/* How many of `size` bytes go into the next record; 0: there is no room for one. */
static size_t next_record(const struct rs_tls_engine *e, size_t size)
{
        size_t room = room_out(e), n = size < e->fragment ? size : e->fragment;

        return room >= n + RS_TLS_OVERHEAD + RS_TLS_RESERVE ? n : 0;
}

ssize_t rs_tls_engine_write(struct rs_tls_engine *e, const void *data, size_t size)
{
        size_t done = 0, n, taken;

        if (e->failed)
                return failed_before(e);
        while (done < size && (n = next_record(e, size - done)) > 0) {
                int error = call(e, WRITE, (char *)(uintptr_t)data + done, n, &taken), rc;
                close_window(e);
                switch (error) {
                case SSL_ERROR_NONE: done += taken; break;
                case SSL_ERROR_WANT_READ: /* a message of the peer has come in part, and has to be read first */
                        if (!open_window(e))
                                return done ? (ssize_t)done : RS_TLS_WANT_BYTES;
                        if ((rc = quiet(e)) < 0)
                                return rc;
                        break;
                default: return failed(e);
                }
        }
        return done ? (ssize_t)done : RS_TLS_WANT_ROOM;
}

int rs_tls_engine_end(struct rs_tls_engine *e)
{
        size_t unused;

        if (e->failed)
                return failed_before(e);
        if (SSL_get_shutdown(e->ssl) & SSL_SENT_SHUTDOWN)
                return 0;
        if (room_out(e) < RS_TLS_OVERHEAD)
                return RS_TLS_WANT_ROOM;
        return call(e, SHUTDOWN, NULL, 0, &unused) == SSL_ERROR_NONE ? 0 : failed(e);
}
