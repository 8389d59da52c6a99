/* SPDX-License-Identifier: MIT */
/* Times, places, cancels and the end of a session: over a mock transport, on the virtual clock and under many seeds. */

#include "mock.h"
#include "test.h"

#include <resha/error.h>

#include <string.h>

static resha_http *open_session(struct mock *m, resha_http_opts o)
{
        resha_http *h = NULL;
        resha_http_transport t = mock_transport(m);
        o.transport = &t;
        ASSERT_OK(resha_http_new(&o, &h));
        return h;
}

#define OPEN(m, ...) open_session((m), (resha_http_opts){ __VA_ARGS__ })

/* A second, then an answer. */
static int answer_slow(struct mock *m, const resha_http_attempt *a, resha_http_sink *sink)
{
        (void)m;
        (void)a;
        int rc = resha_sleep(RESHA_S(1));
        return rc < 0 ? rc : mock_answer(sink, 200, NULL, "slow", 4, 0);
}

static const char *text_of(int rc)
{
        return resha_error_of(rc)->text;
}

TASK(total_time)
{
        SIM_ONLY();
        struct mock m = { .answer = answer_slow };
        resha_http *h RESHA_CLEANUP(resha_http_freep) = OPEN(&m, .total = RESHA_MS(900));
        resha_response *r = NULL;
        resha_instant start = resha_now();
        ASSERT_EQ(resha_http_get(h, "http://h/", &r), RESHA_HTTP_ETOTAL);
        ASSERT_STR(text_of(RESHA_HTTP_ETOTAL), "GET http://h/: not done in 0.9 s (total time)");
        ASSERT_ELAPSED(start, 900);
        ASSERT_OK(resha_http_request(h, &(resha_request){ .url = "http://h/", .total = RESHA_MS(1001) }, &r));
        ASSERT_EQ(resha_response_timings(r)->total.ns, 1000000000);
        resha_response_freep(&r);
        ASSERT_OK(resha_http_request(h, &(resha_request){ .url = "http://h/", .total = RESHA_FOREVER }, &r));
        resha_response_freep(&r);
        return 0;
}

struct fetch {
        resha_http *h;
        resha_request request;
        int rc;
};

static int fetch(void *arg)
{
        struct fetch *f = arg;
        resha_response *r RESHA_CLEANUP(resha_response_freep) = NULL;
        f->rc = resha_http_request(f->h, &f->request, &r);
        return f->rc;
}

/* The caller's own scopes are not the session's times. */
TASK(outer_timeout_is_not_ours)
{
        SIM_ONLY();
        struct mock m = { .answer = answer_slow };
        resha_http *h RESHA_CLEANUP(resha_http_freep) = OPEN(&m);
        struct fetch f = { .h = h, .request = { .url = "http://h/" } };
        resha_instant start = resha_now();
        ASSERT_EQ(resha_timeout(RESHA_MS(300), fetch, &f), -ETIME);
        ASSERT_EQ(f.rc, -ECANCELED);
        ASSERT_ELAPSED(start, 300);
        f.request.total = RESHA_MS(200);
        ASSERT_EQ(resha_timeout(RESHA_MS(300), fetch, &f), RESHA_HTTP_ETOTAL);
        return 0;
}

TASK(pool_time)
{
        SIM_ONLY();
        struct mock m = { .answer = answer_slow };
        resha_http *h RESHA_CLEANUP(resha_http_freep) = OPEN(&m, .max_connections = 1);
        struct fetch f[3] = { { .h = h, .request = { .url = "http://h/" } },
                              { .h = h, .request = { .url = "http://h/", .pool = RESHA_MS(999) } },
                              { .h = h, .request = { .url = "http://h/", .pool = RESHA_MS(1001) } } };
        resha_instant start = resha_now();
        ASSERT_OK(resha_gather(fetch, f, 3, sizeof f[0], &(resha_gather_opts){ .keep_going = true }));
        ASSERT_EQ(f[0].rc, 0);
        ASSERT_EQ(f[1].rc, RESHA_HTTP_EPOOL_TIMEOUT);
        ASSERT_EQ(f[2].rc, 0);
        ASSERT_EQ(m.most, 1);
        ASSERT_ELAPSED(start, 2000);
        return 0;
}

static void fill(struct fetch *f, size_t n, resha_http *h, char (*urls)[32], unsigned hosts)
{
        for (size_t i = 0; i < n; i++) {
                snprintf(urls[i], sizeof urls[i], "http://host%zu/", i % hosts);
                f[i] = (struct fetch){ .h = h, .request = { .url = urls[i] } };
        }
}

TASK(places_are_limited)
{
        SIM_ONLY();
        struct mock m = { .answer = answer_slow };
        resha_http *h RESHA_CLEANUP(resha_http_freep) = OPEN(&m, .max_connections = 4);
        struct fetch f[20];
        char urls[20][32];
        resha_instant start = resha_now();
        fill(f, 20, h, urls, 3);
        ASSERT_OK(resha_gather(fetch, f, 20, sizeof f[0], NULL));
        ASSERT_EQ(m.most, 4);
        ASSERT_ELAPSED(start, 5000);
        return 0;
}

TASK(places_of_a_host_are_limited)
{
        SIM_ONLY();
        struct mock m = { .answer = answer_slow };
        resha_http *h RESHA_CLEANUP(resha_http_freep) = OPEN(&m, .max_connections = 5, .max_per_host = 2);
        struct fetch f[18];
        char urls[18][32];
        resha_instant start = resha_now();
        fill(f, 18, h, urls, 2); /* nine at each of two hosts: four at once */
        ASSERT_OK(resha_gather(fetch, f, 18, sizeof f[0], NULL));
        ASSERT_EQ(m.most, 4);
        ASSERT_ELAPSED(start, 5000);
        return 0;
}

/* A redirect gives its place back: with one place, it would wait for itself. */
static int answer_redirect(struct mock *m, const resha_http_attempt *a, resha_http_sink *sink)
{
        (void)m;
        if (strcmp(mock_path(a), "/from") == 0)
                return mock_answer(sink, 302, "Location: /to\n", NULL, 0, 0);
        return mock_answer(sink, 200, NULL, NULL, 0, 0);
}

TASK(redirect_needs_one_place)
{
        struct mock m = { .answer = answer_redirect };
        resha_http *h RESHA_CLEANUP(resha_http_freep) = OPEN(&m, .max_connections = 1);
        resha_response *r RESHA_CLEANUP(resha_response_freep) = NULL;
        ASSERT_OK(resha_http_get(h, "http://h/from", &r));
        ASSERT_STR(resha_response_url(r), "http://h/to");
        return 0;
}

/* ---- the end of a session ---- */

TASK(closed_session_refuses)
{
        struct mock m = { .answer = answer_redirect };
        resha_http *h RESHA_CLEANUP(resha_http_freep) = OPEN(&m);
        resha_response *r = NULL;
        resha_http_close(h);
        resha_http_close(h);
        ASSERT_EQ(resha_http_get(h, "http://h/", &r), RESHA_HTTP_ECLOSED);
        ASSERT_STR(text_of(RESHA_HTTP_ECLOSED), "GET http://h/: the session is closed");
        ASSERT_EQ(m.attempts, 0);
        return 0;
}

struct end {
        resha_http *h;
        struct mock *m;
};

static int free_after_a_while(void *arg)
{
        struct end *e = arg;
        int rc = resha_sleep(RESHA_MS(500));
        if (rc < 0)
                return rc;
        resha_http_free(e->h);
        ASSERT_EQ(e->m->frees, 0); /* calls are still on their way out */
        return 0;
}

TASK(freed_session_ends_its_calls)
{
        SIM_ONLY();
        struct mock m = { .answer = answer_slow };
        struct end e = { OPEN(&m, .max_connections = 2), &m };
        struct fetch f[5];
        char urls[5][32];
        resha_instant start = resha_now();
        fill(f, 5, e.h, urls, 1);
        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .keep_going = true });
        for (int i = 0; i < 5; i++)
                resha_spawn(&g, fetch, &f[i]);
        resha_spawn(&g, free_after_a_while, &e);
        ASSERT_EQ(resha_group_end(&g, 0), RESHA_HTTP_ECLOSED);
        for (int i = 0; i < 5; i++)
                ASSERT_EQ(f[i].rc, RESHA_HTTP_ECLOSED); /* in flight or waiting for a place */
        ASSERT_EQ(m.attempts, 2);
        ASSERT_EQ(m.frees, 1);
        ASSERT_ELAPSED(start, 500);
        return 0;
}

/* ---- many seeds ---- */

static uint32_t luck(struct mock *m)
{
        uint32_t *x = m->arg;
        *x = *x * 1664525 + 1013904223;
        return *x >> 16;
}

/* Delays, redirects, failures, short bodies. */
static int answer_any(struct mock *m, const resha_http_attempt *a, resha_http_sink *sink)
{
        int rc = resha_sleep(RESHA_MS(luck(m) % 50));
        if (rc < 0)
                return rc;
        ASSERT_TRUE(m->running <= 6);
        switch (luck(m) % 8) {
        case 0: return -ECONNRESET;
        case 1: return mock_answer(sink, 200, "Content-Length: 9\n", "short", 5, 0);
        case 2: return mock_answer(sink, 302, "Location: http://host1/\n", NULL, 0, 0);
        case 3: return mock_answer(sink, 307, "Location: /x\n", NULL, 0, 0);
        case 4: return resha_sleep(RESHA_S(10)) < 0 ? -ECANCELED : -ETIMEDOUT;
        default: return mock_answer(sink, 200, NULL, a->url, strlen(a->url), 3);
        }
}

static int fetch_sometimes_cut(void *arg)
{
        struct fetch *f = arg;
        uint32_t n = (uint32_t)(uintptr_t)f->request.url;
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, n % 3 ? RESHA_S(5) : RESHA_MS(n % 70));
        return resha_scope_end(&s, fetch(arg));
}

static int storm(void *arg)
{
        uint32_t seed = 1;
        struct mock m = { .answer = answer_any, .arg = &seed };
        resha_http *h = OPEN(&m, .max_connections = 6, .max_per_host = 3, .total = RESHA_S(3), .pool = RESHA_MS(400));
        struct fetch f[60];
        char urls[60][32];
        size_t failed;
        (void)arg;
        fill(f, 60, h, urls, 4);
        ASSERT_OK(resha_gather(fetch_sometimes_cut, f, 60, sizeof f[0],
                               &(resha_gather_opts){ .keep_going = true, .limit = 20, .ret_failed = &failed }));
        ASSERT_TRUE(failed > 0 && failed < 60);
        ASSERT_TRUE(m.most <= 6);
        ASSERT_EQ(m.running, 0);
        m.answer = answer_slow; /* all places are free again: six at once, three at each of two hosts */
        m.most = 0;
        fill(f, 6, h, urls, 2);
        ASSERT_OK(resha_gather(fetch, f, 6, sizeof f[0], NULL));
        ASSERT_EQ(m.most, 6);
        resha_http_free(h);
        ASSERT_EQ(m.frees, 1);
        return 0;
}

TEST(storm_of_failures_and_cancels)
{
        RUN_SEEDS(storm, NULL, 200);
}
