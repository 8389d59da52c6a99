/* SPDX-License-Identifier: MIT */
#ifndef DGRAM_H
#define DGRAM_H

/* For tests of datagrams: sockets, addresses, a task that receives. */

#include "test.h"

#include <unistd.h>

/* At a free port of a literal address, with other options as they are said (or NULL). */
static inline resha_dgram *dgram_at(const char *host, const resha_dgram_opts *opts, resha_addr *ret_addr)
{
        resha_dgram_opts o = opts ? *opts : (resha_dgram_opts){ .local = NULL };
        resha_addr local;
        resha_dgram *d;

        ASSERT_OK(resha_addr_parse(host, 0, &local));
        o.local = &local;
        ASSERT_OK(resha_dgram_open(&o, &d));
        ASSERT_OK(resha_dgram_addr(d, false, ret_addr));
        return d;
}

/* With a peer. */
static inline resha_dgram *dgram_to(const resha_addr *peer)
{
        resha_dgram *d;

        ASSERT_OK(resha_dgram_open(&(resha_dgram_opts){ .peer = peer }, &d));
        return d;
}

/* An address where nobody receives. */
static inline resha_addr addr_of_nobody(void)
{
        resha_addr a;

        resha_dgram_close(dgram_at("127.0.0.1", NULL, &a));
        return a;
}

static inline const char *addr_text(const resha_addr *a)
{
        static char text[RESHA_ADDR_TEXT_MAX];

        return resha_addr_format(a, text, sizeof text);
}

struct receiver {
        resha_dgram *d;
        char buf[64];
        ssize_t result;
        resha_addr from;
};

static inline int receive(void *arg)
{
        struct receiver *r = arg;

        r->result = resha_dgram_recv(r->d, r->buf, sizeof r->buf, &r->from);
        return 0;
}

static inline resha_addr addr_of_unix(const char *tail)
{
        char name[64];
        resha_addr a;

        snprintf(name, sizeof name, "@resha-test-%d-%s", (int)getpid(), tail);
        ASSERT_OK(resha_addr_unix(name, &a));
        return a;
}

#endif
