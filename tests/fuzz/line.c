/* SPDX-License-Identifier: MIT */
/* Any bytes as a line table, in a file that is well formed otherwise, and any bytes as a file: a text that ends, or
 * none. The first byte says which, the next two are the address. */

#include "fuzz.h"

#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include <resha/alloc.h>

#include "sys/line.h"

enum { LINES = 1, STRINGS, NAMES, SECTIONS };

static const char names[] = "\0.debug_line\0.debug_line_str\0.shstrtab";
static const char strings[] = "folder\0file.c"; /* what a table of version 5 points to */

static void try_image(const char *data, size_t size, uintptr_t address)
{
        const struct rs_image image = { data, size };
        char text[64];

        memset(text, '?', sizeof text);
        if (rs_line_format(&image, address, text, sizeof text) && !memchr(text, '\0', sizeof text))
                abort();
}

static char *put(char *at, const void *from, size_t size)
{
        if (size > 0)
                memcpy(at, from, size);
        return at + size;
}

/* The table last, and the file of just its size, so that a sanitizer sees a look behind it. */
static void try_table(const uint8_t *data, size_t size, uintptr_t address)
{
        size_t begin = sizeof(ElfW(Ehdr)) + SECTIONS * 2 * sizeof(ElfW(Shdr)), at = begin;
        ElfW(Ehdr) head = { .e_shoff = sizeof head, .e_shnum = SECTIONS + 1, .e_shstrndx = NAMES };
        ElfW(Shdr) sections[SECTIONS * 2] = { [LINES] = { .sh_name = 1, .sh_size = size },
                                              [STRINGS] = { .sh_name = 13, .sh_size = sizeof strings },
                                              [NAMES] = { .sh_name = 29, .sh_size = sizeof names } };

        sections[STRINGS].sh_offset = at;
        sections[NAMES].sh_offset = at += sizeof strings;
        sections[LINES].sh_offset = at += sizeof names;
        char *image = resha_malloc(at + size);
        if (!image)
                abort();
        char *end = put(put(image, &head, sizeof head), sections, sizeof sections);
        end = put(put(put(end, strings, sizeof strings), names, sizeof names), data, size);
        try_image(image, (size_t)(end - image), address);
        resha_free(image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        if (size < 3)
                return 0;
        uintptr_t address = data[1] | (uintptr_t)data[2] << 8;
        if (data[0] & 1) {
                try_table(data + 3, size - 3, address);
                return 0;
        }
        char *copy = resha_malloc(size - 3 ? size - 3 : 1);
        if (!copy)
                abort();
        put(copy, data + 3, size - 3);
        try_image(copy, size - 3, address);
        resha_free(copy);
        return 0;
}
