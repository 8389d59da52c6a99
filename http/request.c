/* SPDX-License-Identifier: MIT */
/* A call: from the caller's request to an answer, over as many attempts as there are redirects.
 *
 *     check -> [ place under the limits -> attempt (the seam) -> last checks -> redirect? ]* -> answer
 *
 * The total time is a scope around all of it, and the scope is also how closing the session reaches a call. Whatever
 * fails becomes one record here: method, URL without secrets, what happened, what to do. */

#include "headers.h"
#include "response.h"
#include "session.h"

#include <resha/alloc.h>
#include <resha/error.h>
#include <resha/task.h>

#include <stdio.h>
#include <string.h>
#include <strings.h>

struct call {
        rs_http_call base; /* first */
        resha_http *http;
        const resha_request *request;
        const char *method;
        resha_duration total, connect, read, pool;
        size_t max_body;
        unsigned max_redirects, redirects;
        bool has_body;
        bool follow;
        bool looped;    /* a URL came again */
        uint64_t *seen; /* hashes of the URLs so far; on the heap once there is a redirect */

        /* What follows is mostly room, and initialised by its own. */
        char why[120];  /* what happened, where the code alone does not say it */
        char where[80]; /* "GET example.org:443" */
        rs_http_url url;
        rs_http_headers headers;
        resha_http_sink sink;
};

/* ---- records ----------------------------------------------------------------------------------------------------- */

/* Whom to trust is a remedy only where that was the matter, as OpenSSL calls it. */
static const char *remedy_of_tls(const char *why)
{
        if (strstr(why, "self-signed") || strstr(why, "self signed") || strstr(why, "issuer"))
                return "; a private authority is trusted by ca_file";
        return strstr(why, "wrong version number") ? "; does that port speak TLS?" : "";
}

static const char *remedy(int rc, const char *why)
{
        switch (rc) {
        case -ECONNREFUSED: return "; is the server running there?";
        case RESHA_HTTP_EHOST: return "; check the spelling and the name server";
        case RESHA_HTTP_ETLS: return remedy_of_tls(why);
        case RESHA_HTTP_ETOO_LARGE: return "; raise max_body if it is wanted";
        case RESHA_HTTP_EHEADERS_TOO_LARGE: return "; raise max_headers if they are wanted";
        case -EMFILE: return "; raise 'ulimit -n', or ask for less at once";
        case -EAGAIN: return "; try later";
        default: return "";
        }
}

static void seconds(resha_duration d, char *buf, size_t size)
{
        snprintf(buf, size, "%g s", (double)d.ns / 1e9);
}

/* What happened, for codes about limits: with the limit. */
static void describe_limit(struct call *c, int rc)
{
        char time[32] = "";
        char *why = c->why;
        switch (rc) {
        case RESHA_HTTP_ETOTAL:
                seconds(c->total, time, sizeof time);
                snprintf(why, sizeof c->why, "not done in %s (total time)", time);
                break;
        case RESHA_HTTP_ECONNECT_TIMEOUT:
                seconds(c->connect, time, sizeof time);
                snprintf(why, sizeof c->why, "not connected in %s", time);
                break;
        case RESHA_HTTP_EREAD_TIMEOUT:
                seconds(c->read, time, sizeof time);
                snprintf(why, sizeof c->why, "connected, but nothing came for %s", time);
                break;
        case RESHA_HTTP_EPOOL_TIMEOUT:
                seconds(c->pool, time, sizeof time);
                snprintf(why, sizeof c->why, "no connection was free in %s", time);
                break;
        case RESHA_HTTP_ETOO_LARGE:
                snprintf(why, sizeof c->why, "the body is larger than %zu bytes", c->max_body);
                break;
        case RESHA_HTTP_EHEADERS_TOO_LARGE:
                snprintf(why, sizeof c->why, "the headers are larger than %zu bytes", c->http->max_headers);
                break;
        case RESHA_HTTP_ECLOSED: snprintf(why, sizeof c->why, "the session is closed"); break;
        case RESHA_HTTP_EHOST:
                if (!c->sink.reason[0]) /* the transport may know better: a proxy's */
                        snprintf(why, sizeof c->why, "no such host: %.100s", c->url.host);
                break;
        default: break;
        }
}

static int fail(struct call *c, int rc)
{
        char url[144];
        if (rc == -ECANCELED)
                return rc;
        describe_limit(c, rc);
        if (!c->why[0] && c->sink.reason[0])
                memcpy(c->why, c->sink.reason, sizeof c->why);
        rs_http_url_show(c->url.text ? c->url.text : c->request->url, url, sizeof url);
        return resha_fail(rc, "%s %s: %s%s", c->method ? c->method : "GET", url,
                          c->why[0] ? c->why : resha_strerror(rc), remedy(rc, c->why));
}

static int because(struct call *c, int rc, const char *why)
{
        snprintf(c->why, sizeof c->why, "%s", why);
        return rc;
}

/* ---- checks ------------------------------------------------------------------------------------------------------ */

static int check_request(const resha_request *r)
{
        for (size_t i = 0; i < sizeof r->_reserved / sizeof r->_reserved[0]; i++)
                if (r->_reserved[i])
                        return resha_fail(-EINVAL, "HTTP request: a reserved word is not zero");
        if (!r->url)
                return resha_fail(-EINVAL, "HTTP request: there is no URL");
        if (r->method && !rs_http_is_token(r->method))
                return resha_fail(-EINVAL, "HTTP request: the method is not a token");
        if (r->total.ns < 0 || r->connect.ns < 0 || r->read.ns < 0 || r->pool.ns < 0)
                return resha_fail(-EINVAL, "HTTP request: a time is negative");
        if (r->max_redirects < -1 || (r->header_count > 0 && !r->headers) || (r->body_size > 0 && !r->body))
                return resha_fail(-EINVAL, "HTTP request: max_redirects below -1, or a count without its array");
        return 0;
}

static resha_duration either(resha_duration own, resha_duration session)
{
        return own.ns > 0 ? own : session;
}

static void take_limits(struct call *c)
{
        const resha_request *r = c->request;
        int redirects = r->max_redirects != 0 ? r->max_redirects : c->http->max_redirects;
        c->total = either(r->total, c->http->total);
        c->connect = either(r->connect, c->http->connect);
        c->read = either(r->read, c->http->read);
        c->pool = either(r->pool, c->http->pool);
        c->max_body = r->max_body > 0 ? r->max_body : c->http->max_body;
        c->follow = redirects >= 0;
        c->max_redirects = redirects >= 0 ? (unsigned)redirects : 0;
}

static int take_headers(struct call *c)
{
        const resha_request *r = c->request;
        size_t i;
        const char *why;
        int rc = rs_http_headers_check(r->headers, r->header_count, &i, &why);
        if (rc < 0) {
                snprintf(c->why, sizeof c->why, "header %zu is not sent: %s", i + 1, why);
                return rc;
        }
        rc = rs_http_headers_merge(&c->headers, c->http->headers, c->http->header_count, r->headers, r->header_count,
                                   r->keep_coding ? "Accept-Encoding" : NULL);
        if (rc >= 0 && c->url.authorization)
                rc = rs_http_headers_add(&c->headers, "Authorization", c->url.authorization);
        return rc;
}

static int take_request(struct call *c)
{
        const char *why;
        c->has_body = c->request->body != NULL;
        c->method = c->request->method ? c->request->method : c->has_body ? "POST" : "GET";
        take_limits(c);
        if (c->http->closed)
                return RESHA_HTTP_ECLOSED;
        int rc = rs_http_url_parse(c->request->url, &c->url, &why);
        if (rc == RESHA_HTTP_EURL)
                return because(c, rc, why);
        return rc < 0 ? rc : take_headers(c);
}

/* ---- one attempt ------------------------------------------------------------------------------------------------- */

static bool is_idempotent(const char *method)
{
        static const char *const methods[] = { "GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE" };

        for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++)
                if (rs_http_method_is(method, methods[i]))
                        return true;
        return false;
}

static void count_attempt(const struct call *c)
{
        uint64_t *f = c->http->figures;
        f[RS_HTTP_ATTEMPTS]++;
        f[RS_HTTP_REUSED] += c->sink.response && c->sink.response->reused;
        f[RS_HTTP_RECEIVED] += c->sink.head_total + c->sink.raw;
}

static int attempt(struct call *c)
{
        const resha_request *r = c->request;
        const resha_http_attempt a = {
                .method = c->method,
                .url = c->url.text,
                .host = c->url.host,
                .port = c->url.port,
                .https = c->url.https,
                .headers = c->headers.items,
                .header_count = c->headers.count,
                .headers_shared = c->headers.shared,
                .may_repeat = r->idempotent || is_idempotent(c->method),
                .has_body = c->has_body,
                .body = c->has_body ? r->body : NULL,
                .body_size = c->has_body ? r->body_size : 0,
                .connect = c->connect,
                .read = c->read,
        };
        int rc = rs_http_sink_init(&c->sink, c->max_body, c->http->max_headers);
        if (rc < 0)
                return rc;
        c->sink.doing = c->base.doing;
        c->sink.head_request = rs_http_method_is(c->method, "HEAD");
        c->sink.keep_coding = r->keep_coding;
        rc = c->http->transport.perform(c->http->transport.impl, &a, &c->sink);
        count_attempt(c);
        return rc < 0 ? rc : rs_http_sink_finish(&c->sink);
}

/* Each attempt says so: with snprintf() that was as dear as reading its head. */
static void tell_where(struct call *c)
{
        size_t method = strnlen(c->method, 12), host = strnlen(c->url.host, 60), n = 0;
        char digits[5], *p = c->where;
        memcpy(p, c->method, method);
        p[method] = ' ';
        memcpy(p + method + 1, c->url.host, host);
        p += method + 1 + host;
        *p++ = ':';
        for (unsigned port = c->url.port; n == 0 || port > 0; port /= 10)
                digits[n++] = (char)('0' + port % 10);
        while (n > 0)
                *p++ = digits[--n];
        *p = 0;
}

static int attempt_in_its_place(struct call *c)
{
        rs_http_host *host;
        tell_where(c);
        c->base.doing->attempt = c->redirects ? c->redirects + 1 : 0;
        int rc = rs_http_session_acquire(c->http, &c->url, c->pool, c->base.doing, &host);
        if (rc < 0)
                return rc;
        c->base.doing->phase = "begins";
        rc = attempt(c);
        rs_http_session_release(c->http, host);
        return rc;
}

/* ---- redirects --------------------------------------------------------------------------------------------------- */

static const char *redirect_of(const struct call *c)
{
        const resha_response *r = c->sink.response;
        bool is_redirect =
                r->status == 301 || r->status == 302 || r->status == 303 || r->status == 307 || r->status == 308;
        const char *location = is_redirect && c->follow ? resha_response_header(r, "Location") : NULL;
        return location && *location ? location : NULL;
}

static uint64_t hash_of(const struct call *c)
{
        uint64_t h = 14695981039346656037u;
        for (const char *p = c->method; *p; p++)
                h = (h ^ (unsigned char)*p) * 1099511628211u;
        for (const char *p = c->url.text; *p; p++)
                h = (h ^ (unsigned char)*p) * 1099511628211u;
        return h;
}

/* Counts a redirect away from the current URL. */
static int count_redirect(struct call *c)
{
        if (c->redirects >= c->max_redirects) {
                snprintf(c->why, sizeof c->why,
                         c->looped ? "redirects go round in a loop (%u followed)" : "more than %u redirects",
                         c->redirects);
                return RESHA_HTTP_EREDIRECTS;
        }
        if ((c->redirects & (c->redirects - 1)) == 0) { /* room for twice as many; 8 at first */
                unsigned room = c->redirects < 4 ? 8 : 2 * c->redirects;
                uint64_t *seen = resha_realloc(c->seen, room * sizeof *seen);
                if (!seen)
                        return -ENOMEM;
                c->seen = seen;
        }
        uint64_t hash = hash_of(c);
        for (unsigned i = 0; i < c->redirects; i++)
                c->looped |= c->seen[i] == hash;
        c->seen[c->redirects++] = hash;
        c->http->figures[RS_HTTP_REDIRECTS]++;
        return 0;
}

/* 303 asks for a GET; 301 and 302 too, by custom, where a POST was sent. */
static int change_method(struct call *c)
{
        int status = c->sink.response->status;
        bool post = strcmp(c->method, "POST") == 0, head = strcmp(c->method, "HEAD") == 0;
        bool get = strcmp(c->method, "GET") == 0;
        if (head || (get && !c->has_body) || !(status == 303 || (post && (status == 301 || status == 302))))
                return 0;
        c->method = "GET";
        c->has_body = false;
        return rs_http_headers_drop_body(&c->headers);
}

static int change_url(struct call *c, const char *location)
{
        rs_http_url next;
        const char *why;
        char shown[80];
        int rc = rs_http_url_join(c->url.text, location, &next, &why);
        if (rc == RESHA_HTTP_EURL) {
                snprintf(c->why, sizeof c->why, "redirect to a bad URL: %s", why);
                return rc;
        }
        if (rc < 0)
                return rc;
        if (c->url.https && !next.https && !c->http->insecure_redirects) {
                snprintf(c->why, sizeof c->why, "redirect from https to %s",
                         rs_http_url_show(next.text, shown, sizeof shown));
                rs_http_url_done(&next);
                return RESHA_HTTP_EREDIRECTS;
        }
        if (!rs_http_url_same_origin(&c->url, &next) && !rs_http_url_upgrade(&c->url, &next))
                rc = rs_http_headers_cross_origin(&c->headers);
        /* The headers may borrow the first URL's credentials: they stay. */
        next.authorization = c->url.authorization;
        c->url.authorization = NULL;
        rs_http_url_done(&c->url);
        c->url = next;
        return rc;
}

static int follow(struct call *c, const char *location)
{
        int rc = count_redirect(c);
        if (rc >= 0)
                rc = change_method(c);
        if (rc >= 0)
                rc = change_url(c, location);
        if (rc >= 0)
                rs_http_sink_done(&c->sink);
        return rc;
}

static int run(struct call *c)
{
        for (;;) {
                int rc = attempt_in_its_place(c);
                const char *location = rc < 0 ? NULL : redirect_of(c);
                if (rc < 0 || !location)
                        return rc;
                rc = follow(c, location);
                if (rc < 0)
                        return rc;
        }
}

/* ---- the call ---------------------------------------------------------------------------------------------------- */

static void enlist(struct call *c)
{
        resha_http *h = c->http;
        c->base.next = h->calls;
        if (h->calls)
                h->calls->prev = &c->base;
        h->calls = &c->base;
}

static void delist(struct call *c)
{
        if (c->base.prev)
                c->base.prev->next = c->base.next;
        else
                c->http->calls = c->base.next;
        if (c->base.next)
                c->base.next->prev = c->base.prev;
}

/* Under the total time, and within reach of resha_http_close(). */
static int run_limited(struct call *c, resha_instant start)
{
        resha_scope *all = &c->base.scope;
        enlist(c);
        if (c->total.ns < INT64_MAX - start.ns)
                resha_deadline_begin(all, (resha_instant){ start.ns + c->total.ns });
        else
                resha_deadline_begin(all, RESHA_NEVER);
        int inner = run(c);
        int rc = resha_scope_end(all, inner);
        delist(c);
        if (rc == -ETIME && resha_scope_expired(all))
                return RESHA_HTTP_ETOTAL;
        if (inner == -ECANCELED && rc >= 0)
                return RESHA_HTTP_ECLOSED;
        return rc;
}

static void deliver(struct call *c, resha_instant start, resha_response **ret_response)
{
        resha_response *r = c->sink.response;
        r->url = c->url.text;
        r->redirects = c->redirects;
        r->timings.total = resha_between(start, resha_now());
        c->url.text = NULL;
        c->sink.response = NULL;
        *ret_response = r;
}

int resha_http_request(resha_http *h, const resha_request *request, resha_response **ret_response)
{
        struct call c;
        if (!resha_in_task())
                return resha_fail(-EPERM,
                                  "HTTP request: called outside of a task; resha_main() and resha_run() start one");
        int rc = check_request(request);
        if (rc < 0)
                return rc;
        memset(&c, 0, offsetof(struct call, why));
        c.http = h;
        c.request = request;
        c.url.text = c.url.authorization = NULL;
        c.headers.owned = NULL;
        c.sink.response = NULL;
        c.sink.decoder = NULL;
        c.sink.reason[0] = 0;
        RESHA_DOING(doing);
        resha_doing_begin(&doing, "http", c.where);
        c.base.doing = &doing;
        c.where[0] = c.why[0] = 0;
        h->refs++;
        resha_instant start = resha_now();
        rc = take_request(&c);
        if (rc >= 0) {
                rc = run_limited(&c, start);
                if (rc >= 0)
                        deliver(&c, start, ret_response);
        }
        h->figures[RS_HTTP_REQUESTS]++;
        h->figures[RS_HTTP_FAILED] += rc < 0;
        if (rc < 0)
                rc = fail(&c, rc);
        rs_http_sink_done(&c.sink);
        rs_http_headers_done(&c.headers);
        rs_http_url_done(&c.url);
        resha_free(c.seen);
        rs_http_session_unref(h);
        return rc;
}

int resha_http_get(resha_http *h, const char *url, resha_response **ret_response)
{
        return resha_http_request(h, &(resha_request){ .url = url }, ret_response);
}

int resha_http_head(resha_http *h, const char *url, resha_response **ret_response)
{
        return resha_http_request(h, &(resha_request){ .method = "HEAD", .url = url }, ret_response);
}

int resha_http_post(resha_http *h, const char *url, const char *content_type, const void *data, size_t size,
                    resha_response **ret_response)
{
        const resha_http_header type = { "Content-Type", content_type };
        return resha_http_request(h,
                                  &(resha_request){ .method = "POST",
                                                    .url = url,
                                                    .headers = content_type ? &type : NULL,
                                                    .header_count = content_type ? 1 : 0,
                                                    .body = data ? data : "",
                                                    .body_size = size },
                                  ret_response);
}
