/* SPDX-License-Identifier: MIT */
/* What does a gather of empty tasks cost, the first one of a program and the later ones?
 *
 *     core-gather [TASKS [GATHERS]]
 *
 * The peer is asyncio.gather() on as many empty coroutines. One line of JSON: microseconds of the first gather and of
 * the fastest later one, by the processor's time. */

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include <resha/resha.h>

#include "lib/bench.h"

struct job {
        uint64_t tasks, gathers;
};

static int empty(void *arg)
{
        (void)arg;
        return 0;
}

static double cpu_us(void)
{
        struct timespec t;

        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int one_gather(const struct job *j, char *items, double *ret_us)
{
        double start = cpu_us();
        int rc = resha_gather(empty, items, j->tasks, 1, NULL);

        *ret_us = cpu_us() - start;
        return rc;
}

static int program(void *arg)
{
        const struct job *j = arg;
        char *items = resha_malloc(j->tasks);
        double cold, us, warm = 0;

        if (!items)
                return -ENOMEM;
        int rc = one_gather(j, items, &cold);
        for (uint64_t i = 0; i < j->gathers && rc == 0; i++) {
                rc = one_gather(j, items, &us);
                warm = i == 0 || us < warm ? us : warm;
        }
        resha_free(items);
        if (rc == 0)
                printf("{\"tasks\": %" PRIu64 ", \"cold_us\": %.1f, \"warm_us\": %.1f}\n", j->tasks, cold, warm);
        return rc;
}

int main(int argc, char **argv)
{
        struct job j = { bench_argument(argc, argv, 1, 10000), bench_argument(argc, argv, 2, 20) };

        return resha_main(program, &j);
}
