/* SPDX-License-Identifier: MIT */
/* What does a task's turn at a barrier cost? Four tasks go round and round.
 *
 *     core-barrier [ROUNDS] */

#include <resha/resha.h>

#include "lib/bench.h"

enum { PARTIES = 4 };

struct track {
        resha_barrier barrier;
        uint64_t rounds;
};

static int runs(void *arg)
{
        struct track *t = arg;
        int rc = 0;

        for (uint64_t i = 0; i < t->rounds && rc >= 0; i++)
                rc = resha_barrier_wait(&t->barrier);
        return rc;
}

/* n waits, those of all tasks together. */
static int waits(void *arg, uint64_t n)
{
        struct track t = { .rounds = n / PARTIES };
        int rc = resha_barrier_init(&t.barrier, PARTIES);

        (void)arg;
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (int i = 0; i < PARTIES; i++)
                resha_spawn(&g, runs, &t);
        return resha_group_end(&g, rc);
}

static int program(void *arg)
{
        return bench_measure(waits, NULL, *(uint64_t *)arg);
}

int main(int argc, char **argv)
{
        uint64_t n = bench_argument(argc, argv, 1, 5000000);

        return resha_main(program, &n);
}
