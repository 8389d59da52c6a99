/* SPDX-License-Identifier: MIT */
/* Several loops at once: each has its item and its thread, they end together, and none is left behind. */

#include "common.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include <resha/loops.h>

enum { LOOPS = 4 };

struct item {
        int number, result;
        pthread_t thread;
};

static resha_error error;

static int run_loops(resha_fn *fn, void *items, size_t n, size_t size)
{
        return resha_run_loops(fn, items, n, size, &(resha_run_opts){ .backend = test_backend(), .ret_error = &error });
}

static void number(struct item items[LOOPS])
{
        for (int i = 0; i < LOOPS; i++)
                items[i] = (struct item){ .number = i };
}

/* ---- what each gets ---- */

static int works(void *arg)
{
        struct item *i = arg;

        i->thread = pthread_self();
        int rc = resha_sleep(RESHA_MS(1));
        i->result = i->number * 10;
        return rc;
}

TEST(each_loop_has_its_item_and_its_thread)
{
        struct item items[LOOPS];

        number(items);
        ASSERT_OK(run_loops(works, items, LOOPS, sizeof items[0]));
        ASSERT_EQ(error.code, 0);
        ASSERT_TRUE(pthread_equal(items[0].thread, pthread_self()));
        for (int i = 0; i < LOOPS; i++) {
                ASSERT_EQ(items[i].result, i * 10);
                for (int k = 0; k < i && !test_is_sim(); k++)
                        ASSERT_FALSE(pthread_equal(items[i].thread, items[k].thread));
        }
}

static int counts(void *arg)
{
        atomic_fetch_add((atomic_int *)arg, 1);
        return 0;
}

TEST(a_loop_for_each_processor)
{
        atomic_int n = 0;

        ASSERT_OK(run_loops(counts, &n, 0, 0));
        ASSERT_EQ(n, resha_processors());
        ASSERT_TRUE(n >= 1);
        ASSERT_OK(resha_run_loops(counts, &n, 3, 0, NULL));
        ASSERT_EQ(n, resha_processors() + 3);
}

/* ---- the end of all ---- */

static int fails_or_waits(void *arg)
{
        struct item *i = arg;

        if (i->number != 2)
                return i->result = resha_sleep(RESHA_FOREVER);
        int rc = resha_sleep(RESHA_MS(2));
        return rc < 0 ? rc : resha_fail(-EIO, "loop %d is out of luck", i->number);
}

TEST(the_first_failure_ends_all)
{
        struct item items[LOOPS];

        number(items);
        ASSERT_EQ(run_loops(fails_or_waits, items, LOOPS, sizeof items[0]), -EIO);
        ASSERT_STR(error.text, "loop 2 is out of luck");
        ASSERT_EQ(error.item, 3);
        ASSERT_EQ(error.items, LOOPS);
        ASSERT_HAS(error.spawned_at, "run_loops.c:");
        for (int i = 0; i < LOOPS; i++)
                ASSERT_EQ(items[i].result, i == 2 ? 0 : -ECANCELED);
}

static int fails_at_once(void *arg)
{
        struct item *i = arg;

        return i->number ? i->result = resha_sleep(RESHA_FOREVER) : -ENOENT;
}

/* One that has failed before another could be reached. */
TEST(who_comes_late_is_cancelled_too)
{
        struct item items[LOOPS];

        for (int round = 0; round < 50; round++) {
                number(items);
                ASSERT_EQ(run_loops(fails_at_once, items, LOOPS, sizeof items[0]), -ENOENT);
        }
}

static int fails_when_cancelled(void *arg)
{
        struct item *i = arg;

        if (i->number == 0)
                return -ECANCELED; /* of its own accord */
        int rc = resha_sleep(RESHA_FOREVER);
        return rc == -ECANCELED && i->number == 1 ? resha_fail(-EIO, "while it ended") : rc;
}

TEST(a_failure_counts_more_than_a_cancel)
{
        struct item items[LOOPS];

        if (test_is_sim())
                test_skip("there a group decides");
        number(items);
        ASSERT_EQ(run_loops(fails_when_cancelled, items, LOOPS, sizeof items[0]), -EIO);
        ASSERT_STR(error.text, "while it ended");
}

static int interrupts(void *arg)
{
        struct item *i = arg;

        if (i->number == LOOPS - 1) {
                int rc = resha_sleep(RESHA_MS(2));
                if (rc == 0)
                        rc = test_is_sim() ? -ECANCELED : kill(getpid(), SIGINT);
                if (rc < 0)
                        return rc;
        }
        return i->result = resha_sleep(RESHA_FOREVER);
}

TEST(ctrl_c_ends_all)
{
        struct item items[LOOPS];
        bool interrupted = false;
        int sig = 0;

        if (test_is_sim() || TEST_TSAN)
                test_skip("signals of the process are not those of a simulated world, and TSan puts them off");
        number(items);
        ASSERT_EQ(resha_run_loops(interrupts, items, LOOPS, sizeof items[0],
                                  &(resha_run_opts){ .backend = test_backend(),
                                                     .ret_interrupted = &interrupted,
                                                     .ret_signal = &sig }),
                  -ECANCELED);
        ASSERT_TRUE(interrupted);
        ASSERT_EQ(sig, SIGINT);
        for (int i = 0; i < LOOPS; i++)
                ASSERT_EQ(items[i].result, -ECANCELED);
}

static int waits_for_nobody(void *arg)
{
        struct item *i = arg;
        resha_event never = { { 0 } };

        return i->result = i->number == 1 ? resha_event_wait(&never) : resha_sleep(RESHA_MS(i->number));
}

/* While others run they may fail, and end the one that waits for nobody: it has no deadlock until it is the last. */
TEST(the_last_loop_may_be_in_a_deadlock)
{
        struct item items[LOOPS];

        number(items);
        ASSERT_EQ(run_loops(waits_for_nobody, items, LOOPS, sizeof items[0]), -EDEADLK);
        for (int i = 0; i < LOOPS; i++)
                ASSERT_EQ(items[i].result, i == 1 ? -ECANCELED : 0);
}

/* ---- what cannot be ---- */

static int inside(void *arg)
{
        ASSERT_EQ(resha_run_loops(counts, arg, 2, 0, NULL), -EBUSY);
        ASSERT_HAS(resha_error_of(-EBUSY)->text, "inside");
        return 0;
}

TEST(not_inside_of_a_loop)
{
        atomic_int n = 0;

        RUN(inside, &n);
        ASSERT_EQ(n, 0);
}

TEST(what_the_options_get_wrong_is_said)
{
        struct item items[LOOPS];

        number(items);
        ASSERT_EQ(resha_run_loops(works, items, LOOPS, sizeof items[0],
                                  &(resha_run_opts){ .backend = "none", .ret_error = &error }),
                  -EINVAL);
        ASSERT_HAS(error.text, "no backend \"none\"");
        ASSERT_EQ(resha_run_loops(works, items, 1000000, 0, &(resha_run_opts){ .ret_error = &error }), -EINVAL);
        ASSERT_HAS(error.text, "at most");
}

static int sleeps_long(void *arg)
{
        (void)arg;
        return resha_sleep(RESHA_FOREVER);
}

static int no_second_thread(enum rs_syscall call)
{
        static int threads;

        return call == RS_SYS_THREAD && ++threads == 2 ? -EAGAIN : 0;
}

/* Those that run already are ended. */
TEST(no_thread_can_be_started)
{
        struct item items[LOOPS];

        if (test_is_sim())
                test_skip("there are no threads");
        number(items);
        rs_fault_hook = no_second_thread;
        int rc = run_loops(sleeps_long, items, LOOPS, sizeof items[0]);
        rs_fault_hook = NULL;
        ASSERT_EQ(rc, -EAGAIN);
        ASSERT_HAS(error.text, "no thread can be started for loop 3 of 4");
}

/* ---- connections on all loops ---- */

enum { CLIENTS = 64 };

struct server {
        resha_addr at;
        atomic_int served[2], turn, ready, left;
        resha_loop *loops[2];
};

static struct server server;

static int answer(resha_stream *s, void *arg)
{
        atomic_fetch_add((atomic_int *)arg, 1);
        int rc = resha_write_all(s, "hello", 5, NULL);
        if (rc == 0)
                rc = resha_stream_finish(s);
        if (atomic_fetch_sub(&server.left, 1) == 1)
                for (int i = 0; i < 2; i++)
                        resha_loop_cancel(server.loops[i]);
        return rc;
}

static int serve(void *arg)
{
        struct server *s = arg;
        RESHA_CLEANUP(resha_listener_closep) resha_listener *l = NULL;
        int turn = atomic_fetch_add(&s->turn, 1);

        ASSERT_OK(resha_listen(&s->at, &(resha_listen_opts){ .reuse_port = true }, &l));
        s->loops[turn] = resha_loop_ref();
        atomic_fetch_add(&s->ready, 1);
        return resha_serve(l, answer, &s->served[turn], &(resha_serve_opts){ .grace = RESHA_S(10) });
}

static void *clients(void *arg)
{
        struct server *s = arg;
        resha_addr at = s->at;
        char text[8];

        while (atomic_load(&s->ready) < 2)
                usleep(100);
        for (int i = 0; i < CLIENTS; i++) {
                int fd = real_connect(resha_addr_port(&at));
                ASSERT_EQ(read(fd, text, sizeof text), 5);
                close(fd);
        }
        return NULL;
}

static int free_port(void *arg)
{
        uint16_t port;
        resha_listener *l = real_listener(&port);

        ASSERT_OK(resha_listener_addr(l, arg));
        resha_listener_close(l);
        return 0;
}

TEST(connections_are_spread_over_loops)
{
        pthread_t t;

        if (test_is_sim())
                test_skip("there is one loop");
        server.left = CLIENTS;
        RUN(free_port, &server.at);
        ASSERT_EQ(pthread_create(&t, NULL, clients, &server), 0);
        ASSERT_EQ(run_loops(serve, &server, 2, 0), -ECANCELED);
        ASSERT_EQ(pthread_join(t, NULL), 0);
        for (int i = 0; i < 2; i++)
                resha_loop_unref(server.loops[i]);
        ASSERT_EQ(server.served[0] + server.served[1], CLIENTS);
        ASSERT_TRUE(server.served[0] > 0 && server.served[1] > 0);
}
