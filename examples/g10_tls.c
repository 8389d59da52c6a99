/* SPDX-License-Identifier: MIT */
/* G10: an echo by TLS: a server with a certificate, and a client that takes nobody else for it.
 * g10 CERTIFICATE KEY, both PEM: a certificate for "localhost" that has signed itself. */
#include <stdio.h>
#include <string.h>

#include <resha/resha.h>
#include <resha/tls.h>

static int echo(resha_stream *stream, void *arg)
{
        char buf[4096];
        ssize_t n;
        int rc = 0;

        (void)arg;
        while (rc == 0 && (n = resha_read(stream, buf, sizeof buf)) > 0)
                rc = resha_write_all(stream, buf, (size_t)n, NULL);
        return rc;
}

struct site {
        resha_listener *listener;
        resha_tls *tls;
};

static int serve(void *arg)
{
        struct site *site = arg;

        return resha_tls_serve(site->listener, site->tls, echo, NULL, NULL);
}

static int say_hello(const char *host, uint16_t port, resha_tls *tls)
{
        resha_stream *s RESHA_CLEANUP(resha_stream_closep) = NULL;
        resha_tls_info info;
        char answer[16] = "";
        int rc = resha_tls_connect(host, port, tls, &s);

        if (rc == 0)
                rc = resha_write_all(s, "hello", 5, NULL);
        ssize_t n = rc < 0 ? rc : resha_read(s, answer, sizeof answer - 1);
        if (n < 0)
                return (int)n;
        resha_tls_about(s, &info);
        printf("%s says %s, by TLS 1.%d, to who trusts %s\n", host, answer, (int)info.version - 0x301, info.subject);
        return 0;
}

static int program(void *arg)
{
        char **files = arg;
        resha_tls *server RESHA_CLEANUP(resha_tls_unrefp) = NULL, *client RESHA_CLEANUP(resha_tls_unrefp) = NULL;
        resha_listener *listener RESHA_CLEANUP(resha_listener_closep) = NULL;
        resha_addr addr;
        int rc = resha_tls_server(&(resha_tls_opts){ .cert_file = files[0], .key_file = files[1] }, &server);

        if (rc == 0)
                rc = resha_tls_client(&(resha_tls_opts){ .trust_file = files[0] }, &client);
        if (rc == 0)
                rc = resha_tcp_listen("127.0.0.1", 0, &listener);
        if (rc < 0 || (rc = resha_listener_addr(listener, &addr)) < 0)
                return rc;
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, serve, &((struct site){ listener, server }));
        rc = say_hello("localhost", resha_addr_port(&addr), client);
        if (rc == 0 && (rc = say_hello("127.0.0.1", resha_addr_port(&addr), client)) == RESHA_TLS_EVERIFY) {
                printf("refused: %s\n", resha_error_of(rc)->text);
                rc = 0;
        }
        resha_listener_shutdown(listener);
        return resha_group_end(&g, rc);
}

int main(int argc, char **argv)
{
        if (argc != 3)
                return fprintf(stderr, "usage: g10 CERTIFICATE KEY\n"), 2;
        return resha_main(program, argv + 1);
}
