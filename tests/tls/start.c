/* SPDX-License-Identifier: MIT */
/* Where TLS starts: on what stream, after what, for how long; connections and servers. */

#include <stdatomic.h>
#include <string.h>

#include "pair.h"

#include <resha/test.h>

static int start_plain(void *arg)
{
        struct tls_pair *p = arg;

        return resha_stream_pair(p->plain);
}

static int server_takes_leftovers(__attribute__((unused)) void *arg)
{
        struct tls_pair p = { .client = client, .server = server };
        char line[32];
        RESHA_GROUP(g);

        ASSERT_OK(start_plain(&p));
        ASSERT_OK(resha_write_all(p.plain[0], "STARTTLS\n", 9, NULL));
        resha_group_begin(&g, NULL);
        resha_spawn(&g, tls_pair_start_client, &p);
        ASSERT_OK(resha_sleep(RESHA_MS(10)));
        ASSERT_EQ(resha_read_line(p.plain[1], line, sizeof line), 9);
        ASSERT_TRUE(resha_stream_unread(p.plain[1]) > 0);
        ASSERT_OK(resha_tls_start(p.plain[1], server, NULL, &p.secure[1]));
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_OK(resha_write_all(p.secure[0], "secret", 6, NULL));
        ASSERT_EQ(resha_read(p.secure[1], line, sizeof line), 6);
        tls_pair_close(&p);
        return 0;
}

/* semantics 278 same
 * asyncio: what was read ahead when TLS is started belongs to the handshake.
 * resha: a server that starts TLS takes the bytes that were read ahead first; resha_stream_unread() tells of them. */
TEST(semantics_278_a_server_feeds_leftovers_to_tls)
{
        run_secure(server_takes_leftovers, NULL, NULL, TEST_AT);
}

static int client_refuses_leftovers(__attribute__((unused)) void *arg)
{
        struct tls_pair p = { .client = client, .server = server };
        char line[32];

        ASSERT_OK(start_plain(&p));
        ASSERT_OK(resha_write_all(p.plain[1], "220 go on\n250 injected\n", 23, NULL));
        ASSERT_EQ(resha_read_line(p.plain[0], line, sizeof line), 10);
        int rc = resha_tls_start(p.plain[0], client, &(resha_tls_start_opts){ .host = "a.example" }, &p.secure[0]);
        ASSERT_EQ(rc, RESHA_TLS_ELEFTOVER);
        ASSERT_HAS(resha_error_of(rc)->text, "13 bytes");
        tls_pair_close(&p);
        return 0;
}

/* semantics 279 better
 * asyncio: plain text left over when a client starts TLS must not pass for what came by TLS.
 * resha: a client that has read something ahead cannot start TLS: RESHA_TLS_ELEFTOVER. */
TEST(semantics_279_a_client_refuses_leftovers)
{
        run_secure(client_refuses_leftovers, NULL, NULL, TEST_AT);
}

static int half_close(__attribute__((unused)) void *arg)
{
        struct tls_pair p = { .client = client, .server = server };
        char c;

        ASSERT_OK(tls_pair_open(&p));
        ASSERT_EQ(resha_stream_shutdown(p.secure[0]), -EOPNOTSUPP);
        ASSERT_OK(resha_write_all(p.secure[0], "x", 1, NULL));
        ASSERT_EQ(resha_read(p.secure[1], &c, 1), 1);
        tls_pair_close(&p);
        return 0;
}

/* semantics 274 same
 * asyncio: TLS connections cannot be closed half.
 * resha: resha_stream_shutdown() is -EOPNOTSUPP there, and changes nothing; resha_stream_finish() ends both ways. */
TEST(semantics_274_tls_has_no_half_close)
{
        run_secure(half_close, NULL, NULL, TEST_AT);
}

static int handshake_of_nobody(__attribute__((unused)) void *arg)
{
        struct tls_pair p = { .client = client, .server = server };

        for (int side = 0; side < 2; side++) {
                ASSERT_OK(start_plain(&p));
                resha_instant before = resha_now();
                int rc = resha_tls_start(p.plain[side], side ? server : client,
                                         side ? NULL : &(resha_tls_start_opts){ .host = "a.example" }, &p.secure[side]);
                ASSERT_EQ(rc, -ETIMEDOUT);
                ASSERT_HAS(resha_error_of(rc)->text, "has not ended after 200 ms");
                ASSERT_ELAPSED(before, 200);
                tls_pair_close(&p);
        }
        return 0;
}

/* semantics 276 better
 * asyncio: a handshake has 60 s, the end of a TLS connection 30 s.
 * resha: 30 s (-ETIMEDOUT) and 5 s, if the configuration does not say otherwise; a close does not wait for the peer. */
TEST(semantics_276_a_handshake_that_takes_too_long_fails)
{
        const resha_tls_opts o = { .handshake = RESHA_MS(200) };

        run_secure(handshake_of_nobody, &o, &o, TEST_AT);
}

static int another_name(__attribute__((unused)) void *arg)
{
        struct tls_pair p = { .client = client, .server = server };
        RESHA_GROUP(g);

        ASSERT_OK(start_plain(&p));
        resha_group_begin(&g, &(resha_group_opts){ .keep_going = true });
        resha_spawn(&g, tls_pair_start_server, &p);
        int rc = resha_tls_start(p.plain[0], client, &(resha_tls_start_opts){ .host = "b.example" }, &p.secure[0]);
        ASSERT_EQ(rc, RESHA_TLS_EVERIFY);
        ASSERT_HAS(resha_error_of(rc)->text, "b.example");
        ASSERT_EQ(resha_group_end(&g, 0), RESHA_TLS_EHANDSHAKE); /* it is told by an alert */
        tls_pair_close(&p);
        return 0;
}

/* semantics 277 same
 * asyncio: a certificate that cannot be verified is an error of the connecting call.
 * resha: RESHA_TLS_EVERIFY, with what failed and for which name; there is no stream then. */
TEST(semantics_277_a_certificate_of_another_name_is_refused)
{
        run_secure(another_name, NULL, NULL, TEST_AT);
}

static int misuse(__attribute__((unused)) void *arg)
{
        struct tls_pair p = { .client = client, .server = server };
        resha_listener *l;

        ASSERT_OK(start_plain(&p));
        ASSERT_EQ(resha_tls_start(p.plain[0], client, NULL, &p.secure[0]), -EINVAL);
        ASSERT_EQ(resha_tls_start(p.plain[0], client, &(resha_tls_start_opts){ ._reserved = { 1 } }, &p.secure[0]),
                  -EINVAL);
        ASSERT_OK(resha_tcp_listen("127.0.0.1", 0, &l));
        ASSERT_EQ(resha_tls_serve(l, client, NULL, NULL, NULL), -EINVAL);
        ASSERT_EQ(resha_tls_serve(l, server, NULL, NULL, &(resha_tls_serve_opts){ ._reserved = { 1 } }), -EINVAL);
        ASSERT_EQ(resha_tls_connect("127.0.0.1", 1, server, &p.secure[0]), -EINVAL);
        /* nobody is asked */
        ASSERT_EQ(resha_tls_connect("b\xc3\xbc"
                                    "cher.example",
                                    1, client, &p.secure[0]),
                  -EINVAL);
        ASSERT_TRUE(strstr(resha_error_of(-EINVAL)->text, "xn--") != NULL);
        ASSERT_TRUE(resha_error_of(-EINVAL)->site == NULL);
        resha_listener_close(l);
        tls_pair_close(&p);
        return 0;
}

TEST(tls_misuse_is_told)
{
        run_secure(misuse, NULL, NULL, TEST_AT);
}

/* ---- an end in the middle ---- */

static int cut_handshake(__attribute__((unused)) void *arg)
{
        struct tls_pair p = { .client = client, .server = server };

        ASSERT_OK(start_plain(&p));
        ASSERT_OK(resha_stream_shutdown(p.plain[1]));
        int rc = resha_tls_start(p.plain[0], client, &(resha_tls_start_opts){ .host = "a.example" }, &p.secure[0]);
        ASSERT_EQ(rc, RESHA_TLS_ETRUNCATED);
        ASSERT_HAS(resha_error_of(rc)->text, "a.example ended in the middle of the handshake");
        tls_pair_close(&p);
        return 0;
}

TEST(tls_an_end_in_the_handshake_is_an_error)
{
        run_secure(cut_handshake, NULL, NULL, TEST_AT);
}

static int plain_client(__attribute__((unused)) void *arg)
{
        struct tls_pair p = { .client = client, .server = server };
        static const char *const talk[] = { "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "\x80\x2e\x01\x03\x01",
                                            "\x16\x03\x01\xff\xff" };

        for (size_t i = 0; i < sizeof talk / sizeof talk[0]; i++) {
                ASSERT_OK(start_plain(&p));
                ASSERT_OK(resha_write_all(p.plain[0], talk[i], strlen(talk[i]), NULL));
                ASSERT_OK(resha_stream_shutdown(p.plain[0]));
                int rc = resha_tls_start(p.plain[1], server, NULL, &p.secure[1]);
                ASSERT_TRUE(rc == RESHA_TLS_EHANDSHAKE || rc == RESHA_TLS_ETRUNCATED);
                tls_pair_close(&p);
        }
        return 0;
}

TEST(tls_what_is_not_tls_is_refused)
{
        run_secure(plain_client, NULL, NULL, TEST_AT);
}

/* ---- servers ---- */

struct site {
        resha_listener *l;
        resha_addr at;
        unsigned served, refused;
        int refused_code;
};

static int greet(resha_stream *s, void *arg)
{
        struct site *v = arg;
        char name[16];
        ssize_t n = resha_read(s, name, sizeof name);

        if (n <= 0)
                return (int)n;
        v->served++;
        if (name[0] == 'c')
                resha_stream_close(s); /* not its business, and no harm */
        return name[0] == 'f' ? -EDOM : name[0] == 'c' ? 0 : resha_write_all(s, name, (size_t)n, NULL);
}

static void note_refused(resha_stream *plain, int code, void *arg)
{
        struct site *v = arg;
        resha_addr peer;

        ASSERT_OK(resha_stream_addr(plain, true, &peer));
        v->refused++;
        v->refused_code = code;
}

static int serve(void *arg)
{
        struct site *v = arg;

        return resha_tls_serve(v->l, server, greet, v, &(resha_tls_serve_opts){ .refused = note_refused });
}

static int open_site(struct site *v)
{
        ASSERT_OK(resha_tcp_listen("127.0.0.1", 0, &v->l));
        ASSERT_OK(resha_listener_addr(v->l, &v->at));
        return 0;
}

static int visit(struct site *v, const char *say, ssize_t want)
{
        resha_stream *plain RESHA_CLEANUP(resha_stream_closep) = NULL, *s RESHA_CLEANUP(resha_stream_closep) = NULL;
        char buf[16];

        ASSERT_OK(resha_tcp_connect_addr(&v->at, &plain));
        ASSERT_OK(resha_tls_start(plain, client, &(resha_tls_start_opts){ .host = "a.example" }, &s));
        ASSERT_OK(resha_write_all(s, say, strlen(say), NULL));
        ASSERT_EQ(resha_read(s, buf, sizeof buf), want);
        return 0;
}

static int site_main(__attribute__((unused)) void *arg)
{
        struct site v = { 0 };
        resha_stream *plain = NULL;
        char c;
        RESHA_GROUP(g);

        open_site(&v);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, serve, &v);
        visit(&v, "hello", 5);
        visit(&v, "fail", 0); /* closed in order, as a handler's failure is its own */
        visit(&v, "close", 0);
        ASSERT_OK(resha_tcp_connect_addr(&v.at, &plain));
        ASSERT_OK(resha_write_all(plain, "GET / HTTP/1.0\r\n\r\n", 18, NULL));
        while (resha_read(plain, &c, 1) > 0) /* an alert */
                ;
        resha_stream_close(plain);
        resha_listener_shutdown(v.l);
        ASSERT_OK(resha_group_end(&g, 0));
        resha_listener_close(v.l);
        ASSERT_EQ(v.served, 3);
        ASSERT_EQ(v.refused, 1);
        ASSERT_EQ(v.refused_code, RESHA_TLS_EHANDSHAKE);
        return 0;
}

TEST(tls_serves)
{
        run_secure(site_main, NULL, NULL, TEST_AT);
}

/* ---- on several loops ---- */

enum { SIDES = 3, VISITS = 60, LEAVES_AFTER = 10 };

static resha_addr sides_at;
static atomic_bool sides_ready;

/* The second server goes in the middle. */
static int greet_and_leave(resha_stream *s, void *arg)
{
        struct site *v = arg;
        int rc = greet(s, arg);

        if (v->refused_code && v->served == LEAVES_AFTER)
                resha_listener_shutdown(v->l);
        return rc;
}

static int serve_side(struct site *v)
{
        int rc = resha_listen(&v->at, &(resha_listen_opts){ .shared = true }, &v->l);

        if (rc < 0)
                return rc;
        if (!v->refused_code) {
                ASSERT_OK(resha_listener_addr(v->l, &sides_at));
                atomic_store(&sides_ready, true);
        }
        rc = resha_tls_serve(v->l, server, greet_and_leave, v,
                             &(resha_tls_serve_opts){ .serve = { .grace = RESHA_S(10) } });
        resha_listener_close(v->l);
        return rc;
}

static int visit_sides(void)
{
        while (!atomic_load(&sides_ready)) {
                int rc = resha_sleep(RESHA_MS(1));
                if (rc < 0)
                        return rc;
        }
        struct site there = { .at = sides_at };
        for (int i = 0; i < VISITS; i++)
                visit(&there, "hello", 5);
        return resha_fail(-ENODATA, "no more visits"); /* the others end */
}

static int side(void *arg)
{
        struct site *v = arg;

        return v->refused ? visit_sides() : serve_side(v);
}

TEST(tls_serves_on_several_loops_from_one_queue)
{
        struct site sides[SIDES] = { [1].refused_code = 1, [2].refused = 1 };

        server = tls_server(NULL);
        client = tls_client(NULL);
        for (int i = 0; i < SIDES; i++)
                ASSERT_OK(resha_addr_parse("127.0.0.1", 0, &sides[i].at));
        ASSERT_EQ(resha_run_loops(side, sides, SIDES, sizeof sides[0], &(resha_run_opts){ .backend = test_backend() }),
                  -ENODATA);
        resha_tls_unref(server);
        resha_tls_unref(client);
        printf("%u and %u\n", sides[0].served, sides[1].served);
        ASSERT_EQ(sides[0].served + sides[1].served, VISITS);
        ASSERT_TRUE(sides[1].served >= LEAVES_AFTER);
}

/* ---- connections that own what is under them ---- */

static int connect_main(__attribute__((unused)) void *arg)
{
        struct site v = { 0 };
        resha_stream *s = NULL;
        resha_addr peer;
        char buf[8];
        int value;
        RESHA_GROUP(g);

        open_site(&v);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, serve, &v);
        if (test_is_sim())
                ASSERT_OK(resha_test_name("a.example", &v.at, 1));
        const char *host = test_is_sim() ? "a.example" : "127.0.0.1";
        int rc = resha_tls_connect(host, resha_addr_port(&v.at), client, &s);
        if (!test_is_sim()) {
                ASSERT_EQ(rc, RESHA_TLS_EVERIFY); /* the certificate is for a name */
        } else {
                ASSERT_OK(rc);
                ASSERT_OK(resha_write_all(s, "hi", 2, NULL));
                ASSERT_EQ(resha_read(s, buf, sizeof buf), 2);
                ASSERT_OK(resha_stream_addr(s, true, &peer));
                ASSERT_TRUE(resha_addr_equal(&peer, &v.at));
                ASSERT_OK(resha_stream_set(s, RESHA_STREAM_NODELAY, 0));
                ASSERT_OK(resha_stream_get(s, RESHA_STREAM_NODELAY, &value));
                ASSERT_EQ(value, 0);
                resha_stream_close(s);
        }
        resha_listener_shutdown(v.l);
        ASSERT_OK(resha_group_end(&g, 0));
        resha_listener_close(v.l);
        return 0;
}

TEST(tls_connects)
{
        run_secure(connect_main, NULL, NULL, TEST_AT);
}
