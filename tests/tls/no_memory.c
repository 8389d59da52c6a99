/* SPDX-License-Identifier: MIT */
/* OpenSSL's memory runs out: its n-th allocation fails, for every n, in the making of a configuration and of a
 * connection, and in a whole handshake. Each time there is a failure that says so, or none at all; never a peer that
 * was not verified, and never a crash. */

#include "handshake.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>

#include "config.h"

/* Which allocation from now on fails; 0: none. `failed`: one has. */
static atomic_int countdown;
static atomic_bool failed;

static bool fails(void)
{
        if (atomic_load(&countdown) == 0 || atomic_fetch_sub(&countdown, 1) != 1)
                return false;
        atomic_store(&failed, true);
        return true;
}

/* The C library's own, past resha's: what OpenSSL keeps for the whole process would look like a leak there. */
static void *retake(void *p, size_t size, const char *file, int line)
{
        (void)file, (void)line;
        return fails() ? NULL : reallocarray(p, 1, size);
}

static void *take(size_t size, const char *file, int line)
{
        return retake(NULL, size, file, line);
}

static void let_go(void *p, const char *file, int line)
{
        (void)file, (void)line;
        p = p ? reallocarray(p, 1, 0) : NULL;
}

__attribute__((constructor)) static void set_functions(void)
{
        if (CRYPTO_set_mem_functions(take, retake, let_go) != 1)
                abort();
}

static struct {
        const char *cert, *key, *root;
} pem;

static int makes(resha_tls **client, resha_tls **server)
{
        int rc = resha_tls_client(&(resha_tls_opts){ .trust_pem = pem.root }, client);

        if (rc == 0)
                rc = resha_tls_server(&(resha_tls_opts){ .cert_pem = pem.cert,
                                                         .key_pem = pem.key,
                                                         .trust_pem = pem.root,
                                                         .peer = RESHA_TLS_PEER_ASK },
                                      server);
        return rc;
}

static void prepare(void)
{
        const struct cert *leaf = good_leaf("a.example");

        pem.cert = cert_chain_pem(leaf);
        pem.key = cert_key_pem(leaf);
        pem.root = cert_pem(good_root());
}

/* Not each of thousands: all of the first ones, and then fewer and fewer. */
static int next(int n)
{
        return n + 1 + n / 30;
}

TASK(making_a_configuration)
{
        resha_tls *client = NULL, *server = NULL;
        int n, refused = 0;

        prepare();
        ASSERT_OK(makes(&client, &server)); /* what is loaded once is there */
        resha_tls_unrefp(&client);
        resha_tls_unrefp(&server);
        for (n = 1; n == 1 || failed; n = next(n)) {
                failed = false;
                atomic_store(&countdown, n);
                int rc = makes(&client, &server);
                atomic_store(&countdown, 0);
                ASSERT_TRUE(rc == 0 || failed);
                refused += rc == -ENOMEM;
                resha_tls_unrefp(&client);
                resha_tls_unrefp(&server);
        }
        ASSERT_TRUE(refused > 10);
        return 0;
}

static int at;

/* Between the making of both ends and their handshake. */
static int arm(resha_tls *client)
{
        (void)client;
        failed = false;
        atomic_store(&countdown, at);
        return 0;
}

/* Whatever fails: what is not this host is never taken for it. */
static void shakes(const char *host, bool good)
{
        resha_tls *client = NULL, *server = NULL;
        int through = 0;

        ASSERT_OK(makes(&client, &server));
        for (at = 1; at == 1 || failed; at = next(at)) {
                struct shake s = { .client = client, .server = server, .opts.host = host, .before = arm };
                shake(&s);
                atomic_store(&countdown, 0);
                bool open = s.rc[0] == 0 && SSL_is_init_finished(s.ssl[0]); /* else it may wait still */
                ASSERT_TRUE(!open || (good && s.verified));
                ASSERT_TRUE(s.rc[0] == 0 || s.text[0][0]);
                through += open;
                shake_free(&s);
        }
        ASSERT_TRUE(good ? through > 0 : through == 0);
        resha_tls_unref(client);
        resha_tls_unref(server);
}

TASK(handshakes)
{
        prepare();
        shakes("a.example", true);
        shakes("b.example", false);
        return 0;
}
