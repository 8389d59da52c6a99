/* SPDX-License-Identifier: MIT */
/* What do a lock and an unlock cost when nobody else wants it?
 *
 *     core-mutex [LOCKS] */

#include <resha/resha.h>

#include "lib/bench.h"

static int locks(void *arg, uint64_t n)
{
        resha_mutex m = { { 0 } };
        int rc = 0;

        (void)arg;
        for (uint64_t i = 0; i < n && rc == 0; i++) {
                rc = resha_mutex_lock(&m);
                if (rc == 0)
                        rc = resha_mutex_unlock(&m);
        }
        return rc;
}

static int program(void *arg)
{
        return bench_measure(locks, NULL, *(uint64_t *)arg);
}

int main(int argc, char **argv)
{
        uint64_t n = bench_argument(argc, argv, 1, 20000000);

        return resha_main(program, &n);
}
