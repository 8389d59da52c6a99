/* SPDX-License-Identifier: MIT */
#ifndef RESHA_LIMITER_H
#define RESHA_LIMITER_H

/* A rate limiter: at most `count` starts in any window of `per` (with a burst, up to burst - 1 more), first come first
 * served. Not the same as a semaphore, which limits how many run at once. Each caller reserves the next free instant
 * and sleeps once. */

#include <resha/base.h>
#include <resha/time.h>

RESHA_BEGIN_DECLS

typedef struct resha_limiter {
        uint64_t _[8]; /* private; nothing to release */
} resha_limiter;

/* count in 1..1000000 in each `per` (1 us .. 30 days), spaced evenly, but up to `burst` at once after a pause, at
 * most `count` (0: 1). 0 or -EINVAL. [any-thread] */
RESHA_API int resha_limiter_init(resha_limiter *l, unsigned count, resha_duration per, unsigned burst);

/* Waits for its turn. 0; -ECANCELED (the turn is given back if nobody reserved after it). [task] cancellation point */
RESHA_API RESHA_MUST int resha_limiter_acquire(resha_limiter *l);

/* Nobody starts before t (Retry-After). Those who wait already are not held back again. [loop] */
RESHA_API void resha_limiter_pause_until(resha_limiter *l, resha_instant t);

RESHA_END_DECLS
#endif
