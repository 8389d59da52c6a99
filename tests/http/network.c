/* SPDX-License-Identifier: MIT */
/* The network against a bad server: framing, codings, reuse, failures. */

#include "fixture.h"

#include <resha/error.h>

#include <stdlib.h>
#include <string.h>

NETWORK(answers_of_all_shapes)
{
        fixture_get(f->h, fixture_url(f->http, "/ok"), 200, "hello");
        fixture_get(f->h, fixture_url(f->http, "/404"), 404, "no");
        fixture_get(f->h, fixture_url(f->http, "/empty-body"), 200, "");
        fixture_get(f->h, fixture_url(f->http, "/chunked"), 200, "hello");
        fixture_get(f->h, fixture_url(f->http, "/hints"), 200, "hello");
        fixture_get(f->h, fixture_url(f->http, "/204"), 204, "");
        fixture_get(f->h, fixture_url(f->http, "/304"), 304, "");
        fixture_get(f->h, fixture_url(f->http, "/folded"), 200, "hello");
        fixture_get(f->h, fixture_url(f->http, "/bare-lf"), 200, "hello");
        fixture_get(f->h, fixture_url(f->http, "/eof-body"), 200, "hello");
        fixture_get(f->h, fixture_url(f->http, "/redirect"), 200, "hello");
        return 0;
}

NETWORK(answers_that_are_not)
{
        fixture_fail(f->h, fixture_url(f->http, "/short"), RESHA_HTTP_ETRUNCATED, "before the body did");
        fixture_fail(f->h, fixture_url(f->http, "/chunk-cut"), RESHA_HTTP_ETRUNCATED, "before the body did");
        fixture_fail(f->h, fixture_url(f->http, "/chunk-bad"), RESHA_HTTP_EPROTOCOL, "");
        fixture_fail(f->h, fixture_url(f->http, "/two-lengths"), RESHA_HTTP_EPROTOCOL,
                     "two Content-Length that differ");
        fixture_fail(f->h, fixture_url(f->http, "/negative"), RESHA_HTTP_EPROTOCOL, "");
        fixture_fail(f->h, fixture_url(f->http, "/length-huge"), RESHA_HTTP_EPROTOCOL, "");
        fixture_fail(f->h, fixture_url(f->http, "/http09"), RESHA_HTTP_EPROTOCOL, "does not begin like HTTP/1");
        fixture_fail(f->h, fixture_url(f->http, "/bad-status"), RESHA_HTTP_EPROTOCOL, "");
        fixture_fail(f->h, fixture_url(f->http, "/zero-byte"), RESHA_HTTP_EPROTOCOL, "");
        fixture_fail(f->h, fixture_url(f->http, "/nothing"), -ECONNRESET, "closed the connection without an answer");
        fixture_fail(f->h, fixture_url(f->http, "/head-cut"), RESHA_HTTP_ETRUNCATED, "ended inside the headers");
        fixture_fail(f->h, fixture_url(f->http, "/reset"), -ECONNRESET, "Connection reset");
        fixture_fail(f->h, fixture_url(f->http, "/reset-body"), -ECONNRESET, "Connection reset");
        fixture_fail(f->h, fixture_url(f->http, "/redirect-file"), RESHA_HTTP_EURL, "redirect to a bad URL");
        fixture_get(f->h, fixture_url(f->http, "/ok"), 200, "hello");
        return 0;
}

NETWORK(large_headers)
{
        resha_http *h = fixture_session((resha_http_opts){ .max_headers = 100 << 10 });
        fixture_fail(f->h, fixture_url(f->http, "/line-80k"), RESHA_HTTP_EHEADERS_TOO_LARGE, "larger than 65536 bytes");
        fixture_fail(f->h, fixture_url(f->http, "/line-200k"), RESHA_HTTP_EHEADERS_TOO_LARGE,
                     "larger than 65536 bytes");
        fixture_fail(f->h, fixture_url(f->http, "/headers-2m"), RESHA_HTTP_EHEADERS_TOO_LARGE,
                     "larger than 65536 bytes");
        fixture_get(h, fixture_url(f->http, "/line-80k"), 200, "");
        resha_http_free(h);
        return 0;
}

NETWORK(content_codings)
{
        fixture_get(f->h, fixture_url(f->http, "/gzip"), 200, "hello");
        fixture_get(f->h, fixture_url(f->http, "/gzip-two"), 200, "first second");
        fixture_get(f->h, fixture_url(f->http, "/deflate"), 200, "hello");
        fixture_get(f->h, fixture_url(f->http, "/deflate-raw"), 200, "hello");
        fixture_fail(f->h, fixture_url(f->http, "/gzip-cut"), RESHA_HTTP_ETRUNCATED, "compressed body ends too early");
        fixture_fail(f->h, fixture_url(f->http, "/gzip-no-trailer"), RESHA_HTTP_ETRUNCATED,
                     "compressed body ends too early");
        fixture_fail(f->h, fixture_url(f->http, "/gzip-not"), RESHA_HTTP_EENCODING, "corrupt");
        fixture_fail(f->h, fixture_url(f->http, "/zstd"), RESHA_HTTP_EENCODING, "not gzip, deflate or br");
        resha_http *h = fixture_session((resha_http_opts){ .max_body = 1 << 20 });
        fixture_fail(h, fixture_url(f->http, "/gzip-bomb"), RESHA_HTTP_ETOO_LARGE, "larger than 1048576 bytes");
        fixture_fail(h, fixture_url(f->http, "/big"), RESHA_HTTP_ETOO_LARGE, "larger than 1048576 bytes");
        resha_http_free(h);
        return 0;
}

NETWORK(large_body)
{
        resha_response *r = NULL;
        size_t size;
        ASSERT_OK(resha_http_get(f->h, fixture_url(f->http, "/big"), &r));
        resha_response_body(r, &size);
        ASSERT_EQ(size, 2 << 20);
        resha_response_free(r);
        return 0;
}

/* ---- what the server sees ---- */

/* The whole request, byte by byte: the usual head, then `rest`. */
static void echoes(struct fixture *f, resha_http *h, resha_request q, const char *method, const char *rest)
{
        char expected[300];
        resha_response *r = NULL;
        snprintf(expected, sizeof expected,
                 "%s /echo HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUser-Agent: t\r\nAccept-Encoding: gzip\r\n%s", method,
                 f->http, rest);
        ASSERT_OK(resha_http_request(h, &q, &r));
        ASSERT_STR(resha_response_body(r, NULL), expected);
        resha_response_free(r);
}

NETWORK(requests_on_the_wire)
{
        static const resha_http_header own[] = { { "Accept", NULL }, { "Accept-Encoding", "gzip" } };
        const char *url = fixture_url(f->http, "/echo");
        resha_http *h = fixture_session((resha_http_opts){ .headers = own, .header_count = 2, .user_agent = "t" });
        const resha_http_header empty[] = { { "X-Empty", "" }, { "X-A", "b" } };

        echoes(f, h, (resha_request){ .url = url }, "GET", "\r\n");
        echoes(f, h, (resha_request){ .url = url, .headers = empty, .header_count = 2, .body = "data", .body_size = 4 },
               "POST", "X-Empty:\r\nX-A: b\r\nContent-Length: 4\r\n\r\ndata");
        echoes(f, h, (resha_request){ .method = "PUT", .url = url, .body = "" }, "PUT", "Content-Length: 0\r\n\r\n");
        echoes(f, h, (resha_request){ .method = "POST", .url = url }, "POST", "Content-Length: 0\r\n\r\n");
        echoes(f, h, (resha_request){ .method = "DELETE", .url = url }, "DELETE", "\r\n");
        echoes(f, h, (resha_request){ .url = url }, "GET", "\r\n"); /* nothing of those before is left in a handle */
        resha_http_free(h);
        return 0;
}

NETWORK(methods_one_after_another)
{
        static const char *const methods[] = { "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH" };
        char seen[32];
        for (size_t i = 0; i < 49; i++) {
                resha_response *r = NULL;
                const char *method = methods[(i * 3 + i / 7) % 7]; /* every one after every other */
                bool body = strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0;
                resha_request q = { .method = method,
                                    .url = fixture_url(f->http, "/ok"),
                                    .body = body ? "b" : NULL,
                                    .idempotent = true };
                q.body_size = body ? 1 : 0;
                ASSERT_OK(resha_http_request(f->h, &q, &r));
                ASSERT_STR(resha_response_body(r, NULL), strcmp(method, "HEAD") == 0 ? "" : "hello");
                resha_response_free(r);
        }
        for (size_t i = 0; i < 7; i++) {
                snprintf(seen, sizeof seen, "%s /ok", methods[i]);
                ASSERT_EQ(fixture_count(f, seen), 7);
        }
        ASSERT_EQ(fixture_count(f, "connections"), 8); /* one, and those of the seven counts */
        return 0;
}

NETWORK(large_upload)
{
        static char data[3 << 20];
        resha_response *r = NULL;
        size_t size;
        memset(data, 'u', sizeof data);
        ASSERT_OK(resha_http_post(f->h, fixture_url(f->http, "/echo"), "application/x-test", data, sizeof data, &r));
        const char *body = resha_response_body(r, &size);
        ASSERT_HAS(body, "Content-Type: application/x-test\r\nContent-Length: 3145728\r\n\r\nuuuu");
        ASSERT_TRUE(size > sizeof data && memcmp(body + size - sizeof data, data, sizeof data) == 0);
        ASSERT_PTR(strstr(body, "Expect"), NULL);
        resha_response_free(r);
        return 0;
}

/* ---- connections ---- */

NETWORK(ten_requests_one_connection)
{
        for (int i = 0; i < 10; i++) {
                resha_response *r = NULL;
                ASSERT_OK(resha_http_get(f->h, fixture_url(f->http, "/ok"), &r));
                ASSERT_EQ(resha_response_reused(r), i > 0);
                const resha_http_timings *t = resha_response_timings(r);
                ASSERT_EQ(t->connect.ns > 0, i == 0);
                ASSERT_EQ(t->tls.ns, 0);
                ASSERT_EQ(t->resolve.ns, 0);
                ASSERT_TRUE(t->first_byte.ns > 0 && t->total.ns >= t->first_byte.ns);
                resha_response_free(r);
        }
        ASSERT_EQ(fixture_count(f, "connections"), 1);
        return 0;
}

NETWORK(failed_answers_close_their_connection)
{
        fixture_get(f->h, fixture_url(f->http, "/ok"), 200, "hello");
        fixture_get(f->h, fixture_url(f->http, "/cl-te"), 200, "hello"); /* contradicts itself: not used again */
        fixture_get(f->h, fixture_url(f->http, "/ok"), 200, "hello");
        ASSERT_EQ(fixture_count(f, "connections"), 2);
        fixture_get(f->h, fixture_url(f->http, "/ok"), 200, "hello"); /* and after that, used again */
        ASSERT_EQ(fixture_count(f, "connections"), 3);
        return 0;
}

NETWORK(get_is_repeated_on_a_dead_connection)
{
        fixture_get(f->h, fixture_url(f->http, "/doom"), 200, "hello");
        fixture_get(f->h, fixture_url(f->http, "/ok"), 200, "hello");
        ASSERT_EQ(fixture_count(f, "GET /ok"), 2); /* seen on the doomed connection and on a new one */
        return 0;
}

static int post(resha_http *h, const char *url, bool idempotent)
{
        resha_response *r RESHA_CLEANUP(resha_response_freep) = NULL;
        return resha_http_request(
                h, &(resha_request){ .url = url, .body = "b", .body_size = 1, .idempotent = idempotent }, &r);
}

NETWORK(post_is_never_sent_twice)
{
        for (int i = 0; i < 3; i++) {
                fixture_get(f->h, fixture_url(f->http, "/doom"), 200, "hello");
                ASSERT_EQ(post(f->h, fixture_url(f->http, "/ok"), false), 0);
        }
        ASSERT_EQ(fixture_count(f, "POST /ok"), 3);
        ASSERT_EQ(post(f->h, fixture_url(f->http, "/nothing"), false), -ECONNRESET);
        ASSERT_EQ(fixture_count(f, "POST /nothing"), 1);
        return 0;
}

NETWORK(idempotent_post_uses_the_pool)
{
        fixture_get(f->h, fixture_url(f->http, "/ok"), 200, "hello");
        ASSERT_EQ(post(f->h, fixture_url(f->http, "/ok"), true), 0);
        ASSERT_EQ(fixture_count(f, "connections"), 1);
        return 0;
}

NETWORK(closed_idle_connections_are_noticed)
{
        for (int i = 0; i < 5; i++) {
                fixture_get(f->h, fixture_url(f->http, "/close-idle"), 200, "hello");
                ASSERT_OK(resha_sleep(RESHA_MS(20)));
        }
        ASSERT_EQ(fixture_count(f, "GET /close-idle"), 5);
        return 0;
}

NETWORK(many_hosts_keep_their_connections)
{
        char url[64];
        for (int round = 0; round < 2; round++)
                for (int i = 1; i <= 60; i++) {
                        resha_response *r = NULL;
                        snprintf(url, sizeof url, "http://127.0.0.%d:%d/ok", i, f->http);
                        if (resha_http_get(f->h, url, &r) == -ECONNREFUSED)
                                return 0; /* the server listens on one address only */
                        ASSERT_EQ(resha_response_reused(r), round > 0);
                        resha_response_free(r);
                }
        return 0;
}

/* ---- failures ---- */

NETWORK(nobody_listens)
{
        fixture_fail(f->h, "http://127.0.0.1:1/", -ECONNREFUSED, "Connection refused; is the server running there?");
        fixture_fail(f->h, "http://[::1]:1/", -ECONNREFUSED, "http://[::1]:1/: Connection refused");
        return 0;
}

NETWORK(no_such_host)
{
        (void)f;
        int code = fixture_no_host();
        fixture_fail(f->h, "http://no-such-host.invalid/", code,
                     code == -EAGAIN ? "" : "no such host: no-such-host.invalid");
        fixture_get(f->h, fixture_url(f->http, "/ok"), 200, "hello");
        return 0;
}

NETWORK(names_are_looked_up_once)
{
        char url[64];
        for (int i = 0; i < 3; i++) {
                resha_response *r = NULL;
                snprintf(url, sizeof url, "http://LocalHost:%d/ok", f->http);
                ASSERT_OK(resha_http_get(f->h, url, &r));
                ASSERT_EQ(resha_response_reused(r), i > 0);
                resha_response_free(r);
        }
        return 0;
}

/* ---- proxy ---- */

NETWORK(a_proxy_without_address_is_named)
{
        resha_response *r = NULL;
        resha_http *h = fixture_session((resha_http_opts){ .proxy = "http://proxy.invalid:1" });
        int code = fixture_no_host();
        ASSERT_EQ(resha_http_get(h, fixture_url(f->http, "/ok"), &r), code);
        if (code == RESHA_HTTP_EHOST)
                ASSERT_HAS(resha_error_of(code)->text, "no such host: the proxy's, proxy.invalid;");
        resha_http_free(h);
        return 0;
}

NETWORK(proxy_of_plain_http)
{
        const char *proxy = fixture_url(f->proxy, "");
        resha_response *r = NULL;
        setenv("no_proxy", "*", 1); /* the environment is not looked at */
        resha_http *h = fixture_session((resha_http_opts){ .proxy = proxy });
        ASSERT_OK(resha_http_get(h, "http://no-such-host.invalid/x", &r)); /* the proxy looks it up */
        ASSERT_HAS(resha_response_body(r, NULL),
                   "GET http://no-such-host.invalid/x HTTP/1.1\r\nHost: no-such-host.invalid\r\n");
        resha_response_free(r);
        unsetenv("no_proxy");
        resha_http_free(h);
        return 0;
}
