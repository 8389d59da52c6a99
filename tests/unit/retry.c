/* SPDX-License-Identifier: MIT */
/* Retry: which failures, how often, with what pauses, within what time. */

#include <string.h>

#include "job.h"

struct flaky {
        unsigned fails; /* so often it fails */
        int code;       /* with this */
        int64_t ms;     /* each attempt takes so long */
        unsigned called;
        resha_instant start, last;
};

static int flaky(void *arg)
{
        struct flaky *f = arg;

        f->called++;
        f->last = resha_now();
        note("%lld", (long long)ms_since(f->start));
        if (f->ms) {
                int rc = resha_sleep(MS(f->ms));
                if (rc < 0)
                        return rc;
        }
        return f->called <= f->fails ? resha_fail(f->code, "attempt %u failed", f->called) : 5;
}

#define EXACTLY .no_jitter = true, .base = MS(10)

TASK(retry_success_is_the_result)
{
        struct flaky f = { .start = resha_now() };
        unsigned attempts = 0;

        ASSERT_EQ(resha_retry(flaky, &f, &(resha_retry_opts){ .ret_attempts = &attempts }), 5);
        ASSERT_EQ(attempts, 1);
        ASSERT_EQ(resha_retry(flaky, &f, NULL), 5);
        return 0;
}

TASK(retry_backs_off_by_doubling)
{
        struct flaky f = { .fails = 4, .code = -EAGAIN, .start = resha_now() };
        unsigned attempts = 0;
        resha_retry_opts o = { EXACTLY, .attempts = 5, .ret_attempts = &attempts };

        SIM_ONLY();
        ASSERT_EQ(resha_retry(flaky, &f, &o), 5);
        ASSERT_EQ(attempts, 5);
        ASSERT_STR(notes(), "0 10 30 70 150");
        return 0;
}

TASK(retry_backs_off_up_to_max)
{
        struct flaky f = { .fails = 5, .code = -EAGAIN, .start = resha_now() };
        resha_retry_opts o = { EXACTLY, .attempts = 6, .max = MS(25) };

        SIM_ONLY();
        ASSERT_EQ(resha_retry(flaky, &f, &o), 5);
        ASSERT_STR(notes(), "0 10 30 55 80 105");
        return 0;
}

TASK(retry_defaults_are_three_attempts_from_a_second_on)
{
        struct flaky f = { .fails = 99, .code = -ECONNREFUSED, .start = resha_now() };
        unsigned attempts = 0;

        SIM_ONLY();
        ASSERT_EQ(resha_retry(flaky, &f, &(resha_retry_opts){ .ret_attempts = &attempts, .no_jitter = true }),
                  -ECONNREFUSED);
        ASSERT_EQ(attempts, 3);
        ASSERT_STR(notes(), "0 1000 3000");
        ASSERT_STR(resha_error_of(-ECONNREFUSED)->text, "attempt 3 failed"); /* the last one's record */
        return 0;
}

TASK(retry_many_attempts_do_not_overflow)
{
        struct flaky f = { .fails = 199, .code = -EAGAIN, .start = resha_now() };
        resha_retry_opts o = { .attempts = 200, .no_jitter = true, .base = RESHA_S(1), .max = RESHA_S(2) };

        SIM_ONLY();
        ASSERT_EQ(resha_retry(flaky, &f, &o), 5);
        ASSERT_EQ(f.called, 200);
        ASSERT_PASSED(f.start, 1000 + 198 * 2000);
        return 0;
}

static int full_jitter(__attribute__((unused)) void *arg)
{
        struct flaky f = { .fails = 3, .code = -EAGAIN, .start = resha_now() };
        resha_retry_opts o = { .attempts = 4, .base = MS(1000) };

        ASSERT_EQ(resha_retry(flaky, &f, &o), 5);
        int64_t total = ms_since(f.start);
        ASSERT_TRUE(total >= 0 && total <= 7000);
        *(int64_t *)arg += total;
        return 0;
}

TEST(retry_jitter_is_full_and_random)
{
        int64_t total = 0;

        SIM_ONLY();
        RUN_SEEDS(full_jitter, &total, 100);
        ASSERT_TRUE(total / 100 > 2500 && total / 100 < 4500); /* 3500 expected */
}

TASK(retry_not_what_is_permanent)
{
        const int codes[] = { -ENOENT, -EINVAL, -EACCES, -EIO, RESHA_HTTP_EURL, RESHA_HTTP_ETLS };

        for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
                struct flaky f = { .fails = 9, .code = codes[i], .start = resha_now() };
                ASSERT_EQ(resha_retry(flaky, &f, &(resha_retry_opts){ EXACTLY }), codes[i]);
                ASSERT_EQ(f.called, 1);
        }
        return 0;
}

TASK(retry_what_may_pass)
{
        const int codes[] = { -EAGAIN,
                              -ETIME,
                              -ETIMEDOUT,
                              -ECONNREFUSED,
                              -ECONNRESET,
                              -EPIPE,
                              -ENETUNREACH,
                              -EHOSTUNREACH,
                              RESHA_HTTP_ETOTAL,
                              RESHA_HTTP_EREAD_TIMEOUT,
                              RESHA_HTTP_ECONNECT_TIMEOUT };

        SIM_ONLY();
        for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
                struct flaky f = { .fails = 2, .code = codes[i], .start = resha_now() };
                ASSERT_EQ(resha_retry(flaky, &f, &(resha_retry_opts){ EXACTLY }), 5);
                ASSERT_EQ(f.called, 3);
        }
        return 0;
}

static bool only_enoent(int rc, __attribute__((unused)) void *arg)
{
        return rc == -ENOENT;
}

TASK(retry_by_a_predicate)
{
        struct flaky f = { .fails = 1, .code = -ENOENT, .start = resha_now() };
        struct flaky g = { .fails = 1, .code = -EAGAIN, .start = resha_now() };
        resha_retry_opts o = { EXACTLY, .again = only_enoent };

        ASSERT_EQ(resha_retry(flaky, &f, &o), 5);
        ASSERT_EQ(resha_retry(flaky, &g, &o), -EAGAIN);
        return 0;
}

static resha_duration retry_after(unsigned attempt, int rc, void *arg)
{
        struct flaky *f = arg;

        ASSERT_EQ(rc, f->code);
        return MS(attempt * 100);
}

TASK(retry_with_delays_of_ones_own)
{
        struct flaky f = { .fails = 2, .code = -EAGAIN, .start = resha_now() };

        SIM_ONLY();
        ASSERT_EQ(resha_retry(flaky, &f, &(resha_retry_opts){ .delay = retry_after }), 5);
        ASSERT_STR(notes(), "0 100 300");
        return 0;
}

TASK(retry_time_for_one_attempt)
{
        struct flaky f = { .ms = 100, .start = resha_now() };
        unsigned attempts;
        resha_retry_opts o = { EXACTLY, .attempts = 2, .attempt = MS(20), .ret_attempts = &attempts };

        SIM_ONLY();
        ASSERT_EQ(resha_retry(flaky, &f, &o), -ETIME);
        ASSERT_EQ(attempts, 2);
        ASSERT_STR(notes(), "0 30");
        ASSERT_PASSED(f.start, 50);
        return 0;
}

TASK(retry_total_time_ends_an_attempt)
{
        struct flaky f = { .ms = 30, .fails = 9, .code = -EAGAIN, .start = resha_now() };
        unsigned attempts;
        resha_retry_opts o = { EXACTLY, .attempts = 9, .total = MS(60), .ret_attempts = &attempts };

        SIM_ONLY();
        ASSERT_EQ(resha_retry(flaky, &f, &o), -ETIME); /* 0..30, 40..60 */
        ASSERT_EQ(attempts, 2);
        ASSERT_PASSED(f.start, 60);
        return 0;
}

TASK(retry_does_not_begin_a_pause_that_would_outlast_the_total)
{
        struct flaky f = { .fails = 9, .code = -EAGAIN, .start = resha_now() };
        resha_retry_opts o = { EXACTLY, .attempts = 9, .total = MS(50) };

        SIM_ONLY();
        ASSERT_EQ(resha_retry(flaky, &f, &o), -EAGAIN); /* 0, 10, 30, and not 70 */
        ASSERT_PASSED(f.start, 30);
        ASSERT_STR(resha_error_of(-EAGAIN)->text, "attempt 3 failed");
        return 0;
}

static int retries(void *arg)
{
        struct flaky *f = arg;

        return resha_retry(flaky, f, &(resha_retry_opts){ .attempts = 9, .no_jitter = true, .base = RESHA_S(100) });
}

TASK(retry_never_after_a_cancel_in_the_pause)
{
        struct flaky f = { .fails = 9, .code = -EAGAIN, .start = resha_now() };

        ASSERT_EQ(status_when_cancelled(5, retries, &f), -ECANCELED);
        ASSERT_EQ(f.called, 1);
        return 0;
}

TASK(retry_never_after_a_cancel_in_an_attempt)
{
        struct flaky f = { .ms = 5000, .start = resha_now() };

        ASSERT_EQ(status_when_cancelled(5, retries, &f), -ECANCELED);
        ASSERT_EQ(f.called, 1);
        return 0;
}

static int fails_for_the_cancel(void *arg)
{
        struct flaky *f = arg;

        f->called++;
        int rc = resha_sleep(RESHA_S(5));
        return rc == -ECANCELED ? resha_fail(-EAGAIN, "broke off") : rc;
}

static int retries_that(void *arg)
{
        return resha_retry(fails_for_the_cancel, arg, &(resha_retry_opts){ .attempts = 9, .again = NULL });
}

TASK(retry_never_while_cancelled_whatever_the_attempt_says)
{
        struct flaky f = { .start = resha_now() };

        ASSERT_EQ(status_when_cancelled(5, retries_that, &f), -EAGAIN); /* the last result */
        ASSERT_EQ(f.called, 1);
        return 0;
}

TASK(retry_an_outer_timeout_ends_it)
{
        struct flaky f = { .fails = 9, .code = -EAGAIN, .start = resha_now() };

        ASSERT_EQ(resha_timeout(MS(5), retries, &f), -ETIME);
        ASSERT_EQ(f.called, 1);
        return 0;
}

TASK(retry_reserved_words_must_be_zero)
{
        struct flaky f = { .start = resha_now() };
        resha_retry_opts o = { .attempts = 1 };

        o._reserved[0] = 1;
        ASSERT_EQ(resha_retry(flaky, &f, &o), -EINVAL);
        ASSERT_EQ(f.called, 0);
        return 0;
}
