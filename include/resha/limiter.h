/* SPDX-License-Identifier: MIT */
#ifndef RESHA_LIMITER_H
#define RESHA_LIMITER_H

/* A rate limiter: at most `count` starts in any window of `per`, first come first served. Not the same as a semaphore,
 * which limits how many run at once.
 *
 *     #include <stdio.h>
 *     #include <resha/resha.h>
 *
 *     static resha_limiter limiter;
 *
 *     static int request(void *arg)
 *     {
 *             int rc = resha_limiter_acquire(&limiter); // in each task, before each request
 *
 *             (void)arg;
 *             return rc;
 *     }
 *
 *     static int program(void *arg)
 *     {
 *             const resha_rate rates[] = { { .count = 10, .per = RESHA_S(1), .burst = 3 },
 *                                          { .count = 20, .per = RESHA_S(60), .burst = 20 } };
 *             int rc = resha_limiter_init_rates(&limiter, rates, 2);
 *             resha_instant start = resha_now();
 *             RESHA_GROUP(g);
 *
 *             (void)arg;
 *             resha_group_begin(&g, NULL);
 *             for (int i = 0; i < 21; i++)
 *                     resha_spawn(&g, request, NULL);
 *             rc = resha_group_end(&g, rc);
 *             printf("%d s\n", (int)(resha_between(start, resha_now()).ns / 1000000000));
 *             return rc;
 *     }
 *
 *     int main(void)
 *     {
 *             return resha_main(program, NULL);
 *     }
 *
 * What is guaranteed. A start is a call that returns 0, at the time of the loop's clock at which it returns. For each
 * rate, and for every window of length `per`, wherever it begins (its end not being in it): no more than `count` starts
 * lie in it. Bursts, pauses and cancels make no exception.
 *
 * Within that, starts come as early as these rules allow. Without a burst they are spaced evenly, per / count apart.
 * With a burst of b, up to b may come at once when there was no start for `per`, or while the starts so far stay below
 * count - b + 1 in each `per`; after an early start the next ones are per / (count - b + 1) apart for one `per`, which
 * pays for it, then per / count again. So who always has work gets `count` in each `per` in the long run. Intervals are
 * rounded up to nanoseconds. (The generic cell rate algorithm of ITU-T I.371, annex A, in the form of a leaky bucket,
 * with a slower leak so that the burst is within the count and not beside it; src/sync/limiter.c has the proof.)
 *
 * Nothing is reserved for those who wait: one that is cancelled gives its turn to those behind it. */

#include <resha/base.h>
#include <resha/time.h>

RESHA_BEGIN_DECLS

enum { RESHA_RATES_MAX = 4 }; /* rates of one limiter */

typedef struct resha_limiter {
        uint64_t _[40]; /* private; nothing to release */
} resha_limiter;

typedef struct resha_rate {
        unsigned count;     /* 1..1000000 starts */
        resha_duration per; /* in each of these: 1 us .. 30 days */
        unsigned burst;     /* so many of them at once after a pause, at most count; 0: 1, spaced evenly */
} resha_rate;

/* With one rate. 0 or -EINVAL. [any-thread] */
RESHA_API int resha_limiter_init(resha_limiter *l, unsigned count, resha_duration per, unsigned burst);

/* With n rates, 1..RESHA_RATES_MAX, all of which hold at once; copied. 0 or -EINVAL. [any-thread] */
RESHA_API int resha_limiter_init_rates(resha_limiter *l, const resha_rate *rates, size_t n);

/* Waits for its turn. 0; -ECANCELED (no start was made); -EINVAL without init. [task] cancellation point */
RESHA_API RESHA_MUST int resha_limiter_acquire(resha_limiter *l);

/* The same if its turn comes by t. -ETIME at once, nothing taken, if it would come later than that: as it looks now,
 * with all those in line before it, all rates and the pause; or once t has passed, if a pause or a busy loop put it
 * off. Looking ahead takes a step of some ten nanoseconds for each rate and each of those in line whose turn is by t.
 * [task] cancellation point */
RESHA_API RESHA_MUST int resha_limiter_acquire_by(resha_limiter *l, resha_instant t);

/* Starts if it need wait neither for its turn nor behind others. 0, -EAGAIN, -EINVAL without init, -EPERM outside a
 * loop. [loop] */
RESHA_API RESHA_MUST int resha_limiter_try_acquire(resha_limiter *l);

/* No turn comes before t (Retry-After), also for those in line; one whose turn has come starts. An earlier t than that
 * of another pause changes nothing. [loop] */
RESHA_API void resha_limiter_pause_until(resha_limiter *l, resha_instant t);

RESHA_END_DECLS
#endif
