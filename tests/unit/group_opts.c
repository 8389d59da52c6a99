/* SPDX-License-Identifier: MIT */
/* Groups with options: limit, keep going, background, drain, lists of errors; copies. */

#include <string.h>

#include "job.h"

/* ---- limit ---- */

struct counted {
        int now, most, total;
        resha_semaphore never;
};

static int count_those_inside(void *arg)
{
        struct counted *c = arg;

        c->total++;
        if (++c->now > c->most)
                c->most = c->now;
        int rc = resha_sleep(MS(2));
        c->now--;
        return rc;
}

TASK(group_limit_is_kept_and_spawn_waits)
{
        struct counted c = { 0 };
        resha_instant start = resha_now();

        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .limit = 5 });
        for (int i = 0; i < 23; i++) {
                ASSERT_OK(resha_spawn(&g, count_those_inside, &c));
                ASSERT_TRUE(resha_group_running(&g) <= 5);
        }
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(c.most, 5);
        ASSERT_EQ(c.total, 23);
        ASSERT_PASSED(start, 10); /* five rounds */
        return 0;
}

TASK(group_limit_of_one_is_one_after_another)
{
        struct job j[] = { JOB("a", 3), JOB("b", 2), JOB("c", 1) };

        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .limit = 1 });
        for (size_t i = 0; i < 3; i++)
                ASSERT_OK(resha_spawn(&g, job, &j[i]));
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "a+ a- b+ b- c+ c-");
        return 0;
}

static int spawns_in_vain(void *group)
{
        ASSERT_EQ(resha_spawn_opt(group, job, NULL, &(resha_spawn_opts){ .stack = 1 }), -EINVAL);
        note("in-vain");
        return 0;
}

TASK(group_place_of_a_spawn_that_fails_goes_on)
{
        struct job a = JOB("a", 2);

        RESHA_GROUP(others);
        resha_group_begin(&others, NULL);
        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .limit = 1, .keep_going = true });
        ASSERT_OK(resha_spawn(&g, job, &a));
        ASSERT_OK(resha_spawn(&others, spawns_in_vain, &g)); /* gets the place of a, while we join */
        ASSERT_OK(resha_spawn(&others, spawns_in_vain, &g));
        ASSERT_OK(resha_yield());
        ASSERT_EQ(resha_group_end(&g, 0), -EINVAL); /* borrowed: it fails with the group */
        ASSERT_OK(resha_group_end(&others, 0));
        ASSERT_STR(notes(), "a+ a- in-vain in-vain");
        return 0;
}

TASK(group_does_not_fail_with_a_copy_that_is_not_spawned)
{
        int n = 1;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_EQ(resha_spawn_opt(&g, job, &n, &(resha_spawn_opts){ .copy = sizeof n, .stack = 1 }), -EINVAL);
        ASSERT_OK(resha_group_end(&g, 0));
        return 0;
}

struct spawner {
        resha_group *group;
        struct job *jobs;
        int n;
};

static int spawns_all(void *arg)
{
        struct spawner *s = arg;

        for (int i = 0; i < s->n; i++) {
                int rc = resha_spawn(s->group, job, &s->jobs[i]);
                if (rc < 0)
                        return rc;
        }
        return 0;
}

TASK(group_limit_serves_spawners_first_come_first_served)
{
        struct job j[] = { JOB("a", 1), JOB("b", 1), JOB("c", 1), JOB("x", 1), JOB("y", 1), JOB("z", 1) };

        RESHA_GROUP(limited);
        resha_group_begin(&limited, &(resha_group_opts){ .limit = 1 });
        struct spawner s[] = { { &limited, j, 3 }, { &limited, j + 3, 3 } };
        ASSERT_OK(resha_gather(spawns_all, s, 2, sizeof s[0], NULL));
        ASSERT_OK(resha_group_end(&limited, 0));
        ASSERT_STR(notes(), "a+ a- b+ b- x+ x- c+ c- y+ y- z+ z-");
        return 0;
}

static int fills_a_limited_group(void *arg)
{
        struct job *j = arg;

        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .limit = 1 });
        ASSERT_OK(resha_spawn(&g, job, &j[0]));
        int rc = resha_spawn(&g, job, &j[1]);
        note("spawn %d", rc);
        return resha_group_end(&g, rc);
}

TASK(group_spawn_that_waits_can_be_cancelled)
{
        struct job j[] = { JOB("a", 1000), JOB("b", 1000) };

        ASSERT_EQ(status_when_cancelled(1, fills_a_limited_group, j), -ECANCELED);
        const char *n = notes();
        ASSERT_HAS(n, "spawn -125");
        ASSERT_FALSE(strstr(n, "b"));
        return 0;
}

TASK(group_spawn_that_waits_learns_of_a_failure)
{
        struct job j[] = { JOB("a", 3, .result = -EIO), JOB("b", 1000) };

        ASSERT_EQ(resha_gather(fills_a_limited_group, j, 1, sizeof j, NULL), -EIO);
        ASSERT_STR(notes(), "a+ a- spawn -125");
        return 0;
}

TASK(group_limit_with_an_unchecked_spawn)
{
        struct job j[] = { JOB("a", 3, .result = -EIO), JOB("b", 1), JOB("c", 1), JOB("d", 1) };

        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .limit = 1 });
        for (size_t i = 0; i < 4; i++)
                resha_spawn(&g, job, &j[i]); /* after the failure nothing is started */
        ASSERT_EQ(resha_group_end(&g, 0), -EIO);
        ASSERT_STR(notes(), "a+ a-");
        return 0;
}

/* ---- keep going ---- */

TASK(group_keep_going_cancels_nobody)
{
        struct job j[] = { JOB("a", 3), JOB("b", 1, .result = -EIO), JOB("c", 2, .result = -ENOENT), JOB("d", 4) };
        resha_error errors[4] = { { 0 } };

        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .keep_going = true, .errors = errors, .max_errors = 4 });
        for (size_t i = 0; i < 4; i++)
                resha_spawn(&g, job, &j[i]);
        ASSERT_EQ(resha_group_end(&g, 0), -EIO);
        ASSERT_STR(notes(), "a+ b+ c+ d+ b- c- a- d-");
        ASSERT_EQ(resha_group_failures(&g), 2);
        ASSERT_STR(errors[0].text, "b failed");
        ASSERT_STR(errors[1].text, "c failed");
        ASSERT_EQ(errors[2].code, 0);
        ASSERT_EQ(resha_error_of(-EIO)->cancelled, 0);
        return 0;
}

TASK(group_errors_beyond_the_list_are_counted)
{
        struct job j[] = { JOB("a", 1, .result = -EIO), JOB("b", 2, .result = -ENOENT), JOB("c", 3, .result = -EPIPE) };
        resha_error errors[3] = { { 0 } };

        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .keep_going = true, .errors = errors, .max_errors = 2 });
        for (size_t i = 0; i < 3; i++)
                resha_spawn(&g, job, &j[i]);
        ASSERT_EQ(resha_group_end(&g, 0), -EIO);
        ASSERT_EQ(resha_group_failures(&g), 3);
        ASSERT_EQ(errors[1].code, -ENOENT);
        ASSERT_EQ(errors[2].code, 0);
        return 0;
}

TASK(group_keep_going_ends_with_its_body_when_that_fails)
{
        struct job j = JOB("a", 5000);

        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .keep_going = true });
        resha_spawn(&g, job, &j);
        ASSERT_OK(resha_yield());
        ASSERT_EQ(resha_group_end(&g, resha_fail(-EIO, "body")), -EIO);
        ASSERT_STR(notes(), "a+ a!");
        return 0;
}

static int keeps_going(void *arg)
{
        struct job *j = arg;

        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .keep_going = true });
        resha_spawn(&g, job, j);
        return resha_group_end(&g, 0);
}

TASK(group_keep_going_still_obeys_an_outside_cancel)
{
        struct job j = JOB("a", 1000);

        ASSERT_EQ(status_when_cancelled(1, keeps_going, &j), -ECANCELED);
        ASSERT_STR(notes(), "a+ a!");
        return 0;
}

/* ---- background ---- */

TASK(group_background_children_go_with_the_body)
{
        struct job j[] = { JOB("a", 1), JOB("b", 1000, .clean = 2) };

        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        for (size_t i = 0; i < 2; i++)
                resha_spawn(&g, job, &j[i]);
        ASSERT_OK(resha_sleep(MS(10)));
        ASSERT_EQ(resha_group_end(&g, 4), 4);
        ASSERT_STR(notes(), "a+ b+ a- b!");
        return 0;
}

TASK(group_background_failure_still_fails)
{
        struct job j = JOB("a", 1, .result = -EIO);

        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        resha_spawn(&g, job, &j);
        int rc = resha_sleep(RESHA_S(9));
        ASSERT_EQ(rc, -ECANCELED);
        ASSERT_EQ(resha_group_end(&g, rc), -EIO);
        return 0;
}

TASK(group_background_whose_body_is_done_is_done_whatever_is_cancelled_outside)
{
        struct job j = JOB("a", 5000);

        RESHA_SCOPE(s);
        resha_timeout_begin(&s, RESHA_S(9));
        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        resha_spawn(&g, job, &j);
        ASSERT_OK(resha_yield());
        resha_scope_cancel(&s);
        ASSERT_EQ(resha_group_end(&g, 5), 5);
        ASSERT_STR(notes(), "a+ a!");
        return resha_scope_end(&s, 0);
}

/* ---- drain ---- */

TASK(group_drain_when_all_end_in_time)
{
        struct job j[] = { JOB("a", 1), JOB("b", 5) };
        resha_instant start = resha_now();

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (size_t i = 0; i < 2; i++)
                resha_spawn(&g, job, &j[i]);
        ASSERT_EQ(resha_group_drain(&g, RESHA_S(9)), 0);
        ASSERT_PASSED(start, 5);
        ASSERT_EQ(resha_group_end(&g, 0), 0);
        return 0;
}

struct successor {
        resha_group *group;
        struct job *before, *after;
};

static int spawns_a_successor(void *arg)
{
        struct successor *s = arg;

        ASSERT_OK(resha_task_wait(&s->before->task, NULL));
        ASSERT_OK(resha_spawn(s->group, job, s->after));
        return 0;
}

TASK(group_drain_waits_no_longer_for_one_that_is_spawned_at_its_end)
{
        struct job a = JOB("a", 1), b = JOB("b", 5000);
        resha_instant start = resha_now();

        RESHA_GROUP(others);
        resha_group_begin(&others, NULL);
        RESHA_GROUP(g);
        struct successor s = { &g, &a, &b };
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, job, &a, &a.task));
        ASSERT_OK(resha_spawn(&others, spawns_a_successor, &s));
        ASSERT_EQ(resha_group_drain(&g, MS(20)), -ETIME);
        ASSERT_PASSED(start, 20);
        ASSERT_STR(notes(), "a+ a- b+ b!");
        ASSERT_OK(resha_group_end(&g, 0));
        return resha_group_end(&others, 0);
}

TASK(group_drain_cancels_after_the_grace)
{
        struct job j[] = { JOB("a", 1), JOB("b", 5000, .clean = 2) };
        resha_instant start = resha_now();

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (size_t i = 0; i < 2; i++)
                resha_spawn(&g, job, &j[i]);
        ASSERT_EQ(resha_group_drain(&g, MS(10)), -ETIME);
        ASSERT_EQ(resha_group_running(&g), 0);
        ASSERT_STR(notes(), "a+ b+ a- b!");
        ASSERT_PASSED(start, 12);
        ASSERT_EQ(resha_group_end(&g, 0), 0); /* the recipe: a drain that cut short is no failure */
        return 0;
}

TASK(group_drain_of_zero_cancels_at_once)
{
        struct job j = JOB("a", 5000);

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, job, &j);
        ASSERT_OK(resha_yield());
        ASSERT_EQ(resha_group_drain(&g, RESHA_NS(0)), -ETIME);
        ASSERT_STR(notes(), "a+ a!");
        return resha_group_end(&g, 0);
}

TASK(group_drain_of_none)
{
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_EQ(resha_group_drain(&g, RESHA_S(1)), 0);
        return resha_group_end(&g, 0);
}

static int drains(void *arg)
{
        struct job *j = arg;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, job, j);
        int rc = resha_group_drain(&g, RESHA_S(9));
        note("drain %d, %zu left", rc, resha_group_running(&g));
        return resha_group_end(&g, rc);
}

TASK(group_drain_cancelled_from_outside)
{
        struct job j = JOB("a", 5000, .clean = 2);

        ASSERT_EQ(status_when_cancelled(1, drains, &j), -ECANCELED);
        ASSERT_STR(notes(), "a+ a! drain -125, 0 left");
        return 0;
}

TASK(group_drain_with_a_failing_child)
{
        struct job j[] = { JOB("a", 2, .result = -EIO), JOB("b", 5000) };

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (size_t i = 0; i < 2; i++)
                resha_spawn(&g, job, &j[i]);
        int rc = resha_group_drain(&g, RESHA_S(60));
        ASSERT_TRUE(rc < 0);
        ASSERT_EQ(resha_group_end(&g, rc), -EIO);
        return 0;
}

/* ---- bad options ---- */

TASK(group_reserved_words_must_be_zero)
{
        resha_group_opts o = { .limit = 1 };

        o._reserved[2] = 1;
        RESHA_GROUP(g);
        resha_group_begin(&g, &o);
        ASSERT_EQ(resha_group_end(&g, 0), -EINVAL);
        return 0;
}

TASK(spawn_reserved_words_must_be_zero)
{
        struct job j = JOB("a", 1);
        resha_spawn_opts o = { .name = "x" };

        o._reserved[0] = 1;
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_EQ(resha_spawn_opt(&g, job, &j, &o), -EINVAL);
        int rc = resha_group_end(&g, 0);
        ASSERT_TRUE(rc == -EINVAL || rc == 0);
        ASSERT_STR(notes(), "");
        return 0;
}

/* ---- copies ---- */

static int takes_a_copy(void *arg)
{
        int *n = arg;

        note("%d", *n);
        *n = 0; /* its own */
        ASSERT_OK(resha_yield());
        return 0;
}

TASK(spawn_copy_takes_the_value_of_now)
{
        int n = 1;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_copy(&g, takes_a_copy, &n));
        n = 2;
        ASSERT_OK(resha_spawn_copy(&g, takes_a_copy, &n));
        n = 3;
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(n, 3);
        ASSERT_STR(notes(), "1 2");
        return 0;
}

static int sum(void *arg)
{
        const unsigned char *bytes = arg;
        unsigned total = 0;

        for (size_t i = 0; i < 16 * 1024; i++)
                total += bytes[i];
        note("%u", total);
        return 0;
}

TASK(spawn_copy_is_limited)
{
        static unsigned char bytes[16 * 1024 + 1];

        memset(bytes, 1, sizeof bytes);
        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .keep_going = true });
        ASSERT_OK(resha_spawn_opt(&g, sum, bytes, &(resha_spawn_opts){ .copy = 16 * 1024 }));
        ASSERT_EQ(resha_spawn_opt(&g, sum, bytes, &(resha_spawn_opts){ .copy = sizeof bytes }), -EINVAL);
        int rc = resha_group_end(&g, 0);
        ASSERT_TRUE(rc == 0 || rc == -EINVAL);
        ASSERT_STR(notes(), "16384");
        return 0;
}

/* ---- misuse ---- */

TASK(group_begun_twice)
{
        struct job j = JOB("a", 1);

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, job, &j);
        resha_group_begin(&g, NULL);
        ASSERT_EQ(resha_group_end(&g, 0), -EINVAL);
        ASSERT_STR(notes(), "a+ a-");
        return 0;
}
