/* SPDX-License-Identifier: MIT */
/* Datagrams that did not arrive, and those that there is no room for. */

#include "dgram.h"

#include <errno.h>
#include <string.h>

/* What is on its way has come. */
static void settle(void)
{
        ASSERT_OK(resha_sleep(RESHA_MS(20)));
}

/* qemu-user does not pass on what the error queue of a socket says; tools/check tells that it runs there. */
static void needs_error_queue(void)
{
#ifdef RS_TEST_EMULATED
        if (!test_is_sim())
                test_skip("the emulator has no error queue of sockets");
#endif
}

/* ---- errors of datagrams that were sent ---- */

TASK(with_a_peer_an_icmp_error_is_the_next_result)
{
        resha_addr gone = addr_of_nobody(), whom;
        resha_dgram *c = dgram_to(&gone);
        char buf[8];

        ASSERT_OK(resha_dgram_send(c, "x", 1, NULL));
        ASSERT_EQ(resha_dgram_recv(c, buf, sizeof buf, &whom), -ECONNREFUSED);
        ASSERT_TRUE(resha_addr_equal(&whom, &gone));
        ASSERT_HAS(resha_error_of(-ECONNREFUSED)->text, addr_text(&gone));
        ASSERT_OK(resha_dgram_send(c, "x", 1, NULL));
        settle();
        ASSERT_EQ(resha_dgram_send(c, "x", 1, NULL), -ECONNREFUSED);
        ASSERT_HAS(resha_error_of(-ECONNREFUSED)->text, addr_text(&gone));

        resha_dgram *s; /* it comes, and all is well */
        ASSERT_OK(resha_dgram_open(&(resha_dgram_opts){ .local = &gone }, &s));
        ASSERT_OK(resha_dgram_send(c, "yes", 3, NULL));
        ASSERT_EQ(resha_dgram_recv(s, buf, sizeof buf, NULL), 3);
        resha_dgram_close(s);
        resha_dgram_close(c);
        return 0;
}

TASK(without_a_peer_icmp_errors_are_dropped)
{
        resha_addr gone = addr_of_nobody(), mine;
        resha_dgram *c = dgram_at("127.0.0.1", NULL, &mine);
        char buf[8];

        ASSERT_OK(resha_dgram_send(c, "x", 1, &gone));
        ASSERT_OK(resha_dgram_send(c, "x", 1, &mine));
        ASSERT_EQ(resha_dgram_recv(c, buf, sizeof buf, NULL), 1);
        resha_dgram_close(c);
        return 0;
}

/* Each with whom it is about; what is sent to others is sent, and what comes from others comes. */
static void errors_of(const char *host)
{
        resha_addr gone[3], mine, whom;
        resha_dgram *c = dgram_at(host, &(resha_dgram_opts){ .errors = true }, &mine);
        char buf[8];

        ASSERT_OK(resha_addr_parse("127.0.0.1", resha_addr_port(&mine), &mine));
        for (int i = 0; i < 3; i++)
                gone[i] = addr_of_nobody();
        for (int i = 0; i < 3; i++) {
                ASSERT_OK(resha_dgram_send(c, "x", 1, &gone[i]));
                ASSERT_OK(resha_dgram_send(c, "self", 4, &mine));
        }
        settle();
        for (int i = 0; i < 3; i++) {
                ASSERT_EQ(resha_dgram_recv(c, buf, sizeof buf, &whom), -ECONNREFUSED);
                ASSERT_TRUE(resha_addr_equal(&whom, &gone[i]));
                ASSERT_HAS(resha_error_of(-ECONNREFUSED)->text, addr_text(&gone[i]));
        }
        for (int i = 0; i < 3; i++) {
                ASSERT_EQ(resha_dgram_recv(c, buf, sizeof buf, &whom), 4);
                ASSERT_TRUE(resha_addr_equal(&whom, &mine));
        }
        resha_dgram_close(c);
}

TASK(without_a_peer_icmp_errors_say_whom_they_are_about)
{
        needs_error_queue();
        errors_of("127.0.0.1");
        errors_of("::");
        return 0;
}

TASK(an_error_that_a_send_meets_wakes_who_receives)
{
        needs_error_queue();
        resha_addr gone = addr_of_nobody(), mine;
        resha_dgram *c = dgram_at("127.0.0.1", &(resha_dgram_opts){ .errors = true }, &mine);
        struct receiver r = { .d = c };
        RESHA_GROUP(g);

        for (int i = 0; i < 20; i++) {
                resha_group_begin(&g, NULL);
                resha_spawn(&g, receive, &r);
                ASSERT_OK(resha_yield());
                ASSERT_OK(resha_dgram_send(c, "x", 1, &gone));
                ASSERT_OK(resha_dgram_send(c, "x", 1, &mine)); /* meets it */
                ASSERT_OK(resha_group_end(&g, 0));
                ASSERT_TRUE(r.result == 1 || r.result == -ECONNREFUSED);
                bool error_first = r.result < 0;
                ASSERT_OK(receive(&r));
                ASSERT_EQ(r.result, error_first ? 1 : -ECONNREFUSED);
                ASSERT_TRUE(resha_addr_equal(&r.from, error_first ? &mine : &gone));
        }
        resha_dgram_close(c);
        return 0;
}

TASK(a_batch_with_the_dead_among_its_receivers_is_sent)
{
        needs_error_queue();
        resha_addr gone = addr_of_nobody(), server, mine, whom;
        resha_dgram *s = dgram_at("127.0.0.1", NULL, &server);
        resha_dgram *c = dgram_at("127.0.0.1", &(resha_dgram_opts){ .errors = true }, &mine);
        resha_message m[40];
        size_t sent;
        char buf[8];

        for (int i = 0; i < 40; i++)
                m[i] = (resha_message){ .data = "x", .size = 1, .addr = i % 2 ? gone : server };
        ASSERT_OK(resha_dgram_send_many(c, m, 40, &sent));
        ASSERT_EQ(sent, 40);
        for (int i = 0; i < 20; i++)
                ASSERT_EQ(resha_dgram_recv(s, buf, sizeof buf, NULL), 1);
        ASSERT_EQ(resha_dgram_recv(c, buf, sizeof buf, &whom), -ECONNREFUSED);
        ASSERT_TRUE(resha_addr_equal(&whom, &gone));
        resha_dgram_close(c);
        resha_dgram_close(s);
        return 0;
}

/* ---- no room ---- */

struct sender {
        resha_dgram *d;
        const resha_addr *to;
        int left, result;
};

static int send_all(void *arg)
{
        struct sender *v = arg;

        while (v->left > 0 && (v->result = resha_dgram_send(v->d, "unix", 4, v->to)) == 0)
                v->left--;
        return 0;
}

/* Nothing tells a sender without a peer that there is room again. */
static void unix_full(bool connected)
{
        resha_addr server = addr_of_unix("full");
        resha_dgram *s, *c;
        enum { ALL = 1000 };
        char buf[8];
        RESHA_GROUP(g);

        ASSERT_OK(resha_dgram_open(&(resha_dgram_opts){ .local = &server }, &s));
        resha_addr unnamed;
        ASSERT_OK(resha_addr_scan("unix:", &unnamed));
        ASSERT_OK(resha_dgram_open(
                connected ? &(resha_dgram_opts){ .peer = &server } : &(resha_dgram_opts){ .local = &unnamed }, &c));
        struct sender v = { .d = c, .to = connected ? NULL : &server, .left = ALL };
        resha_group_begin(&g, NULL);
        resha_spawn(&g, send_all, &v);
        ASSERT_OK(resha_sleep(RESHA_MS(20)));
        ASSERT_TRUE(v.left > 0 && v.left < ALL); /* it waits */
        for (int i = 0; i < ALL; i++)
                ASSERT_EQ(resha_dgram_recv(s, buf, sizeof buf, NULL), 4);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(v.left, 0);

        v.left = ALL;
        resha_group_begin(&g, NULL);
        resha_spawn(&g, send_all, &v);
        ASSERT_OK(resha_sleep(RESHA_MS(20)));
        resha_dgram_close(c); /* ends this wait, too */
        ASSERT_EQ(v.result, -EBADF);
        ASSERT_OK(resha_group_end(&g, 0));
        resha_dgram_close(s);
}

TASK(a_unix_receiver_that_does_not_read_makes_its_senders_wait)
{
        unix_full(true);
        unix_full(false);
        return 0;
}
