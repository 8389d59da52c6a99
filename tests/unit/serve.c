/* SPDX-License-Identifier: MIT */
/* Listeners and servers: limits, drain, shutdown, cancel. */

#include "test.h"

#include <string.h>

struct world {
        resha_listener *listener;
        resha_addr addr;
        resha_serve_opts opts;
        int (*handler)(resha_stream *s, void *arg);
        int result;
        size_t live, most, served, cancelled;
        resha_event go;
};

static void world_open(struct world *w)
{
        ASSERT_OK(resha_tcp_listen("127.0.0.1", 0, &w->listener));
        ASSERT_OK(resha_listener_addr(w->listener, &w->addr));
}

static int server(void *arg)
{
        struct world *w = arg;

        w->result = resha_serve(w->listener, w->handler, w, &w->opts);
        return w->result;
}

/* ---- accepting ---- */

static int accept_one(void *arg)
{
        struct world *w = arg;
        resha_stream *s;
        int rc = resha_accept(w->listener, &s);

        if (rc == 1)
                resha_stream_close(s);
        w->result = rc;
        return 0;
}

TASK(a_shutdown_ends_the_accept_that_waits_and_refuses_clients)
{
        struct world w = { .result = -1 };
        resha_stream *s;
        RESHA_GROUP(g);

        world_open(&w);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, accept_one, &w);
        ASSERT_OK(resha_sleep(RESHA_MS(1)));
        resha_listener_shutdown(w.listener);
        resha_listener_shutdown(w.listener);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(w.result, 0);
        ASSERT_EQ(resha_accept(w.listener, &s), 0);
        ASSERT_EQ(resha_tcp_connect_addr(&w.addr, &s), -ECONNREFUSED);
        resha_listener_close(w.listener);
        return 0;
}

TASK(a_close_ends_the_accept_that_waits)
{
        struct world w = { .result = -1 };
        RESHA_GROUP(g);

        world_open(&w);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, accept_one, &w);
        ASSERT_OK(resha_sleep(RESHA_MS(1)));
        resha_listener_closep(&w.listener);
        ASSERT_EQ(w.result, 0);
        ASSERT_OK(resha_group_end(&g, 0));
        return 0;
}

TASK(a_second_accept_is_refused)
{
        struct world w = { .result = -1 };
        resha_stream *s;
        RESHA_GROUP(g);

        world_open(&w);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, accept_one, &w);
        ASSERT_OK(resha_sleep(RESHA_MS(1)));
        ASSERT_EQ(resha_accept(w.listener, &s), -EBUSY);
        resha_listener_shutdown(w.listener);
        ASSERT_OK(resha_group_end(&g, 0));
        resha_listener_close(w.listener);
        return 0;
}

enum { CONNECTIONS = 100 };

static int connect_many(void *arg)
{
        struct world *w = arg;

        for (int i = 0; i < CONNECTIONS; i++) {
                resha_stream *s;
                int rc = resha_tcp_connect_addr(&w->addr, &s);
                if (rc == 0) {
                        resha_stream_close(s);
                        rc = resha_sleep(RESHA_US(i % 4 * 20));
                }
                if (rc < 0)
                        return rc;
        }
        return 0;
}

static int accept_and_count(void *arg)
{
        struct world *w = arg;
        resha_stream *s;
        int rc = resha_accept(w->listener, &s);

        if (rc == 1) {
                w->served++;
                resha_stream_close(s);
        }
        return rc;
}

static int accept_under_timeouts(void *unused)
{
        struct world w = { 0 };
        RESHA_GROUP(g);
        int rc;

        (void)unused;
        world_open(&w);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, connect_many, &w);
        for (int tries = 0; w.served < CONNECTIONS; tries++)
                if ((rc = resha_timeout(RESHA_US(tries % 50), accept_and_count, &w)) != -ETIME)
                        ASSERT_EQ(rc, 1);
        ASSERT_OK(resha_group_end(&g, 0));
        resha_listener_close(w.listener);
        return 0;
}

/* semantics 273 same
 * asyncio: a connection that came while sock_accept() was being cancelled is not dropped.
 * resha: the same for resha_accept(): whether its cancel or the connection comes first, the connection is returned, by
 * this call or the next. */
TEST(semantics_273_no_connection_is_lost_by_cancels_at_any_moment)
{
        RUN_SEEDS(accept_under_timeouts, NULL, 20);
}

/* ---- serving ---- */

static int greet(resha_stream *s, void *arg)
{
        struct world *w = arg;

        w->live++;
        if (w->live > w->most)
                w->most = w->live;
        int rc = resha_sleep(RESHA_MS(2));
        if (rc == 0)
                rc = resha_write_all(s, "hello", 5, NULL);
        w->live--;
        w->served += rc == 0;
        w->cancelled += rc == -ECANCELED;
        return rc;
}

static int visit(void *arg)
{
        struct world *w = arg;
        resha_stream *s;
        char buf[8];
        int rc = resha_tcp_connect_addr(&w->addr, &s);

        if (rc < 0)
                return rc;
        ssize_t n = resha_read_exactly(s, buf, sizeof buf);
        resha_stream_close(s);
        return n == 5 ? 0 : n < 0 ? (int)n : -EPIPE;
}

static int limited(void *unused)
{
        struct world w = { .opts = { .max_connections = 5 }, .handler = greet };
        RESHA_GROUP(g);
        RESHA_GROUP(clients);

        (void)unused;
        world_open(&w);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, server, &w);
        resha_group_begin(&clients, NULL);
        for (int i = 0; i < 40; i++)
                resha_spawn(&clients, visit, &w);
        ASSERT_OK(resha_group_end(&clients, 0));
        resha_listener_shutdown(w.listener);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(w.most, 5);
        ASSERT_EQ(w.served, 40);
        resha_listener_close(w.listener);
        return 0;
}

TEST(no_more_than_the_limit_are_live)
{
        RUN_SEEDS(limited, NULL, 20);
}

static int fail_at_once(resha_stream *s, void *arg)
{
        struct world *w = arg;

        (void)s;
        w->served++;
        return resha_fail(-EIO, "this handler always fails");
}

TASK(a_handler_that_fails_ends_its_connection_only)
{
        struct world w = { .handler = fail_at_once };
        RESHA_GROUP(g);

        world_open(&w);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, server, &w);
        for (int i = 0; i < 5; i++)
                ASSERT_EQ(visit(&w), -EPIPE);
        resha_listener_shutdown(w.listener);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(w.served, 5);
        resha_listener_close(w.listener);
        return 0;
}

/* ---- ending ---- */

/* Three connections that take 30 ms each; 10 ms after their start the server is ended. (Longer on the real clock.) */
static int begin_three(struct world *w, resha_group *g, resha_group *clients)
{
        world_open(w);
        resha_group_begin(g, NULL);
        resha_spawn(g, server, w);
        resha_group_begin(clients, &(resha_group_opts){ .keep_going = true });
        for (int i = 0; i < 3; i++)
                resha_spawn(clients, visit, w);
        return resha_sleep(RESHA_MS(10 * test_stretch()));
}

static int slow(resha_stream *s, void *arg)
{
        struct world *w = arg;
        int rc = resha_sleep(RESHA_MS(30 * test_stretch()));

        if (rc == 0)
                rc = resha_write_all(s, "hello", 5, NULL);
        w->served += rc == 0;
        w->cancelled += rc == -ECANCELED;
        return rc;
}

TASK(a_shutdown_lets_handlers_end_within_the_grace)
{
        struct world w = { .handler = slow, .opts = { .grace = RESHA_S(5) } };
        RESHA_GROUP(g);
        RESHA_GROUP(clients);

        ASSERT_OK(begin_three(&w, &g, &clients));
        resha_listener_shutdown(w.listener);
        ASSERT_OK(resha_group_end(&clients, 0));
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(w.served, 3);
        ASSERT_EQ(w.cancelled, 0);
        resha_listener_close(w.listener);
        return 0;
}

TASK(a_close_shuts_the_server_down_also_while_it_is_full)
{
        struct world w = { .handler = slow, .opts = { .max_connections = 3, .grace = RESHA_S(5) } };
        RESHA_GROUP(g);
        RESHA_GROUP(clients);

        ASSERT_OK(begin_three(&w, &g, &clients));
        resha_listener_closep(&w.listener); /* freed while the handlers go on */
        ASSERT_OK(resha_group_end(&clients, 0));
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(w.result, 0);
        ASSERT_EQ(w.served, 3);
        ASSERT_EQ(w.cancelled, 0);
        return 0;
}

static int greet_when_told(resha_stream *s, void *arg)
{
        struct world *w = arg;
        int rc = resha_event_wait(&w->go);

        if (rc == 0)
                rc = resha_write_all(s, "hello", 5, NULL);
        w->served += rc == 0;
        return rc;
}

/* semantics 264 same
 * asyncio: Server.close() ends the listening, connections go on; wait_closed() ends when none is left.
 * resha: so does resha_listener_shutdown(), and resha_serve() returns when none is left, if the grace is long enough:
 * RESHA_FOREVER is. */
TASK(semantics_264_shut_down_server_ends_with_its_last_connection)
{
        struct world w = { .handler = greet_when_told, .opts = { .grace = RESHA_FOREVER }, .result = 1 };
        resha_stream *s;
        RESHA_GROUP(g);
        RESHA_GROUP(clients);

        ASSERT_OK(begin_three(&w, &g, &clients));
        resha_listener_shutdown(w.listener);
        ASSERT_OK(resha_sleep(test_is_sim() ? RESHA_S(1000) : RESHA_MS(1)));
        ASSERT_EQ(resha_tcp_connect_addr(&w.addr, &s), -ECONNREFUSED);
        ASSERT_EQ(w.result, 1); /* it has not returned */
        resha_event_set(&w.go);
        ASSERT_OK(resha_group_end(&clients, 0));
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(w.result, 0);
        ASSERT_EQ(w.served, 3);
        resha_listener_close(w.listener);
        return 0;
}

TASK(handlers_that_outlast_the_grace_are_cancelled)
{
        struct world w = { .handler = slow, .opts = { .grace = RESHA_MS(5) } };
        RESHA_GROUP(g);
        RESHA_GROUP(clients);

        ASSERT_OK(begin_three(&w, &g, &clients));
        resha_listener_shutdown(w.listener);
        ASSERT_EQ(resha_group_end(&clients, 0), -EPIPE);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(w.served, 0);
        ASSERT_EQ(w.cancelled, 3);
        resha_listener_close(w.listener);
        return 0;
}

/* The same with the server in a scope of its own, which is cancelled. */
static int cancelled_server(struct world *w)
{
        resha_task task = { 0 };
        RESHA_GROUP(g);

        world_open(w);
        resha_group_begin(&g, &(resha_group_opts){ .keep_going = true });
        resha_spawn_task(&g, server, w, &task);
        for (int i = 0; i < 3; i++)
                resha_spawn(&g, visit, w);
        ASSERT_OK(resha_sleep(RESHA_MS(10 * test_stretch())));
        resha_task_cancel(&task);
        int rc = resha_group_end(&g, 0);
        resha_listener_close(w->listener);
        return rc;
}

TASK(a_cancelled_server_gives_its_handlers_their_grace)
{
        struct world w = { .handler = slow, .opts = { .grace = RESHA_S(5) } };
        resha_instant start = resha_now();

        (void)cancelled_server(&w);
        ASSERT_EQ(w.result, -ECANCELED);
        ASSERT_EQ(w.served, 3);
        ASSERT_TRUE(test_ms_since(start) < 5000);
        return 0;
}

TASK(without_grace_a_cancelled_server_cancels_at_once)
{
        struct world w = { .handler = slow };

        ASSERT_EQ(cancelled_server(&w), -EPIPE);
        ASSERT_EQ(w.result, -ECANCELED);
        ASSERT_EQ(w.cancelled, 3);
        return 0;
}

static int stay(resha_stream *s, void *arg)
{
        char c;

        (void)arg;
        return (int)resha_read(s, &c, 1);
}

/* One connection of a server that is ended by a shutdown without grace: what its client reads at last. */
static ssize_t last_read_of_a_client(struct world *w)
{
        resha_stream *s RESHA_CLEANUP(resha_stream_closep) = NULL;
        ssize_t n;
        char c;
        RESHA_GROUP(g);

        world_open(w);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, server, w);
        ASSERT_OK(resha_tcp_connect_addr(&w->addr, &s));
        ASSERT_OK(resha_sleep(RESHA_MS(20)));
        resha_listener_shutdown(w->listener);
        n = resha_read(s, &c, 1);
        ASSERT_OK(resha_group_end(&g, 0));
        resha_listener_close(w->listener);
        return n;
}

/* semantics 265 same
 * asyncio: close_clients() closes the connections of a server, abort_clients() aborts them.
 * resha: a server that ends cancels the handlers that outlast its grace, at once where there is none, and closes their
 * connections; with abort_failed it aborts them: their peers see a reset. */
TASK(semantics_265_without_grace_connections_are_closed_or_aborted)
{
        struct world closed = { .handler = stay }, aborted = { .handler = stay, .opts = { .abort_failed = true } };

        ASSERT_EQ(last_read_of_a_client(&closed), 0);
        ASSERT_EQ(last_read_of_a_client(&aborted), -ECONNRESET);
        return 0;
}

static int forget_it(resha_stream *s, void *arg)
{
        struct world *w = arg;

        (void)s;
        w->served++;
        return w->served == 1 ? 0 : -EIO;
}

/* semantics 262 better
 * asyncio: a connection that its handler forgot is closed by the garbage collector, with a warning.
 * resha: the connection belongs to the server: however the handler ends, it is closed then. */
TASK(semantics_262_connection_is_closed_when_its_handler_returns)
{
        struct world w = { .handler = forget_it };
        char c;
        RESHA_GROUP(g);

        world_open(&w);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, server, &w);
        for (size_t i = 1; i <= 3; i++) {
                resha_stream *s RESHA_CLEANUP(resha_stream_closep) = NULL;
                ASSERT_OK(resha_tcp_connect_addr(&w.addr, &s));
                ASSERT_EQ(resha_read(s, &c, 1), 0);
                ASSERT_EQ(w.served, i);
        }
        resha_listener_shutdown(w.listener);
        ASSERT_OK(resha_group_end(&g, 0));
        resha_listener_close(w.listener);
        return 0;
}

/* semantics 266 same
 * asyncio: a serve_forever() that is cancelled closes its server; a second one at the same time raises.
 * resha: a resha_serve() that is cancelled shuts its listener down, so that clients are refused while the handlers
 * still have their grace; a second one at the same time gives -EBUSY. */
TASK(semantics_266_cancelled_server_shuts_its_listener_down)
{
        struct world w = { .handler = greet_when_told, .opts = { .grace = RESHA_FOREVER }, .result = 1 };
        resha_task task = { 0 };
        resha_stream *s;
        RESHA_GROUP(g);

        world_open(&w);
        resha_group_begin(&g, NULL);
        resha_spawn_task(&g, server, &w, &task);
        resha_spawn(&g, visit, &w);
        ASSERT_OK(resha_sleep(RESHA_MS(20)));
        ASSERT_EQ(resha_serve(w.listener, stay, &w, NULL), -EBUSY);
        resha_task_cancel(&task);
        ASSERT_OK(resha_sleep(RESHA_MS(1)));
        ASSERT_EQ(resha_tcp_connect_addr(&w.addr, &s), -ECONNREFUSED);
        ASSERT_EQ(w.result, 1); /* it waits for its handler */
        resha_event_set(&w.go);
        ASSERT_OK(resha_task_wait(&task, NULL));
        ASSERT_EQ(w.result, -ECANCELED);
        ASSERT_EQ(w.served, 1);
        ASSERT_OK(resha_group_end(&g, 0));
        resha_listener_close(w.listener);
        return 0;
}

/* The server waits for room, not for a connection. */
TASK(a_server_cancelled_before_it_began_refuses_clients_too)
{
        struct world w = { .handler = greet };
        resha_stream *s;
        RESHA_GROUP(g);

        world_open(&w);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, server, &w);
        resha_group_cancel(&g);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(w.result, -ECANCELED);
        ASSERT_EQ(resha_tcp_connect_addr(&w.addr, &s), -ECONNREFUSED);
        resha_listener_close(w.listener);
        return 0;
}

TASK(a_full_server_sees_its_shutdown)
{
        struct world w = { .handler = stay, .opts = { .max_connections = 1 } };
        resha_stream *s;
        RESHA_GROUP(g);

        world_open(&w);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, server, &w);
        ASSERT_OK(resha_tcp_connect_addr(&w.addr, &s));
        ASSERT_OK(resha_sleep(RESHA_MS(5)));
        resha_listener_shutdown(w.listener);
        ASSERT_OK(resha_group_end(&g, 0));
        resha_stream_close(s);
        resha_listener_close(w.listener);
        return 0;
}
