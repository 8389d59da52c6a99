/* SPDX-License-Identifier: MIT */
#ifndef TEST_TLS_PAIR_H
#define TEST_TLS_PAIR_H

/* Tests whose body gets a pair of secure streams: SECURE(name) { ... p->secure[0] ...; return 0; } */

#include "common.h"

static resha_tls *client, *server;

static inline void run_secure(resha_fn *fn, const resha_tls_opts *client_opts, const resha_tls_opts *server_opts,
                              const char *file, int line)
{
        client = tls_client(client_opts);
        server = tls_server(server_opts);
        test_run(fn, NULL, file, line);
        resha_tls_unrefp(&client);
        resha_tls_unrefp(&server);
}

#define SECURE_OF(name, client_opts, server_opts) \
        static int secure_##name(struct tls_pair *p); \
        static int with_##name(__attribute__((unused)) void *arg) \
        { \
                struct tls_pair p = { .client = client, .server = server }; \
                ASSERT_OK(tls_pair_open(&p)); \
                int rc = secure_##name(&p); \
                tls_pair_close(&p); \
                return rc; \
        } \
        TEST(name) \
        { \
                run_secure(with_##name, client_opts, server_opts, TEST_AT); \
        } \
        static int secure_##name(struct tls_pair *p)

#define SECURE(name) SECURE_OF(name, NULL, NULL)

/* The engine inside of a secure stream. */
static inline struct rs_tls_engine *engine_of(resha_stream *s)
{
        return &((struct rs_tls_stream *)resha_stream_impl(s, &rs_tls_stream_ops))->engine;
}

#endif
