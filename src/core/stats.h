/* SPDX-License-Identifier: MIT */
#ifndef RS_CORE_STATS_H
#define RS_CORE_STATS_H

/* What a loop counts beside switches and polls. Everything here is changed by its own thread alone. */

#include <stdint.h>

#include <resha/stats.h>

struct rs_loop;

struct rs_counters {
        uint64_t sleeps;      /* of the polls: they waited */
        uint64_t wakes;       /* completions */
        uint64_t timers;      /* that fired */
        uint64_t shown;       /* objects in the list of the loop */
        uint64_t descriptors; /* of those, with one */
        int64_t began;        /* the loop's time */
        /* ns; while it sleeps less the time when it began to, which is later: so it is negative then */
        int64_t slept;
        int64_t lag_sum, lag_most;
        uint64_t lag[RESHA_LAG_BUCKETS];
};

/* Index i of the first 2^(10+i) ns that is not less: of 1,024 ns 0, of 1,025 ns 1. */
static inline unsigned rs_lag_bucket(int64_t ns)
{
        uint64_t below = (uint64_t)(ns - (ns > 0)) >> 10;
        unsigned bits = 63 - (unsigned)__builtin_clzll(below << 1 | 1);

        return bits < RESHA_LAG_BUCKETS ? bits : RESHA_LAG_BUCKETS - 1;
}

/* What became ready has waited for the loop, for that long. */
static inline void rs_lag(struct rs_counters *c, int64_t ns)
{
        c->lag[rs_lag_bucket(ns)]++;
        c->lag_sum += ns;
        if (__builtin_expect(ns > c->lag_most, 0))
                c->lag_most = ns;
}

/* Of a loop, or of a copy of its struct: without what lies elsewhere. */
void rs_stats(const struct rs_loop *l, int64_t now, resha_stats *ret_stats);
/* On its thread: all. */
void rs_stats_here(struct rs_loop *l, resha_stats *ret_stats);

#endif
