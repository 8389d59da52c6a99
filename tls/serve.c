/* SPDX-License-Identifier: MIT */
/* A server: resha_serve(), with a handshake before each handler. It is made in the connection's own task, so that a
 * client that is slow with it, or never goes on, costs its place among the live ones until its time is over, and nobody
 * else anything.
 *
 * The plain stream is resha_serve()'s; the secure one is closed here when the handler returns, or by the handler. */

#include "tls.h"

struct server {
        resha_tls *tls;
        int (*fn)(resha_stream *stream, void *arg);
        void *arg;
        void (*refused)(resha_stream *plain, int code, void *arg);
        bool abort_failed;
};

/* The handler has closed it: nothing is left to be closed. */
static void closed(void *arg)
{
        *(resha_stream **)arg = NULL;
}

static int handle(resha_stream *plain, void *arg)
{
        const struct server *v = arg;
        struct rs_tls_stream *impl;
        resha_stream *s;
        int rc = rs_tls_start(plain, v->tls, NULL, &impl, &s);

        if (rc < 0) {
                if (v->refused && rc != -ECANCELED)
                        v->refused(plain, rc, v->arg);
                return rc;
        }
        impl->closed = closed;
        impl->closed_arg = &s;
        rc = v->fn(s, v->arg);
        if (s && rc < 0 && v->abort_failed)
                resha_stream_abort(s);
        resha_stream_close(s);
        return rc;
}

int resha_tls_serve(resha_listener *l, resha_tls *t, int (*fn)(resha_stream *stream, void *arg), void *arg,
                    const resha_tls_serve_opts *opts)
{
        static const resha_tls_serve_opts defaults;
        const resha_tls_serve_opts *o = opts ? opts : &defaults;
        struct server v = { t, fn, arg, o->refused, o->serve.abort_failed };

        for (size_t i = 0; i < sizeof o->_reserved / sizeof o->_reserved[0]; i++)
                if (o->_reserved[i])
                        return resha_fail(-EINVAL, "a reserved word of TLS serve options is not zero");
        if (!t->server)
                return resha_fail(-EINVAL, "a client's TLS configuration cannot serve: make it by resha_tls_server()");
        return resha_serve(l, handle, &v, &o->serve);
}
