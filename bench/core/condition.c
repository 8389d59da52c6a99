/* SPDX-License-Identifier: MIT */
/* What does it cost to notify a task that waits for a condition, until it has the mutex? Two tasks take turns.
 *
 *     core-condition [TURNS] */

#include <resha/resha.h>

#include "lib/bench.h"

struct table {
        resha_mutex mutex;
        resha_condition turn;
        uint64_t turns;
};

static int plays(void *arg)
{
        struct table *t = arg;
        int rc = resha_mutex_lock(&t->mutex);

        if (rc < 0)
                return rc;
        while (t->turns > 0 && rc == 0) {
                t->turns--;
                resha_condition_notify(&t->turn, 1);
                rc = resha_condition_wait(&t->turn);
        }
        resha_condition_notify(&t->turn, 1);
        resha_mutex_unlock(&t->mutex);
        return rc;
}

static int turns(void *arg, uint64_t n)
{
        struct table t = { .turns = n };

        (void)arg;
        resha_condition_init(&t.turn, &t.mutex);
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, plays, &t);
        resha_spawn(&g, plays, &t);
        return resha_group_end(&g, 0);
}

static int program(void *arg)
{
        return bench_measure(turns, NULL, *(uint64_t *)arg);
}

int main(int argc, char **argv)
{
        uint64_t n = bench_argument(argc, argv, 1, 5000000);

        return resha_main(program, &n);
}
