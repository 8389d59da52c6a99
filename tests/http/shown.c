/* SPDX-License-Identifier: MIT */
/* What a session and its calls say of themselves: host and phase, figures for monitoring, what is open. */

#include "mock.h"
#include "session.h"
#include "test.h"

#include <resha/alloc.h>
#include <resha/error.h>
#include <resha/stats.h>

#include <string.h>

static resha_http *open_session(struct mock *m, resha_http_opts o)
{
        resha_http *h = NULL;
        resha_http_transport t = mock_transport(m);
        o.transport = m ? &t : NULL;
        ASSERT_OK(resha_http_new(&o, &h));
        return h;
}

#define OPEN(m, ...) open_session((m), (resha_http_opts){ __VA_ARGS__ })

/* ---- phases ---- */

static int answer_and_look(struct mock *m, const resha_http_attempt *a, resha_http_sink *sink)
{
        const resha_doing *d = resha_doing_current();
        (void)m;
        ASSERT_STR(d->what, "http");
        note("%s %s;", d->text, d->phase);
        if (d->attempt)
                note("attempt %u;", d->attempt);
        bool first = strncmp(mock_path(a), "/x", 2) == 0;
        int rc = mock_answer(sink, first ? 302 : 200, first ? "Location: /y\n" : "X: y\n", NULL, 0, 0);
        note("%s;", d->phase);
        if (rc == 0)
                rc = resha_http_sink_body(sink, "hello", 5);
        note("%s;", d->phase);
        return rc;
}

TASK(doing_has_host_phase_and_attempt)
{
        struct mock m = { .answer = answer_and_look };
        resha_http *h RESHA_CLEANUP(resha_http_freep) = OPEN(&m);
        resha_response *r RESHA_CLEANUP(resha_response_freep) = NULL;
        ASSERT_OK(resha_http_get(h, "http://user:secret@example.org:8080/x?key=secret", &r));
        ASSERT_STR(notes(), "GET example.org:8080 begins; reads the head; reads the body; "
                            "GET example.org:8080 begins; attempt 2; reads the head; reads the body;");
        ASSERT_PTR(resha_doing_current(), NULL);
        return 0;
}

static int answer_and_tell(struct mock *m, const resha_http_attempt *a, resha_http_sink *sink)
{
        (void)m;
        (void)a;
        note("%s;", resha_doing_current()->text);
        return mock_answer(sink, 200, "X: y\n", NULL, 0, 0);
}

TASK(doing_has_room_for_what_is_long)
{
        struct mock m = { .answer = answer_and_tell };
        resha_http *h RESHA_CLEANUP(resha_http_freep) = OPEN(&m);
        const resha_request requests[] = {
                { .url = "http://[::1]:1/" },
                { .url = "https://a.b", .method = "HEAD" },
                { .url = "http://a23456789.b23456789.c23456789.d23456789.e23456789.f23456789.g2345:65535/",
                  .method = "VERSION-CONTROL" },
        };
        for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
                resha_response *r RESHA_CLEANUP(resha_response_freep) = NULL;
                ASSERT_OK(resha_http_request(h, &requests[i], &r));
        }
        ASSERT_STR(notes(), "GET ::1:1; HEAD a.b:443; "
                            "VERSION-CONT a23456789.b23456789.c23456789.d23456789.e23456789.f23456789.:65535;");
        return 0;
}

/* ---- figures ---- */

static void text_free(char **text)
{
        resha_free(*text);
}

#define ASSERT_FIGURE(line) \
        do { \
                char *text RESHA_CLEANUP(text_free) = NULL; \
                ASSERT_OK(resha_stats_text(&text, NULL)); \
                ASSERT_HAS(text, line); \
        } while (0)

static int answer_plain(struct mock *m, const resha_http_attempt *a, resha_http_sink *sink)
{
        (void)m;
        if (strcmp(mock_path(a), "/bad") == 0)
                return -ECONNRESET;
        if (strcmp(mock_path(a), "/x") == 0)
                return mock_answer(sink, 302, "Location: /y\n", NULL, 0, 0);
        return mock_answer(sink, 200, "X: y\n", "hello", 5, 5);
}

TASK(figures_count_requests_failures_redirects_and_bytes)
{
        struct mock m = { .answer = answer_plain };
        resha_http *h RESHA_CLEANUP(resha_http_freep) = OPEN(&m);
        for (int i = 0; i < 2; i++) {
                resha_response *r RESHA_CLEANUP(resha_response_freep) = NULL;
                ASSERT_OK(resha_http_get(h, "http://example.org/x", &r));
        }
        resha_response *none = NULL;
        ASSERT_EQ(resha_http_get(h, "http://example.org/bad", &none), -ECONNRESET);
        const uint64_t *f = h->figures;
        ASSERT_EQ(f[RS_HTTP_REQUESTS], 3);
        ASSERT_EQ(f[RS_HTTP_FAILED], 1);
        ASSERT_EQ(f[RS_HTTP_ATTEMPTS], 5);
        ASSERT_EQ(f[RS_HTTP_REDIRECTS], 2);
        ASSERT_EQ(f[RS_HTTP_IN_FLIGHT], 0);
        ASSERT_TRUE(f[RS_HTTP_RECEIVED] >= 2 * (5 + strlen("Location: /y") + strlen("X: y")));
        ASSERT_FIGURE("\n# TYPE resha_http_requests_total counter\n");
        ASSERT_FIGURE("\"} 3\n# HELP resha_http_failed_total ");
        return 0;
}

/* ---- who waits for a place ---- */

static int answer_late(struct mock *m, const resha_http_attempt *a, resha_http_sink *sink)
{
        (void)m;
        (void)a;
        int rc = resha_sleep(RESHA_MS(20));
        return rc < 0 ? rc : mock_answer(sink, 200, "X: y\n", NULL, 0, 0);
}

static int get(void *arg)
{
        resha_response *r RESHA_CLEANUP(resha_response_freep) = NULL;
        return resha_http_get(arg, "http://slow.example.org/", &r);
}

static unsigned calls_in(const resha_http *h, const char *phase)
{
        unsigned n = 0;
        for (const rs_http_call *c = h->calls; c; c = c->next)
                n += strcmp(c->doing->phase, phase) == 0;
        return n;
}

TASK(figures_of_a_host_tell_who_waits_for_its_places)
{
        struct mock m = { .answer = answer_late };
        resha_http *h RESHA_CLEANUP(resha_http_freep) = OPEN(&m, .max_per_host = 2);
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (int i = 0; i < 5; i++)
                resha_spawn(&g, get, h);
        ASSERT_OK(resha_yield());
        ASSERT_OK(resha_yield());
        ASSERT_EQ(calls_in(h, "waits for a place of the host"), 3);
        ASSERT_EQ(calls_in(h, "begins"), 2);
        ASSERT_FIGURE(",host=\"slow.example.org:80\"} 3\n");
        ASSERT_FIGURE(",host=\"slow.example.org:80\"} 2\n");
        ASSERT_EQ(h->figures[RS_HTTP_WAITING], 3);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(h->figures[RS_HTTP_WAITING], 0);
        char *text RESHA_CLEANUP(text_free) = NULL;
        ASSERT_OK(resha_stats_text(&text, NULL));
        ASSERT_PTR(strstr(text, "slow.example.org"), NULL); /* nobody uses it any more */
        return 0;
}

/* ---- on the network ---- */

struct silent {
        resha_http *h;
        char url[64];
};

static int get_silent(void *arg)
{
        struct silent *s = arg;
        resha_response *r RESHA_CLEANUP(resha_response_freep) = NULL;
        int rc = resha_http_get(s->h, s->url, &r);
        return rc == -ECANCELED ? 0 : rc;
}

TASK(doing_tells_that_a_server_does_not_answer)
{
        if (test_is_sim())
                test_skip("needs the kernel's network");
        resha_http *h RESHA_CLEANUP(resha_http_freep) = NULL;
        resha_listener *l RESHA_CLEANUP(resha_listener_closep) = NULL;
        resha_stream *peer RESHA_CLEANUP(resha_stream_closep) = NULL;
        struct silent s;
        resha_addr addr;
        RESHA_GROUP(g);
        ASSERT_OK(resha_http_new(NULL, &h));
        ASSERT_OK(resha_tcp_listen("127.0.0.1", 0, &l));
        ASSERT_OK(resha_listener_addr(l, &addr));
        s.h = h;
        snprintf(s.url, sizeof s.url, "http://127.0.0.1:%u/", (unsigned)resha_addr_port(&addr));
        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        resha_spawn(&g, get_silent, &s);
        ASSERT_EQ(resha_accept(l, &peer), 1);
        char byte;
        ASSERT_EQ(resha_read(peer, &byte, 1), 1); /* the request has come */
        ASSERT_EQ(calls_in(h, "waits for the answer"), 1);
        ASSERT_FIGURE("\nresha_http_connections{loop=");
        ASSERT_EQ(h->figures[RS_HTTP_CONNECTIONS], 1);
        ASSERT_EQ(h->figures[RS_HTTP_IN_FLIGHT], 1);
        return resha_group_end(&g, 0);
}

static int left_open(__attribute__((unused)) void *arg)
{
        resha_http *h;
        int rc = resha_http_new(NULL, &h);
        return rc;
}

static int in_a_child(__attribute__((unused)) void *arg)
{
        return test_run_opts(left_open, NULL, &(resha_run_opts){ .debug = true });
}

TEST(a_session_that_is_left_open_is_told_of)
{
        struct test_child c;
        test_child(in_a_child, NULL, &c);
        ASSERT_HAS(c.text, "left open: http session 0 requests run, 0 wait for a place, 0 connections open");
        ASSERT_HAS(c.text, ", at left_open+");
}
