/* SPDX-License-Identifier: MIT */
/* What does it cost to hand an item from one loop to another, on two cores, through a channel of so many places?
 *
 *     exec-channel [ITEMS [CAPACITY]]
 *
 * One loop sends, the other receives and checks what it got. The start and the end of the loops is in it. */

#include <stdio.h>

#include <resha/resha.h>

#include "lib/bench.h"

struct end {
        resha_sender *tx;
        resha_receiver *rx;
        uint64_t items;
};

static int send_all(resha_sender *tx, uint64_t items)
{
        int rc = 1;

        for (uint64_t i = 0; i < items && rc == 1; i++)
                rc = resha_send(tx, &i);
        return rc == 0 ? resha_fail(-EPROTO, "nobody receives") : rc < 0 ? rc : 0;
}

static int receive_all(resha_receiver *rx, uint64_t items)
{
        uint64_t item, expected = 0;
        int rc;

        while ((rc = resha_recv(rx, &item)) == 1)
                if (item != expected++)
                        return resha_fail(-EPROTO, "item %llu came out of order", (unsigned long long)item);
        if (rc == 0 && expected != items)
                return resha_fail(-EPROTO, "%llu items came", (unsigned long long)expected);
        return rc;
}

static int use_end(void *arg)
{
        struct end *e = arg;
        resha_sender *tx RESHA_CLEANUP(resha_sender_closep) = e->tx;
        resha_receiver *rx RESHA_CLEANUP(resha_receiver_closep) = e->rx;

        return tx ? send_all(tx, e->items) : receive_all(rx, e->items);
}

static int hand_over(void *arg, uint64_t items)
{
        struct end ends[2] = { { .items = items }, { .items = items } };
        int rc = resha_channel_new(sizeof(uint64_t), *(uint64_t *)arg, &ends[0].tx, &ends[1].rx);

        return rc < 0 ? rc : resha_run_loops(use_end, ends, 2, sizeof ends[0], NULL);
}

int main(int argc, char **argv)
{
        uint64_t items = bench_argument(argc, argv, 1, 10000000), capacity = bench_argument(argc, argv, 2, 64);
        int rc = bench_measure(hand_over, &capacity, items);

        if (rc < 0)
                fprintf(stderr, "exec-channel: %s\n", resha_error_of(rc)->text);
        return rc < 0;
}
