/* SPDX-License-Identifier: MIT */
/* pthread_mutex_lock() and unlock when nobody else wants it: the peer of bench/core/mutex.c.
 *
 *     peer-mutex [LOCKS]
 *
 * In a process of one thread, where glibc leaves the atomic operations out: the hardest peer. */

#include <pthread.h>

#include "lib/bench.h"

static int locks(void *arg, uint64_t n)
{
        pthread_mutex_t *m = arg;
        int rc = 0;

        for (uint64_t i = 0; i < n && rc == 0; i++) {
                rc = pthread_mutex_lock(m);
                if (rc == 0)
                        rc = pthread_mutex_unlock(m);
        }
        return -rc;
}

int main(int argc, char **argv)
{
        static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

        return bench_measure(locks, &mutex, bench_argument(argc, argv, 1, 20000000)) < 0;
}
