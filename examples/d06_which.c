/* SPDX-License-Identifier: MIT */
/* D6: which tool for which work. Four times 0.1 s of waiting, of a call that blocks, and of computing, each by four
 * tools. A minus: there is no loop on which to wait. */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <resha/resha.h>

enum { TIMES = 4 };

static int waits(void *arg)
{
        (void)arg;
        return resha_sleep(RESHA_MS(100));
}

static int blocks(void *arg)
{
        (void)arg;
        return usleep(100000);
}

static int computes(void *arg) /* until its thread has had 0.1 s of processor time */
{
        struct timespec t;
        double start, now;

        (void)arg;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        start = now = (double)t.tv_sec + (double)t.tv_nsec / 1e9;
        while (now < start + 0.1) {
                clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
                now = (double)t.tv_sec + (double)t.tv_nsec / 1e9;
        }
        return 0;
}

struct work {
        const char *name;
        resha_fn *fn;
        char items[TIMES];
        resha_workers *workers;
};

static int as_tasks(void *arg)
{
        struct work *w = arg;

        return resha_gather(w->fn, w->items, TIMES, 1, NULL);
}

static int on_threads(void *arg)
{
        struct work *w = arg;

        return resha_pool_map(NULL, w->fn, w->items, TIMES, 1, NULL);
}

static int in_processes(void *arg)
{
        struct work *w = arg;

        return resha_workers_map(w->workers, w->fn, w->items, TIMES, 1, NULL);
}

static void show(const char *how, int rc, resha_instant start)
{
        printf("%s ", how);
        if (rc < 0)
                printf("%s", rc == -EPERM ? "-" : resha_strerror(rc));
        else
                printf("%.1f s", (double)resha_between(start, resha_now()).ns / 1e9);
        fflush(stdout);
}

int main(void)
{
        resha_workers *workers RESHA_CLEANUP(resha_workers_stopp) = NULL;
        static const struct {
                const char *how;
                resha_fn *fn;
        } ways[] = { { "tasks", as_tasks }, { ", threads", on_threads }, { ", processes", in_processes } };
        struct work works[] = { { .name = "waiting", .fn = waits },
                                { .name = "blocking", .fn = blocks },
                                { .name = "computing", .fn = computes } };

        int rc = resha_workers_start(&(resha_workers_opts){ .processes = TIMES }, &workers);
        if (rc < 0)
                return fprintf(stderr, "%s\n", resha_error_of(rc)->text), 1;
        for (size_t i = 0; i < sizeof works / sizeof works[0]; i++) {
                struct work *w = &works[i];
                resha_instant start;

                w->workers = workers;
                printf("%-10s", w->name);
                for (size_t way = 0; way < sizeof ways / sizeof ways[0]; way++) {
                        start = resha_now();
                        show(ways[way].how, resha_run(ways[way].fn, w, NULL), start);
                }
                start = resha_now();
                show(", loops", resha_run_loops(w->fn, w->items, TIMES, 1, NULL), start);
                puts("");
        }
        return 0;
}
