/* SPDX-License-Identifier: MIT */
#ifndef TEST_TLS_COMMON_H
#define TEST_TLS_COMMON_H

/* What tests of TLS streams share: one authority and a certificate of it for "a.example", made once in the process, and
 * pairs of secure streams. */

#include <resha/resha.h>
#include <resha/tls.h>

#include "test.h"

#include "tls.h"

/* Configurations: a server "a.example", and a client that trusts its authority. Not inside of a run that counts
 * allocations. The caller's own opts, or NULL, with certificates and trust filled in where they are not set. */
resha_tls *tls_server(const resha_tls_opts *opts);
resha_tls *tls_client(const resha_tls_opts *opts);

/* Handshakes over a pair of plain streams, both ends at once: [0] the client's, [1] the server's. */
struct tls_pair {
        resha_tls *client, *server;
        resha_stream *plain[2], *secure[2];
        int rc[2]; /* of each one's start */
};
int tls_pair_start(struct tls_pair *p);
/* One end alone, as a task. */
int tls_pair_start_client(void *pair);
int tls_pair_start_server(void *pair);

/* The same with the pair of plain streams made: as resha_stream_pair(). */
int tls_pair_open(struct tls_pair *p);

/* Secure streams first, then plain ones. */
void tls_pair_close(struct tls_pair *p);

#endif
