/* SPDX-License-Identifier: MIT */
/* Tickets of a server: it keeps no sessions, its clients do, sealed with a key that only it has.
 *
 * Whoever learns such a key can read all connections of TLS 1.2 that were resumed with it, so keys do not live long: a
 * new one seals after an hour, and the two before it still open theirs, for longer than a ticket is good. They outlive
 * a reload (what a ticket says about the client is bound to those trusted then, see context.c), and go with the last
 * SSL_CTX that was made for them. They never leave the process.
 *
 * Invariants: keys[0] is the newest; `count` of them are set, at least one. Under the lock: loops share them. */

#include <string.h>
#include <time.h>

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include "config.h"

#include <resha/alloc.h>

enum { KEYS = 3, SEALS_FOR = 3600, OPENS_FOR = KEYS * SEALS_FOR, GOOD_FOR = 7200 };

struct key {
        unsigned char name[16], cipher[32], mac[32];
        int64_t made; /* seconds, of a clock that nobody sets */
};

struct rs_tls_tickets {
        atomic_uint refs;
        pthread_mutex_t lock;
        struct key keys[KEYS];
        unsigned count;
        int64_t shift; /* seconds that tests have let pass */
};

static int64_t now(const struct rs_tls_tickets *t)
{
        struct timespec ts;

        clock_gettime(CLOCK_BOOTTIME, &ts);
        return (int64_t)ts.tv_sec + t->shift;
}

/* A new key before the others; the last one goes. */
static bool rotate(struct rs_tls_tickets *t)
{
        struct key k = { .made = now(t) };

        if (RAND_bytes(k.name, sizeof k.name) != 1 || RAND_priv_bytes(k.cipher, sizeof k.cipher) != 1 ||
            RAND_priv_bytes(k.mac, sizeof k.mac) != 1)
                return false;
        memmove(&t->keys[1], &t->keys[0], (KEYS - 1) * sizeof t->keys[0]);
        t->keys[0] = k;
        t->count += t->count < KEYS;
        OPENSSL_cleanse(&k, sizeof k);
        return true;
}

int rs_tls_tickets_new(struct rs_tls_tickets **ret_tickets)
{
        struct rs_tls_tickets *t = resha_calloc(1, sizeof *t);

        if (!t)
                return resha_fail(-ENOMEM, "no memory for keys of tickets");
        if (!rotate(t)) {
                resha_free(t);
                return rs_tls_fail(-EIO, "random numbers for keys of tickets");
        }
        atomic_init(&t->refs, 1);
        pthread_mutex_init(&t->lock, NULL);
        *ret_tickets = t;
        return 0;
}

/* A copy of the key that seals. */
static bool sealing_key(struct rs_tls_tickets *t, struct key *k)
{
        pthread_mutex_lock(&t->lock);
        bool good = now(t) - t->keys[0].made < SEALS_FOR || rotate(t);
        *k = t->keys[0];
        pthread_mutex_unlock(&t->lock);
        return good;
}

/* A copy of the key of that name: 1; 2 if it seals no more; 0 there is none. */
static int opening_key(struct rs_tls_tickets *t, const unsigned char name[16], struct key *k)
{
        int found = 0;

        pthread_mutex_lock(&t->lock);
        for (unsigned i = 0; i < t->count; i++) {
                int64_t age = now(t) - t->keys[i].made;
                if (age < OPENS_FOR && memcmp(t->keys[i].name, name, 16) == 0) {
                        *k = t->keys[i];
                        found = i == 0 && age < SEALS_FOR ? 1 : 2;
                }
        }
        pthread_mutex_unlock(&t->lock);
        return found;
}

static bool set_mac(EVP_MAC_CTX *mac, struct key *k)
{
        OSSL_PARAM params[] = {
                OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, k->mac, sizeof k->mac),
                OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char[]){ "SHA256" }, 0),
                OSSL_PARAM_construct_end(),
        };

        return EVP_MAC_CTX_set_params(mac, params) == 1;
}

/* OpenSSL's callback: 1 go on; 2 the same, with a new ticket; 0 no ticket; -1 failed. */
static int prepare(SSL *ssl, unsigned char name[16], unsigned char *iv, EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac,
                   int seal)
{
        const struct rs_tls_note *note = rs_tls_note_of(ssl);
        struct rs_tls_tickets *t = note && note->set ? note->set->tickets : NULL;
        struct key k;
        int rc;

        if (!t)
                return 0;
        if (seal) {
                rc = sealing_key(t, &k) && RAND_bytes(iv, 16) == 1 ? 1 : -1;
                memcpy(name, k.name, sizeof k.name);
        } else {
                rc = opening_key(t, name, &k);
                if (rc == 1 && SSL_version(ssl) >= TLS1_3_VERSION)
                        rc = 2; /* one ticket is for one connection: who comes with the last one needs another */
        }
        if (rc > 0 &&
            (EVP_CipherInit_ex2(cipher, EVP_aes_256_cbc(), k.cipher, iv, seal, NULL) != 1 || !set_mac(mac, &k)))
                rc = -1;
        OPENSSL_cleanse(&k, sizeof k);
        return rc;
}

/* Whether a ticket that could be opened counts: not if the client's certificate has expired since. */
static SSL_TICKET_RETURN judge(SSL *ssl, SSL_SESSION *session, const unsigned char *name, size_t name_size,
                               SSL_TICKET_STATUS status, void *arg)
{
        bool opened = status == SSL_TICKET_SUCCESS || status == SSL_TICKET_SUCCESS_RENEW;

        (void)ssl, (void)name, (void)name_size, (void)arg;
        if (!opened || !rs_tls_session_fresh(session))
                return SSL_TICKET_RETURN_IGNORE_RENEW;
        return status == SSL_TICKET_SUCCESS ? SSL_TICKET_RETURN_USE : SSL_TICKET_RETURN_USE_RENEW;
}

int rs_tls_tickets_use(SSL_CTX *ctx, bool with_peers)
{
        SSL_CTX_set_timeout(ctx, GOOD_FOR);
        if (SSL_CTX_set_tlsext_ticket_key_evp_cb(ctx, prepare) != 1)
                return -ENOMEM;
        if (with_peers && SSL_CTX_set_session_ticket_cb(ctx, NULL, judge, NULL) != 1)
                return -ENOMEM;
        return 0;
}

void rs_tls_tickets_age(struct rs_tls_tickets *t, int64_t seconds)
{
        pthread_mutex_lock(&t->lock);
        t->shift += seconds;
        pthread_mutex_unlock(&t->lock);
}

struct rs_tls_tickets *rs_tls_tickets_ref(struct rs_tls_tickets *t)
{
        if (t)
                atomic_fetch_add(&t->refs, 1);
        return t;
}

void rs_tls_tickets_unref(struct rs_tls_tickets *t)
{
        if (!t || atomic_fetch_sub(&t->refs, 1) != 1)
                return;
        pthread_mutex_destroy(&t->lock);
        OPENSSL_cleanse(t->keys, sizeof t->keys);
        resha_free(t);
}
