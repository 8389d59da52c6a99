/* SPDX-License-Identifier: MIT */
/* What a handshake has agreed on, as OpenSSL knows it. */

#include <string.h>
#include <time.h>

#include <openssl/err.h>
#include <openssl/x509.h>

#include "tls.h"

/* What a peer has sent may be any bytes, and goes into logs. */
static void copy_text(char *to, size_t size, const char *from, size_t n)
{
        n = n < size ? n : size - 1;
        for (size_t i = 0; i < n; i++)
                to[i] = (char)(from[i] >= ' ' && from[i] <= '~' ? from[i] : '?');
        to[n] = '\0';
}

static void copy_name(char *to, size_t size, const X509_NAME *name)
{
        BIO *bio = BIO_new(BIO_s_mem());
        int n = 0;

        if (bio && X509_NAME_print_ex(bio, name, 0, XN_FLAG_RFC2253 & ~(unsigned long)ASN1_STRFLGS_ESC_MSB) >= 0)
                n = BIO_read(bio, to, (int)size - 1);
        to[n > 0 ? n : 0] = '\0';
        BIO_free(bio);
}

static int64_t seconds(const ASN1_TIME *t)
{
        struct tm tm;

        return ASN1_TIME_to_tm(t, &tm) == 1 ? (int64_t)timegm(&tm) : 0;
}

static void about_peer(SSL *ssl, resha_tls_info *info)
{
        const X509 *cert = SSL_get0_peer_certificate(ssl);

        info->verified = cert && SSL_get_verify_result(ssl) == X509_V_OK && SSL_get_verify_mode(ssl) != SSL_VERIFY_NONE;
        if (!cert)
                return;
        copy_name(info->subject, sizeof info->subject, X509_get_subject_name(cert));
        copy_name(info->issuer, sizeof info->issuer, X509_get_issuer_name(cert));
        info->not_before = seconds(X509_get0_notBefore(cert));
        info->not_after = seconds(X509_get0_notAfter(cert));
}

static int fill(void *arg)
{
        void **args = arg;
        struct rs_tls_stream *t = args[0];
        resha_tls_info *info = args[1];
        SSL *ssl = t->engine.ssl;
        const char *cipher = SSL_get_cipher_name(ssl), *host = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
        const unsigned char *alpn;
        unsigned size;

        ERR_clear_error();
        *info = (resha_tls_info){ .version = (enum resha_tls_version)SSL_version(ssl) };
        copy_text(info->cipher, sizeof info->cipher, cipher, strlen(cipher));
        copy_text(info->host, sizeof info->host, host, host ? strlen(host) : 0);
        SSL_get0_alpn_selected(ssl, &alpn, &size);
        copy_text(info->alpn, sizeof info->alpn, (const char *)alpn, size);
        info->resumed = SSL_session_reused(ssl) == 1;
        info->insecure = t->tls->insecure;
        about_peer(ssl, info);
        ERR_clear_error();
        return 0;
}

int resha_tls_about(resha_stream *s, resha_tls_info *ret_info)
{
        struct rs_tls_stream *t = resha_stream_impl(s, &rs_tls_stream_ops);

        if (!t && resha_stream_kind(s) == rs_tls_stream_ops.kind)
                return resha_fail(-EBADF, "the stream is closed");
        if (!t)
                return resha_fail(-EINVAL, "a %s stream is not one of TLS", resha_stream_kind(s));
        return fill((void *[]){ t, ret_info });
}
