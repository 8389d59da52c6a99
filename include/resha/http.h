/* SPDX-License-Identifier: MIT */
#ifndef RESHA_HTTP_H
#define RESHA_HTTP_H

/* An HTTP client session (library libresha-http): pooled keep-alive connections, bodies in memory under a cap,
 * timeouts told apart.
 *
 *     resha_response *r RESHA_CLEANUP(resha_response_freep) = NULL;
 *     int rc = resha_http_get(session, "https://example.org/rates.json", &r);
 *     if (rc < 0)
 *             return rc;                          // the record says: method, URL, what happened, what to do
 *     size_t size;
 *     const char *json = resha_response_body(r, &size);
 *
 * A session belongs to the loop it was made on; any number of its tasks use it at once. An answer of any status is a
 * success: what failed is what has no whole, sound answer. Names, certificates and bodies are checked: TLS is
 * verified, a body that ends too early is an error, a request that is not idempotent is never sent twice behind the
 * caller's back, and nothing is kept or sent over the caps.
 *
 * Codes, beside -ECANCELED, -ENOMEM and -EINVAL: the RESHA_HTTP_* of error.h, and the network's own: -ECONNREFUSED,
 * -ECONNRESET (also: closed without an answer), -EPIPE, -EHOSTUNREACH, -ENETUNREACH, -EAGAIN (the name server does
 * not answer for now), -EMFILE, ... Each comes with a record of one line; user names, passwords and query values that
 * look like secrets are not in it. */

#include <resha/base.h>
#include <resha/time.h>

RESHA_BEGIN_DECLS

typedef struct resha_http resha_http;
typedef struct resha_response resha_response;
typedef struct resha_http_sink resha_http_sink;

/* A header to send. value "": an empty value is sent; NULL: a default of that name is not sent. */
typedef struct resha_http_header {
        const char *name;
        const char *value;
} resha_http_header;

/* How long things took. For the last attempt (the last redirect), counted from its start; `total` for the whole call.
 */
typedef struct resha_http_timings {
        resha_duration resolve;    /* name look-up; 0 if none was needed */
        resha_duration connect;    /* TCP connected; 0 on a pooled connection */
        resha_duration tls;        /* TLS handshake done; 0 without one */
        resha_duration first_byte; /* first byte of the answer */
        resha_duration total;      /* from the call to its end: waiting for a connection, redirects and body included */
} resha_http_timings;

/* ---- the transport seam: below it one attempt, above it all the rest --------------------------------------------- */

/* One request on the wire. All borrowed for the call. Everything has been checked: no byte in it that must not be
 * sent. */
typedef struct resha_http_attempt {
        const char *method; /* "GET", ... */
        const char *url;    /* absolute, http or https, without user information and fragment */
        const char *host;   /* of the URL: lower case, an IPv6 address without brackets */
        uint16_t port;
        bool https;
        const resha_http_header *headers; /* values are never NULL; Host and Content-Length are the transport's own */
        size_t header_count;
        bool headers_shared; /* headers is the session's own list, the same in each attempt that says so */
        bool may_repeat;     /* idempotent: may be sent again when a pooled connection turns out dead */
        bool has_body;       /* false: no body at all; true: a body, maybe of size 0 */
        const void *body;
        size_t body_size;
        resha_duration connect; /* look-up, TCP and TLS together: then RESHA_HTTP_ECONNECT_TIMEOUT */
        resha_duration read;    /* nothing sent or received for that long: then RESHA_HTTP_EREAD_TIMEOUT */
        uint64_t _reserved[4];
} resha_http_attempt;

/* Where an attempt goes. A mock plugs in here: redirects, decompression, caps, limits, total and pool timeouts and
 * checks stand above and are the same over every transport. */
typedef struct resha_http_transport {
        /* One attempt: calls the resha_http_sink_ functions below in order; stops and returns what they return if
         * that is negative. 0 when the whole answer was delivered; a code otherwise, if possible with a reason for the
         * record (resha_http_sink_reason()). Runs in the requesting task. [task] cancellation point */
        int (*perform)(void *impl, const resha_http_attempt *attempt, resha_http_sink *sink);
        void (*free)(void *impl); /* at the end of the session; never suspends; may be NULL */
        void *impl;
        uint64_t _reserved[4];
} resha_http_transport;

/* A status line: drops the headers delivered before (an answer of the 1xx kind precedes the real one). 0 or negative.
 * [loop] */
RESHA_API RESHA_MUST int resha_http_sink_status(resha_http_sink *sink, int status);

/* A header line without its end, as "Name: value"; one that starts with a blank continues the one before. 0 or
 * negative. [loop] */
RESHA_API RESHA_MUST int resha_http_sink_header(resha_http_sink *sink, const char *line, size_t size);

/* Bytes of the body as they came: still content-coded, no longer chunked. 0 or negative. [loop] */
RESHA_API RESHA_MUST int resha_http_sink_body(resha_http_sink *sink, const void *data, size_t size);

/* What went wrong, in words, before perform returns a code: copied, at most 119 bytes. It stands in the record after
 * method and URL, in place of resha_strerror(). [loop] */
RESHA_API void resha_http_sink_reason(resha_http_sink *sink, const char *text);

/* What is known about the attempt: timings (`total` is ignored), and whether a pooled connection was used. Any time,
 * or never. [loop] */
RESHA_API void resha_http_sink_facts(resha_http_sink *sink, const resha_http_timings *timings, bool reused);

/* ---- session ----------------------------------------------------------------------------------------------------- */

typedef struct resha_http_opts {
        resha_duration total;     /* a whole call: waiting, redirects, body; then RESHA_HTTP_ETOTAL [300 s] */
        resha_duration connect;   /* look-up, TCP and TLS of one attempt; then RESHA_HTTP_ECONNECT_TIMEOUT [10 s] */
        resha_duration read;      /* nothing sent or received for that long; then RESHA_HTTP_EREAD_TIMEOUT [60 s] */
        resha_duration pool;      /* waiting for a place under the limits; then RESHA_HTTP_EPOOL_TIMEOUT [for ever] */
        resha_duration keepalive; /* an idle connection is used again for that long, whole seconds [15 s] */
        unsigned max_connections; /* attempts in flight at once, 1..65536; more wait, first come first served [100] */
        unsigned max_per_host;    /* of these to one scheme, host and port [0: as max_connections] */
        size_t max_body;          /* bytes of a body after decoding; then RESHA_HTTP_ETOO_LARGE [64 MiB] */
        size_t max_headers;       /* bytes of header lines, to 256 KiB; then RESHA_HTTP_EHEADERS_TOO_LARGE [64 KiB] */
        int max_redirects;        /* then RESHA_HTTP_EREDIRECTS; -1: none is followed, the 3xx is the answer [10] */
        const char *user_agent;   /* "": none is sent ["resha/VERSION"] */
        const resha_http_header *headers; /* sent with each request that has none of the same name; copied [none] */
        size_t header_count;
        const char *ca_file;     /* PEM file of the authorities to trust, instead of the system's [NULL] */
        const char *proxy;       /* "http://host:port" for all requests, without a user; the environment is not looked
                                    at [none] */
        bool insecure_no_verify; /* DANGER: accepts any certificate of anybody; for tests on one machine [false] */
        bool insecure_redirects; /* follow redirects from https to http [false: RESHA_HTTP_EREDIRECTS] */
        const resha_http_transport *transport; /* copied; the session owns impl once it exists [the network: libcurl] */
        uint64_t _reserved[8];
} resha_http_opts;

/* A session. opts NULL: all defaults; strings are copied. 0; -EINVAL, RESHA_HTTP_EHEADER, RESHA_HTTP_EURL (proxy),
 * -ENOMEM, -EMFILE, -EPERM outside a loop. [loop] */
RESHA_API int resha_http_new(const resha_http_opts *opts, resha_http **ret_session);

/* No more requests: new ones and those in flight or waiting end with RESHA_HTTP_ECLOSED. Idempotent. [loop] */
RESHA_API void resha_http_close(resha_http *h);

/* Closes it and gives it up; what is left goes with the last request that is still on its way out. NULL is fine.
 * [loop] */
RESHA_API void resha_http_free(resha_http *h);
RESHA_API void resha_http_freep(resha_http **h);

/* ---- requests ---------------------------------------------------------------------------------------------------- */

typedef struct resha_request {
        const char *method; /* a token, as "GET", "HEAD", "POST", "PUT" [GET, or POST if there is a body] */
        const char *url;    /* absolute, http:// or https://; "user:password@" becomes an Authorization header */
        const resha_http_header *headers; /* added to the session's; not Content-Length and Transfer-Encoding [none] */
        size_t header_count;
        const void *body; /* NULL: none; not "" */
        size_t body_size;
        resha_duration total, connect, read, pool; /* [the session's]; RESHA_FOREVER: no limit */
        size_t max_body;                           /* [the session's] */
        int max_redirects;                         /* [the session's]; -1: none is followed */
        bool idempotent;  /* a POST or PATCH that may be sent twice, and so over pooled connections [false] */
        bool keep_coding; /* do not ask for compression, do not decode: the body as it came [false] */
        uint64_t _reserved[6];
} resha_request;

/* Sends a request, follows redirects, reads and decodes the body. 0 and an answer of any status, which the caller
 * owns; or negative, see above. Everything in *request is borrowed until it returns. A cancel at any moment leaves
 * nothing behind.
 *
 * Redirects: 301 and 302 turn POST into GET, 303 anything but HEAD; 307 and 308 repeat method and body. To another
 * origin (scheme, host, port; http to https on default ports of the same host is the same) only harmless headers go
 * along: no Authorization, no Cookie, none of your own names. [task] cancellation point */
RESHA_API RESHA_MUST int resha_http_request(resha_http *h, const resha_request *request, resha_response **ret_response);

/* The same in short. post: content_type may be NULL; data NULL: an empty body. [task] cancellation point */
RESHA_API RESHA_MUST int resha_http_get(resha_http *h, const char *url, resha_response **ret_response);
RESHA_API RESHA_MUST int resha_http_head(resha_http *h, const char *url, resha_response **ret_response);
RESHA_API RESHA_MUST int resha_http_post(resha_http *h, const char *url, const char *content_type, const void *data,
                                         size_t size, resha_response **ret_response);

/* ---- answers: what the functions return is owned by the answer --------------------------------------------------- */

/* 200, 404, ... [any-thread] */
RESHA_API int resha_response_status(const resha_response *r);

/* The first header of that name, in any case, or NULL; without blanks around it. [any-thread] */
RESHA_API const char *resha_response_header(const resha_response *r, const char *name);

/* How many headers, and the i-th in the order they came; false if there is none. [any-thread] */
RESHA_API size_t resha_response_header_count(const resha_response *r);
RESHA_API bool resha_response_header_at(const resha_response *r, size_t i, const char **ret_name,
                                        const char **ret_value);

/* The decoded body, its size in *ret_size (may be NULL); a 0 that is not counted follows it. Never NULL. [any-thread]
 */
RESHA_API const void *resha_response_body(const resha_response *r, size_t *ret_size);

/* The URL that answered: the last one, after redirects; without user information and fragment. [any-thread] */
RESHA_API const char *resha_response_url(const resha_response *r);

/* How long it took. [any-thread] */
RESHA_API const resha_http_timings *resha_response_timings(const resha_response *r);

/* Whether the last attempt went over a pooled connection. [any-thread] */
RESHA_API bool resha_response_reused(const resha_response *r);

/* How many redirects were followed. [any-thread] */
RESHA_API unsigned resha_response_redirects(const resha_response *r);

/* NULL is fine. [any-thread] */
RESHA_API void resha_response_free(resha_response *r);
RESHA_API void resha_response_freep(resha_response **r);

RESHA_END_DECLS
#endif
