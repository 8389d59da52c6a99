/* SPDX-License-Identifier: MIT */
/* A7: five tasks of one second: one by one, then in a group. */
#include <stdio.h>

#include <resha/resha.h>

static int work(void *arg)
{
        (void)arg;
        return resha_sleep(RESHA_S(1));
}

static int one_by_one(void)
{
        int rc = 0;

        for (int i = 0; i < 5 && rc >= 0; i++)
                rc = work(NULL);
        return rc;
}

static int together(void)
{
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (int i = 0; i < 5; i++)
                resha_spawn(&g, work, NULL);
        return resha_group_end(&g, 0); /* waits for all of them */
}

static int program(void *arg)
{
        resha_instant start = resha_now();
        int rc = one_by_one();

        (void)arg;
        printf("one by one: %.1f s\n", (double)resha_between(start, resha_now()).ns / 1e9);
        start = resha_now();
        if (rc >= 0)
                rc = together();
        printf("together:   %.1f s\n", (double)resha_between(start, resha_now()).ns / 1e9);
        return rc;
}

int main(void)
{
        return resha_main(program, NULL);
}
