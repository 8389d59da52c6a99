/* SPDX-License-Identifier: MIT */
/* Queues and select under every seed, cancel and failure: each item is at one place at every instant, what was taken is
 * told done, of a select exactly one case happens, and nobody waits for ever. */

#include <string.h>

#include "scenario.h"

enum { PRODUCERS = 2, EACH = 4, ITEMS = PRODUCERS * EACH };

/* Where each item is. Its mover says so before the call by which it moves: the other side may run first. */
enum place { NOT_MADE, QUEUED, HELD, DONE, DROPPED };

struct belt {
        resha_queue *q, *out;
        char place[ITEMS];
        int next_producer, joined;
        resha_event stop;
        bool stops;
};

static struct belt *belt; /* drop functions get the item only */

static void move(int item, enum place from, enum place to)
{
        ASSERT_TRUE(item >= 0 && item < ITEMS);
        ASSERT_EQ(belt->place[item], from);
        belt->place[item] = (char)to;
}

static void drop(void *item)
{
        move(*(int *)item, QUEUED, DROPPED);
}

/* Odd ones before even ones: many are equal. */
static int odd_first(const void *a, const void *b)
{
        return *(const int *)b % 2 - *(const int *)a % 2;
}

static int produce(void *arg)
{
        struct belt *s = arg;
        int base = EACH * s->next_producer++;

        for (int i = 0; i < EACH; i++) {
                int item = base + i;
                move(item, NOT_MADE, QUEUED);
                int rc = resha_queue_put(s->q, &item);
                if (rc <= 0) {
                        move(item, QUEUED, NOT_MADE);
                        return rc;
                }
                if (i == 1 && (rc = resha_sleep(RESHA_US(10))) < 0)
                        return rc;
        }
        return 0;
}

/* One that ends before its time must not leave the others waiting. */
static int ends(struct belt *s, int rc)
{
        if (rc < 0)
                resha_queue_shutdown_now(s->q);
        return rc;
}

/* ---- one queue, of each kind: producers, consumers, and one who waits until all is done ---- */

static int consume(void *arg)
{
        struct belt *s = arg;
        int rc, item;

        while ((rc = resha_queue_get(s->q, &item)) > 0) {
                move(item, QUEUED, HELD);
                rc = resha_sleep(RESHA_US(5));
                move(item, HELD, DONE);
                int done = resha_queue_task_done(s->q);
                ASSERT_EQ(done, 0);
                if (rc < 0)
                        break;
        }
        return ends(s, rc);
}

static int produce_and_join(void *arg)
{
        struct belt *s = arg;
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        for (int i = 0; i < PRODUCERS; i++)
                resha_spawn(&g, produce, s);
        int rc = resha_group_end(&g, 0);
        if (rc >= 0)
                rc = resha_queue_join(s->q);
        if (rc == 0) {
                ASSERT_EQ(resha_queue_unfinished(s->q), 0);
                s->joined++;
        }
        resha_queue_shutdown(s->q);
        return rc;
}

static int kind_main(struct belt *s, size_t capacity, const resha_queue_opts *opts)
{
        resha_queue *q RESHA_CLEANUP(resha_queue_freep) = NULL;

        belt = s;
        int rc = resha_queue_new_opt(sizeof(int), capacity, opts, &q);
        if (rc < 0)
                return rc;
        s->q = q;
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, produce_and_join, s);
        for (int i = 0; i < 2; i++)
                resha_spawn(&g, consume, s);
        rc = resha_group_end(&g, 0);
        ASSERT_EQ(resha_queue_unfinished(q), resha_queue_count(q));
        return rc;
}

static void kind_check(void *state, int rc, const resha_test_trial *t)
{
        struct belt *s = state;

        (void)rc;
        for (int i = 0; i < ITEMS; i++) {
                ASSERT_TRUE(s->place[i] == NOT_MADE || s->place[i] == DONE || s->place[i] == DROPPED);
                if (!t->disturbed)
                        ASSERT_EQ(s->place[i], DONE);
        }
        if (!t->disturbed)
                ASSERT_EQ(s->joined, 1);
}

#define KIND(name, capacity, ...) \
        static int name##_main(void *arg) \
        { \
                return kind_main(arg, capacity, &(resha_queue_opts){ .drop = drop, __VA_ARGS__ }); \
        } \
        SCENARIO(sim_queue_##name, name##_main, .seeds = 10, .state = sizeof(struct belt), .check = kind_check)

KIND(bounded, 2, .order = RESHA_FIFO)
KIND(latest_first, 2, .order = RESHA_LIFO)
KIND(smallest_first, 2, .order = RESHA_PRIORITY, .compare = odd_first)
KIND(unbounded, RESHA_UNBOUNDED, .order = RESHA_FIFO)
KIND(unbounded_smallest_first, RESHA_UNBOUNDED, .order = RESHA_PRIORITY, .compare = odd_first)
KIND(rendezvous, 0, .order = RESHA_FIFO)

/* ---- shut down at once, in the middle ---- */

static int stops_it(void *arg)
{
        struct belt *s = arg;
        int rc = resha_sleep(RESHA_US(12));

        resha_queue_shutdown_now(s->q);
        return rc;
}

static int shutdown_main(void *arg)
{
        struct belt *s = arg;
        resha_queue *q RESHA_CLEANUP(resha_queue_freep) = NULL;

        belt = s;
        int rc = resha_queue_new(sizeof(int), 3, drop, &q);
        if (rc < 0)
                return rc;
        s->q = q;
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, produce_and_join, s);
        resha_spawn(&g, consume, s);
        resha_spawn(&g, stops_it, s);
        rc = resha_group_end(&g, 0);
        ASSERT_EQ(resha_queue_unfinished(q), 0);
        ASSERT_EQ(resha_queue_count(q), 0);
        return rc;
}

static void shutdown_check(void *state, int rc, const resha_test_trial *t)
{
        struct belt *s = state;

        (void)rc;
        for (int i = 0; i < ITEMS; i++)
                ASSERT_TRUE(s->place[i] == NOT_MADE || s->place[i] == DONE || s->place[i] == DROPPED);
        if (!t->disturbed)
                ASSERT_EQ(s->joined, 1);
}

SCENARIO(sim_queue_shutdown_now, shutdown_main, .seeds = 20, .state = sizeof(struct belt), .check = shutdown_check)

/* ---- select: a relay between a queue and a rendezvous, which keeps one item in hand ---- */

static int relay(void *arg)
{
        struct belt *s = arg;
        int item = -1, in = -1;

        for (;;) {
                resha_case c[] = { RESHA_ON_PUT(item >= 0 ? s->out : NULL, &item),
                                   RESHA_ON_GET(item < 0 ? s->q : NULL, &in), RESHA_ON_EVENT(&s->stop),
                                   RESHA_ON_TIME(resha_after(RESHA_US(3))) };
                if (item >= 0)
                        move(item, HELD, QUEUED);
                int which = resha_select(c, 4);
                if (which == 0 && c[0].result == 1) {
                        item = -1;
                } else if (item >= 0) {
                        move(item, QUEUED, HELD);
                }
                if (which == 1 && c[1].result == 1) {
                        move(in, QUEUED, HELD);
                        item = in;
                }
                bool over = which < 0 || which == 2 || (which < 2 && c[which].result == 0);
                if (!over)
                        continue;
                if (item >= 0)
                        move(item, HELD, DROPPED);
                resha_queue_shutdown(s->out);
                if (which < 0 || which == 2)
                        resha_queue_shutdown_now(s->q);
                return which < 0 ? which : 0;
        }
}

/* Both ends of the rendezvous may choose. */
static int take(void *arg)
{
        struct belt *s = arg;

        for (;;) {
                int item = -1;
                resha_case c[] = { RESHA_ON_EVENT(&s->stop), RESHA_ON_GET(s->out, &item) };
                int which = resha_select(c, 2);
                if (which < 0) {
                        resha_queue_shutdown(s->out);
                        return ends(s, which);
                }
                if (which == 0 || c[1].result == 0)
                        return 0;
                move(item, QUEUED, DONE);
        }
}

static int produce_all(void *arg)
{
        struct belt *s = arg;
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        for (int i = 0; i < PRODUCERS; i++)
                resha_spawn(&g, produce, s);
        int rc = resha_group_end(&g, 0);
        resha_queue_shutdown(s->q);
        return rc;
}

static int stops_all(void *arg)
{
        struct belt *s = arg;
        int rc = resha_sleep(RESHA_US(12));

        resha_event_set(&s->stop);
        return rc;
}

static int relay_main(void *arg)
{
        struct belt *s = arg;
        resha_queue *q RESHA_CLEANUP(resha_queue_freep) = NULL, *out RESHA_CLEANUP(resha_queue_freep) = NULL;

        belt = s;
        int rc = resha_queue_new(sizeof(int), 1, drop, &q);
        if (rc == 0)
                rc = resha_queue_new(sizeof(int), 0, drop, &out);
        if (rc < 0)
                return rc;
        s->q = q;
        s->out = out;
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, produce_all, s);
        resha_spawn(&g, relay, s);
        for (int i = 0; i < 2; i++)
                resha_spawn(&g, take, s);
        if (s->stops)
                resha_spawn(&g, stops_all, s);
        return resha_group_end(&g, 0);
}

static void relay_check(void *state, int rc, const resha_test_trial *t)
{
        struct belt *s = state;

        (void)rc;
        for (int i = 0; i < ITEMS; i++) {
                ASSERT_TRUE(s->place[i] == NOT_MADE || s->place[i] == DONE || s->place[i] == DROPPED);
                if (!t->disturbed && !s->stops)
                        ASSERT_EQ(s->place[i], DONE);
        }
}

SCENARIO(sim_select_relay, relay_main, .seeds = 20, .state = sizeof(struct belt), .check = relay_check)

static int stopped_main(void *arg)
{
        ((struct belt *)arg)->stops = true;
        return relay_main(arg);
}

SCENARIO(sim_select_relay_stopped, stopped_main, .seeds = 20, .state = sizeof(struct belt), .check = relay_check)

/* ---- select: whoever wants meets whoever wants ---- */

enum { MEETERS = 4, ROUNDS = 3 };

struct meeting {
        resha_queue *q;
        int given, taken, next, over;
        resha_task first;
};

static int meet(void *arg)
{
        struct meeting *s = arg;
        int self = s->next++, rc = 0;

        for (int i = 0; i < ROUNDS && rc >= 0; i++) {
                int other = -1;
                resha_case c[] = { RESHA_ON_GET(s->q, &other), RESHA_ON_PUT(s->q, &self), RESHA_ON_TASK(&s->first),
                                   RESHA_ON_TIME(resha_after(RESHA_US(50))) };
                rc = i ? resha_sleep(RESHA_US(20)) : 0;
                rc = rc < 0 ? rc : resha_select(c, 4);
                ASSERT_TRUE(rc != 0 || (other >= 0 && other != self));
                s->taken += rc == 0;
                s->given += rc == 1;
                s->over += rc == 2 || rc == 3;
        }
        return rc < 0 ? rc : 0;
}

static int sleeps(void *arg)
{
        (void)arg;
        return resha_sleep(RESHA_US(70));
}

static int meeting_main(void *arg)
{
        struct meeting *s = arg;
        resha_queue *q RESHA_CLEANUP(resha_queue_freep) = NULL;

        int rc = resha_queue_new(sizeof(int), 0, NULL, &q);
        if (rc < 0)
                return rc;
        s->q = q;
        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .keep_going = true });
        rc = resha_spawn_task(&g, sleeps, s, &s->first);
        for (int i = 0; i < MEETERS && rc == 0; i++)
                rc = resha_spawn(&g, meet, s);
        return resha_group_end(&g, rc);
}

static void meeting_check(void *state, int rc, const resha_test_trial *t)
{
        struct meeting *s = state;

        (void)rc;
        ASSERT_EQ(s->given, s->taken); /* also of those who were cancelled: done or not done, never half */
        if (!t->disturbed)
                ASSERT_EQ(s->given + s->taken + s->over, MEETERS * ROUNDS);
}

SCENARIO(sim_select_meeting, meeting_main, .seeds = 30, .state = sizeof(struct meeting), .check = meeting_check)
