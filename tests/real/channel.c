/* SPDX-License-Identifier: MIT */
/* Channels: whatever ends first, each item is received once, dropped once, or still the sender's. */

#include "common.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include <resha/channel.h>
#include <resha/loops.h>

enum { ITEMS = 20000, SENDERS = 3, RECEIVERS = 2 };

static int run_loops(resha_fn *fn, void *items, size_t n, size_t size)
{
        return resha_run_loops(fn, items, n, size, &(resha_run_opts){ .backend = test_backend() });
}

/* ---- two loops ---- */

struct side {
        resha_sender *tx;
        resha_receiver *rx;
        int until, n; /* receivers stop then; items that passed */
};

static int side(void *arg)
{
        struct side *s = arg;
        resha_sender *tx RESHA_CLEANUP(resha_sender_closep) = s->tx;
        resha_receiver *rx RESHA_CLEANUP(resha_receiver_closep) = s->rx;
        int v, rc = 1;

        if (tx) {
                for (v = 0; v < ITEMS && (rc = resha_send(tx, &v)) == 1; v++)
                        s->n++;
                return rc < 0 ? rc : 0;
        }
        while (s->n < s->until && (rc = resha_recv(rx, &v)) == 1)
                if (v != s->n++)
                        return resha_fail(-EIO, "item %d came as number %d", v, s->n);
        return rc < 0 ? rc : 0;
}

TEST(items_come_in_order_until_the_sender_has_closed)
{
        for (size_t capacity = 1; capacity <= 1024; capacity *= 32) {
                struct side s[2] = { { 0 }, { .until = ITEMS + 1 } };

                ASSERT_OK(resha_channel_new(sizeof(int), capacity, &s[0].tx, &s[1].rx));
                ASSERT_OK(run_loops(side, s, 2, sizeof s[0]));
                ASSERT_EQ(s[0].n, ITEMS);
                ASSERT_EQ(s[1].n, ITEMS);
        }
}

TEST(a_sender_is_told_that_nobody_receives_any_more)
{
        struct side s[2] = { { 0 }, { .until = 100 } };

        ASSERT_OK(resha_channel_new(sizeof(int), 4, &s[0].tx, &s[1].rx));
        ASSERT_OK(run_loops(side, s, 2, sizeof s[0]));
        ASSERT_EQ(s[1].n, 100);
        ASSERT_TRUE(s[0].n >= 100 && s[0].n <= 104);
}

/* ---- conservation ---- */

static atomic_long sent_n, sent_sum, got_n, got_sum, dropped_n, dropped_sum;

static void count_item(atomic_long *n, atomic_long *sum, long v)
{
        atomic_fetch_add(n, 1);
        atomic_fetch_add(sum, v);
}

static void drop_item(void *item)
{
        count_item(&dropped_n, &dropped_sum, *(int *)item);
}

struct part {
        resha_sender *tx;
        resha_receiver *rx;
        int next, rc;
};

static int one(void *arg)
{
        struct part *p = arg;
        int v = p->next;

        p->rc = p->tx ? resha_send(p->tx, &v) : resha_recv(p->rx, &v);
        if (p->rc == 1 && p->tx)
                count_item(&sent_n, &sent_sum, v);
        else if (p->rc == 1)
                count_item(&got_n, &got_sum, v);
        return p->rc < 0 ? p->rc : 0;
}

/* Each call is cut off after a while. The first receiver leaves early, all others at the end or once told. */
static int hurried(void *arg)
{
        struct part *p = arg;
        int n = p->next;

        p->rc = 1;
        for (int i = 0; i < 2000 && p->rc != 0; i++) {
                p->next = n + i;
                int rc = resha_timeout(RESHA_US(i % 7), one, p);
                ASSERT_TRUE(rc == 0 || rc == -ETIME || rc == -ETIMEDOUT);
        }
        resha_sender_closep(&p->tx);
        resha_receiver_closep(&p->rx);
        return 0;
}

TEST(each_item_is_received_or_dropped_once_whatever_is_cut_off)
{
        struct part p[SENDERS + RECEIVERS] = { 0 };
        resha_sender *tx;
        resha_receiver *rx;

        ASSERT_OK(resha_channel_new_opt(sizeof(int), 3, &(resha_channel_opts){ .drop = drop_item }, &tx, &rx));
        for (int i = 0; i < SENDERS + RECEIVERS; i++) {
                p[i].next = i * 100000;
                p[i].tx = i < SENDERS ? resha_sender_ref(tx) : NULL;
                p[i].rx = i < SENDERS ? NULL : resha_receiver_ref(rx);
        }
        resha_sender_close(tx);
        resha_receiver_close(rx);
        ASSERT_OK(run_loops(hurried, p, SENDERS + RECEIVERS, sizeof p[0]));
        ASSERT_TRUE(sent_n > 0 && got_n > 0);
        ASSERT_EQ(sent_n, got_n + dropped_n);
        ASSERT_EQ(sent_sum, got_sum + dropped_sum);
}

/* ---- without waiting, and threads ---- */

TEST(tries)
{
        resha_sender *tx;
        resha_receiver *rx;
        int v = 7;

        ASSERT_EQ(resha_channel_new(0, 1, &tx, &rx), -EINVAL);
        ASSERT_EQ(resha_channel_new(1, 0, &tx, &rx), -EINVAL);
        ASSERT_EQ(resha_channel_new(65536, SIZE_MAX, &tx, &rx), -EINVAL);
        ASSERT_OK(resha_channel_new(sizeof v, 1, &tx, &rx));
        ASSERT_EQ(resha_try_recv(rx, &v), -EAGAIN);
        ASSERT_EQ(resha_try_send(tx, &v), 1);
        ASSERT_EQ(resha_try_send(tx, &v), -EAGAIN);
        ASSERT_EQ(resha_send_blocking(tx, &v, RESHA_MS(2)), -ETIME);
        resha_sender_close(tx);
        v = 0;
        ASSERT_EQ(resha_try_recv(rx, &v), 1);
        ASSERT_EQ(v, 7);
        ASSERT_EQ(resha_try_recv(rx, &v), 0);
        ASSERT_EQ(resha_recv_blocking(rx, &v, RESHA_FOREVER), 0);
        resha_receiver_close(rx);
}

TEST(the_last_receiver_drops_what_is_left)
{
        resha_sender *tx;
        resha_receiver *rx;

        ASSERT_OK(resha_channel_new_opt(sizeof(int), 4, &(resha_channel_opts){ .drop = drop_item }, &tx, &rx));
        for (int v = 1; v <= 3; v++)
                ASSERT_EQ(resha_try_send(tx, &v), 1);
        resha_receiver_close(resha_receiver_ref(rx));
        ASSERT_EQ(dropped_n, 0);
        resha_receiver_close(rx);
        ASSERT_EQ(dropped_n, 3);
        ASSERT_EQ(dropped_sum, 6);
        ASSERT_EQ(resha_try_send(tx, &(int){ 4 }), 0);
        resha_sender_close(tx);
        ASSERT_EQ(dropped_n, 3);
}

static void *sends_blocking(void *arg)
{
        struct side *s = arg;

        for (int v = 0; v < ITEMS / 4; v++)
                s->n += resha_send_blocking(s->tx, &v, RESHA_S(20)) == 1;
        resha_sender_close(s->tx);
        return NULL;
}

static int refuses_to_block(void *arg)
{
        ASSERT_EQ(resha_recv_blocking(((struct side *)arg)->rx, &(int){ 0 }, RESHA_MS(1)), -EDEADLK);
        return side(arg);
}

TEST(a_thread_sends_to_a_loop)
{
        struct side s[2] = { { 0 }, { .until = ITEMS } };
        pthread_t t;

        if (test_is_sim())
                test_skip("a simulated loop does not wait for threads");
        ASSERT_OK(resha_channel_new(sizeof(int), 8, &s[0].tx, &s[1].rx));
        ASSERT_EQ(pthread_create(&t, NULL, sends_blocking, &s[0]), 0);
        ASSERT_OK(run_loops(refuses_to_block, &s[1], 1, sizeof s[1]));
        ASSERT_EQ(pthread_join(t, NULL), 0);
        ASSERT_EQ(s[0].n, ITEMS / 4);
        ASSERT_EQ(s[1].n, ITEMS / 4);
}
