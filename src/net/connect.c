/* SPDX-License-Identifier: MIT */
/* Connecting to a name: Happy Eyeballs (RFC 8305) as one race. The addresses come in the order of the look-up, with the
 * families taking turns; each attempt has 250 ms before the next one starts beside it. */

#include <errno.h>
#include <stdio.h>

#include "base/addr.h"
#include "net/stream.h"

enum {
        ADDRESSES = 16,
        STAGGER_MS = 250,
};

struct attempt {
        resha_addr addr;
        resha_stream *stream;
};

static int attempt(void *arg)
{
        struct attempt *a = arg;

        return resha_tcp_connect_addr(&a->addr, &a->stream);
}

static void drop(void *item)
{
        struct attempt *a = item;

        resha_stream_closep(&a->stream);
}

static int family(const resha_addr *a)
{
        return rs_addr_view(a)->sockaddr.ss_family;
}

/* The first address, then the first of another family, then the next of the first one, ... */
static void take_turns(const resha_addr *from, size_t n, struct attempt *to)
{
        size_t one = 0, other = 0, made = 0;

        while (made < n) {
                while (one < n && family(&from[one]) != family(&from[0]))
                        one++;
                if (one < n)
                        to[made++] = (struct attempt){ .addr = from[one++] };
                while (other < n && family(&from[other]) == family(&from[0]))
                        other++;
                if (other < n)
                        to[made++] = (struct attempt){ .addr = from[other++] };
        }
}

int resha_tcp_connect(const char *host, uint16_t port, resha_stream **ret_stream)
{
        struct attempt attempts[ADDRESSES];
        resha_addr addrs[ADDRESSES];
        size_t n, winner = 0;
        char service[8];

        snprintf(service, sizeof service, "%u", (unsigned)port);
        int rc = resha_resolve(host, service, addrs, ADDRESSES, &n);
        if (rc < 0)
                return rc;
        if (n == 1)
                return resha_tcp_connect_addr(&addrs[0], ret_stream);
        take_turns(addrs, n, attempts);
        rc = resha_race_at(attempt, attempts, n, sizeof attempts[0],
                           &(resha_race_opts){ .stagger = RESHA_MS(STAGGER_MS), .drop = drop }, &winner, "connect",
                           NULL);
        if (rc >= 0) {
                *ret_stream = attempts[winner].stream;
                return 0;
        }
        if (rc == -ECANCELED)
                return rc;
        return resha_fail_at(rc, NULL, "connect to %s port %u: %s (%zu addresses tried)", host, (unsigned)port,
                             resha_strerror(rc), n);
}
