/* SPDX-License-Identifier: MIT */
#ifndef MOCK_H
#define MOCK_H

/* A transport that answers from a function, for sessions without a network. */

#include <resha/http.h>

struct mock {
        /* One attempt: may wait, fills the sink. */
        int (*answer)(struct mock *m, const resha_http_attempt *a, resha_http_sink *sink);
        void *arg;
        unsigned attempts, running, most, frees;
};

/* Transport options for it; the mock outlives the session. */
resha_http_transport mock_transport(struct mock *m);

/* A whole answer: `head` is header lines, each ended by "\n"; the body in pieces of `piece` bytes (0: at once). */
int mock_answer(resha_http_sink *sink, int status, const char *head, const void *body, size_t size, size_t piece);

/* The path and query of the attempt's URL. */
const char *mock_path(const resha_http_attempt *a);

/* The value of a header that it sends, or NULL. */
const char *mock_header(const resha_http_attempt *a, const char *name);

#endif
