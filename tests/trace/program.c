/* SPDX-License-Identifier: MIT */
/* What is traced by the tests: tasks that wait for each other in all ways.
 *
 *     trace-program mix           a bit of everything
 *     trace-program loops         the same on two loops at once, and then once more on one
 *     trace-program many N        N tasks of one call each, some at a time
 *     trace-program flood N       N tasks made in one go, before any of them runs */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <resha/resha.h>

struct talk {
        resha_mutex lock;
        resha_queue *queue;
        resha_stream *ends[2];
};

static int holder(void *arg)
{
        struct talk *t = arg;
        int rc = resha_mutex_lock(&t->lock);

        if (rc < 0)
                return rc;
        rc = resha_sleep(RESHA_MS(3));
        resha_mutex_unlock(&t->lock);
        return rc;
}

static int producer(void *arg)
{
        struct talk *t = arg;
        int rc = resha_task_set_name("a \"producer\"\\\n\xff of \xe2\x82\xac and more than forty-seven bytes");

        for (int i = 0; i < 5 && rc >= 0; i++) {
                rc = resha_queue_put(t->queue, &i);
                if (rc >= 0)
                        rc = resha_yield();
        }
        resha_queue_shutdown(t->queue);
        return rc;
}

static int consumer(void *arg)
{
        struct talk *t = arg;
        int item, rc;

        while ((rc = resha_queue_get(t->queue, &item)) > 0) {}
        return rc;
}

static int writer(void *arg)
{
        struct talk *t = arg;
        int rc = resha_sleep(RESHA_MS(2));

        return rc < 0 ? rc : (int)resha_write_all(t->ends[1], "hello", 5, NULL);
}

static int reader(void *arg)
{
        struct talk *t = arg;
        char text[5];
        int rc = (int)resha_read_exactly(t->ends[0], text, sizeof text);

        return rc < 0 ? rc : 0;
}

static int sleeper(void *arg)
{
        (void)arg;
        return resha_sleep(RESHA_S(60));
}

static int late(void *arg)
{
        RESHA_GROUP(g);

        (void)arg;
        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        resha_spawn(&g, sleeper, NULL);
        int rc = resha_sleep(RESHA_MS(4));
        return resha_group_end(&g, rc);
}

static int talk(struct talk *t)
{
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, holder, t);
        resha_spawn(&g, holder, t);
        resha_spawn(&g, consumer, t);
        resha_spawn(&g, producer, t);
        resha_spawn(&g, reader, t);
        resha_spawn(&g, writer, t);
        resha_spawn(&g, late, t);
        return resha_group_end(&g, 0);
}

static int mix(void *arg)
{
        struct talk t = { 0 };

        (void)arg;
        int rc = resha_queue_new(sizeof(int), 1, NULL, &t.queue);
        if (rc == 0)
                rc = resha_stream_pair(t.ends);
        if (rc == 0)
                rc = talk(&t);
        for (int i = 0; i < 2; i++)
                if (t.ends[i])
                        resha_stream_close(t.ends[i]);
        resha_queue_free(t.queue);
        return rc;
}

static int one(void *arg)
{
        (void)arg;
        return resha_yield();
}

static int many(void *arg)
{
        size_t n = *(size_t *)arg;
        RESHA_GROUP(g);

        resha_group_begin(&g, &(resha_group_opts){ .limit = 8 });
        for (size_t i = 0; i < n; i++)
                resha_spawn(&g, one, NULL);
        return resha_group_end(&g, 0);
}

static int flood(void *arg)
{
        size_t n = *(size_t *)arg;
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        for (size_t i = 0; i < n; i++)
                resha_spawn(&g, one, NULL);
        return resha_group_end(&g, 0);
}

int main(int argc, char **argv)
{
        size_t n = argc > 2 ? strtoul(argv[2], NULL, 10) : 1000;
        int items[2] = { 0 };

        if (argc > 1 && strcmp(argv[1], "many") == 0)
                return resha_main(many, &n);
        if (argc > 1 && strcmp(argv[1], "flood") == 0)
                return resha_main(flood, &n);
        if (argc > 1 && strcmp(argv[1], "loops") == 0) {
                int rc = resha_run_loops(mix, items, 2, sizeof items[0], NULL);
                return rc < 0 ? 1 : resha_main(mix, NULL);
        }
        return resha_main(mix, NULL);
}
