/* SPDX-License-Identifier: MIT */
/* Something to look into: many parked tasks, in a program that goes on.
 *
 *     tree [TASKS]
 *
 * Starts TASKS tasks (100,000), a third of which wait for an event, a third in a queue, a third sleep, in groups of a
 * thousand; prints a line when all of them wait, and then has a task that wakes each millisecond, until its stdin ends.
 * Then it prints one line of JSON: how late that task was at most, which is how long the loop was held up. */

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>

#include <resha/resha.h>

#include "lib/bench.h"

enum { EACH_GROUP = 1000 };

struct world {
        uint64_t tasks, parked;
        resha_event event;
        resha_queue *queue;
        resha_duration most; /* that the ticking task was late */
        bool over;
};

static int parked(void *arg)
{
        struct world *w = arg;
        int item;

        switch (w->parked++ % 3) {
        case 0: return resha_event_wait(&w->event);
        case 1: return resha_queue_get(w->queue, &item);
        default: return resha_sleep(RESHA_S(36000));
        }
}

static int group_of_parked(void *arg)
{
        struct world *w = arg;
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        for (int i = 0; i < EACH_GROUP; i++)
                resha_spawn(&g, parked, w);
        return resha_group_end(&g, 0);
}

static int tick(void *arg)
{
        struct world *w = arg;
        int rc = 0;

        while (!w->over && rc == 0) {
                resha_instant due = resha_after(RESHA_MS(1));
                rc = resha_sleep_until(due);
                resha_duration late = resha_between(due, resha_now());
                w->most = late.ns > w->most.ns ? late : w->most;
        }
        return rc;
}

static int until_stdin_ends(struct world *w)
{
        RESHA_GROUP(g);
        int rc;

        resha_group_begin(&g, NULL);
        resha_spawn(&g, tick, w);
        rc = resha_fd_wait(0, POLLIN);
        w->over = true;
        return resha_group_end(&g, rc < 0 ? rc : 0);
}

static int program(void *arg)
{
        struct world *w = arg;
        RESHA_GROUP(g);
        int rc = resha_queue_new(sizeof(int), 1, NULL, &w->queue);

        if (rc < 0)
                return rc;
        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        for (uint64_t n = 0; n < w->tasks; n += EACH_GROUP)
                resha_spawn(&g, group_of_parked, w);
        while (rc == 0 && w->parked < w->tasks)
                rc = resha_yield();
        printf("parked %" PRIu64 "\n", w->parked);
        fflush(stdout);
        if (rc == 0)
                rc = until_stdin_ends(w);
        printf("{\"late_ns\": %" PRId64 "}\n", w->most.ns);
        rc = resha_group_end(&g, rc);
        resha_queue_free(w->queue);
        return rc;
}

int main(int argc, char **argv)
{
        struct world w = { .tasks = bench_argument(argc, argv, 1, 100000) };

        return resha_run(program, &w, &(resha_run_opts){ .inspect = true }) < 0;
}
