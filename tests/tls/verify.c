/* SPDX-License-Identifier: MIT */
/* Certificates of servers, good and bad: each accepted, or refused for the reason that it is bad for, in words. */

#include "handshake.h"

#include <string.h>

#include <openssl/err.h>

#define DAY 86400L

/* A leaf of good_middle() that differs in one thing. */
static struct cert *leaf_of(struct cert_opts opts)
{
        opts.name = opts.name ? opts.name : "a.example";
        opts.alt = opts.alt ? opts.alt : "DNS:a.example";
        return cert_new(good_middle(), &opts);
}

static const char *why(struct cert_opts opts)
{
        return refusal(leaf_of(opts), "a.example");
}

/* The same with another issuer than good_middle(). */
static const char *why_of(const struct cert *issuer, struct cert_opts opts)
{
        opts.name = "a.example";
        opts.alt = opts.alt ? opts.alt : "DNS:a.example";
        return refusal(cert_new(issuer, &opts), "a.example");
}

TASK(good_ones)
{
        ASSERT_STR(why((struct cert_opts){ 0 }), "");
        ASSERT_STR(why((struct cert_opts){ .purpose = "serverAuth" }), "");
        ASSERT_STR(why((struct cert_opts){ .purpose = "serverAuth,clientAuth" }), "");
        ASSERT_STR(why((struct cert_opts){ .key = CERT_RSA_2048 }), "");
        ASSERT_STR(why((struct cert_opts){ .key = CERT_ED25519 }), "");
        ASSERT_STR(why((struct cert_opts){ .digest = "SHA384" }), "");
        ASSERT_STR(refusal(cert_new(good_middle(), &(struct cert_opts){ .alt = "DNS:a.example" }), "a.example"), "");
        ASSERT_STR(why((struct cert_opts){ .alt = "DNS:b.example,DNS:a.example,email:x@a.example" }), "");
        return 0;
}

TASK(both_versions)
{
        const struct cert *leaf = good_leaf("a.example");

        for (int version = RESHA_TLS_1_2; version <= RESHA_TLS_1_3; version++) {
                struct shake s = { .server = server_with(leaf),
                                   .client = client_of(
                                           &(resha_tls_opts){ .trust_pem = cert_pem(good_root()),
                                                              .min_version = (enum resha_tls_version)version,
                                                              .max_version = (enum resha_tls_version)version }) };
                shake(&s);
                ASSERT_STR(s.text[0], "");
                ASSERT_STR(s.text[1], "");
                ASSERT_EQ(s.version, version);
                ASSERT_TRUE(s.verified);
                ASSERT_STR(s.name, "a.example");
                shake_free(&s);
                resha_tls_unref(s.client);
                resha_tls_unref(s.server);
        }
        return 0;
}

/* ---- when ---- */

TASK(expired)
{
        ASSERT_HAS(why((struct cert_opts){ .from = -300 * DAY, .until = -100 * DAY }),
                   "certificate of \"a.example\": expired on 20");
        ASSERT_HAS(why((struct cert_opts){ .from = -300 * DAY, .until = -100 * DAY }), " (CN=a.example)");
        /* Just now: then the time of day is said. */
        ASSERT_HAS(why((struct cert_opts){ .until = -60 }), " UTC (CN=a.example)");
        return 0;
}

TASK(not_yet_valid)
{
        ASSERT_HAS(why((struct cert_opts){ .from = 100 * DAY, .until = 200 * DAY }),
                   "certificate of \"a.example\": not valid before 20");
        return 0;
}

TASK(an_authority_in_the_chain_expired)
{
        struct cert *old = cert_new(
                good_root(), &(struct cert_opts){ .name = "Old", .ca = true, .from = -300 * DAY, .until = -9 * DAY });

        ASSERT_HAS(why_of(old, (struct cert_opts){ 0 }),
                   "certificate of \"a.example\": the authority 1 above it: expired on 20");
        ASSERT_HAS(why_of(old, (struct cert_opts){ 0 }), "(CN=Old)");
        return 0;
}

/* ---- for whom ---- */

TASK(another_host)
{
        ASSERT_HAS(why((struct cert_opts){ .alt = "DNS:b.example" }),
                   "certificate of \"a.example\": is for \"b.example\", not for \"a.example\"");
        ASSERT_HAS(why((struct cert_opts){
                           .alt = "DNS:b.example,DNS:c.example,DNS:d.example,DNS:e.example,DNS:f.example" }),
                   "is for \"b.example\", \"c.example\", \"d.example\" and 2 more, not for \"a.example\"");
        ASSERT_HAS(why((struct cert_opts){ .alt = "IP:127.0.0.1" }), "is for \"127.0.0.1\", not for \"a.example\"");
        ASSERT_HAS(why((struct cert_opts){ .alt = "DNS:xa.example" }), "is for \"xa.example\"");
        ASSERT_HAS(why((struct cert_opts){ .alt = "DNS:example" }), "is for \"example\"");
        return 0;
}

/* The subject's CN counts for nothing. */
TASK(a_common_name_is_no_name)
{
        const char *text = refusal(cert_new(good_middle(), &(struct cert_opts){ .name = "a.example" }), "a.example");

        ASSERT_HAS(text, "names no host (subjectAltName), and so is not for \"a.example\" (CN=a.example)");
        ASSERT_HAS(why((struct cert_opts){ .alt = "email:x@a.example" }), "names no host");
        return 0;
}

TASK(case_and_trailing_dot_do_not_matter)
{
        const struct cert *leaf = cert_new(good_middle(), &(struct cert_opts){ .alt = "DNS:A.Example" });

        ASSERT_STR(refusal(leaf, "a.example"), "");
        ASSERT_STR(refusal(leaf, "a.eXAMPLE"), "");
        ASSERT_STR(refusal(leaf, "A.example."), "");
        return 0;
}

TASK(wildcards)
{
        const struct cert *leaf = cert_new(good_middle(), &(struct cert_opts){ .alt = "DNS:*.b.example" });

        ASSERT_STR(refusal(leaf, "www.b.example"), "");
        ASSERT_STR(refusal(leaf, "xn--bcher-kva.b.example"), "");
        ASSERT_HAS(refusal(leaf, "b.example"), "is for \"*.b.example\", not for \"b.example\"");
        ASSERT_HAS(refusal(leaf, "a.www.b.example"), "is for \"*.b.example\", not for \"a.www.b.example\"");
        ASSERT_HAS(refusal(leaf, "b.b.example.evil"), "is for \"*.b.example\"");
        return 0;
}

static const char *with_name(const char *alt, const char *host)
{
        return refusal(cert_new(good_middle(), &(struct cert_opts){ .alt = alt }), host);
}

TASK(wildcards_that_count_for_nothing)
{
        ASSERT_HAS(with_name("DNS:*", "a"), "is for \"*\", not for \"a\"");
        ASSERT_HAS(with_name("DNS:*.example", "a.example"), "is for \"*.example\", not for \"a.example\"");
        ASSERT_HAS(with_name("DNS:w*.b.example", "www.b.example"), "is for \"w*.b.example\"");
        ASSERT_HAS(with_name("DNS:*w.b.example", "www.b.example"), "is for \"*w.b.example\"");
        ASSERT_HAS(with_name("DNS:a.*.example", "a.b.example"), "is for \"a.*.example\"");
        ASSERT_HAS(with_name("DNS:*.*.example", "a.b.example"), "is for \"*.*.example\"");
        ASSERT_HAS(with_name("DNS:xn--*.b.example", "xn--bcher-kva.b.example"), "is for \"xn--*.b.example\"");
        return 0;
}

TASK(addresses)
{
        ASSERT_STR(with_name("IP:127.0.0.1", "127.0.0.1"), "");
        ASSERT_STR(with_name("IP:::1", "::1"), "");
        ASSERT_STR(with_name("IP:::1", "[::1]"), "");
        ASSERT_STR(with_name("IP:fe80::1", "fe80::1%eth0"), "");
        ASSERT_HAS(with_name("IP:127.0.0.2", "127.0.0.1"), "is for \"127.0.0.2\", not for \"127.0.0.1\"");
        ASSERT_HAS(with_name("IP:::2", "::1"), "is for \"0:0:0:0:0:0:0:2\", not for \"::1\"");
        /* A name that looks like it is none. */
        ASSERT_HAS(with_name("DNS:127.0.0.1", "127.0.0.1"), "not for \"127.0.0.1\"");
        ASSERT_HAS(with_name("DNS:*.0.0.1", "127.0.0.1"), "not for \"127.0.0.1\"");
        return 0;
}

TASK(names_of_any_language_in_their_ascii_form)
{
        ASSERT_STR(with_name("DNS:xn--bcher-kva.example", "xn--bcher-kva.example"), "");
        ASSERT_STR(with_name("DNS:xn--bcher-kva.example", "XN--BCHER-KVA.example"), "");
        ASSERT_HAS(with_name("DNS:xn--bcher-kva.example", "bcher-kva.example"), "is for \"xn--bcher-kva.example\"");
        return 0;
}

/* "a.example\0.evil" is not "a.example", and is printed so that it cannot be taken for it. */
TASK(a_name_with_a_zero_byte_in_it)
{
        static const char name[] = "a.example\0.evil.example";
        const struct cert_opts opts = { .name = "x", .alt_bytes = name, .alt_size = sizeof name - 1 };
        const char *text = refusal(cert_new(good_middle(), &opts), "a.example");

        ASSERT_HAS(text, "is for \"a.example\\x00.evil.example\", not for \"a.example\"");
        return 0;
}

TASK(what_a_certificate_says_cannot_break_the_line)
{
        static const char name[] = "a\r\nb\x1b[31m\"c\xff";
        struct cert_opts opts = { .name = "evil\nresha: all is well", .alt_bytes = name, .alt_size = sizeof name - 1 };
        const char *text = refusal(cert_new(good_middle(), &opts), "a.example");

        ASSERT_HAS(text, "is for \"a\\x0d\\x0ab\\x1b[31m\\x22c\\xff\", not for");
        opts.until = -3 * DAY;
        opts.from = -9 * DAY;
        opts.alt_bytes = NULL;
        opts.alt = "DNS:a.example";
        text = refusal(cert_new(good_middle(), &opts), "a.example");
        ASSERT_HAS(text, "(CN=evil\\0Aresha: all is well)");
        ASSERT_TRUE(!strchr(text, '\n'));
        return 0;
}

/* ---- whom it comes from ---- */

TASK(self_signed)
{
        ASSERT_HAS(why_of(NULL, (struct cert_opts){ 0 }),
                   "certificate of \"a.example\": self-signed and not trusted (CN=a.example)");
        return 0;
}

/* One that is trusted itself needs no authority. */
TASK(self_signed_and_trusted)
{
        const struct cert *leaf = cert_new(NULL, &(struct cert_opts){ .name = "a.example", .alt = "DNS:a.example" });
        struct shake s = { .client = client_trusting(leaf), .server = server_with(leaf) };

        shake(&s);
        ASSERT_STR(s.text[0], "");
        ASSERT_TRUE(s.verified);
        shake_free(&s);
        resha_tls_unref(s.client);
        resha_tls_unref(s.server);
        return 0;
}

TASK(an_intermediate_that_is_trusted_ends_the_chain)
{
        struct shake s = { .client = client_trusting(good_middle()), .server = server_with(good_leaf("a.example")) };

        shake(&s);
        ASSERT_STR(s.text[0], "");
        shake_free(&s);
        resha_tls_unref(s.client);
        resha_tls_unref(s.server);
        return 0;
}

TASK(unknown_root)
{
        const struct cert *other = cert_new(NULL, &(struct cert_opts){ .name = "Other root", .ca = true });
        const struct cert *middle = cert_new(other, &(struct cert_opts){ .name = "Other middle", .ca = true });
        const char *text = why_of(middle, (struct cert_opts){ 0 });

        ASSERT_HAS(text,
                   "certificate of \"a.example\": the authority 1 above it: issuer \"CN=Other root\" unknown: not "
                   "trusted here");
        /* The root is sent along: it proves nothing. */
        struct shake s = { .client = client_trusting(good_root()) };
        const struct cert *leaf = cert_new(middle, &(struct cert_opts){ .name = "a.example", .alt = "DNS:a.example" });
        s.server = server_of(&(resha_tls_opts){ .cert_pem = text_join(cert_chain_pem(leaf), cert_pem(other)),
                                                .key_pem = cert_key_pem(leaf) });
        shake(&s);
        ASSERT_EQ(s.rc[0], RESHA_TLS_EVERIFY);
        ASSERT_HAS(s.text[0], "its root is not trusted (CN=Other root)");
        ASSERT_HAS(s.text[1], "TLS with the client: the peer says: unknown CA: it does not trust our certificate");
        ASSERT_EQ(s.rc[1], RESHA_TLS_EHANDSHAKE);
        shake_free(&s);
        resha_tls_unref(s.client);
        resha_tls_unref(s.server);
        return 0;
}

TASK(a_root_of_the_same_name)
{
        const struct cert *fake = cert_new(NULL, &(struct cert_opts){ .name = "Root", .ca = true });
        const char *text = why_of(fake, (struct cert_opts){ 0 });

        ASSERT_HAS(text, "certificate of \"a.example\": ");
        return 0;
}

TASK(chain_without_its_intermediate)
{
        const struct cert *leaf = good_leaf("a.example");
        struct shake s = { .client = client_trusting(good_root()),
                           .server = server_of(
                                   &(resha_tls_opts){ .cert_pem = cert_pem(leaf), .key_pem = cert_key_pem(leaf) }) };

        shake(&s);
        ASSERT_HAS(s.text[0],
                   "certificate of \"a.example\": issuer \"CN=Middle\" unknown: it is not trusted here, and the "
                   "peer has sent no chain (CN=a.example)");
        shake_free(&s);
        resha_tls_unref(s.client);
        resha_tls_unref(s.server);
        return 0;
}

TASK(an_authority_that_is_none)
{
        const struct cert *none =
                cert_new(good_root(), &(struct cert_opts){ .name = "Leaf", .alt = "DNS:leaf.example" });
        const struct cert *no_sign =
                cert_new(good_root(), &(struct cert_opts){ .name = "No", .ca = true, .usage = "cRLSign" });

        ASSERT_HAS(why_of(none, (struct cert_opts){ 0 }),
                   "the authority 1 above it: is no authority, but has signed a certificate (CN=Leaf)");
        ASSERT_HAS(why_of(no_sign, (struct cert_opts){ 0 }), "certificate of \"a.example\": ");
        return 0;
}

TASK(path_length)
{
        const struct cert *below = cert_new(good_middle(), &(struct cert_opts){ .name = "Below", .ca = true });

        ASSERT_HAS(why_of(below, (struct cert_opts){ 0 }), "its authority may not sign other authorities");
        return 0;
}

TASK(name_constraints)
{
        const struct cert *only =
                cert_new(good_root(),
                         &(struct cert_opts){ .name = "Only b", .ca = true, .constraints = "permitted;DNS:b.example" });

        ASSERT_HAS(why_of(only, (struct cert_opts){ 0 }), "its authority may not sign for such names (CN=a.example)");
        const struct cert *leaf = cert_new(only, &(struct cert_opts){ .name = "x", .alt = "DNS:x.b.example" });
        ASSERT_STR(refusal(leaf, "x.b.example"), "");
        const struct cert *without =
                cert_new(good_root(),
                         &(struct cert_opts){ .name = "Not a", .ca = true, .constraints = "excluded;DNS:a.example" });
        ASSERT_HAS(why_of(without, (struct cert_opts){ 0 }), "its authority may not sign for such names");
        return 0;
}

/* ---- for what, and how well ---- */

TASK(for_another_purpose)
{
        ASSERT_HAS(why((struct cert_opts){ .purpose = "clientAuth" }),
                   "certificate of \"a.example\": is not for servers: its key usage does not allow it (CN=a.example)");
        ASSERT_HAS(why((struct cert_opts){ .purpose = "codeSigning" }), "is not for servers");
        ASSERT_HAS(why((struct cert_opts){ .usage = "keyCertSign" }), "is not for servers");
        return 0;
}

/* One that our own server would not take; another program's does. */
static const char *why_raw(const struct cert *leaf)
{
        static struct shake s;
        SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());

        SSL_CTX_set_security_level(ctx, 0);
        ASSERT_EQ(SSL_CTX_use_certificate(ctx, leaf->x509), 1);
        ASSERT_EQ(SSL_CTX_use_PrivateKey(ctx, leaf->key), 1);
        SSL_CTX_add1_chain_cert(ctx, leaf->issuer->x509);
        s = (struct shake){ .client = client_trusting(good_root()), .raw_server = SSL_new(ctx) };
        SSL_set_accept_state(s.raw_server);
        shake(&s);
        ASSERT_EQ(s.rc[0], RESHA_TLS_EVERIFY);
        shake_free(&s);
        resha_tls_unref(s.client);
        SSL_CTX_free(ctx);
        return s.text[0];
}

TASK(weak_keys_and_digests)
{
        const struct cert_opts weak_opts = { .name = "Weak", .ca = true, .key = CERT_RSA_1024 };
        const struct cert *weak = cert_new(good_root(), &weak_opts);
        const struct cert_opts opts = { .name = "a.example", .alt = "DNS:a.example" };

        ASSERT_HAS(why_raw(cert_new(weak, &opts)),
                   "the authority 1 above it: its key is too weak: RSA of 1024 bits (CN=Weak)");
        ASSERT_HAS(why_raw(leaf_of((struct cert_opts){ .key = CERT_RSA_1024 })),
                   "certificate of \"a.example\": its key is too weak: RSA of 1024 bits (CN=a.example)");
        ASSERT_HAS(why_raw(leaf_of((struct cert_opts){ .digest = "SHA1" })),
                   "its signature is too weak: ecdsa-with-SHA1");
        return 0;
}

/* ---- lists of what is revoked ---- */

static struct shake with_list(const struct cert *leaf, const char *crl)
{
        struct shake s = { .server = server_with(leaf),
                           .client = client_of(&(resha_tls_opts){ .trust_pem = cert_pem(good_root()),
                                                                  .crl_file = temp_file("crl.pem", crl) }) };

        shake(&s);
        shake_free(&s);
        resha_tls_unref(s.client);
        resha_tls_unref(s.server);
        return s;
}

TASK(revoked)
{
        const struct cert *bad = good_leaf("a.example"), *good = good_leaf("a.example");
        const char *list = crl_pem(good_middle(), &bad, 1, 0, 0);

        ASSERT_STR(with_list(good, list).text[0], "");
        struct shake s = with_list(bad, list);
        ASSERT_EQ(s.rc[0], RESHA_TLS_EVERIFY);
        ASSERT_HAS(s.text[0], "certificate of \"a.example\": revoked on 20");
        ASSERT_HAS(s.text[0], "by its authority (CN=a.example)");
        ASSERT_HAS(s.text[1], "the peer says: certificate revoked: our certificate has been revoked");
        return 0;
}

TASK(an_intermediate_that_is_revoked)
{
        const struct cert *leaf = good_leaf("a.example"), *middle = good_middle();
        const char *list = text_join(crl_pem(good_root(), &middle, 1, 0, 0), crl_pem(middle, NULL, 0, 0, 0));

        ASSERT_HAS(with_list(leaf, list).text[0], "the authority 1 above it: revoked on 20");
        return 0;
}

TASK(lists_that_do_not_say_anything)
{
        const struct cert *leaf = good_leaf("a.example");

        ASSERT_HAS(with_list(leaf, crl_pem(good_middle(), NULL, 0, -20 * DAY, -10 * DAY)).text[0],
                   "cannot be checked: the CRL of \"CN=Middle\" has expired on 20");
        ASSERT_HAS(with_list(leaf, crl_pem(good_middle(), NULL, 0, 10 * DAY, 20 * DAY)).text[0],
                   "cannot be checked: the CRL of \"CN=Middle\" is not valid before 20");
        ASSERT_HAS(with_list(leaf, crl_pem(good_root(), NULL, 0, 0, 0)).text[0],
                   "cannot be checked: crl_file has no list of \"CN=Middle\" (CN=a.example)");
        return 0;
}

/* ---- nobody is verified ---- */

TASK(insecure_takes_anybody_and_says_so)
{
        const struct cert *leaf =
                cert_new(NULL, &(struct cert_opts){ .name = "anybody", .until = -5 * DAY, .from = -9 * DAY });
        struct shake s = { .client = client_of(&(resha_tls_opts){ .insecure = true }), .server = server_with(leaf) };

        shake(&s);
        ASSERT_STR(s.text[0], "");
        ASSERT_FALSE(s.verified);
        shake_free(&s);
        resha_tls_unref(s.client);
        resha_tls_unref(s.server);
        return 0;
}
