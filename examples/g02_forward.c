/* SPDX-License-Identifier: MIT */
/* G2: a port forwarder: each connection is passed on to another address, in both directions. An end of one direction is
 * passed on as such while the other goes on; a reset is passed on as a reset; a connection on which nothing moves is
 * broken off.   g2 PORT HOST PORT forwards; without arguments it shows itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <resha/resha.h>

struct forwarder {
        const char *host;
        uint16_t port;
        resha_duration idle;
        resha_serve_opts opts;
        resha_listener *listener;
};

struct pump {
        resha_stream *from, *to;
        resha_scope *quiet; /* both directions: its deadline moves with each piece */
        resha_duration idle;
};

static int pump(void *arg)
{
        const struct pump *p = arg;
        char buf[16 * 1024];
        ssize_t n;

        while ((n = resha_read(p->from, buf, sizeof buf)) > 0) {
                int rc = resha_write_all(p->to, buf, (size_t)n, NULL); /* waits for who reads slowly */
                if (rc < 0)
                        return rc;
                resha_scope_reschedule(p->quiet, resha_after(p->idle));
        }
        return n < 0 ? (int)n : resha_stream_shutdown(p->to);
}

/* A failure, of the connect too, resets the client's side (abort_failed). */
static int forward(resha_stream *client, void *arg)
{
        const struct forwarder *f = arg;
        resha_stream *server RESHA_CLEANUP(resha_stream_closep) = NULL;
        int rc = resha_tcp_connect(f->host, f->port, &server);

        if (rc < 0)
                return rc;
        RESHA_SCOPE(quiet);
        resha_timeout_begin(&quiet, f->idle);
        struct pump both[] = { { client, server, &quiet, f->idle }, { server, client, &quiet, f->idle } };
        rc = resha_gather(pump, both, 2, sizeof both[0], NULL);
        if (rc < 0)
                resha_stream_abort(server);
        return resha_scope_end(&quiet, rc);
}

static int serve(void *arg)
{
        const struct forwarder *f = arg;

        return resha_serve(f->listener, forward, arg, &f->opts);
}

/* ---- a demonstration ---- */

/* What is behind: counts bytes up to the end, and answers; "reset" makes it reset. */
static int count_bytes(resha_stream *s, void *arg)
{
        char buf[1024], answer[64];
        size_t total = 0;
        ssize_t n;

        (void)arg;
        while ((n = resha_read(s, buf, sizeof buf)) > 0) {
                if (memmem(buf, (size_t)n, "reset", 5))
                        resha_stream_abort(s);
                total += (size_t)n;
        }
        if (n < 0)
                return (int)n;
        snprintf(answer, sizeof answer, "%zu bytes, and an end", total);
        return resha_write_all(s, answer, strlen(answer), NULL);
}

static int serve_behind(void *arg)
{
        return resha_serve(arg, count_bytes, NULL, NULL);
}

static int ask(const resha_addr *addr, const char *text, bool end)
{
        resha_stream *s RESHA_CLEANUP(resha_stream_closep) = NULL;
        char answer[64];
        int rc = resha_tcp_connect_addr(addr, &s);

        if (rc == 0)
                rc = resha_write_all(s, text, strlen(text), NULL);
        if (rc == 0 && end)
                rc = resha_stream_shutdown(s);
        if (rc < 0)
                return rc;
        resha_instant asked = resha_now();
        ssize_t n = resha_read_exactly(s, answer, sizeof answer); /* to its end */
        double took = (double)resha_between(asked, resha_now()).ns / 1e9;
        if (n == -ECANCELED)
                return -ECANCELED;
        printf("%s, %s: %.*s (after %.0f s)\n", text, end ? "then an end" : "and no end",
               n < 0 ? (int)sizeof answer : (int)n, n < 0 ? resha_strerror((int)n) : answer, took);
        return 0;
}

static int show(const struct forwarder *f)
{
        resha_addr addr;
        int rc = resha_listener_addr(f->listener, &addr);

        if (rc == 0)
                rc = ask(&addr, "some words", true);
        if (rc == 0)
                rc = ask(&addr, "reset", false);
        return rc < 0 ? rc : ask(&addr, "silence", false);
}

static int demonstrate(struct forwarder *f)
{
        resha_listener *behind RESHA_CLEANUP(resha_listener_closep) = NULL;
        resha_addr addr;
        int rc = resha_tcp_listen("127.0.0.1", 0, &behind);

        if (rc < 0 || (rc = resha_listener_addr(behind, &addr)) < 0)
                return rc;
        f->port = resha_addr_port(&addr);
        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        resha_spawn(&g, serve_behind, behind);
        resha_spawn(&g, serve, f);
        return resha_group_end(&g, show(f));
}

static uint16_t number(const char *text)
{
        return text ? (uint16_t)strtoul(text, NULL, 10) : 0;
}

static int program(void *arg)
{
        resha_listener *listener RESHA_CLEANUP(resha_listener_closep) = NULL;
        char **words = arg; /* PORT HOST PORT, or none */
        struct forwarder f = { .host = words ? words[1] : "127.0.0.1",
                               .port = words ? number(words[2]) : 0,
                               .idle = RESHA_S(words ? 300 : 10),
                               .opts = { .max_connections = 1000, .abort_failed = true } };
        int rc = resha_tcp_listen("127.0.0.1", words ? number(words[0]) : 0, &listener);

        f.listener = listener;
        if (rc < 0)
                return rc;
        return words ? serve(&f) : demonstrate(&f);
}

int main(int argc, char **argv)
{
        return resha_main(program, argc == 4 ? argv + 1 : NULL);
}
