/* SPDX-License-Identifier: MIT */
/* TLS: whom it trusts, and how much stack it needs. */

#include "fixture.h"

#include <resha/error.h>

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *secure_url(const char *host, int port)
{
        static char url[64];
        snprintf(url, sizeof url, "https://%s:%d/ok", host, port);
        return url;
}

NETWORK_TLS(certificates_are_verified)
{
        fixture_fail(f->h, secure_url("localhost", f->https), RESHA_HTTP_ETLS,
                     "a private authority is trusted by ca_file");
        fixture_fail(f->h, secure_url("localhost", f->selfsigned), RESHA_HTTP_ETLS, "self-signed certificate");
        resha_http *h = fixture_session((resha_http_opts){ .ca_file = f->ca });
        fixture_get(h, secure_url("localhost", f->https), 200, "hello");
        fixture_get(h, secure_url("127.0.0.1", f->https), 200, "hello");
        fixture_fail(h, secure_url("localhost", f->wrong), RESHA_HTTP_ETLS, "localhost");
        ASSERT_FALSE(strstr(resha_error_of(RESHA_HTTP_ETLS)->text, "trusted by"));
        fixture_fail(h, secure_url("localhost", f->http), RESHA_HTTP_ETLS, "does that port speak TLS?");
        fixture_fail(h, secure_url("localhost", f->selfsigned), RESHA_HTTP_ETLS, "self-signed certificate");
        resha_http_free(h);
        return 0;
}

NETWORK_TLS(verification_can_be_switched_off_loudly)
{
        resha_http *h = fixture_session((resha_http_opts){ .insecure_no_verify = true });
        fixture_get(h, secure_url("localhost", f->selfsigned), 200, "hello");
        fixture_get(h, secure_url("localhost", f->wrong), 200, "hello");
        resha_http_free(h);
        return 0;
}

NETWORK_TLS(authorities_that_cannot_be_read)
{
        resha_http *h = fixture_session((resha_http_opts){ .ca_file = "/nonexistent/ca.pem" });
        fixture_fail(h, secure_url("localhost", f->https), RESHA_HTTP_ETLS, "/nonexistent/ca.pem");
        resha_http_free(h);
        return 0;
}

static const char *forked_url;

/* By exit(), with what libraries have registered for it. Under ASan leaks are looked for there, but not on the stacks
 * of tasks. */
static int use_the_parents_session(void *arg)
{
        resha_response *r = NULL;

        ASSERT_EQ(resha_http_get(arg, forked_url, &r), -EPERM);
        if (TEST_ASAN)
                _exit(5);
        exit(5);
}

NETWORK_TLS(a_forked_child_leaves_secure_connections_alone)
{
        resha_http *h = fixture_session((resha_http_opts){ .ca_file = f->ca });
        struct test_child c;

        forked_url = secure_url("localhost", f->https);
        fixture_get(h, forked_url, 200, "hello");
        test_child(use_the_parents_session, h, &c);
        ASSERT_STR(c.text, "");
        ASSERT_TRUE(WIFEXITED(c.status));
        ASSERT_EQ(WEXITSTATUS(c.status), 5);
        fixture_get(h, forked_url, 200, "hello");
        resha_http_free(h);
        return 0;
}

NETWORK_TLS(no_tls_there)
{
        fixture_fail(f->h, secure_url("127.0.0.1", f->http), RESHA_HTTP_ETLS, "");
        return 0;
}

NETWORK_TLS(secure_connections_are_reused)
{
        resha_http *h = fixture_session((resha_http_opts){ .ca_file = f->ca });
        for (int i = 0; i < 4; i++) {
                resha_response *r = NULL;
                ASSERT_OK(resha_http_get(h, secure_url("localhost", f->https), &r));
                ASSERT_EQ(resha_response_reused(r), i > 0);
                ASSERT_EQ(resha_response_timings(r)->tls.ns > 0, i == 0);
                resha_response_free(r);
        }
        resha_http_free(h);
        return 0;
}

NETWORK_TLS(tunnel_through_a_proxy)
{
        resha_response *r = NULL;
        resha_http *h = fixture_session((resha_http_opts){ .ca_file = f->ca, .proxy = fixture_url(f->proxy, "") });
        ASSERT_OK(resha_http_get(h, secure_url("localhost", f->https), &r));
        ASSERT_STR(resha_response_body(r, NULL), "hello");
        ASSERT_PTR(resha_response_header(r, "X-Proxy"), NULL); /* the tunnel's headers are not the answer's */
        resha_response_free(r);
        resha_http_free(h);
        ASSERT_EQ(fixture_count(f, "proxy CONNECT"), 1);
        return 0;
}

/* ---- stack ---- */

enum { PAINTED = 170 << 10, MARK = 0xa5, BLOCK = 64, TOUCHED = 16 };

/* Paints the stack below the caller, or tells how deep it has been used since, in blocks. A few changed bytes in a
 * block are no use: clang's probes of a large frame write a word into each page of it, and the frames of two calls may
 * be some bytes apart. */
__attribute__((noinline, no_sanitize("address"))) static size_t stack_below(bool paint)
{
        volatile unsigned char room[PAINTED];
        size_t clean = 0;
        if (paint)
                for (size_t i = 0; i < PAINTED; i++)
                        room[i] = MARK;
        for (; clean < PAINTED; clean += BLOCK) {
                unsigned touched = 0;
                for (size_t i = 0; i < BLOCK; i++)
                        touched += room[clean + i] != MARK;
                if (touched > TOUCHED && clean >= 4 * BLOCK)
                        break;
        }
        return PAINTED - clean;
}

/* Half of the usable part of a default stack (256 KiB with a guard of 64) is to stay free. */
NETWORK_TLS(stack_is_deep_enough)
{
        resha_http *h = fixture_session((resha_http_opts){ .ca_file = f->ca });
        (void)stack_below(true);
        fixture_get(h, secure_url("localhost", f->https), 200, "hello");
        size_t verified = stack_below(false);
        (void)stack_below(true);
        fixture_fail(f->h, secure_url("localhost", f->https), RESHA_HTTP_ETLS, ""); /* all authorities of the system */
        size_t system = stack_below(false);
        (void)stack_below(true);
        fixture_get(f->h, fixture_url(f->http, "/gzip"), 200, "hello");
        size_t plain = stack_below(false);
        printf("stack used: TLS %zu, TLS with the system's authorities %zu, gzip %zu bytes\n", verified, system, plain);
        ASSERT_TRUE(verified < 96 << 10);
        ASSERT_TRUE(system < 96 << 10);
        ASSERT_TRUE(plain < 96 << 10);
        resha_http_free(h);
        return 0;
}
