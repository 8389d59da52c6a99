/* SPDX-License-Identifier: MIT */
/* Channels: whatever ends first, each item is received once, dropped once, or still the sender's. */

#include "common.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include <resha/channel.h>
#include <resha/loops.h>

enum { ITEMS = 20000, AWAKE_ITEMS = 200, SENDERS = 3, RECEIVERS = 2 };

static int run_loops(resha_fn *fn, void *items, size_t n, size_t size)
{
        return resha_run_loops(fn, items, n, size, &(resha_run_opts){ .backend = test_backend() });
}

/* ---- two loops ---- */

struct side {
        resha_sender *tx;
        resha_receiver *rx;
        int until, n; /* where it stops; items that passed */
};

static int side(void *arg)
{
        struct side *s = arg;
        resha_sender *tx RESHA_CLEANUP(resha_sender_closep) = s->tx;
        resha_receiver *rx RESHA_CLEANUP(resha_receiver_closep) = s->rx;
        int v, rc = 1;

        if (tx) {
                for (v = 0; v < s->until && (rc = resha_send(tx, &v)) == 1; v++)
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
                int items = capacity == 1 ? ITEMS / 20 : ITEMS; /* a busy machine gives each a turn for each item */
                struct side s[2] = { { .until = items }, { .until = items + 1 } };

                ASSERT_OK(resha_channel_new(sizeof(int), capacity, &s[0].tx, &s[1].rx));
                ASSERT_OK(run_loops(side, s, 2, sizeof s[0]));
                ASSERT_EQ(s[0].n, items);
                ASSERT_EQ(s[1].n, items);
        }
}

TEST(a_sender_is_told_that_nobody_receives_any_more)
{
        struct side s[2] = { { .until = ITEMS }, { .until = 100 } };

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

enum { CHANNELS = 2, THREADS = 2, PARTS = SENDERS + RECEIVERS + THREADS };

/* One that sends or receives, each by a reference of its own: a task on a loop of its own, or a thread. */
struct part {
        struct {
                resha_sender *tx;
                resha_receiver *rx;
        } ends[CHANNELS];
        bool sends;
        int next, which; /* channel of the next call; 2: a select of both */
};

static void count_call(const struct part *p, int rc)
{
        if (rc == 1 && p->sends)
                count_item(&sent_n, &sent_sum, p->next);
        else if (rc == 1)
                count_item(&got_n, &got_sum, p->next);
}

/* 1, 0, negative. */
static int choose(struct part *p)
{
        resha_case c[CHANNELS];

        for (int i = 0; i < CHANNELS; i++)
                c[i] = p->sends ? RESHA_ON_SEND(p->ends[i].tx, &p->next) : RESHA_ON_RECV(p->ends[i].rx, &p->next);
        int which = resha_select(c, CHANNELS);
        return which < 0 ? which : c[which].result;
}

static int one(void *arg)
{
        struct part *p = arg;
        int rc = p->which == CHANNELS ? choose(p)
                 : p->sends           ? resha_send(p->ends[p->which].tx, &p->next)
                                      : resha_recv(p->ends[p->which].rx, &p->next);

        count_call(p, rc);
        return rc < 0 ? rc : rc == 0 ? -EPIPE : 0;
}

static void close_ends(struct part *p)
{
        for (int i = 0; i < CHANNELS; i++) {
                resha_sender_closep(&p->ends[i].tx);
                resha_receiver_closep(&p->ends[i].rx);
        }
}

/* Each call is cut off after a while, by one that may come when it is done already. */
static int hurried(void *arg)
{
        struct part *p = arg;
        int first = p->next;

        for (int i = 0; i < 1000; i++) {
                p->next = first + i;
                p->which = i % (CHANNELS + 1);
                int rc = resha_timeout(RESHA_US(i % 7), one, p);
                if (rc == -EPIPE)
                        break;
                ASSERT_TRUE(rc == 0 || rc == -ETIME || rc == -ETIMEDOUT);
        }
        close_ends(p);
        return 0;
}

static void *hurried_thread(void *arg)
{
        struct part *p = arg;
        int first = p->next;

        for (int i = 0, rc = 1; i < 1000 && rc != 0; i++) {
                int c = i % CHANNELS;
                resha_duration at_most = RESHA_US(i % 50);
                p->next = first + i;
                rc = i % 3 ? (p->sends ? resha_send_blocking(p->ends[c].tx, &p->next, at_most)
                                       : resha_recv_blocking(p->ends[c].rx, &p->next, at_most))
                           : (p->sends ? resha_try_send(p->ends[c].tx, &p->next)
                                       : resha_try_recv(p->ends[c].rx, &p->next));
                ASSERT_TRUE(rc == 0 || rc == 1 || rc == -ETIME || rc == -EAGAIN);
                count_call(p, rc);
        }
        close_ends(p);
        return NULL;
}

static void take_parts(struct part p[PARTS])
{
        for (int c = 0; c < CHANNELS; c++) {
                resha_sender *tx;
                resha_receiver *rx;
                ASSERT_OK(resha_channel_new_opt(sizeof(int), 3, &(resha_channel_opts){ .drop = drop_item }, &tx, &rx));
                for (int i = 0; i < PARTS; i++) {
                        p[i].next = i * 100000;
                        p[i].sends = i < SENDERS || i == PARTS - 1;
                        p[i].ends[c].tx = p[i].sends ? resha_sender_ref(tx) : NULL;
                        p[i].ends[c].rx = p[i].sends ? NULL : resha_receiver_ref(rx);
                }
                resha_sender_close(tx);
                resha_receiver_close(rx);
        }
}

TEST(each_item_is_received_or_dropped_once_whatever_is_cut_off)
{
        struct part p[PARTS] = { 0 };
        pthread_t t[THREADS];

        take_parts(p);
        for (int i = 0; i < THREADS; i++)
                ASSERT_EQ(pthread_create(&t[i], NULL, hurried_thread, &p[PARTS - THREADS + i]), 0);
        ASSERT_OK(run_loops(hurried, p, PARTS - THREADS, sizeof p[0]));
        for (int i = 0; i < THREADS; i++)
                ASSERT_EQ(pthread_join(t[i], NULL), 0);
        ASSERT_TRUE(sent_n > 0 && got_n > 0);
        ASSERT_EQ(sent_n, got_n + dropped_n);
        ASSERT_EQ(sent_sum, got_sum + dropped_sum);
}

/* ---- nobody is woken who is awake ---- */

static atomic_int wakes, at_work, over;

static int count_wakes(enum rs_syscall call)
{
        wakes += call == RS_SYS_WRITE && at_work == 2 && !over;
        return 0;
}

/* While this runs, the loop never sleeps, and does not spin for channels. */
static int keeps_awake(void *arg)
{
        int rc = 0;

        (void)arg;
        while (rc == 0 && !over)
                rc = resha_yield();
        return rc;
}

static int awake_side(void *arg)
{
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        resha_spawn(&g, keeps_awake, NULL);
        at_work++;
        while (at_work < 2)
                if (resha_yield() < 0)
                        break;
        int rc = side(arg);
        over = 1;
        return resha_group_end(&g, rc);
}

TEST(while_both_loops_are_awake_nobody_is_woken)
{
        struct side s[2] = { { .until = AWAKE_ITEMS }, { .until = AWAKE_ITEMS + 1 } };

        if (test_is_sim())
                test_skip("there is one loop");
        ASSERT_OK(resha_channel_new(sizeof(int), 4, &s[0].tx, &s[1].rx));
        rs_fault_hook = count_wakes;
        ASSERT_OK(run_loops(awake_side, s, 2, sizeof s[0]));
        rs_fault_hook = NULL;
        ASSERT_EQ(s[1].n, AWAKE_ITEMS);
        ASSERT_EQ(wakes, 0);
}

/* ---- a run is given up with tasks that wait ---- */

static int receives_shielded(void *arg)
{
        return resha_recv(arg, &(int){ 0 }) < 0 ? -EIO : 0;
}

static int chooses_shielded(void *arg)
{
        resha_case c = RESHA_ON_RECV(arg, &(int){ 0 });

        return resha_select(&c, 1) < 0 ? -EIO : 0;
}

static int stays(void *arg)
{
        static bool chooses;

        chooses = !chooses;
        return resha_shielded(RESHA_FOREVER, chooses ? chooses_shielded : receives_shielded, arg);
}

static int leaves_them(void *arg)
{
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        resha_spawn(&g, stays, arg);
        resha_spawn(&g, stays, arg);
        int rc = resha_yield();
        resha_loop *l = resha_loop_ref();
        resha_loop_cancel(l);
        resha_loop_unref(l);
        return resha_group_end(&g, rc);
}

static int is_given_up(void *arg)
{
        resha_sender *tx;
        resha_receiver *rx;
        int v = 0;

        (void)arg;
        ASSERT_OK(resha_channel_new(sizeof v, 2, &tx, &rx));
        ASSERT_EQ(test_run_opts(leaves_them, rx, &(resha_run_opts){ .grace = RESHA_MS(5) }), -ECANCELED);
        ASSERT_EQ(resha_try_send(tx, &(int){ 7 }), 1); /* to nobody's memory */
        ASSERT_EQ(resha_try_recv(rx, &v), 1);
        ASSERT_EQ(v, 7);
        resha_sender_close(tx);
        ASSERT_EQ(resha_try_recv(rx, &v), 0);
        resha_receiver_close(rx);
        return 42;
}

/* Its tasks are leaked on purpose, so this is a process of its own. */
TEST(a_run_that_is_given_up_leaves_the_channel_whole)
{
        struct test_child c;

        if (real_under_tsan())
                test_skip("a child with threads");
        test_child(is_given_up, NULL, &c);
        ASSERT_STR(c.text, "");
        ASSERT_TRUE(WIFEXITED(c.status));
        ASSERT_EQ(WEXITSTATUS(c.status), 42);
}

/* ---- a forked child ---- */

static int uses_the_parents(void *arg)
{
        struct side *s = arg;
        int v = 1;

        ASSERT_EQ(resha_try_send(s->tx, &v), -EPERM);
        ASSERT_HAS(resha_error_of(-EPERM)->text, "the channel is the parent process's");
        ASSERT_EQ(resha_try_recv(s->rx, &v), -EPERM);
        ASSERT_EQ(resha_send_blocking(s->tx, &v, RESHA_FOREVER), -EPERM);
        ASSERT_EQ(resha_send(s->tx, &v), -EPERM);
        resha_sender_close(s->tx); /* left alone */
        resha_receiver_close(s->rx);
        return 42;
}

TASK(a_forked_child_leaves_the_channel_alone)
{
        struct side s = { 0 };
        struct test_child c;
        int v = 3;

        if (real_under_tsan())
                test_skip("TSan knows no threads in a forked child");
        ASSERT_OK(resha_channel_new(sizeof(int), 1, &s.tx, &s.rx));
        ASSERT_EQ(resha_send(s.tx, &v), 1);
        test_child(uses_the_parents, &s, &c);
        ASSERT_STR(c.text, "");
        ASSERT_TRUE(WIFEXITED(c.status));
        ASSERT_EQ(WEXITSTATUS(c.status), 42);
        v = 0;
        ASSERT_EQ(resha_recv(s.rx, &v), 1);
        ASSERT_EQ(v, 3);
        resha_sender_close(s.tx);
        resha_receiver_close(s.rx);
        return 0;
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
        ASSERT_EQ(resha_channel_new(65537, 1, &tx, &rx), -EINVAL);
        ASSERT_EQ(resha_channel_new_opt(1, 1, &(resha_channel_opts){ ._reserved = { 0, 1 } }, &tx, &rx), -EINVAL);
        ASSERT_HAS(resha_error_of(-EINVAL)->text, "reserved");
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
