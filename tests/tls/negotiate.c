/* SPDX-License-Identifier: MIT */
/* What two ends agree on: certificates by name, protocols, versions, certificates of clients; and what each of them
 * says where they do not. */

#include "handshake.h"

#include <string.h>

#include <openssl/conf.h>
#include <openssl/err.h>

#include "config.h"

#define DAY 86400L

static void release(struct shake *s)
{
        shake_free(s);
        resha_tls_unref(s->client);
        resha_tls_unref(s->server);
}

/* ---- certificates by name ---- */

static const char *served(resha_tls *server, const char *host)
{
        static struct shake s;

        s = (struct shake){ .client = client_trusting(good_root()), .server = server, .opts.host = host };
        shake(&s);
        shake_free(&s);
        resha_tls_unref(s.client);
        return s.rc[0] < 0 ? s.text[0] : s.name;
}

static resha_tls_name named(const char *pattern, const char *host)
{
        const struct cert *leaf = good_leaf(host);

        return (resha_tls_name){ .host = pattern, .cert_pem = cert_chain_pem(leaf), .key_pem = cert_key_pem(leaf) };
}

TASK(certificates_by_name)
{
        const struct cert *leaf = good_leaf("a.example");
        const resha_tls_name names[] = { named("b.example", "b.example"), named("www.c.example", "www.c.example"),
                                         named("*.c.example", "*.c.example"), named("D.Example", "d.example") };
        resha_tls *server = server_of(&(resha_tls_opts){
                .cert_pem = cert_chain_pem(leaf), .key_pem = cert_key_pem(leaf), .names = names, .name_count = 4 });

        ASSERT_STR(served(server, "a.example"), "a.example");
        ASSERT_STR(served(server, "b.example"), "b.example");
        ASSERT_STR(served(server, "B.EXAMPLE."), "b.example");
        ASSERT_STR(served(server, "www.c.example"), "www.c.example");
        ASSERT_STR(served(server, "x.c.example"), "*.c.example");
        ASSERT_STR(served(server, "d.example"), "d.example");
        ASSERT_HAS(served(server, "c.example"), "is for \"a.example\", not for \"c.example\"");
        ASSERT_HAS(served(server, "x.y.c.example"), "is for \"a.example\", not for \"x.y.c.example\"");
        resha_tls_unref(server);
        return 0;
}

/* An address is no name to ask for. */
TASK(an_address_is_not_asked_for)
{
        const struct cert *leaf = cert_new(good_middle(), &(struct cert_opts){ .name = "ip", .alt = "IP:127.0.0.1" });
        struct shake s = { .client = client_trusting(good_root()),
                           .server = server_with(leaf),
                           .opts.host = "127.0.0.1" };

        shake(&s);
        ASSERT_STR(s.text[0], "");
        ASSERT_TRUE(SSL_get_servername(s.ssl[1], TLSEXT_NAMETYPE_host_name) == NULL);
        release(&s);
        return 0;
}

/* ---- protocols ---- */

static struct shake protocols(const char *const *ours, const char *const *theirs, const char *const *of_connection)
{
        const struct cert *leaf = good_leaf("a.example");
        struct shake s = { .client = client_of(&(resha_tls_opts){ .trust_pem = cert_pem(good_root()), .alpn = ours }),
                           .server = server_of(&(resha_tls_opts){
                                   .cert_pem = cert_chain_pem(leaf), .key_pem = cert_key_pem(leaf), .alpn = theirs }),
                           .opts.alpn = of_connection };

        shake(&s);
        release(&s);
        return s;
}

TASK(the_server_chooses_the_protocol)
{
        static const char *const both[] = { "h2", "http/1.1", NULL }, *const turned[] = { "http/1.1", "h2", NULL };
        static const char *const one[] = { "http/1.1", NULL };

        ASSERT_STR(protocols(both, both, NULL).alpn, "h2");
        ASSERT_STR(protocols(both, turned, NULL).alpn, "http/1.1");
        ASSERT_STR(protocols(one, both, NULL).alpn, "http/1.1");
        ASSERT_STR(protocols(both, both, one).alpn, "http/1.1");
        ASSERT_STR(protocols(NULL, both, one).alpn, "http/1.1");
        ASSERT_STR(protocols(both, NULL, NULL).alpn, "");
        ASSERT_STR(protocols(NULL, both, NULL).alpn, "");
        return 0;
}

TASK(no_protocol_in_common)
{
        static const char *const ours[] = { "h2", NULL }, *const theirs[] = { "http/1.1", "dot", NULL };
        struct shake s = protocols(ours, theirs, NULL);

        ASSERT_EQ(s.rc[0], RESHA_TLS_EHANDSHAKE);
        ASSERT_EQ(s.rc[1], RESHA_TLS_EHANDSHAKE);
        ASSERT_HAS(s.text[0], "TLS with \"a.example\": the peer says: no application protocol: it speaks none of the "
                              "protocols that we offer (ALPN)");
        ASSERT_HAS(s.text[1],
                   "TLS with the client: no protocol in common: it offers \"h2\", here is \"http/1.1, dot\"");
        return 0;
}

/* ---- versions ---- */

static SSL *raw(bool server, int version)
{
        SSL_CTX *ctx = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());
        const struct cert *leaf = good_leaf("a.example");

        SSL_CTX_set_security_level(ctx, 0);
        SSL_CTX_set_cipher_list(ctx, "ALL:@SECLEVEL=0");
        SSL_CTX_set_min_proto_version(ctx, version);
        SSL_CTX_set_max_proto_version(ctx, version);
        if (server) {
                SSL_CTX_use_certificate(ctx, leaf->x509);
                SSL_CTX_use_PrivateKey(ctx, leaf->key);
                SSL_CTX_add1_chain_cert(ctx, leaf->issuer->x509);
        }
        SSL *ssl = SSL_new(ctx);
        SSL_CTX_free(ctx);
        if (server)
                SSL_set_accept_state(ssl);
        else
                SSL_set_connect_state(ssl);
        return ssl;
}

TASK(old_servers_are_refused)
{
        for (int version = TLS1_VERSION; version <= TLS1_1_VERSION; version++) {
                struct shake s = { .client = client_trusting(good_root()), .raw_server = raw(true, version) };
                shake(&s);
                ASSERT_EQ(s.rc[0], RESHA_TLS_EHANDSHAKE);
                ASSERT_HAS(s.text[0],
                           "TLS with \"a.example\": the peer says: protocol version: no version of TLS in common");
                release(&s);
        }
        return 0;
}

/* What a library promises does not depend on openssl.cnf. */
TASK(the_system_s_configuration_weakens_nothing)
{
        static const char text[] = "openssl_conf = a\n[a]\nssl_conf = b\n[b]\nsystem_default = c\n[c]\n"
                                   "Options = UnsafeLegacyRenegotiation,UnsafeLegacyServerConnect\n"
                                   "MinProtocol = TLSv1\nCipherString = ALL:@SECLEVEL=0\n";

        ASSERT_EQ(CONF_modules_load_file(temp_file("openssl.cnf", text), NULL, 0), 1);
        SSL_CTX *plain = SSL_CTX_new(TLS_client_method());
        ASSERT_EQ(SSL_CTX_get_security_level(plain), 0); /* it counts */
        SSL_CTX_free(plain);
        resha_tls *t = client_trusting(good_root());
        ASSERT_EQ(SSL_CTX_get_security_level(t->ctx), 2);
        ASSERT_EQ(SSL_CTX_get_min_proto_version(t->ctx), TLS1_2_VERSION);
        ASSERT_EQ(SSL_CTX_get_options(t->ctx) &
                          (SSL_OP_LEGACY_SERVER_CONNECT | SSL_OP_ALLOW_UNSAFE_LEGACY_RENEGOTIATION),
                  0u);
        resha_tls_unref(t);
        return 0;
}

/* Ciphers without a certificate would make a client take anybody: no list switches verification off, nor the level of
 * security that forbids them. */
TASK(a_list_of_ciphers_does_not_switch_verification_off)
{
        static const char ciphers[] = "ADH-AES256-GCM-SHA384:ECDHE+AESGCM:@SECLEVEL=0";
        struct shake s = { .client = client_of(&(resha_tls_opts){ .trust_pem = cert_pem(good_root()),
                                                                  .ciphers = ciphers,
                                                                  .max_version = RESHA_TLS_1_2 }),
                           .raw_server = raw(true, TLS1_2_VERSION) };

        ASSERT_EQ(SSL_set_cipher_list(s.raw_server, "ADH-AES256-GCM-SHA384:@SECLEVEL=0"), 1);
        ASSERT_EQ(SSL_set_dh_auto(s.raw_server, 1), 1);
        shake(&s);
        ASSERT_EQ(s.rc[0], RESHA_TLS_EHANDSHAKE);
        release(&s);
        return 0;
}

TASK(old_clients_are_refused)
{
        for (int version = TLS1_VERSION; version <= TLS1_1_VERSION; version++) {
                struct shake s = { .raw_client = raw(false, version), .server = server_with(good_leaf("a.example")) };
                shake(&s);
                ASSERT_EQ(s.rc[1], RESHA_TLS_EHANDSHAKE);
                ASSERT_HAS(s.text[1], "TLS with the client: no version of TLS in common");
                release(&s);
        }
        return 0;
}

TASK(versions_without_overlap)
{
        const struct cert *leaf = good_leaf("a.example");
        struct shake s = {
                .client = client_of(
                        &(resha_tls_opts){ .trust_pem = cert_pem(good_root()), .max_version = RESHA_TLS_1_2 }),
                .server = server_of(&(resha_tls_opts){ .cert_pem = cert_chain_pem(leaf),
                                                       .key_pem = cert_key_pem(leaf),
                                                       .min_version = RESHA_TLS_1_3 }),
        };

        shake(&s);
        ASSERT_EQ(s.rc[0], RESHA_TLS_EHANDSHAKE);
        ASSERT_EQ(s.rc[1], RESHA_TLS_EHANDSHAKE);
        ASSERT_HAS(s.text[1], "no version of TLS in common");
        release(&s);
        return 0;
}

TASK(no_cipher_in_common)
{
        struct shake s = { .client = client_of(&(resha_tls_opts){ .trust_pem = cert_pem(good_root()),
                                                                  .max_version = RESHA_TLS_1_2,
                                                                  .ciphers = "ECDHE-RSA-AES128-GCM-SHA256" }),
                           .server = server_with(good_leaf("a.example")) };

        shake(&s);
        ASSERT_EQ(s.rc[1], RESHA_TLS_EHANDSHAKE);
        ASSERT_HAS(s.text[1], "TLS with the client: no cipher or kind of key in common");
        ASSERT_HAS(s.text[0], "the peer says: handshake failure: nothing in common");
        release(&s);
        return 0;
}

/* What speaks no TLS at all. */
TASK(plain_text)
{
        static const char http[] = "GET / HTTP/1.0\r\n\r\n", ssh[] = "SSH-2.0-x\r\n";
        resha_tls *server = server_with(good_leaf("a.example")), *client = client_trusting(good_root());
        const struct {
                resha_tls *t;
                const char *bytes, *text;
        } cases[] = {
                { server, http, "TLS with the client: what came is plain HTTP" },
                { server, ssh, "TLS with the client: what came is not TLS" },
                { client, "220 smtp.example ready\r\n",
                  "TLS with \"a.example\": what came is not TLS: is that the right port?" },
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                SSL *ssl = NULL;
                ASSERT_OK(rs_tls_ssl_new(cases[i].t, &(resha_tls_start_opts){ .host = "a.example" }, &ssl));
                SSL_set_bio(ssl, BIO_new_mem_buf(cases[i].bytes, -1), BIO_new(BIO_s_mem()));
                ERR_clear_error();
                int rc = SSL_do_handshake(ssl);
                ASSERT_EQ(SSL_get_error(ssl, rc), SSL_ERROR_SSL);
                rc = rs_tls_failed(ssl, true, cases[i].t == client ? "a.example" : NULL);
                ASSERT_EQ(rc, RESHA_TLS_EHANDSHAKE);
                ASSERT_STR(resha_error_of(rc)->text, cases[i].text);
                SSL_free(ssl);
        }
        resha_tls_unref(server);
        resha_tls_unref(client);
        return 0;
}

/* ---- certificates of clients ---- */

static struct shake with_client(enum resha_tls_peer peer, const struct cert *own, enum resha_tls_version version)
{
        const struct cert *leaf = good_leaf("a.example");
        struct shake s = {
                .client = client_of(&(resha_tls_opts){ .trust_pem = cert_pem(good_root()),
                                                       .cert_pem = own ? cert_chain_pem(own) : NULL,
                                                       .key_pem = own ? cert_key_pem(own) : NULL,
                                                       .max_version = version }),
                .server = server_of(&(resha_tls_opts){ .cert_pem = cert_chain_pem(leaf),
                                                       .key_pem = cert_key_pem(leaf),
                                                       .trust_pem = cert_pem(good_root()),
                                                       .peer = peer }),
        };

        shake(&s);
        release(&s);
        return s;
}

static const enum resha_tls_version versions[] = { RESHA_TLS_1_2, RESHA_TLS_1_3 };

TASK(clients_that_are_known)
{
        const struct cert *own = cert_new(good_middle(), &(struct cert_opts){ .name = "Ann", .purpose = "clientAuth" });

        for (int i = 0; i < 2; i++) {
                struct shake s = with_client(RESHA_TLS_PEER_REQUIRE, own, versions[i]);
                ASSERT_STR(s.text[1], "");
                ASSERT_STR(s.subject, "Ann");
                ASSERT_STR(with_client(RESHA_TLS_PEER_ASK, own, versions[i]).subject, "Ann");
                ASSERT_STR(with_client(RESHA_TLS_PEER_NONE, own, versions[i]).subject, "");
                s = with_client(RESHA_TLS_PEER_ASK, NULL, versions[i]);
                ASSERT_STR(s.text[1], "");
                ASSERT_STR(s.subject, "");
        }
        return 0;
}

TASK(a_client_without_a_certificate)
{
        for (int i = 0; i < 2; i++) {
                struct shake s = with_client(RESHA_TLS_PEER_REQUIRE, NULL, versions[i]);
                ASSERT_EQ(s.rc[1], RESHA_TLS_EVERIFY);
                ASSERT_STR(s.text[1], "the client has shown no certificate, and must have one");
                ASSERT_EQ(s.rc[0], RESHA_TLS_EHANDSHAKE);
                ASSERT_HAS(s.text[0], "it wants a certificate of ours");
        }
        return 0;
}

static void bad_client(const struct cert *own, const char *here, const char *there)
{
        for (int v = 0; v < 2; v++)
                for (int peer = RESHA_TLS_PEER_ASK; peer <= RESHA_TLS_PEER_REQUIRE; peer++) {
                        struct shake s = with_client((enum resha_tls_peer)peer, own, versions[v]);
                        ASSERT_EQ(s.rc[1], RESHA_TLS_EVERIFY);
                        ASSERT_HAS(s.text[1], here);
                        ASSERT_EQ(s.rc[0], RESHA_TLS_EHANDSHAKE);
                        ASSERT_HAS(s.text[0], there);
                }
}

TASK(clients_with_a_bad_certificate)
{
        const struct cert *other = cert_new(NULL, &(struct cert_opts){ .name = "Other", .ca = true });

        bad_client(cert_new(good_middle(), &(struct cert_opts){ .name = "Old", .from = -90 * DAY, .until = -60 * DAY }),
                   "certificate of the client: expired on 20", "the peer says: certificate expired: our certificate");
        bad_client(cert_new(other, &(struct cert_opts){ .name = "Eve" }),
                   "certificate of the client: issuer \"CN=Other\" unknown", "the peer says: unknown CA");
        bad_client(cert_new(NULL, &(struct cert_opts){ .name = "Eve" }),
                   "certificate of the client: self-signed and not trusted (CN=Eve)", "the peer says: unknown CA");
        bad_client(cert_new(good_middle(), &(struct cert_opts){ .name = "A server", .purpose = "serverAuth" }),
                   "certificate of the client: is not for clients: its key usage does not allow it (CN=A server)",
                   "the peer says: unsupported certificate");
        return 0;
}

/* ---- what covers what ---- */

TASK(hosts_and_patterns)
{
        static const struct {
                const char *pattern, *name;
                bool covers;
        } cases[] = {
                { "a.example", "a.example", true },     { "a.example", "A.EXAMPLE.", true },
                { "a.example", "b.a.example", false },  { "*.a.example", "b.a.example", true },
                { "*.a.example", "a.example", false },  { "*.a.example", "c.b.a.example", false },
                { "*.a.example", ".a.example", false }, { "a.example", "", false },
                { "*.a.example", ".", false },          { "a.example", "a.exampl", false },
                { "a.example.", "A.example", true },    { "*.a.example.", "b.a.example.", true },
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
                if (rs_tls_host_covers(cases[i].pattern, cases[i].name) != cases[i].covers)
                        FAIL("%s and %s", cases[i].pattern, cases[i].name);
        return 0;
}
