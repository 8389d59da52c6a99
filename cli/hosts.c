/* SPDX-License-Identifier: MIT */

/* What holds for one host: a hash table with open addressing that doubles; hosts are never taken out, there are few of
 * them beside URLs.
 *
 * Rates are kept to where a request goes out, not where it is planned: `open_at` is the earliest moment for the next
 * one, by the moment of the last. Who comes too early is given a turn, one interval behind the turn before, so that
 * those who wait come back one by one; if they come back late and in a crowd, `open_at` holds and they get new
 * turns. */

#include "hosts.h"

#include <string.h>

#include <resha/alloc.h>

#include "options.h"
#include "text.h"
#include "url.h"

struct host {
        char *key;
        resha_instant open_at; /* nobody before: by the rates, and by a pause */
        resha_instant turn;    /* the next one to give away */
};

struct hosts {
        resha_duration interval; /* between two requests, by the slowest of the rates; 0: none */
        bool paused;             /* somebody has been, since the start */
        struct host **slots;
        size_t size, used; /* size: a power of two, or 0 */
};

int hosts_new(const struct rate *rates, size_t n, struct hosts **ret_hosts)
{
        struct hosts *h = resha_calloc(1, sizeof *h);
        if (!h)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                int64_t ns = (rates[i].per.ns + rates[i].count - 1) / rates[i].count;
                h->interval.ns = ns > h->interval.ns ? ns : h->interval.ns;
        }
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

static struct host *host_new(const char *key)
{
        struct host *host = resha_malloc(sizeof *host);
        if (!host)
                return NULL;
        *host = (struct host){ .key = resha_strdup(key), .open_at = { INT64_MIN }, .turn = { INT64_MIN } };
        if (host->key)
                return host;
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
        if (!*slot && (*slot = host_new(text_string(&key))))
                h->used++;
        return *slot;
}

int hosts_ask(struct hosts *h, const char *url, bool waited, resha_instant *ret_turn)
{
        if (!h->interval.ns && !h->paused)
                return 1;
        struct host *host = find(h, url);
        resha_instant now = resha_now();
        if (!host)
                return -ENOMEM;
        if (host->open_at.ns <= now.ns && (waited || host->turn.ns <= now.ns)) {
                host->open_at = resha_after(h->interval);
                if (host->turn.ns < host->open_at.ns)
                        host->turn = host->open_at;
                return 1;
        }
        *ret_turn = host->turn.ns > host->open_at.ns ? host->turn : host->open_at;
        host->turn.ns = ret_turn->ns + h->interval.ns;
        return 0;
}

void hosts_pause(struct hosts *h, const char *url, resha_instant t)
{
        struct host *host = find(h, url);
        if (!host || t.ns <= host->open_at.ns)
                return;
        host->open_at = t;
        h->paused = true;
}
