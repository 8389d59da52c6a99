/* SPDX-License-Identifier: MIT */
/* Times and cancels on the real network, and many requests that share one driver. */

#include "fixture.h"

#include <resha/error.h>

#include <string.h>

struct get {
        resha_http *h;
        char url[300];
        int rc;
        resha_duration after; /* cancelled after this; 0: not */
};

static int get(void *arg)
{
        struct get *g = arg;
        resha_response *r RESHA_CLEANUP(resha_response_freep) = NULL;
        g->rc = resha_http_get(g->h, g->url, &r);
        if (g->rc >= 0 && resha_response_status(r) != 200)
                return resha_fail(-EPROTO, "%s: status %d", g->url, resha_response_status(r));
        return g->rc;
}

static int get_cut(void *arg)
{
        struct get *g = arg;
        return g->after.ns > 0 ? resha_timeout(g->after, get, g) : get(g);
}

static void prepare(struct get *g, resha_http *h, int port, const char *path)
{
        *g = (struct get){ .h = h };
        snprintf(g->url, sizeof g->url, "%s", fixture_url(port, path));
}

static void takes(resha_instant from, int64_t least_ms, int64_t most_ms)
{
        int64_t ms = test_ms_since(from);
        if (ms < least_ms || ms > most_ms)
                FAIL("took %lld ms, expected %lld to %lld", (long long)ms, (long long)least_ms, (long long)most_ms);
}

NETWORK(times_are_told_apart)
{
        resha_http *h = fixture_session((resha_http_opts){ .connect = RESHA_MS(200), .read = RESHA_MS(300) });
        resha_response *r = NULL;
        resha_instant start = resha_now();
        fixture_fail(h, fixture_url(f->full, "/"), RESHA_HTTP_ECONNECT_TIMEOUT, "not connected in 0.2 s");
        takes(start, 200, 8000);
        start = resha_now();
        fixture_fail(h, fixture_url(f->silent, "/"), RESHA_HTTP_EREAD_TIMEOUT, "connected, but nothing came for 0.3 s");
        takes(start, 300, 8000);
        start = resha_now();
        fixture_fail(h, fixture_url(f->http, "/hang-body"), RESHA_HTTP_EREAD_TIMEOUT, "nothing came for 0.3 s");
        takes(start, 300, 8000);
        start = resha_now();
        ASSERT_EQ(resha_http_request(
                          h, &(resha_request){ .url = fixture_url(f->http, "/drip"), .total = RESHA_MS(400) }, &r),
                  RESHA_HTTP_ETOTAL);
        takes(start, 400, 8000);
        start = resha_now();
        fixture_get(h, fixture_url(f->http, "/drip"), 200, "xxxxxxxxxxxxxxxxxxxx"); /* slow, but never idle */
        takes(start, 950, 8000);
        resha_http_free(h);
        return 0;
}

NETWORK(handshake_counts_as_connecting)
{
        char url[64];
        resha_http *h = fixture_session((resha_http_opts){ .connect = RESHA_MS(200) });
        snprintf(url, sizeof url, "https://127.0.0.1:%d/", f->silent);
        fixture_fail(h, url, RESHA_HTTP_ECONNECT_TIMEOUT, "not connected in 0.2 s");
        resha_http_free(h);
        return 0;
}

/* Whatever it waits for: at once, without a trace, and the next request works. */
NETWORK(cancel_at_any_moment)
{
        static const char *const paths[] = { "/hang", "/hang-body", "/drip" };
        struct get g;
        for (int i = 0; i < 12; i++) {
                int port = i % 4 == 3 ? f->full : f->http;
                prepare(&g, f->h, port, paths[i % 4 % 3]);
                resha_instant start = resha_now();
                ASSERT_EQ(resha_timeout(RESHA_MS(30 + 5 * i), get, &g), -ETIME);
                ASSERT_EQ(g.rc, -ECANCELED);
                takes(start, 30, 8000);
                fixture_get(f->h, fixture_url(f->http, "/ok"), 200, "hello");
        }
        return 0;
}

/* The leader goes first, second, in the middle: the others must not notice. */
NETWORK(cancelled_leader_hands_over)
{
        enum { N = 24 };
        static struct get g[N];
        for (unsigned victims = 1; victims < N; victims += 5) {
                for (unsigned i = 0; i < N; i++) {
                        prepare(&g[i], f->h, f->http, i < victims ? "/hang" : "/slow");
                        g[i].after = i < victims ? RESHA_MS(10 + 7 * i) : RESHA_NS(0);
                }
                resha_instant start = resha_now();
                ASSERT_OK(resha_gather(get_cut, g, N, sizeof g[0], &(resha_gather_opts){ .keep_going = true }));
                takes(start, 150, 8000);
                for (unsigned i = 0; i < N; i++)
                        ASSERT_EQ(g[i].rc, i < victims ? -ECANCELED : 0);
        }
        return 0;
}

/* The leader's own request is done long before those of the others, again and again. */
NETWORK(finished_leader_hands_over)
{
        enum { N = 30 };
        static struct get g[N];
        for (unsigned i = 0; i < N; i++)
                prepare(&g[i], f->h, f->http, i % 3 == 2 ? "/drip" : i % 3 == 1 ? "/slow" : "/ok");
        resha_instant start = resha_now();
        ASSERT_OK(resha_gather(get, g, N, sizeof g[0], NULL));
        takes(start, 950, 8000);
        return 0;
}

NETWORK(many_requests_few_connections)
{
        enum { N = 400 };
        static struct get g[N];
        for (unsigned i = 0; i < N; i++)
                prepare(&g[i], f->h, f->http, i % 4 ? "/ok" : "/chunked");
        ASSERT_OK(resha_gather(get, g, N, sizeof g[0], &(resha_gather_opts){ .limit = 8 }));
        ASSERT_TRUE(fixture_count(f, "connections") <= 8);
        return 0;
}

NETWORK(connections_are_limited)
{
        enum { N = 40 };
        static struct get g[N];
        resha_http *h = fixture_session((resha_http_opts){ .max_connections = 3 });
        for (unsigned i = 0; i < N; i++)
                prepare(&g[i], h, f->http, "/ok");
        ASSERT_OK(resha_gather(get, g, N, sizeof g[0], NULL));
        ASSERT_EQ(fixture_count(f, "connections"), 3);
        resha_http_free(h);
        return 0;
}

/* Failures of one are not those of others that are driven with it. */
NETWORK(failures_stay_where_they_belong)
{
        static const struct {
                const char *path;
                int rc;
        } kinds[] = { { "/ok", 0 },
                      { "/short", RESHA_HTTP_ETRUNCATED },
                      { "/reset", -ECONNRESET },
                      { "/slow", 0 },
                      { "/gzip-cut", RESHA_HTTP_ETRUNCATED },
                      { "/two-lengths", RESHA_HTTP_EPROTOCOL },
                      { "/line-200k", RESHA_HTTP_EHEADERS_TOO_LARGE } };
        enum { N = 70, KINDS = sizeof kinds / sizeof kinds[0] };
        static struct get g[N];
        static resha_error errors[N];
        for (unsigned i = 0; i < N; i++)
                prepare(&g[i], f->h, f->http, kinds[i % KINDS].path);
        ASSERT_OK(
                resha_gather(get, g, N, sizeof g[0], &(resha_gather_opts){ .keep_going = true, .ret_errors = errors }));
        for (unsigned i = 0; i < N; i++) {
                if (g[i].rc != kinds[i % KINDS].rc)
                        FAIL("%s: %d %s", g[i].url, g[i].rc, errors[i].text);
                if (g[i].rc < 0)
                        ASSERT_HAS(errors[i].text, kinds[i % KINDS].path);
        }
        return 0;
}

static int free_soon(void *arg)
{
        resha_http **h = arg;
        int rc = resha_sleep(RESHA_MS(50));
        resha_http_freep(h);
        return rc;
}

NETWORK(freed_session_ends_its_requests)
{
        enum { N = 12 };
        static struct get g[N];
        resha_http *h = fixture_session((resha_http_opts){ .max_connections = 8 });
        RESHA_GROUP(group);
        resha_group_begin(&group, &(resha_group_opts){ .keep_going = true });
        for (unsigned i = 0; i < N; i++) {
                prepare(&g[i], h, i % 3 ? f->http : f->full, i % 2 ? "/hang" : "/hang-body");
                resha_spawn(&group, get, &g[i]);
        }
        resha_spawn(&group, free_soon, &h);
        resha_instant start = resha_now();
        ASSERT_EQ(resha_group_end(&group, 0), RESHA_HTTP_ECLOSED);
        takes(start, 50, 8000);
        for (unsigned i = 0; i < N; i++)
                ASSERT_EQ(g[i].rc, RESHA_HTTP_ECLOSED);
        return 0;
}

/* A look-up that takes its time, here one that fails, leaves the others alone; no thread for each of them. */
NETWORK(look_ups_do_not_hold_up_others)
{
        enum { N = 40 };
        static struct get g[N];
        for (unsigned i = 0; i < N; i++) {
                prepare(&g[i], f->h, f->http, "/ok");
                if (i % 2)
                        snprintf(g[i].url, sizeof g[i].url, "http://no-such-host.invalid:%d/", f->http);
        }
        ASSERT_OK(resha_gather(get, g, N, sizeof g[0], &(resha_gather_opts){ .keep_going = true }));
        int code = fixture_no_host();
        for (unsigned i = 0; i < N; i++)
                ASSERT_EQ(g[i].rc, i % 2 ? code : 0);
        return 0;
}
