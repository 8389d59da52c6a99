/* SPDX-License-Identifier: MIT */
/* Secure streams, over a pair of plain ones. */

#include <string.h>

#include "common.h"

static resha_tls *client, *server;

static void make(void)
{
        client = tls_client(NULL);
        server = tls_server(NULL);
}

static void drop(void)
{
        resha_tls_unrefp(&client);
        resha_tls_unrefp(&server);
}

#define SECURE(name) \
        static int secure_##name(struct tls_pair *p); \
        static int with_##name(__attribute__((unused)) void *arg) \
        { \
                struct tls_pair p = { .client = client, .server = server }; \
                ASSERT_OK(tls_pair_open(&p)); \
                int rc = secure_##name(&p); \
                tls_pair_close(&p); \
                return rc; \
        } \
        TEST(name) \
        { \
                make(); \
                RUN(with_##name, NULL); \
                drop(); \
        } \
        static int secure_##name(struct tls_pair *p)

SECURE(tls_bytes_arrive_both_ways)
{
        char buf[16] = "";

        ASSERT_OK(resha_write_all(p->secure[0], "hello", 5, NULL));
        ASSERT_EQ(resha_read(p->secure[1], buf, sizeof buf), 5);
        ASSERT_STR(buf, "hello");
        ASSERT_OK(resha_write_all(p->secure[1], "good day", 8, NULL));
        ASSERT_EQ(resha_read(p->secure[0], buf, sizeof buf), 8);
        ASSERT_STR(buf, "good day");
        ASSERT_STR(resha_stream_kind(p->secure[0]), "tls");
        return 0;
}

SECURE(tls_a_handshake_tells_what_it_agreed_on)
{
        resha_tls_info info;

        ASSERT_OK(resha_tls_about(p->secure[0], &info));
        ASSERT_EQ(info.version, RESHA_TLS_1_3);
        ASSERT_TRUE(info.verified);
        ASSERT_STR(info.subject, "CN=a.example");
        ASSERT_OK(resha_tls_about(p->secure[1], &info));
        ASSERT_STR(info.host, "a.example");
        ASSERT_FALSE(info.verified);
        ASSERT_EQ(resha_tls_about(p->plain[0], &info), -EINVAL);
        return 0;
}

SECURE(tls_the_end_of_the_peer_is_an_end_only_if_it_says_so)
{
        char buf[16];

        ASSERT_OK(resha_write_all(p->secure[0], "all", 3, NULL));
        resha_stream_closep(&p->secure[0]);
        ASSERT_EQ(resha_read(p->secure[1], buf, sizeof buf), 3);
        ASSERT_EQ(resha_read(p->secure[1], buf, sizeof buf), 0);
        ASSERT_EQ(resha_read(p->secure[1], buf, sizeof buf), 0);
        return 0;
}

SECURE(tls_an_end_without_close_notify_is_an_error)
{
        char buf[16];

        ASSERT_OK(resha_write_all(p->secure[0], "all?", 4, NULL));
        ASSERT_OK(resha_stream_shutdown(p->plain[0]));
        ASSERT_EQ(resha_read(p->secure[1], buf, sizeof buf), 4);
        ssize_t n = resha_read(p->secure[1], buf, sizeof buf);
        ASSERT_EQ(n, RESHA_TLS_ETRUNCATED);
        ASSERT_HAS(resha_error_of((int)n)->text, "ended without close_notify");
        ASSERT_EQ(resha_read(p->secure[1], buf, sizeof buf), RESHA_TLS_ETRUNCATED);
        ASSERT_EQ(resha_write_all(p->secure[1], "x", 1, NULL), RESHA_TLS_ETRUNCATED);
        return 0;
}
