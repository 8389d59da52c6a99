/* SPDX-License-Identifier: MIT */
/* Several loops at once: each has its item and its thread, they end together, and none is left behind. */

#include "common.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
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

enum { CLIENTS = 64, SIDES = 3, STORM = 400, BURST = 16 };

struct server {
        resha_addr asked, at;
        atomic_int served[SIDES], turn, ready;
        atomic_bool over;
        resha_loop *loops[SIDES];
        int clients;
};

static struct server server;

static int answer(resha_stream *s, void *arg)
{
        atomic_fetch_add((atomic_int *)arg, 1);
        int rc = resha_write_all(s, "hello", 5, NULL);
        return rc < 0 ? rc : resha_stream_finish(s);
}

static int listen_shared(struct server *s, resha_listener **ret_listener)
{
        return resha_listen(&s->asked, &(resha_listen_opts){ .shared = true }, ret_listener);
}

/* Until the clients have had enough. */
static int serve_as(struct server *s, int turn)
{
        RESHA_CLEANUP(resha_listener_closep) resha_listener *l = NULL;

        ASSERT_OK(listen_shared(s, &l));
        ASSERT_OK(resha_listener_addr(l, &s->at)); /* all say the same */
        s->loops[turn] = resha_loop_ref();
        atomic_fetch_add(&s->ready, 1);
        return resha_serve(l, answer, &s->served[turn], &(resha_serve_opts){ .grace = RESHA_S(10) });
}

static int serve(void *arg)
{
        struct server *s = arg;

        return serve_as(s, atomic_fetch_add(&s->turn, 1));
}

static int dial(const resha_addr *at)
{
        struct timeval limit = { .tv_sec = 20 };
        size_t size;
        const struct sockaddr *sa = resha_addr_sockaddr(at, &size);
        int fd = socket(resha_addr_family(at), SOCK_STREAM, 0);

        ASSERT_TRUE(fd >= 0);
        ASSERT_OK(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
        ASSERT_OK(connect(fd, sa, (socklen_t)size));
        return fd;
}

static void hear(int fd)
{
        char text[8];

        ASSERT_EQ(read(fd, text, sizeof text), 5);
        close(fd);
}

static void *clients(void *arg)
{
        struct server *s = arg;
        resha_addr at;

        while (atomic_load(&s->ready) < 2)
                usleep(100);
        at = s->at;
        for (int i = 0; i < s->clients; i++)
                hear(dial(&at));
        atomic_store(&s->over, true);
        for (int i = 0; i < SIDES; i++)
                if (s->loops[i])
                        resha_loop_cancel(s->loops[i]);
        return NULL;
}

static void run_server(resha_fn *fn, size_t n, void *(*client)(void *arg))
{
        pthread_t t;

        ASSERT_EQ(pthread_create(&t, NULL, client, &server), 0);
        ASSERT_EQ(run_loops(fn, &server, n, 0), -ECANCELED);
        ASSERT_EQ(pthread_join(t, NULL), 0);
        for (int i = 0; i < SIDES; i++)
                resha_loop_unref(server.loops[i]);
}

static void server_init(bool local, int connections)
{
        char name[64];

        server = (struct server){ .clients = connections };
        snprintf(name, sizeof name, "@resha-loops-%d", (int)getpid());
        ASSERT_OK(local ? resha_addr_unix(name, &server.asked) : resha_addr_parse("127.0.0.1", 0, &server.asked));
}

TEST(connections_are_spread_over_loops)
{
        if (test_is_sim())
                test_skip("there is one loop");
        for (int local = 0; local < 2; local++) {
                server_init(local, CLIENTS);
                run_server(serve, 2, clients);
                printf("%d and %d of %d connections\n", server.served[0], server.served[1], CLIENTS);
                ASSERT_EQ(server.served[0] + server.served[1], CLIENTS);
                ASSERT_TRUE(server.served[0] >= CLIENTS / 8 && server.served[1] >= CLIENTS / 8);
        }
}

/* ---- loops that come and go ---- */

struct visit {
        resha_listener *listener;
        atomic_int *served;
        int left;
};

static int answer_and_leave(resha_stream *s, void *arg)
{
        struct visit *v = arg;

        if (--v->left == 0)
                resha_listener_shutdown(v->listener);
        return answer(s, v->served);
}

static int leave_soon(void *arg)
{
        int rc = resha_sleep(RESHA_US(300));

        resha_listener_shutdown(arg);
        return rc;
}

/* Listens for some connections or some time; then its listener has gone, and what it has accepted is answered. */
static int visit(struct server *s, atomic_int *served, int round)
{
        struct visit v = { .served = served, .left = 1 + round % 3 };
        RESHA_GROUP(g);
        int rc = listen_shared(s, &v.listener);

        if (rc < 0)
                return rc;
        resha_group_begin(&g, NULL);
        if (round % 2)
                rc = resha_spawn(&g, leave_soon, v.listener);
        if (rc == 0)
                rc = resha_serve(v.listener, answer_and_leave, &v, &(resha_serve_opts){ .grace = RESHA_S(10) });
        rc = resha_group_end(&g, rc);
        resha_listener_close(v.listener);
        return rc;
}

static int comes_and_goes(void *arg)
{
        struct server *s = arg;
        int turn = atomic_fetch_add(&s->turn, 1), rc = 0;

        if (turn == 0)
                return serve_as(s, 0);
        while (rc == 0 && atomic_load(&s->ready) == 0)
                rc = resha_sleep(RESHA_MS(1));
        atomic_fetch_add(&s->ready, turn != 0);
        for (int round = 0; rc == 0 && !atomic_load(&s->over); round++)
                rc = visit(s, &s->served[turn], round);
        return rc;
}

/* One at a time: who is left in the queue would be found by nobody. */
TEST(no_connection_is_lost_when_a_loop_goes)
{
        if (test_is_sim())
                test_skip("there is one loop");
        for (int local = 0; local < 2; local++) {
                server_init(local, STORM);
                run_server(comes_and_goes, SIDES, clients);
                printf("%d, %d, %d\n", server.served[0], server.served[1], server.served[2]);
                ASSERT_EQ(server.served[0] + server.served[1] + server.served[2], STORM);
        }
}

/* The first is cancelled, and has nothing or has it all the same. */
static int wait_for_one(void *arg)
{
        resha_task *tasks = arg;
        int status, rc = resha_task_wait(&tasks[0], &status);

        return rc == 0 && status < 0 ? resha_task_wait(&tasks[1], NULL) : rc;
}

struct waiting {
        resha_listener *listener;
        resha_stream *stream;
        int result;
};

static int accepts(void *arg)
{
        struct waiting *w = arg;

        return w->result = resha_accept(w->listener, &w->stream);
}

/* Two on one loop, so that the order is sure: the kernel tells the first, who is cancelled before it can look. */
TASK(who_is_told_and_goes_passes_it_on)
{
        struct waiting w[2] = { 0 };
        resha_task tasks[2] = { 0 };
        RESHA_GROUP(g);

        if (test_is_sim())
                test_skip("there it is the turn of one");
        server_init(true, 1);
        resha_group_begin(&g, &(resha_group_opts){ .keep_going = true });
        for (int i = 0; i < 2; i++) {
                ASSERT_OK(listen_shared(&server, &w[i].listener));
                ASSERT_OK(resha_spawn_task(&g, accepts, &w[i], &tasks[i]));
                ASSERT_OK(resha_sleep(RESHA_MS(2)));
        }
        int fd = dial(&server.asked);
        resha_task_cancel(&tasks[0]);
        ASSERT_OK(resha_timeout(RESHA_S(10), wait_for_one, tasks));
        ASSERT_EQ((w[0].result == 1) + (w[1].result == 1), 1);
        resha_group_cancel(&g);
        ASSERT_TRUE(resha_group_end(&g, 0) <= 0);
        for (int i = 0; i < 2; i++) {
                if (w[i].result == 1)
                        resha_stream_close(w[i].stream);
                resha_listener_close(w[i].listener);
        }
        close(fd);
        return 0;
}

static void *bursts(void *arg)
{
        struct server *s = arg;
        int fds[BURST];

        while (atomic_load(&s->ready) < SIDES)
                usleep(100);
        for (int i = 0; i < s->clients; i += BURST) {
                for (int k = 0; k < BURST; k++)
                        fds[k] = dial(&s->at);
                for (int k = 0; k < BURST; k++)
                        hear(fds[k]);
                if (i == s->clients / 2)
                        resha_loop_cancel(s->loops[1]);
        }
        for (int i = 0; i < SIDES; i++)
                resha_loop_cancel(s->loops[i]);
        return NULL;
}

/* It ends well, whatever has ended its server. */
static int serve_and_end(void *arg)
{
        int rc = serve(arg);

        return rc == -ECANCELED && atomic_load(&server.over) ? rc : 0;
}

TEST(no_connection_is_lost_when_a_loop_ends_in_a_storm)
{
        if (test_is_sim())
                test_skip("there is one loop");
        for (int local = 0; local < 2; local++) {
                pthread_t t;

                server_init(local, STORM);
                ASSERT_EQ(pthread_create(&t, NULL, bursts, &server), 0);
                ASSERT_OK(run_loops(serve_and_end, &server, SIDES, 0));
                ASSERT_EQ(pthread_join(t, NULL), 0);
                for (int i = 0; i < SIDES; i++)
                        resha_loop_unref(server.loops[i]);
                printf("%d, %d, %d\n", server.served[0], server.served[1], server.served[2]);
                ASSERT_EQ(server.served[0] + server.served[1] + server.served[2], STORM);
        }
}
