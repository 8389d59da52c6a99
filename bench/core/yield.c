/* SPDX-License-Identifier: MIT */
/* What does a yield cost in a ring of 64 tasks?
 *
 *     core-yield [YIELDS]
 *
 * Each task yields until its share is done. The peer does the same with runtime.Gosched(). */

#include <resha/resha.h>

#include "lib/bench.h"

enum { RING = 64 };

static int member(void *arg)
{
        const uint64_t *laps = arg;
        int rc = 0;

        for (uint64_t i = 0; i < *laps && rc == 0; i++)
                rc = resha_yield();
        return rc;
}

static int ring(void *arg, uint64_t n)
{
        uint64_t laps = n / RING;
        RESHA_GROUP(g);

        (void)arg;
        resha_group_begin(&g, NULL);
        for (int i = 0; i < RING; i++)
                resha_spawn(&g, member, &laps);
        return resha_group_end(&g, 0);
}

static int program(void *arg)
{
        return bench_measure(ring, NULL, *(uint64_t *)arg);
}

int main(int argc, char **argv)
{
        uint64_t yields = bench_argument(argc, argv, 1, 20000000);

        return resha_main(program, &yields);
}
