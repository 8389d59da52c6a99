/* SPDX-License-Identifier: MIT */
/* Certificates made while the test runs. What is made is kept in lists of the process, so that callers need not free
 * it: texts, certificates, files. */

#include "authority.h"

#include "test.h"

#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>

#define DAY 86400L

struct text {
        struct text *next;
        char bytes[];
};

static struct {
        pid_t owner; /* a forked child removes nothing, and has lists of its own */
        struct cert *certs;
        struct text *texts;
        char folder[128];
        long serial;
} made;

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
        (void)st, (void)type, (void)ftw;
        return remove(path);
}

static void remove_all(void)
{
        if (getpid() != made.owner)
                return;
        if (made.folder[0])
                nftw(made.folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
        for (struct cert *c; (c = made.certs);) {
                made.certs = c->next;
                X509_free(c->x509);
                EVP_PKEY_free(c->key);
                OPENSSL_free(c);
        }
        for (struct text *t; (t = made.texts);) {
                made.texts = t->next;
                OPENSSL_free(t);
        }
}

static void own(void)
{
        if (made.owner == getpid())
                return;
        made.owner = getpid();
        made.folder[0] = '\0';
        made.certs = NULL;
        made.texts = NULL;
        OPENSSL_init_crypto(0, NULL); /* so that its own end comes after ours */
        atexit(remove_all);
}

/* `ok`, or the test fails with what OpenSSL says. */
static void must(bool ok, const char *what)
{
        char text[256];

        if (ok)
                return;
        ERR_error_string_n(ERR_peek_last_error(), text, sizeof text);
        FAIL("%s: %s", what, text);
}

/* ---- texts and files ---- */

static const char *keep(const char *a, size_t a_size, const char *b, size_t b_size)
{
        own();
        struct text *t = OPENSSL_malloc(sizeof *t + a_size + b_size + 1);
        must(t, "memory");
        t->next = made.texts;
        made.texts = t;
        memcpy(t->bytes, a, a_size);
        memcpy(t->bytes + a_size, b, b_size);
        t->bytes[a_size + b_size] = '\0';
        return t->bytes;
}

const char *text_join(const char *a, const char *b)
{
        return keep(a, strlen(a), b, strlen(b));
}

/* What was written to the BIO, which is freed. */
static const char *text_of_bio(BIO *bio)
{
        char *bytes;
        long size = BIO_get_mem_data(bio, &bytes);
        const char *text = keep(bytes, (size_t)size, "", 0);

        BIO_free(bio);
        return text;
}

const char *temp_path(const char *name)
{
        own();
        if (!made.folder[0]) {
                const char *base = getenv("TMPDIR");
                snprintf(made.folder, sizeof made.folder, "%s/resha-tls-XXXXXX", base ? base : "/tmp");
                if (!mkdtemp(made.folder))
                        FAIL("mkdtemp %s: %m", made.folder);
        }
        return text_join(text_join(made.folder, "/"), name);
}

const char *temp_file(const char *name, const char *text)
{
        const char *path = temp_path(name), *new = text_join(path, ".new");
        FILE *f = fopen(new, "w");

        if (!f || fputs(text, f) < 0 || fclose(f) != 0 || rename(new, path) != 0)
                FAIL("cannot write %s: %m", path);
        return path;
}

/* ---- certificates ---- */

static EVP_PKEY *key_new(enum cert_key kind)
{
        switch (kind) {
        case CERT_RSA_2048: return EVP_RSA_gen(2048);
        case CERT_RSA_1024: return EVP_RSA_gen(1024);
        case CERT_ED25519: return EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
        default: return EVP_EC_gen("P-256");
        }
}

static void add_extension(X509 *x509, const X509 *issuer, int nid, const char *value)
{
        X509V3_CTX ctx;

        if (!value)
                return;
        X509V3_set_ctx(&ctx, (X509 *)issuer, x509, NULL, NULL, 0);
        X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
        must(e && X509_add_ext(x509, e, -1), value);
        X509_EXTENSION_free(e);
}

static void add_names(X509 *x509, const struct cert_opts *opts)
{
        X509V3_CTX ctx;
        GENERAL_NAMES *names = NULL;

        if (opts->alt) {
                X509V3_set_ctx(&ctx, x509, x509, NULL, NULL, 0);
                X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &ctx, NID_subject_alt_name, opts->alt);
                must(e, opts->alt);
                names = X509V3_EXT_d2i(e);
                X509_EXTENSION_free(e);
        }
        if (opts->alt_bytes) {
                names = names ? names : GENERAL_NAMES_new();
                GENERAL_NAME *one = GENERAL_NAME_new();
                ASN1_IA5STRING *bytes = ASN1_IA5STRING_new();
                must(ASN1_STRING_set(bytes, opts->alt_bytes, (int)opts->alt_size), "name");
                GENERAL_NAME_set0_value(one, GEN_DNS, bytes);
                must(sk_GENERAL_NAME_push(names, one) > 0, "name");
        }
        if (!names)
                return;
        must(X509_add1_ext_i2d(x509, NID_subject_alt_name, names, 0, 0), "subjectAltName");
        GENERAL_NAMES_free(names);
}

static void add_extensions(X509 *x509, const X509 *issuer, const struct cert_opts *opts)
{
        const char *constraints = "critical,CA:FALSE";

        if (opts->ca)
                constraints = opts->path_length ? text_join("critical,CA:TRUE,pathlen:", opts->path_length)
                                                : "critical,CA:TRUE";
        const char *usage = opts->usage ? opts->usage : opts->ca ? "keyCertSign,cRLSign" : "digitalSignature";
        add_extension(x509, issuer, NID_basic_constraints, constraints);
        add_extension(x509, issuer, NID_key_usage, text_join("critical,", usage));
        add_extension(x509, issuer, NID_ext_key_usage, opts->purpose);
        add_extension(x509, issuer, NID_name_constraints, opts->constraints);
        add_extension(x509, issuer, NID_subject_key_identifier, "hash");
        add_extension(x509, issuer, NID_authority_key_identifier, "keyid:always");
        add_names(x509, opts);
}

static void sign(X509 *x509, EVP_PKEY *key, const char *digest)
{
        bool none = EVP_PKEY_is_a(key, "ED25519");

        must(X509_sign(x509, key, none ? NULL : EVP_get_digestbyname(digest ? digest : "SHA256")) > 0, "sign");
}

struct cert *cert_new(const struct cert *issuer, const struct cert_opts *opts)
{
        own();
        struct cert *c = OPENSSL_zalloc(sizeof *c);
        must(c, "memory");
        c->next = made.certs;
        made.certs = c;
        c->issuer = issuer;
        c->x509 = X509_new();
        c->key = opts->same ? opts->same->key : key_new(opts->key);
        must(c->x509 && c->key, "key");
        if (opts->same)
                EVP_PKEY_up_ref(c->key);
        X509_NAME *name = X509_get_subject_name(c->x509);
        if (opts->name)
                must(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const unsigned char *)opts->name, -1, -1,
                                                0),
                     opts->name);
        X509 *by = issuer ? issuer->x509 : c->x509;
        must(X509_set_version(c->x509, X509_VERSION_3), "version");
        ASN1_INTEGER_set(X509_get_serialNumber(c->x509), getpid() * 1000L + ++made.serial);
        X509_set_issuer_name(c->x509, X509_get_subject_name(by));
        X509_gmtime_adj(X509_getm_notBefore(c->x509), opts->from ? opts->from : -DAY);
        X509_gmtime_adj(X509_getm_notAfter(c->x509), opts->until ? opts->until : 30 * DAY);
        must(X509_set_pubkey(c->x509, c->key), "public key");
        add_extensions(c->x509, by, opts);
        sign(c->x509, issuer ? issuer->key : c->key, opts->digest);
        return c;
}

const char *cert_pem(const struct cert *c)
{
        BIO *bio = BIO_new(BIO_s_mem());

        must(PEM_write_bio_X509(bio, c->x509), "certificate");
        return text_of_bio(bio);
}

const char *cert_chain_pem(const struct cert *c)
{
        const char *text = cert_pem(c);

        for (c = c->issuer; c && c->issuer; c = c->issuer)
                text = text_join(text, cert_pem(c));
        return text;
}

const char *cert_key_pem(const struct cert *c)
{
        BIO *bio = BIO_new(BIO_s_mem());

        must(PEM_write_bio_PrivateKey(bio, c->key, NULL, NULL, 0, NULL, NULL), "key");
        return text_of_bio(bio);
}

const char *cert_key_encrypted_pem(const struct cert *c, const char *password)
{
        BIO *bio = BIO_new(BIO_s_mem());

        must(PEM_write_bio_PKCS8PrivateKey(bio, c->key, EVP_aes_128_cbc(), password, (int)strlen(password), NULL, NULL),
             "key");
        return text_of_bio(bio);
}

const char *crl_pem(const struct cert *issuer, const struct cert *const *revoked, size_t n, long from, long until)
{
        X509_CRL *crl = X509_CRL_new();
        ASN1_TIME *time = ASN1_TIME_new();
        BIO *bio = BIO_new(BIO_s_mem());

        must(crl && time && bio, "memory");
        X509_CRL_set_version(crl, X509_CRL_VERSION_2);
        X509_CRL_set_issuer_name(crl, X509_get_subject_name(issuer->x509));
        X509_CRL_set1_lastUpdate(crl, X509_gmtime_adj(time, from ? from : -DAY));
        X509_CRL_set1_nextUpdate(crl, X509_gmtime_adj(time, until ? until : 30 * DAY));
        X509_gmtime_adj(time, -DAY / 2);
        for (size_t i = 0; i < n; i++) {
                X509_REVOKED *one = X509_REVOKED_new();
                X509_REVOKED_set_serialNumber(one, X509_get_serialNumber(revoked[i]->x509));
                X509_REVOKED_set_revocationDate(one, time);
                must(X509_CRL_add0_revoked(crl, one), "revoked");
        }
        X509_CRL_sort(crl);
        must(X509_CRL_sign(crl, issuer->key, EVP_sha256()) > 0, "sign");
        must(PEM_write_bio_X509_CRL(bio, crl), "CRL");
        ASN1_TIME_free(time);
        X509_CRL_free(crl);
        return text_of_bio(bio);
}
