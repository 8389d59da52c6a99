/* SPDX-License-Identifier: MIT */
/* Whom to trust: certificates of authorities, and lists of what they have revoked, as one X509_STORE.
 *
 * All is read when the configuration is made. OpenSSL's own way, to look into a folder of hashed names when a peer is
 * being verified, would make the loop wait for the disk in the middle of a handshake; and what it finds would change
 * without a reload.
 *
 * The system's: $SSL_CERT_FILE and $SSL_CERT_DIR, where one of them is set; else the one file with all of them that
 * distributions have, or their folder. Files of the options must be without fault; in a folder, and in what the system
 * has, what cannot be read is left out: one bad file of hundreds must not shut a program off from the world.
 *
 * Each certificate that is trusted ends a chain, whether it is a root or not. */

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "config.h"

#include <resha/alloc.h>

/* What is being made. */
struct trust {
        X509_STORE *store;
        EVP_MD_CTX *digest;
        bool lenient; /* what cannot be read is left out */
        unsigned count;
        const struct rs_tls_text *known; /* what has been read, and may come once more, in pieces too; or NULL */
};

static const char *const system_files[] = {
        "/etc/ssl/certs/ca-certificates.crt",                /* Debian, Ubuntu, Arch, Gentoo, Alpine, Nix */
        "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", /* Fedora, RHEL */
        "/etc/pki/tls/certs/ca-bundle.crt",                  /* older ones of these */
        "/etc/ssl/ca-bundle.pem",                            /* openSUSE */
        "/etc/ssl/cert.pem",                                 /* Alpine, Void */
        "/var/lib/ca-certificates/ca-bundle.pem",            /* openSUSE */
        NULL,
};
static const char *const system_dirs[] = { "/etc/ssl/certs", "/etc/pki/tls/certs", NULL };

static int add_text(struct trust *trust, const struct rs_tls_text *t)
{
        BIO *bio = BIO_new_mem_buf(t->bytes, (int)t->size);
        unsigned count = 0;
        X509 *cert = NULL;
        int rc = bio ? 0 : resha_fail(-ENOMEM, "%s: no memory", t->label);

        while (bio && (rc = rs_tls_next_cert(bio, t, count, &cert)) != 0) {
                if (rc == RESHA_TLS_ECERT && trust->lenient) {
                        count++;
                        continue;
                }
                if (rc > 0 && X509_STORE_add_cert(trust->store, cert) != 1)
                        rc = rs_tls_fail(RESHA_TLS_ECERT, t->label);
                X509_free(cert);
                cert = NULL;
                if (rc < 0)
                        break;
                count++;
                trust->count++;
        }
        BIO_free(bio);
        EVP_DigestUpdate(trust->digest, t->bytes, t->size);
        return rc;
}

static int none_in(const struct rs_tls_text *t)
{
        bool der = t->size > 1 && (unsigned char)t->bytes[0] == 0x30 && (unsigned char)t->bytes[1] >= 0x80;

        if (der)
                return resha_fail(RESHA_TLS_ECERT, "%s: is DER, not PEM: openssl x509 -inform der -in ... -out ...",
                                  t->label);
        return resha_fail(RESHA_TLS_ECERT, "%s: no certificate in it (-----BEGIN CERTIFICATE-----)", t->label);
}

/* Parsing is what takes the time, and a distribution's folder has all that is in its bundle. */
static bool is_known(const struct trust *trust, const struct rs_tls_text *t)
{
        return trust->known && t->size && memmem(trust->known->bytes, trust->known->size, t->bytes, t->size);
}

static int add_opened(struct trust *trust, const struct rs_tls_text *t)
{
        unsigned before = trust->count;
        int rc = 0;

        if (is_known(trust, t))
                trust->count++;
        else
                rc = add_text(trust, t);
        return rc == 0 && trust->count == before ? none_in(t) : rc;
}

static int add(struct trust *trust, const char *option, const char *path, const char *text)
{
        struct rs_tls_text t;
        int rc = rs_tls_text_open(option, path, text, &t);

        if (rc < 0)
                return rc;
        rc = add_opened(trust, &t);
        rs_tls_text_close(&t);
        return rc;
}

/* ---- folders ---- */

/* Whether it is a link to another name in its folder: hashed names are, and the file is read under its own. */
static bool is_alias(const char *path)
{
        char target[PATH_MAX];
        ssize_t n = readlink(path, target, sizeof target);

        return n > 0 && (size_t)n < sizeof target && !memchr(target, '/', (size_t)n);
}

static int add_dir(struct trust *trust, const char *option, const char *path)
{
        DIR *d = opendir(path);
        char name[PATH_MAX];
        unsigned before = trust->count;
        bool lenient = trust->lenient;
        int rc = 0;

        if (!d)
                return resha_fail(-errno, "%s \"%.100s\": %s", option, path, resha_strerror(-errno));
        trust->lenient = true;
        for (struct dirent *e; rc != -ENOMEM && (e = readdir(d));) {
                int n = snprintf(name, sizeof name, "%s/%s", path, e->d_name);
                if (e->d_name[0] == '.' || n < 0 || (size_t)n >= sizeof name || is_alias(name))
                        continue;
                rc = add(trust, option, name, NULL);
        }
        closedir(d);
        trust->lenient = lenient;
        if (rc == -ENOMEM)
                return rc;
        if (trust->count == before)
                return resha_fail(RESHA_TLS_ECERT, "%s \"%.100s\": no certificate in any of its files", option, path);
        return 0;
}

/* "a:b:c" */
static int add_dirs(struct trust *trust, const char *option, const char *paths)
{
        char path[PATH_MAX];
        int rc = 0;

        for (const char *at = paths; rc == 0 && *at;) {
                size_t n = strcspn(at, ":");
                snprintf(path, sizeof path, "%.*s", (int)n, at);
                rc = n ? add_dir(trust, option, path) : 0;
                at += n + (at[n] == ':');
        }
        return rc;
}

/* ---- the system's ---- */

static int add_environment(struct trust *trust, const char *file, const char *dirs)
{
        struct rs_tls_text t = { 0 };
        int rc = file ? rs_tls_text_open("$SSL_CERT_FILE", file, NULL, &t) : 0;

        if (rc == 0 && file)
                rc = add_opened(trust, &t);
        trust->known = file ? &t : NULL;
        if (rc == 0 && dirs)
                rc = add_dirs(trust, "$SSL_CERT_DIR", dirs);
        rs_tls_text_close(&t);
        return rc;
}

int rs_tls_trust_system(const struct rs_tls_places *places, X509_STORE *store, EVP_MD_CTX *digest)
{
        const char *file = secure_getenv("SSL_CERT_FILE"), *dirs = secure_getenv("SSL_CERT_DIR");
        struct trust trust = { .store = store, .digest = digest, .lenient = true };

        file = file && *file ? file : NULL;
        dirs = dirs && *dirs ? dirs : NULL;
        if (file || dirs)
                return add_environment(&trust, file, dirs);
        for (size_t i = 0; places->files[i]; i++) {
                int rc = add(&trust, "the system's", places->files[i], NULL);
                if (rc == 0 || rc == -ENOMEM)
                        return rc;
        }
        for (size_t i = 0; places->dirs[i]; i++) {
                int rc = add_dir(&trust, "the system's", places->dirs[i]);
                if (rc == 0 || rc == -ENOMEM)
                        return rc;
        }
        return resha_fail(RESHA_TLS_ECERT, "no certificates of authorities on this system: install its package "
                                           "\"ca-certificates\", or name a file in trust_file or $SSL_CERT_FILE");
}

/* ---- lists of what is revoked ---- */

static int add_lists(X509_STORE *store, const struct rs_tls_text *t, EVP_MD_CTX *digest)
{
        BIO *bio = BIO_new_mem_buf(t->bytes, (int)t->size);
        unsigned count = 0;
        int rc = bio ? 0 : resha_fail(-ENOMEM, "%s: no memory", t->label);

        while (rc == 0) {
                ERR_clear_error();
                X509_CRL *crl = PEM_read_bio_X509_CRL(bio, NULL, NULL, NULL);
                unsigned long e = ERR_peek_last_error();
                if (!crl && ERR_GET_LIB(e) == ERR_LIB_PEM && ERR_GET_REASON(e) == PEM_R_NO_START_LINE)
                        break;
                if (!crl || X509_STORE_add_crl(store, crl) != 1)
                        rc = rs_tls_fail(RESHA_TLS_ECERT, t->label);
                X509_CRL_free(crl);
                count++;
        }
        ERR_clear_error();
        BIO_free(bio);
        if (rc == 0 && !count)
                rc = resha_fail(RESHA_TLS_ECERT, "%s: no revocation list in it (-----BEGIN X509 CRL-----)", t->label);
        EVP_DigestUpdate(digest, t->bytes, t->size);
        return rc;
}

static int load_lists(const char *path, X509_STORE *store, EVP_MD_CTX *digest)
{
        struct rs_tls_text t;
        int rc = rs_tls_text_open("crl_file", path, NULL, &t);

        if (rc < 0)
                return rc;
        rc = add_lists(store, &t, digest);
        rs_tls_text_close(&t);
        X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
        return rc;
}

/* ---- all of it ---- */

static int load(const resha_tls_opts *o, bool server, X509_STORE *store, EVP_MD_CTX *digest)
{
        static const struct rs_tls_places places = { system_files, system_dirs };
        struct trust trust = { .store = store, .digest = digest };
        bool named = o->trust_file || o->trust_dir || o->trust_pem;
        int rc = 0;

        X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN | X509_V_FLAG_TRUSTED_FIRST);
        if (o->trust_file)
                rc = add(&trust, "trust_file", o->trust_file, NULL);
        if (rc == 0 && o->trust_dir)
                rc = add_dir(&trust, "trust_dir", o->trust_dir);
        if (rc == 0 && o->trust_pem)
                rc = add(&trust, "trust_pem", NULL, o->trust_pem);
        if (rc == 0 && !named && !server && !o->insecure)
                rc = rs_tls_trust_system(&places, store, digest);
        if (rc == 0 && o->crl_file)
                rc = load_lists(o->crl_file, store, digest);
        return rc;
}

int rs_tls_trust_load(const resha_tls_opts *o, bool server, X509_STORE **ret_store, EVP_MD_CTX *digest)
{
        X509_STORE *store = X509_STORE_new();
        int rc = store ? load(o, server, store, digest) : resha_fail(-ENOMEM, "no memory for those to be trusted");

        ERR_clear_error();
        if (rc < 0)
                X509_STORE_free(store);
        else
                *ret_store = store;
        return rc;
}
