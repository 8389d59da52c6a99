/* SPDX-License-Identifier: MIT */
#ifndef RS_PRINT_H
#define RS_PRINT_H

/* What the library says on stderr, which perhaps nobody reads: see print.c. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <resha/base.h>

/* How long a text waits for a reader. */
enum { RS_PRINT_PATIENCE_MS = 2000 };

/* One text of several calls, of one thread at a time. At the end it is written, or dropped and counted. */
void rs_print_begin(void);
void rs_print(const char *format, ...) RESHA_PRINTF(1, 2);
void rs_print_end(void);

/* For texts that are written otherwise. begin: says how many were dropped; false: nobody reads now, so this one would
 * be, too, and is counted. dropped: it was, or its end. */
bool rs_print_try(void);
void rs_print_dropped(void);

/* write(2) of some of the bytes to a descriptor that poll(2) has just called writable. It does not wait, even if
 * others have written meanwhile, where the kernel can promise that (pipes since Linux 6.4, sockets), -EAGAIN then. */
ssize_t rs_print_ready(int fd, const void *bytes, size_t n);

void rs_print_forked(void); /* in a forked child */

#endif
