/* SPDX-License-Identifier: MIT */
/* The transport over the network: one attempt is one libcurl transfer, run by the driver.
 *
 * Easy handles are set up once and used again; from one request to the next only what differs is set (`struct
 * shape`). libcurl is kept to what it does well: connections, TLS, HTTP/1.1 framing. Everything else is switched off
 * or done elsewhere: redirects, decompression, look-ups, limits, user information in URLs, proxies of the
 * environment, the Expect header.
 *
 * libcurl sends a request again by itself when a pooled connection turns out dead before an answer, whatever the
 * method; so what must not be repeated gets a connection of its own (FRESH_CONNECT).
 *
 * HTTP/2 stays off: the libcurl of Debian 12 had it rewritten in its very release, and was mended in the next ones. */

#include "curl.h"
#include "driver.h"
#include "headers.h"
#include "names.h"
#include "response.h"

#include <resha/alloc.h>
#include <resha/error.h>
#include <resha/run.h>
#include <resha/scope.h>

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* How long libcurl keeps what it was told of names: much longer than names.c believes in it, so that it never looks
 * up itself. */
enum { NAMES_S = 600 };

typedef struct rs_http_curl rs_http_curl;

/* What a handle is set to, beyond what all share. */
struct shape {
        const struct curl_slist *headers; /* the transport's shared list, or NULL: none or one of its own */
        bool post, head, custom;          /* the method: a body, HEAD, by name */
        bool fresh, forbid, resolve;
        long connect_ms;
};

/* A handle with its transfer; in use or idle. */
struct handle {
        rs_http_transfer transfer; /* first: callbacks get this address */
        rs_http_curl *curl;
        resha_http_sink *sink;
        struct curl_slist *headers; /* of this request alone; owned */
        rs_http_name *name;
        int failed;    /* what the sink gave, if negative */
        int no_socket; /* why a socket could not be opened; negative, or 0 */
        bool head_end; /* the empty line after the headers has come */
        struct shape shape;
        struct handle *next_idle;
        char error[CURL_ERROR_SIZE];
};

struct rs_http_curl {
        rs_http_driver *driver;
        rs_http_names *names;
        CURLSH *share;
        rs_http_curl_opts opts; /* strings copied: ca_file, and proxy as below */
        char *ca_file;
        rs_http_url proxy;
        struct handle *idle;
        long idle_count;
        bool simulated;                       /* there is no network */
        struct curl_slist *shared_headers[2]; /* of the session's own list, without and with a body; each made once */
};

/* ---- callbacks: they only note ----------------------------------------------------------------------------------- */

static size_t stop(struct handle *h, int rc)
{
        h->failed = rc;
        return 0;
}

static size_t on_body(char *data, size_t one, size_t size, void *arg)
{
        struct handle *h = arg;
        h->transfer.heard = rs_http_driver_now(h->curl->driver);
        int rc = resha_http_sink_body(h->sink, data, size * one);
        return rc < 0 ? stop(h, rc) : size * one;
}

/* "HTTP/1.1 200 OK" */
static int take_status(struct handle *h, const char *line, size_t size)
{
        const char *p = memchr(line, ' ', size), *end = line + size;
        int status = 0;
        while (p && p < end && *p == ' ')
                p++;
        for (; p && p < end && *p >= '0' && *p <= '9' && status < 1000; p++)
                status = status * 10 + (*p - '0');
        h->head_end = false;
        return resha_http_sink_status(h->sink, status);
}

static size_t on_header(char *line, size_t one, size_t size, void *arg)
{
        struct handle *h = arg;
        size_t n = size * one;
        int rc = 0;
        h->transfer.heard = rs_http_driver_now(h->curl->driver);
        if (n > 0 && line[n - 1] == '\n')
                n -= n > 1 && line[n - 2] == '\r' ? 2 : 1;
        if (n == 0)
                h->head_end = true;
        else if (line[0] == 'H' && n >= 5 && memcmp(line, "HTTP/", 5) == 0)
                rc = take_status(h, line, n);
        else
                rc = resha_http_sink_header(h->sink, line, n);
        if (n == 0 && rs_http_sink_contradicts(h->sink) && !h->shape.forbid) {
                h->shape.forbid = true;
                (void)curl_easy_setopt(h->transfer.easy, CURLOPT_FORBID_REUSE, 1L);
        }
        return rc < 0 ? stop(h, rc) : size * one;
}

static const char connecting[] = "connects";

static curl_socket_t on_open(void *arg, curlsocktype purpose, struct curl_sockaddr *a)
{
        struct handle *h = arg;
        (void)purpose;
        int fd = socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
        if (fd >= 0)
                rs_http_driver_opened(h->curl->driver);
        rs_http_sink_phase(h->sink, connecting);
        h->no_socket = fd < 0 ? -errno : 0; /* of the last address: a family that the machine lacks does not count */
        return fd;
}

/* Once a second: libcurl does not tell when TLS begins, but that TCP is connected. */
static void on_tick(rs_http_transfer *x)
{
        struct handle *h = (struct handle *)(void *)x;
        curl_off_t connected = 0;
        if (h->sink && h->sink->doing && h->sink->doing->phase == connecting &&
            curl_easy_getinfo(x->easy, CURLINFO_CONNECT_TIME_T, &connected) == CURLE_OK && connected > 0)
                rs_http_sink_phase(h->sink, "shakes hands for TLS");
}

/* Connected, maybe long ago: the request goes out. */
static int on_connected(void *arg, char *peer, char *local, int peer_port, int local_port)
{
        struct handle *h = arg;
        (void)peer;
        (void)local;
        (void)peer_port;
        (void)local_port;
        rs_http_sink_phase(h->sink,
                           h->shape.post ? "sends the body, and waits for the answer" : "waits for the answer");
        return CURL_PREREQFUNC_OK;
}

/* ---- handles ----------------------------------------------------------------------------------------------------- */

struct option {
        CURLoption option;
        long value;
};

static CURLcode set_longs(CURL *easy, const struct option *options, size_t count)
{
        CURLcode e = CURLE_OK;
        for (size_t i = 0; i < count && e == CURLE_OK; i++)
                e = curl_easy_setopt(easy, options[i].option, options[i].value);
        return e;
}

/* What all handles of the session share. */
static CURLcode set_up(struct handle *h, CURL *easy)
{
        rs_http_curl *c = h->curl;
        const struct option longs[] = {
                { CURLOPT_NOSIGNAL, 1 },
                { CURLOPT_QUICK_EXIT, 1 },
                { CURLOPT_FOLLOWLOCATION, 0 },
                { CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1 },
                { CURLOPT_HTTP09_ALLOWED, 0 },
                { CURLOPT_PATH_AS_IS, 1 },
                { CURLOPT_DISALLOW_USERNAME_IN_URL, 1 },
                { CURLOPT_SUPPRESS_CONNECT_HEADERS, 1 },
                { CURLOPT_DNS_CACHE_TIMEOUT, NAMES_S },
                { CURLOPT_MAXAGE_CONN, c->opts.keepalive_s },
                { CURLOPT_SSL_VERIFYPEER, !c->opts.no_verify },
                { CURLOPT_SSL_VERIFYHOST, c->opts.no_verify ? 0 : 2 },
        };
        CURLcode e = set_longs(easy, longs, sizeof longs / sizeof longs[0]);
        e = e ? e : curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
        e = e ? e : curl_easy_setopt(easy, CURLOPT_PROXY, c->opts.proxy ? c->proxy.text : "");
        e = e ? e : curl_easy_setopt(easy, CURLOPT_NOPROXY, ""); /* else it reads no_proxy of the environment */
        e = e ? e : curl_easy_setopt(easy, CURLOPT_SHARE, c->share);
        e = e ? e : curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, h->error);
        e = e ? e : curl_easy_setopt(easy, CURLOPT_PRIVATE, &h->transfer);
        e = e ? e : curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
        e = e ? e : curl_easy_setopt(easy, CURLOPT_WRITEDATA, h);
        e = e ? e : curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
        e = e ? e : curl_easy_setopt(easy, CURLOPT_HEADERDATA, h);
        e = e ? e : curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open);
        e = e ? e : curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, h);
        e = e ? e : curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_connected);
        e = e ? e : curl_easy_setopt(easy, CURLOPT_PREREQDATA, h);
        e = e ? e : curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, rs_http_driver_close_socket);
        e = e ? e : curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, c->driver);
        if (!e && c->ca_file)
                e = curl_easy_setopt(easy, CURLOPT_CAINFO, c->ca_file);
        if (!e && c->ca_file)
                e = curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
        return e;
}

static void handle_free(struct handle *h)
{
        if (h->transfer.easy)
                curl_easy_cleanup(h->transfer.easy);
        curl_slist_free_all(h->headers);
        resha_free(h);
}

static struct handle *handle_take(rs_http_curl *c)
{
        struct handle *h = c->idle;
        if (h) {
                c->idle = h->next_idle;
                c->idle_count--;
                return h;
        }
        h = resha_calloc(1, sizeof *h);
        CURL *easy = h ? curl_easy_init() : NULL;
        if (!easy) {
                resha_free(h);
                return NULL;
        }
        h->curl = c;
        h->transfer.easy = easy;
        h->transfer.tick = on_tick;
        h->shape.connect_ms = -1;
        if (set_up(h, easy) != CURLE_OK) {
                handle_free(h);
                return NULL;
        }
        return h;
}

static void handle_give(struct handle *h)
{
        rs_http_curl *c = h->curl;
        if (!h->transfer.easy || c->idle_count >= c->opts.keep) {
                handle_free(h);
                return;
        }
        h->next_idle = c->idle;
        c->idle = h;
        c->idle_count++;
}

/* ---- one request's settings -------------------------------------------------------------------------------------- */

static int set_headers(struct handle *h, const resha_http_attempt *a)
{
        struct curl_slist **shared = &h->curl->shared_headers[rs_http_sends_body(a)];
        struct curl_slist **list = a->headers_shared ? shared : &h->headers;
        int rc = *list ? 0 : rs_http_curl_headers(a, list);
        if (rc < 0 || (a->headers_shared && h->shape.headers == *list))
                return rc;
        h->shape.headers = a->headers_shared ? *list : NULL;
        return curl_easy_setopt(h->transfer.easy, CURLOPT_HTTPHEADER, *list) ? -ENOMEM : 0;
}

static CURLcode set_body(CURL *easy, const resha_http_attempt *a)
{
        CURLcode e = curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)a->body_size);
        return e ? e : curl_easy_setopt(easy, CURLOPT_POSTFIELDS, a->body_size > 0 ? a->body : "");
}

/* POST without a body is one of size 0: servers want the length. */
static int set_method(struct handle *h, const resha_http_attempt *a)
{
        CURL *easy = h->transfer.easy;
        struct shape *s = &h->shape;
        bool head = rs_http_method_is(a->method, "HEAD"), is_post = rs_http_method_is(a->method, "POST");
        bool post = rs_http_sends_body(a);
        bool custom = !head && (post ? !is_post : !rs_http_method_is(a->method, "GET"));
        CURLcode e = CURLE_OK;
        if (post)
                e = set_body(easy, a);
        else if (head && !s->head)
                e = curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
        else if (!head && (s->post || s->head))
                e = curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
        if (!e && post && !s->post)
                e = curl_easy_setopt(easy, CURLOPT_POST, 1L);
        if (!e && (custom || s->custom))
                e = curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, custom ? a->method : NULL);
        s->post = post;
        s->head = head;
        s->custom = custom;
        return e ? -ENOMEM : 0;
}

static CURLcode set_flag(CURL *easy, CURLoption option, bool *now, bool want)
{
        if (*now == want)
                return CURLE_OK;
        *now = want;
        return curl_easy_setopt(easy, option, (long)want);
}

static long milliseconds(resha_duration d)
{
        int64_t ms = d.ns / 1000000 + (d.ns % 1000000 > 0);
        return ms < 1 ? 1 : ms > INT_MAX ? INT_MAX : (long)ms;
}

static int set_rest(struct handle *h, const resha_http_attempt *a, resha_duration connect)
{
        CURL *easy = h->transfer.easy;
        long ms = milliseconds(connect);
        CURLcode e = curl_easy_setopt(easy, CURLOPT_URL, a->url);
        e = e ? e : set_flag(easy, CURLOPT_FRESH_CONNECT, &h->shape.fresh, !a->may_repeat);
        e = e ? e : set_flag(easy, CURLOPT_FORBID_REUSE, &h->shape.forbid, false);
        if (!e && h->shape.connect_ms != ms)
                e = curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, h->shape.connect_ms = ms);
        h->shape.resolve = h->name && !h->name->loaded;
        if (!e && h->shape.resolve)
                e = curl_easy_setopt(easy, CURLOPT_RESOLVE, h->name->list);
        h->transfer.read = a->read;
        h->error[0] = 0;
        h->failed = h->no_socket = 0;
        h->head_end = false;
        return e ? -ENOMEM : 0;
}

/* Nothing of the caller's stays behind in the handle. */
static void reset(struct handle *h)
{
        CURL *easy = h->transfer.easy;
        h->sink = NULL;
        if (easy && h->shape.resolve)
                (void)curl_easy_setopt(easy, CURLOPT_RESOLVE, NULL);
        rs_http_name_unref(h->name);
        h->name = NULL;
        if (easy && h->headers) {
                (void)curl_easy_setopt(easy, CURLOPT_HTTPHEADER, NULL);
                h->shape.headers = NULL;
        }
        if (easy && h->shape.post)
                (void)curl_easy_setopt(easy, CURLOPT_POSTFIELDS, NULL);
        curl_slist_free_all(h->headers);
        h->headers = NULL;
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

static int network_code(const struct handle *h, int fallback)
{
        long e = 0;
        if (curl_easy_getinfo(h->transfer.easy, CURLINFO_OS_ERRNO, &e) != CURLE_OK || e <= 0 || e >= 3800)
                return fallback;
        return -(int)e;
}

/* libcurl says "receive failed" of many things; its text tells them apart. */
static int receive_code(const struct handle *h)
{
        if (strstr(h->error, "response headers"))
                return RESHA_HTTP_EHEADERS_TOO_LARGE;
        if (strstr(h->error, "unexpected eof"))
                return RESHA_HTTP_ETRUNCATED; /* TLS cut off: without its closing message */
        return network_code(h, RESHA_HTTP_EPROTOCOL);
}

static int code_of(const struct handle *h, CURLcode result)
{
        switch (result) {
        case CURLE_OK: return h->head_end ? 0 : RESHA_HTTP_ETRUNCATED; /* it accepts a head that is cut */
        case CURLE_WRITE_ERROR: return h->failed < 0 ? h->failed : -EIO;
        case CURLE_URL_MALFORMAT: return RESHA_HTTP_EURL;
        case CURLE_COULDNT_RESOLVE_HOST:
        case CURLE_COULDNT_RESOLVE_PROXY: return RESHA_HTTP_EHOST;
        case CURLE_COULDNT_CONNECT: return h->no_socket ? h->no_socket : network_code(h, -ECONNREFUSED);
        case CURLE_UNSUPPORTED_PROTOCOL:
        case CURLE_WEIRD_SERVER_REPLY: return RESHA_HTTP_EPROTOCOL;
        case CURLE_PARTIAL_FILE: return RESHA_HTTP_ETRUNCATED;
        case CURLE_OPERATION_TIMEDOUT: return RESHA_HTTP_ECONNECT_TIMEOUT; /* no other limit is set */
        case CURLE_GOT_NOTHING: return -ECONNRESET;
        case CURLE_SEND_ERROR: return network_code(h, -EPIPE);
        case CURLE_RECV_ERROR: return receive_code(h);
        case CURLE_OUT_OF_MEMORY:
                /* So it calls a header line of more than 100 KB, too. */
                return h->sink->response->status ? RESHA_HTTP_EHEADERS_TOO_LARGE : -ENOMEM;
        case CURLE_SSL_CONNECT_ERROR: return network_code(h, 0) == -ECONNRESET ? -ECONNRESET : RESHA_HTTP_ETLS;
        case CURLE_PEER_FAILED_VERIFICATION:
        case CURLE_SSL_CACERT_BADFILE:
        case CURLE_SSL_CERTPROBLEM:
        case CURLE_SSL_CIPHER:
        case CURLE_SSL_ISSUER_ERROR:
        case CURLE_SSL_INVALIDCERTSTATUS: return RESHA_HTTP_ETLS;
        default: return -EIO;
        }
}

static void give_reason(const struct handle *h, CURLcode result, int rc)
{
        if (result == CURLE_WRITE_ERROR || h->sink->reason[0])
                return;
        if (result == CURLE_GOT_NOTHING)
                resha_http_sink_reason(h->sink, "the server closed the connection without an answer");
        else if (rc == RESHA_HTTP_ETRUNCATED)
                resha_http_sink_reason(h->sink, h->head_end ? "the connection ended before the body did"
                                                            : "the connection ended inside the headers");
        else if (strstr(h->error, "HTTP/0.9"))
                resha_http_sink_reason(h->sink, "the answer does not begin like HTTP/1");
        else if (rc == RESHA_HTTP_ETLS || rc == RESHA_HTTP_EPROTOCOL || rc == -EIO)
                resha_http_sink_reason(h->sink, h->error[0] ? h->error : curl_easy_strerror(result));
}

static resha_duration time_of(const struct handle *h, CURLINFO info)
{
        curl_off_t us = 0;
        (void)curl_easy_getinfo(h->transfer.easy, info, &us);
        return RESHA_US(us);
}

static void give_facts(const struct handle *h, resha_duration resolve)
{
        long connects = 0;
        (void)curl_easy_getinfo(h->transfer.easy, CURLINFO_NUM_CONNECTS, &connects);
        bool reused = connects == 0;
        resha_http_timings t = {
                .resolve = resolve,
                .connect = reused ? RESHA_NS(0) : time_of(h, CURLINFO_CONNECT_TIME_T),
                .tls = reused ? RESHA_NS(0) : time_of(h, CURLINFO_APPCONNECT_TIME_T),
                .first_byte = time_of(h, CURLINFO_STARTTRANSFER_TIME_T),
        };
        resha_http_sink_facts(h->sink, &t, reused);
}

/* ---- an attempt -------------------------------------------------------------------------------------------------- */

/* libcurl has the handle; wait, and take it back whatever happens. */
static int transfer(struct handle *h, resha_duration resolve)
{
        rs_http_driver *d = h->curl->driver;
        int rc = rs_http_driver_start(d, &h->transfer);
        if (rc < 0)
                return rc;
        rc = rs_http_driver_wait(d, &h->transfer);
        rs_http_driver_stop(d, &h->transfer);
        if (rc < 0)
                return rc;
        CURLcode result = h->transfer.result;
        if (!h->transfer.easy)
                return -EIO;
        if (h->name)
                h->name->loaded = true;
        rc = code_of(h, result);
        if (rc < 0)
                give_reason(h, result, rc);
        give_facts(h, resolve);
        return rc;
}

static int look_up(struct handle *h, const resha_http_attempt *a, resha_duration *ret_time)
{
        rs_http_curl *c = h->curl;
        const char *host = c->opts.proxy ? c->proxy.host : a->host;
        uint16_t port = c->opts.proxy ? c->proxy.port : a->port;
        rs_http_sink_phase(h->sink, "looks the host up");
        int rc = rs_http_names_get(c->names, host, port, a->connect, &h->name, ret_time);
        if (rc == RESHA_HTTP_EHOST && c->opts.proxy) {
                char why[RS_HTTP_REASON_MAX];
                snprintf(why, sizeof why, "no such host: the proxy's, %.80s", host);
                resha_http_sink_reason(h->sink, why);
        }
        return rc;
}

static int perform(void *impl, const resha_http_attempt *a, resha_http_sink *sink)
{
        resha_duration resolve, connect = a->connect;
        if (((const rs_http_curl *)impl)->simulated) {
                resha_http_sink_reason(sink, "the simulated world has no network: plug in a transport");
                return -EOPNOTSUPP;
        }
        struct handle *h = handle_take(impl);
        if (!h)
                return -ENOMEM;
        h->sink = sink;
        int rc = look_up(h, a, &resolve);
        if (rc >= 0 && resolve.ns >= 1000000 && connect.ns < INT64_MAX)
                connect.ns -= resolve.ns;
        if (rc >= 0)
                rc = set_headers(h, a);
        if (rc >= 0)
                rc = set_method(h, a);
        if (rc >= 0)
                rc = set_rest(h, a, connect);
        if (rc >= 0)
                rc = transfer(h, resolve);
        reset(h);
        if (rc < 0)
                handle_free(h); /* what it remembers of the failure must not be taken for that of another one */
        else
                handle_give(h);
        return rc;
}

/* ---- the session's ----------------------------------------------------------------------------------------------- */

static void transport_free(void *impl)
{
        rs_http_curl *c = impl;
        while (c->idle) {
                struct handle *h = c->idle;
                c->idle = h->next_idle;
                handle_free(h);
        }
        rs_http_driver_free(c->driver); /* closes the connections */
        rs_http_names_free(c->names);
        curl_slist_free_all(c->shared_headers[0]);
        curl_slist_free_all(c->shared_headers[1]);
        if (c->share)
                (void)curl_share_cleanup(c->share);
        rs_http_url_done(&c->proxy);
        resha_free(c->ca_file);
        resha_free(c);
        curl_global_cleanup();
}

unsigned rs_http_curl_connections(const resha_http_transport *t)
{
        const rs_http_curl *c = t->free == transport_free ? t->impl : NULL;
        return c ? rs_http_driver_sockets(c->driver) : 0;
}

static int copy_opts(rs_http_curl *c, const rs_http_curl_opts *opts)
{
        c->opts = *opts;
        if (opts->ca_file && !(c->ca_file = resha_strdup(opts->ca_file)))
                return -ENOMEM;
        if (opts->proxy) {
                c->proxy = *opts->proxy;
                c->proxy.authorization = NULL;
                c->proxy.text = resha_strdup(opts->proxy->text);
        }
        return opts->proxy && !c->proxy.text ? -ENOMEM : 0;
}

int rs_http_curl_new(const rs_http_curl_opts *opts, resha_http_transport *ret_transport)
{
        rs_http_curl *c = resha_calloc(1, sizeof *c);
        if (!c)
                return -ENOMEM;
        if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
                resha_free(c);
                return -ENOMEM;
        }
        const char *backend = resha_backend();
        c->simulated = backend && strcmp(backend, "sim") == 0;
        int rc = copy_opts(c, opts);
        if (rc >= 0)
                rc = rs_http_names_new(&c->names);
        if (rc >= 0)
                rc = rs_http_driver_new(opts->keep, &c->driver);
        /* TLS sessions of all handles together; otherwise each would remember its own three. */
        if (rc >= 0 && (!(c->share = curl_share_init()) ||
                        curl_share_setopt(c->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION) != CURLSHE_OK))
                rc = -ENOMEM;
        if (rc < 0) {
                transport_free(c);
                return rc;
        }
        *ret_transport = (resha_http_transport){ .perform = perform, .free = transport_free, .impl = c };
        return 0;
}
