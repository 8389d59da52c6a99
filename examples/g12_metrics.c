/* SPDX-License-Identifier: MIT */
/* G12: Figures for monitoring. A server of /metrics for Prometheus, beside the work. With a port it serves there until
 * it is stopped; without one it asks itself once, and prints what the page says of the program's own figures. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <resha/resha.h>

enum { JOBS, LONGEST, FIGURES };

struct work {
        resha_shown shown;
        uint64_t figures[FIGURES];
};

static const resha_figure figures[FIGURES] = {
        [JOBS] = { "demo_jobs_total", "Jobs that the program has done.", RESHA_FIGURE_COUNTER, false },
        [LONGEST] = { "demo_longest_seconds", "The longest that one took.", RESHA_FIGURE_MOST, true },
};
static const resha_shown_kind kind = { .kind = "work", .figures = figures, .count = FIGURES, .label = "kind" };

static void work_end(struct work *w)
{
        resha_shown_end(&w->shown);
}

/* ---- the server ---- */

static int answer(resha_stream *s, const char *status, const char *type, const char *body, size_t size)
{
        char head[256];
        int n = snprintf(head, sizeof head,
                         "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n", status,
                         type, size);
        int rc = resha_write_all(s, head, (size_t)n, NULL);

        return rc < 0 ? rc : resha_write_all(s, body, size, NULL);
}

static void text_free(char **text)
{
        resha_free(*text);
}

static int metrics(resha_stream *s, void *arg)
{
        char *text RESHA_CLEANUP(text_free) = NULL;
        static const resha_separator end = { .text = "\r\n\r\n" };
        char head[4096];
        size_t size;
        RESHA_SCOPE(most);

        (void)arg;
        resha_timeout_begin(&most, RESHA_S(5)); /* a client that hangs is no reason to keep its connection */
        ssize_t n = resha_read_until(s, &end, 1, head, sizeof head, NULL);
        if (n <= 0)
                return resha_scope_end(&most, (int)n);
        if (strncmp(head, "GET /metrics ", 13) != 0)
                return resha_scope_end(&most, answer(s, "404 Not Found", "text/plain", "", 0));
        int rc = resha_stats_text(&text, &size);
        if (rc == 0)
                rc = answer(s, "200 OK", "text/plain; version=0.0.4", text, size);
        return resha_scope_end(&most, rc < 0 ? rc : resha_stream_finish(s));
}

static int serve(void *listener)
{
        return resha_serve(listener, metrics, NULL, &(resha_serve_opts){ .max_connections = 4 });
}

/* ---- the work ---- */

static int job(void *arg)
{
        (void)arg;
        return 0;
}

static int work(struct work *w)
{
        int rc = resha_shown_begin(&w->shown, &kind, w, "square", w->figures, NULL);

        for (int i = 0; rc >= 0 && i < 3; i++) {
                resha_instant start = resha_now();
                rc = resha_pool_run(NULL, job, w, NULL);
                uint64_t took = (uint64_t)resha_between(start, resha_now()).ns;
                w->figures[JOBS]++;
                if (took > w->figures[LONGEST])
                        w->figures[LONGEST] = took;
        }
        return rc;
}

/* ---- a client ---- */

static int print_page(uint16_t port)
{
        resha_stream *s RESHA_CLEANUP(resha_stream_closep) = NULL;
        static const char request[] = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
        char line[512];
        ssize_t n;
        int rc = resha_tcp_connect("127.0.0.1", port, &s);

        if (rc == 0)
                rc = resha_write_all(s, request, sizeof request - 1, NULL);
        if (rc < 0)
                return rc;
        while ((n = resha_read_line(s, line, sizeof line)) > 0)
                if (strstr(line, "demo_"))
                        fputs(line, stdout);
        return (int)n;
}

static int with_server(resha_listener *l, uint16_t port)
{
        struct work w RESHA_CLEANUP(work_end) = { .figures = { 0 } };
        resha_addr addr;
        RESHA_GROUP(g);

        int rc = resha_listener_addr(l, &addr);
        if (rc < 0)
                return rc;
        resha_group_begin(&g, &(resha_group_opts){ .background = true }); /* it ends with the work */
        resha_spawn(&g, serve, l);
        rc = work(&w);
        if (rc >= 0)
                rc = port ? resha_sleep(RESHA_FOREVER) : print_page(resha_addr_port(&addr));
        return resha_group_end(&g, rc);
}

static int program(void *arg)
{
        resha_listener *l RESHA_CLEANUP(resha_listener_closep) = NULL;
        const uint16_t *given = arg;
        uint16_t port = given ? *given : 0;
        int rc = resha_tcp_listen("127.0.0.1", port, &l);

        return rc < 0 ? rc : with_server(l, port);
}

int main(int argc, char **argv)
{
        uint16_t port = argc > 1 ? (uint16_t)strtoul(argv[1], NULL, 10) : 0;

        return resha_main(program, &port);
}
