/* SPDX-License-Identifier: MIT */
#ifndef RESHA_STREAM_H
#define RESHA_STREAM_H

/* Byte streams. Listeners and servers: <resha/listener.h>.
 *
 * One task may read and one may write a stream at the same time; a second one gets -EBUSY. All descriptors are
 * close-on-exec. Nagle's algorithm is off. Writing to a closed peer is -EPIPE or -ECONNRESET, never a signal.
 *
 * Once a connection has failed, every later read and write says so with the same code. What had come before is still
 * read first, and a stream that the peer has ended stays at its end.
 *
 * Nothing is read ahead but for a call that looks for a separator, and nothing that is written is kept back: a reader
 * that does not read makes the peer wait, and a peer that does not read makes the writer wait. A stream holds at most
 * twice the largest size that was asked for, or 4 KiB. */

#include <resha/addr.h>
#include <resha/base.h>
#include <resha/time.h>

RESHA_BEGIN_DECLS

typedef struct resha_stream resha_stream;

/* What a stream is made of: TLS, tests and users plug in here. Each call behaves as the public one that it serves; impl
 * is the first argument. */
typedef struct resha_stream_ops {
        const char *kind; /* "tcp", "tls", ...; static */
        /* some bytes, 0 at the end, or negative; [task] cancellation point */
        ssize_t (*read)(void *impl, void *buf, size_t size);
        /* some bytes taken, or negative; [task] cancellation point */
        ssize_t (*write)(void *impl, const void *data, size_t size);
        int (*shutdown)(void *impl);                              /* no more writes; the peer sees the end */
        int (*addr)(void *impl, bool peer, resha_addr *ret_addr); /* NULL: -EOPNOTSUPP */
        /* cancels, waits for what is in flight, releases impl */
        void (*close)(void *impl);
        /* ends the waits inside with -ECONNABORTED, and the close to come resets; NULL: it closes as ever; [loop] */
        void (*abort)(void *impl);
        uint64_t _reserved[3];
} resha_stream_ops;

/* A stream on ops (static) and impl, which it owns from now on. 0; -ENOMEM, -EINVAL for reserved words, -EPERM: impl is
 * still the caller's. [loop] */
RESHA_API int resha_stream_new(const resha_stream_ops *ops, void *impl, resha_stream **ret_stream);

/* Connects to one address. 0; -ECONNREFUSED, -ETIMEDOUT, -ENETUNREACH, ..., -ECANCELED. [task] cancellation point */
RESHA_API RESHA_MUST int resha_tcp_connect_addr(const resha_addr *addr, resha_stream **ret_stream);

/* Looks up a name and connects to the first of its addresses that answers; the next is tried after 250 ms or a failure
 * (RFC 8305). As resha_resolve() and resha_tcp_connect_addr(). [task] cancellation point */
RESHA_API RESHA_MUST int resha_tcp_connect(const char *host, uint16_t port, resha_stream **ret_stream);

/* Reads what is there, at most size bytes, waiting for the first. Above 0: bytes; 0: the end (or size 0); negative:
 * failed. No byte is lost by a cancel. [task] cancellation point */
RESHA_API RESHA_MUST ssize_t resha_read(resha_stream *s, void *buf, size_t size);

/* Reads exactly size bytes. size; fewer, if the end came before; negative: failed, the bytes stay in the stream.
 * Should there be no memory to keep them, they are lost, and every later read says so with -ENOMEM. [task] cancellation
 * point */
RESHA_API RESHA_MUST ssize_t resha_read_exactly(resha_stream *s, void *buf, size_t size);

/* Reads a line, its "\n" included, into buf and ends it with a 0. Bytes without the 0; the last line may lack its "\n";
 * 0 at the end. -EMSGSIZE if the line does not fit in size - 1 bytes: it stays in the stream. size in 2..16 MiB, else
 * -EINVAL. [task] cancellation point */
RESHA_API RESHA_MUST ssize_t resha_read_line(resha_stream *s, char *buf, size_t size);

/* What a piece of a stream ends with: { .text = "\r\n" }, or { "\0", 1 }, where the size must be told. Not empty. */
typedef struct resha_separator {
        const char *text;
        size_t size; /* bytes [strlen(text)] */
} resha_separator;

/* Reads up to one of n separators, that included, into buf and puts a 0 behind. The one that ends first counts, and of
 * two that end at the same byte the one that stands first in the array. Bytes without the 0; *ret_which (may be NULL)
 * is the index of the separator, or n if the stream ended before one came: then these were its last bytes, and 0 is its
 * end. -EMSGSIZE if the piece does not fit in size - 1 bytes: it stays in the stream, and the record says where the
 * separator ends, or how far it was looked for. -EINVAL without separators, for an empty one, and for a size that is
 * not in 2..16 MiB. [task] cancellation point */
RESHA_API RESHA_MUST ssize_t resha_read_until(resha_stream *s, const resha_separator *separators, size_t n, char *buf,
                                              size_t size, size_t *ret_which);

/* Writes all. 0 or negative; *ret_written (may be NULL) is how much was taken, also on failure. [task] cancellation
 * point */
RESHA_API RESHA_MUST int resha_write_all(resha_stream *s, const void *data, size_t size, size_t *ret_written);

/* No more writes; the peer reads the end after what was sent. 0 or negative. [loop] */
RESHA_API int resha_stream_shutdown(resha_stream *s);

/* This end's address, or the peer's. 0, -EOPNOTSUPP, -ENOTCONN. [loop] */
RESHA_API int resha_stream_addr(resha_stream *s, bool peer, resha_addr *ret_addr);

/* Breaks the connection off, also for a task that does not own the stream: who reads or writes gets -ECONNABORTED, and
 * so does every later call that needs the connection. The owner still closes it, and that drops what was not sent yet
 * and resets the connection, so that the peer does not take what it got for all. [loop] */
RESHA_API void resha_stream_abort(resha_stream *s);

/* Ends the waits of who reads or writes (they get -EBADF), waits until they have let go, closes. Never waits for the
 * peer: what writes have taken goes on being sent; if bytes are left unread, the connection is reset. NULL is fine.
 * [task] not a cancellation point */
RESHA_API void resha_stream_close(resha_stream *s);
RESHA_API void resha_stream_closep(resha_stream **s);

RESHA_END_DECLS
#endif
