/* SPDX-License-Identifier: MIT */
/* The law of streams under many seeds: cancels at every checkpoint, reads and writes of every size, connections that
 * break. */

#include "bytes_law.h"

#include <stdlib.h>

static int bytes_main(void *arg)
{
        return bytes_converse(arg, 500);
}

static int long_main(void *arg)
{
        return bytes_converse(arg, BYTES_TEXT);
}

/* Reads and writes of at most 1, 2, 3, ... bytes. */
static int pieces_main(void *arg)
{
        struct bytes *b = arg;

        b->piece_max = 1 + resha_test_seed() % 128;
        return bytes_converse(b, 800);
}

/* What the trials were must have happened, or nothing is shown. */
static void laws(const char *name, resha_fn *fn, resha_test_opts o)
{
        o.state = sizeof(struct bytes);
        o.check = bytes_check;
        o.may_report = 1u << RESHA_REPORT_DROPPED; /* kept bytes, where a stream was broken off */
        bytes_seen = (struct bytes_seen){ 0 };
        run_scenario(name, fn, &o);
        printf("%llu calls, %llu ran out of time, %llu were cancelled, %llu pieces too long\n", bytes_seen.calls,
               bytes_seen.late, bytes_seen.cancelled, bytes_seen.too_long);
        if (!getenv("RESHA_TEST_TRIAL"))
                ASSERT_TRUE(bytes_seen.late > 0 && bytes_seen.too_long > 0 &&
                            (o.no_cancels || bytes_seen.cancelled > 0));
}

TEST(sim_bytes)
{
        laws("sim_bytes", bytes_main, (resha_test_opts){ .seeds = 40 });
}

TEST(sim_bytes_of_long_streams)
{
        laws("sim_bytes_of_long_streams", long_main,
             (resha_test_opts){ .seeds = 300, .no_cancels = true, .no_allocs = true, .no_operations = true });
}

TEST(sim_bytes_in_pieces_of_every_size)
{
        laws("sim_bytes_in_pieces_of_every_size", pieces_main, (resha_test_opts){ .seeds = 128, .most = 4 });
}

TEST(sim_bytes_of_connections_that_break)
{
        laws("sim_bytes_of_connections_that_break", bytes_main,
             (resha_test_opts){ .seeds = 60,
                                .most = 20,
                                .faults = { [RESHA_TEST_RESET] = 20 },
                                .may_fail = { -ECONNRESET, -EPIPE, -ECONNABORTED } });
}

/* ---- a connection that breaks while one task waits to read it and another one to write ---- */

static int waits_to_read(void *arg)
{
        char buf[8];
        ssize_t n = resha_read(arg, buf, sizeof buf);

        return n == -ECONNRESET ? 0 : resha_fail(-EDOM, "the reader got %d", (int)n);
}

static int waits_to_write(void *arg)
{
        int rc = resha_write_all(arg, "x", 1, NULL);

        return rc == -ECONNRESET ? 0 : resha_fail(-EDOM, "the writer got %d", rc);
}

/* The writer's turn comes after a while, and breaks the connection: the kernel tells the writer, and then the reader of
 * an end; whichever of the two runs first. */
static int break_main(__attribute__((unused)) void *arg)
{
        resha_stream *one RESHA_CLEANUP(resha_stream_closep) = NULL, *two RESHA_CLEANUP(resha_stream_closep) = NULL;
        resha_stream *both[2] = { NULL, NULL };
        int rc = bytes_connected(true, both);
        RESHA_GROUP(g);

        one = both[0];
        two = both[1];
        if (rc < 0)
                return rc;
        resha_group_begin(&g, NULL);
        resha_spawn(&g, waits_to_read, one);
        if ((rc = resha_sleep(RESHA_MS(20))) < 0)
                return rc;
        ASSERT_OK(resha_test_fault(RESHA_TEST_RESET, 1000));
        ASSERT_OK(resha_test_fault(RESHA_TEST_STALL, 1000));
        resha_spawn(&g, waits_to_write, one);
        return resha_group_end(&g, 0);
}

SCENARIO(sim_a_broken_connection_is_no_end_for_who_waits, break_main, .seeds = 100, .no_cancels = true,
         .no_allocs = true, .no_operations = true)
