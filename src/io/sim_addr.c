/* SPDX-License-Identifier: MIT */
/* Addresses of the simulated machine, which has all of them. A Unix name is compared byte by byte, as the abstract ones
 * of Linux are; so that "x" and "./x" are two paths here. */

#include "io/sim_addr.h"

#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/addr.h"

enum { HEAD = offsetof(struct sockaddr_un, sun_path) };

union address {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_un un;
};

static union address *inside(resha_addr *a)
{
        return (union address *)(void *)a;
}

static const union address *look(const resha_addr *a)
{
        return (const union address *)(const void *)a;
}

int sim_addr_family(const resha_addr *a)
{
        return look(a)->any.sa_family;
}

resha_addr sim_addr_none(int family)
{
        resha_addr a = { { 0 } };

        inside(&a)->any.sa_family = (sa_family_t)family;
        rs_addr_of(&a)->size = family == AF_INET    ? sizeof(struct sockaddr_in)
                               : family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                                    : (size_t)HEAD;
        return a;
}

uint16_t sim_addr_port(const resha_addr *a)
{
        return ntohs(sim_addr_family(a) == AF_INET ? look(a)->v4.sin_port : look(a)->v6.sin6_port);
}

void sim_addr_set_port(resha_addr *a, uint16_t port)
{
        if (sim_addr_family(a) == AF_INET)
                inside(a)->v4.sin_port = htons(port);
        else
                inside(a)->v6.sin6_port = htons(port);
}

bool sim_addr_is_any(const resha_addr *a)
{
        if (sim_addr_family(a) == AF_INET)
                return look(a)->v4.sin_addr.s_addr == htonl(INADDR_ANY);
        return memcmp(&look(a)->v6.sin6_addr, &in6addr_any, sizeof in6addr_any) == 0;
}

bool sim_addr_is_broadcast(const resha_addr *a)
{
        return sim_addr_family(a) == AF_INET && look(a)->v4.sin_addr.s_addr == htonl(INADDR_BROADCAST);
}

static bool same_host(const resha_addr *a, const resha_addr *b)
{
        if (sim_addr_family(a) == AF_INET)
                return look(a)->v4.sin_addr.s_addr == look(b)->v4.sin_addr.s_addr;
        return memcmp(&look(a)->v6.sin6_addr, &look(b)->v6.sin6_addr, sizeof in6addr_any) == 0;
}

/* The IPv6 wildcard takes IPv4 too, as Linux has it by default. */
bool sim_addr_covers(const resha_addr *on, const resha_addr *to)
{
        if (sim_addr_family(on) != sim_addr_family(to))
                return sim_addr_family(on) == AF_INET6 && sim_addr_is_any(on);
        return sim_addr_is_any(on) || same_host(on, to);
}

/* Nobody is at the wildcard: who connects to it reaches the loopback address. */
resha_addr sim_addr_reached(const resha_addr *to)
{
        if (!sim_addr_is_any(to))
                return *to;
        resha_addr a = sim_addr_loopback(sim_addr_family(to));
        sim_addr_set_port(&a, sim_addr_port(to));
        return a;
}

resha_addr sim_addr_loopback(int family)
{
        resha_addr a = sim_addr_none(family);

        if (family == AF_INET)
                inside(&a)->v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        else
                inside(&a)->v6.sin6_addr = in6addr_loopback;
        return a;
}

/* ---- Unix ---- */

/* A path ends at its zero byte, whether that is counted or not; an abstract name, with its zero byte in front, where
 * the length says. */
static size_t name_size(const resha_addr *a)
{
        size_t size = rs_addr_view(a)->size, most = sizeof look(a)->un.sun_path;

        size = size > HEAD ? size - HEAD : 0;
        size = size < most ? size : most;
        return size > 0 && look(a)->un.sun_path[0] != '\0' ? strnlen(look(a)->un.sun_path, size) : size;
}

bool sim_addr_is_unnamed(const resha_addr *a)
{
        return name_size(a) == 0;
}

bool sim_addr_is_path(const resha_addr *a)
{
        return name_size(a) > 0 && look(a)->un.sun_path[0] != '\0';
}

resha_addr sim_addr_numbered(unsigned n)
{
        resha_addr a = sim_addr_none(AF_UNIX);
        char digits[9];

        snprintf(digits, sizeof digits, "%05x", n);
        memcpy(inside(&a)->un.sun_path + 1, digits, strlen(digits));
        rs_addr_of(&a)->size = HEAD + 1 + strlen(digits);
        return a;
}

bool sim_addr_same(const resha_addr *a, const resha_addr *b)
{
        if (sim_addr_family(a) != sim_addr_family(b))
                return false;
        if (sim_addr_family(a) != AF_UNIX)
                return sim_addr_port(a) == sim_addr_port(b) && same_host(a, b);
        return name_size(a) == name_size(b) && memcmp(look(a)->un.sun_path, look(b)->un.sun_path, name_size(a)) == 0;
}
