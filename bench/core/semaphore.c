/* SPDX-License-Identifier: MIT */
/* What does a permit cost, taken and given back, when there are enough?
 *
 *     core-semaphore [PERMITS] */

#include <resha/resha.h>

#include "lib/bench.h"

static int permits(void *arg, uint64_t n)
{
        resha_semaphore s;
        int rc = 0;

        (void)arg;
        resha_semaphore_init(&s, 2);
        for (uint64_t i = 0; i < n && rc == 0; i++) {
                rc = resha_semaphore_acquire(&s);
                if (rc == 0)
                        rc = resha_semaphore_release(&s);
        }
        return rc;
}

static int program(void *arg)
{
        return bench_measure(permits, NULL, *(uint64_t *)arg);
}

int main(int argc, char **argv)
{
        uint64_t n = bench_argument(argc, argv, 1, 20000000);

        return resha_main(program, &n);
}
