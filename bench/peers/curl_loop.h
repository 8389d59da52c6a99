/* SPDX-License-Identifier: MIT */
#ifndef PEER_CURL_LOOP_H
#define PEER_CURL_LOOP_H

/* Downloads on libcurl's multi-socket interface and epoll, without a library in between. */

#include <stddef.h>

struct answer {
        const char *url;
        long status;
        const char *content_type, *etag, *last_modified; /* NULL: none */
        const char *body;
        size_t size;
        char started_at[25], finished_at[25]; /* ISO 8601, UTC */
        const char *error;                    /* NULL: none */
};

/* Gets all URLs, `concurrency` at a time; calls done for each, with an answer that is valid during the call. Ends the
 * program if the loop itself fails. */
void curl_loop_run(char **urls, size_t n, unsigned concurrency, void (*done)(const struct answer *a));

/* The lines of a file: allocated, never released. Ends the program if it cannot be read. */
char **curl_loop_urls(const char *path, size_t *ret_n);

#endif
