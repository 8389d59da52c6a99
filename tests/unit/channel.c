/* SPDX-License-Identifier: MIT */
/* Channels whose ends are all on one loop: cancelled, in a select, given up, in a deadlock; and what holds for any.
 * With other loops and threads: tests/real/channel.c. */

#include <stdlib.h>

#include <resha/test.h>

#include "core/core.h"
#include "job.h"

struct ends {
        resha_sender *tx;
        resha_receiver *rx;
};

static void ends_close(struct ends *e)
{
        resha_sender_closep(&e->tx);
        resha_receiver_closep(&e->rx);
}

static struct ends ends_of_ints(size_t capacity)
{
        struct ends e = { 0 };

        ASSERT_OK(resha_channel_new(sizeof(int), capacity, &e.tx, &e.rx));
        return e;
}

#define CHANNEL(c, capacity) struct ends c RESHA_CLEANUP(ends_close) = ends_of_ints(capacity)

/* ---- one task and another ---- */

struct actor {
        struct ends ends;
        int item, result;
        resha_task task;
};

static int sends(void *arg)
{
        struct actor *a = arg;

        a->result = resha_send(a->ends.tx, &a->item);
        return a->result < 0 ? a->result : 0;
}

static int receives(void *arg)
{
        struct actor *a = arg;

        a->result = resha_recv(a->ends.rx, &a->item);
        return a->result < 0 ? a->result : 0;
}

static void begin(resha_group *g, resha_fn *fn, struct actor *a)
{
        ASSERT_OK(resha_spawn_task(g, fn, a, &a->task));
        ASSERT_OK(resha_yield());
}

TASK(channel_first_come_first_served)
{
        CHANNEL(c, 1);
        struct actor a = { .ends = c }, b = { .ends = c };

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        begin(&g, receives, &a);
        begin(&g, receives, &b);
        for (int v = 1; v <= 2; v++)
                ASSERT_EQ(resha_send(c.tx, &v), 1);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(a.item, 1);
        ASSERT_EQ(b.item, 2);
        return 0;
}

TASK(channel_of_items_of_any_size)
{
        static const size_t sizes[] = { 1, 2, 3, 4, 7, 8, 12, 16, 24, 32, 100, 65536 };

        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
                struct ends e RESHA_CLEANUP(ends_close) = { 0 };
                static unsigned char item[65536];
                ASSERT_OK(resha_channel_new(sizes[i], 3, &e.tx, &e.rx));
                for (unsigned v = 0; v < 10; v++) {
                        item[0] = item[sizes[i] - 1] = (unsigned char)(7 * v);
                        ASSERT_EQ(resha_send(e.tx, item), 1);
                        item[0] = item[sizes[i] - 1] = 1;
                        ASSERT_EQ(resha_recv(e.rx, item), 1);
                        ASSERT_EQ(item[0], 7 * v);
                        ASSERT_EQ(item[sizes[i] - 1], 7 * v);
                }
        }
        return 0;
}

TASK(channel_send_that_is_cancelled_has_not_sent)
{
        CHANNEL(c, 1);
        struct actor a = { .ends = c, .item = 2 };
        int v = 1;

        ASSERT_EQ(resha_send(c.tx, &v), 1);
        ASSERT_EQ(status_when_cancelled(0, sends, &a), -ECANCELED);
        ASSERT_EQ(resha_recv(c.rx, &v), 1);
        ASSERT_EQ(v, 1);
        ASSERT_EQ(resha_try_recv(c.rx, &v), -EAGAIN);
        a.item = 0;
        ASSERT_EQ(status_when_cancelled(0, receives, &a), -ECANCELED);
        ASSERT_EQ(resha_send(c.tx, &(int){ 3 }), 1);
        ASSERT_EQ(resha_recv(c.rx, &v), 1);
        ASSERT_EQ(v, 3);
        ASSERT_EQ(a.item, 0);
        return 0;
}

/* Told, it is done before the cancel is looked at; and if somebody else was faster, it is cancelled. */
TASK(channel_cancel_after_the_wake_up_comes_too_late_or_loses_nothing)
{
        for (int taken = 0; taken < 2; taken++) {
                CHANNEL(c, 1);
                struct actor a = { .ends = c };
                int v = 5, status;

                RESHA_GROUP(g);
                resha_group_begin(&g, &(resha_group_opts){ .keep_going = true });
                begin(&g, receives, &a);
                ASSERT_EQ(resha_try_send(c.tx, &v), 1);
                if (taken)
                        ASSERT_EQ(resha_try_recv(c.rx, &v), 1);
                resha_task_cancel(&a.task);
                ASSERT_OK(resha_task_wait(&a.task, &status));
                ASSERT_EQ(a.result, taken ? -ECANCELED : 1);
                ASSERT_EQ(a.item, taken ? 0 : 5);
                ASSERT_EQ(resha_try_recv(c.rx, &v), -EAGAIN);
                ASSERT_OK(resha_group_end(&g, 0));
        }
        return 0;
}

TASK(channel_close_is_told_to_those_who_wait)
{
        CHANNEL(c, 1);
        struct actor a = { .ends = c, .item = 2 }, b = { .ends = c };

        ASSERT_EQ(resha_send(c.tx, &(int){ 1 }), 1);
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        begin(&g, sends, &a);
        resha_receiver_closep(&c.rx);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(a.result, 0);
        ends_close(&c);
        b.ends = c = ends_of_ints(1);
        RESHA_GROUP(h);
        resha_group_begin(&h, NULL);
        begin(&h, receives, &b);
        resha_sender_closep(&c.tx);
        ASSERT_OK(resha_group_end(&h, 0));
        ASSERT_EQ(b.result, 0);
        return 0;
}

static void count_drop(void *item)
{
        note("%d", *(int *)item);
}

TASK(channel_drops_what_nobody_received)
{
        struct ends c RESHA_CLEANUP(ends_close) = { 0 };

        ASSERT_OK(resha_channel_new_opt(sizeof(int), 4, &(resha_channel_opts){ .drop = count_drop }, &c.tx, &c.rx));
        for (int v = 1; v <= 3; v++)
                ASSERT_EQ(resha_send(c.tx, &v), 1);
        resha_receiver_closep(&c.rx);
        ASSERT_STR(notes(), "1 2 3");
        ASSERT_EQ(resha_send(c.tx, &(int){ 4 }), 0);
        return 0;
}

/* ---- select ---- */

struct chooser {
        struct ends in, out;
        resha_event *event;
        int64_t ms; /* 0: no case of time */
        int item, put, which, result;
        resha_task task;
};

static int chooses(void *arg)
{
        struct chooser *w = arg;
        resha_case c[] = { RESHA_ON_RECV(w->in.rx, &w->item), RESHA_ON_SEND(w->out.tx, &w->put),
                           RESHA_ON_EVENT(w->event), RESHA_ON_TIME(w->ms ? resha_after(MS(w->ms)) : RESHA_NEVER) };

        w->which = resha_select(c, 4);
        w->result = w->which < 0 ? w->which : c[w->which].result;
        return w->which < 0 ? w->which : 0;
}

static void begin_chooser(resha_group *g, struct chooser *w)
{
        resha_group_begin(g, NULL);
        ASSERT_OK(resha_spawn_task(g, chooses, w, &w->task));
        ASSERT_OK(resha_yield());
        ASSERT_FALSE(resha_task_done(&w->task, NULL));
}

TASK(select_receives_and_sends)
{
        CHANNEL(in, 1);
        CHANNEL(out, 1);
        struct chooser w = { .in = in, .out = out, .put = 5 };
        int v;

        ASSERT_OK(chooses(&w)); /* at once */
        ASSERT_EQ(w.which, 1);
        RESHA_GROUP(g);
        begin_chooser(&g, &w);
        ASSERT_EQ(resha_send(in.tx, &(int){ 7 }), 1);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(w.which, 0);
        ASSERT_EQ(w.result, 1);
        ASSERT_EQ(w.item, 7);
        w.put = 6;
        RESHA_GROUP(h);
        begin_chooser(&h, &w);
        ASSERT_EQ(resha_recv(out.rx, &v), 1);
        ASSERT_EQ(v, 5);
        ASSERT_OK(resha_group_end(&h, 0));
        ASSERT_EQ(w.which, 1);
        ASSERT_EQ(resha_recv(out.rx, &v), 1);
        ASSERT_EQ(v, 6);
        return 0;
}

TASK(select_of_closed_channels)
{
        CHANNEL(in, 1);
        CHANNEL(out, 1);
        struct chooser w = { .in = in };

        RESHA_GROUP(g);
        begin_chooser(&g, &w);
        resha_sender_closep(&in.tx);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(w.which, 0);
        ASSERT_EQ(w.result, 0);
        w = (struct chooser){ .out = out };
        ASSERT_EQ(resha_send(out.tx, &(int){ 1 }), 1);
        RESHA_GROUP(h);
        begin_chooser(&h, &w);
        resha_receiver_closep(&out.rx);
        ASSERT_OK(resha_group_end(&h, 0));
        ASSERT_EQ(w.which, 1);
        ASSERT_EQ(w.result, 0);
        return 0;
}

/* The item it was told of is somebody else's by then: it waits on. */
TASK(select_finds_that_another_was_faster)
{
        CHANNEL(in, 1);
        struct chooser w = { .in = in, .ms = 5 };
        resha_instant start = resha_now();
        int v = 1;

        RESHA_GROUP(g);
        begin_chooser(&g, &w);
        ASSERT_EQ(resha_try_send(in.tx, &v), 1);
        ASSERT_EQ(resha_try_recv(in.rx, &v), 1);
        ASSERT_OK(resha_sleep(MS(1)));
        ASSERT_FALSE(resha_task_done(&w.task, NULL));
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_PASSED(start, 5);
        ASSERT_EQ(w.which, 3);
        return 0;
}

/* What it was told of and does not take is told to the next. */
TASK(select_passes_on_what_it_does_not_use)
{
        for (int cancelled = 0; cancelled < 2; cancelled++) {
                CHANNEL(in, 2);
                resha_event e = { { 0 } };
                struct chooser w = { .in = in, .event = &e };
                struct actor next = { .ends = in };

                RESHA_GROUP(g);
                resha_group_begin(&g, &(resha_group_opts){ .keep_going = true });
                ASSERT_OK(resha_spawn_task(&g, chooses, &w, &w.task));
                ASSERT_OK(resha_yield());
                begin(&g, receives, &next);
                ASSERT_EQ(resha_try_send(in.tx, &(int){ 4 }), 1);
                if (cancelled)
                        resha_task_cancel(&w.task);
                else
                        resha_event_set(&e);
                ASSERT_OK(resha_group_end(&g, 0));
                ASSERT_EQ(w.which, cancelled ? -ECANCELED : 2);
                ASSERT_EQ(next.result, 1);
                ASSERT_EQ(next.item, 4);
        }
        return 0;
}

/* ---- ends of runs ---- */

static int waits_for_itself(void *arg)
{
        CHANNEL(c, 1);
        struct chooser w = { .in = c };

        return arg ? chooses(&w) : resha_recv(c.rx, &w.item);
}

TEST(channel_that_nobody_can_fill_is_a_deadlock_in_the_simulated_world)
{
        SIM_ONLY();
        for (int select = 0; select < 2; select++)
                ASSERT_EQ(test_run_opts(waits_for_itself, select ? &select : NULL, NULL), -EDEADLK);
}

/* ---- any ---- */

/* Tasks that send, receive and choose at random, by ends that they get and close at random, cut off at random.
 *
 *  1. Each item is at one place: a send that was not done has left it, a receive that was not done has taken none, and
 *     what is left when the last receiver closes is dropped.
 *  2. Whenever everybody is parked, nobody waits for what could be done: no wake-up is lost. */
enum { CHANNELS = 3, ACTORS = 6, TURNS = 14, CASES = 4, ITEMS = ACTORS * TURNS * CASES };

enum place { NOWHERE, OFFERED, TAKEN, DROPPED };

struct any {
        struct ends ends[CHANNELS]; /* its own references; NULL: closed */
        struct {
                int channel, item;
                bool send;
        } cases[CASES];
        int n; /* of cases that it waits with now; 0: none */
        resha_scope scope;
        bool in_scope;
};

static struct law {
        struct any any[ACTORS];
        int inside[CHANNELS], capacity[CHANNELS], senders[CHANNELS], receivers[CHANNELS];
        enum place place[ITEMS];
        int items, ended;
        size_t got, waits, dropped; /* of all seeds: that it is no test of nothing */
} law;

static int chance(int below)
{
        return (int)((resha_test_random() >> 16) % (unsigned)below);
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
        law.dropped++;
}

static void close_one(struct any *a, int channel, bool send)
{
        struct ends *e = &a->ends[channel];

        if (send && e->tx) {
                law.senders[channel]--;
                resha_sender_closep(&e->tx);
        } else if (!send && e->rx) {
                if (--law.receivers[channel] == 0)
                        law.inside[channel] = 0;
                resha_receiver_closep(&e->rx);
        }
}

/* One call of its own, or a select. */
static int call(struct any *a, int n)
{
        int channel = a->cases[0].channel, *item = &a->cases[0].item;
        struct ends *e = &a->ends[channel];
        resha_case c[CASES];

        if (n == 1 && chance(2)) {
                int rc = a->cases[0].send ? (e->tx ? resha_send(e->tx, item) : 0)
                                          : (e->rx ? resha_recv(e->rx, item) : 0);
                return rc < 0 ? rc : rc == 1 ? 0 : -EPIPE;
        }
        for (int i = 0; i < n; i++) {
                e = &a->ends[a->cases[i].channel];
                c[i] = a->cases[i].send ? RESHA_ON_SEND(e->tx, &a->cases[i].item)
                                        : RESHA_ON_RECV(e->rx, &a->cases[i].item);
        }
        int which = chance(8) ? resha_select(c, (size_t)n) : resha_try_select(c, (size_t)n);
        return which >= 0 && c[which].result == 0 ? -EPIPE : which;
}

static void settle(struct any *a, int i, bool done)
{
        int channel = a->cases[i].channel;

        if (a->cases[i].send && !done)
                move(a->cases[i].item, OFFERED, NOWHERE);
        else if (!a->cases[i].send && !done)
                ASSERT_EQ(a->cases[i].item, -1);
        else if (a->cases[i].send)
                law.inside[channel] += law.receivers[channel] > 0;
        else
                move(a->cases[i].item, OFFERED, TAKEN), law.inside[channel]--, law.got++;
}

static void act(struct any *a)
{
        int n = 1 + chance(CASES);

        for (int i = 0; i < n; i++) {
                a->cases[i].channel = chance(CHANNELS);
                a->cases[i].send = chance(2);
                a->cases[i].item = a->cases[i].send ? law.items++ : -1;
                if (a->cases[i].send)
                        move(a->cases[i].item, NOWHERE, OFFERED); /* the other side may run first */
        }
        a->n = n;
        int which = call(a, n);
        a->n = 0;
        ASSERT_TRUE(which >= 0 || which == -ECANCELED || which == -EAGAIN || which == -EPIPE);
        for (int i = 0; i < n; i++)
                settle(a, i, which == i);
}

static int any_acts(void *arg)
{
        struct any *a = arg;

        for (int i = 0; i < TURNS; i++) {
                a->scope = (resha_scope){ { 0 } };
                resha_timeout_begin(&a->scope, chance(3) ? RESHA_FOREVER : RESHA_US(chance(20)));
                a->in_scope = true;
                int rc = chance(4) ? 0 : resha_yield();
                act(a);
                if (!chance(20))
                        close_one(a, chance(CHANNELS), chance(2));
                a->in_scope = false;
                (void)!resha_scope_end(&a->scope, rc);
        }
        for (int c = 0; c < 2 * CHANNELS; c++)
                close_one(a, c / 2, c % 2);
        law.ended++;
        return 0;
}

static void look_at_rest(void)
{
        if (rs_loop_current->ready_first)
                return; /* some have been woken, and have not run */
        for (const struct any *a = law.any; a < law.any + ACTORS; a++)
                for (int i = 0; i < a->n; i++) {
                        int c = a->cases[i].channel;
                        law.waits++;
                        if (a->cases[i].send && a->ends[c].tx)
                                ASSERT_TRUE(law.receivers[c] && law.inside[c] == law.capacity[c]);
                        else if (!a->cases[i].send && a->ends[c].rx)
                                ASSERT_TRUE(law.senders[c] && !law.inside[c]);
                }
}

static void make_channels(void)
{
        for (int i = 0; i < CHANNELS; i++) {
                struct ends e = { 0 };
                law.capacity[i] = 1 + chance(3);
                law.senders[i] = law.receivers[i] = ACTORS;
                ASSERT_OK(resha_channel_new_opt(sizeof(int), (size_t)law.capacity[i],
                                                &(resha_channel_opts){ .drop = drop }, &e.tx, &e.rx));
                for (int a = 0; a < ACTORS; a++) {
                        law.any[a].ends[i].tx = resha_sender_ref(e.tx);
                        law.any[a].ends[i].rx = resha_receiver_ref(e.rx);
                }
                ends_close(&e);
        }
}

static int any_channels(__attribute__((unused)) void *arg)
{
        law = (struct law){ .got = law.got, .waits = law.waits, .dropped = law.dropped };
        make_channels();
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (int i = 0; i < ACTORS; i++)
                resha_spawn(&g, any_acts, &law.any[i]);
        while (law.ended < ACTORS) {
                struct any *victim = &law.any[chance(ACTORS)];
                bool rest = chance(3) == 0;
                ASSERT_OK(rest ? resha_sleep(RESHA_US(100)) : resha_yield());
                if (rest)
                        look_at_rest();
                if (victim->in_scope && (rest || chance(3) == 0))
                        resha_scope_cancel(&victim->scope);
        }
        ASSERT_OK(resha_group_end(&g, 0));
        for (int i = 0; i < law.items; i++)
                ASSERT_TRUE(law.place[i] != OFFERED);
        return 0;
}

TEST(channels_lose_no_item_and_no_wake_up)
{
        SIM_ONLY();
        RUN_SEEDS(any_channels, NULL, 300);
        ASSERT_TRUE(law.got > 1000);
        ASSERT_TRUE(law.waits > 1000);
        ASSERT_TRUE(law.dropped > 10);
}
