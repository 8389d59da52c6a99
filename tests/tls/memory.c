/* SPDX-License-Identifier: MIT */
/* OpenSSL's own allocations fail, one after another: in the making of a connection, in a conversation, at its end. Each
 * time there is an error or none, never a crash, a hang or wrong bytes, and all that is ours is released. What OpenSSL
 * leaves behind when it finds no memory (some of a certificate that it was reading) is not: its memory comes from the C
 * library here, and is looked at only where nothing has failed. */

#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/err.h>

#include "common.h"

static void *(*const c_realloc)(void *old, size_t size) = realloc;
static void (*const c_free)(void *p) = free;
static long live, made, countdown; /* countdown: the allocation that fails, from 1; 0: none */

static bool fails(void)
{
        made++;
        return countdown > 0 && --countdown == 0;
}

static void *allocate(size_t size, __attribute__((unused)) const char *file, __attribute__((unused)) int line)
{
        void *p = fails() ? NULL : c_realloc(NULL, size);

        live += p != NULL;
        return p;
}

static void *reallocate(void *old, size_t size, __attribute__((unused)) const char *file,
                        __attribute__((unused)) int line)
{
        void *p = fails() ? NULL : c_realloc(old, size);

        live += p && !old;
        return p;
}

static void release(void *p, __attribute__((unused)) const char *file, __attribute__((unused)) int line)
{
        live -= p != NULL;
        c_free(p);
}

/* Before anything is allocated. */
__attribute__((constructor)) static void count_allocations(void)
{
        if (CRYPTO_set_mem_functions(allocate, reallocate, release) != 1)
                abort();
}

static resha_tls *client, *server;

static int converse(__attribute__((unused)) void *arg)
{
        struct tls_pair p = { .client = client, .server = server };
        char buf[8] = "";
        ssize_t n = 0;
        int rc = tls_pair_open(&p);

        for (int i = 0; rc == 0 && n >= 0 && i < 2; i++) {
                rc = resha_write_all(p.secure[i], "hello", 5, NULL);
                if (rc == 0 && (n = resha_read(p.secure[!i], buf, 5)) > 0)
                        ASSERT_EQ(memcmp(buf, "hello", (size_t)n), 0);
        }
        for (int i = 0; rc < 0 && i < 2; i++)
                if (p.plain[i])
                        resha_stream_abort(p.plain[i]);
        tls_pair_close(&p);
        countdown = 0;
        ERR_clear_error();
        return rc < 0 ? rc : n < 0 ? (int)n : 0;
}

static long run_once(long fail, int *ret_rc)
{
        long before = live;

        countdown = fail;
        *ret_rc = test_run_opts(converse, NULL, NULL);
        countdown = 0;
        return live - before;
}

static bool is_expected(int rc)
{
        switch (rc) {
        case 0:
        case -ENOMEM:
        case -ECONNRESET:
        case -EPIPE:
        case -ECONNABORTED:
        case RESHA_TLS_EHANDSHAKE:
        case RESHA_TLS_EPROTOCOL:
        case RESHA_TLS_EVERIFY:
        case RESHA_TLS_ETRUNCATED: return true;
        default: return false;
        }
}

static void fail_each(const resha_tls_opts *opts)
{
        long failures = 0, total = 0, left;
        int rc;

        client = tls_client(opts);
        server = tls_server(opts);
        for (int i = 0; i < 3; i++) {
                made = 0;
                left = run_once(0, &rc);
                ASSERT_OK(rc);
                total = made;
        }
        ASSERT_EQ(left, 0);
        for (long n = 1; n <= total; n += 1 + n / 400) {
                (void)run_once(n, &rc);
                if (!is_expected(rc))
                        FAIL("allocation %ld: the result is %d: %s", n, rc, resha_strerror(rc));
                failures += rc < 0;
        }
        left = run_once(0, &rc); /* all is well again */
        ASSERT_OK(rc);
        ASSERT_EQ(left, 0);
        ASSERT_TRUE(failures > 100);
        printf("%ld failures, of %ld allocations\n", failures, total);
        resha_tls_unref(client);
        resha_tls_unref(server);
}

TEST(tls_allocations_of_openssl_fail)
{
        fail_each(&(resha_tls_opts){ .no_sessions = true });
}

TEST(tls_allocations_of_openssl_fail_in_tls_1_2)
{
        fail_each(&(resha_tls_opts){ .no_sessions = true, .max_version = RESHA_TLS_1_2 });
}
