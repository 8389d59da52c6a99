/* SPDX-License-Identifier: MIT */
/* A connection and TLS on it, in one call: the stream owns both. */

#include "config.h"

int resha_tls_connect(const char *host, uint16_t port, resha_tls *t, resha_stream **ret_stream)
{
        const resha_tls_start_opts opts = { .host = host, .port = port };
        resha_stream *plain = NULL;
        struct rs_tls_stream *impl;
        char name[RS_TLS_HOST_MAX + 1];
        bool address;
        int rc = t ? 0 : rs_tls_default(&t);

        if (rc == 0 && t->server) /* it would wait for the other one's hello, and verify nobody */
                rc = resha_fail(-EINVAL, "a server's TLS configuration cannot connect: make it by resha_tls_client()");
        if (rc == 0 && host) /* before anybody is asked for it */
                rc = rs_tls_host_check(host, name, &address);
        if (rc == 0)
                rc = resha_tcp_connect(host, port, &plain);
        if (rc < 0)
                return rc;
        rc = rs_tls_start(plain, t, &opts, &impl, ret_stream);
        if (rc < 0)
                resha_stream_close(plain);
        else
                impl->owned = true;
        if (rc == 0)
                resha_stream_opened_by(*ret_stream, __builtin_return_address(0));
        return rc;
}
