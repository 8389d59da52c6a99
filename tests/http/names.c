/* SPDX-License-Identifier: MIT */
/* Slow look-ups: getaddrinfo() of this file stands in for the C library's, in libcurl too. */

#include "fixture.h"

#include <resha/error.h>

#include <dlfcn.h>
#include <netdb.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

enum { SLOW_MS = 400 };

static atomic_int asked, at_once, most;

typedef int getaddrinfo_fn(const char *, const char *, const struct addrinfo *, struct addrinfo **);

/* "*.slow" takes its time and is this machine; others as ever. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **ret)
{
        const char *dot = name ? strrchr(name, '.') : NULL;
        getaddrinfo_fn *real;
        void *symbol = dlsym(RTLD_NEXT, "getaddrinfo");
        memcpy(&real, &symbol, sizeof real);
        if (!dot || strcmp(dot, ".slow") != 0)
                return real(name, service, hints, ret);
        atomic_fetch_add(&asked, 1);
        int now = atomic_fetch_add(&at_once, 1) + 1, seen = atomic_load(&most);
        while (now > seen && !atomic_compare_exchange_weak(&most, &seen, now))
                ;
        nanosleep(&(struct timespec){ .tv_nsec = SLOW_MS * 1000000L }, NULL);
        atomic_fetch_sub(&at_once, 1);
        return real("127.0.0.1", service, hints, ret);
}

struct get {
        resha_http *h;
        char url[64];
        int rc;
};

static int get(void *arg)
{
        struct get *g = arg;
        resha_response *r RESHA_CLEANUP(resha_response_freep) = NULL;
        g->rc = resha_http_get(g->h, g->url, &r);
        if (g->rc >= 0)
                ASSERT_EQ(resha_response_status(r), 200);
        return g->rc;
}

/* A look-up that was given up goes on, and owns its memory until it ends. */
static int wait_for_threads(void)
{
        int rc = resha_sleep(RESHA_MS(20));
        while (rc >= 0 && atomic_load(&at_once) > 0)
                rc = resha_sleep(RESHA_MS(20));
        return rc < 0 ? rc : resha_sleep(RESHA_MS(50));
}

static void prepare(struct get *g, resha_http *h, const char *host, int port)
{
        g->h = h;
        snprintf(g->url, sizeof g->url, "http://%s:%d/ok", host, port);
}

NETWORK(cancel_while_looking_up)
{
        struct get g;
        prepare(&g, f->h, "one.slow", f->http);
        resha_instant start = resha_now();
        ASSERT_EQ(resha_timeout(RESHA_MS(50), get, &g), -ETIME);
        ASSERT_TRUE(test_ms_since(start) < SLOW_MS); /* the look-up goes on without us */
        ASSERT_OK(get(&g));
        ASSERT_OK(get(&g));
        ASSERT_TRUE(atomic_load(&asked) <= 2);
        return 0;
}

NETWORK(look_up_counts_as_connecting)
{
        struct get g;
        resha_http *h = fixture_session((resha_http_opts){ .connect = RESHA_MS(100) });
        prepare(&g, h, "one.slow", f->http);
        resha_instant start = resha_now();
        ASSERT_EQ(get(&g), RESHA_HTTP_ECONNECT_TIMEOUT);
        ASSERT_TRUE(test_ms_since(start) < SLOW_MS);
        resha_http_free(h);
        return wait_for_threads();
}

NETWORK(equal_names_are_asked_for_once)
{
        enum { N = 40 };
        static struct get g[N];
        resha_response *r = NULL;
        for (int i = 0; i < N; i++)
                prepare(&g[i], f->h, i % 2 ? "one.slow" : "ONE.slow", f->http);
        ASSERT_OK(resha_gather(get, g, N, sizeof g[0], NULL));
        ASSERT_OK(resha_gather(get, g, N, sizeof g[0], NULL));
        ASSERT_EQ(atomic_load(&asked), 1);
        resha_resolve_forget(); /* the next one asks for itself */
        resha_http *h = fixture_session((resha_http_opts){ 0 });
        ASSERT_OK(resha_http_get(h, g[0].url, &r));
        ASSERT_EQ(atomic_load(&asked), 2);
        ASSERT_TRUE(resha_response_timings(r)->resolve.ns >= (SLOW_MS - 1) * INT64_C(1000000));
        resha_response_free(r);
        resha_http_free(h);
        return 0;
}

/* Neither libcurl's threads nor ours: a few at once, and requests that need no look-up are not held up. */
NETWORK(many_slow_names_few_threads)
{
        enum { N = 12 };
        static struct get g[N], quick;
        RESHA_GROUP(group);
        resha_group_begin(&group, &(resha_group_opts){ .background = true });
        for (int i = 0; i < N; i++) {
                char host[32];
                snprintf(host, sizeof host, "n%d.slow", i);
                prepare(&g[i], f->h, host, f->http);
                resha_spawn(&group, get, &g[i]);
        }
        prepare(&quick, f->h, "127.0.0.1", f->http);
        resha_instant start = resha_now();
        for (int i = 0; i < 20; i++)
                ASSERT_OK(get(&quick));
        ASSERT_TRUE(test_ms_since(start) < SLOW_MS);
        ASSERT_OK(resha_sleep(RESHA_MS(SLOW_MS)));
        ASSERT_TRUE(atomic_load(&most) >= 1 && atomic_load(&most) <= 4);
        ASSERT_OK(resha_group_end(&group, 0));
        return wait_for_threads();
}

NETWORK(names_are_of_a_port)
{
        struct get a, b;
        prepare(&a, f->h, "one.slow", f->http);
        prepare(&b, f->h, "one.slow", 1);
        ASSERT_OK(get(&a));
        ASSERT_EQ(get(&b), -ECONNREFUSED);
        ASSERT_OK(get(&a));
        return 0;
}
