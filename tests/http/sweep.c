/* SPDX-License-Identifier: MIT */
/* A cancel at each checkpoint, and each allocation failing, one after another, over a mock transport. */

#include "mock.h"
#include "test.h"

#include "base/alloc.h"
#include "core/core.h"

#include <resha/error.h>

#include <string.h>

enum { REQUESTS = 5 };

static const unsigned char gzipped[] = { 0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03, 0xcb, 0x48, 0xcd,
                                         0xc9, 0xc9, 0x07, 0x00, 0x86, 0xa6, 0x10, 0x36, 0x05, 0x00, 0x00, 0x00 };

/* Two redirects, one of them to another host, then a compressed body. */
static int answer(struct mock *m, const resha_http_attempt *a, resha_http_sink *sink)
{
        (void)m;
        int rc = resha_sleep(RESHA_MS(10));
        if (rc < 0)
                return rc;
        if (strcmp(mock_path(a), "/start") == 0)
                return mock_answer(sink, 302, "Location: /next\n", "moved", 5, 0);
        if (strcmp(mock_path(a), "/next") == 0)
                return mock_answer(sink, 307, "Location: http://other/end\n", "moved", 5, 0);
        return mock_answer(sink, 200, "Content-Encoding: gzip\n", gzipped, sizeof gzipped, 3);
}

static int fetch(void *arg)
{
        static const resha_http_header more = { "X-More", "m" };
        resha_http **h = arg;
        resha_response *r RESHA_CLEANUP(resha_response_freep) = NULL;
        int rc = resha_http_request(
                *h, &(resha_request){ .url = "http://u:p@host/start", .headers = &more, .header_count = 1 }, &r);
        if (rc < 0)
                return rc;
        ASSERT_STR(resha_response_body(r, NULL), "hello");
        ASSERT_STR(resha_response_url(r), "http://other/end");
        return 0;
}

struct scene {
        resha_scope *scope; /* cancelled at checkpoint `at` */
        unsigned at, seen;
        int rc;
};

static int play(void *arg)
{
        struct mock m = { .answer = answer };
        resha_http_transport t = mock_transport(&m);
        resha_http *h = NULL, *sessions[REQUESTS];
        int status[REQUESTS];
        (void)arg;
        int rc = resha_http_new(&(resha_http_opts){ .transport = &t, .max_connections = 3, .max_per_host = 2 }, &h);
        if (rc < 0)
                return rc; /* the transport was not taken */
        for (unsigned i = 0; i < REQUESTS; i++)
                sessions[i] = h;
        rc = resha_gather(fetch, sessions, REQUESTS, sizeof sessions[0],
                          &(resha_gather_opts){ .keep_going = true, .ret_status = status });
        for (unsigned i = 0; i < REQUESTS && rc >= 0; i++)
                rc = status[i];
        ASSERT_EQ(m.running, 0);
        ASSERT_TRUE(m.most <= 3);
        resha_http_free(h);
        ASSERT_EQ(m.frees, 1);
        return rc;
}

static void at_checkpoint(struct rs_loop *l, void *arg)
{
        struct scene *s = arg;
        (void)l;
        if (++s->seen == s->at)
                resha_scope_cancel(s->scope);
}

static int play_cancelled(void *arg)
{
        struct scene *s = arg;
        RESHA_SCOPE(scope);
        resha_timeout_begin(&scope, RESHA_FOREVER);
        s->scope = &scope;
        rs_watch_checkpoints(rs_loop_current, at_checkpoint, s);
        s->rc = play(NULL);
        rs_watch_checkpoints(rs_loop_current, NULL, NULL);
        return resha_scope_end(&scope, s->rc);
}

TEST(cancel_at_each_checkpoint)
{
        SIM_ONLY();
        struct scene s = { .at = 0 };
        do {
                s.at++;
                s.seen = 0;
                ASSERT_EQ(test_run_opts(play_cancelled, &s, NULL), 0); /* its own cancel is no error outside */
                ASSERT_TRUE(s.rc == 0 || s.rc == -ECANCELED);
        } while (s.seen >= s.at);
        ASSERT_EQ(s.rc, 0);
        ASSERT_TRUE(s.at > REQUESTS * 3);
}

struct famine {
        int64_t at, failed;
};

static int play_starved(void *arg)
{
        struct famine *f = arg;
        rs_alloc_fail_after(f->at, false);
        int rc = play(NULL);
        f->failed = rs_alloc_failed();
        rs_alloc_fail_after(0, false);
        return rc;
}

TEST(fail_at_each_allocation)
{
        SIM_ONLY();
        struct famine f = { 0 };
        unsigned passed_over = 0; /* what has been counted is forgotten with the session and its host, no more */
        do {
                f.at++;
                int64_t live = rs_alloc_live();
                int rc = test_run_opts(play_starved, &f, NULL);
                passed_over += f.failed && rc == 0;
                if (rc != (f.failed ? -ENOMEM : 0) && (rc != 0 || passed_over > 2))
                        FAIL("allocation %lld: the result is %d (%s)", (long long)f.at, rc, resha_strerror(rc));
                ASSERT_EQ(rs_alloc_live(), live);
        } while (f.failed);
        ASSERT_TRUE(f.at > 20);
}
