/* SPDX-License-Identifier: MIT */
/* Several loops that listen at one address have one queue of connections: all get their share, and none is lost when
 * one of them goes. A part of the program of run_loops.c. */

#include "common.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <resha/loops.h>

enum { CLIENTS = 64, SIDES = 3, STORM = 400, BURST = 16 };

static int run_loops(resha_fn *fn, void *items, size_t n, size_t size)
{
        return resha_run_loops(fn, items, n, size, &(resha_run_opts){ .backend = test_backend() });
}

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
        if (turn == 0)
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

/* Whether each of the two loops has got its share, at least an eighth. */
static bool is_spread(bool local)
{
        server_init(local, CLIENTS);
        run_server(serve, 2, clients);
        printf("%d and %d of %d connections\n", server.served[0], server.served[1], CLIENTS);
        ASSERT_EQ(server.served[0] + server.served[1], CLIENTS);
        return server.served[0] >= CLIENTS / 8 && server.served[1] >= CLIENTS / 8;
}

/* A loop whose thread gets no processor for a while has no share then: it is asked again. */
TEST(connections_are_spread_over_loops)
{
        if (test_is_sim())
                test_skip("there is one loop");
        for (int local = 0; local < 2; local++) {
                bool spread = false;
                for (int i = 0; i < 20 && !spread; i++)
                        spread = is_spread(local);
                ASSERT_TRUE(spread);
        }
}

static int keeps_busy(void *arg)
{
        int rc = 0;

        (void)arg;
        while (rc == 0) {
                usleep(5000);
                rc = resha_yield();
        }
        return rc;
}

static int serve_busy(void *arg)
{
        struct server *s = arg;
        int turn = atomic_fetch_add(&s->turn, 1);
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        int rc = turn == 0 ? resha_spawn(&g, keeps_busy, NULL) : 0;
        if (rc == 0)
                rc = serve_as(s, turn);
        return resha_group_end(&g, rc);
}

/* The thread of the first is hardly ever free. */
TEST(a_busy_loop_gets_fewer_connections)
{
        if (test_is_sim())
                test_skip("there is one loop");
        server_init(false, CLIENTS);
        run_server(serve_busy, 2, clients);
        printf("%d and %d of %d connections\n", server.served[0], server.served[1], CLIENTS);
        ASSERT_TRUE(server.served[1] >= CLIENTS / 2);
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
