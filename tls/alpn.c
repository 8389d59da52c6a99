/* SPDX-License-Identifier: MIT */
/* Protocols above TLS (ALPN, RFC 7301): a client offers, a server chooses the first of its own that is offered. Where
 * nothing is in common the handshake fails at both ends: to go on would be to speak what the other does not. */

#include <stdio.h>
#include <string.h>

#include "config.h"

#include <resha/alloc.h>

enum { PROTOCOL_MOST = 255, LIST_MOST = 65535 };

int rs_tls_protocols_new(const char *const *list, struct rs_tls_protocols **ret_protocols)
{
        size_t size = 0;

        *ret_protocols = NULL;
        if (!list)
                return 0;
        for (size_t i = 0; list[i]; i++) {
                size_t n = strlen(list[i]);
                size += n + 1;
                if (n == 0 || n > PROTOCOL_MOST || size > LIST_MOST)
                        return resha_fail(-EINVAL, "options of TLS: alpn: a protocol has 1 to 255 bytes, all together "
                                                   "at most 65535");
        }
        if (size == 0)
                return resha_fail(-EINVAL, "options of TLS: alpn: a list without a protocol; NULL is none");
        struct rs_tls_protocols *p = resha_malloc(sizeof *p + size);
        if (!p)
                return resha_fail(-ENOMEM, "no memory for the names of protocols");
        p->size = 0;
        for (size_t i = 0; list[i]; i++) {
                size_t n = strlen(list[i]);
                p->bytes[p->size++] = (unsigned char)n;
                memcpy(p->bytes + p->size, list[i], n);
                p->size += (unsigned)n;
        }
        *ret_protocols = p;
        return 0;
}

void rs_tls_protocols_print(const unsigned char *bytes, unsigned size, char *text, size_t text_size)
{
        size_t n = 0;

        for (unsigned i = 0; i < size;) {
                unsigned end = i + 1 + bytes[i];
                if (n + bytes[i] + 6 > text_size || end > size) {
                        snprintf(text + n, text_size - n, "...");
                        return;
                }
                for (unsigned k = i + 1; k < end; k++)
                        text[n++] = (char)(bytes[k] < ' ' || bytes[k] > '~' ? '?' : bytes[k]);
                i = end;
                if (i < size) {
                        text[n++] = ',';
                        text[n++] = ' ';
                }
        }
        text[n] = '\0';
}

int rs_tls_alpn_choose(SSL *ssl, const unsigned char **out, unsigned char *out_size, const unsigned char *in,
                       unsigned in_size, void *arg)
{
        const struct rs_tls_set *set = arg;
        const struct rs_tls_note *note = rs_tls_note_of(ssl);
        const struct rs_tls_protocols *own = note && note->alpn ? note->alpn : set->alpn;
        unsigned char *chosen = NULL;
        char theirs[64], ours[64];

        if (!own)
                return SSL_TLSEXT_ERR_NOACK;
        if (SSL_select_next_proto(&chosen, out_size, own->bytes, own->size, in, in_size) == OPENSSL_NPN_NEGOTIATED) {
                *out = chosen;
                return SSL_TLSEXT_ERR_OK;
        }
        rs_tls_protocols_print(in, in_size, theirs, sizeof theirs);
        rs_tls_protocols_print(own->bytes, own->size, ours, sizeof ours);
        rs_tls_note_say(ssl, RESHA_TLS_EHANDSHAKE, "no protocol in common: it offers \"%s\", here is \"%s\" (ALPN)",
                        theirs, ours);
        return SSL_TLSEXT_ERR_ALERT_FATAL;
}
