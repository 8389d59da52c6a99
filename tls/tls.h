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

#include <errno.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>

#include <resha/resha.h>
#include <resha/tls.h>

/* Records of failures here have no place: a line of this library says nothing to a program. */
#undef resha_fail
#define resha_fail(code, ...) resha_fail_at((code), NULL, __VA_ARGS__)

/* ---- context.c: a configuration ---------------------------------------------------------------------------------- */

struct rs_tls_sessions;
struct rs_tls_tickets;

struct resha_tls {
        atomic_uint refs;
        bool server;
        bool insecure;
        atomic_bool untold;                 /* it is insecure, and nobody has been told so yet */
        resha_duration handshake, shutdown; /* defaults filled in */
        struct rs_tls_sessions *sessions;   /* of a client; NULL: none are kept */
        struct rs_tls_tickets *tickets;     /* of a server; NULL: none are given */
        struct rs_tls_files *files;         /* what a reload reads again: a copy of the options */
        pthread_mutex_t reloading;          /* held while files are read: never on a loop's thread that may wait */
        pthread_mutex_t lock;               /* of what follows */
        SSL_CTX *ctx;                       /* replaced by a reload; each SSL has a reference of its own */
};

/* An SSL for a new connection, from what t is now: with the role set (SSL_set_connect_state or _accept_state), the name
 * to be verified and asked for, protocols, and a session to be resumed. Modes and buffers are the engine's. 0; -EINVAL
 * a host that cannot be one, -ENOMEM; with a record. */
int rs_tls_ssl_new(resha_tls *t, const resha_tls_start_opts *opts, SSL **ret_ssl);

/* The client's configuration with all defaults, made once; the caller gets no reference. */
int rs_tls_default(resha_tls **ret_tls);
void rs_tls_default_drop(void); /* for tests that count what was allocated */

/* ---- error.c ----------------------------------------------------------------------------------------------------- */

/* What the last call on ssl has failed with (SSL_get_error() gave SSL_ERROR_SSL or _SYSCALL), as a code with its
 * record: RESHA_TLS_EVERIFY, RESHA_TLS_EHANDSHAKE (handshake, or the peer's alert in it), RESHA_TLS_EPROTOCOL (later),
 * -ENOMEM. Empties the error queue. `host` is the name that was asked for, or NULL. */
int rs_tls_failed(SSL *ssl, bool handshake, const char *host);

/* The newest entry of the error queue with `what` before it, as a record of `code`; empties the queue. */
int rs_tls_fail(int code, const char *what);

/* ---- bytes.c: buffers, and the BIO over them --------------------------------------------------------------------- */

enum {
        RS_TLS_SMALL = 512,            /* in the engine itself: an idle one waits with that */
        RS_TLS_HEADER = 5,             /* of a record: type, version, size */
        RS_TLS_RECORD = 16384,         /* bytes in a record at most */
        RS_TLS_RECORD_MAX = 18432 + 5, /* the same, encrypted as badly as may be, with its header */
        RS_TLS_OVERHEAD = 256,         /* of a record that we make, at most */
        RS_TLS_RESERVE = 1024,         /* kept free behind records, for what answers a record that was read */
        RS_TLS_BLOCK = 2 * (RS_TLS_RECORD + RS_TLS_OVERHEAD) + RS_TLS_RESERVE,
        RS_TLS_FREE_MAX = 16,  /* blocks that nobody has are kept, of each thread */
        RS_TLS_QUIET_MAX = 64, /* records in a row that bring no bytes: key updates, tickets, empty ones */
};

struct rs_tls_block;

/* The blocks of a thread that nobody has: for the next one that has something to put in. */
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

static inline size_t rs_tls_bytes_left(const struct rs_tls_bytes *b)
{
        return b->end - b->start;
}

struct rs_tls_engine {
        SSL *ssl;
        struct rs_tls_pool *pool;
        struct rs_tls_bytes in;  /* encrypted, read: in `small`, or in a block */
        struct rs_tls_bytes out; /* encrypted, to be written: in a block; NULL if there is nothing */
        size_t window;           /* up to here the SSL may read `in`: the end of a record */
        size_t fragment;         /* bytes that it puts in a record at most */
        const char *peer;        /* for texts: the name that was asked for; NULL: it has none */
        bool open;               /* the handshake is done */
        bool ended;              /* the peer has said close_notify */
        bool more;               /* the last read from below filled what there was: there may be more */
        bool lent;               /* a read from below puts bytes behind those of `in`: they stay where they are */
        bool no_block;           /* an answer found no memory */
        unsigned quiet;          /* records in a row that brought no bytes */
        int failed;              /* why nothing goes on any more */
        char small[RS_TLS_SMALL];
};

/* Puts a BIO over e's buffers under e->ssl. 0, -ENOMEM. */
int rs_tls_bio_attach(struct rs_tls_engine *e);

/* This thread's pool, with one engine more. */
struct rs_tls_pool *rs_tls_pool_join(void);
void rs_tls_pool_leave(struct rs_tls_pool *pool);

/* A block of RS_TLS_BLOCK bytes for b, which has none; what it holds is moved there. 0, -ENOMEM. */
int rs_tls_block_borrow(struct rs_tls_pool *pool, struct rs_tls_bytes *b);
void rs_tls_block_return(struct rs_tls_pool *pool, struct rs_tls_bytes *b);

/* ---- engine.c: an SSL between two buffers; nothing here waits ---------------------------------------------------- */

/* What an engine gives when it cannot go on for now: encrypted bytes have to come in, or go out, first. */
enum {
        RS_TLS_WANT_BYTES = -EAGAIN,
        RS_TLS_WANT_ROOM = -ENOBUFS,
};

/* Takes ssl over, also if it fails. 0, -ENOMEM. `peer` is borrowed. */
int rs_tls_engine_init(struct rs_tls_engine *e, SSL *ssl, const char *peer);
void rs_tls_engine_done(struct rs_tls_engine *e);

/* 0: done; RS_TLS_WANT_...; or why there is none. */
int rs_tls_engine_handshake(struct rs_tls_engine *e);

/* Bytes; 0 the peer has said that this was all; RS_TLS_WANT_...; or a failure, which is told again ever after. */
ssize_t rs_tls_engine_read(struct rs_tls_engine *e, void *buf, size_t size);

/* Bytes that were taken, as many as there is room for when encrypted; RS_TLS_WANT_...; or a failure. size > 0 */
ssize_t rs_tls_engine_write(struct rs_tls_engine *e, const void *data, size_t size);

/* Encrypts close_notify, once. 0, RS_TLS_WANT_ROOM, or a failure. */
int rs_tls_engine_end(struct rs_tls_engine *e);

/* Whether a whole record is there to be read. */
bool rs_tls_engine_ready(struct rs_tls_engine *e);

/* Room for encrypted bytes that come, and how many; NULL: no memory. It is lent until rs_tls_engine_came() says that n
 * of them came; 0: none. */
char *rs_tls_engine_room(struct rs_tls_engine *e, size_t *ret_size);
void rs_tls_engine_came(struct rs_tls_engine *e, size_t n);

/* n of the bytes at e->out have gone. */
void rs_tls_engine_went(struct rs_tls_engine *e, size_t n);

/* Nothing more can come, and the peer has not said that it would be so: RESHA_TLS_ETRUNCATED, with its record. */
int rs_tls_engine_cut(struct rs_tls_engine *e);

/* ---- stream.c: the waiting --------------------------------------------------------------------------------------- */

/* One direction of the stream below: one task at a time. */
struct rs_tls_turn {
        bool busy;
        bool again;         /* who waits below should look at what there is to do anew */
        bool awaited;       /* somebody waits for its end */
        resha_scope *scope; /* of who waits below, for close to end it */
};

/* What each read and write looks at stands together, with the engine. */
struct rs_tls_stream {
        resha_tls *tls;
        void (*closed)(void *arg); /* told when it is closed; NULL: nobody */
        void *closed_arg;
        bool owned;                        /* `under` is closed with it */
        resha_event left;                  /* a task has left a call */
        resha_event fill_over, flush_over; /* a turn has ended */
        resha_stream *under;
        bool closing, aborted;
        bool kept_below; /* `under` has taken bytes, and may not have sent them */
        int unsent;      /* why nothing can be written below any more */
        unsigned inside; /* tasks in a call */
        struct rs_tls_turn fill, flush;
        struct rs_tls_engine engine;
        char host[]; /* that was asked for; "" */
};

extern const resha_stream_ops rs_tls_stream_ops;

/* Over `under`, before its handshake. 0, or negative with its record. */
int rs_tls_stream_new(resha_stream *under, resha_tls *tls, const resha_tls_start_opts *opts,
                      struct rs_tls_stream **ret_stream);

/* Releases it, and nothing else: `under` stays. */
void rs_tls_stream_free(struct rs_tls_stream *t);

/* Reads encrypted bytes from below, or lets another task do so. 0: some came; negative: the end is
 * RESHA_TLS_ETRUNCATED. */
int rs_tls_stream_fill(struct rs_tls_stream *t);

/* Writes all encrypted bytes below. [task] cancellation point */
int rs_tls_stream_flush(struct rs_tls_stream *t);

/* The same for what answers the peer, for a short time only: what did not go out goes out later. */
int rs_tls_stream_answer(struct rs_tls_stream *t);

/* resha_tls_start() with more to say. */
int rs_tls_start(resha_stream *under, resha_tls *t, const resha_tls_start_opts *opts, struct rs_tls_stream **ret_impl,
                 resha_stream **ret_stream);

#endif
