/* SPDX-License-Identifier: MIT */
#ifndef CLI_TEXT_H
#define CLI_TEXT_H

/* Text that grows. A failed allocation is remembered in `failed` and makes later additions do nothing, so that a caller
 * checks once, at the end. `data` ends with a 0 that `len` does not count; it may be NULL while nothing was added. */

#include <stdarg.h>

#include <resha/base.h>
#include <resha/time.h>

struct text {
        char *data;
        size_t len, cap;
        bool failed;
};

#define TEXT(t) struct text t RESHA_CLEANUP(text_done) = { .data = NULL }

void text_done(struct text *t);

/* Empties it and keeps the memory. */
void text_clear(struct text *t);

void text_add(struct text *t, const void *data, size_t size);
void text_puts(struct text *t, const char *s);
void text_putc(struct text *t, char c);
void text_printf(struct text *t, const char *format, ...) RESHA_PRINTF(2, 3);

/* All of it. 0, -ENOMEM for one that has failed, or what write(2) fails with, negative. */
int text_write(const struct text *t, int fd);

/* "" where data is NULL. */
const char *text_string(const struct text *t);

/* 50000 as "50,000". */
void text_add_grouped(struct text *t, uint64_t n);

/* "0.21 s", "1.2 s", "8 m 21 s", "3 h 5 m". */
void text_add_duration(struct text *t, resha_duration d);

/* "512 B", "12.3 kB", "11.8 MB". */
void text_add_size(struct text *t, uint64_t bytes);

#endif
