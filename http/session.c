/* SPDX-License-Identifier: MIT */
/* Sessions: options, the transport, the limits, and their end.
 *
 * A session is counted: by its owner and by each call in progress. Closing it cancels the scopes of the calls,
 * wherever they wait, and the last one out releases it; so freeing a session is always safe, and no request goes on
 * behind a closed one.
 *
 * Limits are semaphores of attempts: first the host's, then the session's, so that no place of the session is held
 * while waiting for a host. They are held while an attempt runs and given back before a redirect is followed. libcurl
 * is never given more than it may run: its own queues are slow. */

#include "session.h"
#include "curl.h"
#include "headers.h"

#include <resha/alloc.h>
#include <resha/error.h>
#include <resha/run.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MAX_CONNECTIONS = 65536, MAX_HEADERS = 256 << 10, DEFAULT_CONNECTIONS = 100 };

/* ---- options ----------------------------------------------------------------------------------------------------- */

static int bad(const char *what)
{
        return resha_fail(-EINVAL, "HTTP session: %s", what);
}

static int check_opts(const resha_http_opts *o)
{
        for (size_t i = 0; i < sizeof o->_reserved / sizeof o->_reserved[0]; i++)
                if (o->_reserved[i])
                        return bad("a reserved word is not zero");
        if (o->total.ns < 0 || o->connect.ns < 0 || o->read.ns < 0 || o->pool.ns < 0 || o->keepalive.ns < 0)
                return bad("a time is negative");
        if (o->max_connections > MAX_CONNECTIONS || o->max_per_host > MAX_CONNECTIONS)
                return bad("more than 65536 connections");
        if (o->max_headers > MAX_HEADERS)
                return bad("max_headers is over 256 KiB");
        if (o->max_redirects < -1)
                return bad("max_redirects is below -1");
        if (o->header_count > 0 && !o->headers)
                return bad("header_count without headers");
        if (o->transport && !o->transport->perform)
                return bad("the transport has no perform()");
        return 0;
}

static resha_duration or_default(resha_duration d, int64_t seconds)
{
        return d.ns > 0 ? d : RESHA_S(seconds);
}

static void take_opts(resha_http *h, const resha_http_opts *o)
{
        unsigned connections = o->max_connections > 0 ? o->max_connections : DEFAULT_CONNECTIONS;
        h->total = or_default(o->total, 300);
        h->connect = or_default(o->connect, 10);
        h->read = or_default(o->read, 60);
        h->pool = o->pool.ns > 0 ? o->pool : RESHA_FOREVER;
        h->max_body = o->max_body > 0 ? o->max_body : (size_t)64 << 20;
        h->max_headers = o->max_headers > 0 ? o->max_headers : (size_t)64 << 10;
        h->max_redirects = o->max_redirects != 0 ? o->max_redirects : 10;
        h->max_per_host = o->max_per_host < connections ? o->max_per_host : 0;
        h->insecure_redirects = o->insecure_redirects;
        resha_semaphore_init(&h->permits, connections);
}

static int copy_headers(resha_http *h, const rs_http_headers *list)
{
        h->headers = resha_calloc(list->count > 0 ? list->count : 1, sizeof *h->headers);
        if (!h->headers)
                return -ENOMEM;
        for (size_t i = 0; i < list->count; i++) {
                h->headers[i].name = resha_strdup(list->items[i].name);
                h->headers[i].value = resha_strdup(list->items[i].value);
                h->header_count++; /* at once: what was copied is released, even half of it */
                if (!h->headers[i].name || !h->headers[i].value)
                        return -ENOMEM;
        }
        return 0;
}

/* The built-in headers and the caller's, which replace them. */
static int take_headers(resha_http *h, const resha_http_opts *o)
{
        char agent[32];
        snprintf(agent, sizeof agent, "resha/%s", resha_version());
        const resha_http_header own[] = { { "Accept", "*/*" },
                                          { "Accept-Encoding", "gzip, deflate, br" },
                                          { "User-Agent", o->user_agent ? o->user_agent : agent } };
        rs_http_headers list;
        size_t i;
        const char *why;
        int rc = rs_http_headers_check(own, 3, &i, &why);
        if (rc < 0)
                return resha_fail(rc, "HTTP session: user agent: %s", why);
        rc = rs_http_headers_check(o->headers, o->header_count, &i, &why);
        if (rc < 0)
                return resha_fail(rc, "HTTP session: header %zu: %s", i + 1, why);
        bool no_agent = o->user_agent && !*o->user_agent;
        rc = rs_http_headers_merge(&list, own, no_agent ? 2 : 3, o->headers, o->header_count, NULL);
        if (rc >= 0)
                rc = copy_headers(h, &list);
        rs_http_headers_done(&list);
        return rc;
}

static int take_transport(resha_http *h, const resha_http_opts *o)
{
        unsigned connections = o->max_connections > 0 ? o->max_connections : DEFAULT_CONNECTIONS;
        rs_http_url proxy;
        const char *why;
        if (o->transport) {
                h->transport = *o->transport;
                return 0;
        }
        if (o->proxy) {
                int rc = rs_http_url_parse(o->proxy, &proxy, &why);
                if (rc < 0)
                        return resha_fail(rc, "HTTP session: proxy: %s",
                                          rc == RESHA_HTTP_EURL ? why : resha_strerror(rc));
                if (proxy.authorization) {
                        rs_http_url_done(&proxy);
                        return resha_fail(RESHA_HTTP_EURL, "HTTP session: proxy: user and password are not sent to it");
                }
        }
        int64_t seconds = o->keepalive.ns / 1000000000;
        rs_http_curl_opts c = {
                .keep = connections < 50 ? 100 : 2L * (long)connections,
                .keepalive_s = o->keepalive.ns == 0 ? 15
                               : seconds < 1        ? 1
                               : seconds > 86400    ? 86400
                                                    : (long)seconds,
                .ca_file = o->ca_file,
                .proxy = o->proxy ? &proxy : NULL,
                .no_verify = o->insecure_no_verify,
        };
        int rc = rs_http_curl_new(&c, &h->transport);
        if (o->proxy)
                rs_http_url_done(&proxy);
        return rc;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

void rs_http_session_unref(resha_http *h)
{
        if (--h->refs > 0)
                return;
        if (h->transport.free)
                h->transport.free(h->transport.impl);
        for (size_t i = 0; i < h->header_count; i++) {
                resha_free((char *)(uintptr_t)h->headers[i].name);
                resha_free((char *)(uintptr_t)h->headers[i].value);
        }
        resha_free(h->headers);
        resha_free(h);
}

/* ---- what is shown ----------------------------------------------------------------------------------------------- */

static const resha_figure figures[RS_HTTP_FIGURES] = {
        [RS_HTTP_REQUESTS] = { "resha_http_requests_total", "Calls of the session that have ended.",
                               RESHA_FIGURE_COUNTER, false },
        [RS_HTTP_FAILED] = { "resha_http_failed_total", "Those of them that gave no answer.", RESHA_FIGURE_COUNTER,
                             false },
        [RS_HTTP_ATTEMPTS] = { "resha_http_attempts_total", "Requests that were sent, those after redirects too.",
                               RESHA_FIGURE_COUNTER, false },
        [RS_HTTP_REDIRECTS] = { "resha_http_redirects_total", "Redirects that were followed.", RESHA_FIGURE_COUNTER,
                                false },
        [RS_HTTP_REUSED] = { "resha_http_reused_total", "Attempts on a connection that was there already.",
                             RESHA_FIGURE_COUNTER, false },
        [RS_HTTP_RECEIVED] = { "resha_http_received_bytes_total", "Bytes of heads and bodies, as they came.",
                               RESHA_FIGURE_COUNTER, false },
        [RS_HTTP_IN_FLIGHT] = { "resha_http_in_flight", "Attempts that run.", RESHA_FIGURE_GAUGE, false },
        [RS_HTTP_WAITING] = { "resha_http_waiting", "Calls that wait for a place under the limits.", RESHA_FIGURE_GAUGE,
                              false },
        [RS_HTTP_CONNECTIONS] = { "resha_http_connections", "Connections that are open, idle ones too.",
                                  RESHA_FIGURE_GAUGE, false },
};

static void refresh(void *object)
{
        resha_http *h = object;
        h->figures[RS_HTTP_CONNECTIONS] = rs_http_curl_connections(&h->transport);
}

static void describe(const void *object, char *text, size_t size)
{
        const resha_http *h = object;
        const uint64_t *f = h->figures;
        snprintf(text, size,
                 "%" PRIu64 " requests run, %" PRIu64 " wait for a place, %u connections open; %" PRIu64
                 " done, %" PRIu64 " failed%s",
                 f[RS_HTTP_IN_FLIGHT], f[RS_HTTP_WAITING], rs_http_curl_connections(&h->transport), f[RS_HTTP_REQUESTS],
                 f[RS_HTTP_FAILED], h->closed ? "; closed" : "");
}

static const resha_shown_kind session_kind = {
        .kind = "http session", .figures = figures, .count = RS_HTTP_FIGURES, .describe = describe, .refresh = refresh
};

static const resha_figure host_figures[RS_HTTP_HOST_FIGURES] = {
        { "resha_http_host_in_flight", "Attempts that run, of hosts with a limit.", RESHA_FIGURE_GAUGE, false },
        { "resha_http_host_waiting", "Calls that wait for a place of the host.", RESHA_FIGURE_GAUGE, false },
};

static void describe_host(const void *object, char *text, size_t size)
{
        const rs_http_host *host = object;
        snprintf(text, size, "%" PRIu64 " of %u places taken, %" PRIu64 " wait", host->figures[RS_HTTP_HOST_IN_FLIGHT],
                 host->most, host->figures[RS_HTTP_HOST_WAITING]);
}

static const resha_shown_kind host_kind = { .kind = "http host",
                                            .figures = host_figures,
                                            .count = RS_HTTP_HOST_FIGURES,
                                            .label = "host",
                                            .describe = describe_host };

int resha_http_new(const resha_http_opts *opts, resha_http **ret_session)
{
        static const resha_http_opts defaults;
        const resha_http_opts *o = opts ? opts : &defaults;
        if (!resha_backend())
                return resha_fail(-EPERM,
                                  "HTTP session: made outside of a loop; resha_main() and resha_run() start one");
        int rc = check_opts(o);
        if (rc < 0)
                return rc;
        resha_http *h = resha_calloc(1, sizeof *h);
        if (!h)
                return -ENOMEM;
        h->refs = 1;
        take_opts(h, o);
        rc = take_headers(h, o);
        if (rc >= 0)
                rc = take_transport(h, o); /* last: a transport that was handed over is the session's only on success */
        if (rc < 0) {
                rs_http_session_unref(h);
                return rc;
        }
        (void)resha_shown_begin(&h->shown, &session_kind, h, NULL, h->figures, __builtin_return_address(0));
        *ret_session = h;
        return rc;
}

void resha_http_close(resha_http *h)
{
        h->closed = true;
        for (rs_http_call *c = h->calls; c; c = c->next)
                resha_scope_cancel(&c->scope);
}

void resha_http_free(resha_http *h)
{
        if (!h)
                return;
        resha_http_close(h);
        resha_shown_end(&h->shown);
        rs_http_session_unref(h);
}

void resha_http_freep(resha_http **h)
{
        resha_http_free(*h);
        *h = NULL;
}

/* ---- limits ------------------------------------------------------------------------------------------------------ */

static unsigned bucket_of(const rs_http_url *u)
{
        uint32_t hash = u->port + u->https;
        for (const char *p = u->host; *p; p++)
                hash = hash * 31 + (unsigned char)*p;
        return (hash ^ hash >> 12) % RS_HTTP_HOST_BUCKETS;
}

static rs_http_host *host_ref(resha_http *h, const rs_http_url *u)
{
        rs_http_host **bucket = &h->hosts[bucket_of(u)], *host = *bucket;
        while (host && !(host->port == u->port && host->https == u->https && strcmp(host->name, u->host) == 0))
                host = host->next;
        if (!host) {
                size_t size = strlen(u->host) + 1;
                host = resha_calloc(1, sizeof *host + 2 * size + sizeof ":65535");
                if (!host)
                        return NULL;
                resha_semaphore_init(&host->permits, h->max_per_host);
                host->port = u->port;
                host->https = u->https;
                memcpy(host->name, u->host, size);
                host->most = h->max_per_host;
                host->where = host->name + size;
                snprintf(host->where, size + sizeof ":65535", "%s:%u", u->host, (unsigned)u->port);
                (void)resha_shown_begin(&host->shown, &host_kind, host, host->where, host->figures, NULL);
                host->next = *bucket;
                *bucket = host;
        }
        host->refs++;
        return host;
}

static void host_unref(resha_http *h, rs_http_host *host)
{
        if (--host->refs > 0)
                return;
        resha_shown_end(&host->shown);
        for (unsigned i = 0; i < RS_HTTP_HOST_BUCKETS; i++)
                for (rs_http_host **at = &h->hosts[i]; *at; at = &(*at)->next)
                        if (*at == host) {
                                *at = host->next;
                                resha_free(host);
                                return;
                        }
}

static int stand_in_line(resha_semaphore *s, resha_instant until)
{
        RESHA_SCOPE(wait);
        if (until.ns == INT64_MAX)
                return resha_semaphore_acquire(s);
        resha_deadline_begin(&wait, until);
        int rc = resha_scope_end(&wait, resha_semaphore_acquire(s));
        return rc == -ETIME ? RESHA_HTTP_EPOOL_TIMEOUT : rc;
}

/* One permit; the clock runs only if it must wait, which is counted in both. */
static int take(resha_semaphore *s, resha_instant until, uint64_t *waiting, uint64_t *waiting_too)
{
        int rc = resha_semaphore_try_acquire(s);
        if (rc != -EAGAIN)
                return rc;
        ++*waiting;
        if (waiting_too)
                ++*waiting_too;
        rc = stand_in_line(s, until);
        --*waiting;
        if (waiting_too)
                --*waiting_too;
        return rc;
}

int rs_http_session_acquire(resha_http *h, const rs_http_url *u, resha_duration limit, resha_doing *doing,
                            rs_http_host **ret_host)
{
        rs_http_host *host = NULL;
        resha_instant until = limit.ns == INT64_MAX ? RESHA_NEVER : resha_after(limit);
        if (h->max_per_host > 0) {
                host = host_ref(h, u);
                if (!host)
                        return -ENOMEM;
                doing->phase = "waits for a place of the host";
                int rc =
                        take(&host->permits, until, &host->figures[RS_HTTP_HOST_WAITING], &h->figures[RS_HTTP_WAITING]);
                if (rc < 0) {
                        host_unref(h, host);
                        return rc;
                }
        }
        doing->phase = "waits for a place of the session";
        int rc = take(&h->permits, until, &h->figures[RS_HTTP_WAITING], NULL);
        if (rc < 0 && host) {
                (void)resha_semaphore_release(&host->permits);
                host_unref(h, host);
        }
        if (rc < 0)
                return rc;
        if (host)
                host->figures[RS_HTTP_HOST_IN_FLIGHT]++;
        h->figures[RS_HTTP_IN_FLIGHT]++;
        *ret_host = host;
        return rc;
}

void rs_http_session_release(resha_http *h, rs_http_host *host)
{
        h->figures[RS_HTTP_IN_FLIGHT]--;
        (void)resha_semaphore_release(&h->permits);
        if (host) {
                host->figures[RS_HTTP_HOST_IN_FLIGHT]--;
                (void)resha_semaphore_release(&host->permits);
                host_unref(h, host);
        }
}
