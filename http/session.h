/* SPDX-License-Identifier: MIT */
#ifndef RS_HTTP_SESSION_H
#define RS_HTTP_SESSION_H

#include "url.h"

#include <resha/http.h>
#include <resha/scope.h>
#include <resha/semaphore.h>
#include <resha/shown.h>

enum { RS_HTTP_HOST_BUCKETS = 64 };

/* Figures of a session, as session.c names them. */
enum {
        RS_HTTP_REQUESTS,
        RS_HTTP_FAILED,
        RS_HTTP_ATTEMPTS,
        RS_HTTP_REDIRECTS,
        RS_HTTP_REUSED,
        RS_HTTP_RECEIVED,
        RS_HTTP_IN_FLIGHT,
        RS_HTTP_WAITING,
        RS_HTTP_CONNECTIONS,
        RS_HTTP_FIGURES,
};

enum { RS_HTTP_HOST_IN_FLIGHT, RS_HTTP_HOST_WAITING, RS_HTTP_HOST_FIGURES };

/* Permits of one scheme, host and port, while somebody holds or waits for one. */
typedef struct rs_http_host {
        struct rs_http_host *next;
        resha_semaphore permits;
        unsigned refs;
        uint16_t port;
        bool https;
        resha_shown shown;
        uint64_t figures[RS_HTTP_HOST_FIGURES];
        unsigned most;
        char *where; /* "example.org:443", behind the name */
        char name[];
} rs_http_host;

/* A call in progress, on the stack of its task. */
typedef struct rs_http_call {
        struct rs_http_call *prev, *next; /* in the session's list */
        resha_scope scope;                /* the total time; cancelled when the session is closed */
        resha_doing *doing;               /* what it says of itself */
} rs_http_call;

struct resha_http {
        unsigned refs; /* the owner's and one for each call */
        bool closed;
        bool insecure_redirects;
        resha_http_transport transport;
        resha_duration total, connect, read, pool;
        size_t max_body, max_headers;
        int max_redirects;
        resha_http_header *headers; /* what each request sends; owned, strings too */
        size_t header_count;
        resha_semaphore permits;
        unsigned max_per_host; /* 0: not limited */
        rs_http_host *hosts[RS_HTTP_HOST_BUCKETS];
        rs_http_call *calls;
        resha_shown shown;
        uint64_t figures[RS_HTTP_FIGURES];
};

void rs_http_session_unref(resha_http *h);

/* A place for one attempt, waiting for it at most `limit`. 0, with the host to give back in *ret_host (may be NULL);
 * RESHA_HTTP_EPOOL_TIMEOUT, -ECANCELED, -ENOMEM. doing: says so. [task] cancellation point */
RESHA_MUST int rs_http_session_acquire(resha_http *h, const rs_http_url *u, resha_duration limit, resha_doing *doing,
                                       rs_http_host **ret_host);
void rs_http_session_release(resha_http *h, rs_http_host *host);

#endif
