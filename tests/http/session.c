/* SPDX-License-Identifier: MIT */
/* A session over a mock transport: all that stands above the seam. */

#include "mock.h"
#include "test.h"

#include <resha/error.h>

#include <string.h>
#include <zlib.h>

static resha_http *open_session(struct mock *m, resha_http_opts o)
{
        resha_http *h = NULL;
        resha_http_transport t = mock_transport(m);
        o.transport = &t;
        ASSERT_OK(resha_http_new(&o, &h));
        return h;
}

#define OPEN(m, ...) open_session((m), (resha_http_opts){ __VA_ARGS__ })

static const char *text_of(int rc)
{
        return resha_error_of(rc)->text;
}

/* ---- answers ---- */

static int answer_plain(struct mock *m, const resha_http_attempt *a, resha_http_sink *sink)
{
        (void)m;
        note("%s %s", a->method, a->url);
        note("accept=%s coding=%s agent=%s", mock_header(a, "Accept"), mock_header(a, "Accept-Encoding"),
             mock_header(a, "User-Agent"));
        ASSERT_STR(a->host, "example.org");
        ASSERT_EQ(a->port, 80);
        int rc = mock_answer(sink, 103, "Link: </x>\n", NULL, 0, 0); /* an early hint is not the answer */
        if (rc < 0)
                return rc;
        return mock_answer(sink, 200,
                           "Content-Type:  text/plain \t\nX-Two: 1\nx-two: 2\nX-Folded: a\n \t b\nno colon\nX-Empty:\n",
                           "hello", 5, 2);
}

TASK(answer_is_delivered)
{
        struct mock m = { .answer = answer_plain };
        resha_http *h RESHA_CLEANUP(resha_http_freep) = OPEN(&m);
        resha_response *r RESHA_CLEANUP(resha_response_freep) = NULL;
        size_t size;
        const char *name, *value;
        ASSERT_OK(resha_http_get(h, "http://example.org/x#part", &r));
        ASSERT_STR(notes(), "GET http://example.org/x accept=*/* coding=gzip, deflate, br agent=resha/0.1.0");
        ASSERT_EQ(resha_response_status(r), 200);
        ASSERT_STR(resha_response_body(r, &size), "hello"); /* and a 0 */
        ASSERT_EQ(size, 5);
        ASSERT_STR(resha_response_url(r), "http://example.org/x");
        ASSERT_EQ(resha_response_redirects(r), 0);
        ASSERT_EQ(resha_response_header_count(r), 5);
        ASSERT_STR(resha_response_header(r, "CONTENT-type"), "text/plain");
        ASSERT_STR(resha_response_header(r, "x-two"), "1");
        ASSERT_STR(resha_response_header(r, "X-Folded"), "a b");
        ASSERT_STR(resha_response_header(r, "X-Empty"), "");
        ASSERT_PTR(resha_response_header(r, "Link"), NULL);
        ASSERT_TRUE(resha_response_header_at(r, 2, &name, &value));
        ASSERT_STR(name, "x-two");
        ASSERT_STR(value, "2");
        ASSERT_FALSE(resha_response_header_at(r, 5, &name, &value));
        return 0;
}

static int answer_large(struct mock *m, const resha_http_attempt *a, resha_http_sink *sink)
{
        char line[64];
        (void)m;
        (void)a;
        int rc = resha_http_sink_status(sink, 200);
        for (int i = 0; rc >= 0 && i < 500; i++) {
                snprintf(line, sizeof line, "X-Header-%d: the value of number %d", i, i);
                rc = resha_http_sink_header(sink, line, strlen(line));
        }
        for (int i = 0; rc >= 0 && i < 3000; i++)
                rc = resha_http_sink_body(sink, "0123456789abcdef", 16);
        return rc >= 0 ? resha_http_sink_header(sink, "X-Trailer: t", 12) : rc;
}

TASK(answer_of_many_headers_and_pieces)
{
        struct mock m = { .answer = answer_large };
        resha_http *h RESHA_CLEANUP(resha_http_freep) = OPEN(&m);
        resha_response *r RESHA_CLEANUP(resha_response_freep) = NULL;
        size_t size;
        ASSERT_OK(resha_http_get(h, "http://example.org/", &r));
        const char *body = resha_response_body(r, &size);
        ASSERT_EQ(size, 48000);
        ASSERT_EQ(body[47999], 'f');
        ASSERT_EQ(body[48000], 0);
        ASSERT_EQ(resha_response_header_count(r), 500);
        ASSERT_STR(resha_response_header(r, "x-header-499"), "the value of number 499");
        ASSERT_STR(resha_response_header(r, "x-header-0"), "the value of number 0");
        return 0;
}

/* What an answer is made of, and what becomes of it. */
struct given {
        int status;
        const char *head;
        const void *body;
        size_t size;
        const char *method;
};

static int answer_given(struct mock *m, const resha_http_attempt *a, resha_http_sink *sink)
{
        const struct given *g = m->arg;
        (void)a;
        return mock_answer(sink, g->status, g->head, g->body, g->size, 7);
}

static int get_given(struct given g, resha_http_opts o, resha_response **ret_response)
{
        struct mock m = { .answer = answer_given, .arg = &g };
        resha_http *h RESHA_CLEANUP(resha_http_freep) = open_session(&m, o);
        return resha_http_request(h, &(resha_request){ .method = g.method, .url = "http://example.org/" },
                                  ret_response);
}

/* The result for an answer with such a head and text, under default options. */
static int outcome(int status, const char *head, const char *body)
{
        resha_response *r RESHA_CLEANUP(resha_response_freep) = NULL;
        return get_given((struct given){ status, head, body, strlen(body), NULL }, (resha_http_opts){ 0 }, &r);
}

TASK(lengths_are_checked)
{
        ASSERT_EQ(outcome(200, "Content-Length: 5\n", "hello"), 0);
        ASSERT_EQ(outcome(200, "Content-Length: 5\nContent-Length: 5\n", "hello"), 0);
        ASSERT_EQ(outcome(200, "Content-Length: 5, 5\n", "hello"), 0);
        ASSERT_EQ(outcome(200, "Content-Length: 5\nContent-Length: 6\n", "hello"), RESHA_HTTP_EPROTOCOL);
        ASSERT_HAS(text_of(RESHA_HTTP_EPROTOCOL), "GET http://example.org/: it has two Content-Length that differ");
        ASSERT_EQ(outcome(200, "Content-Length: 5, 6\n", "hello"), RESHA_HTTP_EPROTOCOL);
        ASSERT_EQ(outcome(200, "Content-Length: -5\n", "hello"), RESHA_HTTP_EPROTOCOL);
        ASSERT_EQ(outcome(200, "Content-Length: 5x\n", "hello"), RESHA_HTTP_EPROTOCOL);
        ASSERT_EQ(outcome(200, "Content-Length: 99999999999999999999\n", "hello"), RESHA_HTTP_EPROTOCOL);
        ASSERT_EQ(outcome(200, "Content-Length: 6\n", "hello"), RESHA_HTTP_ETRUNCATED);
        ASSERT_EQ(outcome(200, "Content-Length: 4\n", "hello"), RESHA_HTTP_EPROTOCOL);
        ASSERT_EQ(outcome(200, "Content-Length: 4\nTransfer-Encoding: chunked\n", "hello"), 0); /* the latter counts */
        ASSERT_EQ(outcome(204, "Content-Length: 5\n", ""), 0);
        ASSERT_EQ(outcome(304, "Content-Length: 5\n", ""), 0);
        ASSERT_EQ(outcome(200, "X: a\n", ""), 0);
        ASSERT_EQ(outcome(100, "", ""), RESHA_HTTP_EPROTOCOL);
        ASSERT_EQ(outcome(1, "", ""), RESHA_HTTP_EPROTOCOL);
        ASSERT_EQ(outcome(200, " folded\n", ""), RESHA_HTTP_EPROTOCOL);
        ASSERT_EQ(outcome(200, "A\tB \t: c\n", ""), 0);
        return 0;
}

TASK(head_has_no_body)
{
        resha_response *r RESHA_CLEANUP(resha_response_freep) = NULL;
        size_t size;
        struct given g = { 200, "Content-Length: 500\nContent-Encoding: gzip\n", "", 0, "HEAD" };
        ASSERT_OK(get_given(g, (resha_http_opts){ 0 }, &r));
        ASSERT_STR(resha_response_body(r, &size), "");
        ASSERT_EQ(size, 0);
        ASSERT_STR(resha_response_header(r, "content-length"), "500");
        return 0;
}

TASK(header_bytes_are_capped)
{
        resha_response *r RESHA_CLEANUP(resha_response_freep) = NULL;
        struct given g = { 200, "A: 1234567\nB: 1234567\n", "x", 1, NULL };
        ASSERT_EQ(get_given(g, (resha_http_opts){ .max_headers = 19 }, &r), RESHA_HTTP_EHEADERS_TOO_LARGE);
        ASSERT_HAS(text_of(RESHA_HTTP_EHEADERS_TOO_LARGE), "the headers are larger than 19 bytes");
        ASSERT_OK(get_given(g, (resha_http_opts){ .max_headers = 20 }, &r));
        return 0;
}

TASK(body_is_capped)
{
        resha_response *r RESHA_CLEANUP(resha_response_freep) = NULL;
        struct given g = { 200, NULL, "hello", 5, NULL }, promised = { 200, "Content-Length: 6\n", "hello", 5, NULL };
        ASSERT_EQ(get_given(g, (resha_http_opts){ .max_body = 4 }, &r), RESHA_HTTP_ETOO_LARGE);
        ASSERT_HAS(text_of(RESHA_HTTP_ETOO_LARGE), "GET http://example.org/: the body is larger than 4 bytes");
        ASSERT_EQ(get_given(promised, (resha_http_opts){ .max_body = 5 }, &r),
                  RESHA_HTTP_ETOO_LARGE); /* not truncated */
        ASSERT_PTR(r, NULL);
        ASSERT_OK(get_given(g, (resha_http_opts){ .max_body = 5 }, &r));
        return 0;
}

/* ---- content codings ---- */

static size_t gzip(const void *data, size_t size, unsigned char *out, size_t room)
{
        z_stream z = { .next_in = (unsigned char *)(uintptr_t)data, .avail_in = (uInt)size };
        z.next_out = out;
        z.avail_out = (uInt)room;
        ASSERT_EQ(deflateInit2(&z, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
        ASSERT_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
        size_t n = z.total_out;
        deflateEnd(&z);
        return n;
}

TASK(body_is_decoded)
{
        resha_response *r RESHA_CLEANUP(resha_response_freep) = NULL;
        unsigned char packed[200];
        size_t size, n = gzip("hello, ", 7, packed, 100);
        n += gzip("again", 5, packed + n, 100);
        struct given g = { 200, "Content-Encoding: gzip\n", packed, n, NULL };
        ASSERT_OK(get_given(g, (resha_http_opts){ 0 }, &r));
        ASSERT_STR(resha_response_body(r, &size), "hello, again");
        ASSERT_EQ(size, 12);
        resha_response_freep(&r);

        g.size = n - 1;
        ASSERT_EQ(get_given(g, (resha_http_opts){ 0 }, &r), RESHA_HTTP_ETRUNCATED);
        ASSERT_HAS(text_of(RESHA_HTTP_ETRUNCATED), "the compressed body ends too early");
        g.head = "Content-Encoding: zstd\n";
        ASSERT_EQ(get_given(g, (resha_http_opts){ 0 }, &r), RESHA_HTTP_EENCODING);
        g.head = "Content-Encoding: br\n";
        ASSERT_EQ(get_given(g, (resha_http_opts){ 0 }, &r), RESHA_HTTP_EENCODING);
        g.head = "Content-Encoding:\nContent-Encoding: identity\n";
        ASSERT_OK(get_given(g, (resha_http_opts){ 0 }, &r));
        return 0;
}

TASK(bomb_is_capped_after_decoding)
{
        static unsigned char zeros[1 << 20], packed[4096];
        resha_response *r RESHA_CLEANUP(resha_response_freep) = NULL;
        size_t size, n = gzip(zeros, sizeof zeros, packed, sizeof packed);
        struct given g = { 200, "Content-Encoding: gzip\n", packed, n, NULL };
        ASSERT_EQ(get_given(g, (resha_http_opts){ .max_body = (1 << 20) - 1 }, &r), RESHA_HTTP_ETOO_LARGE);
        ASSERT_OK(get_given(g, (resha_http_opts){ .max_body = 1 << 20 }, &r));
        resha_response_body(r, &size);
        ASSERT_EQ(size, 1 << 20);
        return 0;
}

static int answer_coded(struct mock *m, const resha_http_attempt *a, resha_http_sink *sink)
{
        (void)m;
        note("%s", mock_header(a, "Accept-Encoding") ? "asked" : "not-asked");
        return mock_answer(sink, 200, "Content-Encoding: gzip\n", "not decoded", 11, 0);
}

TASK(coding_can_be_kept)
{
        struct mock m = { .answer = answer_coded };
        resha_http *h RESHA_CLEANUP(resha_http_freep) = OPEN(&m);
        resha_response *r RESHA_CLEANUP(resha_response_freep) = NULL;
        ASSERT_OK(resha_http_request(h, &(resha_request){ .url = "http://h/", .keep_coding = true }, &r));
        ASSERT_STR(notes(), "not-asked");
        ASSERT_STR(resha_response_body(r, NULL), "not decoded");
        return 0;
}

/* ---- what is sent ---- */

static int answer_echo(struct mock *m, const resha_http_attempt *a, resha_http_sink *sink)
{
        (void)m;
        note("%s %s", a->method, a->url);
        for (size_t i = 0; i < a->header_count; i++)
                note("%s=%s", a->headers[i].name, a->headers[i].value);
        if (a->has_body)
                note("body=%.*s", (int)a->body_size, (const char *)a->body);
        note(a->may_repeat ? "repeatable" : "once");
        return mock_answer(sink, 200, NULL, NULL, 0, 0);
}

static const resha_http_header bare[] = { { "Accept", NULL }, { "Accept-Encoding", NULL }, { "X-Own", "o" } };

#define BARE .user_agent = "", .headers = bare, .header_count = 3

TASK(requests_are_sent_as_asked)
{
        struct mock m = { .answer = answer_echo };
        resha_http *h RESHA_CLEANUP(resha_http_freep) = OPEN(&m, BARE);
        const resha_http_header more[] = { { "x-own", "p" }, { "If-None-Match", "\"e\"" } };
        resha_response *r = NULL;
        resha_request q = { .url = "http://u:p@h/", .headers = more, .header_count = 2 };
        ASSERT_OK(resha_http_request(h, &q, &r));
        ASSERT_STR(notes(), "GET http://h/ x-own=p If-None-Match=\"e\" Authorization=Basic dTpw repeatable");
        resha_response_freep(&r);
        ASSERT_OK(resha_http_post(h, "http://h/", "text/plain", "data", 4, &r));
        ASSERT_STR(notes(), "POST http://h/ X-Own=o Content-Type=text/plain body=data once");
        resha_response_freep(&r);
        ASSERT_OK(resha_http_post(h, "http://h/", NULL, NULL, 0, &r));
        ASSERT_STR(notes(), "POST http://h/ X-Own=o body= once");
        resha_response_freep(&r);
        ASSERT_OK(resha_http_request(
                h, &(resha_request){ .url = "http://h/", .body = "b", .body_size = 1, .idempotent = true }, &r));
        ASSERT_STR(notes(), "POST http://h/ X-Own=o body=b repeatable");
        resha_response_freep(&r);
        ASSERT_OK(resha_http_request(
                h, &(resha_request){ .method = "PUT", .url = "http://h/", .body = "b", .body_size = 1 }, &r));
        ASSERT_STR(notes(), "PUT http://h/ X-Own=o body=b repeatable");
        resha_response_freep(&r);
        ASSERT_OK(resha_http_request(h, &(resha_request){ .method = "PATCH", .url = "http://h/" }, &r));
        ASSERT_STR(notes(), "PATCH http://h/ X-Own=o once");
        resha_response_freep(&r);
        ASSERT_OK(resha_http_head(h, "http://h/", &r));
        ASSERT_STR(notes(), "HEAD http://h/ X-Own=o repeatable");
        resha_response_freep(&r);
        return 0;
}

TASK(bad_requests_are_not_sent)
{
        struct mock m = { .answer = answer_echo };
        resha_http *h RESHA_CLEANUP(resha_http_freep) = OPEN(&m);
        resha_response *r = NULL;
        const resha_http_header inject = { "X-A", "a\r\nX-Injected: 1" };
        ASSERT_EQ(resha_http_get(h, "ftp://h/", &r), RESHA_HTTP_EURL);
        ASSERT_HAS(text_of(RESHA_HTTP_EURL), "GET ftp://h/: it does not start with http:// or https://");
        ASSERT_EQ(resha_http_get(h, "http://u:secret@h/?token=secret&a= b", &r), RESHA_HTTP_EURL);
        ASSERT_STR(text_of(RESHA_HTTP_EURL), "GET http://h/?token=***&a= b: it holds a blank: write %20");
        ASSERT_EQ(resha_http_request(h, &(resha_request){ .url = "http://h/", .headers = &inject, .header_count = 1 },
                                     &r),
                  RESHA_HTTP_EHEADER);
        ASSERT_HAS(text_of(RESHA_HTTP_EHEADER), "header 1 is not sent: the value holds a line end");
        ASSERT_EQ(resha_http_request(h, &(resha_request){ .url = "http://h/", .method = "GET /x HTTP/1.1\r\n" }, &r),
                  -EINVAL);
        ASSERT_EQ(resha_http_request(h, &(resha_request){ .url = NULL }, &r), -EINVAL);
        ASSERT_EQ(resha_http_request(h, &(resha_request){ .url = "http://h/", .body_size = 1 }, &r), -EINVAL);
        ASSERT_EQ(resha_http_request(h, &(resha_request){ .url = "http://h/", .total = { -1 } }, &r), -EINVAL);
        ASSERT_EQ(resha_http_request(h, &(resha_request){ .url = "http://h/", ._reserved = { 1 } }, &r), -EINVAL);
        ASSERT_EQ(m.attempts, 0);
        return 0;
}

TASK(bad_options_are_refused)
{
        resha_http *h = NULL;
        const resha_http_header inject = { "X-A", "a\nb" };
        ASSERT_EQ(resha_http_new(&(resha_http_opts){ ._reserved = { 1 } }, &h), -EINVAL);
        ASSERT_EQ(resha_http_new(&(resha_http_opts){ .max_connections = 65537 }, &h), -EINVAL);
        ASSERT_EQ(resha_http_new(&(resha_http_opts){ .max_redirects = -2 }, &h), -EINVAL);
        ASSERT_EQ(resha_http_new(&(resha_http_opts){ .max_headers = 1 << 20 }, &h), -EINVAL);
        ASSERT_EQ(resha_http_new(&(resha_http_opts){ .headers = &inject, .header_count = 1 }, &h), RESHA_HTTP_EHEADER);
        ASSERT_EQ(resha_http_new(&(resha_http_opts){ .user_agent = "a\r\nb" }, &h), RESHA_HTTP_EHEADER);
        ASSERT_EQ(resha_http_new(&(resha_http_opts){ .proxy = "nonsense" }, &h), RESHA_HTTP_EURL);
        ASSERT_EQ(resha_http_new(&(resha_http_opts){ .proxy = "http://u:secret@h:1" }, &h), RESHA_HTTP_EURL);
        ASSERT_PTR(h, NULL);
        resha_http_free(NULL);
        resha_response_free(NULL);
        return 0;
}

TASK(simulated_world_has_no_network)
{
        SIM_ONLY();
        resha_http *h RESHA_CLEANUP(resha_http_freep) = NULL;
        resha_response *r = NULL;
        ASSERT_OK(resha_http_new(NULL, &h));
        ASSERT_EQ(resha_http_get(h, "http://127.0.0.1/", &r), -EOPNOTSUPP);
        ASSERT_HAS(text_of(-EOPNOTSUPP), "plug in a transport");
        return 0;
}

TEST(outside_a_loop_there_is_no_session)
{
        resha_http *h = NULL;
        ASSERT_EQ(resha_http_new(NULL, &h), -EPERM);
}

static int answer_failing(struct mock *m, const resha_http_attempt *a, resha_http_sink *sink)
{
        (void)a;
        if (m->attempts == 1)
                resha_http_sink_reason(sink, "the wire is cut");
        return m->attempts == 1 ? -EPIPE : -ECONNREFUSED;
}

TASK(failures_are_one_line)
{
        struct mock m = { .answer = answer_failing };
        resha_http *h RESHA_CLEANUP(resha_http_freep) = OPEN(&m);
        resha_response *r = NULL;
        ASSERT_EQ(resha_http_get(h, "http://h/?sig=abc", &r), -EPIPE);
        ASSERT_STR(text_of(-EPIPE), "GET http://h/?sig=***: the wire is cut");
        ASSERT_EQ(resha_http_head(h, "http://h/", &r), -ECONNREFUSED);
        ASSERT_STR(text_of(-ECONNREFUSED), "HEAD http://h/: Connection refused; is the server running there?");
        return 0;
}
