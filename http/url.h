/* SPDX-License-Identifier: MIT */
#ifndef RS_HTTP_URL_H
#define RS_HTTP_URL_H

/* Absolute http and https URLs: checked, taken apart, joined, shown. Nothing here waits. */

#include <resha/base.h>

enum { RS_HTTP_HOST_MAX = 253, RS_HTTP_URL_MAX = 65535 };

typedef struct rs_http_url {
        bool https;
        uint16_t port;
        char host[RS_HTTP_HOST_MAX + 1]; /* lower case; an IPv6 literal without its brackets */
        char *text;                      /* to send: without user information and fragment; owned */
        char *authorization;             /* "Basic ..." of the user information, or NULL; owned */
} rs_http_url;

/* Checks and takes apart. 0; RESHA_HTTP_EURL, with the reason in *ret_why (static); -ENOMEM. */
int rs_http_url_parse(const char *text, rs_http_url *ret_url, const char **ret_why);

/* The URL that `location` means in an answer of `base`, without user information. As rs_http_url_parse(). */
int rs_http_url_join(const char *base, const char *location, rs_http_url *ret_url, const char **ret_why);

/* Releases what it owns; all zero is fine. */
void rs_http_url_done(rs_http_url *u);

/* Same scheme, host and port. */
bool rs_http_url_same_origin(const rs_http_url *a, const rs_http_url *b);

/* From http to https on the default ports of the same host. */
bool rs_http_url_upgrade(const rs_http_url *from, const rs_http_url *to);

/* A URL for people: no user information, no fragment, query values that look like secrets as "***", bytes that are
 * not printable as "?", long ones cut with "...". Any text will do. Result: buf. */
const char *rs_http_url_show(const char *url, char *buf, size_t size);

/* Whether a name (of a query field or a header) looks like that of a secret. */
bool rs_http_secret_name(const char *name, size_t size);

#endif
