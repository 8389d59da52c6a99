/* SPDX-License-Identifier: MIT */
/* What do four heavy jobs take as one task, as tasks, on threads, in processes, on two loops?
 *
 *     exec-work task|tasks|threads|processes|loops [STEPS]
 *
 * The peer has two bare threads, peers/work.c. The start of the run, of its threads and loops is in it; that of the
 * processes is not: they are there before. */

#include <stdio.h>
#include <string.h>

#include <resha/resha.h>

#include "lib/bench.h"
#include "lib/heavy.h"

enum { CORES = 2 };

struct work {
        resha_fn *fn; /* the form, with all jobs for its argument */
        resha_workers *workers;
        struct heavy jobs[HEAVY_JOBS];
};

static int in_one_task(void *arg)
{
        struct work *w = arg;

        for (int i = 0; i < HEAVY_JOBS; i++)
                heavy_work(&w->jobs[i]);
        return 0;
}

static int in_tasks(void *arg)
{
        struct work *w = arg;

        return resha_gather(heavy_work, w->jobs, HEAVY_JOBS, sizeof w->jobs[0], NULL);
}

static int on_threads(void *arg)
{
        struct work *w = arg;

        return resha_pool_map(NULL, heavy_work, w->jobs, HEAVY_JOBS, sizeof w->jobs[0],
                              &(resha_gather_opts){ .limit = CORES });
}

static int in_processes(void *arg)
{
        struct work *w = arg;

        return resha_workers_map(w->workers, heavy_work, w->jobs, HEAVY_JOBS, sizeof w->jobs[0], NULL);
}

/* What each of the loops does: its half. */
static int half(void *arg)
{
        struct heavy *jobs = arg;

        for (int i = 0; i < HEAVY_JOBS / CORES; i++)
                heavy_work(&jobs[i]);
        return 0;
}

static int once(void *arg, uint64_t steps)
{
        struct work *w = arg;

        heavy_begin(w->jobs, steps);
        int rc = w->fn ? resha_run(w->fn, w, NULL)
                       : resha_run_loops(half, w->jobs, CORES, sizeof w->jobs[0] * (HEAVY_JOBS / CORES), NULL);
        return rc < 0 ? rc : heavy_check(w->jobs);
}

int main(int argc, char **argv)
{
        static const struct {
                const char *name;
                resha_fn *fn;
        } forms[] = { { "task", in_one_task },
                      { "tasks", in_tasks },
                      { "threads", on_threads },
                      { "processes", in_processes },
                      { "loops", NULL } };
        struct work w = { 0 };
        size_t i = 0;

        while (argc > 1 && i < sizeof forms / sizeof forms[0] && strcmp(argv[1], forms[i].name))
                i++;
        if (argc < 2 || i == sizeof forms / sizeof forms[0])
                return fprintf(stderr, "usage: exec-work task|tasks|threads|processes|loops [STEPS]\n"), 2;
        w.fn = forms[i].fn;
        if (w.fn == in_processes && resha_workers_start(&(resha_workers_opts){ .processes = CORES }, &w.workers) < 0)
                return 1;
        int rc = bench_measure(once, &w, bench_argument(argc, argv, 2, 200000000));
        resha_workers_stop(w.workers);
        if (rc < 0)
                fprintf(stderr, "exec-work %s: %s\n", argv[1], resha_error_of(rc)->text);
        return rc < 0;
}
