/* SPDX-License-Identifier: MIT */
/* Texts of return addresses, each looked up once: a hundred thousand tasks wait in a few places. A table that is at
 * most half full, of entries that stay where they are. */

#include <string.h>
#include <unwind.h>

#include "base/alloc.h"
#include "core/trace.h"
#include "inspect/stacks.h"
#include "sys/symbol.h"

enum { FIRST = 64, INSIDE = 8 /* frames that belong to a wait, at most */ };

struct entry {
        const void *address;
        bool inside, shown;
        char text[];
};

struct rs_texts {
        struct entry **entries; /* at hash of the address, or behind */
        size_t size, used;
};

struct rs_texts *rs_texts_new(void)
{
        struct rs_texts *t = resha_calloc(1, sizeof *t);

        if (t)
                t->entries = resha_calloc(FIRST, sizeof *t->entries);
        if (t && !t->entries) {
                resha_free(t);
                return NULL;
        }
        if (t)
                t->size = FIRST;
        return t;
}

void rs_texts_free(struct rs_texts *t)
{
        if (!t)
                return;
        for (size_t i = 0; i < t->size; i++)
                resha_free(t->entries[i]);
        resha_free(t->entries);
        resha_free(t);
}

/* The place of the address: where it is, or would be. size: a power of two. */
static struct entry **find(struct entry **entries, size_t size, const void *address)
{
        size_t i = (size_t)((uintptr_t)address * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (size - 1);

        while (entries[i] && entries[i]->address != address)
                i = (i + 1) & (size - 1);
        return &entries[i];
}

static bool grow(struct rs_texts *t)
{
        struct entry **entries = resha_calloc(t->size * 2, sizeof *entries);

        if (!entries)
                return false;
        for (size_t i = 0; i < t->size; i++)
                if (t->entries[i])
                        *find(entries, t->size * 2, t->entries[i]->address) = t->entries[i];
        resha_free(t->entries);
        t->entries = entries;
        t->size *= 2;
        return true;
}

static struct entry *look_up(const void *address)
{
        char text[RS_TEXTS_MAX] = "";
        bool shown = rs_symbol_format(address, text, sizeof text);
        size_t n = strlen(text) + 1;
        struct entry *e = resha_malloc(sizeof *e + n);

        if (!e)
                return NULL;
        /* It may lie behind the last instruction of its function. */
        const void *start = _Unwind_FindEnclosingFunction((char *)(uintptr_t)address - 1);
        *e = (struct entry){ .address = address, .inside = rs_trace_inside((uintptr_t)start), .shown = shown };
        memcpy(e->text, text, n);
        return e;
}

static const struct entry *get(struct rs_texts *t, const void *address)
{
        if (t->used * 2 >= t->size && !grow(t))
                return NULL;
        struct entry **at = find(t->entries, t->size, address);
        if (!*at) {
                *at = look_up(address);
                t->used += *at != NULL;
        }
        return *at;
}

const char *rs_texts_get(struct rs_texts *t, const void *return_address)
{
        const struct entry *e = get(t, return_address);

        return e && e->shown ? e->text : NULL;
}

size_t rs_texts_stack(struct rs_texts *t, const void *const *addresses, size_t n, const char **ret_texts)
{
        size_t shown = 0, from = 0;

        for (size_t i = 0; i < n && i < from + INSIDE; i++) {
                const struct entry *e = get(t, addresses[i]);
                if (e && e->inside)
                        from = i + 1;
        }
        for (size_t i = from; i < n; i++) {
                const char *text = rs_texts_get(t, addresses[i]);
                if (text)
                        ret_texts[shown++] = text;
        }
        return shown;
}
