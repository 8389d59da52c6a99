/* SPDX-License-Identifier: MIT */
/* The same jobs as bench/exec/work.c by two bare threads, or one after the other.
 *
 *     peer-work 1|2 [STEPS] */

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "lib/bench.h"
#include "lib/heavy.h"

enum { THREADS = 2 };

struct work {
        uint64_t threads;
        struct heavy jobs[HEAVY_JOBS];
};

static void *half(void *arg)
{
        struct heavy *jobs = arg;

        for (int i = 0; i < HEAVY_JOBS / THREADS; i++)
                heavy_work(&jobs[i]);
        return NULL;
}

static int once(void *arg, uint64_t steps)
{
        struct work *w = arg;
        pthread_t other;

        heavy_begin(w->jobs, steps);
        if (w->threads == THREADS) {
                int rc = pthread_create(&other, NULL, half, &w->jobs[HEAVY_JOBS / THREADS]);
                if (rc)
                        return -rc;
        }
        half(w->jobs);
        if (w->threads == THREADS)
                pthread_join(other, NULL);
        else
                half(&w->jobs[HEAVY_JOBS / THREADS]);
        return heavy_check(w->jobs) < 0 ? -EIO : 0;
}

int main(int argc, char **argv)
{
        struct work w = { .threads = bench_argument(argc, argv, 1, THREADS) };

        int rc = bench_measure(once, &w, bench_argument(argc, argv, 2, 200000000));
        if (rc < 0)
                fprintf(stderr, "%s: %s\n", argv[0], strerror(-rc));
        return rc < 0;
}
