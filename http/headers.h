/* SPDX-License-Identifier: MIT */
#ifndef RS_HTTP_HEADERS_H
#define RS_HTTP_HEADERS_H

/* Lists of headers to send: checked, merged, filtered. They borrow all text. */

#include <resha/http.h>

#include <string.h>

enum { RS_HTTP_HEADERS_INLINE = 16 };

typedef struct rs_http_headers {
        const resha_http_header *items;
        size_t count;
        bool shared;              /* items are the session's own */
        size_t capacity;          /* of the array of its own, if there is one */
        resha_http_header *owned; /* that array, if it is on the heap */
        resha_http_header small[RS_HTTP_HEADERS_INLINE];
} rs_http_headers;

/* 0, or RESHA_HTTP_EHEADER with the reason in *ret_why (static) and the guilty one in *ret_index. */
int rs_http_headers_check(const resha_http_header *items, size_t count, size_t *ret_index, const char **ret_why);

/* Session's and request's together, in the rooms of h, which must then stay where it is: the session's that the
 * request does not name, then the request's that have a value. `skip` (may be NULL): a name of the session's that is
 * left out as well. 0 or -ENOMEM. */
int rs_http_headers_merge(rs_http_headers *h, const resha_http_header *session, size_t session_count,
                          const resha_http_header *request, size_t request_count, const char *skip);

/* One more, unless the name is there already. 0 or -ENOMEM. */
int rs_http_headers_add(rs_http_headers *h, const char *name, const char *value);

/* Leaves out what must not go to another origin: all but a list of harmless names. 0 or -ENOMEM. */
int rs_http_headers_cross_origin(rs_http_headers *h);

/* Leaves out what describes a body, when a redirect has dropped it. 0 or -ENOMEM. */
int rs_http_headers_drop_body(rs_http_headers *h);

/* The value of the first of that name, or NULL. */
const char *rs_http_headers_find(const resha_http_header *items, size_t count, const char *name);

/* Whether name is a token of HTTP: what a method and a header name must be. */
bool rs_http_is_token(const char *name);

/* Asked several times for each request, mostly of another one. */
static inline bool rs_http_method_is(const char *method, const char *name)
{
        return *method == *name && strcmp(method, name) == 0;
}

/* All zero is fine. */
void rs_http_headers_done(rs_http_headers *h);

#endif
