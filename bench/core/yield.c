/* SPDX-License-Identifier: MIT */
/* What does a yield cost in a ring of 64 tasks?
 *
 *     core-yield [YIELDS]
 *
 * Each task yields until its share is done. The peer does the same with runtime.Gosched(). */

#include <resha/resha.h>

#include "bench.h"

enum { RING = 64 };

static int member(void *arg)
{
        const uint64_t *laps = arg;
        int rc = 0;

        for (uint64_t i = 0; i < *laps && rc == 0; i++)
                rc = resha_yield();
        return rc;
}

static int ring(uint64_t laps)
{
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        for (int i = 0; i < RING; i++)
                resha_spawn(&g, member, &laps);
        return resha_group_end(&g, 0);
}

static int program(void *arg)
{
        uint64_t laps = *(uint64_t *)arg / RING;
        struct bench_span span;
        int rc = ring(laps / 10);

        if (rc < 0)
                return rc;
        bench_start(&span);
        rc = ring(laps);
        bench_print(&span, laps * RING);
        return rc;
}

int main(int argc, char **argv)
{
        uint64_t yields = bench_argument(argc, argv, 1, 20000000);

        return resha_main(program, &yields);
}
