/* SPDX-License-Identifier: MIT */
/* G9: a server that is run by signals: SIGHUP makes it read its settings again, SIGTERM makes it finish what it has
 * begun and stop; Ctrl-C ends it, too.   g9 PORT serves (nc 127.0.0.1 PORT); without a port it shows itself. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <resha/resha.h>
#include <resha/test.h>

struct server {
        resha_listener *listener;
        int version; /* of its settings, which would be in a file */
};

/* Answers each line. */
static int handle(resha_stream *stream, void *arg)
{
        const struct server *s = arg;
        char line[256], answer[64];
        ssize_t n;
        int rc = 0;

        while (rc == 0 && (n = resha_read_line(stream, line, sizeof line)) != 0) {
                if (n < 0)
                        return (int)n;
                int size = snprintf(answer, sizeof answer, "hello, by settings %d\n", s->version);
                rc = resha_write_all(stream, answer, (size_t)size, NULL);
        }
        return rc;
}

static int accept_all(void *arg)
{
        struct server *s = arg;

        return resha_serve(s->listener, handle, s, &(resha_serve_opts){ .grace = RESHA_S(5) });
}

static int serve(void *arg)
{
        struct server *s = arg;
        resha_signals *signals RESHA_CLEANUP(resha_signal_closep) = NULL;
        resha_signal_info info;
        RESHA_GROUP(g);
        int rc = resha_signal_open((const int[]){ SIGHUP, SIGTERM }, 2, &signals);

        if (rc < 0)
                return rc;
        resha_group_begin(&g, NULL);
        resha_spawn(&g, accept_all, s);
        while ((rc = resha_signal_next(signals, &info)) == 1 && info.signal == SIGHUP)
                printf("settings %d\n", ++s->version);
        if (rc == 1)
                printf("drains\n");
        resha_listener_shutdown(s->listener); /* accept_all() waits for its clients, and returns */
        return resha_group_end(&g, rc < 0 ? rc : 0);
}

/* In the simulated world a signal is the world's. */
static void send_signal(int sig)
{
        if (resha_test_signal(sig) == -EPERM)
                (void)kill(getpid(), sig);
}

static int ask(resha_stream *stream)
{
        char line[256];
        int rc = resha_write_all(stream, "who is there?\n", 14, NULL);
        ssize_t n = rc < 0 ? rc : resha_read_line(stream, line, sizeof line);

        if (n > 0)
                printf("%.*s", (int)n, line);
        return n < 0 ? (int)n : 0;
}

static int show(struct server *s)
{
        resha_stream *stream RESHA_CLEANUP(resha_stream_closep) = NULL;
        static const int order[] = { 0, SIGHUP, SIGTERM };
        resha_addr addr;
        int rc = resha_listener_addr(s->listener, &addr);

        if (rc == 0)
                rc = resha_tcp_connect_addr(&addr, &stream);
        for (int i = 0; i < 3 && rc == 0; i++) {
                if (order[i])
                        send_signal(order[i]);
                rc = resha_sleep(RESHA_MS(20));
                if (rc == 0)
                        rc = ask(stream);
        }
        return rc;
}

static int program(void *arg)
{
        struct server s = { .version = 1 };
        resha_listener *listener RESHA_CLEANUP(resha_listener_closep) = NULL;
        const char *port = arg;
        int rc = resha_tcp_listen("127.0.0.1", port ? (uint16_t)strtoul(port, NULL, 10) : 0, &listener);

        s.listener = listener;
        if (rc < 0 || port)
                return rc < 0 ? rc : serve(&s);
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, serve, &s);
        return resha_group_end(&g, show(&s));
}

int main(int argc, char **argv)
{
        return resha_main(program, argc > 1 ? argv[1] : NULL);
}
