/* SPDX-License-Identifier: MIT */
/* The law of streams (tests/sim/bytes_law.c), over TLS: many seeds, cancels at every checkpoint, allocations and
 * operations that fail, connections that break, TLS in TLS. */

#include "../sim/bytes_law.h"

#include <stdlib.h>

#include "common.h"

static resha_tls *client, *server;
static int depth;

/* The end of one direction, as finish makes it, without the wait for the other. */
static int end_one_way(resha_stream *s)
{
        return rs_tls_stream_ops.finish(resha_stream_impl(s, &rs_tls_stream_ops));
}

/* Each secure stream owns what is under it. */
static int secure(resha_stream *both[2])
{
        struct tls_pair p = { .client = client, .server = server, .plain = { both[0], both[1] } };
        int rc = tls_pair_start(&p);

        for (int i = 0; i < 2; i++) {
                struct rs_tls_stream *t = p.secure[i] ? resha_stream_impl(p.secure[i], &rs_tls_stream_ops) : NULL;
                if (t)
                        t->owned = true;
                both[i] = p.secure[i] ? p.secure[i] : p.plain[i];
        }
        return rc;
}

static int wrap(resha_stream *both[2])
{
        int rc = 0;

        for (int i = 0; rc == 0 && i < depth; i++)
                rc = secure(both);
        return rc;
}

static void laws(const char *name, resha_fn *fn, resha_test_opts o)
{
        client = tls_client(&(resha_tls_opts){ .no_sessions = true }); /* nothing is kept from trial to trial */
        server = tls_server(&(resha_tls_opts){ .no_sessions = true });
        bytes_wrap_both = wrap;
        bytes_end = end_one_way;
        if (!depth)
                depth = 1;
        if (TEST_VALGRIND)
                o.seeds = (o.seeds + 4) / 5; /* it is some 50 times slower, and the same for each seed */
        o.state = sizeof(struct bytes);
        o.check = bytes_check;
        if (!o.may_fail[0])
                o.may_fail[0] = -ETIMEDOUT;        /* who finishes, when the other one was kept from it */
        o.may_report = 1u << RESHA_REPORT_DROPPED; /* kept bytes, where a stream was broken off */
        bytes_seen = (struct bytes_seen){ 0 };
        run_scenario(name, fn, &o);
        printf("%llu calls, %llu ran out of time, %llu were cancelled, %llu pieces too long\n", bytes_seen.calls,
               bytes_seen.late, bytes_seen.cancelled, bytes_seen.too_long);
        if (!getenv("RESHA_TEST_TRIAL"))
                ASSERT_TRUE(bytes_seen.late > 0 && bytes_seen.too_long > 0);
        resha_tls_unrefp(&client);
        resha_tls_unrefp(&server);
}

static int bytes_main(void *arg)
{
        return bytes_converse(arg, 500);
}

static int long_main(void *arg)
{
        return bytes_converse(arg, BYTES_TEXT);
}

static int pieces_main(void *arg)
{
        struct bytes *b = arg;

        b->piece_max = 1 + resha_test_seed() % 128;
        return bytes_converse(b, 800);
}

TEST(tls_law)
{
        laws("tls_law", bytes_main, (resha_test_opts){ .seeds = 40, .most = 40 });
}

TEST(tls_law_of_long_streams)
{
        laws("tls_law_of_long_streams", long_main,
             (resha_test_opts){ .seeds = 300, .no_cancels = true, .no_allocs = true, .no_operations = true });
}

TEST(tls_law_in_pieces_of_every_size)
{
        laws("tls_law_in_pieces_of_every_size", pieces_main, (resha_test_opts){ .seeds = 128, .most = 4 });
}

TEST(tls_law_of_connections_that_break)
{
        laws("tls_law_of_connections_that_break", bytes_main,
             (resha_test_opts){ .seeds = 60,
                                .most = 10,
                                .no_operations = true,
                                .faults = { [RESHA_TEST_RESET] = 20 },
                                .may_fail = { -ECONNRESET, -EPIPE, -ECONNABORTED, RESHA_TLS_ETRUNCATED } });
}

TEST(tls_law_in_tls)
{
        depth = 2;
        laws("tls_law_in_tls", bytes_main, (resha_test_opts){ .seeds = 20, .most = 10 });
}
