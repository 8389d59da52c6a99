/* SPDX-License-Identifier: MIT */
#ifndef RS_READER_H
#define RS_READER_H

/* How one looks at the memory of a loop. On the loop's own thread that is there, and as it should be: rs_reader_here
 * copies it. From another thread, while the loop runs on, each pointer may lead anywhere: what reads by copies that the
 * kernel makes (inspect/walk.h) says so, and whoever reads bounds all that it follows. The code that looks is the
 * same. */

#include <stdbool.h>
#include <stddef.h>

struct rs_reader {
        bool (*read)(void *to, const void *from, size_t size);       /* false: there is no such memory */
        bool (*text)(const char *from, char *ret_text, size_t size); /* the same; cut at size - 1 bytes */
};

extern const struct rs_reader rs_reader_here;

/* A bool in a copy, where any byte may stand: to load that as a bool is undefined. */
#define RS_READ_BOOL(b) (*(const unsigned char *)&(b) == 1)

#endif
