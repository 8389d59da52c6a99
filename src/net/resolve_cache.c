/* SPDX-License-Identifier: MIT */
/* Answers of look-ups that are kept for a short while, so that a thousand connections to a name that begin within a
 * second ask once. How long a name server lets an answer live, getaddrinfo() does not say; so it is a second, which
 * nobody notices.
 *
 * One list, the oldest first; what is too old is dropped from its head. It is searched from its head, by a hash of the
 * question: 256 at most, which costs less than the system call that it saves.
 *
 * All under the lock of look-ups (lookup.c), which also sees to it that nothing is kept when no loop runs that asks:
 * the memory would be nobody's. */

#include "net/resolve_cache.h"

#include <netdb.h>
#include <string.h>

#include <resha/alloc.h>

#include "base/list.h"

struct kept {
        struct rs_node node;
        int64_t since;
        uint32_t hash;
        int eai;
        const char *service; /* behind the addresses, as host */
        const char *host;
        size_t n;
        resha_addr addrs[];
};

static const int64_t KEEP_DEFAULT_NS = 1000000000;

static struct rs_list all; /* of kept.node */
static size_t count;
static int64_t keep_ns = KEEP_DEFAULT_NS;

/* Names are equal whatever the case of their letters. */
static uint32_t hash_of(const char *host, const char *service)
{
        uint32_t h = 2166136261u; /* FNV-1a */

        for (; *host; host++)
                h = (h ^ (*host >= 'A' && *host <= 'Z' ? (unsigned char)(*host | 0x20) : (unsigned char)*host)) *
                    16777619u;
        for (; *service; service++)
                h = (h ^ (unsigned char)*service) * 16777619u;
        return h;
}

static void drop(struct kept *k)
{
        rs_list_remove(&all, &k->node);
        count--;
        resha_free(k);
}

static struct kept *oldest(void)
{
        return all.first ? RS_CONTAINER(all.first, struct kept, node) : NULL;
}

/* A loop's clock may be a little behind that of the thread which brought the answer. */
static void drop_old(int64_t now)
{
        while (all.first && now - oldest()->since >= keep_ns)
                drop(oldest());
}

static struct kept *find(const char *host, const char *service)
{
        uint32_t hash = hash_of(host, service);

        for (struct rs_node *n = all.first; n; n = n->next) {
                struct kept *k = RS_CONTAINER(n, struct kept, node);
                if (k->hash == hash && strcasecmp(k->host, host) == 0 && strcmp(k->service, service) == 0)
                        return k;
        }
        return NULL;
}

void rs_cache_keep(int64_t ns)
{
        keep_ns = ns;
        if (ns == 0)
                rs_cache_clear();
}

bool rs_cache_find(const char *host, const char *service, int64_t now, struct rs_answer *ret)
{
        drop_old(now);
        const struct kept *k = find(host, service);
        if (!k)
                return false;
        ret->eai = k->eai;
        ret->error = 0;
        ret->n = k->n < ret->max ? k->n : ret->max;
        if (ret->n)
                memcpy(ret->addrs, k->addrs, ret->n * sizeof *ret->addrs);
        return true;
}

/* Of what may be otherwise at the next moment nothing is kept. */
static bool lasts(int eai)
{
        switch (eai) {
        case 0:
        case EAI_NONAME:
#ifdef EAI_NODATA
        case EAI_NODATA:
        case EAI_ADDRFAMILY:
#endif
                return true;
        default: return false;
        }
}

void rs_cache_add(const char *host, const char *service, int64_t now, const struct rs_answer *a)
{
        size_t host_size = strlen(host) + 1, service_size = strlen(service) + 1, n = a->eai ? 0 : a->n;
        struct kept *k = find(host, service);

        if (k)
                drop(k);
        drop_old(now);
        if (keep_ns == 0 || !lasts(a->eai))
                return;
        k = resha_malloc(sizeof *k + n * sizeof k->addrs[0] + host_size + service_size);
        if (!k)
                return;
        char *text = (char *)&k->addrs[n];
        *k = (struct kept){ .since = now, .hash = hash_of(host, service), .eai = a->eai, .n = n };
        if (n)
                memcpy(k->addrs, a->addrs, n * sizeof k->addrs[0]);
        k->host = memcpy(text, host, host_size);
        k->service = memcpy(text + host_size, service, service_size);
        if (count == RS_CACHE_MAX)
                drop(oldest());
        rs_list_push(&all, &k->node);
        count++;
}

void rs_cache_clear(void)
{
        while (all.first)
                drop(oldest());
}

void rs_cache_forked(void)
{
        all = (struct rs_list){ 0 };
        count = 0;
}
