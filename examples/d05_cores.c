/* SPDX-License-Identifier: MIT */
/* D5: a loop on each core. Four heavy jobs on one loop, then each on a loop and a thread of its own. */
#include <stdio.h>

#include <resha/resha.h>

enum { JOBS = 4 };

struct job {
        uint32_t seed, result;
};

static int compute(void *arg) /* the main task of its loop: it may wait, spawn, serve, and here it computes */
{
        struct job *job = arg;

        job->result = job->seed;
        for (int i = 0; i < 50 * 1000 * 1000; i++)
                job->result = job->result * 1664525 + 1013904223;
        return 0;
}

static int all_here(void *arg)
{
        return resha_gather(compute, arg, JOBS, sizeof(struct job), NULL);
}

static void show(const char *where, const struct job *jobs, resha_instant start)
{
        uint32_t sum = 0;

        for (int i = 0; i < JOBS; i++)
                sum += jobs[i].result;
        printf("%s: %08x after %.2f s\n", where, (unsigned)sum, (double)resha_between(start, resha_now()).ns / 1e9);
}

int main(void)
{
        struct job jobs[JOBS] = { { 1, 0 }, { 2, 0 }, { 3, 0 }, { 4, 0 } };

        resha_instant start = resha_now();
        if (resha_run(all_here, jobs, NULL) < 0)
                return 1;
        show("one loop  ", jobs, start);
        start = resha_now();
        if (resha_run_loops(compute, jobs, JOBS, sizeof jobs[0], NULL) < 0)
                return 1;
        show("four loops", jobs, start);
        return 0;
}
