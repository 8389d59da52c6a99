/* SPDX-License-Identifier: MIT */
/* Names: what a question must be, literals (which need no look-up), and how a failure reads. The looking up is
 * lookup.c's; in the simulated world, io/sim_hosts.c's. */

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <resha/addr.h>

#include "core/core.h"
#include "io/sim_hosts.h"
#include "net/addr.h"
#include "net/lookup.h"
#include "os/delay.h"

static int code_of(const struct rs_answer *a)
{
        switch (a->eai) {
        case 0: return 0;
        case EAI_AGAIN: return -EAGAIN;
        case EAI_SERVICE: return -EINVAL;
        case EAI_MEMORY: return -ENOMEM;
        case EAI_SYSTEM: return a->error > 0 ? -a->error : -EIO;
        default: return -ENOENT; /* of no name, no address, a refusal */
        }
}

static int no_answer(int code, const char *host, const char *why)
{
        return resha_fail_at(code, NULL, "look-up of %s: %s", host, why);
}

/* number: the port, if it is one; -1: it is the service. */
static int resolve_real(struct rs_loop *l, const char *host, int number, const char *service, struct rs_answer *a)
{
        int waited = rs_lookup(l, host, number < 0 ? service : "", a);

        if (waited == -ECANCELED)
                return waited;
        if (waited < 0)
                return no_answer(waited, host, resha_strerror(waited));
        int rc = code_of(a);
        if (rc < 0)
                no_answer(rc, host, a->eai == EAI_SYSTEM ? resha_strerror(rc) : gai_strerror(a->eai));
        else
                for (size_t i = 0; number > 0 && i < a->n; i++)
                        resha_addr_set_port(&a->addrs[i], (uint16_t)number);
        return waited == 1 ? (int)rs_complete(l, rc) : rc;
}

static int resolve_simulated(struct rs_loop *l, const char *host, int port, struct rs_answer *a)
{
        int rc = rs_delay(l, "look-up");

        if (rc < 0)
                return rc;
        if (port < 0)
                return no_answer(-EINVAL, host, "the simulated world knows no services");
        a->n = rs_sim_resolve(l->backend, host, (uint16_t)port, a->addrs, a->max);
        if (a->n == 0)
                return no_answer(-ENOENT, host, "the simulated world knows localhost, and what resha_test_name() says");
        return 0;
}

/* The number; -1: a name. -EINVAL. */
static int port_number(const char *port)
{
        size_t digits = strspn(port, "0123456789");

        if (port[digits])
                return strlen(port) <= RS_SERVICE_MAX ? -1 : -EINVAL;
        long n = digits ? strtol(port, NULL, 10) : -1;
        return digits && digits <= RS_SERVICE_MAX && n <= UINT16_MAX ? (int)n : -EINVAL;
}

int resha_resolve(const char *host, const char *port, resha_addr *ret_addrs, size_t max, size_t *ret_n)
{
        struct rs_answer answer = { .addrs = ret_addrs, .max = max };
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (rc < 0)
                return rc;
        if (!host || !*host || !max)
                return resha_fail_at(-EINVAL, NULL, "look-up without a name, or without room for an answer");
        if (strlen(host) > RS_HOST_MAX)
                return resha_fail_at(-EMSGSIZE, NULL, "look-up of a name of %zu bytes; at most %d", strlen(host),
                                     RS_HOST_MAX);
        int number = port_number(port ? port : "0");
        if (number == -EINVAL)
                return no_answer(-EINVAL, host, "bad port or service");
        if (number >= 0 && rs_addr_parse(host, (uint16_t)number, ret_addrs) == 0) {
                *ret_n = 1;
                return rs_complete(l, 0);
        }
        rc = l->simulated ? resolve_simulated(l, host, number, &answer) : resolve_real(l, host, number, port, &answer);
        if (rc >= 0)
                *ret_n = answer.n;
        return rc;
}

int resha_resolve_keep(resha_duration time)
{
        if (time.ns < 0)
                return resha_fail_at(-EINVAL, NULL, "answers of look-ups kept for less than nothing");
        rs_lookup_keep(time.ns);
        return 0;
}

void resha_resolve_forget(void)
{
        rs_lookup_forget();
}
