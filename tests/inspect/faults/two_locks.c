/* SPDX-License-Identifier: MIT */
/* The fault: two transfers between the same two accounts, each of which locks the one it takes from, and then the one
 * it gives to. In between, each asks somebody, and the other one runs. The clock of the program goes on, so that nobody
 * can say that the program as a whole has come to its end. */
#include <resha/resha.h>

struct account {
        resha_mutex lock;
        long cents;
};

struct transfer {
        struct account *from, *to;
};

static int move_money(struct account *from, struct account *to)
{
        int rc = resha_mutex_lock(&from->lock);
        if (rc < 0)
                return rc;
        rc = resha_sleep(RESHA_MS(10)); /* asks somebody whether there is enough */
        if (rc == 0)
                rc = resha_mutex_lock(&to->lock);
        if (rc == 0) {
                from->cents--, to->cents++;
                resha_mutex_unlock(&to->lock);
        }
        resha_mutex_unlock(&from->lock);
        return rc;
}

static int transfer(void *arg)
{
        struct transfer *t = arg;
        int rc = move_money(t->from, t->to);
        return rc < 0 ? rc : 0;
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
        struct account ann = { .cents = 100 }, bob = { .cents = 100 };
        struct transfer there = { &ann, &bob }, back = { &bob, &ann };
        (void)arg;
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, tick, NULL);
        resha_spawn(&g, transfer, &there);
        resha_spawn(&g, transfer, &back);
        return resha_group_end(&g, 0);
}

int main(void)
{
        return resha_main(program, NULL);
}
