/* SPDX-License-Identifier: MIT */
/* Channels: threads that meet in the few instructions where a send, a close or a sleep could miss another. */

#include "common.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include <resha/channel.h>

enum { ROUNDS = 20000 };

struct ends {
        resha_sender *tx;
        resha_receiver *rx;
        int until, n; /* most items; that have passed */
};

static void pause_for(int n)
{
        for (volatile int left = n; left > 0; left--)
                ;
}

static void wait_for(atomic_int *round, int least)
{
        for (int looks = 0; *round < least; looks++)
                if (looks > 1000)
                        sched_yield();
}

/* ---- the other end is closed meanwhile ---- */

static atomic_int begun, done, dropped;

static void drop(void *item)
{
        (void)item;
        dropped++;
}

/* In turns: sends an item and closes; closes the end that receives. */
static void *closes(void *arg)
{
        struct ends *s = arg;

        for (int r = 1; r <= s->until; done = r++) {
                wait_for(&begun, r);
                pause_for(r % 256);
                if (r % 2)
                        s->n += resha_try_send(s->tx, &r) == 1;
                if (r % 2)
                        resha_sender_closep(&s->tx);
                else
                        resha_receiver_closep(&s->rx);
        }
        return NULL;
}

/* The other end, until it is told: how many items it had or gave. */
static int meet_close(struct ends *s, bool receives)
{
        int rc, v = 0, n = 0;

        while ((rc = receives ? resha_try_recv(s->rx, &v) : resha_try_send(s->tx, &v)) != 0)
                n += rc == 1;
        return n;
}

TEST(what_is_sent_while_an_end_is_closed_is_received_or_dropped)
{
        struct ends s = { .until = real_under_tsan() ? 500 : ROUNDS / 4 };
        pthread_t t;

        if (test_is_sim())
                test_skip("there are no loops in this");
        ASSERT_EQ(pthread_create(&t, NULL, closes, &s), 0);
        for (int r = 1; r <= s.until; r++) {
                ASSERT_OK(resha_channel_new_opt(sizeof(int), 512, &(resha_channel_opts){ .drop = drop }, &s.tx, &s.rx));
                dropped = 0;
                s.n = 0;
                begun = r;
                int n = meet_close(&s, r % 2);
                wait_for(&done, r);
                ASSERT_EQ(n, r % 2 ? s.n : dropped);
                resha_sender_close(s.tx);
                resha_receiver_close(s.rx);
        }
        ASSERT_EQ(pthread_join(t, NULL), 0);
}

/* ---- one sends at any moment of the other's going to sleep ---- */

static atomic_int ready;

static void *goes_to_sleep(void *arg)
{
        struct ends *s = arg;
        int v, rc = 1;

        while (rc == 1) {
                ready = s->n + 1;
                rc = resha_recv_blocking(s->rx, &v, RESHA_S(5));
                s->n += rc == 1;
        }
        ready = INT_MAX;
        return NULL;
}

static void *sends_meanwhile(void *arg)
{
        struct ends *s = arg;
        resha_instant end = resha_after(RESHA_S(2));

        for (int v = 0; v < s->until && resha_now().ns < end.ns; v++) {
                wait_for(&ready, v + 1);
                pause_for(v % 256);
                s->n += resha_try_send(s->tx, &v) == 1;
        }
        resha_sender_close(s->tx);
        return NULL;
}

/* One whose wake-up is lost waits until it is too late. */
TEST(a_thread_that_goes_to_sleep_meanwhile_is_woken)
{
        struct ends s[2] = { { .until = 5 * ROUNDS }, { 0 } };
        pthread_t t[2];

        if (test_is_sim())
                test_skip("there are no loops in this");

        ASSERT_OK(resha_channel_new(sizeof(int), 2, &s[0].tx, &s[1].rx));
        ASSERT_EQ(pthread_create(&t[0], NULL, sends_meanwhile, &s[0]), 0);
        ASSERT_EQ(pthread_create(&t[1], NULL, goes_to_sleep, &s[1]), 0);
        for (int i = 0; i < 2; i++)
                ASSERT_EQ(pthread_join(t[i], NULL), 0);
        ASSERT_TRUE(s[0].n > 0);
        ASSERT_EQ(s[1].n, s[0].n);
        resha_receiver_close(s[1].rx);
}

/* ---- one processor, and threads of several priorities ---- */

enum { LARGE = 65536 };

static atomic_int background_over;

/* Holds the locks of both sides most of the time. */
static void *works_in_the_background(void *arg)
{
        static char item[LARGE];
        struct ends *s = arg;

        while (!background_over) {
                resha_try_send(s->tx, item);
                resha_try_recv(s->rx, item);
        }
        return NULL;
}

static int64_t processor_ms(void)
{
        struct timespec t;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* No try costs more than what one does: it does not spin for a lock whose holder it keeps from running. */
static void *comes_first(void *arg)
{
        static char item[LARGE];
        struct ends *s = arg;
        int64_t most = 0;

        for (int i = 0; i < 200; i++) {
                usleep(200);
                int64_t before = processor_ms();
                if (i % 2)
                        resha_try_send(s->tx, item);
                else
                        resha_try_recv(s->rx, item);
                int64_t took = processor_ms() - before;
                most = took > most ? took : most;
        }
        background_over = 1;
        ASSERT_TRUE(most < 200);
        return NULL;
}

static bool on_one_processor(pthread_attr_t *attr, int policy, int priority)
{
        cpu_set_t one;

        CPU_ZERO(&one);
        CPU_SET((size_t)sched_getcpu(), &one);
        pthread_attr_init(attr);
        pthread_attr_setinheritsched(attr, PTHREAD_EXPLICIT_SCHED);
        pthread_attr_setschedpolicy(attr, policy);
        pthread_attr_setschedparam(attr, &(struct sched_param){ .sched_priority = priority });
        return pthread_attr_setaffinity_np(attr, sizeof one, &one) == 0;
}

TEST(a_thread_of_high_priority_lets_the_holder_of_a_lock_go_on)
{
        struct ends s = { 0 };
        pthread_attr_t attr[2];
        pthread_t t[2];

        if (TEST_TSAN)
                test_skip("it has locks of its own, and waits for them so");
        if (!on_one_processor(&attr[0], SCHED_FIFO, 1) || !on_one_processor(&attr[1], SCHED_OTHER, 0))
                test_skip("no processor of one's own");
        ASSERT_OK(resha_channel_new(LARGE, 1, &s.tx, &s.rx));
        if (pthread_create(&t[0], &attr[0], comes_first, &s) == 0) {
                ASSERT_EQ(pthread_create(&t[1], &attr[1], works_in_the_background, &s), 0);
                for (int i = 0; i < 2; i++)
                        ASSERT_EQ(pthread_join(t[i], NULL), 0);
        } else {
                test_skip("no right to a priority");
        }
        for (int i = 0; i < 2; i++)
                pthread_attr_destroy(&attr[i]);
        resha_sender_close(s.tx);
        resha_receiver_close(s.rx);
}
