/* SPDX-License-Identifier: MIT */
/* What is wrong with a certificate, in words: whose it is, what failed, what it says and what was wanted.
 *
 * OpenSSL verifies; it asks here about each thing that is wrong, and the first one ends the handshake. Its words go
 * into the note of the connection, because only here is the certificate in question known, and its place in the chain.
 * What the peer's certificates say is the peer's: it is printed as ASCII without control characters, and cut.
 *
 * One thing is let pass: where lists of revocations are looked at, the certificate of the peer must be covered by one;
 * those of authorities above it need not be, if there is none of their issuer. */

#include <stdio.h>
#include <string.h>
#include <time.h>

#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/objects.h>
#include <openssl/x509v3.h>

#include "config.h"

enum { NAMES_SHOWN = 3 };

/* What failed, with its words so far. */
struct fault {
        X509_STORE_CTX *store;
        X509 *cert;
        int error, depth;
        const char *host; /* whom the peer must be; "": a client, or anybody */
        bool server;      /* we are one */
        char subject[RS_TLS_NAME_TEXT], issuer[RS_TLS_NAME_TEXT];
        char words[512]; /* cut later, as a record's text is */
};

void rs_tls_name_print(const X509_NAME *name, char *text, size_t size)
{
        BIO *bio = BIO_new(BIO_s_mem());
        char *bytes = NULL;
        long n = 0;

        if (bio && X509_NAME_print_ex(bio, name, 0, XN_FLAG_RFC2253) >= 0)
                n = BIO_get_mem_data(bio, &bytes);
        if (n <= 0)
                snprintf(text, size, "%s", bio ? "no name" : "?");
        else if ((size_t)n < size)
                snprintf(text, size, "%.*s", (int)n, bytes);
        else
                snprintf(text, size, "%.*s...", (int)size - 4, bytes);
        BIO_free(bio);
}

/* "2024-01-01"; with the time of day, if that is near. */
static const char *date(const ASN1_TIME *t, char text[32])
{
        struct tm tm = { 0 };
        int days = 0, seconds = 0;

        if (!t || ASN1_TIME_to_tm(t, &tm) != 1)
                return "a date that cannot be read";
        bool near = ASN1_TIME_diff(&days, &seconds, NULL, t) == 1 && days > -2 && days < 2;
        strftime(text, 32, near ? "%Y-%m-%d %H:%M UTC" : "%Y-%m-%d", &tm);
        return text;
}

/* ---- for whom it is ---- */

static size_t print_bytes(const ASN1_STRING *s, char *text, size_t size)
{
        const unsigned char *bytes = ASN1_STRING_get0_data(s);
        int length = ASN1_STRING_length(s);
        size_t n = 0;

        for (int i = 0; i < length && n + 5 < size; i++)
                if (bytes[i] > ' ' && bytes[i] <= '~' && bytes[i] != '"' && bytes[i] != '\\')
                        text[n++] = (char)bytes[i];
                else
                        n += (size_t)snprintf(text + n, size - n, "\\x%02x", bytes[i]);
        text[n] = '\0';
        return n;
}

static void print_address(const ASN1_STRING *s, char *text, size_t size)
{
        const unsigned char *b = ASN1_STRING_get0_data(s);
        size_t n = 0;

        if (ASN1_STRING_length(s) == 4)
                snprintf(text, size, "%d.%d.%d.%d", b[0], b[1], b[2], b[3]);
        for (int i = 0; ASN1_STRING_length(s) == 16 && i < 16; i += 2)
                n += (size_t)snprintf(text + n, size - n, "%s%x", i ? ":" : "", b[i] << 8 | b[i + 1]);
}

/* "a.example", "b.example" and 3 more; "": it names nobody. */
static void print_names(X509 *cert, char *text, size_t size)
{
        GENERAL_NAMES *names = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
        int shown = 0, more = 0;
        size_t n = 0;

        text[0] = '\0';
        for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
                const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
                char one[64] = "";
                if (name->type == GEN_DNS)
                        print_bytes(name->d.dNSName, one, 48);
                else if (name->type == GEN_IPADD)
                        print_address(name->d.iPAddress, one, sizeof one);
                if (!one[0])
                        continue;
                if (shown == NAMES_SHOWN || n + strlen(one) + 20 > size) {
                        more++;
                        continue;
                }
                n += (size_t)snprintf(text + n, size - n, "%s\"%s\"", shown ? ", " : "", one);
                shown++;
        }
        if (more)
                snprintf(text + n, size - n, " and %d more", more);
        GENERAL_NAMES_free(names);
}

static void say_mismatch(struct fault *f)
{
        char names[120];

        print_names(f->cert, names, sizeof names);
        if (names[0])
                snprintf(f->words, sizeof f->words, "is for %s, not for \"%.60s\"", names, f->host);
        else
                snprintf(f->words, sizeof f->words, "names no host (subjectAltName), and so is not for \"%.60s\" (%s)",
                         f->host, f->subject);
}

/* ---- what is too weak ---- */

static void say_weak_key(struct fault *f)
{
        EVP_PKEY *key = X509_get0_pubkey(f->cert);
        const char *type = key ? EVP_PKEY_get0_type_name(key) : NULL;

        snprintf(f->words, sizeof f->words, "its key is too weak: %s of %d bits (%s)", type ? type : "?",
                 key ? EVP_PKEY_get_bits(key) : 0, f->subject);
}

static void say_weak_digest(struct fault *f)
{
        snprintf(f->words, sizeof f->words, "its signature is too weak: %s (%s)",
                 OBJ_nid2ln(X509_get_signature_nid(f->cert)), f->subject);
}

/* ---- when it is valid, and whether it still is ---- */

static void say_time(struct fault *f, bool past)
{
        const ASN1_TIME *t = past ? X509_get0_notAfter(f->cert) : X509_get0_notBefore(f->cert);
        char text[32];

        snprintf(f->words, sizeof f->words, past ? "expired on %s (%s)" : "not valid before %s (%s)", date(t, text),
                 f->subject);
}

static void say_revoked(struct fault *f)
{
        X509_CRL *crl = X509_STORE_CTX_get0_current_crl(f->store);
        X509_REVOKED *one = NULL;
        char text[32];

        if (crl && X509_CRL_get0_by_cert(crl, &one, f->cert) == 1)
                snprintf(f->words, sizeof f->words, "revoked on %s by its authority (%s)",
                         date(X509_REVOKED_get0_revocationDate(one), text), f->subject);
        else
                snprintf(f->words, sizeof f->words, "revoked by its authority (%s)", f->subject);
}

static void say_list_time(struct fault *f, bool past)
{
        X509_CRL *crl = X509_STORE_CTX_get0_current_crl(f->store);
        char text[32];

        snprintf(f->words, sizeof f->words, "cannot be checked: the CRL of \"%s\" %s %s: %s", f->issuer,
                 past ? "has expired on" : "is not valid before",
                 crl ? date(past ? X509_CRL_get0_nextUpdate(crl) : X509_CRL_get0_lastUpdate(crl), text) : "?",
                 past ? "fetch a newer one, and reload" : "is the clock right?");
}

/* ---- whom it comes from ---- */

static void say_unknown(struct fault *f)
{
        bool alone = sk_X509_num(X509_STORE_CTX_get0_untrusted(f->store)) <= 1;

        snprintf(f->words, sizeof f->words, "issuer \"%s\" unknown%s (%s)", f->issuer,
                 alone && f->depth == 0 ? ": it is not trusted here, and the peer has sent no chain"
                                        : ": not trusted here",
                 f->subject);
}

static void say_other(struct fault *f)
{
        snprintf(f->words, sizeof f->words, "%s (%s)", X509_verify_cert_error_string(f->error), f->subject);
}

static void say_fixed(struct fault *f, const char *text)
{
        snprintf(f->words, sizeof f->words, "%s (%s)", text, f->subject);
}

static void say_purpose(struct fault *f)
{
        say_fixed(f, f->depth    ? "is not for signing certificates of this kind"
                     : f->server ? "is not for clients: its key usage does not allow it"
                                 : "is not for servers: its key usage does not allow it");
}

static void say_trust(struct fault *f)
{
        switch (f->error) {
        case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT: say_fixed(f, "self-signed and not trusted"); break;
        case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN: say_fixed(f, "its root is not trusted"); break;
        case X509_V_ERR_INVALID_CA:
        case X509_V_ERR_KEYUSAGE_NO_CERTSIGN: say_fixed(f, "is no authority, but has signed a certificate"); break;
        case X509_V_ERR_PERMITTED_VIOLATION:
        case X509_V_ERR_EXCLUDED_VIOLATION: say_fixed(f, "its authority may not sign for such names"); break;
        case X509_V_ERR_PATH_LENGTH_EXCEEDED: say_fixed(f, "its authority may not sign other authorities"); break;
        case X509_V_ERR_CERT_SIGNATURE_FAILURE: say_fixed(f, "its signature is not its issuer's"); break;
        case X509_V_ERR_CERT_CHAIN_TOO_LONG: say_fixed(f, "its chain is too long"); break;
        default: say_other(f); break;
        }
}

static void say(struct fault *f)
{
        switch (f->error) {
        case X509_V_ERR_CERT_HAS_EXPIRED: say_time(f, true); break;
        case X509_V_ERR_CERT_NOT_YET_VALID: say_time(f, false); break;
        case X509_V_ERR_HOSTNAME_MISMATCH:
        case X509_V_ERR_IP_ADDRESS_MISMATCH: say_mismatch(f); break;
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
        case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE: say_unknown(f); break;
        case X509_V_ERR_CERT_REVOKED: say_revoked(f); break;
        case X509_V_ERR_CRL_HAS_EXPIRED: say_list_time(f, true); break;
        case X509_V_ERR_CRL_NOT_YET_VALID: say_list_time(f, false); break;
        case X509_V_ERR_UNABLE_TO_GET_CRL:
                snprintf(f->words, sizeof f->words, "cannot be checked: crl_file has no list of \"%s\" (%s)", f->issuer,
                         f->subject);
                break;
        case X509_V_ERR_INVALID_PURPOSE: say_purpose(f); break;
        case X509_V_ERR_EE_KEY_TOO_SMALL:
        case X509_V_ERR_CA_KEY_TOO_SMALL: say_weak_key(f); break;
        case X509_V_ERR_CA_MD_TOO_WEAK: say_weak_digest(f); break;
        default: say_trust(f); break;
        }
}

/* Where in the chain: the words are about the peer's own certificate, or about one above it. */
static const char *place(const struct fault *f, char text[64])
{
        if (f->depth == 0)
                return "";
        snprintf(text, 64, "the authority %d above it: ", f->depth);
        return text;
}

int rs_tls_verify(int ok, X509_STORE_CTX *store)
{
        SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
        struct rs_tls_note *note = ssl ? rs_tls_note_of(ssl) : NULL;
        struct fault f = { .store = store };
        char where[64];

        if (ok)
                return ok;
        f.error = X509_STORE_CTX_get_error(store);
        f.depth = X509_STORE_CTX_get_error_depth(store);
        if (f.error == X509_V_ERR_UNABLE_TO_GET_CRL && f.depth > 0) {
                X509_STORE_CTX_set_error(store, X509_V_OK);
                return 1;
        }
        f.cert = X509_STORE_CTX_get_current_cert(store);
        if (!note || !f.cert)
                return 0;
        f.host = note->host;
        f.server = SSL_is_server(ssl);
        rs_tls_name_print(X509_get_subject_name(f.cert), f.subject, sizeof f.subject);
        rs_tls_name_print(X509_get_issuer_name(f.cert), f.issuer, sizeof f.issuer);
        say(&f);
        rs_tls_note_say(ssl, f.error == X509_V_ERR_OUT_OF_MEM ? -ENOMEM : RESHA_TLS_EVERIFY, "%s%s", place(&f, where),
                        f.words);
        return 0;
}
