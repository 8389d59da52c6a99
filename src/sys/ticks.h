/* SPDX-License-Identifier: MIT */
#ifndef RS_TICKS_H
#define RS_TICKS_H

/* A counter that is cheaper than the clock, to see that about RS_POLL_INTERVAL has passed. Not a clock. */

#include <stdint.h>

#if defined(__x86_64__)
static inline uint64_t rs_ticks(void)
{
        return __builtin_ia32_rdtsc();
}
/* 25 to 100 us at 1 to 4 GHz. */
static inline uint64_t rs_ticks_poll(void)
{
        return 100000;
}
#elif defined(__aarch64__)
static inline uint64_t rs_ticks(void)
{
        uint64_t t;

        __asm__ volatile("mrs %0, cntvct_el0" : "=r"(t));
        return t;
}
static inline uint64_t rs_ticks_poll(void)
{
        uint64_t hz;

        __asm__("mrs %0, cntfrq_el0" : "=r"(hz));
        return hz / 20000; /* 50 us */
}
#else
#error "resha runs on x86-64 and AArch64"
#endif

#endif
