/* SPDX-License-Identifier: MIT */
/* Options of a configuration: what can be told to be wrong without reading a file, and a copy of them, for reload.
 *
 * Invariant: all that the copy points to is its own, or NULL; so a half-made copy is freed as a whole one. */

#include <string.h>

#include <openssl/crypto.h>

#include "config.h"

#include <resha/alloc.h>

enum { SESSIONS_MOST = 65536, NAMES_MOST = 65536 };

/* ---- checks ---- */

static bool zero(const uint64_t *words, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (words[i])
                        return false;
        return true;
}

static int invalid(const char *text)
{
        return resha_fail(-EINVAL, "options of TLS: %s", text);
}

static int check_own(const char *cert_file, const char *key_file, const char *cert_pem, const char *key_pem)
{
        if (cert_file && cert_pem)
                return invalid("cert_file and cert_pem: one of them");
        if (key_file && key_pem)
                return invalid("key_file and key_pem: one of them");
        if ((key_file || key_pem) && !cert_file && !cert_pem)
                return invalid("a key without a certificate: cert_file or cert_pem is missing");
        return 0;
}

static int check_names(const resha_tls_opts *o, bool server)
{
        if (o->name_count && (!o->names || !server))
                return invalid(server ? "name_count without names" : "names are a server's");
        if (o->name_count > NAMES_MOST)
                return invalid("name_count is more than 65536");
        for (size_t i = 0; i < o->name_count; i++) {
                const resha_tls_name *n = &o->names[i];
                if (!zero(n->_reserved, 2))
                        return invalid("a reserved word of a name is not zero");
                int rc = rs_tls_pattern_check(n->host);
                if (rc == 0 && !n->cert_file && !n->cert_pem)
                        rc = resha_fail(-EINVAL, "options of TLS: the name \"%s\" has no certificate", n->host);
                if (rc == 0)
                        rc = check_own(n->cert_file, n->key_file, n->cert_pem, n->key_pem);
                if (rc < 0)
                        return rc;
        }
        return 0;
}

static bool is_version(enum resha_tls_version v)
{
        return !v || v == RESHA_TLS_1_2 || v == RESHA_TLS_1_3;
}

static int check_role(const resha_tls_opts *o, bool server)
{
        bool trust = o->trust_file || o->trust_dir || o->trust_pem;

        if (server && o->insecure)
                return invalid("insecure is a client's; a server does not ask for certificates unless `peer` says so");
        if (server && !o->cert_file && !o->cert_pem)
                return invalid("a server needs a certificate: cert_file or cert_pem");
        if (server && o->peer != RESHA_TLS_PEER_NONE && !trust)
                return invalid(
                        "certificates of clients: trust_file, trust_dir or trust_pem must say who may sign them");
        if (!server && o->peer != RESHA_TLS_PEER_NONE)
                return invalid("peer is a server's: a client verifies its server always");
        return 0;
}

static int check(const resha_tls_opts *o, bool server)
{
        if (!zero(o->_reserved, sizeof o->_reserved / sizeof o->_reserved[0]))
                return invalid("a reserved word is not zero");
        if (!is_version(o->min_version) || !is_version(o->max_version))
                return invalid("min_version and max_version are RESHA_TLS_1_2 or RESHA_TLS_1_3: older ones are broken");
        if (o->max_version && o->min_version > o->max_version)
                return invalid("min_version is above max_version");
        if ((unsigned)o->peer > RESHA_TLS_PEER_REQUIRE)
                return invalid("peer is none of RESHA_TLS_PEER_...");
        if (o->sessions > SESSIONS_MOST)
                return invalid("sessions is more than 65536");
        if (o->handshake.ns < 0 || o->shutdown.ns < 0)
                return invalid("a time is negative");
        int rc = check_role(o, server);
        if (rc == 0)
                rc = check_own(o->cert_file, o->key_file, o->cert_pem, o->key_pem);
        return rc < 0 ? rc : check_names(o, server);
}

/* ---- the copy ---- */

static bool copy_text(const char **text)
{
        return !*text || (*text = resha_strdup(*text));
}

/* Texts may be keys. */
static void free_text(const char *text)
{
        if (text)
                OPENSSL_cleanse((char *)text, strlen(text));
        resha_free((char *)text);
}

/* Where the texts of the options are. */
enum { TEXTS = 10 };
static void texts_of(resha_tls_opts *o, const char **texts[TEXTS])
{
        const char **all[TEXTS] = { &o->trust_file, &o->trust_dir, &o->trust_pem, &o->crl_file, &o->cert_file,
                                    &o->key_file,   &o->cert_pem,  &o->key_pem,   &o->ciphers,  &o->suites };

        memcpy(texts, all, sizeof all);
}

static void texts_of_name(resha_tls_name *n, const char **texts[5])
{
        const char **all[5] = { &n->host, &n->cert_file, &n->key_file, &n->cert_pem, &n->key_pem };

        memcpy(texts, all, sizeof all);
}

/* Copies n texts, or makes those NULL that could not be. */
static bool copy_texts(const char **texts[], size_t n)
{
        bool good = true;

        for (size_t i = 0; i < n; i++)
                if (!good)
                        *texts[i] = NULL;
                else
                        good = copy_text(texts[i]);
        return good;
}

static bool copy_names(resha_tls_opts *o, const resha_tls_opts *from)
{
        const char **texts[5];

        o->name_count = 0;
        o->names = NULL;
        if (!from->name_count)
                return true;
        resha_tls_name *names = resha_calloc(from->name_count, sizeof *names);
        if (!names)
                return false;
        o->names = names;
        for (size_t i = 0; i < from->name_count; i++) {
                names[i] = from->names[i];
                o->name_count++;
                texts_of_name(&names[i], texts);
                if (!copy_texts(texts, 5))
                        return false;
        }
        return true;
}

static bool copy_alpn(resha_tls_opts *o, const resha_tls_opts *from)
{
        size_t n = 0;

        o->alpn = NULL;
        if (!from->alpn)
                return true;
        while (from->alpn[n])
                n++;
        const char **list = resha_calloc(n + 1, sizeof *list);
        if (!list)
                return false;
        o->alpn = list;
        for (size_t i = 0; i < n; i++)
                if (!(list[i] = resha_strdup(from->alpn[i])))
                        return false;
        return true;
}

int rs_tls_files_new(const resha_tls_opts *o, bool server, struct rs_tls_files **ret_files)
{
        const char **texts[TEXTS];
        int rc = check(o, server);

        if (rc < 0)
                return rc;
        struct rs_tls_files *f = resha_malloc(sizeof *f);
        if (!f)
                return resha_fail(-ENOMEM, "no memory for a TLS configuration");
        f->o = *o;
        texts_of(&f->o, texts);
        bool good = copy_texts(texts, TEXTS);
        good = copy_names(&f->o, good ? o : &(resha_tls_opts){ 0 }) && good;
        good = copy_alpn(&f->o, good ? o : &(resha_tls_opts){ 0 }) && good;
        if (!good) {
                rs_tls_files_free(f);
                return resha_fail(-ENOMEM, "no memory for a TLS configuration");
        }
        *ret_files = f;
        return 0;
}

void rs_tls_files_free(struct rs_tls_files *f)
{
        const char **texts[TEXTS];

        if (!f)
                return;
        texts_of(&f->o, texts);
        for (size_t i = 0; i < TEXTS; i++)
                free_text(*texts[i]);
        for (size_t i = 0; i < f->o.name_count; i++) {
                texts_of_name((resha_tls_name *)&f->o.names[i], texts);
                for (size_t k = 0; k < 5; k++)
                        free_text(*texts[k]);
        }
        resha_free((resha_tls_name *)f->o.names);
        for (size_t i = 0; f->o.alpn && f->o.alpn[i]; i++)
                free_text(f->o.alpn[i]);
        resha_free((void *)f->o.alpn);
        resha_free(f);
}
