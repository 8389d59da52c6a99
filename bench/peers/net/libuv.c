/* SPDX-License-Identifier: MIT */
/* libuv's echo server, as fast as it can be: one buffer for all connections, and a write that is tried at once, so that
 * a request and a copy are needed only for what the kernel does not take. */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "lib/bench.h"

struct rest {
        uv_write_t request;
        char data[];
};

static char buffer[65536];
static size_t size;

_Noreturn static void die(const char *what, int rc)
{
        fprintf(stderr, "%s: %s\n", what, uv_strerror(rc));
        exit(1);
}

static void on_closed(uv_handle_t *h)
{
        free(h);
}

static void on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *buf)
{
        (void)h;
        (void)suggested;
        *buf = uv_buf_init(buffer, (unsigned)size);
}

static void on_written(uv_write_t *request, int status)
{
        (void)status;
        free(request);
}

static void send_rest(uv_stream_t *s, const char *data, size_t n)
{
        struct rest *r = malloc(sizeof *r + n);
        if (!r)
                abort();
        memcpy(r->data, data, n);
        uv_buf_t buf = uv_buf_init(r->data, (unsigned)n);
        uv_write(&r->request, s, &buf, 1, on_written);
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
        if (n < 0) {
                uv_close((uv_handle_t *)s, on_closed);
                return;
        }
        uv_buf_t out = uv_buf_init(buf->base, (unsigned)n);
        int sent = n > 0 ? uv_try_write(s, &out, 1) : 0;
        if (sent < 0)
                sent = 0;
        if (sent < n)
                send_rest(s, buf->base + sent, (size_t)(n - sent));
}

static void on_connection(uv_stream_t *listener, int status)
{
        uv_tcp_t *t = malloc(sizeof *t);

        if (!t || status < 0 || uv_tcp_init(listener->loop, t) < 0)
                abort();
        int rc = uv_accept(listener, (uv_stream_t *)t);
        if (rc < 0)
                die("uv_accept", rc);
        uv_tcp_nodelay(t, 1);
        uv_read_start((uv_stream_t *)t, on_alloc, on_read);
}

int main(int argc, char **argv)
{
        uv_loop_t *loop = uv_default_loop();
        struct sockaddr_in at;
        int length = sizeof at;
        uv_tcp_t listener;

        if (argc != 3 || strcmp(argv[1], "echo") != 0 || (size = bench_argument(argc, argv, 2, 0)) > sizeof buffer) {
                fprintf(stderr, "usage: peer-net-libuv echo SIZE\n");
                return 2;
        }
        signal(SIGPIPE, SIG_IGN);
        uv_ip4_addr("127.0.0.1", 0, &at);
        uv_tcp_init(loop, &listener);
        int rc = uv_tcp_bind(&listener, (struct sockaddr *)&at, 0);
        if (rc == 0)
                rc = uv_listen((uv_stream_t *)&listener, 1024, on_connection);
        if (rc == 0)
                rc = uv_tcp_getsockname(&listener, (struct sockaddr *)&at, &length);
        if (rc < 0)
                die("listen", rc);
        printf("%d\n", ntohs(at.sin_port));
        fflush(stdout);
        return uv_run(loop, UV_RUN_DEFAULT);
}
