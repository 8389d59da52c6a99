/* SPDX-License-Identifier: MIT */

/* The demo's work that computes. Jobs leave when they began and ended in memory that is shared with the worker
 * processes, so that all four pictures are drawn from the same stamps. A job is done when its thread has had 0.1 s of
 * processor time, whatever else the machine does. */

#include "computing.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

enum { JOBS = COMPUTING_JOBS, JOB_MS = 100 };

/* In shared memory, if there is some. */
struct job {
        resha_instant from, to;
        bool crash;
};

static struct job private_jobs[JOBS], *jobs = private_jobs;

static int compute(void *number)
{
        struct job *job = jobs + *(unsigned *)number;
        int64_t ms = 0;
        volatile unsigned sum = 0;
        struct timespec start, now;
        job->from = resha_now();
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
        while (ms < JOB_MS && !resha_job_stopped() && !resha_cancelled()) {
                for (unsigned i = 0; i < 20000; i++)
                        sum = sum * 1664525 + 1013904223;
                clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
                ms = (now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000;
        }
        job->to = resha_now();
        if (job->crash)
                raise(SIGSEGV);
        return 0;
}

/* In a worker: the crash is wanted, its core is not. */
static int no_core(void *arg)
{
        (void)arg;
        return setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
}

/* Two even where there is one: then the picture says what that gives. */
static unsigned at_once(void)
{
        unsigned n = resha_processors();
        return n < 2 ? 2 : n < JOBS ? n : JOBS;
}

void computing_init(struct computing *c)
{
        void *memory = mmap(NULL, sizeof private_jobs, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) {
                c->why_not = *resha_error_of(resha_fail(-errno, "no shared memory: %s", strerror(errno)));
                return;
        }
        jobs = memory;
        int rc = resha_workers_start(&(resha_workers_opts){ .processes = at_once(), .init = no_core }, &c->workers);
        if (rc < 0)
                c->why_not = *resha_error_of(rc);
}

void computing_done(struct computing *c)
{
        resha_workers_stop(c->workers);
        if (jobs != private_jobs)
                munmap(jobs, sizeof private_jobs);
        jobs = private_jobs;
}

/* All jobs, in one of the four ways. */
struct way {
        const char *call, *where;
        int (*go)(struct computing *c, unsigned *numbers);
};

static int as_tasks(struct computing *c, unsigned *numbers)
{
        (void)c;
        return resha_gather(compute, numbers, JOBS, sizeof *numbers, NULL);
}

static int on_threads(struct computing *c, unsigned *numbers)
{
        (void)c;
        return resha_pool_map(NULL, compute, numbers, JOBS, sizeof *numbers,
                              &(resha_gather_opts){ .limit = at_once() });
}

/* One of them crashes, and is the only one that fails. */
static int in_processes(struct computing *c, unsigned *numbers)
{
        jobs[JOBS - 1].crash = true;
        return resha_workers_map(c->workers, compute, numbers, JOBS, sizeof *numbers,
                                 &(resha_gather_opts){ .keep_going = true, .ret_errors = c->errors });
}

/* The jobs of a loop: its number, and every at_once()-th from there. */
static int on_one_loop(void *number)
{
        unsigned mine[JOBS], n = 0;
        for (unsigned i = *(unsigned *)number; i < JOBS; i += at_once())
                mine[n++] = i;
        return resha_gather(compute, mine, n, sizeof mine[0], NULL);
}

static int run_loops(void *numbers)
{
        return resha_run_loops(on_one_loop, numbers, at_once(), sizeof(unsigned), NULL);
}

/* Loops are begun outside of one: on a thread. */
static int on_loops(struct computing *c, unsigned *numbers)
{
        (void)c;
        return resha_pool_run(NULL, run_loops, numbers, NULL);
}

static const struct way ways[] = { { "gather", "tasks", as_tasks },
                                   { "pool_map", "threads", on_threads },
                                   { "workers_map", "processes", in_processes },
                                   { "run_loops", "loops", on_loops } };

/* The stamps, in the order in which the jobs began. */
static void picture(struct lanes *lanes)
{
        bool taken[JOBS] = { false };
        char label[LANES_LABEL];
        for (unsigned n = 0; n < JOBS; n++) {
                unsigned next = JOBS;
                for (unsigned i = 0; i < JOBS; i++)
                        if (!taken[i] && (next == JOBS || jobs[i].from.ns < jobs[next].from.ns))
                                next = i;
                taken[next] = true;
                if (jobs[next].to.ns == 0) /* it never ended, or never began */
                        continue;
                snprintf(label, sizeof label, jobs[next].crash ? "x%u" : "%02u", next + 1);
                lanes_add(lanes, label, jobs[next].from, jobs[next].to, jobs[next].crash);
        }
}

/* For want of memory, of threads or processes: the show goes on. */
static int not_here(const struct way *way, const resha_error *why)
{
        printf("   %-11s  %-9s  not here: %s\n", way->call, way->where, why->text);
        return 0;
}

/* One way, and what it looked like. */
static int go(struct computing *c, const struct way *way, struct lanes_style *style)
{
        unsigned numbers[JOBS];
        struct lanes lanes;
        char front[96];
        TEXT(t);
        memset(jobs, 0, sizeof private_jobs);
        for (unsigned i = 0; i < JOBS; i++)
                numbers[i] = i;
        lanes_init(&lanes);
        int rc = way->go(c, numbers);
        if (rc < 0)
                return rc == -ECANCELED ? rc : not_here(way, resha_error_of(rc));
        picture(&lanes);
        if (way->go == as_tasks)
                style->unit = RESHA_NS(lanes_length(&lanes).ns / JOBS);
        int width = snprintf(front, sizeof front, "   %-11s  %-9s  %.1f s  ", way->call, way->where,
                             (double)lanes_length(&lanes).ns / 1e9);
        style->indent = (unsigned)width;
        lanes_draw(&lanes, style, &t);
        if (t.failed)
                return -ENOMEM;
        memcpy(t.data, front, (size_t)width);
        stage_put(&t);
        return 0;
}

int computing_play(struct computing *c, const struct stage_style *style)
{
        struct lanes_style lanes = stage_lanes_style(style); /* their unit: a job, as one after the other */
        unsigned n = resha_processors();
        int rc = 0;
        printf("7  Work that computes, four times 0.1 s, on %u processor%s: the same map in four places\n", n,
               n == 1 ? "" : "s");
        fflush(stdout);
        for (size_t i = 0; i < sizeof ways / sizeof ways[0] && rc >= 0; i++)
                rc = ways[i].go != in_processes || c->workers ? go(c, &ways[i], &lanes)
                                                              : not_here(&ways[i], &c->why_not);
        const resha_error *crash = &c->errors[JOBS - 1];
        if (rc >= 0 && crash->code < 0)
                printf("   04 crashed, and the others did not notice: %.*s\n", (int)strcspn(crash->text, ";"),
                       crash->text);
        puts("");
        return rc;
}
