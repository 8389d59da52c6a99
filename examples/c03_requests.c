/* SPDX-License-Identifier: MIT */
/* C3: thirty requests to a server that takes 200 ms for each: all at once, then five at a time under a semaphore. The
 * server counts how many it has at once. */
#include <stdio.h>

#include <resha/resha.h>

enum { REQUESTS = 30 };

struct server {
        resha_listener *listener;
        int now, most;
};

static int answer(resha_stream *s, void *arg)
{
        struct server *server = arg;
        char line[64];
        ssize_t n = resha_read_line(s, line, sizeof line);

        if (n <= 0)
                return (int)n;
        server->now++;
        server->most = server->now > server->most ? server->now : server->most;
        int rc = resha_sleep(RESHA_MS(200));
        server->now--;
        return rc < 0 ? rc : resha_write_all(s, "OK\n", 3, NULL);
}

static int serve(void *arg)
{
        struct server *server = arg;

        return resha_serve(server->listener, answer, server, NULL);
}

struct request {
        const resha_addr *addr;
        resha_semaphore *permits; /* NULL: no limit */
};

static int ask(const struct request *r)
{
        resha_stream *s RESHA_CLEANUP(resha_stream_closep) = NULL;
        char line[8];
        int rc = resha_tcp_connect_addr(r->addr, &s);

        if (rc >= 0)
                rc = resha_write_all(s, "GET\n", 4, NULL);
        return rc < 0 ? rc : (int)resha_read_line(s, line, sizeof line);
}

static int limited(void *arg)
{
        struct request *r = arg;
        int rc = r->permits ? resha_semaphore_acquire(r->permits) : 0;

        if (rc < 0)
                return rc;
        rc = ask(r);
        if (r->permits)
                resha_semaphore_release(r->permits);
        return rc;
}

static int requests(const char *what, struct server *server, const resha_addr *addr, resha_semaphore *permits)
{
        struct request r[REQUESTS];
        resha_instant start = resha_now();

        server->most = 0;
        for (int i = 0; i < REQUESTS; i++)
                r[i] = (struct request){ addr, permits };
        int rc = resha_gather(limited, r, REQUESTS, sizeof r[0], NULL);
        printf("%s: %.1f s, the server saw %d at once\n", what, (double)resha_between(start, resha_now()).ns / 1e9,
               server->most);
        return rc;
}

static int program(void *arg)
{
        resha_listener *l RESHA_CLEANUP(resha_listener_closep) = NULL;
        struct server server = { .now = 0 };
        resha_semaphore five;
        resha_addr addr;

        (void)arg;
        int rc = resha_tcp_listen("127.0.0.1", 0, &l);
        if (rc >= 0)
                rc = resha_listener_addr(l, &addr);
        if (rc < 0)
                return rc;
        server.listener = l;
        resha_semaphore_init(&five, 5);
        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .background = true }); /* the server ends with the body */
        resha_spawn(&g, serve, &server);
        rc = requests("all at once   ", &server, &addr, NULL);
        if (rc >= 0)
                rc = requests("five at a time", &server, &addr, &five);
        return resha_group_end(&g, rc);
}

int main(void)
{
        return resha_main(program, NULL);
}
