/* SPDX-License-Identifier: MIT */
/* What does an item cost through a channel of one place, both ends on one loop: one task that sends and receives, or
 * two that take turns?
 *
 *     core-channel 1|2 [ITEMS] */

#include <resha/resha.h>

#include "lib/bench.h"

struct ends {
        resha_sender *tx;
        resha_receiver *rx;
        uint64_t items;
};

static int receives(void *arg)
{
        const struct ends *e = arg;
        uint64_t item;
        int rc = 1;

        for (uint64_t i = 0; i < e->items && rc == 1; i++)
                rc = resha_recv(e->rx, &item);
        return rc < 0 ? rc : 0;
}

static int both(const struct ends *e)
{
        uint64_t item;
        int rc = 1;

        for (uint64_t i = 0; i < e->items && rc == 1; i++) {
                rc = resha_send(e->tx, &i);
                if (rc == 1)
                        rc = resha_recv(e->rx, &item);
        }
        return rc < 0 ? rc : 0;
}

static int turns(struct ends *e)
{
        int rc = 1;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, receives, e);
        for (uint64_t i = 0; i < e->items && rc == 1; i++)
                rc = resha_send(e->tx, &i);
        return resha_group_end(&g, rc < 0 ? rc : 0);
}

static int items(void *arg, uint64_t n)
{
        struct ends e = { .items = n };
        int rc = resha_channel_new(sizeof(uint64_t), 1, &e.tx, &e.rx);

        if (rc == 0)
                rc = *(uint64_t *)arg == 1 ? both(&e) : turns(&e);
        resha_sender_close(e.tx);
        resha_receiver_close(e.rx);
        return rc;
}

struct arguments {
        uint64_t tasks, items;
};

static int program(void *arg)
{
        struct arguments *a = arg;

        return bench_measure(items, &a->tasks, a->items);
}

int main(int argc, char **argv)
{
        struct arguments a = { bench_argument(argc, argv, 1, 1), bench_argument(argc, argv, 2, 10000000) };

        return resha_main(program, &a);
}
