/* SPDX-License-Identifier: MIT */
/* What the clients of `requests` ask: tasks hand numbers round in a ring of queues, and look whether each is the next
 * one. It ends with SIGTERM, and says how many went by; a number that is lost, or comes twice, is a failure. */

#include <signal.h>
#include <stdio.h>

#include <resha/resha.h>

enum { TASKS = 50 };

static struct {
        resha_queue *queues[TASKS];
        unsigned long long passed;
} ring;

static int hands_on(void *arg)
{
        unsigned number = *(unsigned *)arg;
        unsigned long long item, expected = number;

        for (;;) {
                int rc = resha_queue_get(ring.queues[number], &item);
                if (rc <= 0)
                        return rc;
                if (item != expected)
                        return resha_fail(-EIO, "%llu came in place of %llu", item, expected);
                ring.passed++;
                expected += TASKS;
                item++;
                if (item % (10 * TASKS) == 0 && (rc = resha_sleep(RESHA_MS(1))) < 0)
                        return rc;
                rc = resha_queue_put(ring.queues[(number + 1) % TASKS], &item);
                if (rc <= 0)
                        return rc;
        }
}

static int stops(void *arg)
{
        static const int signals[] = { SIGTERM };
        int signal, rc = resha_signal_wait(signals, 1, &signal);

        (void)arg;
        for (int i = 0; i < TASKS; i++)
                resha_queue_shutdown(ring.queues[i]);
        return rc < 0 ? rc : 0;
}

static int program(void *arg)
{
        static unsigned numbers[TASKS];
        unsigned long long first = 0;
        RESHA_GROUP(g);

        (void)arg;
        for (unsigned i = 0; i < TASKS; i++) {
                int rc = resha_queue_new(sizeof first, 1, NULL, &ring.queues[i]);
                if (rc < 0)
                        return rc;
                numbers[i] = i;
        }
        resha_group_begin(&g, NULL);
        for (unsigned i = 0; i < TASKS; i++)
                resha_spawn(&g, hands_on, &numbers[i]);
        resha_spawn(&g, stops, NULL);
        int rc = resha_queue_put(ring.queues[0], &first);
        puts("ready");
        fflush(stdout);
        rc = resha_group_end(&g, rc < 0 ? rc : 0);
        for (unsigned i = 0; i < TASKS; i++)
                resha_queue_free(ring.queues[i]);
        printf("%llu numbers in order\n", ring.passed);
        return rc;
}

int main(void)
{
        return resha_main(program, NULL);
}
