/* SPDX-License-Identifier: MIT */
/* C5: a queue between two producers and two consumers. It holds two jobs, so producers wait when it is full; join waits
 * until all was processed; shut down, it sends the consumers home. See it with RESHA_TIMELINE=1. */
#include <stdio.h>

#include <resha/resha.h>

enum { EACH = 4, JOBS = 2 * EACH };

struct work {
        resha_queue *queue;
        resha_instant start;
        int done[JOBS], count; /* the jobs in the order in which they were finished */
};

struct worker {
        struct work *work;
        int number;
};

static double seconds(const struct work *w)
{
        return (double)resha_between(w->start, resha_now()).ns / 1e9;
}

static int produce(void *arg)
{
        const struct worker *me = arg;

        for (int i = 1; i <= EACH; i++) {
                int job = me->number * 10 + i;
                int rc = resha_queue_put(me->work->queue, &job); /* waits while two are inside */
                if (rc <= 0)
                        return rc; /* 0: shut down */
                printf("%.1f s: %d put\n", seconds(me->work), job);
        }
        return 0;
}

static int process(const struct worker *me, int job)
{
        struct work *w = me->work;
        int rc = resha_sleep(RESHA_MS(me->number == 1 ? 1000 : 1700));

        if (rc >= 0)
                w->done[w->count++] = job;
        resha_queue_task_done(w->queue); /* also when cancelled: it is not worked on any more */
        return rc;
}

static int consume(void *arg)
{
        const struct worker *me = arg;
        int job, rc;

        while ((rc = resha_queue_get(me->work->queue, &job)) == 1) { /* 0: shut down, and nothing is left */
                rc = process(me, job);
                if (rc < 0)
                        break;
        }
        if (rc < 0)
                resha_queue_shutdown_now(me->work->queue); /* nobody waits for a consumer that is gone */
        return rc;
}

static int produce_all(struct work *w)
{
        struct worker producers[] = { { w, 1 }, { w, 2 } };
        int rc = resha_gather(produce, producers, 2, sizeof producers[0], NULL);

        return rc < 0 ? rc : resha_queue_join(w->queue);
}

static int program(void *arg)
{
        resha_queue *queue RESHA_CLEANUP(resha_queue_freep) = NULL;
        struct work w = { .start = resha_now() };
        struct worker consumers[] = { { &w, 1 }, { &w, 2 } };

        (void)arg;
        int rc = resha_queue_new(sizeof(int), 2, NULL, &queue);
        if (rc < 0)
                return rc;
        w.queue = queue;
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (int i = 0; i < 2; i++)
                resha_spawn(&g, consume, &consumers[i]);
        rc = produce_all(&w);
        if (rc >= 0)
                printf("%.1f s: all processed\n", seconds(&w));
        resha_queue_shutdown(queue);
        rc = resha_group_end(&g, rc);
        printf("finished:");
        for (int i = 0; i < w.count; i++)
                printf(" %d", w.done[i]);
        puts("");
        return rc;
}

int main(void)
{
        return resha_main(program, NULL);
}
