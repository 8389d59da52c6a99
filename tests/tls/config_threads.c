/* SPDX-License-Identifier: MIT */
/* One configuration for all: loops on threads of their own make connections with it while another thread reloads it.
 * Each connection sees one state or the other, whole; sessions and keys of tickets are shared. Under TSan this is the
 * test of the locks. */

#include "handshake.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include <openssl/crypto.h>

enum { THREADS = 3, ROUNDS = 60, RELOADS = 25 };

static struct {
        resha_tls *client, *server;
        const char *cert[2], *key[2], *path[2];
        atomic_uint resumed, first, second, running;
} shared;

static int connects(__attribute__((unused)) void *arg)
{
        for (int i = 0; i < ROUNDS; i++) {
                struct shake s = { .client = shared.client, .server = shared.server, .opts.port = 443 };
                shake(&s);
                ASSERT_STR(s.text[0], "");
                ASSERT_STR(s.text[1], "");
                ASSERT_TRUE(s.verified);
                atomic_fetch_add(s.resumed ? &shared.resumed : s.name[0] == 'F' ? &shared.first : &shared.second, 1);
                shake_free(&s);
                int rc = resha_yield();
                if (rc < 0)
                        return rc;
        }
        return 0;
}

static int reloads(__attribute__((unused)) void *arg)
{
        for (int i = 0; i < RELOADS || atomic_load(&shared.running); i++) {
                temp_file("cert.pem", shared.cert[i % 2]);
                temp_file("key.pem", shared.key[i % 2]);
                int rc = resha_tls_reload(shared.server);
                if (rc == 0)
                        rc = resha_tls_reload(shared.client);
                if (rc == 0)
                        rc = resha_sleep(RESHA_MS(1));
                if (rc < 0)
                        return rc;
        }
        return 0;
}

/* OpenSSL keeps things for each thread, and lets them go when the thread ends. */
static void *run_loop(void *fn)
{
        resha_tls *t = resha_tls_ref(shared.server);

        ASSERT_OK(resha_run(fn == (void *)1 ? connects : reloads, NULL, &(resha_run_opts){ .backend = "epoll" }));
        resha_tls_unref(t);
        if (fn == (void *)1)
                atomic_fetch_sub(&shared.running, 1);
        return NULL;
}

static void make(void)
{
        static const char *const names[] = { "First", "Second" };

        for (int i = 0; i < 2; i++) {
                const struct cert_opts opts = { .name = names[i], .alt = "DNS:a.example" };
                const struct cert *leaf = cert_new(good_middle(), &opts);
                shared.cert[i] = cert_chain_pem(leaf);
                shared.key[i] = cert_key_pem(leaf);
        }
        shared.server = server_of(&(resha_tls_opts){ .cert_file = temp_file("cert.pem", shared.cert[0]),
                                                     .key_file = temp_file("key.pem", shared.key[0]) });
        shared.client = client_of(
                &(resha_tls_opts){ .trust_file = temp_file("root.pem", cert_pem(good_root())), .sessions = 4 });
}

TEST(loops_share_a_configuration_that_is_reloaded)
{
        pthread_t threads[THREADS + 1];

        make();
        atomic_store(&shared.running, THREADS);
        for (int i = 0; i <= THREADS; i++)
                if (pthread_create(&threads[i], NULL, run_loop, i < THREADS ? (void *)1 : NULL) != 0)
                        FAIL("no thread");
        for (int i = 0; i <= THREADS; i++)
                pthread_join(threads[i], NULL);
        ASSERT_EQ(shared.resumed + shared.first + shared.second, THREADS * ROUNDS);
        ASSERT_TRUE(shared.resumed > 0);
        resha_tls_unref(shared.client);
        resha_tls_unref(shared.server);
}
