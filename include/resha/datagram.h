/* SPDX-License-Identifier: MIT */
#ifndef RESHA_DATAGRAM_H
#define RESHA_DATAGRAM_H

/* Datagrams: UDP over IPv4 and IPv6, and datagrams of Unix sockets.
 *
 * A datagram is whole or not there: a send takes all of it or nothing, a receive gives one from its start. What does
 * not fit is cut off, and that is told. On the way datagrams may be lost, doubled and reordered, unless they stay on
 * this machine's Unix sockets.
 *
 * A socket with a peer is connected: it sends there, and only what comes from there is received. One task may receive
 * and one may send at the same time; a second one gets -EBUSY. All descriptors are close-on-exec.
 *
 * What the network says of datagrams that were sent ("nobody listens there", by ICMP) comes later than the send. With a
 * peer it is the result of the next receive or send, which then has done nothing else; without one it is dropped,
 * unless the socket was opened with `errors`. Such a failure does not harm the socket: go on. */

#include <resha/addr.h>
#include <resha/base.h>

RESHA_BEGIN_DECLS

typedef struct resha_dgram resha_dgram;

typedef struct resha_dgram_opts {
        /* Where it receives; port 0: any free one. "unix:", as resha_addr_scan() reads it: a name of its own that the
         * kernel thinks of. [NULL: any port (with a Unix peer: name); without a peer, of all addresses] */
        const resha_addr *local;
        const resha_addr *peer; /* [NULL: none, each datagram names its receiver] */
        bool reuse_port;        /* others may bind to the port that say so too, and share what comes [false] */
        bool ipv6_only;         /* the wildcard "::" does not take IPv4 [false: it does, and shows it as IPv4] */
        bool broadcast;         /* may send to broadcast addresses [false: -EACCES] */
        /* tell errors of single datagrams though there is no peer: resha_dgram_recv() [false: they are dropped] */
        bool errors;
        int receive_buffer, send_buffer; /* bytes of the kernel's, which doubles them [0: the system's] */
        unsigned mode;                   /* of a Unix socket's file, as 0600 [0: as the umask has it] */
        uint64_t _reserved[4];
} resha_dgram_opts;

/* One datagram of several. */
typedef struct resha_message {
        void *data;    /* receive: where it goes; send: not written to */
        size_t size;   /* receive: the room there; send: its bytes */
        size_t length; /* received: bytes in data */
        size_t whole;  /* received: bytes that it had; more than length if truncated */
        /* received: from whom, or none, of a Unix socket without a name; send: to whom; none: the peer */
        resha_addr addr;
        bool truncated; /* received: there was no room for all of it, and the rest is lost */
        uint64_t _reserved[2];
} resha_message;

/* Opens a socket. NULL: all defaults, a UDP socket with some free port of all addresses of IPv6 and IPv4. Others cannot
 * bind to its port: SO_REUSEADDR, which would let them take its datagrams, is not set. The file of a Unix socket is
 * dealt with as resha_listen() does: a dead one is replaced, a live one never, its own is removed at close. 0;
 * -EADDRINUSE, -EACCES, -EADDRNOTAVAIL, -EAFNOSUPPORT, -EINVAL, -ENOMEM; Unix peers: -ENOENT, -ECONNREFUSED nobody
 * there. [task] cancellation point */
RESHA_API RESHA_MUST int resha_dgram_open(const resha_dgram_opts *opts, resha_dgram **ret_dgram);

/* This end's address, or the peer's. 0; -ENOTCONN: it has no peer. [loop] */
RESHA_API int resha_dgram_addr(resha_dgram *d, bool peer, resha_addr *ret_addr);

/* Waits for a datagram: its bytes in buf, and how many they are; 0 is one of no bytes. -EMSGSIZE: it was longer, its
 * first `size` bytes are in buf, the rest is lost, the record says how long it was. -ECONNREFUSED, -EHOSTUNREACH, ...:
 * one that was sent did not arrive, and nothing was received. *ret_from (may be NULL) is written always: from whom it
 * came; of a datagram that did not arrive, whom it was for; else none. A datagram that has come is not lost by a
 * cancel. [task] cancellation point */
RESHA_API RESHA_MUST ssize_t resha_dgram_recv(resha_dgram *d, void *buf, size_t size, resha_addr *ret_from);

/* Waits for a datagram, and takes those that have come with it, at most n (and not more than 32 at once), in one system
 * call where the kernel can. How many, at least 1; one that was truncated is among them, and its flag says so. Negative
 * as resha_dgram_recv(), and then messages[0].addr is its *ret_from; -EINVAL n is 0. [task] cancellation point */
RESHA_API RESHA_MUST ssize_t resha_dgram_recv_many(resha_dgram *d, resha_message *messages, size_t n);

/* Sends a datagram to `to`, or NULL: to the peer. Waits while there is no room for it, at this end or, of Unix sockets,
 * at the other. 0: it is on its way. -EMSGSIZE too long; -EDESTADDRREQ neither `to` nor a peer; -EISCONN `to` is not
 * the peer; -ENETUNREACH, -EACCES, ...; -ECONNREFUSED, ... one that was sent before did not arrive, and this one was
 * not sent; of a Unix socket: nobody has this name. [task] cancellation point */
RESHA_API RESHA_MUST int resha_dgram_send(resha_dgram *d, const void *data, size_t size, const resha_addr *to);

/* Sends all of n datagrams in their order, in few system calls. 0 or negative; *ret_sent (may be NULL) is how many were
 * sent, also on failure: it is that one that failed, as in resha_dgram_send(). [task] cancellation point */
RESHA_API RESHA_MUST int resha_dgram_send_many(resha_dgram *d, const resha_message *messages, size_t n,
                                               size_t *ret_sent);

/* Ends the waits of who receives or sends (they get -EBADF), waits until they have let go, closes. NULL is fine. [task]
 * not a cancellation point */
RESHA_API void resha_dgram_close(resha_dgram *d);
RESHA_API void resha_dgram_closep(resha_dgram **d);

RESHA_END_DECLS
#endif
