/* SPDX-License-Identifier: MIT */

/* What holds for one host. A hash table with open addressing that doubles; hosts are never taken out, there are few of
 * them beside URLs. */

#include "hosts.h"

#include <string.h>

#include <resha/alloc.h>

#include "options.h"
#include "text.h"
#include "url.h"

struct host {
        char *key;
        resha_instant not_before;
        resha_limiter limiters[MAX_RATES];
};

struct hosts {
        struct rate rates[MAX_RATES];
        size_t n_rates;
        bool paused; /* somebody has been, since the start */
        struct host **slots;
        size_t size, used; /* size: a power of two, or 0 */
};

int hosts_new(const struct rate *rates, size_t n, struct hosts **ret_hosts)
{
        struct hosts *h = resha_calloc(1, sizeof *h);
        if (!h)
                return -ENOMEM;
        if (n)
                memcpy(h->rates, rates, n * sizeof *rates);
        h->n_rates = n;
        *ret_hosts = h;
        return 0;
}

void hosts_free(struct hosts *h)
{
        if (!h)
                return;
        for (size_t i = 0; i < h->size; i++) {
                if (h->slots[i])
                        resha_free(h->slots[i]->key);
                resha_free(h->slots[i]);
        }
        resha_free(h->slots);
        resha_free(h);
}

void hosts_freep(struct hosts **h)
{
        hosts_free(*h);
        *h = NULL;
}

/* Where key is, or would be. */
static struct host **slot_of(struct host **slots, size_t size, const char *key)
{
        uint64_t hash = UINT64_C(0xcbf29ce484222325);
        for (const char *p = key; *p; p++)
                hash = (hash ^ (unsigned char)*p) * UINT64_C(0x100000001b3);
        size_t i = (size_t)(hash ^ hash >> 32) & (size - 1);
        while (slots[i] && strcmp(slots[i]->key, key) != 0)
                i = (i + 1) & (size - 1);
        return &slots[i];
}

static int grow(struct hosts *h)
{
        size_t size = h->size ? h->size * 2 : 16;
        struct host **slots = resha_calloc(size, sizeof(struct host *));
        if (!slots)
                return -ENOMEM;
        for (size_t i = 0; i < h->size; i++)
                if (h->slots[i])
                        *slot_of(slots, size, h->slots[i]->key) = h->slots[i];
        resha_free(h->slots);
        h->slots = slots;
        h->size = size;
        return 0;
}

static struct host *host_new(const struct hosts *h, const char *key)
{
        struct host *host = resha_calloc(1, sizeof *host);
        if (!host)
                return NULL;
        host->key = resha_strdup(key);
        host->not_before = (resha_instant){ INT64_MIN };
        bool ok = host->key != NULL;
        for (size_t i = 0; i < h->n_rates && ok; i++)
                ok = resha_limiter_init(&host->limiters[i], h->rates[i].count, h->rates[i].per, 1) == 0;
        if (ok)
                return host;
        resha_free(host->key);
        resha_free(host);
        return NULL;
}

static struct host *find(struct hosts *h, const char *url)
{
        TEXT(key);
        url_add_host(&key, url);
        if (key.failed || (h->used * 2 >= h->size && grow(h) < 0))
                return NULL;
        struct host **slot = slot_of(h->slots, h->size, text_string(&key));
        if (!*slot && (*slot = host_new(h, text_string(&key))))
                h->used++;
        return *slot;
}

int hosts_acquire(struct hosts *h, const char *url)
{
        if (!h->n_rates && !h->paused)
                return 0;
        struct host *host = find(h, url);
        if (!host)
                return -ENOMEM;
        int rc = 0;
        for (size_t i = 0; i < h->n_rates && rc >= 0; i++)
                rc = resha_limiter_acquire(&host->limiters[i]);
        while (rc >= 0 && resha_now().ns < host->not_before.ns)
                rc = resha_sleep_until(host->not_before);
        return rc;
}

void hosts_pause(struct hosts *h, const char *url, resha_instant t)
{
        struct host *host = find(h, url);
        if (!host || t.ns <= host->not_before.ns)
                return;
        host->not_before = t;
        h->paused = true;
        for (size_t i = 0; i < h->n_rates; i++)
                resha_limiter_pause_until(&host->limiters[i], t);
}
