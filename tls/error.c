/* SPDX-License-Identifier: MIT */
/* What OpenSSL says, as codes and records of ours. Its queue holds the chain of what went wrong, the root of it first;
 * the last entry is what the call says of itself. What one of our callbacks has noted about the connection is more
 * exact, and comes first; then what the peer says by its alert; then what OpenSSL has found.
 *
 * Texts say who the peer is, what is wrong, and what may be done about it; nothing that was sent is in them. */

#include <stdio.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/sslerr.h>
#include <openssl/x509_vfy.h>

#include "config.h"

static const char *reason_of(unsigned long e)
{
        const char *text = e ? ERR_reason_error_string(e) : NULL;

        if (e && ERR_SYSTEM_ERROR(e))
                return resha_strerror(-ERR_GET_REASON(e));
        return text ? text : "OpenSSL does not say why";
}

/* Takes all entries: of those of a failed allocation not all are the first or the last. */
static bool was_memory(void)
{
        bool memory = false;

        for (unsigned long e; (e = ERR_get_error());)
                memory = memory || ERR_GET_REASON(e) == ERR_R_MALLOC_FAILURE;
        return memory;
}

int rs_tls_fail(int code, const char *what)
{
        unsigned long first = ERR_peek_error();

        if (!first || was_memory()) /* some that find no memory say nothing at all */
                return resha_fail(-ENOMEM, "%s: no memory", what);
        ERR_clear_error();
        return resha_fail(code, "%s: %s", what, reason_of(first));
}

/* ---- the peer's alerts ---- */

/* What an alert means for who gets it; NULL: its name says it. */
static const char *meaning(int alert)
{
        switch (alert) {
        case SSL_AD_UNEXPECTED_MESSAGE: return "what we sent does not belong there";
        case SSL_AD_BAD_RECORD_MAC: return "what we sent was changed on its way";
        case SSL_AD_HANDSHAKE_FAILURE: return "nothing in common: ciphers, or it wants a certificate of ours";
        case SSL_AD_BAD_CERTIFICATE: return "our certificate is broken, or its name is not the one it wants";
        case SSL_AD_UNSUPPORTED_CERTIFICATE: return "our certificate is not for this purpose, or of an unknown kind";
        case SSL_AD_CERTIFICATE_REVOKED: return "our certificate has been revoked";
        case SSL_AD_CERTIFICATE_EXPIRED: return "our certificate has expired, or is not valid yet";
        case SSL_AD_CERTIFICATE_UNKNOWN: return "it does not accept our certificate";
        case SSL_AD_UNKNOWN_CA: return "it does not trust our certificate";
        case SSL_AD_ACCESS_DENIED: return "our certificate is good, but we may not come in";
        case SSL_AD_DECRYPT_ERROR: return "a signature or check of ours did not verify there";
        case SSL_AD_PROTOCOL_VERSION: return "no version of TLS in common";
        case SSL_AD_INSUFFICIENT_SECURITY: return "it wants stronger ciphers than ours";
        case SSL_AD_INTERNAL_ERROR: return "something is wrong over there";
        case SSL_AD_INAPPROPRIATE_FALLBACK: return "somebody has made us use an older version than both have";
        case SSL_AD_USER_CANCELLED: return "it has given up";
        case SSL_AD_UNRECOGNIZED_NAME: return "it does not know the name that we asked for";
        case SSL_AD_CERTIFICATE_REQUIRED: return "it wants a certificate of ours";
        case SSL_AD_NO_APPLICATION_PROTOCOL: return "it speaks none of the protocols that we offer (ALPN)";
        default: return NULL;
        }
}

/* Whether it is about the handshake, though in TLS 1.3 what a server says of its client comes after it. */
static bool is_of_handshake(int alert)
{
        return (alert >= SSL_AD_HANDSHAKE_FAILURE && alert <= SSL_AD_CERTIFICATE_UNKNOWN) ||
               alert == SSL_AD_UNKNOWN_CA || alert == SSL_AD_ACCESS_DENIED || alert == SSL_AD_CERTIFICATE_REQUIRED;
}

static int fail_alert(int code, int alert, const char *peer)
{
        const char *text = meaning(alert);

        if (is_of_handshake(alert))
                code = RESHA_TLS_EHANDSHAKE;
        return resha_fail(code, "TLS with %s: the peer says: %s%s%s", peer, SSL_alert_desc_string_long(alert),
                          text ? ": " : "", text ? text : "");
}

/* ---- what OpenSSL has found ---- */

/* Reasons that are clearer in words of ours; NULL: OpenSSL's do. */
static const char *clearer(int reason, bool server)
{
        switch (reason) {
        case SSL_R_WRONG_VERSION_NUMBER:
        case SSL_R_UNKNOWN_PROTOCOL:
                return server ? "what came is not TLS" : "what came is not TLS: is that the right port?";
        case SSL_R_HTTP_REQUEST: return "what came is plain HTTP";
        case SSL_R_HTTPS_PROXY_REQUEST: return "what came is a request to a plain HTTP proxy";
        case SSL_R_UNSUPPORTED_PROTOCOL:
        case SSL_R_VERSION_TOO_LOW:
        case SSL_R_NO_PROTOCOLS_AVAILABLE: return "no version of TLS in common: the peer's are not allowed here";
        case SSL_R_NO_SHARED_CIPHER:
        case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM: return "no cipher or kind of key in common";
        case SSL_R_DECRYPTION_FAILED_OR_BAD_RECORD_MAC: return "a record was changed on its way";
        case SSL_R_RECORD_TOO_SMALL: return "too many empty records";
        case SSL_R_INAPPROPRIATE_FALLBACK: return "somebody has made the peer use an older version than both have";
        case SSL_R_DH_KEY_TOO_SMALL: return "the peer's DH key is too small";
        case SSL_R_UNSAFE_LEGACY_RENEGOTIATION_DISABLED: return "the peer is too old: it knows no secure renegotiation";
        default: return NULL;
        }
}

static int fail_reason(int code, unsigned long e, const char *peer, bool server)
{
        int reason = ERR_GET_LIB(e) == ERR_LIB_SSL ? ERR_GET_REASON(e) : 0;
        const char *text = clearer(reason, server);

        if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE)
                return resha_fail(RESHA_TLS_EVERIFY, "%s has shown no certificate, and must have one", peer);
        return resha_fail(code, "TLS with %s: %s", peer, text ? text : reason_of(e));
}

static bool is_alert(unsigned long e)
{
        return ERR_GET_LIB(e) == ERR_LIB_SSL && ERR_GET_REASON(e) >= SSL_AD_REASON_OFFSET;
}

int rs_tls_failed(SSL *ssl, bool handshake, const char *host)
{
        unsigned long e = ERR_peek_error();
        const struct rs_tls_note *note = rs_tls_note_of(ssl);
        int code = handshake ? RESHA_TLS_EHANDSHAKE : RESHA_TLS_EPROTOCOL;
        bool server = SSL_is_server(ssl);
        char peer[80];

        if (host)
                snprintf(peer, sizeof peer, "\"%.64s\"", host);
        else
                snprintf(peer, sizeof peer, "%s", server ? "the client" : "the server");
        if (was_memory())
                code = resha_fail(-ENOMEM, "no memory for TLS with %s", peer);
        else if (note && note->code == RESHA_TLS_EVERIFY)
                code = resha_fail(note->code, "certificate of %s: %s", peer, note->words);
        else if (note && note->code)
                code = resha_fail(note->code, "TLS with %s: %s", peer, note->words);
        else if (ERR_GET_LIB(e) == ERR_LIB_SSL && ERR_GET_REASON(e) == SSL_R_CERTIFICATE_VERIFY_FAILED)
                code = resha_fail(RESHA_TLS_EVERIFY, "certificate of %s: %s", peer,
                                  X509_verify_cert_error_string(SSL_get_verify_result(ssl)));
        else if (is_alert(e))
                code = fail_alert(code, ERR_GET_REASON(e) - SSL_AD_REASON_OFFSET, peer);
        else
                code = fail_reason(code, e, peer, server);
        ERR_clear_error();
        return code;
}
