/* SPDX-License-Identifier: MIT */
#ifndef RS_TLS_CONFIG_H
#define RS_TLS_CONFIG_H

/* What the files of a configuration share among themselves.
 *
 * options.c    a copy of the options, checked
 * file.c       a file as a text; PEM in it
 * trust.c      whom to trust: an X509_STORE
 * own.c        who we are: certificates with their keys, by name
 * set.c        what goes with an SSL_CTX and with an SSL, for the callbacks
 * host.c       names of hosts: what can be one, what a pattern covers
 * alpn.c       protocols
 * verify.c     what is wrong with a certificate, in words
 * session.c    sessions of a client
 * ticket.c     keys of a server's tickets
 * context.c    the whole */

#include "tls.h"

enum {
        RS_TLS_DIGEST = 32,
        RS_TLS_HOST_MAX = 253, /* bytes of a name in the DNS */
        RS_TLS_WORDS = 200,    /* of what went wrong */
        RS_TLS_NAME_TEXT = 96, /* of a subject or name of a certificate, in such words */
};

/* ---- options.c ---- */

/* A copy of the options. All that they point to is its own. */
struct rs_tls_files {
        resha_tls_opts o;
};

int rs_tls_files_new(const resha_tls_opts *o, bool server, struct rs_tls_files **ret_files);
void rs_tls_files_free(struct rs_tls_files *f);

/* ---- file.c ---- */

/* A file's bytes, or a text of the options. */
struct rs_tls_text {
        const char *bytes;
        size_t size;
        char *own;       /* what is freed (and wiped: it may be a key); NULL: a text of the options */
        char label[128]; /* for errors: "trust_file \"ca.pem\"", "cert_pem" */
};

/* `option` names it: "cert_file"; path, or text. 0, or negative with a record that names the file. */
int rs_tls_text_open(const char *option, const char *path, const char *text, struct rs_tls_text *ret_text);
void rs_tls_text_close(struct rs_tls_text *t);

/* The next certificate of a BIO over a text: 1; 0 there is none; RESHA_TLS_ECERT, -ENOMEM with a record: the one behind
 * `count` others cannot be read. */
int rs_tls_next_cert(BIO *bio, const struct rs_tls_text *t, unsigned count, X509 **ret_cert);

/* ---- trust.c ---- */

/* Where a system has its authorities. Lists end with NULL; of the files the first that is there counts. */
struct rs_tls_places {
        const char *const *files;
        const char *const *dirs;
};

/* What the options name; of a client that names nothing, the system's. All that was read goes into the digest. */
int rs_tls_trust_load(const resha_tls_opts *o, bool server, X509_STORE **ret_store, EVP_MD_CTX *digest);
int rs_tls_trust_system(const struct rs_tls_places *places, X509_STORE *store, EVP_MD_CTX *digest);

/* ---- own.c ---- */

/* A certificate and its key into ctx; nothing, where there is none in n. */
int rs_tls_own_load(SSL_CTX *ctx, const resha_tls_name *n, EVP_MD_CTX *digest);

/* ---- set.c ---- */

struct rs_tls_tickets;

struct rs_tls_protocols {
        unsigned size;
        unsigned char bytes[]; /* as they travel: a length, and so many bytes; again */
};

struct rs_tls_named {
        char *host; /* "example.org", "*.example.org" */
        SSL_CTX *ctx;
};

/* Goes with an SSL_CTX and ends with it: connections go on with the one they began with. */
struct rs_tls_set {
        bool server;
        struct rs_tls_sessions *sessions;    /* counted; or NULL */
        struct rs_tls_tickets *tickets;      /* counted; or NULL */
        unsigned char digest[RS_TLS_DIGEST]; /* of all that decides whether a peer is trusted, and who we say we are */
        struct rs_tls_protocols *alpn;
        struct rs_tls_named *names;
        size_t name_count;
};

/* Goes with an SSL. */
struct rs_tls_note {
        const struct rs_tls_set *set;  /* of the SSL_CTX that it began with: SSL_get_SSL_CTX() may be that of a name */
        struct rs_tls_protocols *alpn; /* of this connection alone; or NULL */
        int code;                      /* what `words` are of; 0: nothing has gone wrong here */
        char words[RS_TLS_WORDS];
        uint16_t port;
        char host[]; /* of a client: whom the peer must be, in small letters; "": anybody */
};

/* Gives the SSL_CTX its set, which it owns from now on. */
int rs_tls_set_attach(SSL_CTX *ctx, struct rs_tls_set *set);
struct rs_tls_set *rs_tls_set_of(const SSL_CTX *ctx);
void rs_tls_set_free(struct rs_tls_set *set);
struct rs_tls_note *rs_tls_note_of(const SSL *ssl);
int rs_tls_note_attach(SSL *ssl, const char *host, uint16_t port);

/* Keeps the first words of what has gone wrong. */
void rs_tls_note_say(SSL *ssl, int code, const char *format, ...) RESHA_PRINTF(3, 4);

/* ---- host.c ---- */

/* Whether it can be a peer's name, and which: in small letters, without a dot at its end, brackets or zone. 0; -EINVAL
 * with a record that says what to write instead. */
int rs_tls_host_check(const char *host, char ret_host[RS_TLS_HOST_MAX + 1], bool *ret_address);

/* Whether the pattern covers the name. */
bool rs_tls_host_covers(const char *pattern, const char *name);

/* Names as options have them: 0; -EINVAL with a record. */
int rs_tls_pattern_check(const char *pattern);

/* ---- alpn.c ---- */

/* NULL of a NULL list. 0; -EINVAL, -ENOMEM with a record. */
int rs_tls_protocols_new(const char *const *list, struct rs_tls_protocols **ret_protocols);
int rs_tls_alpn_choose(SSL *ssl, const unsigned char **out, unsigned char *out_size, const unsigned char *in,
                       unsigned in_size, void *set);

/* "h2, http/1.1" */
void rs_tls_protocols_print(const unsigned char *bytes, unsigned size, char *text, size_t text_size);

/* ---- verify.c ---- */

int rs_tls_verify(int ok, X509_STORE_CTX *store);

/* A name as text of one line: "CN=example.org"; cut if long. */
void rs_tls_name_print(const X509_NAME *name, char *text, size_t size);

/* ---- session.c ---- */

int rs_tls_sessions_new(unsigned most, struct rs_tls_sessions **ret_sessions);
struct rs_tls_sessions *rs_tls_sessions_ref(struct rs_tls_sessions *s);
void rs_tls_sessions_unref(struct rs_tls_sessions *s);

/* From now on sessions count that were made where this was trusted. Others are dropped. */
void rs_tls_sessions_renew(struct rs_tls_sessions *s, const unsigned char digest[RS_TLS_DIGEST]);
int rs_tls_session_keep(SSL *ssl, SSL_SESSION *session);
void rs_tls_session_resume(SSL *ssl);
unsigned rs_tls_sessions_count(struct rs_tls_sessions *s);

/* Whether the peer's certificate in it has not expired since. */
bool rs_tls_session_fresh(const SSL_SESSION *session);

/* ---- ticket.c ---- */

int rs_tls_tickets_new(struct rs_tls_tickets **ret_tickets);
struct rs_tls_tickets *rs_tls_tickets_ref(struct rs_tls_tickets *t);
void rs_tls_tickets_unref(struct rs_tls_tickets *t);
int rs_tls_tickets_use(SSL_CTX *ctx, bool with_peers);

/* As if so many seconds had passed: for tests. */
void rs_tls_tickets_age(struct rs_tls_tickets *t, int64_t seconds);

#endif
