/* SPDX-License-Identifier: MIT */
/* Race: the first success wins, the others are cancelled and joined. */

#include <string.h>

#include "job.h"

TASK(race_first_success_wins_and_the_others_are_cancelled)
{
        struct job j[] = { JOB("a", 2000, .clean = 4), JOB("b", 5, .result = 7), JOB("c", 800) };
        resha_instant start = resha_now();
        size_t winner = 99;

        ASSERT_EQ(resha_race(job, j, 3, sizeof j[0], NULL, &winner), 7);
        ASSERT_EQ(winner, 1);
        ASSERT_STR(notes(), "a+ b+ c+ b- c! a!");
        ASSERT_PASSED(start, 9); /* the losers are joined, clean-ups too */
        ASSERT_FALSE(resha_cancelled());
        return 0;
}

TASK(race_failures_do_not_end_it)
{
        struct job j[] = { JOB("a", 1, .result = -EIO), JOB("b", 10), JOB("c", 2, .result = -ENOENT) };
        size_t winner = 99;

        ASSERT_EQ(resha_race(job, j, 3, sizeof j[0], NULL, &winner), 0);
        ASSERT_EQ(winner, 1);
        ASSERT_STR(notes(), "a+ b+ c+ a- c- b-");
        return 0;
}

TASK(race_that_all_lose_gives_the_last_failure)
{
        struct job j[] = { JOB("a", 10, .result = -EIO), JOB("b", 20, .result = -ENOENT),
                           JOB("c", 1, .result = -EPIPE) };
        size_t winner = 99;

        ASSERT_EQ(resha_race(job, j, 3, sizeof j[0], NULL, &winner), -ENOENT);
        ASSERT_EQ(winner, 99); /* written on success only */
        ASSERT_STR(resha_error_of(-ENOENT)->text, "b failed");
        ASSERT_EQ(resha_error_of(-ENOENT)->item, 2);
        ASSERT_EQ(resha_error_of(-ENOENT)->items, 3);
        return 0;
}

TASK(race_of_none_is_an_error)
{
        size_t winner = 99;

        ASSERT_EQ(resha_race(job, NULL, 0, sizeof(struct job), NULL, &winner), -EINVAL);
        ASSERT_EQ(winner, 99);
        return 0;
}

TASK(race_of_one)
{
        struct job j = JOB("a", 1, .result = 3);

        ASSERT_EQ(resha_race(job, &j, 1, sizeof j, NULL, NULL), 3);
        return 0;
}

TASK(race_stagger_starts_the_next_after_a_while)
{
        struct job j[] = { JOB("a", 1000), JOB("b", 1000), JOB("c", 10) };
        resha_instant start = resha_now();
        size_t winner;

        SIM_ONLY();
        ASSERT_OK(resha_race(job, j, 3, sizeof j[0], &(resha_race_opts){ .stagger = MS(250) }, &winner));
        ASSERT_EQ(winner, 2);
        ASSERT_PASSED(start, 510);
        ASSERT_STR(notes(), "a+ b+ c+ c- a! b!");
        return 0;
}

TASK(race_stagger_does_not_start_what_is_not_needed)
{
        struct job j[] = { JOB("a", 5), JOB("b", 1), JOB("c", 1) };
        size_t winner;

        ASSERT_OK(resha_race(job, j, 3, sizeof j[0], &(resha_race_opts){ .stagger = RESHA_S(50) }, &winner));
        ASSERT_EQ(winner, 0);
        ASSERT_STR(notes(), "a+ a-");
        return 0;
}

TASK(race_stagger_starts_the_next_at_once_after_a_failure)
{
        struct job j[] = { JOB("a", 3, .result = -ECONNREFUSED), JOB("b", 4, .result = -EIO), JOB("c", 5) };
        resha_instant start = resha_now();
        size_t winner;

        ASSERT_OK(resha_race(job, j, 3, sizeof j[0], &(resha_race_opts){ .stagger = RESHA_S(50) }, &winner));
        ASSERT_EQ(winner, 2);
        ASSERT_PASSED(start, 12);
        ASSERT_STR(notes(), "a+ a- b+ b- c+ c-");
        return 0;
}

TASK(race_stagger_starts_the_next_after_a_failure_while_others_run)
{
        struct job j[] = { JOB("a", 500), JOB("b", 5, .result = -EIO), JOB("c", 30) };
        resha_instant start = resha_now();
        size_t winner;

        ASSERT_OK(resha_race(job, j, 3, sizeof j[0], &(resha_race_opts){ .stagger = MS(100) }, &winner));
        ASSERT_EQ(winner, 2);
        ASSERT_STR(notes(), "a+ b+ b- c+ c- a!");
        ASSERT_PASSED(start, 135);
        return 0;
}

static int races(void *arg)
{
        struct job *j = arg;
        size_t winner = 99;
        int rc = resha_race(job, j, 2, sizeof *j, NULL, &winner);

        note("%d", rc);
        return rc;
}

TASK(race_cancelled_from_outside)
{
        struct job j[] = { JOB("a", 5000, .clean = 5), JOB("b", 5000) };

        ASSERT_EQ(status_when_cancelled(1, races, j), -ECANCELED);
        ASSERT_STR(notes(), "a+ b+ b! a! -125");
        return 0;
}

TASK(race_under_a_timeout)
{
        struct job j[] = { JOB("a", 5000), JOB("b", 5000) };

        ASSERT_EQ(resha_timeout(MS(2), races, j), -ETIME);
        return 0;
}

static int holds_on(void *arg)
{
        struct job *j = arg;

        note("%s+", j->name);
        int rc = resha_shielded(RESHA_S(3600), job_clean, j); /* sleeps for .clean */
        note("%s-", j->name);
        return rc;
}

static void drop(void *item)
{
        const struct job *j = item;

        note("drop(%s)", j->name);
}

TASK(race_second_success_is_dropped)
{
        struct job j[] = { JOB("a", 0, .clean = 2), JOB("b", 0, .clean = 5), JOB("c", 0, .clean = 8) };
        size_t winner;

        ASSERT_OK(resha_race(holds_on, j, 3, sizeof j[0], &(resha_race_opts){ .drop = drop }, &winner));
        ASSERT_EQ(winner, 0);
        ASSERT_STR(notes(), "a+ b+ c+ a- b- drop(b) c- drop(c)");
        return 0;
}

static int races_holding_on(void *arg)
{
        struct job *j = arg;
        size_t winner = 99;
        int rc = resha_race(holds_on, j, 2, sizeof *j, &(resha_race_opts){ .drop = drop }, &winner);

        note("%d", rc);
        return rc;
}

TASK(race_success_after_an_outside_cancel_is_not_leaked)
{
        struct job j[] = { JOB("a", 0, .clean = 10), JOB("b", 0, .clean = 20) };
        int status = status_when_cancelled(1, races_holding_on, j);
        const char *n = notes();

        /* Either it counts as won, or it is dropped: what a succeeded with must not be lost. */
        ASSERT_HAS(n, "a-");
        if (status == -ECANCELED)
                ASSERT_HAS(n, "drop(a)");
        else
                ASSERT_EQ(status, 0);
        ASSERT_HAS(n, "drop(b)");
        return 0;
}

TASK(race_calls_of_different_functions)
{
        struct job a = JOB("a", 5000), b = JOB("b", 2, .result = 9), c = JOB("c", 0, .clean = 5);
        resha_call calls[] = { RESHA_CALL(job, &a), RESHA_CALL(job, &b), RESHA_CALL(holds_on, &c) };
        size_t winner = 99;

        ASSERT_EQ(resha_race_calls(calls, 3, &(resha_race_opts){ .drop = drop }, &winner), 9);
        ASSERT_EQ(winner, 1);
        ASSERT_STR(notes(), "a+ b+ c+ b- a! c- drop(c)");
        ASSERT_EQ(resha_race_calls(calls, 0, NULL, &winner), -EINVAL);
        return 0;
}

TASK(race_reserved_words_must_be_zero)
{
        struct job j = JOB("a", 1);
        resha_race_opts o = { .drop = drop };

        o._reserved[0] = 1;
        ASSERT_EQ(resha_race(job, &j, 1, sizeof j, &o, NULL), -EINVAL);
        ASSERT_STR(notes(), "");
        return 0;
}

static int random_race(__attribute__((unused)) void *arg)
{
        struct job j[8];
        size_t winner;

        for (int i = 0; i < 8; i++)
                j[i] = (struct job)JOB("", 10 - i, .result = i % 2 ? i : -EIO);
        ASSERT_EQ(resha_race(job, j, 8, sizeof j[0], NULL, &winner), 7);
        ASSERT_EQ(winner, 7);
        notes();
        return 0;
}

TEST(race_under_many_seeds)
{
        SIM_ONLY();
        RUN_SEEDS(random_race, NULL, 50);
}
