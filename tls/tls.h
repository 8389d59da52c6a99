/* SPDX-License-Identifier: MIT */
#ifndef RS_TLS_H
#define RS_TLS_H

/* What the files of libresha-tls share.
 *
 * context*.c, verify.c, ...   resha_tls: options to an SSL_CTX, and an SSL made from it; reload; sessions; certificates
 * error.c                     what OpenSSL says, as codes and records
 * engine.c                    an SSL between two buffers of ours; it never waits
 * stream.c, start.c, ...      the waiting: bytes between the engine and the stream below
 *
 * OpenSSL's error queue belongs to the thread, and so to all tasks on it: whoever calls OpenSSL clears it before, and
 * takes what is in it afterwards, without waiting in between. */

#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>

#include <resha/resha.h>
#include <resha/tls.h>

/* ---- context.c: a configuration ---------------------------------------------------------------------------------- */

struct rs_tls_sessions;

struct resha_tls {
        atomic_uint refs;
        bool server;
        bool insecure;
        resha_duration handshake, shutdown; /* defaults filled in */
        pthread_mutex_t lock;               /* of what follows */
        SSL_CTX *ctx;                       /* replaced by a reload; each SSL has a reference of its own */
        struct rs_tls_sessions *sessions;   /* of a client; NULL: none are kept */
        struct rs_tls_files *files;         /* what a reload reads again: a copy of the options */
};

/* An SSL for a new connection, from what t is now: with the role set (SSL_set_connect_state or _accept_state), the name
 * to be verified and asked for, protocols, and a session to be resumed. Modes and buffers are the engine's. 0; -EINVAL
 * a host that cannot be one, -ENOMEM; with a record. */
int rs_tls_ssl_new(resha_tls *t, const resha_tls_start_opts *opts, SSL **ret_ssl);

/* The client's configuration with all defaults, made once; the caller gets no reference. */
int rs_tls_default(resha_tls **ret_tls);

/* ---- error.c ----------------------------------------------------------------------------------------------------- */

/* What the last call on ssl has failed with (SSL_get_error() gave SSL_ERROR_SSL or _SYSCALL), as a code with its
 * record: RESHA_TLS_EVERIFY, RESHA_TLS_EHANDSHAKE (handshake, or the peer's alert in it), RESHA_TLS_EPROTOCOL (later),
 * -ENOMEM. Empties the error queue. `host` is the name that was asked for, or NULL. */
int rs_tls_failed(SSL *ssl, bool handshake, const char *host);

/* The newest entry of the error queue with `what` before it, as a record of `code`; empties the queue. */
int rs_tls_fail(int code, const char *what);

/* ---- engine.c: an SSL between two buffers ------------------------------------------------------------------------ */

enum {
        RS_TLS_SMALL = 512,            /* in the engine itself: an idle one waits with that */
        RS_TLS_RECORD = 16384,         /* bytes in a record at most */
        RS_TLS_RECORD_MAX = 18432 + 5, /* the same, encrypted as badly as can be, with its header */
        RS_TLS_RESERVE = 1024,         /* kept free behind records, for what answers a record that was read */
        RS_TLS_BLOCK = 2 * (RS_TLS_RECORD + 256) + RS_TLS_RESERVE,
        RS_TLS_QUIET_MAX = 64, /* records in a row that bring no bytes: key updates, tickets, empty ones */
};

struct rs_tls_block;

/* The blocks of a thread: those that nobody has, for the next one who has something in it. */
struct rs_tls_pool {
        struct rs_tls_block *free;
        size_t count;   /* of them */
        size_t engines; /* with the last one, the blocks go too */
};

/* Bytes on their way: [start, end) of data. */
struct rs_tls_bytes {
        char *data;
        size_t start, end, size;
};

struct rs_tls_engine {
        SSL *ssl;
        struct rs_tls_pool *pool;
        struct rs_tls_bytes in;  /* encrypted, read; `small`, or a block */
        struct rs_tls_bytes out; /* encrypted, to be written; a block, NULL when there is nothing */
        size_t window;           /* up to here the SSL may read from `in` */
        bool open;               /* the handshake is done */
        bool ended;              /* the peer has said close_notify */
        bool more;               /* the last read from below was full */
        unsigned quiet;          /* records in a row that brought no bytes */
        int failed;              /* why nothing goes on any more */
        char small[RS_TLS_SMALL];
};

#endif
