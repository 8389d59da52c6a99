/* SPDX-License-Identifier: MIT */
/* The fault: the only task that takes from the queue takes an order of nothing for the end, and leaves. Those who put
 * wait for room that nobody makes. */
#include <resha/resha.h>

enum { CLERKS = 3, PLACES = 4 };

static int take_orders(void *arg)
{
        resha_queue *orders = arg;
        int pieces, rc;
        while ((rc = resha_queue_get(orders, &pieces)) > 0)
                if (pieces == 0)
                        return 0;
        return rc;
}

static int clerk(void *arg)
{
        resha_queue *orders = arg;
        int rc = 1;
        for (int i = 0; rc > 0; i++) {
                int pieces = i % 7;
                rc = resha_queue_put(orders, &pieces);
        }
        return rc;
}

static int tick(void *arg)
{
        int rc;
        (void)arg;
        while ((rc = resha_sleep(RESHA_S(1))) == 0)
                ;
        return rc;
}

static int program(void *arg)
{
        resha_queue *orders RESHA_CLEANUP(resha_queue_freep) = NULL;
        int rc = resha_queue_new(sizeof(int), PLACES, NULL, &orders);
        (void)arg;
        if (rc < 0)
                return rc;
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, tick, NULL);
        resha_spawn(&g, take_orders, orders);
        for (int i = 0; i < CLERKS; i++)
                resha_spawn(&g, clerk, orders);
        return resha_group_end(&g, 0);
}

int main(void)
{
        return resha_main(program, NULL);
}
