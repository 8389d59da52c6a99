/* SPDX-License-Identifier: MIT */
#ifndef RS_SANITIZE_H
#define RS_SANITIZE_H

/* Tells AddressSanitizer, ThreadSanitizer and Valgrind of stacks and switches. Empty in other builds, but for
 * Valgrind's few no-ops where a stack is made. */

#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__)
#define RS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RS_ASAN 1
#endif
#endif

#if defined(__SANITIZE_THREAD__)
#define RS_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RS_TSAN 1
#endif
#endif

#ifdef RS_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
static inline void rs_asan_leave(void **save_fake, const void *bottom, size_t size)
{
        __sanitizer_start_switch_fiber(save_fake, bottom, size);
}
static inline void rs_asan_arrive(void *fake)
{
        __sanitizer_finish_switch_fiber(fake, NULL, NULL);
}
static inline void rs_asan_clean(void *bottom, size_t size)
{
        __asan_unpoison_memory_region(bottom, size);
}
#else
static inline void rs_asan_leave(void **save_fake, const void *bottom, size_t size)
{
        (void)save_fake, (void)bottom, (void)size;
}
static inline void rs_asan_arrive(void *fake)
{
        (void)fake;
}
static inline void rs_asan_clean(void *bottom, size_t size)
{
        (void)bottom, (void)size;
}
#endif

#ifdef RS_TSAN
#include <sanitizer/tsan_interface.h>
static inline void *rs_tsan_current(void)
{
        return __tsan_get_current_fiber();
}
static inline void *rs_tsan_new(void)
{
        return __tsan_create_fiber(0);
}
static inline void rs_tsan_free(void *fiber)
{
        if (fiber)
                __tsan_destroy_fiber(fiber);
}
#define RS_TSAN_SWITCH(fiber) __tsan_switch_to_fiber((fiber), 0)
/* What was done before a give, on any thread, is before what follows a take. For memory that the kernel gives again at
 * an address that it has taken back, by system calls that TSan does not see. */
static inline void rs_tsan_give(void *what)
{
        __tsan_release(what);
}
static inline void rs_tsan_take(void *what)
{
        __tsan_acquire(what);
}
#else
static inline void *rs_tsan_current(void)
{
        return NULL;
}
static inline void *rs_tsan_new(void)
{
        return NULL;
}
static inline void rs_tsan_free(void *fiber)
{
        (void)fiber;
}
#define RS_TSAN_SWITCH(fiber) ((void)(fiber))
static inline void rs_tsan_give(void *what)
{
        (void)what;
}
static inline void rs_tsan_take(void *what)
{
        (void)what;
}
#endif

#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/memcheck.h>
#include <valgrind/valgrind.h>
#else
#define VALGRIND_MAKE_MEM_DEFINED(p, size) ((void)(p), (void)(size))
#define VALGRIND_STACK_REGISTER(start, end) ((void)(start), (void)(end), 0u)
#define VALGRIND_STACK_DEREGISTER(id) ((void)(id))
#define RUNNING_ON_VALGRIND 0
#endif

/* The kernel has written there without a system call that Valgrind would have seen. */
static inline void rs_memory_written(void *p, size_t size)
{
        (void)VALGRIND_MAKE_MEM_DEFINED(p, size);
}

#endif
