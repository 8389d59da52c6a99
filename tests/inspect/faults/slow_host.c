/* SPDX-License-Identifier: MIT */
/* The fault: a session that makes two requests at once to each host, and a host that accepts connections and does not
 * answer. Two requests hold its places; the other three wait for one, and could wait for as long as the host likes. */
#include <stdio.h>

#include <resha/http.h>
#include <resha/resha.h>

enum { REQUESTS = 5 };

struct client {
        resha_http *session;
        char url[40];
};

static int never_answer(resha_stream *s, void *arg)
{
        (void)s;
        (void)arg;
        return resha_sleep(RESHA_S(3600));
}

static int fetch(void *arg)
{
        struct client *c = arg;
        resha_response *r RESHA_CLEANUP(resha_response_freep) = NULL;
        return resha_http_get(c->session, c->url, &r);
}

static int program(void *arg)
{
        struct client c = { NULL, "" };
        resha_listener *l RESHA_CLEANUP(resha_listener_closep) = NULL;
        resha_http *session RESHA_CLEANUP(resha_http_freep) = NULL;
        resha_addr at;
        (void)arg;
        int rc = resha_tcp_listen("127.0.0.1", 0, &l);
        if (rc >= 0)
                rc = resha_listener_addr(l, &at);
        if (rc >= 0)
                rc = resha_http_new(&(resha_http_opts){ .max_per_host = 2 }, &session);
        if (rc < 0)
                return rc;
        c.session = session;
        snprintf(c.url, sizeof c.url, "http://127.0.0.1:%u/", (unsigned)resha_addr_port(&at));
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (int i = 0; i < REQUESTS; i++)
                resha_spawn(&g, fetch, &c);
        return resha_group_end(&g, resha_serve(l, never_answer, NULL, NULL));
}

int main(void)
{
        return resha_main(program, NULL);
}
