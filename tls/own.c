/* SPDX-License-Identifier: MIT */
/* Who we are: a chain of certificates and the key of the first, into an SSL_CTX. What does not fit together is found
 * here, and not by the first peer. Passwords are not asked for: a server that starts at night has nobody to ask. */

#include <stdio.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "config.h"

enum { CHAIN_MOST = 32 };

/* OpenSSL wants a password: it gets none, and we know why it has failed. */
static int refuse_password(char *buf, int size, int writing, void *arg)
{
        bool *asked = arg;

        (void)buf, (void)size, (void)writing;
        *asked = true;
        return -1;
}

static int read_key(const struct rs_tls_text *t, EVP_PKEY **ret_key)
{
        BIO *bio = BIO_new_mem_buf(t->bytes, (int)t->size);
        bool asked = false;

        if (!bio)
                return resha_fail(-ENOMEM, "%s: no memory", t->label);
        ERR_clear_error();
        EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, refuse_password, &asked);
        unsigned long e = ERR_peek_last_error();
        bool none = ERR_GET_LIB(e) == ERR_LIB_PEM && ERR_GET_REASON(e) == PEM_R_NO_START_LINE;
        int rc = 0;
        BIO_free(bio);
        if (key)
                *ret_key = key;
        else if (asked)
                rc = resha_fail(RESHA_TLS_ECERT,
                                "%s: the key is encrypted: give it without a password (openssl pkey -in ... -out ...)",
                                t->label);
        else if (none || !memmem(t->bytes, t->size, "PRIVATE KEY-----", 16))
                rc = resha_fail(RESHA_TLS_ECERT, "%s: no private key in it (-----BEGIN PRIVATE KEY-----)", t->label);
        else
                rc = rs_tls_fail(RESHA_TLS_ECERT, t->label);
        ERR_clear_error();
        return rc;
}

static int read_chain(const struct rs_tls_text *t, STACK_OF(X509) * chain)
{
        BIO *bio = BIO_new_mem_buf(t->bytes, (int)t->size);
        X509 *cert = NULL;
        int rc = bio ? 1 : resha_fail(-ENOMEM, "%s: no memory", t->label);

        while (rc > 0) {
                rc = rs_tls_next_cert(bio, t, (unsigned)sk_X509_num(chain), &cert);
                if (rc > 0 && (sk_X509_num(chain) >= CHAIN_MOST || sk_X509_push(chain, cert) <= 0)) {
                        X509_free(cert);
                        rc = resha_fail(RESHA_TLS_ECERT, "%s: more than %d certificates", t->label, CHAIN_MOST);
                }
        }
        BIO_free(bio);
        if (rc == 0 && sk_X509_num(chain) == 0)
                return resha_fail(RESHA_TLS_ECERT, "%s: no certificate in it (-----BEGIN CERTIFICATE-----)", t->label);
        return rc;
}

/* The first certificate is the key's, or somebody else's: whose? */
static int check_pair(const struct rs_tls_text *t, const struct rs_tls_text *k, STACK_OF(X509) * chain, EVP_PKEY *key)
{
        char name[RS_TLS_NAME_TEXT];

        for (int i = 0; i < sk_X509_num(chain); i++) {
                bool fits = X509_check_private_key(sk_X509_value(chain, i), key) == 1;
                ERR_clear_error();
                if (fits && i == 0)
                        return 0;
                if (fits)
                        return resha_fail(RESHA_TLS_ECERT, "%s: the certificate of the key is number %d: put it first",
                                          t->label, i + 1);
        }
        rs_tls_name_print(X509_get_subject_name(sk_X509_value(chain, 0)), name, sizeof name);
        return resha_fail(RESHA_TLS_ECERT, "%s: is not the key of the certificate in %s (%s)", k->label, t->label,
                          name);
}

static int use(SSL_CTX *ctx, const struct rs_tls_text *t, STACK_OF(X509) * chain, EVP_PKEY *key)
{
        bool good = SSL_CTX_use_certificate(ctx, sk_X509_value(chain, 0)) == 1;

        good = good && SSL_CTX_use_PrivateKey(ctx, key) == 1;
        for (int i = 1; good && i < sk_X509_num(chain); i++)
                good = SSL_CTX_add1_chain_cert(ctx, sk_X509_value(chain, i)) == 1;
        return good ? 0 : rs_tls_fail(RESHA_TLS_ECERT, t->label);
}

static int load(SSL_CTX *ctx, const struct rs_tls_text *t, const struct rs_tls_text *k)
{
        STACK_OF(X509) *chain = sk_X509_new_null();
        EVP_PKEY *key = NULL;
        int rc = chain ? read_chain(t, chain) : resha_fail(-ENOMEM, "%s: no memory", t->label);

        if (rc == 0)
                rc = read_key(k, &key);
        if (rc == 0)
                rc = check_pair(t, k, chain, key);
        if (rc == 0)
                rc = use(ctx, t, chain, key);
        EVP_PKEY_free(key);
        sk_X509_pop_free(chain, X509_free);
        return rc;
}

int rs_tls_own_load(SSL_CTX *ctx, const resha_tls_name *n, EVP_MD_CTX *digest)
{
        struct rs_tls_text t, k;
        bool apart = n->key_file || n->key_pem;

        if (!n->cert_file && !n->cert_pem)
                return 0;
        int rc = rs_tls_text_open(n->cert_file ? "cert_file" : "cert_pem", n->cert_file, n->cert_pem, &t);
        if (rc == 0 && apart) {
                rc = rs_tls_text_open(n->key_file ? "key_file" : "key_pem", n->key_file, n->key_pem, &k);
                if (rc < 0)
                        rs_tls_text_close(&t);
        }
        if (rc < 0)
                return rc;
        rc = load(ctx, &t, apart ? &k : &t);
        if (digest)
                EVP_DigestUpdate(digest, t.bytes, t.size);
        rs_tls_text_close(&t);
        if (apart)
                rs_tls_text_close(&k);
        return rc;
}
