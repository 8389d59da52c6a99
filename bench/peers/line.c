/* SPDX-License-Identifier: MIT */
/* The least that a channel of one place costs between two processors: two threads pass a word there and back, each
 * spinning for it.
 *
 *     peer-line [TURNS] */

#include <pthread.h>
#include <stdatomic.h>

#include "lib/bench.h"

static _Alignas(128) struct {
        atomic_uint_fast64_t turn;
        char apart[120];
} line;

/* Waits for each turn of its own, from `first` on, and passes it on. */
static void pass(uint64_t first, uint64_t turns)
{
        for (uint64_t i = first; i < 2 * turns; i += 2) {
                while (atomic_load_explicit(&line.turn, memory_order_acquire) != i)
#if defined(__x86_64__)
                        __builtin_ia32_pause();
#else
                        ;
#endif
                atomic_store_explicit(&line.turn, i + 1, memory_order_release);
        }
}

static void *other(void *arg)
{
        pass(1, *(uint64_t *)arg);
        return NULL;
}

static int both(void *arg, uint64_t turns)
{
        pthread_t thread;

        (void)arg;
        atomic_store(&line.turn, 0);
        int rc = pthread_create(&thread, NULL, other, &turns);
        if (rc)
                return -rc;
        pass(0, turns);
        pthread_join(thread, NULL);
        return 0;
}

int main(int argc, char **argv)
{
        return bench_measure(both, NULL, bench_argument(argc, argv, 1, 5000000)) < 0;
}
