/* SPDX-License-Identifier: MIT */

/* When to ask again: only what may pass, never longer than allowed, and as the server asks. */

#include "test.h"

#include <string.h>

#include "retry.h"

static const struct retry_policy policy = { .retries = 4,
                                            .total = { INT64_C(300000000000) },
                                            .base = { INT64_C(1000000000) },
                                            .max = { INT64_C(30000000000) } };

TEST(only_what_may_pass_is_tried_again)
{
        static const int yes[] = { 408, 425, 429, 500, 502, 503, 504, 522, 524 };
        static const int no[] = { 200, 204, 301, 304, 400, 401, 403, 404, 410, 418, 501, 505 };
        for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++)
                if (!retry_transient(0, yes[i]))
                        FAIL("%d is not tried again", yes[i]);
        for (size_t i = 0; i < sizeof no / sizeof no[0]; i++)
                if (retry_transient(0, no[i]))
                        FAIL("%d is tried again", no[i]);
        ASSERT_TRUE(retry_transient(RESHA_HTTP_ETOTAL, 0));
        ASSERT_TRUE(retry_transient(RESHA_HTTP_ECONNECT_TIMEOUT, 0));
        ASSERT_TRUE(retry_transient(RESHA_HTTP_ETRUNCATED, 0));
        ASSERT_TRUE(retry_transient(-ECONNRESET, 0));
        ASSERT_TRUE(retry_transient(-EMFILE, 0));
        ASSERT_FALSE(retry_transient(RESHA_HTTP_ETLS, 0));
        ASSERT_FALSE(retry_transient(RESHA_HTTP_EHOST, 0));
        ASSERT_FALSE(retry_transient(RESHA_HTTP_ETOO_LARGE, 0));
        ASSERT_FALSE(retry_transient(RESHA_HTTP_EREDIRECTS, 0));
        ASSERT_FALSE(retry_transient(-ECONNREFUSED, 0));
        ASSERT_FALSE(retry_transient(-ECANCELED, 0));
        ASSERT_FALSE(retry_transient(-ECANCELED, 503));
}

TEST(jitter_is_full_and_bounded)
{
        struct rng rng = { 1 };
        int64_t most = 0, least = INT64_MAX;
        for (int i = 0; i < 1000; i++) {
                struct retry_facts f = { .status = 503, .attempts = 3 };
                resha_duration d;
                ASSERT_EQ(retry_decide(&policy, &f, &rng, &d), RETRY_AGAIN);
                most = d.ns > most ? d.ns : most;
                least = d.ns < least ? d.ns : least;
        }
        ASSERT_TRUE(most < RESHA_S(4).ns && most > RESHA_MS(3800).ns);
        ASSERT_TRUE(least >= 0 && least < RESHA_MS(200).ns);
}

TEST(backoff_does_not_grow_past_its_limit)
{
        struct rng rng = { 2 };
        struct retry_policy many = policy;
        many.retries = 100;
        for (unsigned k = 1; k <= 100; k++) {
                struct retry_facts f = { .status = 500, .attempts = k };
                resha_duration d;
                ASSERT_EQ(retry_decide(&many, &f, &rng, &d), RETRY_AGAIN);
                ASSERT_TRUE(d.ns >= 0 && d.ns < RESHA_S(30).ns);
        }
}

TEST(attempts_and_time_are_used_up)
{
        struct rng rng = { 3 };
        resha_duration d;
        struct retry_facts f = { .status = 503, .attempts = 5 };
        ASSERT_EQ(retry_decide(&policy, &f, &rng, &d), RETRY_USED_UP);
        f = (struct retry_facts){ .rc = RESHA_HTTP_ETOTAL, .attempts = 1, .spent = RESHA_S(300) };
        ASSERT_EQ(retry_decide(&policy, &f, &rng, &d), RETRY_USED_UP);
        f = (struct retry_facts){ .status = 404, .attempts = 1 };
        ASSERT_EQ(retry_decide(&policy, &f, &rng, &d), RETRY_NO);
}

TEST(retry_after_is_kept_to)
{
        struct rng rng = { 4 };
        resha_duration d;
        struct retry_facts f = { .status = 429, .attempts = 1, .retry_after = "10" };
        ASSERT_EQ(retry_decide(&policy, &f, &rng, &d), RETRY_AGAIN);
        ASSERT_TRUE(d.ns >= RESHA_S(10).ns && d.ns <= RESHA_S(11).ns);
        f.retry_after = "Sun, 06 Nov 1994 08:49:37 GMT";
        f.now_ms = INT64_C(784111770000); /* seven seconds before */
        ASSERT_EQ(retry_decide(&policy, &f, &rng, &d), RETRY_AGAIN);
        ASSERT_TRUE(d.ns >= RESHA_S(7).ns && d.ns < RESHA_S(8).ns);
        f.now_ms += 10000; /* in the past: at once */
        ASSERT_EQ(retry_decide(&policy, &f, &rng, &d), RETRY_AGAIN);
        ASSERT_EQ(d.ns, 0);
        f.retry_after = "3600";
        ASSERT_EQ(retry_decide(&policy, &f, &rng, &d), RETRY_TOO_LONG);
        ASSERT_EQ(d.ns, RESHA_S(3600).ns);
        f.retry_after = "soon"; /* nonsense: as if it were not there */
        ASSERT_EQ(retry_decide(&policy, &f, &rng, &d), RETRY_AGAIN);
        ASSERT_TRUE(d.ns < RESHA_S(1).ns);
        f.retry_after = "-5";
        ASSERT_EQ(retry_decide(&policy, &f, &rng, &d), RETRY_AGAIN);
        ASSERT_TRUE(d.ns >= 0 && d.ns < RESHA_S(1).ns);
}
