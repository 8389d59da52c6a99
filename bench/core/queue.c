/* SPDX-License-Identifier: MIT */
/* What does it cost to hand an item from one task to another through a queue of capacity 1, or of none: a rendezvous?
 *
 *     core-queue [ITEMS]
 *     core-rendezvous [ITEMS]
 *
 * One task puts, one gets and checks what it got. The peer does the same with a channel of that capacity, which the
 * build sets. */

#include <resha/resha.h>

#include "lib/bench.h"

struct pipe {
        resha_queue *queue;
        uint64_t items;
};

static int producer(void *arg)
{
        const struct pipe *p = arg;
        int rc = 1;

        for (uint64_t i = 0; i < p->items && rc == 1; i++)
                rc = resha_queue_put(p->queue, &i);
        resha_queue_shutdown(p->queue);
        return rc < 0 ? rc : 0;
}

static int consumer(void *arg)
{
        const struct pipe *p = arg;
        uint64_t item, expected = 0;
        int rc;

        while ((rc = resha_queue_get(p->queue, &item)) == 1)
                if (item != expected++)
                        return resha_fail(-EPROTO, "item %llu came out of order", (unsigned long long)item);
        if (rc == 0 && expected != p->items)
                return resha_fail(-EPROTO, "%llu items came", (unsigned long long)expected);
        return rc;
}

static int hand_over(void *arg, uint64_t items)
{
        RESHA_CLEANUP(resha_queue_freep) resha_queue *queue = NULL;

        (void)arg;
        int rc = resha_queue_new(sizeof(uint64_t), CAPACITY, NULL, &queue);
        if (rc < 0)
                return rc;
        struct pipe p = { queue, items };
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        resha_spawn(&g, producer, &p);
        resha_spawn(&g, consumer, &p);
        return resha_group_end(&g, 0);
}

static int program(void *arg)
{
        return bench_measure(hand_over, NULL, *(uint64_t *)arg);
}

int main(int argc, char **argv)
{
        uint64_t items = bench_argument(argc, argv, 1, 10000000);

        return resha_main(program, &items);
}
