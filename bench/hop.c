/* SPDX-License-Identifier: MIT */
/* What does an empty job cost that goes to a thread and comes back, with so many in flight?
 *
 *     hop [JOBS [IN_FLIGHT]] */

#include <resha/resha.h>

#include "lib/bench.h"

enum { MOST = 64 };

struct asker {
        uint64_t jobs;
};

struct hops {
        uint64_t n, in_flight;
};

static int nothing(void *arg)
{
        (void)arg;
        return 0;
}

static int ask(void *arg)
{
        const struct asker *a = arg;
        int rc = 0;

        for (uint64_t i = 0; i < a->jobs && rc >= 0; i++)
                rc = resha_pool_run(NULL, nothing, NULL, NULL);
        return rc;
}

static int hop(void *arg, uint64_t n)
{
        const struct hops *h = arg;
        struct asker askers[MOST];

        for (uint64_t i = 0; i < h->in_flight; i++)
                askers[i].jobs = n / h->in_flight;
        return resha_gather(ask, askers, h->in_flight, sizeof askers[0], NULL);
}

static int program(void *arg)
{
        struct hops *h = arg;

        return bench_measure(hop, h, h->n);
}

int main(int argc, char **argv)
{
        struct hops h = { .n = bench_argument(argc, argv, 1, 64000), .in_flight = bench_argument(argc, argv, 2, 1) };

        if (h.in_flight > MOST)
                return 2;
        return resha_main(program, &h);
}
