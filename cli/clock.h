/* SPDX-License-Identifier: MIT */
#ifndef CLI_CLOCK_H
#define CLI_CLOCK_H

/* Time of day beside the loop's clock: read once, then carried forward by the monotonic clock, so that a step of the
 * system's clock does not make a request end before it began, and a simulated run has simulated dates. */

#include <resha/base.h>
#include <resha/time.h>

struct clock {
        int64_t base_ms;    /* since 1970-01-01 UTC, at ... */
        resha_instant base; /* ... this instant */
        int64_t second;     /* the last one that was formatted, and its text without milliseconds */
        char text[20];
};

enum { CLOCK_TEXT = 25 }; /* "2026-01-31T12:34:56.789Z" and a 0 */

/* unix_ms: what time it is now; negative: the system's. [any-thread] */
void clock_init(struct clock *c, int64_t unix_ms);

/* Milliseconds since 1970-01-01 UTC at t. */
int64_t clock_ms(const struct clock *c, resha_instant t);

/* "2026-01-31T12:34:56.789Z". Cheap for times within one second. */
void clock_format(struct clock *c, resha_instant t, char ret_text[CLOCK_TEXT]);

/* An HTTP date (IMF-fixdate, RFC 850, asctime) as milliseconds since 1970-01-01 UTC: 0, or -EINVAL. */
int clock_parse_http_date(const char *s, int64_t *ret_ms);

#endif
