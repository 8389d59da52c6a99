/* SPDX-License-Identifier: MIT */
/* What goes with OpenSSL's objects: a set with each SSL_CTX, for the callbacks; a note with each SSL, for its name and
 * for what has gone wrong. Both end with the object they go with, whoever releases that last, on whichever thread. */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "config.h"

#include <resha/alloc.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int set_index = -1, note_index = -1;

static void free_set(void *parent, void *p, CRYPTO_EX_DATA *data, int index, long argl, void *argp)
{
        (void)parent, (void)data, (void)index, (void)argl, (void)argp;
        rs_tls_set_free(p);
}

static void free_note(void *parent, void *p, CRYPTO_EX_DATA *data, int index, long argl, void *argp)
{
        struct rs_tls_note *note = p;

        (void)parent, (void)data, (void)index, (void)argl, (void)argp;
        if (note)
                resha_free(note->alpn);
        resha_free(note);
}

static void make_indexes(void)
{
        set_index = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, free_set);
        note_index = SSL_get_ex_new_index(0, NULL, NULL, NULL, free_note);
}

int rs_tls_set_attach(SSL_CTX *ctx, struct rs_tls_set *set)
{
        pthread_once(&once, make_indexes);
        if (set_index < 0 || note_index < 0 || SSL_CTX_set_ex_data(ctx, set_index, set) != 1)
                return resha_fail(-ENOMEM, "no memory for a TLS configuration");
        return 0;
}

struct rs_tls_set *rs_tls_set_of(const SSL_CTX *ctx)
{
        return SSL_CTX_get_ex_data(ctx, set_index);
}

void rs_tls_set_free(struct rs_tls_set *set)
{
        if (!set)
                return;
        for (size_t i = 0; i < set->name_count; i++) {
                SSL_CTX_free(set->names[i].ctx);
                resha_free(set->names[i].host);
        }
        resha_free(set->names);
        resha_free(set->alpn);
        rs_tls_sessions_unref(set->sessions);
        rs_tls_tickets_unref(set->tickets);
        resha_free(set);
}

struct rs_tls_note *rs_tls_note_of(const SSL *ssl)
{
        return note_index < 0 ? NULL : SSL_get_ex_data(ssl, note_index);
}

int rs_tls_note_attach(SSL *ssl, const char *host, uint16_t port)
{
        size_t size = strlen(host) + 1;
        struct rs_tls_note *note = resha_calloc(1, sizeof *note + size);

        if (note) {
                memcpy(note->host, host, size);
                note->port = port;
                note->set = rs_tls_set_of(SSL_get_SSL_CTX(ssl));
        }
        if (!note || SSL_set_ex_data(ssl, note_index, note) != 1) {
                resha_free(note);
                return resha_fail(-ENOMEM, "no memory for a TLS connection");
        }
        return 0;
}

void rs_tls_note_say(SSL *ssl, int code, const char *format, ...)
{
        struct rs_tls_note *note = rs_tls_note_of(ssl);
        va_list args;

        if (!note || note->code)
                return;
        note->code = code;
        va_start(args, format);
        vsnprintf(note->words, sizeof note->words, format, args);
        va_end(args);
}
