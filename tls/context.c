/* SPDX-License-Identifier: MIT */
/* Configurations: what options say, as an SSL_CTX that any number of connections share.
 *
 * An SSL_CTX does not change once it is made. A reload makes a new one from the copy of the options, and puts it in the
 * place of the old one under the lock: who starts a connection then gets the one or the other, whole; connections that
 * are there hold the old one until they end. What must outlive a reload is beside the SSL_CTX and counted: a client's
 * sessions, a server's keys of tickets. Whether what was verified before still counts is decided by a digest of all
 * that whom to trust was read from: it names a server's sessions (their context), and guards a client's.
 *
 * Files are read and parsed on a thread of the pool where a task makes a configuration; a shield is around that, since
 * nothing but the disk is waited for. One reload of a configuration at a time: an older one must not come last.
 *
 * Invariants: t->ctx is never NULL once t is anybody's; `lock` is held for a few instructions only. */

#include <stdio.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509v3.h>

#include "config.h"

#include <resha/alloc.h>

enum {
        HANDSHAKE_SECONDS = 30,
        SHUTDOWN_SECONDS = 5,
        SESSIONS = 256,
        SECURITY_LEVEL = 2,
        CHAIN_DEPTH = 10,
        CA_SHOWN = 100
};

/* Forward secrecy and authenticated encryption; no CBC, no RSA key exchange. */
#define CIPHERS "ECDHE+AESGCM:ECDHE+CHACHA20:DHE+AESGCM:DHE+CHACHA20:!aNULL:!PSK"

/* ---- an SSL_CTX ---- */

static int set_ciphers(SSL_CTX *ctx, const resha_tls_opts *o)
{
        if (SSL_CTX_set_cipher_list(ctx, o->ciphers ? o->ciphers : CIPHERS) != 1) {
                ERR_clear_error();
                return resha_fail(-EINVAL, "options of TLS: ciphers \"%.80s\": OpenSSL has none of them",
                                  o->ciphers ? o->ciphers : CIPHERS);
        }
        if (o->suites && SSL_CTX_set_ciphersuites(ctx, o->suites) != 1) {
                ERR_clear_error();
                return resha_fail(-EINVAL, "options of TLS: suites \"%.80s\": OpenSSL has them not", o->suites);
        }
        return 0;
}

static int make_ctx(const resha_tls_opts *o, bool server, SSL_CTX **ret_ctx)
{
        ERR_clear_error();
        SSL_CTX *ctx = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());

        if (!ctx)
                return rs_tls_fail(-ENOMEM, "a configuration of OpenSSL");
        SSL_CTX_set_min_proto_version(ctx, o->min_version ? (int)o->min_version : TLS1_2_VERSION);
        SSL_CTX_set_max_proto_version(ctx, (int)o->max_version);
        SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
        /* openssl.cnf may have set these */
        SSL_CTX_clear_options(ctx, SSL_OP_LEGACY_SERVER_CONNECT | SSL_OP_ALLOW_UNSAFE_LEGACY_RENEGOTIATION);
        SSL_CTX_set_mode(ctx, SSL_MODE_NO_AUTO_CHAIN);
        SSL_CTX_set_verify_depth(ctx, CHAIN_DEPTH);
        SSL_CTX_set_max_early_data(ctx, 0);
        SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
        if (o->no_sessions) {
                SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET);
                SSL_CTX_set_num_tickets(ctx, 0);
        }
        int rc = set_ciphers(ctx, o);
        /* after the lists, where "@SECLEVEL=0" would let in ciphers without certificates: nobody would be verified */
        SSL_CTX_set_security_level(ctx, SECURITY_LEVEL);
        if (rc < 0)
                SSL_CTX_free(ctx);
        else
                *ret_ctx = ctx;
        return rc;
}

/* What is the same for all SSL_CTX of a server, whichever name was asked for. */
static void share(SSL_CTX *ctx, struct rs_tls_set *set, X509_STORE *store)
{
        SSL_CTX_set1_cert_store(ctx, store);
        if (set->server)
                SSL_CTX_set_alpn_select_cb(ctx, rs_tls_alpn_choose, set);
        if (set->server)
                SSL_CTX_set_session_id_context(ctx, set->digest, RS_TLS_DIGEST);
}

/* ---- names of a server ---- */

static int choose_name(SSL *ssl, int *alert, void *arg)
{
        const struct rs_tls_set *set = arg;
        const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);

        (void)alert;
        for (size_t i = 0; name && i < set->name_count; i++)
                if (rs_tls_host_covers(set->names[i].host, name)) {
                        SSL_set_SSL_CTX(ssl, set->names[i].ctx);
                        return SSL_TLSEXT_ERR_OK;
                }
        return name && !set->name_count ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

static int fill_names(struct rs_tls_set *set, const resha_tls_opts *o)
{
        if (!o->name_count)
                return 0;
        set->names = resha_calloc(o->name_count, sizeof *set->names);
        if (!set->names)
                return resha_fail(-ENOMEM, "no memory for the names of a server");
        for (size_t i = 0; i < o->name_count; i++) {
                struct rs_tls_named *n = &set->names[set->name_count++];
                n->host = resha_strdup(o->names[i].host);
                int rc = n->host ? make_ctx(o, true, &n->ctx)
                                 : resha_fail(-ENOMEM, "no memory for the names of a server");
                if (rc == 0)
                        rc = rs_tls_own_load(n->ctx, &o->names[i], NULL);
                if (rc < 0)
                        return rc;
        }
        return 0;
}

/* ---- who must show a certificate ---- */

/* Clients with several certificates choose one by this. */
static int show_authorities(SSL_CTX *ctx, X509_STORE *store)
{
        STACK_OF(X509_OBJECT) *objects = X509_STORE_get0_objects(store);

        for (int i = 0; i < sk_X509_OBJECT_num(objects) && i < CA_SHOWN; i++) {
                X509 *cert = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(objects, i));
                if (cert && SSL_CTX_add_client_CA(ctx, cert) != 1)
                        return rs_tls_fail(-ENOMEM, "the authorities of clients");
        }
        return 0;
}

static void set_verify(SSL_CTX *ctx, const resha_tls_opts *o, bool server)
{
        int mode = SSL_VERIFY_NONE;

        if (!server && !o->insecure)
                mode = SSL_VERIFY_PEER;
        if (server && o->peer != RESHA_TLS_PEER_NONE)
                mode = SSL_VERIFY_PEER | (o->peer == RESHA_TLS_PEER_REQUIRE ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0);
        SSL_CTX_set_verify(ctx, mode, mode == SSL_VERIFY_NONE ? NULL : rs_tls_verify);
}

/* ---- the whole of it ---- */

static int finish_server(SSL_CTX *ctx, struct rs_tls_set *set, const resha_tls_opts *o, X509_STORE *store)
{
        int rc = fill_names(set, o);

        if (rc < 0)
                return rc;
        bool peers = o->peer != RESHA_TLS_PEER_NONE;
        if (set->tickets && rs_tls_tickets_use(ctx, peers) < 0)
                return resha_fail(-ENOMEM, "no memory for keys of tickets");
        SSL_CTX_set_tlsext_servername_callback(ctx, choose_name);
        SSL_CTX_set_tlsext_servername_arg(ctx, set);
        for (size_t i = 0; rc == 0 && i <= set->name_count; i++) {
                SSL_CTX *one = i ? set->names[i - 1].ctx : ctx;
                share(one, set, store);
                rc = peers ? show_authorities(one, store) : 0;
        }
        return rc;
}

static int finish_client(SSL_CTX *ctx, struct rs_tls_set *set, X509_STORE *store)
{
        share(ctx, set, store);
        if (set->alpn && SSL_CTX_set_alpn_protos(ctx, set->alpn->bytes, set->alpn->size) != 0)
                return rs_tls_fail(-ENOMEM, "protocols to be offered");
        if (set->sessions) {
                SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
                SSL_CTX_sess_set_new_cb(ctx, rs_tls_session_keep);
        }
        return 0;
}

static int fill(SSL_CTX *ctx, struct rs_tls_set *set, const resha_tls_opts *o, EVP_MD_CTX *digest)
{
        const resha_tls_name own = {
                .cert_file = o->cert_file, .key_file = o->key_file, .cert_pem = o->cert_pem, .key_pem = o->key_pem
        };
        X509_STORE *store = NULL;

        if (EVP_DigestInit_ex(digest, EVP_sha256(), NULL) != 1)
                return rs_tls_fail(-ENOMEM, "SHA-256");
        EVP_DigestUpdate(digest, &o->peer, sizeof o->peer);
        int rc = rs_tls_protocols_new(o->alpn, &set->alpn);
        if (rc == 0)
                rc = rs_tls_own_load(ctx, &own, set->server ? NULL : digest);
        if (rc == 0)
                rc = rs_tls_trust_load(o, set->server, &store, digest);
        if (rc < 0)
                return rc;
        set_verify(ctx, o, set->server);
        EVP_DigestFinal_ex(digest, set->digest, NULL);
        rc = set->server ? finish_server(ctx, set, o, store) : finish_client(ctx, set, store);
        X509_STORE_free(store);
        return rc;
}

static int build(const resha_tls *t, SSL_CTX **ret_ctx)
{
        const resha_tls_opts *o = &t->files->o;
        struct rs_tls_set *set = resha_calloc(1, sizeof *set);
        SSL_CTX *ctx = NULL;
        int rc = set ? make_ctx(o, t->server, &ctx) : resha_fail(-ENOMEM, "no memory for a TLS configuration");

        if (rc == 0)
                rc = rs_tls_set_attach(ctx, set);
        if (rc < 0) {
                resha_free(set);
                SSL_CTX_free(ctx);
                return rc;
        }
        set->server = t->server;
        set->sessions = rs_tls_sessions_ref(t->sessions);
        set->tickets = rs_tls_tickets_ref(t->tickets);
        EVP_MD_CTX *digest = EVP_MD_CTX_new();
        rc = digest ? fill(ctx, set, o, digest) : resha_fail(-ENOMEM, "no memory for a TLS configuration");
        EVP_MD_CTX_free(digest);
        ERR_clear_error();
        if (rc < 0)
                SSL_CTX_free(ctx);
        else
                *ret_ctx = ctx;
        return rc;
}

/* ---- made, and made anew ---- */

/* Something that reads files. */
struct job {
        resha_fn *fn;
        resha_tls *t;
        char text[sizeof((resha_error *)0)->text]; /* of its failure */
};

static int do_job(void *arg)
{
        struct job *j = arg;
        int rc = j->fn(j);

        if (rc < 0)
                snprintf(j->text, sizeof j->text, "%s", resha_error_of(rc)->text);
        return rc;
}

static int send_job(void *arg)
{
        return resha_pool_run(NULL, do_job, arg, NULL);
}

static int run_job(struct job *j)
{
        int rc = resha_in_task() ? resha_shielded(RESHA_FOREVER, send_job, j) : do_job(j);

        return rc < 0 && j->text[0] ? resha_fail(rc, "%s", j->text) : rc;
}

/* The old one is released outside of the lock: that may be work. */
static int rebuild(void *arg)
{
        struct job *j = arg;
        resha_tls *t = j->t;
        SSL_CTX *ctx = NULL;

        pthread_mutex_lock(&t->reloading);
        int rc = build(t, &ctx);
        if (rc == 0) {
                pthread_mutex_lock(&t->lock);
                SSL_CTX *old = t->ctx;
                t->ctx = ctx;
                pthread_mutex_unlock(&t->lock);
                ctx = old;
                if (t->sessions)
                        rs_tls_sessions_renew(t->sessions, rs_tls_set_of(t->ctx)->digest);
        }
        pthread_mutex_unlock(&t->reloading);
        SSL_CTX_free(ctx);
        return rc;
}

int resha_tls_reload(resha_tls *t)
{
        struct job j = { .fn = rebuild, .t = t };

        return run_job(&j);
}

static int fill_config(resha_tls *t, const resha_tls_opts *o, bool server)
{
        int rc = rs_tls_files_new(o, server, &t->files);

        if (rc < 0)
                return rc;
        t->server = server;
        t->insecure = o->insecure;
        atomic_init(&t->untold, o->insecure);
        t->handshake = o->handshake.ns ? o->handshake : RESHA_S(HANDSHAKE_SECONDS);
        t->shutdown = o->shutdown.ns ? o->shutdown : RESHA_S(SHUTDOWN_SECONDS);
        if (o->no_sessions)
                return 0;
        if (server)
                return rs_tls_tickets_new(&t->tickets);
        return rs_tls_sessions_new(o->sessions ? o->sessions : SESSIONS, &t->sessions);
}

/* Tells that nobody is verified: when it is made, or, if nobody listens there, when it is used. */
static void tell_insecure(resha_tls *t)
{
        if (atomic_load_explicit(&t->untold, memory_order_relaxed) && atomic_exchange(&t->untold, false) &&
            resha_report_text(
                    RESHA_REPORT_INSECURE, 0,
                    "a TLS client verifies nobody (`insecure` of its options): whoever is in between can read "
                    "and change all") < 0)
                atomic_store(&t->untold, true);
}

/* No more than what `release` undoes; without a job of its own. */
static int new_config(const resha_tls_opts *opts, bool server, resha_tls **ret_tls)
{
        static const resha_tls_opts defaults;
        resha_tls *t = resha_calloc(1, sizeof *t);

        if (!t)
                return resha_fail(-ENOMEM, "no memory for a TLS configuration");
        atomic_init(&t->refs, 1);
        pthread_mutex_init(&t->lock, NULL);
        pthread_mutex_init(&t->reloading, NULL);
        int rc = fill_config(t, opts ? opts : &defaults, server);
        if (rc < 0)
                resha_tls_unref(t);
        else
                *ret_tls = t;
        return rc;
}

static int make_config(const resha_tls_opts *opts, bool server, resha_tls **ret_tls)
{
        struct job j = { .fn = rebuild };
        int rc = new_config(opts, server, &j.t);

        if (rc < 0)
                return rc;
        rc = run_job(&j);
        if (rc < 0) {
                resha_tls_unref(j.t);
                return rc;
        }
        tell_insecure(j.t);
        *ret_tls = j.t;
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
        rs_tls_sessions_unref(t->sessions);
        rs_tls_tickets_unref(t->tickets);
        rs_tls_files_free(t->files);
        pthread_mutex_destroy(&t->lock);
        pthread_mutex_destroy(&t->reloading);
        resha_free(t);
}

void resha_tls_unrefp(resha_tls **t)
{
        resha_tls_unref(*t);
        *t = NULL;
}

/* ---- the one with all defaults ---- */

static struct {
        pthread_mutex_t making;
        _Atomic(resha_tls *) made;
} common = { .making = PTHREAD_MUTEX_INITIALIZER };

/* A child makes its own: of the parent's, another thread may have had a lock. */
static void forget_default(void)
{
        pthread_mutex_init(&common.making, NULL);
        atomic_store(&common.made, NULL);
}

static void look_for_forks(void)
{
        pthread_atfork(NULL, NULL, forget_default);
}

/* Others that want it meanwhile wait on their own threads of a pool, and find it made. */
static int make_default(void *arg)
{
        static pthread_once_t once = PTHREAD_ONCE_INIT;
        struct job *j = arg;
        int rc = 0;

        pthread_once(&once, look_for_forks);
        pthread_mutex_lock(&common.making);
        if (!atomic_load(&common.made)) {
                rc = new_config(NULL, false, &j->t);
                if (rc == 0)
                        rc = rebuild(j);
                if (rc == 0)
                        atomic_store(&common.made, j->t);
                else
                        resha_tls_unref(j->t);
        }
        pthread_mutex_unlock(&common.making);
        return rc;
}

int rs_tls_default(resha_tls **ret_tls)
{
        struct job j = { .fn = make_default };
        int rc = atomic_load(&common.made) ? 0 : run_job(&j);

        if (rc == 0)
                *ret_tls = atomic_load(&common.made);
        return rc;
}

void rs_tls_default_drop(void)
{
        resha_tls_unref(atomic_exchange(&common.made, NULL));
}

/* ---- a connection ---- */

/* The name that the peer must prove, and, of a name, the one it is asked for. */
static int set_host(SSL *ssl, const char *host, bool address)
{
        X509_VERIFY_PARAM *param = SSL_get0_param(ssl);

        X509_VERIFY_PARAM_set_hostflags(param,
                                        X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
        if (address ? X509_VERIFY_PARAM_set1_ip_asc(param, host) == 1
                    : SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1)
                return 0;
        return rs_tls_fail(-ENOMEM, host); /* the name itself has been looked at before */
}

static int set_protocols(SSL *ssl, const char *const *list)
{
        struct rs_tls_note *note = rs_tls_note_of(ssl);
        int rc = rs_tls_protocols_new(list, &note->alpn);

        if (rc == 0 && !SSL_is_server(ssl) && SSL_set_alpn_protos(ssl, note->alpn->bytes, note->alpn->size) != 0)
                rc = rs_tls_fail(-ENOMEM, "protocols to be offered");
        return rc;
}

static int prepare(const resha_tls *t, SSL *ssl, const resha_tls_start_opts *o)
{
        char host[RS_TLS_HOST_MAX + 1] = "";
        bool address = false;
        int rc = !t->server && o->host ? rs_tls_host_check(o->host, host, &address) : 0;

        if (rc == 0)
                rc = rs_tls_note_attach(ssl, host, o->port);
        if (rc == 0 && host[0])
                rc = set_host(ssl, host, address);
        if (rc == 0 && o->alpn)
                rc = set_protocols(ssl, o->alpn);
        if (rc == 0 && host[0])
                rs_tls_session_resume(ssl);
        return rc;
}

int rs_tls_ssl_new(resha_tls *t, const resha_tls_start_opts *opts, SSL **ret_ssl)
{
        static const resha_tls_start_opts defaults;
        const resha_tls_start_opts *o = opts ? opts : &defaults;

        if (!t->server && !o->host && !t->insecure)
                return resha_fail(-EINVAL, "TLS to nobody in particular: say in `host` who the peer must be");
        tell_insecure(t);
        ERR_clear_error();
        pthread_mutex_lock(&t->lock);
        SSL *ssl = SSL_new(t->ctx);
        pthread_mutex_unlock(&t->lock);
        if (!ssl)
                return rs_tls_fail(-ENOMEM, "a connection of OpenSSL");
        if (t->server)
                SSL_set_accept_state(ssl);
        else
                SSL_set_connect_state(ssl);
        int rc = prepare(t, ssl, o);
        if (rc < 0)
                SSL_free(ssl);
        else
                *ret_ssl = ssl;
        return rc;
}
