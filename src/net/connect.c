/* SPDX-License-Identifier: MIT */
/* Connecting to a name: Happy Eyeballs (RFC 8305) as one race. The addresses come in the order of the look-up, with the
 * families taking turns, so that a family which is broken costs one delay and not one for each address; each attempt
 * has 250 ms before the next one starts beside it, or less if one fails. The first connection wins, the other attempts
 * are cancelled and waited for, and a connection that came at the same moment is closed.
 *
 * Of all addresses of the name at most sixteen are tried: those that are left out are the last in the order of turns.
 *
 * A name whose addresses all fail is one error, which tells the cause for each. Its code is that of the first one which
 * this machine has a route to: on a machine without IPv6 that there is none says nothing. */

#include <errno.h>
#include <stdio.h>

#include <resha/alloc.h>

#include "net/addr.h"
#include "net/stream.h"

enum {
        ANSWERS_MAX = 64,
        ATTEMPTS_MAX = 16,
        STAGGER_MS = 250,
};

struct attempt {
        resha_addr addr;
        resha_stream *stream;
        int rc;
};

struct eyeballs {
        resha_addr addrs[ANSWERS_MAX];
        struct attempt attempts[ATTEMPTS_MAX];
        size_t found, n; /* addresses, attempts */
};

static int attempt(void *arg)
{
        struct attempt *a = arg;

        return a->rc = resha_tcp_connect_addr(&a->addr, &a->stream);
}

static void drop(void *item)
{
        struct attempt *a = item;

        resha_stream_closep(&a->stream);
}

/* The next address of the family of the first one, or of another; *at: where to look from. False: there is none. */
static bool next_of(struct eyeballs *e, bool first_family, size_t *at)
{
        int family = resha_addr_family(&e->addrs[0]);

        while (*at < e->found && (resha_addr_family(&e->addrs[*at]) == family) != first_family)
                ++*at;
        if (*at == e->found || e->n == ATTEMPTS_MAX)
                return false;
        e->attempts[e->n++] = (struct attempt){ .addr = e->addrs[(*at)++] };
        return true;
}

/* The first address, then the first of another family, then the next of the first one, ... */
static void take_turns(struct eyeballs *e)
{
        size_t one = 0, other = 0;
        bool more = true;

        e->n = 0;
        while (more) {
                more = next_of(e, true, &one);
                more |= next_of(e, false, &other);
        }
}

/* ---- failures ---- */

static bool has_no_route(int code)
{
        return code == -ENETUNREACH || code == -EHOSTUNREACH || code == -EADDRNOTAVAIL || code == -EAFNOSUPPORT;
}

/* Each address, and its cause unless all have the same. Cut at the end of buf. */
static const char *causes(const struct eyeballs *e, char *buf, size_t size)
{
        char addr[RESHA_ADDR_TEXT_MAX];
        bool same = true;
        size_t used = 0;

        for (size_t i = 1; i < e->n; i++)
                same &= e->attempts[i].rc == e->attempts[0].rc;
        buf[0] = '\0';
        for (size_t i = 0; i < e->n && used < size; i++) {
                const struct attempt *a = &e->attempts[i];
                used += (size_t)snprintf(buf + used, size - used, "%s%s%s%s", i ? ", " : "",
                                         resha_addr_format(&a->addr, addr, sizeof addr), same ? "" : " ",
                                         same ? "" : resha_strerror(a->rc));
        }
        return buf;
}

/* Nobody has won. rc: of the race. */
static int all_failed(const struct eyeballs *e, int rc, const char *host, uint16_t port)
{
        char text[sizeof((resha_error *)0)->text], of[32] = "";
        const struct attempt *chosen = NULL;

        for (size_t i = 0; i < e->n; i++) {
                const struct attempt *a = &e->attempts[i];
                if (a->rc >= 0)
                        return rc; /* the race could not start it, and has said why */
                if (!chosen || (has_no_route(chosen->rc) && !has_no_route(a->rc)))
                        chosen = a;
        }
        if (e->found > e->n)
                snprintf(of, sizeof of, " of %zu", e->found);
        return resha_fail_at(chosen->rc, NULL, "connect to %s port %u: %s (%zu%s address%s: %s)", host, (unsigned)port,
                             resha_strerror(chosen->rc), e->n, of, e->n == 1 ? "" : "es", causes(e, text, sizeof text));
}

/* ---- connecting ---- */

/* To the addresses that were found. The winner; or negative. */
static int race(struct eyeballs *e)
{
        const resha_race_opts opts = { .stagger = RESHA_MS(STAGGER_MS), .drop = drop };
        size_t winner = 0;
        int rc;

        if (e->n == 1)
                return attempt(&e->attempts[0]); /* needs no task of its own */
        rc = resha_race_at(attempt, e->attempts, e->n, sizeof e->attempts[0], &opts, &winner, "connect", NULL);
        return rc < 0 ? rc : (int)winner;
}

static int connect_name(struct eyeballs *e, const char *host, uint16_t port, resha_stream **ret_stream)
{
        char service[8];

        snprintf(service, sizeof service, "%u", (unsigned)port);
        int rc = resha_resolve(host, service, e->addrs, ANSWERS_MAX, &e->found);
        if (rc < 0)
                return rc;
        take_turns(e);
        rc = race(e);
        if (rc == -ECANCELED)
                return rc;
        if (rc < 0)
                return all_failed(e, rc, host, port);
        *ret_stream = e->attempts[rc].stream;
        return 0;
}

int resha_tcp_connect(const char *host, uint16_t port, resha_stream **ret_stream)
{
        resha_addr addr;

        if (host && rs_addr_parse(host, port, &addr) == 0) {
                int direct = resha_tcp_connect_addr(&addr, ret_stream);
                if (direct == 0)
                        RS_OPENED_HERE(&(*ret_stream)->shown);
                return direct;
        }
        /* Not on the stack: three pages of it for each task that connects would stay with it. */
        struct eyeballs *e = resha_malloc(sizeof *e);
        if (!e)
                return -ENOMEM;
        int rc = connect_name(e, host, port, ret_stream);
        if (rc == 0)
                RS_OPENED_HERE(&(*ret_stream)->shown);
        resha_free(e);
        return rc;
}
