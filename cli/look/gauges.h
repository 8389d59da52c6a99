/* SPDX-License-Identifier: MIT */
#ifndef CLI_GAUGES_H
#define CLI_GAUGES_H

/* What `resha top` wants of the figures for monitoring: per loop, and what they came to between two looks. */

#include "door.h"

enum { GAUGE_LOOPS = 64, GAUGE_BUCKETS = 32 };

struct gauge {
        uint32_t loop;
        double seconds, idle, lag_sum, lag_count;          /* since the loop began */
        double bound[GAUGE_BUCKETS], below[GAUGE_BUCKETS]; /* of lags: how many were at most so long */
        unsigned n_buckets;
};

struct gauges {
        struct gauge loop[GAUGE_LOOPS];
        size_t n;
};

/* Takes in a line of the text. */
void gauges_add(struct gauges *g, const char *line);

const struct gauge *gauges_find(const struct gauges *g, uint32_t loop);

/* Share of the time between two looks in which the loop had something to do, 0 to 1; below 0: unknown. */
double gauge_busy(const struct gauge *before, const struct gauge *now);

/* The bound of the longest lag between them, in seconds; INFINITY: beyond all; below 0: unknown. */
double gauge_lag(const struct gauge *before, const struct gauge *now);

#endif
