/* SPDX-License-Identifier: MIT */
/* G5: thousands of connections: each of many clients waits for news from one server, which sends them a piece every
 * second; a connection that nothing comes through costs a small stack and a socket. See it with RESHA_TIMELINE=1. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <resha/resha.h>

enum { NEWS = 3, AT_DOOR = 500 };

struct site {
        resha_listener *listener;
        resha_addr addr;
        resha_event news[NEWS]; /* set when that piece is there */
        resha_event all_here;
        resha_semaphore door; /* who knocks: fewer than the kernel keeps for a server (backlog) */
        int clients, connected, most, received;
};

/* One client at the server: what is new is written to it. */
static int publish(resha_stream *stream, void *arg)
{
        struct site *s = arg;
        char line[16];
        int rc = resha_write_all(stream, "welcome\n", 8, NULL);

        if (++s->connected == s->clients)
                resha_event_set(&s->all_here);
        s->most = s->connected > s->most ? s->connected : s->most;
        for (int i = 0; rc == 0 && i < NEWS; i++) {
                rc = resha_event_wait(&s->news[i]);
                snprintf(line, sizeof line, "news %d\n", i + 1);
                if (rc == 0)
                        rc = resha_write_all(stream, line, strlen(line), NULL);
        }
        s->connected--;
        return rc;
}

static int serve(void *arg)
{
        struct site *s = arg;

        return resha_serve(s->listener, publish, s, &(resha_serve_opts){ .max_connections = 100000 });
}

static int enter(struct site *s, resha_stream **ret_stream)
{
        char line[16];
        int rc = resha_semaphore_acquire(&s->door);

        if (rc < 0)
                return rc;
        rc = resha_tcp_connect_addr(&s->addr, ret_stream);
        if (rc == 0)
                rc = (int)resha_read_line(*ret_stream, line, sizeof line);
        resha_semaphore_release(&s->door);
        return rc;
}

static int read_news(void *arg)
{
        resha_stream *stream RESHA_CLEANUP(resha_stream_closep) = NULL;
        struct site *s = arg;
        char line[16];
        ssize_t n;
        int rc = enter(s, &stream);

        if (rc < 0)
                return rc;
        while ((n = resha_read_line(stream, line, sizeof line)) > 0)
                s->received++;
        return (int)n;
}

static int report(struct site *s)
{
        int rc = resha_event_wait(&s->all_here);

        for (int i = 0; rc == 0 && i < NEWS; i++) {
                rc = resha_sleep(RESHA_S(1));
                if (rc == 0)
                        resha_event_set(&s->news[i]);
        }
        return rc;
}

static int show(struct site *s)
{
        resha_instant start = resha_now();
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        for (int i = 0; i < s->clients; i++)
                resha_spawn(&g, read_news, s);
        int rc = resha_group_end(&g, report(s));
        if (rc < 0)
                return rc;
        double took = (double)resha_between(start, resha_now()).ns / 1e9;
        printf("%d clients at once, %d pieces of news received, %.1f s\n", s->most, s->received, took);
        return 0;
}

static int program(void *arg)
{
        resha_listener *listener RESHA_CLEANUP(resha_listener_closep) = NULL;
        const char *clients = arg;
        struct site s = { .clients = clients ? (int)strtol(clients, NULL, 10) : 2000 };
        int rc = resha_tcp_listen("127.0.0.1", 0, &listener);

        if (rc < 0 || (rc = resha_listener_addr(listener, &s.addr)) < 0)
                return rc;
        s.listener = listener;
        resha_semaphore_init(&s.door, AT_DOOR);
        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        resha_spawn(&g, serve, &s);
        return resha_group_end(&g, show(&s));
}

int main(int argc, char **argv)
{
        return resha_main(program, argc > 1 ? argv[1] : NULL);
}
