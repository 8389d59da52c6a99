/* SPDX-License-Identifier: MIT */
/* Redirects: methods, bodies, what goes along to another origin, what is refused, loops. */

#include "mock.h"
#include "test.h"

#include <resha/error.h>

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static int answer(struct mock *m, const resha_http_attempt *a, resha_http_sink *sink);

static const resha_http_header bare[] = { { "Accept", NULL }, { "Accept-Encoding", NULL }, { "Authorization", "s" } };

static resha_http *open_session(struct mock *m, resha_http_opts o)
{
        resha_http *h = NULL;
        resha_http_transport t = mock_transport(m);
        m->answer = answer;
        o.transport = &t;
        o.user_agent = "";
        o.headers = bare;
        o.header_count = 3;
        ASSERT_OK(resha_http_new(&o, &h));
        return h;
}

#define OPEN(m, ...) open_session((m), (resha_http_opts){ __VA_ARGS__ })

/* "/302?http://other/x" redirects there; "/end" answers; "/count?N" goes on to /count?N-1. Notes what was sent. */
static int answer(struct mock *m, const resha_http_attempt *a, resha_http_sink *sink)
{
        char head[300];
        const char *path = mock_path(a), *query = strchr(path, '?');
        (void)m;
        note("%s", a->method);
        for (size_t i = 0; i < a->header_count; i++)
                note("%s", a->headers[i].name);
        if (a->has_body)
                note("[%.*s]", (int)a->body_size, (const char *)a->body);
        if (strncmp(path, "/count?", 7) == 0 && path[7] != '0') {
                snprintf(head, sizeof head, "Location: /count?%d\n", (int)strtol(path + 7, NULL, 10) - 1);
                return mock_answer(sink, 302, head, "moved", 5, 0);
        }
        if (strcmp(path, "/ping") == 0 || strcmp(path, "/pong") == 0) {
                snprintf(head, sizeof head, "Location: /p%cng\n", path[2] == 'i' ? 'o' : 'i');
                return mock_answer(sink, 302, head, NULL, 0, 0);
        }
        int status = (int)strtol(path + 1, NULL, 10);
        if (status == 0 || !query)
                return mock_answer(sink, status ? status : 200, NULL, "end", 3, 0);
        snprintf(head, sizeof head, "Location: %s\n", query + 1);
        return mock_answer(sink, status, head, "moved", 5, 0);
}

static void sends(const char *method, const char *url, const char *expected)
{
        static const resha_http_header more[] = { { "Content-Type", "t" }, { "X-Key", "k" }, { "If-Match", "e" } };
        struct mock m = { 0 };
        resha_http *h RESHA_CLEANUP(resha_http_freep) = OPEN(&m);
        resha_response *r RESHA_CLEANUP(resha_response_freep) = NULL;
        bool body = strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0;
        resha_request q = { .method = method, .url = url, .headers = more, .header_count = 3 };
        q.body = body ? "data" : NULL;
        q.body_size = body ? 4 : 0;
        ASSERT_OK(resha_http_request(h, &q, &r));
        ASSERT_STR(notes(), expected);
        ASSERT_EQ(resha_response_status(r), 200);
        ASSERT_EQ(resha_response_redirects(r), 1);
        ASSERT_STR(resha_response_body(r, NULL), strcmp(method, "HEAD") == 0 ? "" : "end");
}

#define SAME "Authorization Content-Type X-Key If-Match"

TASK(redirect_keeps_get_and_head)
{
        sends("GET", "http://h/301?/end", "GET " SAME " GET " SAME);
        sends("GET", "http://h/303?end", "GET " SAME " GET " SAME);
        sends("HEAD", "http://h/303?/end", "HEAD " SAME " HEAD " SAME);
        return 0;
}

TASK(redirect_turns_post_into_get)
{
        sends("POST", "http://h/301?/end", "POST " SAME " [data] GET Authorization X-Key If-Match");
        sends("POST", "http://h/302?/end", "POST " SAME " [data] GET Authorization X-Key If-Match");
        sends("POST", "http://h/303?/end", "POST " SAME " [data] GET Authorization X-Key If-Match");
        sends("PUT", "http://h/303?/end", "PUT " SAME " [data] GET Authorization X-Key If-Match");
        return 0;
}

TASK(redirect_repeats_the_body)
{
        sends("POST", "http://h/307?/end", "POST " SAME " [data] POST " SAME " [data]");
        sends("POST", "http://h/308?/end", "POST " SAME " [data] POST " SAME " [data]");
        sends("PUT", "http://h/302?/end", "PUT " SAME " [data] PUT " SAME " [data]");
        return 0;
}

TASK(redirect_to_another_origin_drops_secrets)
{
        sends("GET", "http://h/302?http://other/end", "GET " SAME " GET Content-Type If-Match");
        sends("GET", "http://h/302?http://h:81/end", "GET " SAME " GET Content-Type If-Match");
        sends("GET", "http://h/302?http://sub.h/end", "GET " SAME " GET Content-Type If-Match");
        sends("GET", "https://h/302?https://h:444/end", "GET " SAME " GET Content-Type If-Match");
        sends("POST", "http://h/307?//other/end", "POST " SAME " [data] POST Content-Type If-Match [data]");
        sends("GET", "http://h/302?https://h/end", "GET " SAME " GET " SAME); /* an upgrade */
        sends("GET", "http://u:p@h/302?http://x:y@h/end",
              "GET " SAME " GET " SAME); /* the session's Authorization counts */
        return 0;
}

TASK(redirect_back_does_not_restore_secrets)
{
        struct mock m = { 0 };
        resha_http *h RESHA_CLEANUP(resha_http_freep) = OPEN(&m);
        resha_response *r RESHA_CLEANUP(resha_response_freep) = NULL;
        ASSERT_OK(resha_http_get(h, "http://h/302?http://other/302?http://h/end", &r));
        ASSERT_STR(notes(), "GET Authorization GET GET");
        ASSERT_STR(resha_response_url(r), "http://h/end");
        ASSERT_EQ(resha_response_redirects(r), 2);
        return 0;
}

TASK(credentials_of_a_url_stay_with_its_origin)
{
        struct mock m = { 0 };
        resha_http *h = NULL;
        resha_http_transport t = mock_transport(&m);
        resha_response *r = NULL;
        m.answer = answer;
        ASSERT_OK(resha_http_new(
                &(resha_http_opts){ .transport = &t, .user_agent = "", .headers = bare, .header_count = 2 }, &h));
        ASSERT_OK(resha_http_get(h, "http://u:p@h/302?/302?/end", &r));
        ASSERT_STR(notes(), "GET Authorization GET Authorization GET Authorization");
        resha_response_freep(&r);
        ASSERT_OK(resha_http_get(h, "http://u:p@h/302?http://other/end", &r));
        ASSERT_STR(notes(), "GET Authorization GET");
        resha_response_freep(&r);
        resha_http_free(h);
        return 0;
}

static int refused(const char *url, const char *text)
{
        struct mock m = { 0 };
        resha_http *h RESHA_CLEANUP(resha_http_freep) = OPEN(&m);
        resha_response *r RESHA_CLEANUP(resha_response_freep) = NULL;
        int rc = resha_http_get(h, url, &r);
        if (rc >= 0)
                FAIL("%s is not refused", url);
        ASSERT_HAS(resha_error_of(rc)->text, text);
        ASSERT_EQ(m.attempts, 1);
        return rc;
}

TASK(redirect_refused)
{
        ASSERT_EQ(refused("https://h/302?http://h/end", "redirect from https to http://h/end"), RESHA_HTTP_EREDIRECTS);
        ASSERT_EQ(refused("http://h/302?file:///etc/passwd", "redirect to a bad URL"), RESHA_HTTP_EURL);
        ASSERT_EQ(refused("http://h/302?ftp://h/", "redirect to a bad URL"), RESHA_HTTP_EURL);
        ASSERT_EQ(refused("http://h/302?http://h:0/", "redirect to a bad URL"), RESHA_HTTP_EURL);
        return 0;
}

TASK(redirect_from_https_to_http_on_demand)
{
        struct mock m = { 0 };
        resha_http *h RESHA_CLEANUP(resha_http_freep) = OPEN(&m, .insecure_redirects = true);
        resha_response *r RESHA_CLEANUP(resha_response_freep) = NULL;
        ASSERT_OK(resha_http_get(h, "https://h/302?http://h/end", &r));
        ASSERT_STR(notes(), "GET Authorization GET"); /* and no secrets */
        return 0;
}

TASK(redirects_are_limited)
{
        struct mock m = { 0 };
        resha_http *h RESHA_CLEANUP(resha_http_freep) = OPEN(&m);
        resha_response *r = NULL;
        ASSERT_OK(resha_http_get(h, "http://h/count?10", &r));
        ASSERT_EQ(resha_response_redirects(r), 10);
        resha_response_freep(&r);
        ASSERT_EQ(resha_http_get(h, "http://h/count?11", &r), RESHA_HTTP_EREDIRECTS);
        ASSERT_HAS(resha_error_of(RESHA_HTTP_EREDIRECTS)->text, "more than 10 redirects");
        ASSERT_EQ(resha_http_request(h, &(resha_request){ .url = "http://h/count?3", .max_redirects = 2 }, &r),
                  RESHA_HTTP_EREDIRECTS);
        ASSERT_OK(resha_http_request(h, &(resha_request){ .url = "http://h/count?2", .max_redirects = 2 }, &r));
        resha_response_freep(&r);
        /* A limit is not memory. */
        ASSERT_OK(resha_http_request(h, &(resha_request){ .url = "http://h/count?40", .max_redirects = INT_MAX }, &r));
        ASSERT_EQ(resha_response_redirects(r), 40);
        resha_response_freep(&r);
        ASSERT_OK(resha_http_request(h, &(resha_request){ .url = "http://h/count?2", .max_redirects = -1 }, &r));
        ASSERT_EQ(resha_response_status(r), 302);
        ASSERT_STR(resha_response_header(r, "location"), "/count?1");
        ASSERT_STR(resha_response_body(r, NULL), "moved");
        resha_response_freep(&r);
        notes();
        return 0;
}

TASK(redirect_loop_is_named)
{
        struct mock m = { 0 };
        resha_http *h RESHA_CLEANUP(resha_http_freep) = OPEN(&m);
        resha_response *r = NULL;
        ASSERT_EQ(resha_http_get(h, "http://h/ping", &r), RESHA_HTTP_EREDIRECTS);
        ASSERT_HAS(resha_error_of(RESHA_HTTP_EREDIRECTS)->text, "redirects go round in a loop");
        ASSERT_EQ(m.attempts, 11);
        notes();
        return 0;
}

TASK(redirect_without_a_place_is_an_answer)
{
        struct mock m = { 0 };
        resha_http *h RESHA_CLEANUP(resha_http_freep) = OPEN(&m);
        resha_response *r RESHA_CLEANUP(resha_response_freep) = NULL;
        ASSERT_OK(resha_http_get(h, "http://h/302", &r));
        ASSERT_EQ(resha_response_status(r), 302);
        resha_response_freep(&r);
        ASSERT_OK(resha_http_get(h, "http://h/302?", &r));
        ASSERT_EQ(resha_response_status(r), 302);
        resha_response_freep(&r);
        ASSERT_OK(resha_http_get(h, "http://h/304?/end", &r)); /* a Location, but no redirect */
        ASSERT_EQ(resha_response_status(r), 304);
        notes();
        return 0;
}
