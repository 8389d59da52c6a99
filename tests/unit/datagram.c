/* SPDX-License-Identifier: MIT */
/* Datagrams. */

#include "dgram.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* ---- datagrams ---- */

TASK(each_datagram_comes_whole_with_its_sender)
{
        resha_addr server, from, mine;
        resha_dgram *s = dgram_at("127.0.0.1", NULL, &server), *c = dgram_to(&server);
        char buf[16];

        ASSERT_OK(resha_dgram_send(c, "one", 3, NULL));
        ASSERT_OK(resha_dgram_send(c, "", 0, NULL));
        ASSERT_OK(resha_dgram_send(c, "three", 5, &server));
        ASSERT_EQ(resha_dgram_recv(s, buf, sizeof buf, &from), 3);
        ASSERT_EQ(memcmp(buf, "one", 3), 0);
        ASSERT_OK(resha_dgram_addr(c, false, &mine));
        ASSERT_TRUE(resha_addr_equal(&from, &mine));
        ASSERT_EQ(resha_dgram_recv(s, buf, sizeof buf, &from), 0); /* one of no bytes */
        ASSERT_TRUE(resha_addr_equal(&from, &mine));
        ASSERT_EQ(resha_dgram_recv(s, buf, sizeof buf, NULL), 5);
        ASSERT_OK(resha_dgram_send(s, "back", 4, &from));
        ASSERT_EQ(resha_dgram_recv(c, buf, sizeof buf, &from), 4);
        ASSERT_TRUE(resha_addr_equal(&from, &server));
        ASSERT_OK(resha_dgram_addr(c, true, &from));
        ASSERT_TRUE(resha_addr_equal(&from, &server));
        resha_dgram_close(c);
        resha_dgram_close(s);
        return 0;
}

TASK(what_does_not_fit_is_cut_and_told)
{
        resha_addr server, from;
        resha_dgram *s = dgram_at("127.0.0.1", NULL, &server), *c = dgram_to(&server);
        char buf[8];

        ASSERT_OK(resha_dgram_send(c, "0123456789", 10, NULL));
        ASSERT_OK(resha_dgram_send(c, "01234567", 8, NULL));
        ASSERT_OK(resha_dgram_send(c, "x", 1, NULL));
        ASSERT_EQ(resha_dgram_recv(s, buf, sizeof buf, &from), -EMSGSIZE);
        ASSERT_EQ(memcmp(buf, "01234567", 8), 0);
        ASSERT_EQ(resha_addr_family(&from), AF_INET);
        ASSERT_HAS(resha_error_of(-EMSGSIZE)->text, "a datagram of 10 bytes from 127.0.0.1:");
        ASSERT_EQ(resha_dgram_recv(s, buf, sizeof buf, &from), 8);
        ASSERT_EQ(resha_dgram_recv(s, NULL, 0, &from), -EMSGSIZE);
        resha_dgram_close(c);
        resha_dgram_close(s);
        return 0;
}

TASK(a_datagram_that_is_too_long_is_refused)
{
        static char large[70000];
        resha_addr server;
        resha_dgram *s = dgram_at("127.0.0.1", NULL, &server), *c = dgram_to(&server);

        ASSERT_EQ(resha_dgram_send(c, large, sizeof large, NULL), -EMSGSIZE);
        ASSERT_HAS(resha_error_of(-EMSGSIZE)->text, "send a datagram to 127.0.0.1:");
        ASSERT_OK(resha_dgram_send(c, large, 60000, NULL));
        ASSERT_EQ(resha_dgram_recv(s, large, sizeof large, NULL), 60000);
        resha_dgram_close(c);
        resha_dgram_close(s);
        return 0;
}

TASK(a_socket_with_a_peer_hears_nobody_else)
{
        resha_addr server, client, third;
        resha_dgram *s = dgram_at("127.0.0.1", NULL, &server), *c = dgram_to(&server);
        resha_dgram *t = dgram_at("127.0.0.1", NULL, &third);
        char buf[8];

        ASSERT_OK(resha_dgram_addr(c, false, &client));
        ASSERT_OK(resha_dgram_send(t, "no", 2, &client));
        ASSERT_OK(resha_dgram_send(s, "yes", 3, &client));
        ASSERT_EQ(resha_dgram_recv(c, buf, sizeof buf, NULL), 3);
        resha_dgram_close(t);
        resha_dgram_close(c);
        resha_dgram_close(s);
        return 0;
}

/* ---- batches ---- */

TASK(a_batch_counts_what_was_sent_before_the_one_that_failed)
{
        static char large[70000];
        resha_addr server, mine;
        resha_dgram *s = dgram_at("127.0.0.1", NULL, &server), *c = dgram_at("127.0.0.1", NULL, &mine);
        resha_message m[] = { { .data = "a", .size = 1, .addr = server },
                              { .data = "b", .size = 1, .addr = server },
                              { .data = large, .size = sizeof large, .addr = server },
                              { .data = "d", .size = 1, .addr = server } };
        size_t sent = 9;
        char buf[8];

        ASSERT_EQ(resha_dgram_send_many(c, m, 4, &sent), -EMSGSIZE);
        ASSERT_EQ(sent, 2);
        m[2] = (resha_message){ .data = "c", .size = 1 };
        ASSERT_EQ(resha_dgram_send_many(c, m, 4, &sent), -EDESTADDRREQ);
        ASSERT_EQ(sent, 2);
        ASSERT_OK(resha_dgram_send_many(c, m, 0, &sent));
        ASSERT_EQ(sent, 0);
        for (int i = 0; i < 4; i++)
                ASSERT_EQ(resha_dgram_recv(s, buf, sizeof buf, NULL), 1);
        resha_dgram_close(c);
        resha_dgram_close(s);
        return 0;
}

/* ---- waiting, cancelling, closing ---- */

TASK(a_second_receiver_is_refused_and_close_ends_waits)
{
        resha_addr a;
        struct receiver r = { .d = dgram_at("127.0.0.1", NULL, &a) };
        char buf[8];
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        resha_spawn(&g, receive, &r);
        ASSERT_OK(resha_sleep(RESHA_MS(1)));
        ASSERT_EQ(resha_dgram_recv(r.d, buf, sizeof buf, NULL), -EBUSY);
        ASSERT_HAS(resha_error_of(-EBUSY)->text, "another task receives on this datagram socket");
        resha_dgram_close(r.d);
        ASSERT_EQ(r.result, -EBADF);
        return resha_group_end(&g, 0);
}

TASK(a_cancel_loses_no_datagram)
{
        resha_addr server;
        struct receiver r = { .d = dgram_at("127.0.0.1", NULL, &server) };
        resha_dgram *c = dgram_to(&server);
        int got = 0, cancelled = 0;

        for (int i = 0; i < 300; i++) {
                RESHA_GROUP(g);
                resha_group_begin(&g, NULL);
                resha_spawn(&g, receive, &r);
                for (int y = 0; y < i % 4; y++)
                        ASSERT_OK(resha_yield());
                ASSERT_OK(resha_dgram_send(c, "x", 1, NULL));
                for (int y = 0; y < i % 3; y++)
                        ASSERT_OK(i % 2 ? resha_sleep(RESHA_US(20)) : resha_yield());
                resha_group_cancel(&g);
                int rc = resha_group_end(&g, 0);
                ASSERT_TRUE(rc == 0 || rc == -ECANCELED);
                ASSERT_TRUE(r.result == 1 || r.result == -ECANCELED);
                got += r.result == 1;
                cancelled += r.result < 0;
        }
        for (int i = 0; i < cancelled; i++)
                ASSERT_EQ(resha_dgram_recv(r.d, r.buf, sizeof r.buf, NULL), 1);
        ASSERT_EQ(got + cancelled, 300);
        resha_dgram_close(c);
        resha_dgram_close(r.d);
        return 0;
}

/* ---- addresses ---- */

TASK(unix_clients_have_a_name_to_be_answered_by)
{
        resha_addr server = addr_of_unix("answer"), from, mine;
        resha_dgram *s, *c;
        char buf[8];

        ASSERT_EQ(resha_dgram_open(&(resha_dgram_opts){ .peer = &server }, &c), -ECONNREFUSED);
        ASSERT_HAS(resha_error_of(-ECONNREFUSED)->text, "open a datagram socket for @resha-test-");
        ASSERT_OK(resha_dgram_open(&(resha_dgram_opts){ .local = &server }, &s));
        ASSERT_OK(resha_dgram_open(&(resha_dgram_opts){ .peer = &server, .errors = true }, &c));
        ASSERT_OK(resha_dgram_send(c, "hello", 5, NULL));
        ASSERT_EQ(resha_dgram_recv(s, buf, 3, &from), -EMSGSIZE);
        ASSERT_OK(resha_dgram_addr(c, false, &mine));
        ASSERT_TRUE(resha_addr_equal(&from, &mine));
        ASSERT_OK(resha_dgram_send(s, "", 0, &from));
        ASSERT_EQ(resha_dgram_recv(c, buf, sizeof buf, &from), 0);
        ASSERT_TRUE(resha_addr_equal(&from, &server));
        resha_dgram_close(c);
        ASSERT_EQ(resha_dgram_send(s, "x", 1, &mine), -ECONNREFUSED);
        resha_dgram_close(s);
        return 0;
}

TASK(all_addresses_take_ipv4_and_show_it_as_ipv4)
{
        resha_dgram *s, *c;
        resha_addr any, server, six, from, mine;
        char buf[8];

        ASSERT_OK(resha_dgram_open(NULL, &s));
        ASSERT_OK(resha_dgram_addr(s, false, &any));
        if (resha_addr_family(&any) != AF_INET6)
                test_skip("no IPv6");
        ASSERT_OK(resha_addr_parse("127.0.0.1", resha_addr_port(&any), &server));
        ASSERT_OK(resha_addr_parse("::1", resha_addr_port(&any), &six));
        c = dgram_to(&server);
        ASSERT_OK(resha_dgram_send(c, "four", 4, NULL));
        ASSERT_EQ(resha_dgram_recv(s, buf, sizeof buf, &from), 4);
        ASSERT_OK(resha_dgram_addr(c, false, &mine));
        ASSERT_TRUE(resha_addr_equal(&from, &mine));
        ASSERT_HAS(addr_text(&from), "127.0.0.1:");
        ASSERT_OK(resha_dgram_send(s, "back", 4, &from));
        ASSERT_EQ(resha_dgram_recv(c, buf, sizeof buf, &from), 4);
        ASSERT_TRUE(resha_addr_equal(&from, &server));
        resha_dgram_close(c);
        c = dgram_to(&six);
        ASSERT_OK(resha_dgram_send(c, "six", 3, NULL));
        ASSERT_EQ(resha_dgram_recv(s, buf, sizeof buf, &from), 3);
        ASSERT_HAS(addr_text(&from), "[::1]:");
        ASSERT_OK(resha_dgram_send(s, "back", 4, &from));
        ASSERT_EQ(resha_dgram_recv(c, buf, sizeof buf, NULL), 4);
        resha_dgram_close(c);
        resha_dgram_close(s);
        return 0;
}

TASK(nobody_else_can_bind_to_its_port_unless_both_say_so)
{
        resha_addr a;
        resha_dgram *one = dgram_at("127.0.0.1", NULL, &a), *two;

        ASSERT_EQ(resha_dgram_open(&(resha_dgram_opts){ .local = &a }, &two), -EADDRINUSE);
        ASSERT_HAS(resha_error_of(-EADDRINUSE)->text, addr_text(&a));
        ASSERT_EQ(resha_dgram_open(&(resha_dgram_opts){ .local = &a, .reuse_port = true }, &two), -EADDRINUSE);
        resha_dgram_close(one);
        ASSERT_OK(resha_dgram_open(&(resha_dgram_opts){ .local = &a, .reuse_port = true }, &one));
        ASSERT_OK(resha_dgram_open(&(resha_dgram_opts){ .local = &a, .reuse_port = true }, &two));
        resha_dgram_close(one);
        resha_dgram_close(two);
        return 0;
}

TASK(broadcast_has_to_be_asked_for)
{
        resha_addr any, mine, all;
        resha_dgram *s = dgram_at("0.0.0.0", NULL, &any), *c = dgram_at("127.0.0.1", NULL, &mine);
        char buf[8];

        ASSERT_OK(resha_addr_parse(test_is_sim() ? "255.255.255.255" : "127.255.255.255", resha_addr_port(&any), &all));
        ASSERT_EQ(resha_dgram_send(c, "all", 3, &all), -EACCES);
        resha_dgram_close(c);
        c = dgram_at("127.0.0.1", &(resha_dgram_opts){ .broadcast = true }, &mine);
        ASSERT_OK(resha_dgram_send(c, "all", 3, &all));
        ASSERT_EQ(resha_dgram_recv(s, buf, sizeof buf, NULL), 3);
        resha_dgram_close(c);
        resha_dgram_close(s);
        return 0;
}

TASK(misuse_is_told)
{
        resha_addr server, third = addr_of_nobody();
        resha_dgram *s = dgram_at("127.0.0.1", NULL, &server), *c = dgram_to(&server);
        char buf[8];

        ASSERT_EQ(resha_dgram_open(&(resha_dgram_opts){ ._reserved = { 1 } }, &c), -EINVAL);
        ASSERT_EQ(resha_dgram_open(&(resha_dgram_opts){ .receive_buffer = -1 }, &c), -EINVAL);
        ASSERT_EQ(resha_dgram_send(s, "x", 1, NULL), -EDESTADDRREQ);
        ASSERT_EQ(resha_dgram_send(c, "x", 1, &third), -EISCONN);
        ASSERT_EQ(resha_dgram_addr(s, true, &third), -ENOTCONN);
        ASSERT_EQ(resha_dgram_recv_many(s, NULL, 0), -EINVAL);
        ASSERT_OK(resha_dgram_send(c, buf, 0, NULL));
        resha_dgram_closep(&c);
        ASSERT_PTR(c, NULL);
        resha_dgram_close(NULL);
        resha_dgram_close(s);
        return 0;
}

/* ---- closing between two operations of one call ---- */

struct sender {
        resha_dgram *d;
        int burnt; /* calls that complete at once, before it sends: it is made to yield in the midst of the sending */
        bool began;
        size_t sent;
        int rc;
};

static int send_much(void *arg)
{
        static resha_message messages[1000];
        struct sender *s = arg;
        resha_addr a;
        size_t n;

        for (size_t i = 0; i < 1000; i++)
                messages[i] = (resha_message){ .data = "x", .size = 1 };
        for (int i = 0; i < s->burnt; i++)
                ASSERT_OK(resha_resolve("127.0.0.1", "1", &a, 1, &n));
        s->began = true;
        s->rc = resha_dgram_send_many(s->d, messages, 1000, &s->sent);
        return 0;
}

/* Its receiver takes nothing. The close must not wait for it. */
TASK(a_close_ends_a_send_that_has_only_yielded)
{
        resha_addr server = addr_of_unix("yields");

        for (int burnt = 55; burnt < 70; burnt++) {
                resha_dgram *s, *c;
                ASSERT_OK(resha_dgram_open(&(resha_dgram_opts){ .local = &server }, &s));
                c = dgram_to(&server);
                struct sender sender = { .d = c, .burnt = burnt };
                RESHA_GROUP(g);
                resha_group_begin(&g, NULL);
                ASSERT_OK(resha_spawn(&g, send_much, &sender));
                while (!sender.began)
                        ASSERT_OK(resha_sleep(RESHA_NS(0)));
                resha_dgram_close(c);
                ASSERT_OK(resha_group_end(&g, 0));
                ASSERT_EQ(sender.rc, -EBADF);
                resha_dgram_close(s);
        }
        return 0;
}
