/* SPDX-License-Identifier: MIT */
/* D4: four functions that compute. As tasks they take turns on one processor; threads and processes use them all, and
 * it is a change of one word. In a process a crash is an error of that call alone. */
#include <stdio.h>
#include <stdlib.h>

#include <resha/resha.h>

enum { JOBS = 4, LARGE = 20000 };

struct job {
        int below, primes;
};

static int count_primes(void *arg)
{
        struct job *job = arg;

        if (job->below < 0)
                abort();
        for (int i = 2; i < job->below; i++) {
                int k = 2;
                while (k < i && i % k)
                        k++;
                job->primes += k == i;
        }
        return 0;
}

static void show(const char *how, const struct job *jobs, resha_instant start)
{
        double seconds = (double)resha_between(start, resha_now()).ns / 1e9;

        printf("%s: %d %d %d %d after %.2f s\n", how, jobs[0].primes, jobs[1].primes, jobs[2].primes, jobs[3].primes,
               seconds);
}

static int three_ways(resha_workers *workers)
{
        const struct job job = { LARGE, 0 };
        struct job a[JOBS] = { job, job, job, job }, b[JOBS] = { job, job, job, job }, c[JOBS] = { job, job, job, job };
        resha_instant start = resha_now();
        int rc = resha_gather(count_primes, a, JOBS, sizeof a[0], NULL);
        if (rc < 0)
                return rc;
        show("tasks    ", a, start);
        start = resha_now();
        if ((rc = resha_pool_map(NULL, count_primes, b, JOBS, sizeof b[0], NULL)) < 0)
                return rc;
        show("threads  ", b, start);
        start = resha_now();
        if ((rc = resha_workers_map(workers, count_primes, c, JOBS, sizeof c[0], NULL)) < 0)
                return rc;
        show("processes", c, start);
        return 0;
}

static int one_crashes(resha_workers *workers)
{
        struct job jobs[] = { { 100, 0 }, { -1, 0 }, { 1000, 0 } };
        int status[3];
        resha_error errors[3];
        int rc = resha_workers_map(
                workers, count_primes, jobs, 3, sizeof jobs[0],
                &(resha_gather_opts){ .keep_going = true, .ret_status = status, .ret_errors = errors });

        for (int i = 0; rc == 0 && i < 3; i++)
                if (status[i] < 0)
                        printf("below %d: %s\n", jobs[i].below, errors[i].text);
                else
                        printf("below %d: %d primes\n", jobs[i].below, jobs[i].primes);
        return rc;
}

static int program(void *workers)
{
        int rc = three_ways(workers);

        return rc < 0 ? rc : one_crashes(workers);
}

int main(void)
{
        resha_workers *workers RESHA_CLEANUP(resha_workers_stopp) = NULL;

        int rc = resha_workers_start(NULL, &workers); /* before there are threads */
        if (rc < 0)
                return fprintf(stderr, "%s\n", resha_error_of(rc)->text), 1;
        return resha_main(program, workers);
}
