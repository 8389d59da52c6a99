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

/* Listens on a literal address or name ("" or NULL: all) and port (0: any free one). SO_REUSEADDR is set; backlog
 * 1024 (the kernel may cut it). A name may wait for its look-up, and is listened on at the first of its addresses
 * that allows it. 0; -EADDRINUSE, -EACCES, -EADDRNOTAVAIL, -ENOENT. [task] cancellation point */
RESHA_API RESHA_MUST int resha_tcp_listen(const char *host, uint16_t port, resha_listener **ret_listener);

/* Where it listens: with the real port. [loop] */
RESHA_API int resha_listener_addr(resha_listener *l, resha_addr *ret_addr);

/* The next connection. 1; 0 once the listener is shut down; -ECANCELED (no connection is lost), -EMFILE, -ENFILE,
 * -ENOMEM: try later; -EBUSY while another task accepts. [task] cancellation point */
RESHA_API RESHA_MUST int resha_accept(resha_listener *l, resha_stream **ret_stream);

/* No more connections: resha_accept() gives 0, clients are refused. Idempotent. [loop] */
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
 * close it). A handler's failure ends that connection only, and is reported to nobody. When descriptors, memory or
 * stacks run out it reports that (RESHA_REPORT_SHORTAGE), waits a little and goes on; no connection is lost. Returns
 * when the listener is shut down (0) or it is cancelled (-ECANCELED: then it shuts the listener down itself), after
 * drain and join; -EBUSY if the listener is served already. [task] cancellation point */
RESHA_API RESHA_MUST int resha_serve(resha_listener *l, int (*fn)(resha_stream *stream, void *arg), void *arg,
                                     const resha_serve_opts *opts);

RESHA_END_DECLS
#endif
