/* SPDX-License-Identifier: MIT */
/* Listeners at addresses of every family, their options, and what a server's limits do. */

#include "test.h"

#include <errno.h>
#include <unistd.h>

/* An abstract name of this process; nothing is left of it. */
static const char *name(void)
{
        static char text[64];

        snprintf(text, sizeof text, "@resha-unit-%d", (int)getpid());
        return text;
}

/* One connection to where n listens, both ways. */
static void assert_connects(resha_listener *n)
{
        resha_stream *here, *there;
        resha_addr a;
        char c;

        ASSERT_OK(resha_listener_addr(n, &a));
        ASSERT_OK(resha_connect(&a, NULL, &here));
        ASSERT_EQ(resha_accept(n, &there), 1);
        ASSERT_OK(resha_write_all(here, "x", 1, NULL));
        ASSERT_EQ(resha_read(there, &c, 1), 1);
        ASSERT_OK(resha_write_all(there, "y", 1, NULL));
        ASSERT_EQ(resha_read(here, &c, 1), 1);
        resha_stream_close(here);
        resha_stream_close(there);
}

TASK(an_address_of_every_family_is_listened_at)
{
        static const char *const literals[] = { "127.0.0.1", "::1", "0.0.0.0", "::" };
        resha_listener *n;
        resha_addr a;

        for (size_t i = 0; i < sizeof literals / sizeof *literals; i++) {
                ASSERT_OK(resha_addr_parse(literals[i], 0, &a));
                int rc = resha_listen(&a, NULL, &n);
                if (i % 2 && (rc == -EAFNOSUPPORT || rc == -EADDRNOTAVAIL))
                        continue; /* a machine without IPv6 */
                ASSERT_OK(rc);
                ASSERT_OK(resha_listener_addr(n, &a));
                ASSERT_TRUE(resha_addr_port(&a) != 0);
                resha_listener_close(n);
        }
        ASSERT_OK(resha_addr_parse("127.0.0.1", 0, &a));
        ASSERT_OK(resha_listen(&a, &(resha_listen_opts){ .backlog = 5 }, &n));
        assert_connects(n);
        resha_listener_close(n);
        ASSERT_OK(resha_unix_listen(name(), NULL, &n));
        assert_connects(n);
        resha_listener_close(n);
        return 0;
}

TASK(a_unix_name_is_free_again_when_its_listener_is_shut_down)
{
        char text[RESHA_ADDR_TEXT_MAX];
        resha_listener *n, *other;
        resha_stream *s;
        resha_addr a;

        ASSERT_OK(resha_unix_listen(name(), NULL, &n));
        ASSERT_OK(resha_listener_addr(n, &a));
        ASSERT_STR(resha_addr_format(&a, text, sizeof text), name());
        ASSERT_EQ(resha_unix_listen(name(), NULL, &other), -EADDRINUSE);
        ASSERT_HAS(resha_error_of(-EADDRINUSE)->text, "listen on @resha-unit-");
        resha_listener_shutdown(n);
        ASSERT_EQ(resha_connect(&a, NULL, &s), -ECONNREFUSED);
        ASSERT_OK(resha_unix_listen(name(), NULL, &other));
        assert_connects(other);
        resha_listener_close(n);
        assert_connects(other);
        resha_listener_close(other);
        return 0;
}

TASK(options_that_an_address_does_not_have_are_refused)
{
        resha_listener *n;
        resha_addr a;

        ASSERT_OK(resha_addr_parse("127.0.0.1", 0, &a));
        ASSERT_EQ(resha_listen(&a, &(resha_listen_opts){ .mode = 0600 }, &n), -EINVAL);
        ASSERT_HAS(resha_error_of(-EINVAL)->text, "a mode is for Unix sockets only");
        ASSERT_EQ(resha_listen(&a, &(resha_listen_opts){ .backlog = -1 }, &n), -EINVAL);
        ASSERT_EQ(resha_listen(&a, &(resha_listen_opts){ ._reserved = { 1 } }, &n), -EINVAL);
        ASSERT_EQ(resha_unix_listen(name(), &(resha_listen_opts){ .reuse_port = true }, &n), -EINVAL);
        ASSERT_EQ(resha_unix_listen(name(), &(resha_listen_opts){ .ipv6_only = true }, &n), -EINVAL);
        return 0;
}

TASK(a_port_is_shared_only_where_all_want_it)
{
        resha_listen_opts shared = { .reuse_port = true };
        resha_listener *n, *second, *third;
        resha_addr a;

        ASSERT_OK(resha_addr_parse("127.0.0.1", 0, &a));
        ASSERT_OK(resha_listen(&a, &shared, &n));
        ASSERT_OK(resha_listener_addr(n, &a));
        ASSERT_OK(resha_listen(&a, &shared, &second));
        ASSERT_EQ(resha_listen(&a, NULL, &third), -EADDRINUSE);
        resha_listener_close(n);
        assert_connects(second);
        resha_listener_close(second);
        return 0;
}

/* ---- one queue for several ---- */

enum { SIDES = 3 };

static const resha_listen_opts shared_opts = { .shared = true };

struct side {
        resha_listener *listener;
        resha_task task;
        int accepted, result;
};

/* Until the listener is shut down. */
static int accept_all(void *arg)
{
        struct side *side = arg;
        resha_stream *s;

        while ((side->result = resha_accept(side->listener, &s)) == 1) {
                side->accepted++;
                resha_stream_close(s);
        }
        return side->result;
}

static int connect_once(const resha_addr *a)
{
        resha_stream *s;
        int rc = resha_connect(a, NULL, &s);

        if (rc == 0)
                resha_stream_close(s);
        return rc < 0 ? rc : resha_sleep(RESHA_MS(2));
}

static int connect_times(const resha_addr *a, int times)
{
        int rc = 0;

        for (int i = 0; i < times && rc == 0; i++)
                rc = connect_once(a);
        return rc;
}

static int accepted(const struct side sides[SIDES])
{
        return sides[0].accepted + sides[1].accepted + sides[2].accepted;
}

/* The first listens, the second begins to accept before it. */
static void sides_begin(struct side sides[SIDES], resha_group *g, const resha_addr *at)
{
        for (int i = 0; i < SIDES; i++)
                ASSERT_OK(resha_listen(at, &shared_opts, &sides[i].listener));
        for (int i = 0; i < SIDES; i++)
                ASSERT_OK(resha_spawn_task(g, accept_all, &sides[(i + 1) % SIDES], &sides[(i + 1) % SIDES].task));
        ASSERT_OK(resha_sleep(RESHA_MS(2)));
}

static void one_queue_for_all(const resha_addr *asked)
{
        struct side sides[SIDES] = { 0 };
        resha_stream *s;
        resha_addr at;
        RESHA_GROUP(g);

        resha_group_begin(&g, &(resha_group_opts){ .keep_going = true });
        sides_begin(sides, &g, asked);
        ASSERT_OK(resha_listener_addr(sides[2].listener, &at));
        ASSERT_OK(connect_times(&at, 6));
        ASSERT_EQ(accepted(sides), 6);
        for (int i = 0; i < SIDES && test_is_sim(); i++)
                ASSERT_EQ(sides[i].accepted, 2);
        resha_listener_shutdown(sides[0].listener); /* it has listened first; the others go on */
        ASSERT_OK(connect_times(&at, 2));
        resha_task_cancel(&sides[1].task);
        ASSERT_OK(resha_task_wait(&sides[1].task, NULL));
        ASSERT_EQ(sides[0].result, 0);
        ASSERT_EQ(sides[1].result, -ECANCELED);
        ASSERT_OK(connect_times(&at, 3));
        ASSERT_EQ(accepted(sides), 11);
        resha_listener_close(sides[2].listener);
        ASSERT_OK(connect_once(&at)); /* one is left, in which nobody accepts */
        ASSERT_EQ(resha_accept(sides[1].listener, &s), 1);
        resha_stream_close(s);
        resha_listener_close(sides[1].listener);
        ASSERT_TRUE(connect_once(&at) < 0);
        resha_listener_close(sides[0].listener);
        ASSERT_EQ(resha_group_end(&g, 0), 0);
}

TASK(shared_listeners_have_one_queue)
{
        resha_addr a;

        ASSERT_OK(resha_addr_parse("127.0.0.1", 0, &a));
        one_queue_for_all(&a);
        ASSERT_OK(resha_addr_unix(name(), &a));
        one_queue_for_all(&a);
        one_queue_for_all(&a); /* again: nothing is left of it */
        return 0;
}

TASK(who_listens_without_sharing_is_another_one)
{
        resha_listener *n, *second;
        resha_addr a;

        ASSERT_OK(resha_addr_unix(name(), &a));
        ASSERT_OK(resha_listen(&a, NULL, &n));
        ASSERT_EQ(resha_listen(&a, &shared_opts, &second), -EADDRINUSE);
        ASSERT_EQ(resha_listen(&a, &shared_opts, &second), -EADDRINUSE); /* it would be the first again */
        resha_listener_close(n);
        ASSERT_OK(resha_listen(&a, &shared_opts, &n));
        ASSERT_EQ(resha_listen(&a, NULL, &second), -EADDRINUSE);
        ASSERT_OK(resha_listen(&a, &shared_opts, &second));
        resha_listener_close(n);
        assert_connects(second);
        resha_listener_close(second);
        return 0;
}

TASK(ipv6_alone_leaves_the_port_to_ipv4)
{
        resha_listener *six, *four;
        resha_addr a, b;

        ASSERT_OK(resha_addr_parse("::", 0, &a));
        int rc = resha_listen(&a, &(resha_listen_opts){ .ipv6_only = true }, &six);
        if (rc == -EAFNOSUPPORT || rc == -EADDRNOTAVAIL)
                test_skip("needs IPv6");
        ASSERT_OK(rc);
        ASSERT_OK(resha_listener_addr(six, &a));
        ASSERT_OK(resha_addr_parse("0.0.0.0", resha_addr_port(&a), &b));
        ASSERT_OK(resha_listen(&b, NULL, &four));
        resha_listener_close(six);
        resha_listener_close(four);
        return 0;
}

/* ---- clients that trickle ---- */

enum { ROOM = 100, SLOW = 150 };

struct world {
        resha_listener *listener;
        resha_addr addr;
        unsigned timed_out;
};

static int world_open(struct world *w)
{
        int rc = resha_tcp_listen("127.0.0.1", 0, &w->listener);

        return rc < 0 ? rc : resha_listener_addr(w->listener, &w->addr);
}

static int one_line(void *arg)
{
        char line[64];
        ssize_t n = resha_read_line(arg, line, sizeof line);

        return n > 0 ? resha_write_all(arg, line, (size_t)n, NULL) : (int)n;
}

static int answer(resha_stream *s, void *arg)
{
        struct world *w = arg;
        int rc = resha_timeout(RESHA_S(10), one_line, s);

        w->timed_out += rc == -ETIME;
        return rc;
}

static int serve(void *arg)
{
        struct world *w = arg;

        return resha_serve(w->listener, answer, w, &(resha_serve_opts){ .max_connections = ROOM });
}

/* A byte a second, until the server has enough of it. */
static int trickle(void *arg)
{
        struct world *w = arg;
        resha_stream *s RESHA_CLEANUP(resha_stream_closep) = NULL;
        int rc = resha_tcp_connect_addr(&w->addr, &s);

        while (rc == 0) {
                rc = resha_write_all(s, "x", 1, NULL);
                if (rc == 0)
                        rc = resha_sleep(RESHA_S(1));
        }
        return rc == -ECONNRESET || rc == -EPIPE ? 0 : rc;
}

static int behave(void *arg)
{
        struct world *w = arg;
        resha_stream *s RESHA_CLEANUP(resha_stream_closep) = NULL;
        char line[64];
        int rc = resha_tcp_connect_addr(&w->addr, &s);

        if (rc == 0)
                rc = resha_write_all(s, "hello\n", 6, NULL);
        if (rc < 0)
                return rc;
        ssize_t n = resha_read_line(s, line, sizeof line);
        return n < 0 ? (int)n : n == 6 ? 0 : -EPROTO;
}

/* All places are taken by slow clients, and more of them are in line: who comes last is served when both lots have had
 * their time. */
TASK(slow_clients_that_take_all_places_keep_a_client_waiting_for_their_timeouts_only)
{
        struct world w = { 0 };
        RESHA_GROUP(g);
        RESHA_GROUP(slow);

        SIM_ONLY();
        ASSERT_OK(world_open(&w));
        resha_group_begin(&g, NULL);
        resha_spawn(&g, serve, &w);
        resha_group_begin(&slow, NULL);
        for (int i = 0; i < SLOW; i++)
                resha_spawn(&slow, trickle, &w);
        ASSERT_OK(resha_sleep(RESHA_MS(1)));
        resha_instant start = resha_now();
        ASSERT_OK(behave(&w));
        ASSERT_TRUE(test_ms_since(start) <= 10100); /* the places are taken while it comes, not all before that */
        ASSERT_OK(resha_group_end(&slow, 0));
        ASSERT_EQ(w.timed_out, SLOW);
        resha_listener_shutdown(w.listener);
        ASSERT_OK(resha_group_end(&g, 0));
        resha_listener_close(w.listener);
        return 0;
}

/* ---- who is still in line at the end ---- */

TASK(clients_in_line_at_the_shutdown_see_that_nobody_will_serve_them)
{
        struct world w = { 0 };
        resha_stream *s RESHA_CLEANUP(resha_stream_closep) = NULL;
        char c;

        ASSERT_OK(world_open(&w));
        ASSERT_OK(resha_tcp_connect_addr(&w.addr, &s)); /* by the kernel: nobody has accepted it */
        resha_listener_close(w.listener);
        ssize_t n = resha_read(s, &c, 1);
        ASSERT_EQ(n, -ECONNRESET);
        return 0;
}
