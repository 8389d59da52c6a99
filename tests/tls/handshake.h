/* SPDX-License-Identifier: MIT */
#ifndef TEST_TLS_HANDSHAKE_H
#define TEST_TLS_HANDSHAKE_H

/* Handshakes in memory, without streams: what a configuration does, and what either end says of it. */

#include <openssl/ssl.h>

#include <resha/tls.h>

#include "authority.h"
#include "test.h"

#include "tls.h"

/* One handshake, and a little data each way behind it: in TLS 1.3 the server's word comes after the client's end. */
struct shake {
        resha_tls *client, *server;
        resha_tls_start_opts opts; /* of the client; host NULL: "a.example" */
        SSL *raw_client;           /* in place of `client`: another program's */
        SSL *raw_server;
        int (*before)(resha_tls *client); /* called between the making of the SSL and the handshake */
        /* What came of it. */
        SSL *ssl[2];            /* [0] the client's, [1] the server's, until shake_free() */
        int rc[2];              /* 0, or why it failed */
        char text[2][256];      /* the record's */
        char name[64];          /* CN of the server's certificate, as the client sees it; "" */
        char subject[64];       /* CN of the client's, as the server sees it; "" */
        char alpn[32];          /* "" */
        bool resumed, verified; /* as the client sees it */
        int version;
};

void shake(struct shake *s);
void shake_free(struct shake *s);

/* A configuration, or the test fails. */
resha_tls *client_of(const resha_tls_opts *opts);
resha_tls *server_of(const resha_tls_opts *opts);

/* One of a leaf, and one that trusts somebody. */
resha_tls *server_with(const struct cert *leaf);
resha_tls *client_trusting(const struct cert *root);

/* Root of all good ones, and an intermediate of it; made once in a test. */
struct cert *good_root(void);
struct cert *good_middle(void);

/* A leaf of good_middle() for "DNS:NAME". */
struct cert *good_leaf(const char *name);

/* Handshakes of `host` with the leaf; releases all. Gives the client's record text, valid until the next one; "" if it
 * succeeded. */
const char *refusal(const struct cert *leaf, const char *host);

#endif
