/* SPDX-License-Identifier: MIT */
/* Where a plain stream becomes a secure one. The handshake is all or nothing: there is no stream before it has ended,
 * so no byte can be read that was not checked, and none written to whoever it may be.
 *
 * A client has its last message sent when it returns. A server's last messages are tickets for later sessions, which
 * the client reads when it reads: they are sent if they go out soon, and else with what the server writes next. Two
 * sides that both write first would wait for each other otherwise. */

#include <inttypes.h>
#include <string.h>

#include "tls.h"

/* An alert to tell the peer why: it goes out if it can at once. The failure's record stays. */
static int refuse(struct rs_tls_stream *t, int rc)
{
        (void)rs_tls_stream_answer(t);
        return rc;
}

static __attribute__((noinline)) int shake_hands(struct rs_tls_stream *t)
{
        int rc;

        while ((rc = rs_tls_engine_handshake(&t->engine)) != 0) {
                if (rc != RS_TLS_WANT_BYTES && rc != RS_TLS_WANT_ROOM)
                        return refuse(t, rc);
                int want = rc;
                rc = rs_tls_stream_flush(t);
                if (rc == 0 && want == RS_TLS_WANT_BYTES)
                        rc = rs_tls_stream_fill(t);
                if (rc < 0)
                        return rc;
        }
        return t->tls->server ? rs_tls_stream_answer(t) : rs_tls_stream_flush(t);
}

static int shake_hands_in_time(struct rs_tls_stream *t)
{
        RESHA_SCOPE(s);

        resha_timeout_begin(&s, t->tls->handshake);
        int rc = resha_scope_end(&s, shake_hands(t));
        if (rc == -ETIME && resha_scope_expired(&s))
                return resha_fail(-ETIMEDOUT, "the TLS handshake with %s has not ended after %" PRId64 " ms",
                                  *t->host ? t->host : "the peer", t->tls->handshake.ns / 1000000);
        return rc;
}

/* Whoever sits in between may have sent what came before TLS: a client would take it for the server's. */
static int look_for_leftovers(const resha_stream *under, const resha_tls *t)
{
        size_t n = resha_stream_unread(under);

        if (t->server || n == 0)
                return 0;
        return resha_fail(RESHA_TLS_ELEFTOVER, "%zu bytes came in plain text before TLS was to start", n);
}

int rs_tls_start(resha_stream *under, resha_tls *tls, const resha_tls_start_opts *opts, struct rs_tls_stream **ret_impl,
                 resha_stream **ret_stream)
{
        struct rs_tls_stream *t;
        int rc = look_for_leftovers(under, tls);

        if (rc == 0)
                rc = rs_tls_stream_new(under, tls, opts, &t);
        if (rc < 0)
                return rc;
        rc = shake_hands_in_time(t);
        if (rc == 0)
                rc = resha_stream_new(&rs_tls_stream_ops, t, ret_stream);
        if (rc < 0)
                rs_tls_stream_free(t);
        else
                *ret_impl = t;
        return rc;
}

int resha_tls_start(resha_stream *under, resha_tls *t, const resha_tls_start_opts *opts, resha_stream **ret_stream)
{
        struct rs_tls_stream *impl;
        int rc = resha_checkpoint();

        for (size_t i = 0; rc == 0 && opts && i < sizeof opts->_reserved / sizeof opts->_reserved[0]; i++)
                if (opts->_reserved[i])
                        rc = resha_fail(-EINVAL, "a reserved word of TLS start options is not zero");
        if (rc == 0)
                rc = rs_tls_start(under, t, opts, &impl, ret_stream);
        if (rc == 0)
                resha_stream_opened_by(*ret_stream, __builtin_return_address(0));
        return rc;
}
