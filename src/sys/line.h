/* SPDX-License-Identifier: MIT */
#ifndef RS_LINE_H
#define RS_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A file in memory. */
struct rs_image {
        const char *data;
        size_t size;
};

/* "file.c:88" for an address of an ELF file, from its debug information; false: it has none for that. */
bool rs_line_format(const struct rs_image *image, uintptr_t address, char *buf, size_t size);

#endif
