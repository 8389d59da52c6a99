/* SPDX-License-Identifier: MIT */
/* When libcurl or the system fails under the driver: calls of this program to them go through functions of this file
 * (--wrap). */

#include "fixture.h"

#include <resha/error.h>

#include <curl/curl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>

static int actions_until_failure, adds_until_failure, ctls_until_failure; /* 0: none fails */

static bool fails(int *n)
{
        return *n > 0 && --*n == 0;
}

CURLMcode __real_curl_multi_socket_action(CURLM *m, curl_socket_t fd, int mask, int *running);
CURLMcode __wrap_curl_multi_socket_action(CURLM *m, curl_socket_t fd, int mask, int *running);
CURLMcode __wrap_curl_multi_socket_action(CURLM *m, curl_socket_t fd, int mask, int *running)
{
        return fails(&actions_until_failure) ? CURLM_INTERNAL_ERROR
                                             : __real_curl_multi_socket_action(m, fd, mask, running);
}

CURLMcode __real_curl_multi_add_handle(CURLM *m, CURL *easy);
CURLMcode __wrap_curl_multi_add_handle(CURLM *m, CURL *easy);
CURLMcode __wrap_curl_multi_add_handle(CURLM *m, CURL *easy)
{
        return fails(&adds_until_failure) ? CURLM_OUT_OF_MEMORY : __real_curl_multi_add_handle(m, easy);
}

int __real_epoll_ctl(int epfd, int op, int fd, struct epoll_event *e);
int __wrap_epoll_ctl(int epfd, int op, int fd, struct epoll_event *e);
int __wrap_epoll_ctl(int epfd, int op, int fd, struct epoll_event *e)
{
        if (op != EPOLL_CTL_ADD || !fails(&ctls_until_failure))
                return __real_epoll_ctl(epfd, op, fd, e);
        errno = ENOSPC;
        return -1;
}

struct get {
        resha_http *h;
        const char *url;
        int rc;
};

static int get(void *arg)
{
        struct get *g = arg;
        resha_response *r RESHA_CLEANUP(resha_response_freep) = NULL;
        g->rc = resha_http_get(g->h, g->url, &r);
        return g->rc;
}

enum { N = 10 };

static void get_many(struct fixture *f, struct get *g)
{
        const char *url = fixture_url(f->http, "/slow");
        for (int i = 0; i < N; i++)
                g[i] = (struct get){ .h = f->h, .url = url };
        ASSERT_OK(resha_gather(get, g, N, sizeof g[0], &(resha_gather_opts){ .keep_going = true }));
}

/* All that is in flight fails, once; the next requests find a new start. */
NETWORK(libcurl_loses_its_state)
{
        struct get g[N];
        for (int k = 1; k <= N; k += 3) { /* one call for all, then at least one for each */
                int failed = 0;
                actions_until_failure = k;
                get_many(f, g);
                for (int i = 0; i < N; i++) {
                        ASSERT_TRUE(g[i].rc == 0 || g[i].rc == -EIO);
                        failed += g[i].rc == -EIO;
                }
                ASSERT_TRUE(failed > 0);
                ASSERT_EQ(actions_until_failure, 0);
                get_many(f, g);
                for (int i = 0; i < N; i++)
                        ASSERT_EQ(g[i].rc, 0);
        }
        return 0;
}

static int get_later(void *arg)
{
        int rc = resha_sleep(RESHA_MS(300)); /* libcurl has no timers left */
        actions_until_failure = 1;           /* in the start of this one, while the other one waits for its answer */
        return rc < 0 ? rc : get(arg);
}

/* The task that drives is told at once, by whoever finds out. */
NETWORK(libcurl_loses_its_state_while_the_leader_waits)
{
        struct get first = { .h = f->h, .url = fixture_url(f->http, "/hang") }, second = first;
        resha_instant start = resha_now();
        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .keep_going = true });
        resha_spawn(&g, get, &first);
        resha_spawn(&g, get_later, &second);
        (void)!resha_group_end(&g, 0);
        ASSERT_EQ(first.rc, -EIO);
        ASSERT_EQ(second.rc, -EIO);
        ASSERT_TRUE(test_ms_since(start) < 700); /* the tick comes after a second */
        return 0;
}

NETWORK(libcurl_takes_no_more)
{
        struct get g[N];
        int failed = 0;
        adds_until_failure = 4;
        get_many(f, g);
        for (int i = 0; i < N; i++)
                failed += g[i].rc == -ENOMEM;
        ASSERT_EQ(failed, 1);
        fixture_get(f->h, fixture_url(f->http, "/ok"), 200, "hello");
        return 0;
}

NETWORK(epoll_set_is_full)
{
        struct get g[N];
        int failed = 0;
        ctls_until_failure = 3;
        get_many(f, g);
        for (int i = 0; i < N; i++)
                failed += g[i].rc == -EIO;
        ASSERT_TRUE(failed > 0);
        get_many(f, g);
        for (int i = 0; i < N; i++)
                ASSERT_EQ(g[i].rc, 0);
        return 0;
}

NETWORK(descriptors_run_out)
{
        struct rlimit old, tight;
        const char *url = fixture_url(f->http, "/ok");
        fixture_get(f->h, url, 200, "hello");
        ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &old), 0);
        tight = old;
        tight.rlim_cur = 3;
        ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &tight), 0);
        fixture_get(f->h, url, 200, "hello"); /* over the connection that is there */
        fixture_fail(f->h, "http://127.0.0.2:1/", -EMFILE, "Too many open files");
        ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &old), 0);
        fixture_fail(f->h, "http://127.0.0.2:1/", -ECONNREFUSED, "refused");
        return 0;
}
