/* SPDX-License-Identifier: MIT */
/* Shared by the programs of bench/core. Times are those of the process, so that what others do on the same core counts
 * less; the wall clock is printed beside them. */

#include "bench.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

uint64_t bench_argument(int argc, char **argv, int index, uint64_t otherwise)
{
        char *end;

        if (index >= argc)
                return otherwise;
        unsigned long long n = strtoull(argv[index], &end, 10);
        if (*end || end == argv[index] || !n) {
                fprintf(stderr, "%s: '%s' is not a positive number\n", argv[0], argv[index]);
                exit(2);
        }
        return n;
}

static int64_t now(clockid_t clock)
{
        struct timespec t;

        clock_gettime(clock, &t);
        return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Of those that have ended and were waited for. */
static int64_t of_children(void)
{
        struct rusage r;

        getrusage(RUSAGE_CHILDREN, &r);
        return 1000 *
               (INT64_C(1000000) * (r.ru_utime.tv_sec + r.ru_stime.tv_sec) + r.ru_utime.tv_usec + r.ru_stime.tv_usec);
}

int bench_measure(bench_work *work, void *arg, uint64_t n)
{
        int rc = work(arg, n / 10);

        if (rc < 0)
                return rc;
        int64_t wall = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID), theirs = of_children();
        rc = work(arg, n);
        theirs = of_children() - theirs;
        cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
        wall = now(CLOCK_MONOTONIC) - wall;
        if (rc < 0)
                return rc;
        printf("{\"operations\": %" PRIu64 ", \"cpu_ns\": %.3f, \"wall_ns\": %.3f", n, (double)cpu / (double)n,
               (double)wall / (double)n);
        if (theirs > 0)
                printf(", \"with_children_ns\": %.3f", (double)(cpu + theirs) / (double)n);
        printf("}\n");
        return 0;
}

uint64_t bench_random(uint64_t *state)
{
        *state ^= *state >> 12;
        *state ^= *state << 25;
        *state ^= *state >> 27;
        return *state * UINT64_C(2685821657736338717);
}
