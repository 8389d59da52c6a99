/* SPDX-License-Identifier: MIT */
/* G11: an echo server on every core. A loop on each, with one queue of connections: who is free takes the next one.
 * g11 PORT serves (nc 127.0.0.1 PORT); without a port it shows itself, on two loops. */
#include <stdio.h>
#include <stdlib.h>

#include <resha/resha.h>

static int echo(resha_stream *stream, void *arg)
{
        char buf[4096];
        ssize_t n;
        int rc = 0;

        (void)arg;
        while (rc == 0 && (n = resha_read(stream, buf, sizeof buf)) != 0)
                rc = n < 0 ? (int)n : resha_write_all(stream, buf, (size_t)n, NULL);
        return rc;
}

static int serve_on(resha_listener *listener)
{
        return resha_serve(listener, echo, NULL, &(resha_serve_opts){ .grace = RESHA_S(5) });
}

static int serve(void *arg) /* the main task of each loop */
{
        resha_listener *listener RESHA_CLEANUP(resha_listener_closep) = NULL;
        int rc = resha_listen(arg, &(resha_listen_opts){ .shared = true }, &listener);

        return rc < 0 ? rc : serve_on(listener);
}

static int serve_task(void *arg)
{
        return serve_on(arg);
}

static int ask(resha_listener *listener)
{
        resha_stream *stream RESHA_CLEANUP(resha_stream_closep) = NULL;
        resha_addr at;
        char line[64];
        int rc = resha_listener_addr(listener, &at);

        if (rc == 0)
                rc = resha_tcp_connect_addr(&at, &stream);
        if (rc == 0)
                rc = resha_write_all(stream, "hello\n", 6, NULL);
        ssize_t n = rc < 0 ? rc : resha_read_line(stream, line, sizeof line);
        if (n > 0)
                printf("%.*s", (int)n, line);
        return n < 0 ? (int)n : 0;
}

static int show(void *arg) /* the same, and a client of whichever loop takes it */
{
        resha_listener *listener RESHA_CLEANUP(resha_listener_closep) = NULL;
        int rc = resha_listen(arg, &(resha_listen_opts){ .shared = true }, &listener);

        if (rc < 0)
                return rc;
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, serve_task, listener);
        rc = ask(listener);
        resha_listener_shutdown(listener);
        return resha_group_end(&g, rc);
}

int main(int argc, char **argv)
{
        resha_addr at;

        if (resha_addr_parse("127.0.0.1", argc > 1 ? (uint16_t)strtoul(argv[1], NULL, 10) : 0, &at) < 0)
                return 1;
        return argc > 1 ? resha_main_loops(serve, &at, 0, 0) : resha_main_loops(show, &at, 2, 0);
}
