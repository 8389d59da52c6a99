/* SPDX-License-Identifier: MIT */
/* The heavy jobs of bench/exec/work.c and of its peer. A job touches its item only when it begins and ends: items that
 * share a cache line must not make threads wait for each other. */

#include "heavy.h"

#include "bench.h"

int heavy_work(void *job)
{
        struct heavy *h = job;
        uint64_t state = 1, sum = 0;

        for (uint64_t i = h->steps; i; i--)
                sum += bench_random(&state);
        h->result = sum;
        return 0;
}

void heavy_begin(struct heavy jobs[static HEAVY_JOBS], uint64_t steps)
{
        for (int i = 0; i < HEAVY_JOBS; i++)
                jobs[i] = (struct heavy){ .steps = steps };
}

int heavy_check(const struct heavy jobs[static HEAVY_JOBS])
{
        for (int i = 0; i < HEAVY_JOBS; i++)
                if (!jobs[i].result || jobs[i].result != jobs[0].result)
                        return -1;
        return 0;
}
