/* SPDX-License-Identifier: MIT */
/* What OpenSSL says, as codes and records of ours. Its queue holds the chain of what went wrong, the root of it first;
 * the last entry is what the call says of itself. */

#include <errno.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/sslerr.h>
#include <openssl/x509_vfy.h>

#include "tls.h"

static const char *reason_of(unsigned long e)
{
        const char *text = e ? ERR_reason_error_string(e) : NULL;

        if (e && ERR_SYSTEM_ERROR(e))
                return resha_strerror(-ERR_GET_REASON(e));
        return text ? text : "OpenSSL does not say why";
}

int rs_tls_fail(int code, const char *what)
{
        unsigned long first = ERR_peek_error();

        if (first && ERR_GET_REASON(first) == ERR_R_MALLOC_FAILURE)
                code = -ENOMEM;
        resha_fail(code, "%s: %s", what, reason_of(first));
        ERR_clear_error();
        return code;
}

static bool is_alert(unsigned long e)
{
        return ERR_GET_LIB(e) == ERR_LIB_SSL && ERR_GET_REASON(e) >= SSL_AD_REASON_OFFSET;
}

static bool is_memory(void)
{
        unsigned long e = ERR_peek_error(), last = ERR_peek_last_error();

        return (e && ERR_GET_REASON(e) == ERR_R_MALLOC_FAILURE) ||
               (last && ERR_GET_REASON(last) == ERR_R_MALLOC_FAILURE);
}

int rs_tls_failed(SSL *ssl, bool handshake, const char *host)
{
        unsigned long e = ERR_peek_error();
        int code = handshake ? RESHA_TLS_EHANDSHAKE : RESHA_TLS_EPROTOCOL;
        const char *peer = host ? host : SSL_is_server(ssl) ? "the client" : "the server";

        if (is_memory())
                code = resha_fail(-ENOMEM, "no memory for TLS with %s", peer);
        else if (ERR_GET_LIB(e) == ERR_LIB_SSL && ERR_GET_REASON(e) == SSL_R_CERTIFICATE_VERIFY_FAILED)
                code = resha_fail(RESHA_TLS_EVERIFY, "the certificate of %s is refused: %s", peer,
                                  X509_verify_cert_error_string(SSL_get_verify_result(ssl)));
        else if (is_alert(e))
                resha_fail(code, "%s breaks off: %s", peer,
                           SSL_alert_desc_string_long(ERR_GET_REASON(e) - SSL_AD_REASON_OFFSET));
        else
                resha_fail(code, "TLS with %s: %s", peer, reason_of(e));
        ERR_clear_error();
        return code;
}
