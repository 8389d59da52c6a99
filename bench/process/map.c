/* SPDX-License-Identifier: MIT */
/* What does a small job cost that goes to another process and comes back, in a map of many?
 *
 *     process-map [ITEMS [PROCESSES]] */

#include <resha/resha.h>

#include "lib/bench.h"

struct map {
        resha_workers *workers;
        uint64_t n;
        uint64_t *items;
};

static int square(void *arg)
{
        uint64_t *item = arg;

        *item *= *item;
        return 0;
}

static int map(void *arg, uint64_t n)
{
        struct map *m = arg;

        for (uint64_t i = 0; i < n; i++)
                m->items[i] = i;
        int rc = resha_workers_map(m->workers, square, m->items, n, sizeof m->items[0], NULL);
        for (uint64_t i = 0; i < n && rc >= 0; i++)
                if (m->items[i] != i * i)
                        rc = resha_fail(-EIO, "item %llu is wrong", (unsigned long long)i);
        return rc;
}

static int program(void *arg)
{
        struct map *m = arg;

        m->items = resha_calloc(m->n, sizeof m->items[0]);
        if (!m->items)
                return -ENOMEM;
        int rc = bench_measure(map, m, m->n);
        resha_free(m->items);
        return rc;
}

int main(int argc, char **argv)
{
        struct map m = { .n = bench_argument(argc, argv, 1, 10000) };
        resha_workers_opts o = { .processes = (unsigned)bench_argument(argc, argv, 2, 2) };

        if (resha_workers_start(&o, &m.workers) < 0)
                return 1;
        int status = resha_main(program, &m);
        resha_workers_stop(m.workers);
        return status;
}
