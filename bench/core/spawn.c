/* SPDX-License-Identifier: MIT */
/* What does it cost to start and join an empty task, singly and in batches?
 *
 *     core-spawn [BATCH [TASKS]]
 *
 * A group for each batch. The peer starts goroutines and joins them with a WaitGroup for each batch. */

#include <resha/resha.h>

#include "lib/bench.h"

struct job {
        uint64_t batch, tasks;
};

static int empty(void *arg)
{
        (void)arg;
        return 0;
}

static int one_batch(uint64_t n)
{
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        for (uint64_t i = 0; i < n; i++)
                resha_spawn(&g, empty, NULL);
        return resha_group_end(&g, 0);
}

static int batches(void *arg, uint64_t n)
{
        const struct job *j = arg;
        int rc = 0;

        for (uint64_t done = 0; done < n && rc == 0; done += j->batch)
                rc = one_batch(j->batch);
        return rc;
}

static int program(void *arg)
{
        struct job *j = arg;

        return bench_measure(batches, j, j->tasks);
}

int main(int argc, char **argv)
{
        struct job j = { bench_argument(argc, argv, 1, 1), bench_argument(argc, argv, 2, 4000000) };

        return resha_main(program, &j);
}
