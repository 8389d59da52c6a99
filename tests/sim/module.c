/* SPDX-License-Identifier: MIT */
/* resha/test.h itself: its options, its counts, what it says of a failure, and the pieces for tests made by hand. That
 * it finds bugs is shown in planted.c. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <resha/test.h>

#include "scenario.h"

struct two {
        int started, slept;
};

static int sleeps_twice(void *arg)
{
        struct two *s = arg;

        s->started++;
        for (int i = 0; i < 2; i++) {
                int rc = resha_sleep(RESHA_MS(1));
                if (rc < 0)
                        return rc;
                s->slept++;
        }
        return 0;
}

/* ---- which trials ---- */

static unsigned cancels, twice, allocs, quiet, victims[RESHA_TEST_VICTIMS], first_cancelled;

static void count(void *arg, int rc, const resha_test_trial *t)
{
        const struct two *s = arg;

        ASSERT_EQ(s->started, 1); /* zeroed before */
        cancels += t->cancel > 0;
        twice += t->again > 0;
        allocs += t->alloc > 0;
        quiet += !t->cancel && !t->alloc && !t->operation;
        victims[t->victim] += t->cancel > 0;
        first_cancelled += t->cancel == 1 && t->victim == RESHA_TEST_MAIN && rc == -ECANCELED && s->slept == 0;
        if (!t->disturbed)
                ASSERT_EQ(t->checkpoints, 2);
}

TEST(module_makes_every_trial_of_a_seed)
{
        resha_test_result r;
        resha_test_opts o = { .state = sizeof(struct two), .seeds = 3, .check = count, .ret_result = &r };

        ASSERT_EQ(resha_test_run(sleeps_twice, &o), 0);
        ASSERT_EQ(quiet, 3);
        ASSERT_EQ(cancels, 3 * 2 * 6); /* seeds, checkpoints, forms */
        ASSERT_EQ(twice, cancels / 2);
        for (unsigned v = 0; v < RESHA_TEST_VICTIMS; v++)
                ASSERT_EQ(victims[v], cancels / RESHA_TEST_VICTIMS);
        ASSERT_EQ(first_cancelled, 6);
        ASSERT_TRUE(r.trials > quiet + cancels); /* those that failed before the program began were not checked */
        ASSERT_STR(r.text, "");
}

TEST(module_spreads_trials_when_there_are_too_many)
{
        resha_test_result r;
        resha_test_opts o = {
                .state = sizeof(struct two), .seeds = 12, .most = 1, .no_allocs = true, .check = count, .ret_result = &r
        };

        ASSERT_EQ(resha_test_run(sleeps_twice, &o), 0);
        ASSERT_EQ(r.trials, 24);
        ASSERT_EQ(cancels, 12);
        for (unsigned v = 0; v < RESHA_TEST_VICTIMS; v++)
                ASSERT_EQ(victims[v], 4); /* another one for each seed */
}

TEST(module_leaves_trials_out)
{
        resha_test_result r;
        resha_test_opts o = { .seeds = 5,
                              .state = sizeof(struct two),
                              .no_cancels = true,
                              .no_allocs = true,
                              .no_operations = true,
                              .ret_result = &r };

        ASSERT_EQ(resha_test_run(sleeps_twice, &o), 0);
        ASSERT_EQ(r.trials, 5);
        setenv("RESHA_TEST_SEEDS", "300%", 1);
        ASSERT_EQ(resha_test_run(sleeps_twice, &o), 0);
        ASSERT_EQ(r.trials, 15);
        setenv("RESHA_TEST_SEEDS", "7", 1);
        ASSERT_EQ(resha_test_run(sleeps_twice, &o), 0);
        ASSERT_EQ(r.trials, 7);
}

/* A test that runs nothing would pass. */
TEST(module_refuses_settings_that_are_no_numbers)
{
        static const char *const seeds[] = { "0", "many", "5x", "-1", "0%" };
        resha_test_result r;
        resha_test_opts o = { .state = sizeof(struct two), .ret_result = &r };

        for (size_t i = 0; i < sizeof seeds / sizeof seeds[0]; i++) {
                setenv("RESHA_TEST_SEEDS", seeds[i], 1);
                ASSERT_EQ(resha_test_run(sleeps_twice, &o), 1);
                ASSERT_EQ(r.trials, 0);
                ASSERT_HAS(r.text, "RESHA_TEST_SEEDS");
        }
        setenv("RESHA_TEST_SEEDS", "1", 1);
        setenv("RESHA_TEST_FIRST_SEED", "7%", 1);
        ASSERT_EQ(resha_test_run(sleeps_twice, &o), 1);
        ASSERT_HAS(r.text, "RESHA_TEST_FIRST_SEED='7%' is no number");
        setenv("RESHA_TEST_FIRST_SEED", "18446744073709551615", 1);
        ASSERT_EQ(resha_test_run(sleeps_twice, &o), 1);
        ASSERT_HAS(r.text, "RESHA_TEST_FIRST_SEED='18446744073709551615' is too large");
        ASSERT_EQ(r.trials, 0);
}

TEST(module_runs_one_trial_alone)
{
        resha_test_result r;
        resha_test_trial trial = { .seed = 3, .cancel = 2, .victim = RESHA_TEST_CURRENT };
        resha_test_opts o = { .state = sizeof(struct two), .only = &trial, .check = count, .ret_result = &r };

        ASSERT_EQ(resha_test_run(sleeps_twice, &o), 0);
        ASSERT_EQ(r.trials, 1);
        ASSERT_EQ(cancels, 1);
        setenv("RESHA_TEST_TRIAL", "sleeps_twice seed=5 alloc=1", 1);
        ASSERT_EQ(resha_test_run(sleeps_twice, &o), 0);
        ASSERT_EQ(r.trials, 1);
        setenv("RESHA_TEST_TRIAL", "sleeps_twice seed=five", 1);
        ASSERT_EQ(resha_test_run(sleeps_twice, &o), 1);
        ASSERT_HAS(r.text, "names no trial");
        setenv("RESHA_TEST_TRIAL", "sleeps_twice cancel=-1", 1);
        ASSERT_EQ(resha_test_run(sleeps_twice, &o), 1);
        ASSERT_HAS(r.text, "names no trial");
}

TEST(module_says_what_it_skips)
{
        char said[200] = "";
        resha_test_result r;
        resha_test_opts o = { .state = sizeof(struct two), .ret_result = &r };
        int before = dup(2), p[2];

        setenv("RESHA_TEST_TRIAL", "sleeps_twce seed=5 cancel=1", 1);
        ASSERT_EQ(pipe(p), 0);
        dup2(p[1], 2);
        int rc = resha_test_run(sleeps_twice, &o);
        dup2(before, 2);
        close(p[1]);
        ASSERT_EQ(rc, 0);
        ASSERT_EQ(r.trials, 0);
        ASSERT_TRUE(read(p[0], said, sizeof said - 1) > 0);
        ASSERT_STR(said, "sleeps_twice: skipped: RESHA_TEST_TRIAL names sleeps_twce\n");
        close(p[0]);
        close(before);
}

TEST(module_fails_where_its_one_trial_is_never_reached)
{
        static const char *const trials[][2] = {
                { "cancel=3", "checkpoint 3 was not reached: it ended after 2" },
                { "cancel=99999 victim=current", "checkpoint 99999 was not reached: it ended after 2" },
                { "alloc=99999", "allocation 99999 was not reached" },
                { "operation=99999", "operation 99999 was not reached" },
                { "cancel=2 again=7", "" },
                { "cancel=1 victim=previous", "" },
        };
        resha_test_trial trial = { .cancel = 3 };
        resha_test_result r;
        resha_test_opts o = { .state = sizeof(struct two), .ret_result = &r };

        for (size_t i = 0; i < sizeof trials / sizeof trials[0]; i++) {
                char text[80];
                snprintf(text, sizeof text, "sleeps_twice seed=0 %s", trials[i][0]);
                setenv("RESHA_TEST_TRIAL", text, 1);
                ASSERT_EQ(resha_test_run(sleeps_twice, &o), *trials[i][1] != 0);
                ASSERT_EQ(r.trials, 1);
                ASSERT_HAS(r.text, trials[i][1]);
        }
        unsetenv("RESHA_TEST_TRIAL");
        o.only = &trial;
        ASSERT_EQ(resha_test_run(sleeps_twice, &o), 1);
        ASSERT_HAS(r.text, "checkpoint 3 was not reached");
}

/* ---- what is a failure ---- */

static int code;

static int gives(void *arg)
{
        (void)arg;
        return code < 0 ? resha_fail(code, "on purpose") : 0;
}

TEST(module_judges_the_result)
{
        resha_test_result r;
        resha_test_opts o = { .seeds = 1, .no_allocs = true, .ret_result = &r };

        ASSERT_EQ(resha_test_run(gives, &o), 0);
        code = -ECANCELED; /* nobody has cancelled it */
        ASSERT_EQ(resha_test_run(gives, &o), 1);
        code = -EDOM;
        ASSERT_EQ(resha_test_run(gives, &o), 1);
        ASSERT_HAS(r.text, "undisturbed: it ended with -33: on purpose, at tests/sim/module.c:");
        o.may_fail[2] = -EDOM;
        ASSERT_EQ(resha_test_run(gives, &o), 0);
}

static int expects(void *arg)
{
        struct two *s = arg;

        ASSERT_TRUE(resha_test_expect(1 + 1 == 2));
        ASSERT_HAS(resha_test_trial_text(), "RESHA_TEST_TRIAL='expects seed=0");
        ASSERT_FALSE(resha_test_expect(s->started == 1));
        ASSERT_FALSE(resha_test_expect(s->started == 2));
        return 0;
}

TEST(module_tells_the_first_expectation_that_does_not_hold)
{
        resha_test_result r;

        ASSERT_EQ(resha_test_run(expects, &(resha_test_opts){ .state = sizeof(struct two), .ret_result = &r }), 1);
        ASSERT_HAS(r.text, "not true: s->started == 1");
        ASSERT_EQ(r.trials, 1);
        ASSERT_EQ(r.failed.seed, 0);
        ASSERT_PTR(resha_test_trial_text(), NULL);
        ASSERT_FALSE(resha_test_expect(false)); /* no trial: only said */
}

static int nested(void *arg)
{
        (void)arg;
        ASSERT_EQ(resha_test_run(gives, NULL), 1);
        return 0;
}

TEST(module_runs_one_test_at_a_time)
{
        ASSERT_EQ(resha_test_run(nested, &(resha_test_opts){ .seeds = 1, .no_allocs = true }), 0);
        ASSERT_EQ(resha_run(nested, NULL, &(resha_run_opts){ .backend = "sim:0" }), 0);
}

TEST(module_refuses_options_that_it_does_not_know)
{
        resha_test_opts o = { ._reserved = { 1 } };

        ASSERT_EQ(resha_test_run(sleeps_twice, &o), 1);
}

/* ---- by hand ---- */

static uint64_t drawn[2];

static int looks_at_the_world(void *arg)
{
        ASSERT_EQ(resha_test_seed(), 7);
        drawn[*(int *)arg] = resha_test_random();
        ASSERT_EQ(resha_test_fault(RESHA_TEST_FAULTS, 10), -EINVAL);
        ASSERT_EQ(resha_test_fault(RESHA_TEST_RESET, 1001), -EINVAL);
        ASSERT_EQ(resha_test_latency(RESHA_NS(-1)), -EINVAL);
        return 0;
}

TEST(module_world_is_its_seed)
{
        for (int i = 0; i < 2; i++)
                ASSERT_OK(resha_run(looks_at_the_world, &i, &(resha_run_opts){ .backend = "sim:7" }));
        ASSERT_TRUE(drawn[0] != 0);
        ASSERT_TRUE(drawn[0] == drawn[1]);
        ASSERT_EQ(resha_test_seed(), 0);
        ASSERT_EQ(resha_test_fault(RESHA_TEST_RESET, 1), -EPERM);
        ASSERT_EQ(resha_test_latency(RESHA_MS(1)), -EPERM);
        ASSERT_EQ(resha_test_random(), 0);
}

/* Everybody is refused, then nobody; bytes travel for a second at most. */
static int bad_net(void *arg)
{
        resha_listener *l RESHA_CLEANUP(resha_listener_closep) = NULL;
        resha_stream *out RESHA_CLEANUP(resha_stream_closep) = NULL;
        resha_addr at;

        (void)arg;
        ASSERT_OK(resha_tcp_listen("127.0.0.1", 0, &l));
        ASSERT_OK(resha_listener_addr(l, &at));
        ASSERT_EQ(resha_test_fault(RESHA_TEST_REFUSED, 1000), 0);
        ASSERT_EQ(resha_tcp_connect_addr(&at, &out), -ECONNREFUSED);
        ASSERT_EQ(resha_test_fired(RESHA_TEST_REFUSED), 1);
        ASSERT_EQ(resha_test_fault(RESHA_TEST_REFUSED, 0), 0);
        ASSERT_EQ(resha_test_fault(RESHA_TEST_LATENCY, 1000), 0);
        ASSERT_EQ(resha_test_latency(RESHA_S(1)), 0);
        resha_instant before = resha_now();
        ASSERT_OK(resha_tcp_connect_addr(&at, &out));
        int64_t ms = test_ms_since(before);
        ASSERT_TRUE(ms > 3 && ms <= 1000);
        ASSERT_EQ(resha_test_fired(RESHA_TEST_REFUSED), 1);
        return 0;
}

TEST(module_faults_by_hand)
{
        ASSERT_OK(resha_run(bad_net, NULL, &(resha_run_opts){ .backend = "sim:7" }));
}

static int on_the_real_clock(void *arg)
{
        (void)arg;
        ASSERT_EQ(resha_test_seed(), 0);
        ASSERT_EQ(resha_test_fault(RESHA_TEST_RESET, 1), -EPERM);
        return 0;
}

TEST(module_has_no_world_on_a_real_backend)
{
        ASSERT_OK(resha_run(on_the_real_clock, NULL, &(resha_run_opts){ .backend = "epoll" }));
}
