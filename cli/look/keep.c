/* SPDX-License-Identifier: MIT */

/* Two hash tables with open addressing, doubled when they are half full. Texts lie in large chunks: 100,000 tasks have
 * a handful of names. */

#include "keep.h"

#include <string.h>

#include <resha/alloc.h>

enum { CHUNK = 64 << 10, FIRST_SLOTS = 256 };

struct keep_chunk {
        struct keep_chunk *next;
        size_t used, size;
        _Alignas(8) char data[];
};

struct keep_text {
        uint64_t hash;
        char text[];
};

uint64_t keep_mix(uint64_t x)
{
        x = (x ^ x >> 32) * UINT64_C(0x9e3779b97f4a7c15);
        return x ^ x >> 29;
}

static uint64_t hash_of(const char *s, size_t size)
{
        uint64_t h = keep_mix(size + 1), word;
        for (; size >= 8; size -= 8, s += 8) {
                memcpy(&word, s, 8);
                h = keep_mix(h ^ word);
        }
        word = 0;
        memcpy(&word, s, size);
        return keep_mix(h ^ word);
}

void keep_done(struct keep *k)
{
        for (struct keep_chunk *c = k->chunks, *next; c; c = next) {
                next = c->next;
                resha_free(c);
        }
        resha_free(k->slots);
        *k = (struct keep){ .chunks = NULL };
}

static void *take(struct keep *k, size_t size)
{
        struct keep_chunk *c = k->chunks;
        size = (size + 7) & ~(size_t)7;
        if (!c || c->size - c->used < size) {
                size_t room = size > CHUNK ? size : CHUNK;
                c = resha_malloc(sizeof *c + room);
                if (!c)
                        return NULL;
                *c = (struct keep_chunk){ .next = k->chunks, .size = room };
                k->chunks = c;
                k->bytes += room;
        }
        void *at = c->data + c->used;
        c->used += size;
        return at;
}

static int grow(struct keep *k)
{
        size_t n = k->n_slots ? 2 * k->n_slots : FIRST_SLOTS;
        struct keep_text **slots = resha_calloc(n, sizeof(struct keep_text *));
        if (!slots)
                return -ENOMEM;
        for (size_t i = 0; i < k->n_slots; i++) {
                if (!k->slots[i])
                        continue;
                size_t at = k->slots[i]->hash & (n - 1);
                while (slots[at])
                        at = (at + 1) & (n - 1);
                slots[at] = k->slots[i];
        }
        resha_free(k->slots);
        k->slots = slots;
        k->n_slots = n;
        return 0;
}

const char *keep_text(struct keep *k, const char *s)
{
        size_t size = strlen(s);
        uint64_t h = hash_of(s, size);
        if (!size)
                return "";
        if (2 * k->n >= k->n_slots && grow(k) < 0)
                return NULL;
        size_t at = h & (k->n_slots - 1);
        for (; k->slots[at]; at = (at + 1) & (k->n_slots - 1))
                if (k->slots[at]->hash == h && strcmp(k->slots[at]->text, s) == 0)
                        return k->slots[at]->text;
        struct keep_text *text = take(k, sizeof *text + size + 1);
        if (!text)
                return NULL;
        text->hash = h;
        memcpy(text->text, s, size + 1);
        k->slots[at] = text;
        k->n++;
        return text->text;
}

void keep_index_done(struct keep_index *x)
{
        resha_free(x->slots);
        *x = (struct keep_index){ .slots = NULL };
}

/* Where a name is, or the free place where it belongs. */
static struct keep_place *seek(const struct keep_index *x, uint32_t loop, uint64_t number)
{
        size_t at = keep_mix(number * 31 + loop) & (x->n_slots - 1);
        while (x->slots[at].value && (x->slots[at].number != number || x->slots[at].loop != loop))
                at = (at + 1) & (x->n_slots - 1);
        return &x->slots[at];
}

int keep_index_set(struct keep_index *x, uint32_t loop, uint64_t number, uint32_t value)
{
        if (2 * x->n >= x->n_slots) {
                struct keep_index more = { .n = x->n, .n_slots = x->n_slots ? 2 * x->n_slots : FIRST_SLOTS };
                more.slots = resha_calloc(more.n_slots, sizeof *more.slots);
                if (!more.slots)
                        return -ENOMEM;
                for (size_t i = 0; i < x->n_slots; i++)
                        if (x->slots[i].value)
                                *seek(&more, x->slots[i].loop, x->slots[i].number) = x->slots[i];
                resha_free(x->slots);
                *x = more;
        }
        struct keep_place *p = seek(x, loop, number);
        x->n += !p->value;
        *p = (struct keep_place){ .number = number, .loop = loop, .value = value + 1 };
        return 0;
}

int64_t keep_index_find(const struct keep_index *x, uint32_t loop, uint64_t number)
{
        return x->n ? (int64_t)seek(x, loop, number)->value - 1 : -1;
}
