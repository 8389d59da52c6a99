/* SPDX-License-Identifier: MIT */
#ifndef RESHA_TIME_H
#define RESHA_TIME_H

/* Time: durations and instants of the monotonic clock, in nanoseconds. Structs, so that resha_sleep(250) does not
 * compile. */

#include <resha/base.h>

RESHA_BEGIN_DECLS

typedef struct resha_duration {
        int64_t ns; /* zero or negative: at once; INT64_MAX: for ever */
} resha_duration;

typedef struct resha_instant {
        int64_t ns; /* of the loop's clock: CLOCK_MONOTONIC, or virtual time in the simulated world; INT64_MAX: never */
} resha_instant;

#define RESHA_NS(x) (RESHA_LITERAL(resha_duration){ (int64_t)(x) })
#define RESHA_US(x) (RESHA_LITERAL(resha_duration){ (int64_t)(INT64_C(1000) * (x)) })
#define RESHA_MS(x) (RESHA_LITERAL(resha_duration){ (int64_t)(INT64_C(1000000) * (x)) })
#define RESHA_S(x) (RESHA_LITERAL(resha_duration){ (int64_t)(INT64_C(1000000000) * (x)) })
#define RESHA_FOREVER (RESHA_LITERAL(resha_duration){ INT64_MAX })
#define RESHA_NEVER (RESHA_LITERAL(resha_instant){ INT64_MAX })

/* Now, on the clock of the running loop; outside a loop CLOCK_MONOTONIC. [any-thread] */
RESHA_API resha_instant resha_now(void);

/* Now plus d, saturating: RESHA_FOREVER gives RESHA_NEVER. [any-thread] */
RESHA_API resha_instant resha_after(resha_duration d);

/* t - from, saturating. [any-thread] */
RESHA_API resha_duration resha_between(resha_instant from, resha_instant t);

/* Waits for d, never less. Zero or negative: lets every task that is ready run once, then goes on.
 * 0, or -ECANCELED. [task] cancellation point */
RESHA_API RESHA_MUST int resha_sleep(resha_duration d);

/* Waits until t. As resha_sleep(). [task] cancellation point */
RESHA_API RESHA_MUST int resha_sleep_until(resha_instant t);

/* A period without drift: the n-th tick is at start + n * period, however long the work between takes. A tick that is
 * missed is skipped, not made up for. On the caller's stack; nothing to release. */
typedef struct resha_ticker {
        resha_instant next; /* private */
        resha_duration period;
        uint64_t _reserved[2];
} resha_ticker;

/* The first tick comes one period from now. period <= 0: resha_ticker_next() gives -EINVAL. [any-thread] */
RESHA_API void resha_ticker_init(resha_ticker *t, resha_duration period);

/* Waits for the next tick. 1, or -ECANCELED, -EINVAL. [task] cancellation point */
RESHA_API RESHA_MUST int resha_ticker_next(resha_ticker *t);

RESHA_END_DECLS
#endif
