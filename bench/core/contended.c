/* SPDX-License-Identifier: MIT */
/* What does a mutex cost that is wanted by others, each time it is unlocked?
 *
 *     core-contended [LOCKS]
 *
 * Four tasks lock, yield and unlock, so that three wait whenever one unlocks. The peer's goroutines do the same with
 * sync.Mutex and runtime.Gosched(). */

#include <resha/resha.h>

#include "lib/bench.h"

enum { TASKS = 4 };

struct shared {
        resha_mutex mutex;
        uint64_t locks, counter;
};

static int locker(void *arg)
{
        struct shared *s = arg;
        int rc = 0;

        for (uint64_t i = 0; i < s->locks && rc == 0; i++) {
                if ((rc = resha_mutex_lock(&s->mutex)) < 0)
                        break;
                uint64_t before = s->counter;
                rc = resha_yield();
                s->counter = before + 1;
                if (rc == 0)
                        rc = resha_mutex_unlock(&s->mutex);
        }
        return rc;
}

static int contend(void *arg, uint64_t n)
{
        struct shared s = { .locks = n / TASKS };
        RESHA_GROUP(g);

        (void)arg;
        resha_group_begin(&g, NULL);
        for (int i = 0; i < TASKS; i++)
                resha_spawn(&g, locker, &s);
        int rc = resha_group_end(&g, 0);
        if (rc == 0 && s.counter != s.locks * TASKS)
                return resha_fail(-EPROTO, "the mutex let two in: %llu", (unsigned long long)s.counter);
        return rc;
}

static int program(void *arg)
{
        return bench_measure(contend, NULL, *(uint64_t *)arg);
}

int main(int argc, char **argv)
{
        uint64_t n = bench_argument(argc, argv, 1, 10000000);

        return resha_main(program, &n);
}
