/* SPDX-License-Identifier: MIT */
/* OpenSSL between two buffers in memory shakes hands, and tells its secrets through its key log; with these the records
 * are made here (RFC 8446 section 5 and 7, RFC 5288). */

#include "evil.h"

#include <string.h>

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>

#include "test.h"

enum { TAG = 16, NUMBER = 8, RECORD = 16384 };

/* ---- keys ---- */

static void derive(const char *kdf_name, OSSL_PARAM *params, unsigned char *ret_out, size_t size)
{
        EVP_KDF *kdf = EVP_KDF_fetch(NULL, kdf_name, NULL);
        EVP_KDF_CTX *c = EVP_KDF_CTX_new(kdf);

        ASSERT_EQ(EVP_KDF_derive(c, ret_out, size, params), 1);
        EVP_KDF_CTX_free(c);
        EVP_KDF_free(kdf);
}

static OSSL_PARAM text_of(const char *key, const char *text)
{
        return OSSL_PARAM_construct_utf8_string(key, (char *)(uintptr_t)text, 0);
}

static OSSL_PARAM bytes_of(const char *key, const void *data, size_t size)
{
        return OSSL_PARAM_construct_octet_string(key, (void *)(uintptr_t)data, size);
}

/* HKDF-Expand-Label of TLS 1.3. */
static void expand(const unsigned char *secret, const char *label, unsigned char *ret_out, size_t size)
{
        int mode = EVP_KDF_HKDF_MODE_EXPAND_ONLY;
        OSSL_PARAM params[] = {
                OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode),
                text_of(OSSL_KDF_PARAM_DIGEST, "SHA256"),
                bytes_of(OSSL_KDF_PARAM_KEY, secret, 32),
                bytes_of(OSSL_KDF_PARAM_PREFIX, "tls13 ", 6),
                bytes_of(OSSL_KDF_PARAM_LABEL, label, strlen(label)),
                OSSL_PARAM_construct_end(),
        };

        derive("TLS13-KDF", params, ret_out, size);
}

static void keys_of_secret(struct evil *e)
{
        expand(e->secret, "key", e->key, sizeof e->key);
        expand(e->secret, "iv", e->iv, sizeof e->iv);
        e->number = 0;
}

void evil_next_key(struct evil *e)
{
        unsigned char next[32];

        expand(e->secret, "traffic upd", next, sizeof next);
        memcpy(e->secret, next, sizeof next);
        keys_of_secret(e);
}

/* TLS 1.2: client_write_key, server_write_key, client_write_IV, server_write_IV. */
static void keys_of_master(struct evil *e)
{
        unsigned char seed[13 + 64], block[2 * 16 + 2 * 4];
        OSSL_PARAM params[] = {
                text_of(OSSL_KDF_PARAM_DIGEST, "SHA256"),
                bytes_of(OSSL_KDF_PARAM_SECRET, e->master, sizeof e->master),
                bytes_of(OSSL_KDF_PARAM_SEED, seed, sizeof seed),
                OSSL_PARAM_construct_end(),
        };

        memcpy(seed, "key expansion", 13);
        SSL_get_server_random(e->ssl, seed + 13, 32);
        SSL_get_client_random(e->ssl, seed + 13 + 32, 32);
        derive("TLS1-PRF", params, block, sizeof block);
        memcpy(e->key, block + (e->server ? 16 : 0), 16);
        memcpy(e->iv, block + 32 + (e->server ? 4 : 0), 4);
        e->number = 1; /* Finished was the first one */
}

static void take_hex(const char *text, unsigned char *ret_bytes, size_t size)
{
        for (size_t i = 0; i < size; i++) {
                unsigned byte = 0;
                ASSERT_EQ(sscanf(text + 2 * i, "%2x", &byte), 1);
                ret_bytes[i] = (unsigned char)byte;
        }
}

/* "LABEL client-random secret" */
static void secret_told(const SSL *ssl, const char *line)
{
        struct evil *e = SSL_get_app_data(ssl);
        const char *label = e->server ? "SERVER_TRAFFIC_SECRET_0 " : "CLIENT_TRAFFIC_SECRET_0 ";
        const char *secret = strrchr(line, ' ') + 1;

        if (strncmp(line, label, strlen(label)) == 0)
                take_hex(secret, e->secret, sizeof e->secret);
        if (strncmp(line, "CLIENT_RANDOM ", 14) == 0)
                take_hex(secret, e->master, sizeof e->master);
}

/* ---- the handshake ---- */

static void set_up(struct evil *e)
{
        int version = e->old ? TLS1_2_VERSION : TLS1_3_VERSION;

        e->ctx = SSL_CTX_new(e->server ? TLS_server_method() : TLS_client_method());
        SSL_CTX_set_min_proto_version(e->ctx, version);
        SSL_CTX_set_max_proto_version(e->ctx, version);
        ASSERT_EQ(SSL_CTX_set_ciphersuites(e->ctx, "TLS_AES_128_GCM_SHA256"), 1);
        ASSERT_EQ(SSL_CTX_set_cipher_list(e->ctx, "ECDHE-ECDSA-AES128-GCM-SHA256"), 1);
        SSL_CTX_set_num_tickets(e->ctx, 0); /* they would be records */
        SSL_CTX_set_options(e->ctx, SSL_OP_NO_TICKET);
        SSL_CTX_set_keylog_callback(e->ctx, secret_told);
        if (e->server) {
                ASSERT_EQ(SSL_CTX_use_certificate(e->ctx, e->cert->x509), 1);
                ASSERT_EQ(SSL_CTX_use_PrivateKey(e->ctx, e->cert->key), 1);
                for (unsigned i = 0; i < e->chain; i++)
                        ASSERT_EQ(SSL_CTX_add1_chain_cert(e->ctx, e->cert->x509), 1);
        }
        e->ssl = SSL_new(e->ctx);
        SSL_set_bio(e->ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
        SSL_set_app_data(e->ssl, e);
        if (e->server)
                SSL_set_accept_state(e->ssl);
        else
                SSL_set_connect_state(e->ssl);
}

static int send_what_goes(struct evil *e)
{
        char buf[4096];
        int n, rc = 0;

        while (rc == 0 && (n = BIO_read(SSL_get_wbio(e->ssl), buf, sizeof buf)) > 0)
                rc = resha_write_all(e->stream, buf, (size_t)n, NULL);
        return rc;
}

int evil_start(struct evil *e)
{
        char buf[4096];
        int done;

        set_up(e);
        while ((done = SSL_do_handshake(e->ssl)) != 1) {
                int wants = SSL_get_error(e->ssl, done), rc = send_what_goes(e);
                if (rc < 0)
                        return rc;
                if (wants != SSL_ERROR_WANT_READ)
                        return -EPROTO;
                ssize_t n = resha_read(e->stream, buf, sizeof buf);
                if (n <= 0)
                        return n < 0 ? (int)n : -EPROTO;
                BIO_write(SSL_get_rbio(e->ssl), buf, (int)n);
        }
        if (e->old)
                keys_of_master(e);
        else
                keys_of_secret(e);
        return send_what_goes(e);
}

/* ---- records ---- */

static void put_number(unsigned char *at, uint64_t number)
{
        for (int i = 0; i < NUMBER; i++)
                at[i] = (unsigned char)(number >> (8 * (7 - i)));
}

static void seal(struct evil *e, const unsigned char *nonce, const unsigned char *extra, size_t extra_size,
                 const unsigned char *data, size_t size, unsigned char *ret_out)
{
        EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
        int n;

        ASSERT_EQ(EVP_EncryptInit_ex(c, EVP_aes_128_gcm(), NULL, e->key, nonce), 1);
        ASSERT_EQ(EVP_EncryptUpdate(c, NULL, &n, extra, (int)extra_size), 1);
        ASSERT_EQ(EVP_EncryptUpdate(c, ret_out, &n, data, (int)size), 1);
        ASSERT_EQ(EVP_EncryptFinal_ex(c, ret_out + n, &n), 1);
        ASSERT_EQ(EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_GET_TAG, TAG, ret_out + size), 1);
        EVP_CIPHER_CTX_free(c);
}

static size_t make_record(struct evil *e, int type, const void *data, size_t size, unsigned char *out)
{
        unsigned char nonce[12], extra[13], text[RECORD + 1];
        size_t inner = size + (e->old ? 0 : 1), body = inner + TAG + (e->old ? NUMBER : 0);

        memcpy(out,
               (unsigned char[]){ (unsigned char)(e->old ? type : EVIL_DATA), 3, 3, (unsigned char)(body >> 8),
                                  (unsigned char)body },
               5);
        if (size > 0)
                memcpy(text, data, size);
        text[size] = (unsigned char)type;
        memcpy(nonce, e->iv, sizeof nonce);
        if (e->old) {
                put_number(out + 5, e->number);
                put_number(nonce + 4, e->number);
                put_number(extra, e->number);
                memcpy(extra + NUMBER,
                       (unsigned char[]){ (unsigned char)type, 3, 3, (unsigned char)(size >> 8), (unsigned char)size },
                       5);
                seal(e, nonce, extra, sizeof extra, text, inner, out + 5 + NUMBER);
        } else {
                unsigned char number[NUMBER];
                put_number(number, e->number);
                for (int i = 0; i < NUMBER; i++)
                        nonce[4 + i] ^= number[i];
                seal(e, nonce, out, 5, text, inner, out + 5);
        }
        e->number++;
        return 5 + body;
}

int evil_send(struct evil *e, int type, const void *data, size_t size)
{
        unsigned char *out = resha_malloc(RECORD + 64);
        int rc;

        ASSERT_TRUE(out != NULL && size <= RECORD);
        rc = resha_write_all(e->stream, out, make_record(e, type, data, size, out), NULL);
        resha_free(out);
        return rc;
}

void evil_end(struct evil *e)
{
        SSL_free(e->ssl);
        SSL_CTX_free(e->ctx);
}
