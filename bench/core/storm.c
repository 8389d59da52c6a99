/* SPDX-License-Identifier: MIT */
/* How long does it take to end a group of tasks, each of which sleeps under a timeout of its own, when one fails?
 *
 *     core-storm [TASKS [ROUNDS]]
 *
 * From the failure to the end of the group: every timer is taken out, every task woken, unwound and joined. Printed for
 * each task; the driver asks for several numbers of tasks and fits how it grows. */

#include <resha/resha.h>

#include <stdio.h>
#include <time.h>

#include "lib/bench.h"

struct job {
        uint64_t tasks, rounds, random;
        resha_event fail;
};

static double cpu_ns(void)
{
        struct timespec t;

        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int sleeper(void *arg)
{
        struct job *j = arg;
        RESHA_SCOPE(s);

        resha_timeout_begin(&s, RESHA_MS(3600000 + bench_random(&j->random) % 3600000));
        return resha_scope_end(&s, resha_sleep(RESHA_FOREVER));
}

static int failing(void *arg)
{
        struct job *j = arg;
        int rc = resha_event_wait(&j->fail);

        return rc < 0 ? rc : resha_fail(-EIO, "the one that fails");
}

static int storm(struct job *j, double *ret_ns)
{
        RESHA_GROUP(g);

        j->fail = (resha_event){ { 0 } };
        resha_group_begin(&g, NULL);
        for (uint64_t i = 0; i < j->tasks; i++)
                resha_spawn(&g, sleeper, j);
        resha_spawn(&g, failing, j);
        int rc = resha_yield(); /* all wait */
        double start = cpu_ns();
        resha_event_set(&j->fail);
        rc = resha_group_end(&g, rc);
        *ret_ns = cpu_ns() - start;
        if (rc != -EIO)
                return rc < 0 ? rc : resha_fail(-EPROTO, "the group ended with success");
        return 0;
}

static int program(void *arg)
{
        struct job *j = arg;
        double ns, best = 0;
        int rc = 0;

        for (uint64_t i = 0; i < j->rounds && rc == 0; i++) {
                rc = storm(j, &ns);
                best = i == 0 || ns < best ? ns : best;
        }
        if (rc == 0)
                printf("{\"operations\": %llu, \"cpu_ns\": %.1f, \"wall_ns\": %.1f}\n", (unsigned long long)j->tasks,
                       best / (double)j->tasks, best / (double)j->tasks);
        return rc;
}

int main(int argc, char **argv)
{
        static struct job j = { .random = 1 };

        j.tasks = bench_argument(argc, argv, 1, 100000);
        j.rounds = bench_argument(argc, argv, 2, 5);
        return resha_main(program, &j);
}
