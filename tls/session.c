/* SPDX-License-Identifier: MIT */
/* Sessions that a client keeps for resumption: of each host and port the newest ones, of all at most so many; the one
 * that was not used for the longest goes first.
 *
 * A resumed handshake verifies nothing: the server proves that it is the one that was verified then. So a session is
 * kept only of a connection whose peer was verified, under the name it was verified for; it is given only to one who
 * wants that name; it is dropped once the certificate has expired; and with those that are trusted, or our own
 * certificate, changed by a reload, all go: `digest` is of these.
 *
 * A session of TLS 1.3 is used once: who uses it takes it out. Of TLS 1.2 a copy is used, and it stays.
 *
 * Invariants: each entry is in the bucket of its key and in the list; count <= most. All under the lock: the cache is
 * shared by loops. Counted: by the configuration, and by each SSL_CTX that was made for it. */

#include <string.h>
#include <time.h>

#include <openssl/rand.h>

#include "config.h"

#include <resha/alloc.h>

enum { OF_ONE_HOST = 16 };

struct entry {
        struct entry *chain;         /* in its bucket */
        struct entry *newer, *older; /* in the list */
        SSL_SESSION *session;
        uint64_t hash;
        uint16_t port;
        char host[];
};

struct rs_tls_sessions {
        atomic_uint refs;
        pthread_mutex_t lock;
        unsigned char digest[RS_TLS_DIGEST];
        struct entry *newest, *oldest;
        unsigned count, most;
        uint64_t seed, mask;
        struct entry *buckets[];
};

int rs_tls_sessions_new(unsigned most, struct rs_tls_sessions **ret_sessions)
{
        size_t buckets = 16;

        while (buckets < most)
                buckets *= 2;
        struct rs_tls_sessions *s = resha_calloc(1, sizeof *s + buckets * sizeof s->buckets[0]);
        if (!s)
                return resha_fail(-ENOMEM, "no memory to keep sessions");
        atomic_init(&s->refs, 1);
        pthread_mutex_init(&s->lock, NULL);
        s->most = most;
        s->mask = buckets - 1;
        /* names may be chosen to collide; if this fails, so be it */
        RAND_bytes((unsigned char *)&s->seed, sizeof s->seed);
        *ret_sessions = s;
        return 0;
}

/* FNV-1a, from a secret start. */
static uint64_t hash_of(const struct rs_tls_sessions *s, const char *host, uint16_t port)
{
        uint64_t h = s->seed ^ 14695981039346656037u ^ port;

        for (; *host; host++)
                h = (h ^ (unsigned char)*host) * 1099511628211u;
        return h ^ h >> 32;
}

static void discard(struct rs_tls_sessions *s, struct entry *e)
{
        struct entry **at = &s->buckets[e->hash & s->mask];

        while (*at != e)
                at = &(*at)->chain;
        *at = e->chain;
        *(e->newer ? &e->newer->older : &s->newest) = e->older;
        *(e->older ? &e->older->newer : &s->oldest) = e->newer;
        s->count--;
        SSL_SESSION_free(e->session);
        resha_free(e);
}

/* The newest one of a key, which comes first in its bucket; how many there are, and the oldest of them. */
static struct entry *find(struct rs_tls_sessions *s, uint64_t hash, const char *host, uint16_t port, unsigned *ret_n,
                          struct entry **ret_last)
{
        struct entry *first = NULL;

        *ret_n = 0;
        for (struct entry *e = s->buckets[hash & s->mask]; e; e = e->chain)
                if (e->hash == hash && e->port == port && strcmp(e->host, host) == 0) {
                        first = first ? first : e;
                        *ret_last = e;
                        ++*ret_n;
                }
        return first;
}

static void add(struct rs_tls_sessions *s, struct entry *e)
{
        struct entry *last = NULL;
        unsigned n;

        find(s, e->hash, e->host, e->port, &n, &last);
        if (n >= OF_ONE_HOST)
                discard(s, last);
        else if (s->count == s->most)
                discard(s, s->oldest);
        e->chain = s->buckets[e->hash & s->mask];
        s->buckets[e->hash & s->mask] = e;
        e->older = s->newest;
        *(s->newest ? &s->newest->newer : &s->oldest) = e;
        s->newest = e;
        s->count++;
}

/* OpenSSL's callback: 1 if the session is ours now. */
int rs_tls_session_keep(SSL *ssl, SSL_SESSION *session)
{
        const struct rs_tls_note *note = rs_tls_note_of(ssl);
        const struct rs_tls_set *set = note ? note->set : NULL;
        struct rs_tls_sessions *s = set ? set->sessions : NULL;

        if (!s || !note->host[0] || !SSL_SESSION_is_resumable(session))
                return 0;
        if (SSL_get_verify_mode(ssl) != SSL_VERIFY_NONE && SSL_get_verify_result(ssl) != X509_V_OK)
                return 0;
        size_t size = strlen(note->host) + 1;
        struct entry *e = resha_calloc(1, sizeof *e + size);
        if (!e)
                return 0;
        memcpy(e->host, note->host, size);
        e->port = note->port;
        e->hash = hash_of(s, e->host, e->port);
        e->session = session;
        pthread_mutex_lock(&s->lock);
        bool current = memcmp(s->digest, set->digest, RS_TLS_DIGEST) == 0;
        if (current)
                add(s, e);
        pthread_mutex_unlock(&s->lock);
        if (!current)
                resha_free(e);
        return current;
}

bool rs_tls_session_fresh(const SSL_SESSION *session)
{
        const X509 *peer = SSL_SESSION_get0_peer((SSL_SESSION *)session);

        return !peer || X509_cmp_current_time(X509_get0_notAfter(peer)) > 0;
}

static bool is_good(const SSL_SESSION *session)
{
        time_t now = time(NULL), made = (time_t)SSL_SESSION_get_time(session);

        return made <= now && now - made < SSL_SESSION_get_timeout(session) && rs_tls_session_fresh(session);
}

/* The newest good one, which the caller owns; or NULL. Those before it that are good no more go. */
static SSL_SESSION *take(struct rs_tls_sessions *s, const char *host, uint16_t port)
{
        uint64_t hash = hash_of(s, host, port);
        struct entry *last = NULL, *e;
        SSL_SESSION *found = NULL;
        unsigned n;

        while (!found && (e = find(s, hash, host, port, &n, &last))) {
                bool once = SSL_SESSION_get_protocol_version(e->session) >= TLS1_3_VERSION;
                bool good = is_good(e->session);
                if (good && !once)
                        return SSL_SESSION_dup(e->session);
                if (good) {
                        found = e->session;
                        SSL_SESSION_up_ref(found);
                }
                discard(s, e);
        }
        return found;
}

void rs_tls_session_resume(SSL *ssl)
{
        const struct rs_tls_note *note = rs_tls_note_of(ssl);
        const struct rs_tls_set *set = note->set;
        struct rs_tls_sessions *s = set->sessions;

        if (!s || !note->host[0])
                return;
        pthread_mutex_lock(&s->lock);
        bool current = memcmp(s->digest, set->digest, RS_TLS_DIGEST) == 0;
        SSL_SESSION *session = current && s->count ? take(s, note->host, note->port) : NULL;
        pthread_mutex_unlock(&s->lock);
        if (session)
                SSL_set_session(ssl, session);
        SSL_SESSION_free(session);
}

unsigned rs_tls_sessions_count(struct rs_tls_sessions *s)
{
        pthread_mutex_lock(&s->lock);
        unsigned n = s->count;
        pthread_mutex_unlock(&s->lock);
        return n;
}

void rs_tls_sessions_renew(struct rs_tls_sessions *s, const unsigned char digest[RS_TLS_DIGEST])
{
        pthread_mutex_lock(&s->lock);
        if (memcmp(s->digest, digest, RS_TLS_DIGEST) != 0)
                while (s->oldest)
                        discard(s, s->oldest);
        memcpy(s->digest, digest, RS_TLS_DIGEST);
        pthread_mutex_unlock(&s->lock);
}

struct rs_tls_sessions *rs_tls_sessions_ref(struct rs_tls_sessions *s)
{
        if (s)
                atomic_fetch_add(&s->refs, 1);
        return s;
}

void rs_tls_sessions_unref(struct rs_tls_sessions *s)
{
        if (!s || atomic_fetch_sub(&s->refs, 1) != 1)
                return;
        while (s->oldest)
                discard(s, s->oldest);
        pthread_mutex_destroy(&s->lock);
        resha_free(s);
}
