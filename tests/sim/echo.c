/* SPDX-License-Identifier: MIT */
/* An echo server and its clients over the simulated TCP: under every seed, cancel and failure no byte is lost, doubled
 * or out of order, and no connection is left over. */

#include <string.h>

#include "scenario.h"

enum { CLIENTS = 3, BYTES = 700 };

struct echo {
        resha_listener *listener;
        resha_addr at;
        int handlers, most; /* alive at once */
        struct client {
                struct echo *s;
                int i;
                resha_stream *stream;
                size_t got;
                bool ended; /* read the end after all bytes */
                int rc;
        } clients[CLIENTS];
};

static char byte_at(int client, size_t i)
{
        return (char)(i * 7 + i / 256 + (size_t)client * 31);
}

static int handler(resha_stream *stream, void *arg)
{
        struct echo *s = arg;
        char buf[97];
        ssize_t n;

        s->handlers++;
        if (s->handlers > s->most)
                s->most = s->handlers;
        while ((n = resha_read(stream, buf, sizeof buf)) > 0) {
                int rc = resha_write_all(stream, buf, (size_t)n, NULL);
                if (rc < 0) {
                        n = rc;
                        break;
                }
        }
        s->handlers--;
        return (int)n;
}

static int serve(void *arg)
{
        struct echo *s = arg;

        return resha_serve(s->listener, handler, s, &(resha_serve_opts){ .max_connections = 2 });
}

static int sender(void *arg)
{
        struct client *c = arg;
        char buf[150];
        size_t sent = 0;

        while (sent < BYTES) {
                size_t n = 1 + (sent * 13) % sizeof buf, written;
                if (n > BYTES - sent)
                        n = BYTES - sent;
                for (size_t i = 0; i < n; i++)
                        buf[i] = byte_at(c->i, sent + i);
                int rc = resha_write_all(c->stream, buf, n, &written);
                ASSERT_TRUE(rc == 0 ? written == n : written < n);
                if (rc < 0)
                        return rc;
                sent += n;
        }
        return resha_stream_shutdown(c->stream);
}

static int receive(struct client *c)
{
        char buf[64];
        ssize_t n;

        while ((n = resha_read(c->stream, buf, 1 + c->got % sizeof buf)) > 0) {
                ASSERT_TRUE(c->got + (size_t)n <= BYTES);
                for (ssize_t i = 0; i < n; i++)
                        ASSERT_EQ(buf[i], byte_at(c->i, c->got + (size_t)i));
                c->got += (size_t)n;
        }
        c->ended = n == 0;
        return (int)n;
}

/* In ten seconds at most: if the server is cancelled alone, nobody answers. */
static int talk(void *arg)
{
        struct client *c = arg;
        resha_stream *stream RESHA_CLEANUP(resha_stream_closep) = NULL;

        c->rc = resha_tcp_connect_addr(&c->s->at, &stream);
        if (c->rc < 0)
                return c->rc;
        c->stream = stream;
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, sender, c);
        c->rc = resha_group_end(&g, receive(c));
        return c->rc;
}

static int client(void *arg)
{
        struct client *c = arg;

        c->rc = resha_timeout(RESHA_S(10), talk, c);
        return c->rc;
}

static int run(struct echo *s, bool keep_going)
{
        resha_listener *l RESHA_CLEANUP(resha_listener_closep) = NULL;
        int rc = resha_tcp_listen("127.0.0.1", 0, &l);

        if (rc < 0)
                return rc;
        s->listener = l;
        if ((rc = resha_listener_addr(l, &s->at)) < 0)
                return rc;
        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        resha_spawn(&g, serve, s);
        for (int i = 0; i < CLIENTS; i++)
                s->clients[i] = (struct client){ .s = s, .i = i };
        rc = resha_gather(client, s->clients, CLIENTS, sizeof s->clients[0],
                          &(resha_gather_opts){ .keep_going = keep_going });
        return resha_group_end(&g, rc);
}

static int echo_main(void *arg)
{
        return run(arg, false);
}

static int bad_net_main(void *arg)
{
        return run(arg, true);
}

static void echo_check(void *state, int rc, const resha_test_trial *t)
{
        struct echo *s = state;

        ASSERT_EQ(s->handlers, 0);
        ASSERT_TRUE(s->most <= 2);
        for (int i = 0; i < CLIENTS; i++) {
                if (s->clients[i].s && s->clients[i].rc == 0 && rc >= 0)
                        ASSERT_TRUE(s->clients[i].ended);
                if (!t->disturbed) {
                        ASSERT_TRUE(s->clients[i].ended);
                        ASSERT_EQ(s->clients[i].got, BYTES);
                }
        }
}

SCENARIO(sim_echo, echo_main, .seeds = 8, .state = sizeof(struct echo), .check = echo_check)

/* With connections that break: a client gets all, or an error. */
static void bad_net_check(void *state, int rc, const resha_test_trial *t)
{
        struct echo *s = state;
        bool alone = !t->cancelled && !t->alloc_failed && !t->operation_failed;

        (void)rc;
        ASSERT_EQ(s->handlers, 0);
        for (int i = 0; i < CLIENTS; i++)
                if (s->clients[i].stream && s->clients[i].rc == 0 && alone)
                        ASSERT_TRUE(s->clients[i].ended);
}

TEST(sim_echo_on_a_bad_net)
{
        static resha_test_result result;
        static const resha_test_opts opts = {
                .state = sizeof(struct echo),
                .seeds = 8,
                .check = bad_net_check,
                .faults = { [RESHA_TEST_RESET] = 20, [RESHA_TEST_REFUSED] = 300, [RESHA_TEST_ACCEPT] = 200 },
                .ret_result = &result,
        };

        run_scenario("sim_echo_on_a_bad_net", bad_net_main, &opts);
        for (unsigned k = 0; k <= RESHA_TEST_ACCEPT; k++) /* the others are of datagrams */
                if (result.fired[k] < 100)
                        FAIL("fault %u happened only %llu times", k, (unsigned long long)result.fired[k]);
}
