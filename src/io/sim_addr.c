/* SPDX-License-Identifier: MIT */
/* Addresses of the simulated machine, which has all of them. A resha_addr is a sockaddr and, in its last word, a
 * length; the public functions on it live in a layer above. */

#include "io/sim_addr.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

union address {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
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

static bool is_any(const resha_addr *a)
{
        if (sim_addr_family(a) == AF_INET)
                return look(a)->v4.sin_addr.s_addr == htonl(INADDR_ANY);
        return memcmp(&look(a)->v6.sin6_addr, &in6addr_any, sizeof in6addr_any) == 0;
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
                return sim_addr_family(on) == AF_INET6 && is_any(on);
        return is_any(on) || same_host(on, to);
}

/* Nobody is at the wildcard: who connects to it reaches the loopback address. */
resha_addr sim_addr_reached(const resha_addr *to)
{
        resha_addr a = *to;

        if (!is_any(to))
                return a;
        if (sim_addr_family(to) == AF_INET)
                inside(&a)->v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        else
                inside(&a)->v6.sin6_addr = in6addr_loopback;
        return a;
}
