/* SPDX-License-Identifier: MIT */
#ifndef RESHA_ALLOC_H
#define RESHA_ALLOC_H

/* The allocator of the library and its add-ons: the one place where a test can make memory run out. */

#include <resha/base.h>

RESHA_BEGIN_DECLS

/* As malloc, calloc, realloc, free; NULL when there is none. n * size is checked. [any-thread] */
RESHA_API void *resha_malloc(size_t size);
RESHA_API void *resha_calloc(size_t n, size_t size);
RESHA_API void *resha_realloc(void *p, size_t size);
RESHA_API char *resha_strdup(const char *s);
RESHA_API void resha_free(void *p);

RESHA_END_DECLS
#endif
