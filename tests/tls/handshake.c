/* SPDX-License-Identifier: MIT */
/* Handshakes in memory; see handshake.h. Bytes go through a pair of OpenSSL's own BIOs. */

#include "handshake.h"

#include <string.h>

#include <openssl/err.h>
#include <openssl/x509.h>

enum { ROUNDS = 20 };

static void name_of(const X509 *cert, char *name, size_t size)
{
        name[0] = '\0';
        if (cert)
                X509_NAME_get_text_by_NID(X509_get_subject_name(cert), NID_commonName, name, (int)size);
}

/* One step of one end. True: it wants to go on later, or is through. */
static bool step(struct shake *s, int end, bool *done)
{
        char byte = 'x';

        if (s->rc[end] < 0 || *done)
                return true;
        ERR_clear_error();
        int rc = SSL_is_init_finished(s->ssl[end]) ? 1 : SSL_do_handshake(s->ssl[end]);
        bool open = rc == 1;
        if (open)
                rc = SSL_read(s->ssl[end], &byte, 1);
        int error = SSL_get_error(s->ssl[end], rc);
        if (rc > 0)
                *done = true;
        if (rc > 0 || error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
                return true;
        const char *host = end ? NULL : s->opts.host ? s->opts.host : "a.example";
        s->rc[end] = rs_tls_failed(s->ssl[end], !open, host);
        snprintf(s->text[end], sizeof s->text[end], "%s", resha_error_of(s->rc[end])->text);
        return false;
}

static void start(struct shake *s)
{
        BIO *a = NULL, *b = NULL;

        if (!s->opts.host && !(s->client && s->client->insecure))
                s->opts.host = "a.example";
        if (s->raw_client)
                s->ssl[0] = s->raw_client;
        else
                ASSERT_OK(rs_tls_ssl_new(s->client, &s->opts, &s->ssl[0]));
        if (s->raw_server)
                s->ssl[1] = s->raw_server;
        else
                ASSERT_OK(rs_tls_ssl_new(s->server, NULL, &s->ssl[1]));
        ASSERT_EQ(BIO_new_bio_pair(&a, 0, &b, 0), 1);
        SSL_set_bio(s->ssl[0], a, a);
        SSL_set_bio(s->ssl[1], b, b);
}

static void look(struct shake *s)
{
        const unsigned char *alpn;
        unsigned size;

        name_of(SSL_get0_peer_certificate(s->ssl[0]), s->name, sizeof s->name);
        name_of(SSL_get0_peer_certificate(s->ssl[1]), s->subject, sizeof s->subject);
        SSL_get0_alpn_selected(s->ssl[0], &alpn, &size);
        snprintf(s->alpn, sizeof s->alpn, "%.*s", (int)size, (const char *)alpn);
        s->resumed = SSL_session_reused(s->ssl[0]) == 1;
        s->verified = SSL_get_verify_result(s->ssl[0]) == X509_V_OK && SSL_get_verify_mode(s->ssl[0]);
        s->version = SSL_version(s->ssl[0]);
}

void shake(struct shake *s)
{
        bool said[2] = { false, false }, done[2] = { false, false };

        start(s);
        if (s->before)
                ASSERT_OK(s->before(s->client));
        for (int i = 0; i < ROUNDS; i++)
                for (int end = 0; end < 2; end++) {
                        step(s, end, &done[end]);
                        if (!said[end] && s->rc[end] == 0 && SSL_is_init_finished(s->ssl[end]))
                                said[end] = SSL_write(s->ssl[end], "x", 1) == 1;
                }
        for (int end = 0; end < 2; end++)
                if (!done[end] && s->rc[end] == 0 && s->rc[!end] == 0)
                        FAIL("end %d of the handshake hangs: %s", end, SSL_state_string_long(s->ssl[end]));
        look(s);
}

/* As after an orderly end: a session that was cut off is no good. */
void shake_free(struct shake *s)
{
        for (int end = 0; end < 2; end++) {
                if (s->rc[end] == 0)
                        SSL_set_shutdown(s->ssl[end], SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
                SSL_free(s->ssl[end]);
                s->ssl[end] = NULL;
        }
}

resha_tls *client_of(const resha_tls_opts *opts)
{
        resha_tls *t = NULL;

        ASSERT_OK(resha_tls_client(opts, &t));
        return t;
}

resha_tls *server_of(const resha_tls_opts *opts)
{
        resha_tls *t = NULL;

        ASSERT_OK(resha_tls_server(opts, &t));
        return t;
}

resha_tls *server_with(const struct cert *leaf)
{
        return server_of(&(resha_tls_opts){ .cert_pem = cert_chain_pem(leaf), .key_pem = cert_key_pem(leaf) });
}

resha_tls *client_trusting(const struct cert *root)
{
        return client_of(&(resha_tls_opts){ .trust_pem = cert_pem(root) });
}

struct cert *good_root(void)
{
        static struct cert *root;

        if (!root)
                root = cert_new(NULL, &(struct cert_opts){ .name = "Root", .ca = true });
        return root;
}

struct cert *good_middle(void)
{
        static struct cert *middle;

        if (!middle)
                middle = cert_new(good_root(), &(struct cert_opts){ .name = "Middle", .ca = true, .path_length = "0" });
        return middle;
}

struct cert *good_leaf(const char *name)
{
        return cert_new(good_middle(), &(struct cert_opts){ .name = name, .alt = text_join("DNS:", name) });
}

const char *refusal(const struct cert *leaf, const char *host)
{
        static struct shake s;

        s = (struct shake){ .client = client_trusting(good_root()), .server = server_with(leaf), .opts.host = host };
        shake(&s);
        shake_free(&s);
        resha_tls_unref(s.client);
        resha_tls_unref(s.server);
        return s.text[0];
}
