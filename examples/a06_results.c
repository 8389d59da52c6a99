/* SPDX-License-Identifier: MIT */
/* A6: results come back through the items, in the order given. */
#include <stdio.h>

#include <resha/resha.h>

struct number {
        int in, out;
};

static int times_ten(void *arg)
{
        struct number *n = arg;
        int rc = resha_sleep(RESHA_S(1));

        n->out = n->in * 10;
        return rc;
}

static int program(void *arg)
{
        struct number n[] = { { .in = 1 }, { .in = 2 }, { .in = 3 } };
        resha_instant start = resha_now();

        (void)arg;
        int rc = resha_gather(times_ten, n, 3, sizeof n[0], NULL);
        if (rc < 0)
                return rc;
        printf("[%d, %d, %d] after %.1f s\n", n[0].out, n[1].out, n[2].out,
               (double)resha_between(start, resha_now()).ns / 1e9);
        return 0;
}

int main(void)
{
        return resha_main(program, NULL);
}
