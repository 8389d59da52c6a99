/* SPDX-License-Identifier: MIT */
#ifndef RS_HTTP_NAMES_H
#define RS_HTTP_NAMES_H

/* Names and their addresses, in the form that libcurl takes, for a short while. */

#include <resha/http.h>

struct curl_slist;

typedef struct rs_http_names rs_http_names;

/* The addresses of one host and port. Counted: who got it from rs_http_names_get() unrefs it. */
typedef struct rs_http_name {
        struct curl_slist *list; /* one line of CURLOPT_RESOLVE */
        bool loaded;             /* libcurl has it in its own cache: the list need not be given again */

        struct rs_http_name *next; /* in its bucket */
        resha_instant expires;
        unsigned refs;
        uint16_t port;
        char host[];
} rs_http_name;

/* 0 or -ENOMEM. */
int rs_http_names_new(rs_http_names **ret_names);

/* NULL is fine. No name may be in use. */
void rs_http_names_free(rs_http_names *n);

/* Finds or looks up, for at most `limit`. *ret_name is NULL for a literal address, which needs no look-up. 0;
 * RESHA_HTTP_EHOST, RESHA_HTTP_ECONNECT_TIMEOUT, -EAGAIN, -ENOMEM, ..., -ECANCELED. *ret_time: how long a look-up
 * took that was needed, else 0; set in any case. [task] cancellation point */
RESHA_MUST int rs_http_names_get(rs_http_names *n, const char *host, uint16_t port, resha_duration limit,
                                 rs_http_name **ret_name, resha_duration *ret_time);

/* NULL is fine. */
void rs_http_name_unref(rs_http_name *name);

#endif
