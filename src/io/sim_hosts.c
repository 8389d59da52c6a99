/* SPDX-License-Identifier: MIT */
/* The names of hosts that a simulated world knows. localhost is there from the start; all else a test says. Look-ups
 * themselves, and the time that they take, are net's: this is a table. */

#include "io/sim_hosts.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include <netinet/in.h>

#include <resha/alloc.h>

#include "base/addr.h"
#include "io/sim_addr.h"
#include "io/sim_world.h"

struct sim_host {
        struct rs_node node; /* in sim.hosts */
        size_t n;            /* 0: there is no such name */
        char *host;          /* behind the addresses */
        resha_addr addrs[];
};

static struct sim_host *find(const struct sim *s, const char *host)
{
        for (struct rs_node *n = s->hosts.first; n; n = n->next) {
                struct sim_host *name = RS_CONTAINER(n, struct sim_host, node);
                if (strcasecmp(name->host, host) == 0)
                        return name;
        }
        return NULL;
}

static void forget(struct sim *s, struct sim_host *name)
{
        rs_list_remove(&s->hosts, &name->node);
        resha_free(name);
}

int rs_sim_name(struct rs_backend *b, const char *host, const resha_addr *addrs, size_t n)
{
        struct sim *s = sim_world(b);
        size_t size = strlen(host) + 1;
        struct sim_host *old = find(s, host);
        struct sim_host *name = resha_malloc(sizeof *name + n * sizeof addrs[0] + size);

        if (!name)
                return -ENOMEM;
        name->n = n;
        if (n)
                memcpy(name->addrs, addrs, n * sizeof addrs[0]);
        name->host = memcpy(&name->addrs[n], host, size);
        if (old)
                forget(s, old);
        rs_list_push(&s->hosts, &name->node);
        return 0;
}

/* Without ::1, as on a machine where IPv6 is not set up. */
static size_t localhost(resha_addr *ret_addrs)
{
        struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        struct rs_addr a = { .size = sizeof v4 };

        memcpy(&a.sockaddr, &v4, sizeof v4);
        memcpy(&ret_addrs[0], &a, sizeof a);
        return 1;
}

size_t rs_sim_resolve(struct rs_backend *b, const char *host, uint16_t port, resha_addr *ret_addrs, size_t max)
{
        const struct sim_host *name = find(sim_world(b), host);
        size_t n = 0;

        if (name) {
                n = name->n < max ? name->n : max;
                memcpy(ret_addrs, name->addrs, n * sizeof ret_addrs[0]);
        } else if (strcasecmp(host, "localhost") == 0) {
                n = localhost(ret_addrs);
        }
        for (size_t i = 0; i < n; i++)
                sim_addr_set_port(&ret_addrs[i], port);
        return n;
}

void sim_hosts_done(struct sim *s)
{
        while (s->hosts.first)
                forget(s, RS_CONTAINER(s->hosts.first, struct sim_host, node));
}
