/* SPDX-License-Identifier: MIT */
/* G6: the smallest web server: says hello to whatever it is asked, by HTTP/1.0 and 1.1, with connections that stay.
 * g6 PORT serves (curl http://127.0.0.1:PORT/); without a port it shows itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <resha/resha.h>

static const resha_separator blank_line = { .text = "\r\n\r\n" };

static int handle(resha_stream *stream, void *arg)
{
        static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 6\r\n\r\nhello\n";
        char head[8192];
        bool stays = true;
        int rc = 0;

        (void)arg;
        while (rc == 0 && stays) {
                ssize_t n = resha_read_until(stream, &blank_line, 1, head, sizeof head, NULL);
                if (n <= 0)
                        return (int)n;
                stays = strstr(head, " HTTP/1.1\r\n") && !strcasestr(head, "\r\nConnection: close");
                rc = resha_write_all(stream, answer, sizeof answer - 1, NULL);
        }
        return rc;
}

static int serve(void *arg)
{
        return resha_serve(arg, handle, NULL, &(resha_serve_opts){ .max_connections = 10000 });
}

static int show(resha_listener *listener)
{
        resha_stream *s RESHA_CLEANUP(resha_stream_closep) = NULL;
        char answer[256];
        resha_addr addr;
        int rc = resha_listener_addr(listener, &addr);

        if (rc == 0)
                rc = resha_tcp_connect_addr(&addr, &s);
        if (rc == 0)
                rc = resha_write_all(s, "GET / HTTP/1.0\r\n\r\n", 18, NULL);
        ssize_t n = rc < 0 ? rc : resha_read_exactly(s, answer, sizeof answer); /* to its end */
        if (n > 0)
                printf("%.*s", (int)n, answer);
        return n < 0 ? (int)n : 0;
}

static int program(void *arg)
{
        resha_listener *listener RESHA_CLEANUP(resha_listener_closep) = NULL;
        const char *port = arg;
        int rc = resha_tcp_listen("127.0.0.1", port ? (uint16_t)strtoul(port, NULL, 10) : 0, &listener);

        if (rc < 0 || port)
                return rc < 0 ? rc : serve(listener);
        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        resha_spawn(&g, serve, listener);
        return resha_group_end(&g, show(listener));
}

int main(int argc, char **argv)
{
        return resha_main(program, argc > 1 ? argv[1] : NULL);
}
