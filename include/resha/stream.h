/* SPDX-License-Identifier: MIT */
#ifndef RESHA_STREAM_H
#define RESHA_STREAM_H

/* Byte streams: connections, pipes, terminals, files, and kinds of your own. Listeners and servers:
 * <resha/listener.h>. Which call when: docs/streams.md.
 *
 * One task may read and one may write a stream at the same time; a second one gets -EBUSY. All descriptors are
 * close-on-exec. Nagle's algorithm is off. Writing to a closed peer is -EPIPE or -ECONNRESET, never a signal; to a
 * regular file beyond RLIMIT_FSIZE it is SIGXFSZ, as always, and -EFBIG in a program that ignores that.
 *
 * Once a connection has failed, every later read and write says so with the same code. What had come before is still
 * read first, and a connection that the peer has ended stays at its end. The end of a terminal or a FIFO is not final:
 * what comes later can be read after it; nor is a full disk (-ENOSPC, -EDQUOT).
 *
 * Nothing is read ahead but for a call that looks for a separator, and nothing that is written is kept back unless
 * resha_stream_buffer() asked for it: a reader that does not read makes the peer wait, and a peer that does not read
 * makes the writer wait. A stream holds at most twice the largest size that was asked for, or 4 KiB, of what it has
 * read. */

#include <sys/uio.h>

#include <resha/addr.h>
#include <resha/base.h>
#include <resha/time.h>

RESHA_BEGIN_DECLS

typedef struct resha_stream resha_stream;

/* Options of sockets. */
enum resha_stream_option {
        RESHA_STREAM_NODELAY = 1,    /* 1: small writes go out at once [1]; 0: Nagle's algorithm. TCP */
        RESHA_STREAM_KEEPALIVE,      /* seconds without traffic before the peer is probed; 0: never [0]. TCP */
        RESHA_STREAM_USER_TIMEOUT,   /* ms that sent bytes may stay unacknowledged; 0: the system's [0]. TCP */
        RESHA_STREAM_SEND_BUFFER,    /* bytes; Linux doubles what is set, and tells the double */
        RESHA_STREAM_RECEIVE_BUFFER, /* the same */
};

/* What a stream is made of: TLS, tests and users plug in here. Each call behaves as the public one that it serves; impl
 * is the first argument. Calls from write_vec on may be NULL: the stream does without. */
typedef struct resha_stream_ops {
        const char *kind; /* "tcp", "tls", ...; static */
        /* some bytes, 0 at the end, or negative; [task] cancellation point */
        ssize_t (*read)(void *impl, void *buf, size_t size);
        /* some bytes taken, or negative; [task] cancellation point */
        ssize_t (*write)(void *impl, const void *data, size_t size);
        /* no more writes; the peer sees the end; -EOPNOTSUPP: there is no such thing */
        int (*shutdown)(void *impl);
        int (*addr)(void *impl, bool peer, resha_addr *ret_addr); /* NULL: -EOPNOTSUPP */
        /* cancels, waits for what is in flight, releases impl */
        void (*close)(void *impl);
        /* ends the waits inside with -ECONNABORTED, and the close to come resets; NULL: it closes as ever; [loop] */
        void (*abort)(void *impl);
        /* some bytes taken of n parts, 1 to 64, none of them empty; or negative; [task] cancellation point; NULL: each
         * is written on its own */
        ssize_t (*write_vec)(void *impl, const struct iovec *parts, size_t n);
        /* some bytes taken, at most size, of fd from offset on; 0: it ends there; negative: failed, -EOPNOTSUPP and
         * -EINVAL: not from there; [task] cancellation point; NULL: bytes are copied */
        ssize_t (*send_file)(void *impl, int fd, int64_t offset, size_t size);
        /* reads or sets *value; [loop]; NULL: -EOPNOTSUPP */
        int (*option)(void *impl, enum resha_stream_option which, int *value, bool set);
        /* ends the writing side for resha_stream_finish(), which then reads to the peer's end: where that takes a
         * message that may have to wait; [task] cancellation point; NULL: shutdown */
        int (*finish)(void *impl);
        /* sends what writes have taken and not sent yet; called behind the last write of each call; [task]
         * cancellation point; NULL: there is no such thing */
        int (*flush)(void *impl);
        uint64_t _reserved[2];
} resha_stream_ops;

/* A stream on ops (static) and impl, which it owns from now on. 0; -ENOMEM, -EINVAL for reserved words, -EPERM: impl is
 * still the caller's. [loop] */
RESHA_API int resha_stream_new(const resha_stream_ops *ops, void *impl, resha_stream **ret_stream);

/* Where the program has opened it, for libraries that make streams: __builtin_return_address(0) of the call that gives
 * it to the program. Without it the call of resha_stream_new() counts. [loop] */
RESHA_API void resha_stream_opened_by(resha_stream *s, const void *address);

/* What it was made with, if that is of these ops, and s is not being closed; else NULL. [loop] */
RESHA_API void *resha_stream_impl(const resha_stream *s, const resha_stream_ops *ops);

/* ---- to have one ---- */

typedef struct resha_connect_opts {
        const resha_addr *local; /* this end's address, of the same family; port 0: any [NULL: the system chooses] */
        uint64_t _reserved[4];
} resha_connect_opts;

/* Connects to one address: TCP, or a Unix socket, whose listener makes it wait while its queue is full. 0;
 * -ECONNREFUSED, -ETIMEDOUT, -ENETUNREACH, -ENOENT (no such socket file), -EADDRINUSE and -EADDRNOTAVAIL of
 * opts->local, ..., -ECANCELED. [task] cancellation point */
RESHA_API RESHA_MUST int resha_connect(const resha_addr *addr, const resha_connect_opts *opts,
                                       resha_stream **ret_stream);

/* resha_connect() without options. [task] cancellation point */
RESHA_API RESHA_MUST int resha_tcp_connect_addr(const resha_addr *addr, resha_stream **ret_stream);

/* Looks up a name and connects to the first of its addresses that answers (RFC 8305): in the order of the look-up, with
 * the families taking turns, at most 16; the next is tried after 250 ms, or at once if one fails; the others are given
 * up when one has answered. As resha_resolve() and resha_tcp_connect_addr(); if all fail, one record names all, with
 * the code of the first that this machine has a route to. There is no time limit but the system's (127 s):
 * resha_timeout(). [task] cancellation point */
RESHA_API RESHA_MUST int resha_tcp_connect(const char *host, uint16_t port, resha_stream **ret_stream);

/* Connects to a Unix socket: "/run/x.sock", or "@name" as of resha_addr_unix(). [task] cancellation point */
RESHA_API RESHA_MUST int resha_unix_connect(const char *path, resha_stream **ret_stream);

/* Two streams that are connected to each other: Unix sockets. 0; -EMFILE, -ENFILE, -ENOMEM, -EPERM. [loop] */
RESHA_API int resha_stream_pair(resha_stream *ret_pair[2]);

/* The two ends of a pipe. 0; -EMFILE, -ENFILE, -ENOMEM, -EPERM. [loop] */
RESHA_API int resha_pipe(resha_stream **ret_read, resha_stream **ret_write);

/* A stream of a descriptor, which it owns from now on: a connected socket, a pipe, a FIFO, a terminal, a file. It is
 * made non-blocking where that is needed, which all who share its description see. On failure fd is still the caller's:
 * -EBADF, -EBUSY (it is a stream's or listener's already), -EINVAL (a socket that is no stream, or listens), -ENOMEM,
 * -EPERM. [loop] */
RESHA_API int resha_stream_adopt(int fd, resha_stream **ret_stream);

/* Gives the descriptor back, blocking or not as it was when it was adopted (one that was made here: non-blocking), and
 * frees s. 0; s is as it was after -EBUSY (a task is inside, bytes are buffered in one of the directions, or it is that
 * of a resha_serve() handler), -EOPNOTSUPP (it has no descriptor of its own: a kind of yours, standard input and
 * output, the simulated world). [loop] */
RESHA_API int resha_stream_release(resha_stream *s, int *ret_fd);

/* Standard input (0), output (1) or error (2), whatever it is: a terminal, a pipe, a file, /dev/null, a socket. The
 * descriptor stays open when the stream is closed, and what it shares with other processes stays as it is: a terminal
 * or pipe is opened anew, so that the shell's is not made non-blocking. (One that may not be opened anew is made so
 * until the stream is closed.) 0; -EBADF if the program was started without it; -EINVAL for other numbers; -ENOMEM,
 * -EMFILE, -EPERM. [loop] */
RESHA_API int resha_stream_stdio(int fd, resha_stream **ret_stream);

/* ---- reading ---- */

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

/* How many bytes have been read ahead, and not been taken yet: the next read gives them. [loop] */
RESHA_API size_t resha_stream_unread(const resha_stream *s);

/* ---- writing ---- */

/* Writes all. 0 or negative; *ret_written (may be NULL) is how much was taken, also on failure. [task] cancellation
 * point */
RESHA_API RESHA_MUST int resha_write_all(resha_stream *s, const void *data, size_t size, size_t *ret_written);

/* The same for n parts, one behind the other, as if they were one. Any number of them, empty ones too; not copied, and
 * as few calls of the system as can be. -EINVAL if they are more than SSIZE_MAX bytes. [task] cancellation point */
RESHA_API RESHA_MUST int resha_write_vec(resha_stream *s, const struct iovec *parts, size_t n, size_t *ret_written);

/* From now on what is written is kept until it would be more than `mark` bytes (at most 1 GiB); 0, the default: nothing
 * is. What is too much then goes out together with what was kept, in one call of the system, and is not copied. Kept
 * bytes count as taken; they go out before all later ones, by resha_flush() at the latest: nothing else sends them.
 * 0; -EBUSY while a task writes, -ENOMEM, -EINVAL, -EBADF, -EPERM. [loop] */
RESHA_API int resha_stream_buffer(resha_stream *s, size_t mark);

/* How many written bytes are kept. [loop] */
RESHA_API size_t resha_stream_buffered(const resha_stream *s);

/* Sends what is kept. 0, or negative: then the rest of it is kept still, for the next call if there can be one. [task]
 * cancellation point */
RESHA_API RESHA_MUST int resha_flush(resha_stream *s);

/* Sends what is kept, and then `size` bytes of file fd from `offset` on (UINT64_MAX: all to its end): by the kernel
 * where it can, else through a buffer. The position of fd does not move; reading it may wait for a disk. What is
 * written to the file before the peer has it may be what the peer gets. *ret_sent (may be NULL) is how many of its
 * bytes were taken, also on failure. 0; -ENODATA if the file ends before; -EINVAL for an offset that is negative or a
 * sum above INT64_MAX; -ESPIPE if fd has no positions (adopt it instead); what reading it says; what writing says.
 * [task] cancellation point */
RESHA_API RESHA_MUST int resha_send_file(resha_stream *s, int fd, int64_t offset, uint64_t size, uint64_t *ret_sent);

/* ---- the end ---- */

/* No more writes (one that waits gets -EPIPE); the peer reads the end after what was sent. 0 or negative: -EBUSY if
 * bytes are kept (flush them), and while a task writes to a pipe; -ECONNABORTED if it was broken off here; -ENOTCONN if
 * the connection is broken; -EOPNOTSUPP for what has no such end: a terminal, a file, standard output that is no
 * socket. [loop] */
RESHA_API int resha_stream_shutdown(resha_stream *s);

/* What resha_stream_finish() drops at most, and how long it waits for the peer. */
#define RESHA_FINISH_BYTES (1u << 20)
#define RESHA_FINISH_SECONDS 30

/* The orderly end, before resha_stream_close(): sends what is kept, ends the writing side, and reads and drops what
 * still comes until the peer has ended, too. That is how to know that all has arrived: a connection that is closed with
 * bytes unread is reset, and what was on its way to the peer is lost. Without a reading side, and where nothing can be
 * ended, it only sends. 0; -EMSGSIZE if the peer has sent more than RESHA_FINISH_BYTES, -ETIMEDOUT if it has not ended
 * after RESHA_FINISH_SECONDS (a timeout scope makes that less); -EBUSY while a task reads or writes; what writing and
 * reading say. [task] cancellation point */
RESHA_API RESHA_MUST int resha_stream_finish(resha_stream *s);

/* Breaks the connection off, also for a task that does not own the stream: who reads or writes gets -ECONNABORTED, and
 * so does every later call that needs the connection. The owner still closes it, and that drops what was not sent yet
 * and resets the connection, so that the peer does not take what it got for all. [loop] */
RESHA_API void resha_stream_abort(resha_stream *s);

/* Ends the waits of who reads or writes (they get -EBADF), waits until they have let go, closes. Never waits for the
 * peer: what writes have taken goes on being sent, but for what is kept (resha_stream_buffer()), which is dropped; that
 * is reported (RESHA_REPORT_DROPPED) unless the connection had failed or was broken off, or the task is cancelled. If
 * bytes are left unread, the connection is reset. NULL is fine. [task] not a cancellation point */
RESHA_API void resha_stream_close(resha_stream *s);
RESHA_API void resha_stream_closep(resha_stream **s);

/* ---- about it ---- */

/* "tcp", "unix", "pipe", "terminal", "file", "tls", or that of its ops. [loop] */
RESHA_API const char *resha_stream_kind(const resha_stream *s);

/* This end's address, or the peer's. 0, -EOPNOTSUPP, -ENOTCONN. [loop] */
RESHA_API int resha_stream_addr(resha_stream *s, bool peer, resha_addr *ret_addr);

/* An option of its socket, as it is, or to be. 0; -EOPNOTSUPP: this kind has it not; -EINVAL. [loop] */
RESHA_API int resha_stream_get(resha_stream *s, enum resha_stream_option option, int *ret_value);
RESHA_API int resha_stream_set(resha_stream *s, enum resha_stream_option option, int value);

RESHA_END_DECLS
#endif
