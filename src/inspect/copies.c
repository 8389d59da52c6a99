/* SPDX-License-Identifier: MIT */
/* The reader for the time in which a loop is blocked: the kernel copies, and says where there is nothing.
 *
 * Each copy is a system call, and a hundred thousand tasks have few names, places, groups and queues: what was read is
 * kept, and read once. For the time of some milliseconds only: the loop may go on at any moment. */

#include <string.h>

#include "inspect/walk.h"
#include "sys/observe.h"

static _Thread_local struct rs_copies *copies;

void rs_copies_use(struct rs_copies *c)
{
        copies = c;
        for (size_t i = 0; c && i < RS_COPIES; i++)
                c->copy[i].from = NULL;
}

static bool fetch(void *to, const void *from, size_t size, bool text)
{
        if (!text)
                return rs_observe_read(to, from, size);
        bool there = rs_observe_text(from, to, size);
        ((char *)to)[size - 1] = '\0';
        return there;
}

static bool read_kept(void *to, const void *from, size_t size, bool text)
{
        uint64_t hash = ((uintptr_t)from + size) * UINT64_C(0x9e3779b97f4a7c15);

        if (!from)
                return false;
        if (!copies || size > RS_COPY_MAX)
                return fetch(to, from, size, text);
        typeof(copies->copy[0]) *c = &copies->copy[hash >> 40 & (RS_COPIES - 1)];
        if (c->from != from || c->size != size || c->text != text) {
                c->from = NULL;
                if (!fetch(c->bytes, from, size, text))
                        return false;
                c->from = from;
                c->size = size;
                c->text = text;
        }
        memcpy(to, c->bytes, size);
        return true;
}

static bool read_copy(void *to, const void *from, size_t size)
{
        return read_kept(to, from, size, false);
}

static bool text_copy(const char *from, char *ret_text, size_t size)
{
        return read_kept(ret_text, from, size, true);
}

const struct rs_reader rs_reader_copies = { read_copy, text_copy };
