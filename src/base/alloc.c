/* SPDX-License-Identifier: MIT */
/* The one place that calls the C library's allocator. While nobody watches, each call costs one predictable branch
 * more. */

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

#include "base/list.h"

static bool watched;
static bool fail_forever;
static int64_t live, countdown, failed;

void rs_alloc_watch(bool on)
{
        watched = on;
}

int64_t rs_alloc_live(void)
{
        return __atomic_load_n(&live, __ATOMIC_RELAXED);
}

void rs_alloc_fail_after(int64_t n, bool forever)
{
        watched = true;
        fail_forever = forever;
        __atomic_store_n(&failed, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&countdown, n, __ATOMIC_RELAXED);
}

int64_t rs_alloc_failed(void)
{
        return __atomic_load_n(&failed, __ATOMIC_RELAXED);
}

int64_t rs_alloc_left(void)
{
        return __atomic_load_n(&countdown, __ATOMIC_RELAXED);
}

static bool must_fail(void)
{
        if (__atomic_load_n(&countdown, __ATOMIC_RELAXED) <= 0)
                return false;
        if (__atomic_sub_fetch(&countdown, 1, __ATOMIC_RELAXED) > 0)
                return false;
        if (fail_forever)
                __atomic_store_n(&countdown, 1, __ATOMIC_RELAXED);
        __atomic_add_fetch(&failed, 1, __ATOMIC_RELAXED);
        return true;
}

static void *counted(void *p)
{
        if (p)
                __atomic_add_fetch(&live, 1, __ATOMIC_RELAXED);
        return p;
}

void *resha_malloc(size_t size)
{
        if (RS_LIKELY(!watched))
                return malloc(size);
        return must_fail() ? NULL : counted(malloc(size));
}

void *resha_calloc(size_t n, size_t size)
{
        if (RS_LIKELY(!watched))
                return calloc(n, size);
        return must_fail() ? NULL : counted(calloc(n, size));
}

void *resha_realloc(void *p, size_t size)
{
        if (RS_LIKELY(!watched))
                return realloc(p, size);
        if (must_fail())
                return NULL;
        return p ? realloc(p, size) : counted(realloc(p, size));
}

char *resha_strdup(const char *s)
{
        size_t size = strlen(s) + 1;
        char *copy = resha_malloc(size);

        return copy ? memcpy(copy, s, size) : NULL;
}

void resha_free(void *p)
{
        if (RS_UNLIKELY(watched) && p)
                __atomic_sub_fetch(&live, 1, __ATOMIC_RELAXED);
        free(p);
}
