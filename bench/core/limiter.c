/* SPDX-License-Identifier: MIT */
/* What does a start cost that the limiter allows at once?
 *
 *     core-limiter [RATES] [STARTS]: with so many rates, 1 to 4 */

#include <resha/resha.h>

#include "lib/bench.h"

struct limits {
        uint64_t rates, starts;
};

static int starts(void *arg, uint64_t n)
{
        const struct limits *limits = arg;
        resha_limiter limiter;
        resha_rate rates[RESHA_RATES_MAX];

        /* A start each nanosecond: none has to wait. `per` is longer than any pause between two of them: one that was
         * not took another way, by how fast the machine was, and that way was counted. */
        for (size_t i = 0; i < RESHA_RATES_MAX; i++)
                rates[i] = (resha_rate){ .count = 1000000, .per = RESHA_MS(1), .burst = 1000000 };
        int rc = resha_limiter_init_rates(&limiter, rates, limits->rates);
        for (uint64_t i = 0; i < n && rc == 0; i++)
                rc = resha_limiter_try_acquire(&limiter);
        return rc;
}

static int program(void *arg)
{
        struct limits *limits = arg;

        return bench_measure(starts, limits, limits->starts);
}

int main(int argc, char **argv)
{
        struct limits limits = { bench_argument(argc, argv, 1, 1), bench_argument(argc, argv, 2, 2000000) };

        return resha_main(program, &limits);
}
