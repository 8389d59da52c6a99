/* SPDX-License-Identifier: MIT */
/* A host of embedded runs: a plain poll(2). */

#include "host.h"

#include <poll.h>

resha_embed *host_begin(resha_fn *fn, void *arg, const resha_run_opts *opts)
{
        resha_run_opts o = opts ? *opts : (resha_run_opts){ 0 };
        resha_embed *e = NULL;

        o.backend = test_backend();
        ASSERT_OK(resha_embed_begin(fn, arg, &o, &e));
        return e;
}

/* Whether it becomes readable within ms. */
bool host_readable(resha_embed *e, int ms)
{
        struct pollfd p = { .fd = resha_embed_fd(e), .events = POLLIN };
        int rc = poll(&p, 1, ms);

        ASSERT_TRUE(rc >= 0);
        return rc > 0;
}

/* The host: steps whenever the descriptor says so, until the run has ended; how many that were. */
unsigned host_drive(resha_embed *e, resha_duration at_most)
{
        unsigned steps = 0;
        int rc;

        do {
                if (!host_readable(e, HOST_LONG_MS))
                        FAIL("nothing has happened for %d ms", HOST_LONG_MS);
                rc = resha_embed_step(e, at_most);
                ASSERT_OK(rc);
                ASSERT_FALSE(resha_in_task());
                steps++;
        } while (rc > 0);
        return steps;
}

int host_sleeps(void *arg)
{
        unsigned *done = arg;

        for (; *done < HOST_SLEEPS; ++*done) {
                resha_instant start = resha_now();
                ASSERT_OK(resha_sleep(RESHA_MS(2)));
                ASSERT_ELAPSED(start, 2);
        }
        return 0;
}
