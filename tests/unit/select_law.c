/* SPDX-License-Identifier: MIT */
/* What holds for any cases of any selects: tasks that choose at random among queues of every kind, events and instants,
 * the same object several times and both sides of a rendezvous included, and are cancelled at random.
 *
 *  1. Each item is at one place. A put that was not done has left its item where it was, a get that was not done has
 *     taken none.
 *  2. Whenever everybody is parked, nobody waits for what could be done: no wake-up is lost.
 *  3. What is left at the end is what the queues say, and none of it is unfinished work. */

#include <stdlib.h>
#include <string.h>

#include <resha/test.h>

#include "core/core.h"
#include "job.h"

enum { QUEUES = 4, EVENTS = 2, CHOOSERS = 6, ROUNDS = 14, CASES = 5, ITEMS = CHOOSERS * ROUNDS * CASES };

enum place { NOWHERE, OFFERED, TAKEN, DROPPED };

struct chooser {
        resha_case cases[CASES];
        size_t n; /* of the cases that it waits with now; 0: none */
        int item[CASES];
        resha_scope scope;
        bool in_scope;
};

static struct law {
        resha_queue *queue[QUEUES];
        size_t capacity[QUEUES];
        bool shut[QUEUES];
        resha_event event[EVENTS];
        struct chooser chooser[CHOOSERS];
        int ended, items;
        enum place place[ITEMS];
        size_t got, waits; /* of all seeds: that it is no test of nothing */
} law;

static unsigned chance(unsigned below)
{
        return (unsigned)(resha_test_random() >> 16) % below;
}

static void move(int item, enum place from, enum place to)
{
        ASSERT_TRUE(item >= 0 && item < law.items);
        ASSERT_EQ(law.place[item], from);
        law.place[item] = to;
}

static void drop(void *item)
{
        move(*(int *)item, OFFERED, DROPPED);
}

static int by_remainder(const void *a, const void *b)
{
        return *(const int *)a % 3 - *(const int *)b % 3;
}

/* ---- one choice ---- */

static resha_case random_case(int *item)
{
        resha_queue *q = law.queue[chance(QUEUES)];
        unsigned kind = chance(12);

        *item = -1;
        if (kind < 5)
                return RESHA_ON_GET(q, item);
        if (kind < 9) {
                *item = law.items++;
                move(*item, NOWHERE, OFFERED); /* the other side may run first */
                return RESHA_ON_PUT(q, item);
        }
        return kind == 9    ? RESHA_ON_EVENT(&law.event[chance(EVENTS)])
               : kind == 10 ? RESHA_ON_TIME(resha_after(RESHA_US(chance(30))))
                            : RESHA_ON_GET(NULL, item);
}

static void settle(resha_case *c, int *item, bool done)
{
        if (c->_on._queue && c->_kind == RESHA_CASE_PUT && !done)
                move(*item, OFFERED, NOWHERE);
        if (c->_on._queue && c->_kind == RESHA_CASE_GET && !done)
                ASSERT_EQ(*item, -1);
        if (!done || c->_kind != RESHA_CASE_GET)
                return;
        move(*item, OFFERED, TAKEN);
        law.got++;
        ASSERT_OK(resha_queue_task_done(c->_on._queue));
}

/* By a call of its own, where there is one. */
static int alone(resha_case *c)
{
        int rc = c->_kind == RESHA_CASE_GET ? resha_queue_get(c->_on._queue, c->_item._to)
                                            : resha_queue_put(c->_on._queue, c->_item._from);

        c->result = rc;
        return rc < 0 ? rc : 0;
}

static void choose(struct chooser *w)
{
        size_t n = 1 + chance(CASES);
        int rc;

        for (size_t i = 0; i < n; i++)
                w->cases[i] = random_case(&w->item[i]);
        w->n = n;
        if (n == 1 && w->cases[0]._on._queue && w->cases[0]._kind <= RESHA_CASE_PUT && chance(2))
                rc = alone(w->cases);
        else
                rc = chance(8) ? resha_select(w->cases, n) : resha_try_select(w->cases, n);
        w->n = 0;
        ASSERT_TRUE(rc >= 0 || rc == -ECANCELED || rc == -EAGAIN);
        for (size_t i = 0; i < n; i++) {
                bool queue = w->cases[i]._kind <= RESHA_CASE_PUT;
                settle(&w->cases[i], &w->item[i], rc == (int)i && queue && w->cases[i].result == 1);
        }
}

static void meddle(void)
{
        unsigned q = chance(QUEUES), e = chance(EVENTS);

        if (chance(3))
                resha_event_set(&law.event[e]);
        resha_event_clear(&law.event[e]);
        if (chance(100))
                return;
        law.shut[q] = true;
        (chance(2) ? resha_queue_shutdown : resha_queue_shutdown_now)(law.queue[q]);
}

static int chooses(void *arg)
{
        struct chooser *w = arg;

        for (int i = 0; i < ROUNDS; i++) {
                w->scope = (resha_scope){ { 0 } };
                resha_timeout_begin(&w->scope, chance(3) ? RESHA_FOREVER : RESHA_US(chance(20)));
                w->in_scope = true;
                int rc = chance(4) ? 0 : resha_yield();
                choose(w);
                if (chance(5) == 0)
                        meddle();
                w->in_scope = false;
                (void)!resha_scope_end(&w->scope, rc);
        }
        law.ended++;
        return 0;
}

/* ---- at rest ---- */

static bool other_side_waits(const struct chooser *self, const resha_case *c)
{
        for (const struct chooser *w = law.chooser; w < law.chooser + CHOOSERS; w++)
                for (size_t i = 0; w != self && i < w->n; i++)
                        if (w->cases[i]._kind <= RESHA_CASE_PUT && w->cases[i]._kind != c->_kind &&
                            w->cases[i]._on._queue == c->_on._queue)
                                return true;
        return false;
}

static bool could_be_done(const struct chooser *w, const resha_case *c)
{
        size_t q = 0;

        if (c->_kind == RESHA_CASE_TIME)
                return c->_on._ns <= resha_now().ns;
        if (!c->_on._queue)
                return false;
        if (c->_kind == RESHA_CASE_EVENT)
                return resha_event_is_set(c->_on._event);
        while (law.queue[q] != c->_on._queue)
                q++;
        size_t count = resha_queue_count(c->_on._queue);
        return law.shut[q] || other_side_waits(w, c) ||
               (c->_kind == RESHA_CASE_GET ? count > 0 : count < law.capacity[q]);
}

static void look_at_rest(void)
{
        if (rs_loop_current->ready_first)
                return; /* some have been woken, and have not run */
        for (struct chooser *w = law.chooser; w < law.chooser + CHOOSERS; w++)
                for (size_t i = 0; i < w->n; i++) {
                        ASSERT_FALSE(could_be_done(w, &w->cases[i]));
                        law.waits++;
                }
}

/* ---- all of it ---- */

static void random_queue(size_t i)
{
        unsigned kind = i ? chance(5) : 0;
        resha_queue_opts opts = { .order = kind <= 2 ? (enum resha_queue_order)kind : RESHA_FIFO, .drop = drop };

        opts.compare = opts.order == RESHA_PRIORITY ? by_remainder : NULL;
        law.capacity[i] = i == 0 || kind == 3 ? 0 : kind == 4 ? RESHA_UNBOUNDED : 1 + chance(2);
        ASSERT_OK(resha_queue_new_opt(sizeof(int), law.capacity[i], &opts, &law.queue[i]));
}

static void look_at_the_end(void)
{
        size_t inside = 0, offered = 0;

        for (size_t i = 0; i < QUEUES; i++) {
                ASSERT_EQ(resha_queue_unfinished(law.queue[i]), resha_queue_count(law.queue[i]));
                inside += resha_queue_count(law.queue[i]);
        }
        for (int i = 0; i < law.items; i++)
                offered += law.place[i] == OFFERED;
        ASSERT_EQ(offered, inside);
        for (size_t i = 0; i < QUEUES; i++)
                resha_queue_free(law.queue[i]);
        for (int i = 0; i < law.items; i++)
                ASSERT_TRUE(law.place[i] != OFFERED);
}

static int any_selects(__attribute__((unused)) void *arg)
{
        law = (struct law){ .got = law.got, .waits = law.waits };
        for (size_t i = 0; i < QUEUES; i++)
                random_queue(i);
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (size_t i = 0; i < CHOOSERS; i++)
                resha_spawn(&g, chooses, &law.chooser[i]);
        while (law.ended < CHOOSERS) {
                struct chooser *victim = &law.chooser[chance(CHOOSERS)];
                bool rest = chance(3) == 0;
                ASSERT_OK(rest ? resha_sleep(RESHA_US(100)) : resha_yield());
                if (rest)
                        look_at_rest();
                if (victim->in_scope && (rest || chance(3) == 0))
                        resha_scope_cancel(&victim->scope);
        }
        ASSERT_OK(resha_group_end(&g, 0));
        look_at_the_end();
        return 0;
}

TEST(select_of_anything_loses_no_item_and_no_wake_up)
{
        SIM_ONLY();
        RUN_SEEDS(any_selects, NULL, 400);
        ASSERT_TRUE(law.got > 1000);
        ASSERT_TRUE(law.waits > 1000);
}
