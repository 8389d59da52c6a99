/* SPDX-License-Identifier: MIT */
#ifndef RESHA_LISTENER_H
#define RESHA_LISTENER_H

/* Listeners, and servers: a task for each connection. */

#include <resha/addr.h>
#include <resha/base.h>
#include <resha/stream.h>
#include <resha/time.h>

RESHA_BEGIN_DECLS

typedef struct resha_listener resha_listener;

/* Listens on a literal address or name ("" or NULL: all) and port (0: any free one), with the default options. A name
 * may wait for its look-up, and is listened on at the first of its addresses that allows it. 0; -EADDRINUSE, -EACCES,
 * -EADDRNOTAVAIL, -ENOENT. [task] cancellation point */
RESHA_API RESHA_MUST int resha_tcp_listen(const char *host, uint16_t port, resha_listener **ret_listener);

typedef struct resha_listen_opts {
        int backlog;     /* connections that wait to be accepted; the kernel may cut it [1024] */
        bool reuse_port; /* several sockets share the port; the kernel deals connections out to them [false] */
        bool ipv6_only;  /* "::" takes no IPv4 [false] */
        /* Loops that resha_run_loops() has started together have one queue of connections here: the first listens, with
         * its options, and the others, who ask for the same address, join it, whatever the port has become. Who is free
         * takes the next connection; none is lost while one of them is left. [false] */
        bool shared;
        /* permissions of a Unix socket's file, exactly; to connect is to write [0: the umask decides] */
        unsigned mode;
        uint64_t _reserved[4];
} resha_listen_opts;

/* Listens at an address: IPv4 or IPv6 (port 0: any free one; SO_REUSEADDR is set), or Unix. NULL: default options. At a
 * path of a Unix address
 *   - a server that is there is left alone: -EADDRINUSE; and so is anything that is no socket: -ENOTSOCK;
 *   - the file that a server left which is no more is replaced, also if several begin to listen there at once: one of
 *     them does, the others get -EADDRINUSE;
 *   - the file is removed by resha_listener_shutdown() or _close(), if it is still the same one. A forked child removes
 *     nothing. An abstract name has no file.
 * 0; -EADDRINUSE, -ENOTSOCK, -EACCES, -EADDRNOTAVAIL, -ENOENT no such folder, -EINVAL for an option that the family
 * does not have, ... [task] cancellation point */
RESHA_API RESHA_MUST int resha_listen(const resha_addr *addr, const resha_listen_opts *opts,
                                      resha_listener **ret_listener);

/* The same at a path, or "@name": resha_addr_unix() and resha_listen(). -ENAMETOOLONG over 107 bytes. [task]
 * cancellation point */
RESHA_API RESHA_MUST int resha_unix_listen(const char *path, const resha_listen_opts *opts,
                                           resha_listener **ret_listener);

/* Takes over a descriptor that listens: one of another program, or a dup(2) of one that another loop has. It is made
 * close-on-exec, and non-blocking for all who share it, for good: a loop that waits for one of several would hang when
 * another was faster. The file of a Unix socket is never removed. 0; -ENOTSOCK; -EINVAL a socket that does not listen,
 * or not for streams; -EBUSY this loop has it already; -EBADF, -ENOMEM: fd is still the caller's. [loop] */
RESHA_API RESHA_MUST int resha_listener_adopt(int fd, resha_listener **ret_listener);

/* The next of the listeners that systemd (or what does as it does) has opened for this process and that is not taken
 * yet, or the next one of a name (FileDescriptorName= in its socket unit; NULL: any). 1; 0 there is none (more), or the
 * process was not started so; -EINVAL for one that is no listener for streams, with its number, and for an environment
 * that says nonsense (LISTEN_PID, LISTEN_FDS, LISTEN_FDNAMES); -EBADF, -ENOMEM. As resha_listener_adopt(). It may also
 * be taken by another loop. [loop] */
RESHA_API RESHA_MUST int resha_listener_inherited(const char *name, resha_listener **ret_listener);

/* Where it listens: with the real port. [loop] */
RESHA_API int resha_listener_addr(resha_listener *l, resha_addr *ret_addr);

/* The next connection. 1; 0 once the listener is shut down; -ECANCELED (no connection is lost). -EMFILE, -ENFILE,
 * -ENOBUFS, -ENOMEM, -ECONNABORTED: for now; the connection waits, and so should the caller, for 10 ms, say (a loop
 * that asks at once spins). -EBUSY while another task accepts. [task] cancellation point */
RESHA_API RESHA_MUST int resha_accept(resha_listener *l, resha_stream **ret_stream);

/* No more connections: resha_accept() gives 0, clients are refused, and those that nobody has accepted are reset. A
 * listener that others share goes on with them. Idempotent. [loop] */
RESHA_API void resha_listener_shutdown(resha_listener *l);

/* Shuts it down and releases it; a server that accepts here drains and returns. NULL is fine. [task] not a cancellation
 * point */
RESHA_API void resha_listener_close(resha_listener *l);
RESHA_API void resha_listener_closep(resha_listener **l);

typedef struct resha_serve_opts {
        unsigned max_connections; /* live at once; more wait in the backlog [1000] */
        /* the connection of a handler that fails or is cancelled is aborted [false: closed] */
        bool abort_failed;
        /* once cancelled or shut down, handlers may go on for this long [0: they are cancelled at once] */
        resha_duration grace;
        uint64_t _reserved[4];
} resha_serve_opts;

/* Accepts connections and runs fn(stream, arg) in a task for each; the stream is closed when fn returns (fn must not
 * close it: nothing comes of that). A handler's failure ends that connection only, and is reported to nobody. When
 * descriptors, memory or stacks run out it reports that (RESHA_REPORT_SHORTAGE), waits a little and goes on; no
 * connection is lost. A client may take all the time it likes: put a timeout around each request (RESHA_SCOPE,
 * resha_timeout_begin()). Returns when the listener is shut down (0) or it is cancelled (-ECANCELED: then it shuts the
 * listener down itself), after drain and join; -EBUSY if the listener is served already. [task] cancellation point */
RESHA_API RESHA_MUST int resha_serve(resha_listener *l, int (*fn)(resha_stream *stream, void *arg), void *arg,
                                     const resha_serve_opts *opts);

RESHA_END_DECLS
#endif
