/* SPDX-License-Identifier: MIT */
#ifndef RS_BASE_ADDR_H
#define RS_BASE_ADDR_H

/* The inside of resha_addr, for backends and for src/net. All zero: no address. */

#include <sys/socket.h>

#include <resha/addr.h>

struct rs_addr {
        struct sockaddr_storage sockaddr;
        uint64_t size; /* of the sockaddr; 0: none */
};

_Static_assert(sizeof(struct rs_addr) == sizeof(resha_addr), "resha_addr holds an rs_addr");
_Static_assert(_Alignof(struct rs_addr) <= _Alignof(resha_addr), "resha_addr is aligned as an rs_addr");

static inline struct rs_addr *rs_addr_of(resha_addr *a)
{
        return (struct rs_addr *)(void *)a;
}

static inline const struct rs_addr *rs_addr_view(const resha_addr *a)
{
        return (const struct rs_addr *)(const void *)a;
}

#endif
