/* SPDX-License-Identifier: MIT */
/* The bytes that a peer sends before anything is agreed on: a server's handshake on a stream that brings them in pieces
 * of any size, late or at once, and takes what is answered, or not. No input may crash it, keep it for longer than its
 * time, or be taken for a connection that ends in order. OpenSSL is not what is looked at: that which shows it records
 * and carries its answers is.
 *
 * An input is a byte of flags, and then, as long as there is something: a byte that says how many bytes come next and
 * whether they are late, and those. */

#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <resha/resha.h>
#include <resha/tls.h>

enum { ENDS_BADLY = 1, TAKES_LITTLE = 2, TAKES_NOTHING = 4, CLIENT = 8 };

struct tape {
        const uint8_t *at, *end;
        size_t piece; /* bytes that are left of the one that comes */
        unsigned flags;
};

static void hold(bool ok)
{
        if (!ok)
                abort();
}

static ssize_t tape_read(void *impl, void *buf, size_t size)
{
        struct tape *t = impl;
        size_t left = (size_t)(t->end - t->at);

        if (t->piece == 0 && left > 0) {
                unsigned how = *t->at++;
                int rc = how & 128 ? resha_sleep(RESHA_MS(how & 15)) : 0;
                if (rc < 0)
                        return rc;
                t->piece = (how & 127) + 1;
                left--;
        }
        size_t n = t->piece < left ? t->piece : left;
        n = n < size ? n : size;
        if (n == 0)
                return t->flags & ENDS_BADLY ? -ECONNRESET : 0;
        memcpy(buf, t->at, n);
        t->at += n;
        t->piece -= n;
        return (ssize_t)n;
}

static ssize_t tape_write(void *impl, const void *data, size_t size)
{
        const struct tape *t = impl;

        (void)data;
        if (t->flags & TAKES_NOTHING)
                return resha_sleep_until(RESHA_NEVER);
        return t->flags & TAKES_LITTLE && size > 7 ? 7 : (ssize_t)size;
}

static void tape_close(void *impl)
{
        (void)impl;
}

static const resha_stream_ops tape_ops = {
        .kind = "tape", .read = tape_read, .write = tape_write, .close = tape_close
};

/* ---- a certificate, made once ---- */

static char cert_text[4096], key_text[4096];

static void take_text(BIO *b, char *ret_text, size_t size)
{
        int n = BIO_read(b, ret_text, (int)size - 1);

        hold(n > 0);
        ret_text[n] = '\0';
        BIO_free(b);
}

static void make_certificate(void)
{
        EVP_PKEY *key = EVP_EC_gen("P-256");
        X509 *x = X509_new();
        X509_NAME *name = X509_get_subject_name(x);
        BIO *cert = BIO_new(BIO_s_mem()), *secret = BIO_new(BIO_s_mem());

        hold(key && X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"a", -1, -1, 0));
        X509_set_version(x, 2);
        X509_set_issuer_name(x, name);
        X509_gmtime_adj(X509_getm_notBefore(x), 0);
        X509_gmtime_adj(X509_getm_notAfter(x), 86400L);
        X509_set_pubkey(x, key);
        hold(X509_sign(x, key, EVP_sha256()) > 0);
        hold(PEM_write_bio_X509(cert, x) && PEM_write_bio_PrivateKey(secret, key, NULL, NULL, 0, NULL, NULL));
        take_text(cert, cert_text, sizeof cert_text);
        take_text(secret, key_text, sizeof key_text);
        X509_free(x);
        EVP_PKEY_free(key);
}

/* ---- the handshake ---- */

static resha_tls *configured(bool client)
{
        static resha_tls *made[2];
        resha_tls_opts o = { .cert_pem = cert_text, .key_pem = key_text, .handshake = RESHA_S(2) };

        if (!cert_text[0])
                make_certificate();
        if (client)
                o = (resha_tls_opts){ .trust_pem = cert_text, .handshake = RESHA_S(2) };
        if (!made[client])
                hold((client ? resha_tls_client(&o, &made[1]) : resha_tls_server(&o, &made[0])) == 0);
        return made[client];
}

static int shake(void *arg)
{
        struct tape *t = arg;
        bool client = t->flags & CLIENT;
        resha_tls *tls = configured(client);
        resha_stream *under RESHA_CLEANUP(resha_stream_closep) = NULL;
        resha_stream *s RESHA_CLEANUP(resha_stream_closep) = NULL;
        resha_instant start = resha_now();

        hold(resha_stream_new(&tape_ops, t, &under) == 0);
        int rc = resha_tls_start(under, tls, &(resha_tls_start_opts){ .host = client ? "a" : NULL }, &s);
        hold(rc < 0); /* no input shakes hands: that takes an answer to our random numbers */
        hold(resha_between(start, resha_now()).ns <= RESHA_MS(2100).ns);
        hold(resha_error_of(rc)->text[0] != '\0');
        return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        const resha_run_opts opts = { .backend = "sim:0", .keep_sigint = true };

        if (size < 1)
                return 0;
        struct tape t = { .at = data + 1, .end = data + size, .flags = data[0] };
        hold(resha_run(shake, &t, &opts) == 0);
        return 0;
}
