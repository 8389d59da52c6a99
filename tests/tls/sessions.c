/* SPDX-License-Identifier: MIT */
/* Sessions that are resumed, and when they are not: another name, another trust, an expired certificate, a key that is
 * too old. And a reload, which changes what is new and leaves what is there. */

#include "handshake.h"

#include <string.h>
#include <unistd.h>

#include "config.h"

#define DAY 86400L

static const enum resha_tls_version versions[] = { RESHA_TLS_1_2, RESHA_TLS_1_3 };

struct two {
        resha_tls *client, *server;
};

static struct two both(const struct cert *leaf, enum resha_tls_version version)
{
        return (struct two){ client_of(&(resha_tls_opts){ .trust_pem = cert_pem(good_root()), .max_version = version }),
                             server_with(leaf) };
}

static void release(struct two *t)
{
        resha_tls_unrefp(&t->client);
        resha_tls_unrefp(&t->server);
}

/* 1 resumed, 0 not; the test fails if the handshake does. */
static int resumes_as(const struct two *t, const char *host, uint16_t port)
{
        struct shake s = { .client = t->client, .server = t->server, .opts = { .host = host, .port = port } };

        shake(&s);
        ASSERT_STR(s.text[0], "");
        ASSERT_STR(s.text[1], "");
        ASSERT_TRUE(s.verified || t->client->insecure);
        shake_free(&s);
        return s.resumed;
}

static int resumes(const struct two *t)
{
        return resumes_as(t, "a.example", 443);
}

TASK(sessions_are_resumed)
{
        for (int i = 0; i < 2; i++) {
                struct two t = both(good_leaf("a.example"), versions[i]);
                ASSERT_EQ(resumes(&t), 0);
                for (int k = 0; k < 5; k++)
                        ASSERT_EQ(resumes(&t), 1);
                release(&t);
        }
        return 0;
}

TASK(a_session_belongs_to_host_and_port)
{
        const struct cert *leaf = cert_new(good_middle(), &(struct cert_opts){ .alt = "DNS:a.example,DNS:b.example" });

        for (int i = 0; i < 2; i++) {
                struct two t = both(leaf, versions[i]);
                ASSERT_EQ(resumes_as(&t, "a.example", 443), 0);
                ASSERT_EQ(resumes_as(&t, "b.example", 443), 0);
                ASSERT_EQ(resumes_as(&t, "a.example", 444), 0);
                ASSERT_EQ(resumes_as(&t, "A.example.", 443), 1);
                ASSERT_EQ(resumes_as(&t, "b.example", 443), 1);
                release(&t);
        }
        return 0;
}

/* A certificate of `names` is no reason to give no tickets. */
TASK(sessions_of_a_server_with_names)
{
        const struct cert *leaf = good_leaf("a.example"), *other = good_leaf("b.example");
        const resha_tls_name name = { .host = "b.example",
                                      .cert_pem = cert_chain_pem(other),
                                      .key_pem = cert_key_pem(other) };

        for (int i = 0; i < 2; i++) {
                struct two t = both(leaf, versions[i]);
                resha_tls_unref(t.server);
                t.server = server_of(&(resha_tls_opts){ .cert_pem = cert_chain_pem(leaf),
                                                        .key_pem = cert_key_pem(leaf),
                                                        .names = &name,
                                                        .name_count = 1 });
                ASSERT_EQ(resumes_as(&t, "a.example", 443), 0);
                ASSERT_EQ(resumes_as(&t, "a.example", 443), 1);
                ASSERT_EQ(resumes_as(&t, "b.example", 443), 0);
                for (int k = 0; k < 3; k++)
                        ASSERT_EQ(resumes_as(&t, "b.example", 443), 1);
                release(&t);
        }
        return 0;
}

/* A name that nobody has verified gets no session of one that was, from the same server. */
TASK(resumption_does_not_go_around_verification)
{
        struct two t = both(good_leaf("a.example"), 0);

        ASSERT_EQ(resumes(&t), 0);
        struct shake s = { .client = t.client, .server = t.server, .opts = { .host = "evil.example", .port = 443 } };
        shake(&s);
        ASSERT_EQ(s.rc[0], RESHA_TLS_EVERIFY);
        shake_free(&s);
        shake(&s);
        ASSERT_EQ(s.rc[0], RESHA_TLS_EVERIFY);
        shake_free(&s);
        /* Nor does another configuration have them, that trusts somebody else. */
        const struct cert *other = cert_new(NULL, &(struct cert_opts){ .name = "Other", .ca = true });
        s.client = client_trusting(other);
        s.opts.host = "a.example";
        shake(&s);
        ASSERT_EQ(s.rc[0], RESHA_TLS_EVERIFY);
        shake_free(&s);
        resha_tls_unref(s.client);
        release(&t);
        return 0;
}

TASK(a_session_of_1_3_is_used_once)
{
        struct two t = both(good_leaf("a.example"), RESHA_TLS_1_3);

        ASSERT_EQ(resumes(&t), 0);
        unsigned kept = rs_tls_sessions_count(t.client->sessions);
        ASSERT_EQ(kept, 2); /* so many tickets a server gives */
        SSL *ssl[3];
        for (int i = 0; i < 3; i++)
                ASSERT_OK(
                        rs_tls_ssl_new(t.client, &(resha_tls_start_opts){ .host = "a.example", .port = 443 }, &ssl[i]));
        ASSERT_EQ(rs_tls_sessions_count(t.client->sessions), 0);
        ASSERT_TRUE(SSL_get_session(ssl[0]) && SSL_get_session(ssl[1]) && !SSL_get_session(ssl[2]));
        ASSERT_TRUE(SSL_get_session(ssl[0]) != SSL_get_session(ssl[1]));
        for (int i = 0; i < 3; i++)
                SSL_free(ssl[i]);
        release(&t);
        return 0;
}

TASK(the_cache_is_bounded)
{
        char host[32];
        const struct cert *leaf = cert_new(good_middle(), &(struct cert_opts){ .alt = "DNS:*.a.example" });
        struct two t = { client_of(&(resha_tls_opts){ .trust_pem = cert_pem(good_root()), .sessions = 8 }),
                         server_with(leaf) };

        for (int i = 0; i < 20; i++) {
                snprintf(host, sizeof host, "h%d.a.example", i);
                ASSERT_EQ(resumes_as(&t, host, 1), 0);
                ASSERT_TRUE(rs_tls_sessions_count(t.client->sessions) <= 8);
        }
        ASSERT_EQ(resumes_as(&t, "h19.a.example", 1), 1);
        ASSERT_EQ(resumes_as(&t, "h0.a.example", 1), 0);
        release(&t);
        /* One host cannot push out all others. */
        t = (struct two){ client_of(&(resha_tls_opts){ .trust_pem = cert_pem(good_root()), .sessions = 64 }),
                          t.server };
        t.server = server_with(leaf);
        ASSERT_EQ(resumes_as(&t, "quiet.a.example", 1), 0);
        for (int i = 0; i < 40; i++)
                resumes_as(&t, "busy.a.example", 1);
        ASSERT_TRUE(rs_tls_sessions_count(t.client->sessions) <= 18);
        ASSERT_EQ(resumes_as(&t, "quiet.a.example", 1), 1);
        release(&t);
        return 0;
}

TASK(no_sessions)
{
        const struct cert *leaf = good_leaf("a.example");
        struct two t = both(leaf, 0);

        resha_tls_unref(t.server);
        t.server = server_of(&(resha_tls_opts){
                .cert_pem = cert_chain_pem(leaf), .key_pem = cert_key_pem(leaf), .no_sessions = true });
        ASSERT_EQ(resumes(&t), 0);
        ASSERT_EQ(resumes(&t), 0);
        release(&t);
        t.client = client_of(&(resha_tls_opts){ .trust_pem = cert_pem(good_root()), .no_sessions = true });
        t.server = server_with(leaf);
        ASSERT_EQ(resumes(&t), 0);
        ASSERT_EQ(resumes(&t), 0);
        release(&t);
        return 0;
}

/* A certificate that expires takes its sessions along. */
TASK(a_session_ends_with_its_certificate)
{
        const struct cert_opts opts = { .name = "a.example", .alt = "DNS:a.example", .until = 2 };

        for (int i = 0; i < 2; i++) {
                struct two t = both(cert_new(good_middle(), &opts), versions[i]);
                ASSERT_EQ(resumes(&t), 0);
                ASSERT_EQ(resumes(&t), 1);
                sleep(3);
                struct shake s = { .client = t.client, .server = t.server, .opts.port = 443 };
                shake(&s);
                ASSERT_EQ(s.rc[0], RESHA_TLS_EVERIFY);
                ASSERT_HAS(s.text[0], "expired on");
                shake_free(&s);
                release(&t);
        }
        return 0;
}

/* ---- keys of tickets ---- */

TASK(keys_of_tickets_change)
{
        for (int i = 0; i < 2; i++) {
                struct two t = both(good_leaf("a.example"), versions[i]);
                ASSERT_EQ(resumes(&t), 0);
                rs_tls_tickets_age(t.server->tickets, 4000);
                ASSERT_EQ(resumes(&t), 1); /* the old key opens; the new one seals what comes back */
                rs_tls_tickets_age(t.server->tickets, 8000);
                /* Sealed with the second key; of 1.2 the client has still the first ticket. */
                ASSERT_EQ(resumes(&t), versions[i] == RESHA_TLS_1_3);
                rs_tls_tickets_age(t.server->tickets, 11000);
                ASSERT_EQ(resumes(&t), 0); /* all of them too old */
                ASSERT_EQ(resumes(&t), 1);
                release(&t);
        }
        return 0;
}

TASK(another_server_cannot_open_a_ticket)
{
        const struct cert *leaf = good_leaf("a.example");

        for (int i = 0; i < 2; i++) {
                struct two t = both(leaf, versions[i]);
                ASSERT_EQ(resumes(&t), 0);
                resha_tls_unref(t.server);
                t.server = server_with(leaf);
                ASSERT_EQ(resumes(&t), 0);
                release(&t);
        }
        return 0;
}

/* A client whose certificate has expired does not get in by its ticket. */
TASK(a_ticket_ends_with_the_client_s_certificate)
{
        const struct cert *leaf = good_leaf("a.example");

        for (int i = 0; i < 2; i++) {
                const struct cert *ann = cert_new(good_middle(), &(struct cert_opts){ .name = "Ann", .until = 2 });
                struct two t = { client_of(&(resha_tls_opts){ .trust_pem = cert_pem(good_root()),
                                                              .cert_pem = cert_chain_pem(ann),
                                                              .key_pem = cert_key_pem(ann),
                                                              .max_version = versions[i] }),
                                 server_of(&(resha_tls_opts){ .cert_pem = cert_chain_pem(leaf),
                                                              .key_pem = cert_key_pem(leaf),
                                                              .trust_pem = cert_pem(good_root()),
                                                              .peer = RESHA_TLS_PEER_REQUIRE }) };
                ASSERT_EQ(resumes(&t), 0);
                ASSERT_EQ(resumes(&t), 1);
                sleep(3);
                struct shake s = { .client = t.client, .server = t.server, .opts.port = 443 };
                shake(&s);
                ASSERT_EQ(s.rc[1], RESHA_TLS_EVERIFY);
                ASSERT_HAS(s.text[1], "certificate of the client: expired on");
                shake_free(&s);
                release(&t);
        }
        return 0;
}

/* ---- reload ---- */

static resha_tls_opts file_opts(const struct cert *leaf, const struct cert *trust)
{
        return (resha_tls_opts){ .cert_file = temp_file("cert.pem", cert_chain_pem(leaf)),
                                 .key_file = temp_file("key.pem", cert_key_pem(leaf)),
                                 .trust_file = temp_file("trust.pem", cert_pem(trust)),
                                 .peer = RESHA_TLS_PEER_REQUIRE };
}

static const char *seen(const struct two *t)
{
        static struct shake s;

        s = (struct shake){ .client = t->client, .server = t->server };
        shake(&s);
        shake_free(&s);
        return s.rc[0] < 0 ? s.text[0] : s.rc[1] < 0 ? s.text[1] : s.name;
}

static struct cert *leaf_called(const char *name)
{
        return cert_new(good_middle(), &(struct cert_opts){ .name = name, .alt = "DNS:a.example" });
}

static struct two reloadable(void)
{
        const struct cert *ann = cert_new(good_middle(), &(struct cert_opts){ .name = "Ann" });
        const resha_tls_opts opts = file_opts(leaf_called("First"), good_root());
        struct two t = { .server = server_of(&opts) };

        t.client = client_of(&(resha_tls_opts){ .trust_file = temp_file("client.pem", cert_pem(good_root())),
                                                .cert_pem = cert_chain_pem(ann),
                                                .key_pem = cert_key_pem(ann) });
        return t;
}

TASK(a_reload_takes_the_new_certificate)
{
        struct two t = reloadable();
        struct shake open = { .client = t.client, .server = t.server };

        shake(&open);
        ASSERT_STR(open.name, "First");
        file_opts(leaf_called("Second"), good_root());
        resha_tls_unref(t.client);
        struct two old = t;
        t = reloadable(); /* a client without sessions */
        resha_tls_unref(t.server);
        t.server = old.server;
        file_opts(leaf_called("Second"), good_root());
        ASSERT_STR(seen(&t), "First");
        ASSERT_OK(resha_tls_reload(t.server));
        struct shake s = { .client = t.client, .server = t.server, .opts.port = 1 };
        shake(&s);
        ASSERT_STR(s.name, "Second");
        shake_free(&s);
        /* What was open goes on. */
        char byte;
        ASSERT_EQ(SSL_write(open.ssl[0], "y", 1), 1);
        ASSERT_EQ(SSL_read(open.ssl[1], &byte, 1), 1);
        shake_free(&open);
        release(&t);
        return 0;
}

TASK(a_reload_that_fails_changes_nothing)
{
        struct two t = reloadable();

        file_opts(leaf_called("Second"), good_root());
        temp_file("key.pem", cert_key_pem(good_leaf("other")));
        ASSERT_EQ(resha_tls_reload(t.server), RESHA_TLS_ECERT);
        ASSERT_HAS(resha_error_of(RESHA_TLS_ECERT)->text, "is not the key of the certificate");
        ASSERT_STR(seen(&t), "First");
        unlink(temp_path("cert.pem"));
        ASSERT_EQ(resha_tls_reload(t.server), -ENOENT);
        ASSERT_STR(seen(&t), "First");
        release(&t);
        return 0;
}

/* Tickets outlive a reload where whom to trust stays the same, and do not where it changes. */
TASK(sessions_and_a_reload_of_the_server)
{
        for (int i = 0; i < 2; i++) {
                struct two t = reloadable();
                ASSERT_EQ(resumes(&t), 0);
                file_opts(leaf_called("Second"), good_root());
                ASSERT_OK(resha_tls_reload(t.server));
                ASSERT_EQ(resumes(&t), 1);
                temp_file("trust.pem", text_join(cert_pem(good_root()), cert_pem(good_middle())));
                ASSERT_OK(resha_tls_reload(t.server));
                ASSERT_EQ(resumes(&t), 0);
                ASSERT_EQ(resumes(&t), 1);
                release(&t);
        }
        return 0;
}

/* A client that is no more trusted does not get in by its ticket. */
TASK(a_ticket_does_not_outlive_the_trust)
{
        const struct cert *other = cert_new(NULL, &(struct cert_opts){ .name = "Other", .ca = true });
        struct two t = reloadable();

        ASSERT_EQ(resumes_as(&t, "a.example", 0), 0);
        temp_file("trust.pem", cert_pem(other));
        ASSERT_OK(resha_tls_reload(t.server));
        ASSERT_HAS(seen(&t), "the peer says: unknown CA: it does not trust our certificate");
        release(&t);
        return 0;
}

TASK(sessions_and_a_reload_of_the_client)
{
        struct two t = reloadable();

        ASSERT_EQ(resumes(&t), 0);
        ASSERT_OK(resha_tls_reload(t.client));
        ASSERT_EQ(resumes(&t), 1);
        temp_file("client.pem", text_join(cert_pem(good_root()), cert_pem(good_middle())));
        ASSERT_OK(resha_tls_reload(t.client));
        ASSERT_EQ(rs_tls_sessions_count(t.client->sessions), 0);
        ASSERT_EQ(resumes(&t), 0);
        release(&t);
        return 0;
}

/* A connection of before brings no session into what comes after: its ticket arrives late. */
TASK(a_session_of_before_the_reload)
{
        struct two t = reloadable();
        struct shake s = { .client = t.client, .server = t.server, .opts.port = 443 };

        s.before = resha_tls_reload;
        temp_file("client.pem", text_join(cert_pem(good_root()), cert_pem(good_middle())));
        shake(&s);
        ASSERT_STR(s.text[0], "");
        shake_free(&s);
        ASSERT_EQ(rs_tls_sessions_count(t.client->sessions), 0);
        release(&t);
        return 0;
}

/* Released while a connection is open: what that needs goes with it. */
TASK(a_configuration_that_goes_first)
{
        struct two t = both(good_leaf("a.example"), 0);
        struct shake s = { .client = t.client, .server = t.server };
        char byte;

        shake(&s);
        release(&t);
        ASSERT_EQ(SSL_write(s.ssl[1], "y", 1), 1);
        ASSERT_EQ(SSL_read(s.ssl[0], &byte, 1), 1);
        shake_free(&s);
        return 0;
}
