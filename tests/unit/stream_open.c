/* SPDX-License-Identifier: MIT */
/* How streams begin: at an address, from an address, at a Unix socket; and what it says when they do not. */

#include <unistd.h>

#include "pair.h"

#define STREAM(s) resha_stream *s RESHA_CLEANUP(resha_stream_closep) = NULL

static void text_of(resha_stream *s, bool peer, char text[static RESHA_ADDR_TEXT_MAX])
{
        resha_addr a;

        ASSERT_OK(resha_stream_addr(s, peer, &a));
        resha_addr_format(&a, text, RESHA_ADDR_TEXT_MAX);
}

TASK(a_connection_comes_from_the_address_that_was_asked_for)
{
        char here[RESHA_ADDR_TEXT_MAX], there[RESHA_ADDR_TEXT_MAX];
        resha_listener *l RESHA_CLEANUP(resha_listener_closep) = NULL;
        resha_addr at, from;
        STREAM(out);
        STREAM(in);

        ASSERT_OK(resha_tcp_listen("127.0.0.1", 0, &l));
        ASSERT_OK(resha_listener_addr(l, &at));
        ASSERT_OK(resha_addr_parse("127.0.0.9", 0, &from));
        ASSERT_OK(resha_connect(&at, &(resha_connect_opts){ .local = &from }, &out));
        ASSERT_EQ(resha_accept(l, &in), 1);
        text_of(out, false, here);
        text_of(in, true, there);
        ASSERT_STR(here, there);
        ASSERT_HAS(here, "127.0.0.9:");
        text_of(out, true, here);
        text_of(in, false, there);
        ASSERT_STR(here, there);
        return 0;
}

TASK(where_it_cannot_come_from_is_told)
{
        resha_listener *l RESHA_CLEANUP(resha_listener_closep) = NULL;
        resha_addr at, from;
        resha_stream *s;

        ASSERT_OK(resha_tcp_listen("127.0.0.1", 0, &l));
        ASSERT_OK(resha_listener_addr(l, &at));
        from = at; /* somebody listens there */
        ASSERT_EQ(resha_connect(&at, &(resha_connect_opts){ .local = &from }, &s), -EADDRINUSE);
        ASSERT_HAS(resha_error_of(-EADDRINUSE)->text, "from 127.0.0.1:");
        resha_connect_opts wrong = { ._reserved = { 1 } };
        ASSERT_EQ(resha_connect(&at, &wrong, &s), -EINVAL);
        ASSERT_OK(resha_addr_parse("::1", 0, &from));
        ASSERT_EQ(resha_connect(&at, &(resha_connect_opts){ .local = &from }, &s), -EINVAL);
        ASSERT_HAS(resha_error_of(-EINVAL)->text, "different families");
        return 0;
}

TASK(a_unix_socket_is_connected_to_by_its_name)
{
        resha_listener *l RESHA_CLEANUP(resha_listener_closep) = NULL;
        char text[RESHA_ADDR_TEXT_MAX], name[64], buf[8];
        STREAM(out);
        STREAM(in);

        snprintf(name, sizeof name, "@resha-test-%lld", (long long)resha_now().ns);
        ASSERT_OK(resha_unix_listen(name, NULL, &l));
        ASSERT_OK(resha_unix_connect(name, &out));
        ASSERT_EQ(resha_accept(l, &in), 1);
        ASSERT_STR(resha_stream_kind(out), "unix");
        ASSERT_STR(resha_stream_kind(in), "unix");
        text_of(out, true, text);
        ASSERT_STR(text, name);
        ASSERT_OK(resha_write_vec(out, (struct iovec[]){ { "he", 2 }, { "llo", 3 } }, 2, NULL));
        ASSERT_EQ(resha_read_exactly(in, buf, 5), 5);
        ASSERT_EQ(memcmp(buf, "hello", 5), 0);
        resha_stream_closep(&in);
        ASSERT_EQ(resha_read(out, buf, sizeof buf), 0);
        ASSERT_EQ(resha_write_all(out, "x", 1, NULL), -EPIPE);
        return 0;
}

TASK(a_unix_socket_that_is_not_there_is_told_by_its_name)
{
        char path[200];
        resha_stream *s;

        ASSERT_EQ(resha_unix_connect("/tmp/resha/no/such/socket", &s), -ENOENT);
        ASSERT_HAS(resha_error_of(-ENOENT)->text, "/tmp/resha/no/such/socket");
        ASSERT_EQ(resha_unix_connect("@resha-nobody-listens-here", &s), -ECONNREFUSED);
        ASSERT_HAS(resha_error_of(-ECONNREFUSED)->text, "@resha-nobody-listens-here");
        ASSERT_EQ(resha_unix_connect("", &s), -EINVAL);
        memset(path, 'x', sizeof path);
        path[sizeof path - 1] = '\0';
        ASSERT_EQ(resha_unix_connect(path, &s), -ENAMETOOLONG);
        return 0;
}

enum { CALLERS = 6 };

static int call_and_wait(void *arg)
{
        STREAM(s);
        char c;
        int rc = resha_connect(arg, NULL, &s);
        ssize_t n = rc < 0 ? rc : resha_read(s, &c, 1);

        return n == 1 ? 0 : n < 0 ? (int)n : -EPIPE;
}

/* Linux tells a client of a Unix socket whose queue is full to come again. */
TASK(a_unix_listener_with_a_full_queue_makes_its_clients_wait)
{
        resha_listener *l RESHA_CLEANUP(resha_listener_closep) = NULL;
        resha_listen_opts opts = { .backlog = 1 };
        resha_stream *none = NULL;
        resha_addr at;
        char name[64];

        snprintf(name, sizeof name, "@full of unit-stream_open %d", (int)getpid());
        ASSERT_OK(resha_unix_listen(name, &opts, &l));
        ASSERT_OK(resha_listener_addr(l, &at));
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (int i = 0; i < CALLERS; i++)
                resha_spawn(&g, call_and_wait, &at);
        ASSERT_OK(resha_sleep(RESHA_MS(5)));
        RESHA_SCOPE(late);
        resha_timeout_begin(&late, RESHA_MS(5));
        ASSERT_EQ(resha_scope_end(&late, resha_connect(&at, NULL, &none)), -ETIME);
        for (int i = 0; i < CALLERS; i++) {
                STREAM(s);
                ASSERT_EQ(resha_accept(l, &s), 1);
                ASSERT_OK(resha_write_all(s, "x", 1, NULL));
        }
        return resha_group_end(&g, 0);
}
