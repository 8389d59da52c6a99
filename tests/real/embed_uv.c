/* SPDX-License-Identifier: MIT */
/* Embedded runs in a loop of libuv, beside its own timers, threads and sockets. */

#include "host.h"

#if RS_HAVE_UV

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <uv.h>

/* A run, the handle that watches it, and what became of it. */
struct guest {
        resha_embed *e;
        uv_poll_t poll;
        unsigned steps;
        int result;
        bool ended;
};

static void on_readable(uv_poll_t *poll, int status, int events)
{
        struct guest *g = poll->data;

        ASSERT_EQ(status, 0);
        ASSERT_EQ(events, UV_READABLE);
        g->steps++;
        int rc = resha_embed_step(g->e, RESHA_MS(2));
        ASSERT_OK(rc);
        if (rc > 0)
                return;
        uv_close((uv_handle_t *)poll, NULL);
        g->result = resha_embed_end(g->e);
        g->ended = true;
}

static void enter(uv_loop_t *loop, struct guest *g, resha_fn *fn, void *arg)
{
        *g = (struct guest){ .e = host_begin(fn, arg, NULL) };
        ASSERT_EQ(uv_poll_init(loop, &g->poll, resha_embed_fd(g->e)), 0);
        g->poll.data = g;
        ASSERT_EQ(uv_poll_start(&g->poll, UV_READABLE, on_readable), 0);
}

static void run(uv_loop_t *loop)
{
        ASSERT_EQ(uv_run(loop, UV_RUN_DEFAULT), 0);
        ASSERT_EQ(uv_loop_close(loop), 0);
        uv_library_shutdown(); /* its descriptors and threads */
}

static unsigned ticks;

static void on_tick(uv_timer_t *timer)
{
        if (++ticks == 20)
                uv_close((uv_handle_t *)timer, NULL);
}

TEST(timers_of_both_run)
{
        struct guest g[2];
        unsigned done[2] = { 0 };
        uv_timer_t timer;
        uv_loop_t loop;

        ASSERT_EQ(uv_loop_init(&loop), 0);
        for (int i = 0; i < 2; i++)
                enter(&loop, &g[i], host_sleeps, &done[i]);
        ASSERT_EQ(uv_timer_init(&loop, &timer), 0);
        ASSERT_EQ(uv_timer_start(&timer, on_tick, 1, 1), 0);
        run(&loop);
        ASSERT_EQ(ticks, 20);
        for (int i = 0; i < 2; i++) {
                ASSERT_TRUE(g[i].ended);
                ASSERT_EQ(g[i].result, 0);
                ASSERT_EQ(done[i], HOST_SLEEPS);
                if (!test_is_sim())
                        ASSERT_TRUE(g[i].steps <= HOST_SLEEPS + 2);
        }
}

/* ---- a client of libuv and a server of ours ---- */

enum { ECHOES = 100 };

struct service {
        resha_listener *listener;
        uint16_t port;
};

static int echo(resha_stream *s, void *arg)
{
        char buf[64];
        ssize_t n;

        (void)arg;
        while ((n = resha_read(s, buf, sizeof buf)) > 0) {
                int rc = resha_write_all(s, buf, (size_t)n, NULL);
                if (rc < 0)
                        return rc;
        }
        return (int)n;
}

static int serves(void *arg)
{
        struct service *s = arg;

        s->listener = real_listener(&s->port);
        int rc = resha_serve(s->listener, echo, NULL, NULL);
        resha_listener_close(s->listener);
        return rc;
}

static struct client {
        uv_tcp_t tcp;
        uv_connect_t connect;
        uv_write_t write;
        char in[64];
        unsigned echoes;
        resha_loop *server;
} client;

static void write_next(void)
{
        static char text[] = "hello";
        uv_buf_t buf = uv_buf_init(text, 5);

        ASSERT_EQ(uv_write(&client.write, (uv_stream_t *)&client.tcp, &buf, 1, NULL), 0);
}

static void on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *buf)
{
        (void)handle, (void)size;
        *buf = uv_buf_init(client.in, sizeof client.in);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
        ASSERT_EQ(n, 5);
        ASSERT_EQ(memcmp(buf->base, "hello", 5), 0);
        if (++client.echoes < ECHOES) {
                write_next();
                return;
        }
        uv_close((uv_handle_t *)stream, NULL);
        resha_loop_cancel(client.server);
}

static void on_connect(uv_connect_t *request, int status)
{
        (void)request;
        ASSERT_EQ(status, 0);
        ASSERT_EQ(uv_read_start((uv_stream_t *)&client.tcp, on_alloc, on_read), 0);
        write_next();
}

TEST(a_client_of_the_host_and_a_server_in_the_run)
{
        struct service s = { 0 };
        struct sockaddr_in a;
        struct guest g;
        uv_loop_t loop;

        if (test_is_sim())
                test_skip("needs sockets");
        ASSERT_EQ(uv_loop_init(&loop), 0);
        enter(&loop, &g, serves, &s);
        client.server = resha_embed_loop(g.e);
        while (!s.port)
                uv_run(&loop, UV_RUN_ONCE);
        ASSERT_EQ(uv_ip4_addr("127.0.0.1", s.port, &a), 0);
        ASSERT_EQ(uv_tcp_init(&loop, &client.tcp), 0);
        ASSERT_EQ(uv_tcp_connect(&client.connect, &client.tcp, (struct sockaddr *)&a, on_connect), 0);
        run(&loop);
        resha_loop_unref(client.server);
        ASSERT_EQ(client.echoes, ECHOES);
        ASSERT_EQ(g.result, -ECANCELED);
        ASSERT_TRUE(g.steps <= ECHOES * 3 + 10);
}

/* ---- threads of libuv's pool ---- */

enum { JOBS = 200 };

static struct {
        resha_loop *loop;
        resha_event all;
        unsigned arrived;
        uv_work_t work[JOBS];
} pool;

static void arrives(void *arg)
{
        if (++*(unsigned *)arg == JOBS)
                resha_event_set(&pool.all);
}

static void job(uv_work_t *work)
{
        (void)work;
        ASSERT_OK(resha_loop_post(pool.loop, arrives, &pool.arrived));
}

static int waits_for_all(void *arg)
{
        int rc = resha_event_wait(&pool.all);

        resha_loop_unrefp(&pool.loop);
        (void)arg;
        return rc;
}

TEST(threads_of_the_host_post_to_the_run)
{
        struct guest g;
        uv_loop_t loop;

        ASSERT_EQ(uv_loop_init(&loop), 0);
        enter(&loop, &g, waits_for_all, NULL);
        pool.loop = resha_embed_loop(g.e);
        for (int i = 0; i < JOBS; i++)
                ASSERT_EQ(uv_queue_work(&loop, &pool.work[i], job, NULL), 0);
        run(&loop);
        ASSERT_TRUE(g.ended);
        ASSERT_EQ(g.result, 0);
        if (!test_is_sim())
                ASSERT_TRUE(g.steps <= JOBS + 2);
}

#else

TEST(embedded_in_libuv)
{
        test_skip("libuv is not installed (Debian: libuv1-dev)");
}

#endif
