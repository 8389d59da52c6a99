/* SPDX-License-Identifier: MIT */
/* The fault: a search that neither waits nor looks around (resha_checkpoint()), in the midst of tasks that wait. */
#include <resha/resha.h>

static int is_prime(unsigned long n)
{
        for (unsigned long d = 2; d * d <= n; d++)
                if (n % d == 0)
                        return 0;
        return n > 1;
}

static int search(void *arg)
{
        unsigned long *largest = arg;
        for (unsigned long n = 1000000000000; n; n++)
                if (is_prime(n))
                        *largest = n;
        return 0;
}

static int tick(void *arg)
{
        int rc;
        (void)arg;
        while ((rc = resha_sleep(RESHA_MS(10))) == 0)
                ;
        return rc;
}

static int program(void *arg)
{
        unsigned long largest = 0;
        (void)arg;
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, tick, NULL);
        resha_spawn(&g, search, &largest);
        return resha_group_end(&g, 0);
}

int main(void)
{
        return resha_main(program, NULL);
}
