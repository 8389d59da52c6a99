/* SPDX-License-Identifier: MIT */
/* Making a configuration: what is wrong with options and files is told in one clear line, before any peer comes.
 * Server names, protocols, versions: negotiate.c. */

#include "handshake.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "base/alloc.h"
#include "config.h"

/* Why it cannot be made. */
static const char *no_client(int code, resha_tls_opts opts)
{
        resha_tls *t = NULL;
        int rc = resha_tls_client(&opts, &t);

        ASSERT_EQ(rc, code);
        ASSERT_TRUE(t == NULL);
        return resha_error_of(rc)->text;
}

static const char *no_server(int code, resha_tls_opts opts)
{
        resha_tls *t = NULL;
        int rc = resha_tls_server(&opts, &t);

        ASSERT_EQ(rc, code);
        ASSERT_TRUE(t == NULL);
        return resha_error_of(rc)->text;
}

/* ---- options ---- */

TASK(options_that_cannot_be)
{
        const char *pem = cert_pem(good_root());
        resha_tls_opts reserved = { 0 };

        reserved._reserved[7] = 1;
        ASSERT_HAS(no_client(-EINVAL, reserved), "a reserved word is not zero");
        ASSERT_HAS(no_client(-EINVAL, (resha_tls_opts){ .min_version = (enum resha_tls_version)0x0301 }), "older ones");
        ASSERT_HAS(no_client(-EINVAL, (resha_tls_opts){ .min_version = RESHA_TLS_1_3, .max_version = RESHA_TLS_1_2 }),
                   "min_version is above max_version");
        ASSERT_HAS(no_client(-EINVAL, (resha_tls_opts){ .sessions = 65537 }), "sessions");
        ASSERT_HAS(no_client(-EINVAL, (resha_tls_opts){ .handshake = RESHA_NS(-1) }), "a time is negative");
        ASSERT_HAS(no_client(-EINVAL, (resha_tls_opts){ .peer = RESHA_TLS_PEER_ASK }), "peer is a server's");
        ASSERT_HAS(no_client(-EINVAL, (resha_tls_opts){ .key_file = "x" }), "a key without a certificate");
        ASSERT_HAS(no_client(-EINVAL, (resha_tls_opts){ .cert_file = "x", .cert_pem = pem }), "one of them");
        ASSERT_HAS(no_client(-EINVAL, (resha_tls_opts){ .trust_pem = pem, .ciphers = "NONSENSE" }),
                   "ciphers \"NONSENSE\": OpenSSL has none of them");
        ASSERT_HAS(no_client(-EINVAL, (resha_tls_opts){ .trust_pem = pem, .suites = "NONSENSE" }),
                   "suites \"NONSENSE\"");
        ASSERT_HAS(no_client(-EINVAL, (resha_tls_opts){ .trust_pem = pem, .alpn = (const char *[]){ NULL } }), "alpn");
        ASSERT_HAS(no_client(-EINVAL, (resha_tls_opts){ .trust_pem = pem, .alpn = (const char *[]){ "", NULL } }),
                   "alpn");
        ASSERT_HAS(no_server(-EINVAL, (resha_tls_opts){ 0 }), "a server needs a certificate");
        ASSERT_HAS(no_server(-EINVAL, (resha_tls_opts){ .insecure = true }), "insecure is a client's");
        ASSERT_HAS(no_server(-EINVAL, (resha_tls_opts){ .cert_pem = pem, .peer = RESHA_TLS_PEER_REQUIRE }),
                   "who may sign them");
        return 0;
}

TASK(names_that_cannot_be)
{
        const char *pem = cert_pem(good_root());
        const char *wrong[] = {
                NULL, "", "*", "*.", "a..b", "a b", "b\303\274cher.example", "127.0.0.1", "*.*.example"
        };

        for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
                const resha_tls_name name = { .host = wrong[i], .cert_pem = pem };
                no_server(-EINVAL, (resha_tls_opts){ .cert_pem = pem, .names = &name, .name_count = 1 });
        }
        const resha_tls_name none = { .host = "a.example" };
        ASSERT_HAS(no_server(-EINVAL, (resha_tls_opts){ .cert_pem = pem, .names = &none, .name_count = 1 }),
                   "the name \"a.example\" has no certificate");
        ASSERT_HAS(no_server(-EINVAL, (resha_tls_opts){ .cert_pem = pem, .name_count = 1 }),
                   "name_count without names");
        ASSERT_HAS(no_client(-EINVAL, (resha_tls_opts){ .names = &none, .name_count = 1 }), "names are a server's");
        return 0;
}

static const char *no_host(resha_tls *t, const char *host)
{
        SSL *ssl = NULL;
        int rc = rs_tls_ssl_new(t, &(resha_tls_start_opts){ .host = host }, &ssl);

        ASSERT_EQ(rc, -EINVAL);
        return resha_error_of(rc)->text;
}

TASK(hosts_that_cannot_be)
{
        resha_tls *t = client_trusting(good_root());
        char name[400];

        ASSERT_HAS(no_host(t, NULL), "say in `host` who the peer must be");
        ASSERT_HAS(no_host(t, ""), "the name is empty");
        ASSERT_HAS(no_host(t, "b\303\274cher.example"), "the name is not ASCII: give its \"xn--\" form");
        ASSERT_HAS(no_host(t, "a.example:443"), "TLS with \"a.example:443\": the name has a byte that no host has");
        ASSERT_HAS(no_host(t, "https://a.example"), "without scheme, port or spaces");
        ASSERT_HAS(no_host(t, "a\r\nb"), "TLS with \"a??b\": the name has a byte");
        ASSERT_HAS(no_host(t, "a..example"), "the name has an empty part");
        ASSERT_HAS(no_host(t, ".a.example"), "the name has an empty part");
        ASSERT_HAS(no_host(t, "."), "the name has an empty part");
        memset(name, 'a', sizeof name);
        name[64] = '\0';
        ASSERT_HAS(no_host(t, name), "longer than 63 bytes");
        for (int i = 0; i < 300; i += 2)
                name[i] = 'a', name[i + 1] = '.';
        name[300] = '\0';
        ASSERT_HAS(no_host(t, name), "longer than 253 bytes");
        resha_tls_unref(t);
        return 0;
}

/* ---- files ---- */

TASK(files_that_cannot_be_read)
{
        const char *folder = temp_path("folder"), *fifo = temp_path("fifo"),
                   *cert = temp_file("c.pem", cert_pem(good_root()));

        mkdir(folder, 0700);
        mkfifo(fifo, 0600);
        ASSERT_HAS(no_client(-ENOENT, (resha_tls_opts){ .trust_file = "nowhere/ca.pem" }),
                   "trust_file \"nowhere/ca.pem\": No such file or directory: is the name right");
        ASSERT_HAS(no_client(-EISDIR, (resha_tls_opts){ .trust_file = folder }), "folder\": is a folder, not a file");
        ASSERT_HAS(no_client(-EINVAL, (resha_tls_opts){ .trust_file = fifo }), "fifo\": is no plain file");
        ASSERT_HAS(no_client(-ENOENT, (resha_tls_opts){ .trust_dir = "nowhere" }),
                   "trust_dir \"nowhere\": No such file");
        ASSERT_HAS(no_client(RESHA_TLS_ECERT, (resha_tls_opts){ .trust_dir = folder }),
                   "no certificate in any of its files");
        ASSERT_HAS(no_client(-ENOENT, (resha_tls_opts){ .trust_file = cert, .crl_file = "nowhere" }),
                   "crl_file \"nowhere\"");
        ASSERT_HAS(no_server(-ENOENT, (resha_tls_opts){ .cert_file = "nowhere" }),
                   "cert_file \"nowhere\": No such file");
        ASSERT_HAS(no_server(-ENOENT, (resha_tls_opts){ .cert_file = cert, .key_file = "nowhere" }),
                   "key_file \"nowhere\"");
        chmod(cert, 0);
        if (access(cert, R_OK) < 0)
                ASSERT_HAS(no_client(-EACCES, (resha_tls_opts){ .trust_file = cert }), "this process may not read it");
        return 0;
}

TASK(files_with_something_else_in_them)
{
        const char *text = temp_file("notes", "These are my notes.\n"),
                   *cert = temp_file("c.pem", cert_pem(good_root()));
        const char *der = temp_file("c.der", "0\x82\x01\x0a and so on");
        const char *broken = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
        const char *two = temp_file("two.pem", text_join(cert_pem(good_root()), broken));

        ASSERT_HAS(no_client(RESHA_TLS_ECERT, (resha_tls_opts){ .trust_file = text }),
                   "notes\": no certificate in it (-----BEGIN CERTIFICATE-----)");
        ASSERT_HAS(no_client(RESHA_TLS_ECERT, (resha_tls_opts){ .trust_file = der }),
                   "c.der\": is DER, not PEM: openssl x509 -inform der");
        ASSERT_HAS(no_client(RESHA_TLS_ECERT, (resha_tls_opts){ .trust_pem = "" }), "trust_pem: no certificate in it");
        ASSERT_HAS(no_client(RESHA_TLS_ECERT, (resha_tls_opts){ .trust_file = two }),
                   "two.pem\": its certificate number 2 cannot be read");
        ASSERT_HAS(no_client(RESHA_TLS_ECERT, (resha_tls_opts){ .trust_file = cert, .crl_file = cert }),
                   "no revocation list in it");
        ASSERT_HAS(no_server(RESHA_TLS_ECERT, (resha_tls_opts){ .cert_file = text }), "notes\": no certificate in it");
        return 0;
}

TASK(keys_that_do_not_fit)
{
        const struct cert *a = good_leaf("a.example"), *b = good_leaf("b.example");
        const char *cert = temp_file("a.pem", cert_pem(a)), *key = temp_file("b.key", cert_key_pem(b));
        const char *secret = cert_key_encrypted_pem(a, "sesame");

        ASSERT_HAS(no_server(RESHA_TLS_ECERT, (resha_tls_opts){ .cert_file = cert, .key_file = key }),
                   "b.key\": is not the key of the certificate in cert_file \"");
        ASSERT_HAS(no_server(RESHA_TLS_ECERT, (resha_tls_opts){ .cert_pem = cert_pem(a), .key_file = key }),
                   "is not the key of the certificate in cert_pem (CN=a.example)");
        ASSERT_HAS(no_server(RESHA_TLS_ECERT, (resha_tls_opts){ .cert_pem = cert_pem(a), .key_pem = secret }),
                   "key_pem: the key is encrypted: give it without a password (openssl pkey -in ... -out ...)");
        ASSERT_HAS(no_server(RESHA_TLS_ECERT, (resha_tls_opts){ .cert_file = cert }),
                   "a.pem\": no private key in it (-----BEGIN PRIVATE KEY-----)");
        ASSERT_HAS(no_server(RESHA_TLS_ECERT,
                             (resha_tls_opts){ .cert_pem = text_join(cert_pem(good_middle()), cert_pem(a)),
                                               .key_pem = cert_key_pem(a) }),
                   "cert_pem: the certificate of the key is number 2: put it first");
        const struct cert *weak = cert_new(good_middle(), &(struct cert_opts){ .name = "w", .key = CERT_RSA_1024 });
        ASSERT_HAS(no_server(RESHA_TLS_ECERT,
                             (resha_tls_opts){ .cert_pem = cert_pem(weak), .key_pem = cert_key_pem(weak) }),
                   "cert_pem: ee key too small");
        return 0;
}

TASK(key_and_certificate_in_one_file)
{
        const struct cert *leaf = good_leaf("a.example");
        const char *orders[] = { text_join(cert_chain_pem(leaf), cert_key_pem(leaf)),
                                 text_join(cert_key_pem(leaf), cert_chain_pem(leaf)) };

        for (int i = 0; i < 2; i++) {
                struct shake s = { .client = client_trusting(good_root()),
                                   .server = server_of(
                                           &(resha_tls_opts){ .cert_file = temp_file("all.pem", orders[i]) }) };
                shake(&s);
                ASSERT_STR(s.text[0], "");
                shake_free(&s);
                resha_tls_unref(s.client);
                resha_tls_unref(s.server);
        }
        return 0;
}

/* ---- whom to trust ---- */

static void expect(resha_tls *client, resha_tls *server, const char *text)
{
        struct shake s = { .client = client, .server = server };

        shake(&s);
        if (*text)
                ASSERT_HAS(s.text[0], text);
        else
                ASSERT_STR(s.text[0], "");
        shake_free(&s);
        resha_tls_unref(client);
}

TASK(a_folder_is_read_whatever_its_files_are_called)
{
        const char *folder = temp_path("trust");
        resha_tls *server = server_with(good_leaf("a.example"));

        mkdir(folder, 0700);
        temp_file("trust/README", "not a certificate\n");
        temp_file("trust/any name.crt", cert_pem(good_root()));
        mkdir(temp_path("trust/folder"), 0700);
        expect(client_of(&(resha_tls_opts){ .trust_dir = folder }), server, "");
        resha_tls_unref(server);
        return 0;
}

TASK(the_system_is_what_the_environment_says)
{
        const struct cert *other = cert_new(NULL, &(struct cert_opts){ .name = "Other", .ca = true });
        const char *good = temp_file("good.pem", cert_pem(good_root())), *bad = temp_file("bad.pem", cert_pem(other));
        resha_tls *server = server_with(good_leaf("a.example"));

        setenv("SSL_CERT_FILE", good, 1);
        expect(client_of(NULL), server, "");
        setenv("SSL_CERT_FILE", bad, 1);
        expect(client_of(NULL), server, "unknown: not trusted here");
        mkdir(temp_path("dir"), 0700);
        temp_file("dir/x.pem", cert_pem(good_root()));
        setenv("SSL_CERT_DIR", text_join("/nowhere", ""), 1);
        ASSERT_HAS(no_client(-ENOENT, (resha_tls_opts){ 0 }), "$SSL_CERT_DIR \"/nowhere\": No such file");
        setenv("SSL_CERT_DIR", temp_path("dir"), 1);
        expect(client_of(NULL), server, "");
        /* all that is in the folder is in the file, and is not parsed again: that is no empty folder */
        setenv("SSL_CERT_FILE", temp_file("all.pem", text_join(cert_pem(other), cert_pem(good_root()))), 1);
        expect(client_of(NULL), server, "");
        unsetenv("SSL_CERT_FILE");
        expect(client_of(NULL), server, "");
        unsetenv("SSL_CERT_DIR");
        setenv("SSL_CERT_FILE", "/nowhere", 1);
        ASSERT_HAS(no_client(-ENOENT, (resha_tls_opts){ 0 }), "$SSL_CERT_FILE \"/nowhere\": No such file");
        unsetenv("SSL_CERT_FILE");
        resha_tls_unref(server);
        return 0;
}

TASK(a_system_without_authorities)
{
        static const char *const none[] = { "/nowhere", NULL };
        const char *const some[] = { "/nowhere", temp_file("good.pem", cert_pem(good_root())), NULL };
        EVP_MD_CTX *digest = EVP_MD_CTX_new();
        X509_STORE *store = X509_STORE_new();

        unsetenv("SSL_CERT_FILE");
        unsetenv("SSL_CERT_DIR");
        EVP_DigestInit(digest, EVP_sha256());
        ASSERT_EQ(rs_tls_trust_system(&(struct rs_tls_places){ none, none }, store, digest), RESHA_TLS_ECERT);
        ASSERT_HAS(resha_error_of(RESHA_TLS_ECERT)->text,
                   "no certificates of authorities on this system: install its package \"ca-certificates\"");
        ASSERT_OK(rs_tls_trust_system(&(struct rs_tls_places){ some, none }, store, digest));
        X509_STORE_free(store);
        EVP_MD_CTX_free(digest);
        return 0;
}

TASK(the_default_is_made_once)
{
        resha_tls *a = NULL, *b = NULL;

        setenv("SSL_CERT_FILE", "/nowhere", 1);
        ASSERT_EQ(rs_tls_default(&a), -ENOENT);
        ASSERT_HAS(resha_error_of(-ENOENT)->text, "$SSL_CERT_FILE");
        setenv("SSL_CERT_FILE", temp_file("good.pem", cert_pem(good_root())), 1);
        ASSERT_OK(rs_tls_default(&a));
        ASSERT_OK(rs_tls_default(&b));
        ASSERT_PTR(a, b);
        rs_tls_default_drop();
        return 0;
}

/* A cancel does not reach in: it would be a code that says nothing of the files. */
TASK(made_in_spite_of_a_cancel)
{
        resha_tls *t = NULL;

        RESHA_SCOPE(s);
        resha_timeout_begin(&s, RESHA_NS(0));
        ASSERT_EQ(resha_checkpoint(), -ECANCELED);
        ASSERT_OK(resha_tls_client(&(resha_tls_opts){ .trust_pem = cert_pem(good_root()) }, &t));
        ASSERT_OK(resha_tls_reload(t));
        ASSERT_EQ(resha_tls_client(&(resha_tls_opts){ .trust_file = "nowhere" }, &t), -ENOENT);
        resha_tls_unref(t);
        ASSERT_EQ(resha_checkpoint(), -ECANCELED);
        ASSERT_EQ(resha_scope_end(&s, 0), 0);
        return 0;
}

/* ---- nobody is verified ---- */

static struct {
        unsigned n;
        char text[256];
} told;

static void sink(const resha_report *r, __attribute__((unused)) void *arg)
{
        told.n += r->kind == RESHA_REPORT_INSECURE;
        snprintf(told.text, sizeof told.text, "%s", r->text);
}

static int uses_insecure(void *arg)
{
        struct shake s = { .client = arg ? resha_tls_ref(arg) : client_of(&(resha_tls_opts){ .insecure = true }) };

        ASSERT_EQ(told.n, arg ? 0 : 1);
        s.server = server_with(good_leaf("a.example"));
        shake(&s);
        shake_free(&s);
        shake(&s);
        ASSERT_EQ(told.n, 1);
        ASSERT_HAS(told.text, "a TLS client verifies nobody");
        shake_free(&s);
        resha_tls_unref(s.server);
        resha_tls_unref(s.client);
        return 0;
}

TEST(insecure_is_reported_when_it_is_made)
{
        ASSERT_OK(test_run_opts(uses_insecure, NULL, &(resha_run_opts){ .report = sink }));
}

TEST(insecure_that_was_made_outside_of_a_loop_is_reported_when_it_is_used)
{
        resha_tls *t = client_of(&(resha_tls_opts){ .insecure = true });

        ASSERT_OK(test_run_opts(uses_insecure, t, &(resha_run_opts){ .report = sink }));
        resha_tls_unref(t);
}

/* As a server does that reads its certificates first thing in main(). */
TEST(config_that_is_refused_outside_of_a_loop_says_why)
{
        resha_tls *t = NULL;

        ASSERT_EQ(resha_tls_client(&(resha_tls_opts){ .trust_file = "nowhere.pem" }, &t), -ENOENT);
        ASSERT_HAS(resha_error_of(-ENOENT)->text, "trust_file \"nowhere.pem\"");
        ASSERT_PTR(t, NULL);
}

/* ---- no memory ---- */

static int makes_all(void *arg)
{
        static const char *const alpn[] = { "h2", "http/1.1", NULL };
        const char *const *pem = arg;
        const resha_tls_name names[] = { { .host = "a.example", .cert_pem = pem[0], .key_pem = pem[1] },
                                         { .host = "*.b.example", .cert_file = pem[3], .key_pem = pem[1] } };
        resha_tls *t = NULL;
        int rc = resha_tls_server(&(resha_tls_opts){ .cert_pem = pem[0],
                                                     .key_pem = pem[1],
                                                     .trust_file = pem[2],
                                                     .peer = RESHA_TLS_PEER_ASK,
                                                     .alpn = alpn,
                                                     .names = names,
                                                     .name_count = 2 },
                                  &t);
        if (rc < 0)
                return rc;
        SSL *ssl = NULL;
        rc = resha_tls_reload(t);
        if (rc == 0)
                rc = rs_tls_ssl_new(t, &(resha_tls_start_opts){ .alpn = alpn }, &ssl);
        SSL_free(ssl);
        resha_tls_unref(t);
        if (rc < 0)
                return rc;
        rc = resha_tls_client(&(resha_tls_opts){ .trust_pem = cert_pem(good_root()), .alpn = alpn }, &t);
        if (rc < 0)
                return rc;
        rc = rs_tls_ssl_new(t, &(resha_tls_start_opts){ .host = "a.example", .alpn = alpn }, &ssl);
        if (rc == 0)
                SSL_free(ssl);
        resha_tls_unref(t);
        return rc;
}

/* How many allocations there are; each of them fails once. */
static int fails_each(const char *const *pem, bool count)
{
        int64_t failed = 1;
        int n;

        for (n = 1; failed; n++) {
                int64_t live = rs_alloc_live();
                rs_alloc_fail_after(n, false);
                int rc = makes_all((void *)pem);
                failed = rs_alloc_failed();
                rs_alloc_fail_after(0, false);
                ASSERT_EQ(rc, failed ? -ENOMEM : 0);
                if (count && rs_alloc_live() != live)
                        FAIL("allocation %d: %d live, %d before", n, (int)rs_alloc_live(), (int)live);
        }
        return n;
}

TASK(no_memory)
{
        const struct cert *leaf = good_leaf("a.example");
        const char *pem[] = { cert_chain_pem(leaf), cert_key_pem(leaf), temp_file("root.pem", cert_pem(good_root())),
                              temp_file("leaf.pem", cert_chain_pem(leaf)) };

        fails_each(pem, false); /* what a run and a task keep is there then: pool, records */
        ASSERT_TRUE(fails_each(pem, true) > 30);
        return 0;
}
