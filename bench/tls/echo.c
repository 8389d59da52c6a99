/* SPDX-License-Identifier: MIT */
/* What does a TLS server of ours cost? It talks to tls/load.c; its peer is peers/tls/epoll.c.
 *
 *     tls-echo SIZE CERTIFICATE KEY
 *
 * It sends back what comes. SIZE is that of the buffer of each connection, on its task's stack. The port goes to
 * stdout, and a signal ends it. */

#include <inttypes.h>
#include <stdio.h>

#include <resha/resha.h>
#include <resha/tls.h>

#include "lib/bench.h"

enum { SMALL = 1024, LARGE = 16384, CONNECTIONS = 20000 };

struct question {
        size_t size;
        const char *certificate, *key;
};

static int echo(resha_stream *s, char *buf, size_t size)
{
        ssize_t n;

        while ((n = resha_read(s, buf, size)) > 0) {
                int rc = resha_write_all(s, buf, (size_t)n, NULL);
                if (rc < 0)
                        return rc;
        }
        return (int)n;
}

static int echo_small(resha_stream *s, void *arg)
{
        char buf[SMALL];

        return echo(s, buf, ((struct question *)arg)->size);
}

static int echo_large(resha_stream *s, void *arg)
{
        char buf[LARGE];

        return echo(s, buf, ((struct question *)arg)->size);
}

static int program(void *arg)
{
        struct question *q = arg;
        RESHA_CLEANUP(resha_tls_unrefp) resha_tls *tls = NULL;
        RESHA_CLEANUP(resha_listener_closep) resha_listener *l = NULL;
        resha_addr at;
        int rc = resha_tls_server(&(resha_tls_opts){ .cert_file = q->certificate, .key_file = q->key }, &tls);

        if (rc == 0)
                rc = resha_tcp_listen("127.0.0.1", 0, &l);
        if (rc == 0)
                rc = resha_listener_addr(l, &at);
        if (rc < 0)
                return rc;
        printf("%" PRIu16 "\n", resha_addr_port(&at));
        fflush(stdout);
        return resha_tls_serve(l, tls, q->size > SMALL ? echo_large : echo_small, q,
                               &(resha_tls_serve_opts){ .serve.max_connections = CONNECTIONS });
}

int main(int argc, char **argv)
{
        struct question q = { .size = bench_argument(argc, argv, 1, LARGE) };

        if (argc != 4 || q.size > LARGE) {
                fprintf(stderr, "usage: tls-echo SIZE CERTIFICATE KEY (at most %d)\n", LARGE);
                return 2;
        }
        q.certificate = argv[2];
        q.key = argv[3];
        return resha_main(program, &q);
}
