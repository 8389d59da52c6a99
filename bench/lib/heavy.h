/* SPDX-License-Identifier: MIT */
#ifndef BENCH_HEAVY_H
#define BENCH_HEAVY_H

/* Work that only computes: four jobs of it, for whoever has a processor. */

#include <stdint.h>

enum { HEAVY_JOBS = 4 };

struct heavy {
        uint64_t steps, result;
};

/* Does the work of a struct heavy; 0. */
int heavy_work(void *job);

/* Sets up all jobs with so many steps each. */
void heavy_begin(struct heavy jobs[static HEAVY_JOBS], uint64_t steps);

/* 0 if all results are right, -1 if not. */
int heavy_check(const struct heavy jobs[static HEAVY_JOBS]);

#endif
