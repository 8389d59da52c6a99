/* SPDX-License-Identifier: MIT */
#ifndef TEST_TLS_EVIL_H
#define TEST_TLS_EVIL_H

/* A peer that shakes hands as it should, by OpenSSL, and then makes records of its own, with the right keys: any type,
 * any content. In a task, on a stream. AES-128-GCM. */

#include <openssl/ssl.h>
#include <resha/resha.h>

#include "authority.h"

enum { EVIL_ALERT = 21, EVIL_HANDSHAKE = 22, EVIL_DATA = 23 };

struct evil {
        /* to set */
        bool server, old;        /* which end it is; TLS 1.2 */
        const struct cert *cert; /* of a server */
        unsigned chain;          /* sends it so many times more */
        resha_stream *stream;    /* borrowed */
        /* inside */
        SSL_CTX *ctx;
        SSL *ssl;
        unsigned char secret[32], master[48]; /* that its own records are made with */
        unsigned char key[16], iv[12];
        uint64_t number; /* of the next record */
};

/* The handshake. 0, or what the stream says, or -EPROTO. */
int evil_start(struct evil *e);

/* A record. 0, or what the stream says. */
int evil_send(struct evil *e, int type, const void *data, size_t size);

/* From the next record on, the next key of TLS 1.3: behind a key update. */
void evil_next_key(struct evil *e);

void evil_end(struct evil *e);

#endif
