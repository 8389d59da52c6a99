/* SPDX-License-Identifier: MIT */
#ifndef RS_HTTP_CURL_H
#define RS_HTTP_CURL_H

/* The transport over the network, by libcurl. */

#include "url.h"

#include <resha/http.h>

typedef struct rs_http_curl_opts {
        long keep;                /* connections to keep open while idle */
        long keepalive_s;         /* for how long */
        const char *ca_file;      /* NULL: the system's; all strings are copied */
        const rs_http_url *proxy; /* NULL: none */
        bool no_verify;
} rs_http_curl_opts;

/* 0, -ENOMEM, -EMFILE. */
int rs_http_curl_new(const rs_http_curl_opts *opts, resha_http_transport *ret_transport);

/* Whether libcurl is to send a body: POST has one, if of size 0. */
bool rs_http_sends_body(const resha_http_attempt *a);

/* The headers of an attempt, for curl_slist_free_all(). 0 or -ENOMEM. */
struct curl_slist;
int rs_http_curl_headers(const resha_http_attempt *a, struct curl_slist **ret_list);

/* Connections that are open, or about to be; 0 for a transport of another kind. */
unsigned rs_http_curl_connections(const resha_http_transport *t);

#endif
