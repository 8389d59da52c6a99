/* SPDX-License-Identifier: MIT */
/* Configurations: what options say, as an SSL_CTX that any number of connections share. It does not change; a reload
 * makes a new one. */

#include <errno.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include "tls.h"

#include <resha/alloc.h>

enum { HANDSHAKE_SECONDS = 30, SHUTDOWN_SECONDS = 5 };

static int load_own(SSL_CTX *ctx, const resha_tls_opts *o)
{
        if (!o->cert_file)
                return 0;
        if (SSL_CTX_use_certificate_chain_file(ctx, o->cert_file) != 1)
                return rs_tls_fail(RESHA_TLS_ECERT, o->cert_file);
        const char *key = o->key_file ? o->key_file : o->cert_file;
        if (SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) != 1)
                return rs_tls_fail(RESHA_TLS_ECERT, key);
        return 0;
}

static int load_trust(SSL_CTX *ctx, const resha_tls_opts *o, bool server)
{
        if (o->trust_file && SSL_CTX_load_verify_file(ctx, o->trust_file) != 1)
                return rs_tls_fail(RESHA_TLS_ECERT, o->trust_file);
        if (o->trust_dir && SSL_CTX_load_verify_dir(ctx, o->trust_dir) != 1)
                return rs_tls_fail(RESHA_TLS_ECERT, o->trust_dir);
        if (!server && !o->trust_file && !o->trust_dir && SSL_CTX_set_default_verify_paths(ctx) != 1)
                return rs_tls_fail(RESHA_TLS_ECERT, "the system's authorities");
        return 0;
}

static void set_verify(SSL_CTX *ctx, const resha_tls_opts *o, bool server)
{
        int mode = SSL_VERIFY_NONE;

        if (!server && !o->insecure)
                mode = SSL_VERIFY_PEER;
        if (server && o->peer != RESHA_TLS_PEER_NONE)
                mode = SSL_VERIFY_PEER | (o->peer == RESHA_TLS_PEER_REQUIRE ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0);
        SSL_CTX_set_verify(ctx, mode, NULL);
}

static int make(const resha_tls_opts *o, bool server, SSL_CTX **ret_ctx)
{
        SSL_CTX *ctx = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());

        if (!ctx)
                return rs_tls_fail(-ENOMEM, "SSL_CTX_new");
        SSL_CTX_set_min_proto_version(ctx, o->min_version ? (int)o->min_version : TLS1_2_VERSION);
        SSL_CTX_set_max_proto_version(ctx, (int)o->max_version);
        SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
        set_verify(ctx, o, server);
        int rc = load_own(ctx, o);
        if (rc == 0)
                rc = load_trust(ctx, o, server);
        if (rc < 0)
                SSL_CTX_free(ctx);
        else
                *ret_ctx = ctx;
        return rc;
}

static int make_config(const resha_tls_opts *opts, bool server, resha_tls **ret_tls)
{
        static const resha_tls_opts defaults;
        const resha_tls_opts *o = opts ? opts : &defaults;
        resha_tls *t = resha_calloc(1, sizeof *t);

        if (!t)
                return resha_fail(-ENOMEM, "no memory for a TLS configuration");
        int rc = make(o, server, &t->ctx);
        if (rc < 0) {
                resha_free(t);
                return rc;
        }
        atomic_init(&t->refs, 1);
        pthread_mutex_init(&t->lock, NULL);
        t->server = server;
        t->insecure = o->insecure;
        t->handshake = o->handshake.ns ? o->handshake : RESHA_S(HANDSHAKE_SECONDS);
        t->shutdown = o->shutdown.ns ? o->shutdown : RESHA_S(SHUTDOWN_SECONDS);
        *ret_tls = t;
        return 0;
}

int resha_tls_client(const resha_tls_opts *opts, resha_tls **ret_tls)
{
        return make_config(opts, false, ret_tls);
}

int resha_tls_server(const resha_tls_opts *opts, resha_tls **ret_tls)
{
        return make_config(opts, true, ret_tls);
}

resha_tls *resha_tls_ref(resha_tls *t)
{
        if (t)
                atomic_fetch_add(&t->refs, 1);
        return t;
}

void resha_tls_unref(resha_tls *t)
{
        if (!t || atomic_fetch_sub(&t->refs, 1) != 1)
                return;
        SSL_CTX_free(t->ctx);
        pthread_mutex_destroy(&t->lock);
        resha_free(t);
}

void resha_tls_unrefp(resha_tls **t)
{
        resha_tls_unref(*t);
        *t = NULL;
}

/* The name that the peer must prove, and that it is asked for. */
static int set_host(SSL *ssl, const char *host)
{
        X509_VERIFY_PARAM *param = SSL_get0_param(ssl);

        if (X509_VERIFY_PARAM_set1_ip_asc(param, host) == 1)
                return 0;
        ERR_clear_error();
        X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
        if (SSL_set1_host(ssl, host) != 1 || SSL_set_tlsext_host_name(ssl, host) != 1)
                return rs_tls_fail(-EINVAL, host);
        return 0;
}

int rs_tls_ssl_new(resha_tls *t, const resha_tls_start_opts *opts, SSL **ret_ssl)
{
        const char *host = opts ? opts->host : NULL;

        if (!t->server && !host && !t->insecure)
                return resha_fail(-EINVAL, "TLS to nobody in particular: say in `host` who the peer must be");
        pthread_mutex_lock(&t->lock);
        SSL *ssl = SSL_new(t->ctx);
        pthread_mutex_unlock(&t->lock);
        if (!ssl)
                return rs_tls_fail(-ENOMEM, "SSL_new");
        int rc = !t->server && host ? set_host(ssl, host) : 0;
        if (rc < 0) {
                SSL_free(ssl);
                return rc;
        }
        if (t->server)
                SSL_set_accept_state(ssl);
        else
                SSL_set_connect_state(ssl);
        *ret_ssl = ssl;
        return 0;
}

int rs_tls_default(resha_tls **ret_tls)
{
        static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
        static resha_tls *made;

        pthread_mutex_lock(&lock);
        int rc = made ? 0 : resha_tls_client(NULL, &made);
        pthread_mutex_unlock(&lock);
        *ret_tls = made;
        return rc;
}
