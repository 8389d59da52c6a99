/* SPDX-License-Identifier: MIT */
/* What does a timeout scope cost, from begin to end, while many timers are pending?
 *
 *     core-timeout [TIMEOUTS [PENDING]]
 *
 * The pending timers are those of sleeping tasks, between one and two hours ahead; the timeouts lie at random among
 * them. The peer has as many time.AfterFunc() pending, and does AfterFunc() and Stop(). */

#include <resha/resha.h>

#include "lib/bench.h"

enum { DURATIONS = 1024 };

struct job {
        uint64_t timeouts, pending;
        uint64_t random;
        resha_duration durations[DURATIONS];
};

static resha_duration one_to_two_hours(uint64_t *random)
{
        const uint64_t hour = UINT64_C(3600000000000);

        return RESHA_NS(hour + bench_random(random) % hour);
}

static int sleeper(void *arg)
{
        struct job *j = arg;

        return resha_sleep(one_to_two_hours(&j->random));
}

static int timeouts(void *arg, uint64_t n)
{
        const struct job *j = arg;
        int rc = 0;

        for (uint64_t i = 0; i < n && rc == 0; i++) {
                RESHA_SCOPE(s);
                resha_timeout_begin(&s, j->durations[i % DURATIONS]);
                rc = resha_scope_end(&s, 0);
        }
        return rc;
}

static int program(void *arg)
{
        struct job *j = arg;
        RESHA_GROUP(g);

        for (int i = 0; i < DURATIONS; i++)
                j->durations[i] = one_to_two_hours(&j->random);
        resha_group_begin(&g, NULL);
        for (uint64_t i = 0; i < j->pending; i++)
                resha_spawn(&g, sleeper, j);
        int rc = resha_yield(); /* all run, and sleep */
        if (rc == 0)
                rc = bench_measure(timeouts, j, j->timeouts);
        resha_group_cancel(&g);
        return resha_group_end(&g, rc);
}

int main(int argc, char **argv)
{
        static struct job j = { .random = 1 };

        j.timeouts = bench_argument(argc, argv, 1, 5000000);
        j.pending = bench_argument(argc, argv, 2, 100000);
        return resha_main(program, &j);
}
