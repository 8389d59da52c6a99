/* SPDX-License-Identifier: MIT */
/* What does a timer cost that fires?
 *
 *     core-fire [TIMERS [TASKS]]
 *
 * Tasks that sleep again and again, for 10 to 100 us at random: so many that some timer is always due. The peer's
 * goroutines do the same with time.Sleep(). */

#include <resha/resha.h>

#include "lib/bench.h"

struct job {
        uint64_t timers, tasks, each, random;
};

static int sleeper(void *arg)
{
        struct job *j = arg;
        int rc = 0;

        for (uint64_t i = 0; i < j->each && rc == 0; i++)
                rc = resha_sleep(RESHA_NS(10000 + bench_random(&j->random) % 90000));
        return rc;
}

static int sleeps(void *arg, uint64_t n)
{
        struct job *j = arg;
        RESHA_GROUP(g);

        j->each = n / j->tasks ? n / j->tasks : 1;
        resha_group_begin(&g, NULL);
        for (uint64_t i = 0; i < j->tasks; i++)
                resha_spawn(&g, sleeper, j);
        return resha_group_end(&g, 0);
}

static int program(void *arg)
{
        struct job *j = arg;

        return bench_measure(sleeps, j, j->timers);
}

int main(int argc, char **argv)
{
        struct job j = { .random = 1 };

        j.timers = bench_argument(argc, argv, 1, 2000000);
        j.tasks = bench_argument(argc, argv, 2, 1000);
        return resha_main(program, &j);
}
