/* SPDX-License-Identifier: MIT */
#ifndef RESHA_ADDR_H
#define RESHA_ADDR_H

/* Network addresses and names. */

#include <resha/base.h>
#include <resha/time.h>

RESHA_BEGIN_DECLS

typedef struct resha_addr {
        uint64_t _[17]; /* a sockaddr_storage and its length; all zero: none */
} resha_addr;

/* Room for any text of resha_addr_format(), its end included. */
#define RESHA_ADDR_TEXT_MAX 448

/* A literal, as "127.0.0.1", "::1", "[::1]", "fe80::1%eth0", "fe80::1%2", with a port number. No names. 0 or -EINVAL.
 * [any-thread] */
RESHA_API int resha_addr_parse(const char *literal, uint16_t port, resha_addr *ret_addr);

/* A Unix socket: a path, absolute or relative, or "@name" in Linux's abstract name space. Taken as it is: a path that
 * begins with @ is "./@path". 0; -EINVAL empty; -ENAMETOOLONG more than 107 bytes, the @ not counted. [any-thread] */
RESHA_API int resha_addr_unix(const char *path, resha_addr *ret_addr);

/* The text of an address of any family, cut if `size` is too small; size 0 writes nothing. Result: buf.
 *
 *     127.0.0.1:80            IPv4
 *     [fe80::1%eth0]:80       IPv6; the zone is a number where it has no name
 *     /run/x.sock             Unix, an absolute path
 *     @name                   Unix, an abstract name
 *     unix:x.sock  unix:      Unix, another path; unnamed
 *     none                    no address
 *
 * In Unix addresses \xNN stands for a control character, a backslash, and for an @ that begins a path.
 * [any-thread] */
RESHA_API const char *resha_addr_format(const resha_addr *a, char *buf, size_t size);

/* The address of such a text: for every address resha_addr_scan() of its resha_addr_format() is resha_addr_equal() to
 * it. "unix:" is fine before all Unix addresses. No names, no "none", no address without its port. 0; -EINVAL;
 * -ENAMETOOLONG too long for a Unix address. [any-thread] */
RESHA_API int resha_addr_scan(const char *text, resha_addr *ret_addr);

/* AF_INET, AF_INET6, AF_UNIX; AF_UNSPEC: none. [any-thread] */
RESHA_API int resha_addr_family(const resha_addr *a);

/* The same family, host, zone and port; the same Unix name, byte for byte (a path is not looked at). IPv4 in IPv6 is
 * not IPv4. [any-thread] */
RESHA_API bool resha_addr_equal(const resha_addr *a, const resha_addr *b);

/* Port in host order, 0 if there is none. [any-thread] */
RESHA_API uint16_t resha_addr_port(const resha_addr *a);

/* The same address with another port (none for what has none). [any-thread] */
RESHA_API void resha_addr_set_port(resha_addr *a, uint16_t port);

/* The sockaddr inside, its length in *ret_size. [any-thread] */
struct sockaddr;
RESHA_API const struct sockaddr *resha_addr_sockaddr(const resha_addr *a, size_t *ret_size);

/* An address out of a sockaddr of IPv4, IPv6 or Unix, of `size` bytes as the system said; it need not be aligned. 0;
 * -EINVAL too short (or too long, for Unix); -EAFNOSUPPORT another family. [any-thread] */
RESHA_API int resha_addr_from_sockaddr(const struct sockaddr *sa, size_t size, resha_addr *ret_addr);

/* The addresses of a name (or literal) for TCP, in the order to try them (RFC 6724, by getaddrinfo), at most max of
 * them; *ret_n at least 1. `port` is a number or a service name; NULL: 0. Link-local ones have their zone. 0; -ENOENT
 * no such name, -EAGAIN the name server does not answer for now, -EINVAL bad service or empty name, -EMSGSIZE name
 * over 253 bytes, -ECANCELED, -ENOMEM. [task] cancellation point
 *
 * Look-ups run on threads of the process, at most 4 at once; the others wait for their turn. Equal ones that run at the
 * same time are one, and an answer is kept for a short while, see below. A cancelled caller leaves at once: the look-up
 * owns copies of its arguments and its result is dropped. One that all its callers have left does not count among the
 * 4, though the system may work on it for long (30 s are not rare): there may be up to 16 threads in all. When all of
 * them hang, look-ups wait, and only cancels and timeouts end them: one that is given up before it has begun is
 * reported (RESHA_REPORT_SHORTAGE). Names that are looked up wait for nobody else's work: pools have threads of their
 * own. */
RESHA_API RESHA_MUST int resha_resolve(const char *host, const char *port, resha_addr *ret_addrs, size_t max,
                                       size_t *ret_n);

/* For how long the process keeps an answer to resha_resolve(), also that there is no such name, but no other failure:
 * at first 1 s; 0: not at all. At most 256 answers, and none once no loop runs that has asked. The simulated world
 * keeps none. 0; -EINVAL less than 0. [any-thread] */
RESHA_API int resha_resolve_keep(resha_duration time);

/* Forgets the answers that are kept; look-ups that have begun by now are not shared with later callers. As when the
 * network is another one. [any-thread] */
RESHA_API void resha_resolve_forget(void);

RESHA_END_DECLS
#endif
