/* SPDX-License-Identifier: MIT */
/* Codes and records: what a failure says, how long it is kept, and who gets it. */

#include <fenv.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"

TEST(error_strerror_knows_every_code)
{
        for (int code = 10; code > -5000; code--)
                ASSERT_TRUE(resha_strerror(code) && *resha_strerror(code));
        ASSERT_STR(resha_strerror(-ECONNREFUSED), "Connection refused");
        ASSERT_STR(resha_strerror(-ETIME), "deadline passed");
}

TEST(error_names)
{
        ASSERT_STR(resha_errname(-ECONNREFUSED), "ECONNREFUSED");
        ASSERT_STR(resha_errname(-ECANCELED), "ECANCELED");
        ASSERT_STR(resha_errname(RESHA_HTTP_EURL), "RESHA_HTTP_EURL");
        ASSERT_STR(resha_errname(RESHA_HTTP_ECLOSED), "RESHA_HTTP_ECLOSED");
        ASSERT_STR(resha_errname(-4000), NULL);
        ASSERT_STR(resha_errname(7), NULL);
}

TEST(error_codes_have_texts_of_their_own)
{
        for (int code = RESHA_HTTP_EURL; code <= RESHA_HTTP_ECLOSED; code++) {
                ASSERT_TRUE(resha_errname(code));
                for (int other = RESHA_HTTP_EURL; other < code; other++)
                        ASSERT_TRUE(strcmp(resha_strerror(code), resha_strerror(other)) != 0);
        }
}

TEST(error_outside_a_task)
{
        ASSERT_EQ(resha_fail(-EIO, "the %s keeps this", "thread"), -EIO);
        ASSERT_EQ(resha_error_of(-EIO)->code, -EIO);
        ASSERT_STR(resha_error_of(-EIO)->text, "the thread keeps this");
        ASSERT_STR(resha_error_of(-ENOENT)->text, resha_strerror(-ENOENT));
        resha_fail(-ENOENT, "the latest");
        ASSERT_STR(resha_error_of(-ENOENT)->text, "the latest");
        ASSERT_STR(resha_error_of(-EIO)->text, resha_strerror(-EIO));
}

TASK(error_of_success_is_none)
{
        resha_fail(-EIO, "before");
        ASSERT_EQ(resha_error_of(0)->code, 0);
        ASSERT_STR(resha_error_of(3)->text, "");
        return 0;
}

TASK(error_record_says_what_and_where)
{
        int line = __LINE__ + 1;
        ASSERT_EQ(resha_fail(-ENOENT, "no rate for %s", "XXX"), -ENOENT);
        const resha_error *e = resha_error_of(-ENOENT);
        char site[64];

        snprintf(site, sizeof site, "tests/unit/error.c:%d", line);
        ASSERT_EQ(e->code, -ENOENT);
        ASSERT_STR(e->text, "no rate for XXX");
        ASSERT_STR(e->site, site);
        ASSERT_EQ(e->item, 0);
        ASSERT_EQ(e->items, 0);
        ASSERT_EQ(e->cancelled, 0);
        return 0;
}

TASK(error_without_a_record_has_the_text_of_its_code)
{
        const resha_error *e = resha_error_of(-EPIPE);

        ASSERT_EQ(e->code, -EPIPE);
        ASSERT_STR(e->text, resha_strerror(-EPIPE));
        ASSERT_PTR(e->site, NULL);
        return 0;
}

TASK(error_text_is_cut_with_dots)
{
        char longer[1000];

        memset(longer, 'x', sizeof longer - 1);
        longer[sizeof longer - 1] = '\0';
        resha_fail(-EIO, "%s", longer);
        const resha_error *e = resha_error_of(-EIO);
        ASSERT_EQ(strlen(e->text), sizeof e->text - 1);
        ASSERT_STR(e->text + sizeof e->text - 5, "x...");

        longer[sizeof e->text - 1] = '\0'; /* fits exactly */
        resha_fail(-EIO, "%s", longer);
        ASSERT_STR(resha_error_of(-EIO)->text, longer);
        return 0;
}

TASK(error_text_is_one_line_whatever_is_in_it)
{
        resha_fail(-ENOENT, "no host %s", "a\r\nb\x1b\x7f\xc3\xa9");
        ASSERT_STR(resha_error_of(-ENOENT)->text, "no host a??b??\xc3\xa9");
        return 0;
}

TASK(error_arguments_may_lie_in_the_record)
{
        resha_fail(-EIO, "disk full");
        resha_fail(-EIO, "saving: %s", resha_error_of(-EIO)->text);
        ASSERT_STR(resha_error_of(-EIO)->text, "saving: disk full");
        resha_fail(-ENOSPC, "again: %s", resha_error_of(-EIO)->text);
        ASSERT_STR(resha_error_of(-ENOSPC)->text, "again: saving: disk full");
        ASSERT_STR(resha_error_of(-EIO)->text, "saving: disk full");
        return 0;
}

TASK(error_record_survives_success_and_other_codes)
{
        resha_mutex m = { { 0 } };

        resha_fail(-EIO, "the first");
        ASSERT_OK(resha_sleep(MS(1)));
        ASSERT_OK(resha_mutex_lock(&m));
        ASSERT_OK(resha_mutex_unlock(&m));
        resha_fail(-ENOENT, "clean-up");
        ASSERT_EQ(resha_mutex_unlock(&m), -EPERM);
        ASSERT_STR(resha_error_of(-EIO)->text, "the first");
        ASSERT_STR(resha_error_of(-ENOENT)->text, "clean-up");
        return 0;
}

TASK(error_record_of_the_same_code_is_replaced)
{
        resha_fail(-EIO, "one");
        resha_fail(-EIO, "two");
        ASSERT_STR(resha_error_of(-EIO)->text, "two");
        return 0;
}

static int fail_the_same_way(__attribute__((unused)) void *arg)
{
        return resha_fail(-EIO, "clean-up failed");
}

TASK(error_record_survives_a_shield)
{
        resha_fail(-EIO, "the cause");
        ASSERT_EQ(resha_shielded(RESHA_S(1), fail_the_same_way, NULL), -EIO);
        ASSERT_STR(resha_error_of(-EIO)->text, "the cause");
        return 0;
}

static int fails_inside(__attribute__((unused)) void *arg)
{
        return resha_fail(-EPROTO, "inner");
}

static int fails_in_a_nested_shield(__attribute__((unused)) void *arg)
{
        return resha_shielded(RESHA_S(1), fails_inside, NULL);
}

static int fails_in_five_ways(__attribute__((unused)) void *arg)
{
        ASSERT_STR(resha_error_of(-EIO)->text, "the cause"); /* seen from inside */
        resha_fail(-EIO, "clean-up failed");
        ASSERT_STR(resha_error_of(-EIO)->text, "clean-up failed");
        resha_fail(-E2BIG, "clean-up failed");
        resha_fail(-EPIPE, "clean-up failed");
        resha_fail(-ENODEV, "clean-up failed");
        return resha_fail(-EPROTO, "clean-up failed");
}

TASK(error_records_survive_a_shield_full_of_failures)
{
        resha_fail(-ENOENT, "another");
        resha_fail(-EIO, "the cause");
        ASSERT_EQ(resha_shielded(RESHA_S(1), fails_in_five_ways, NULL), -EPROTO);
        ASSERT_STR(resha_error_of(-EIO)->text, "the cause");
        ASSERT_STR(resha_error_of(-ENOENT)->text, "another");
        ASSERT_STR(resha_error_of(-EPROTO)->text, "clean-up failed");
        resha_fail(-EACCES, "third");
        resha_fail(-EBUSY, "fourth");
        ASSERT_EQ(resha_shielded(RESHA_S(1), fail_the_same_way, NULL), -EIO);
        resha_fail(-EFBIG, "fifth");
        ASSERT_EQ(resha_shielded(RESHA_S(1), fails_in_a_nested_shield, NULL), -EPROTO);
        ASSERT_STR(resha_error_of(-EPROTO)->text, "inner"); /* there is always room for the latest */
        ASSERT_STR(resha_error_of(-EFBIG)->text, "fifth");
        return 0;
}

TASK(error_of_a_shield_is_kept_where_there_was_none)
{
        ASSERT_EQ(resha_shielded(RESHA_S(1), fail_the_same_way, NULL), -EIO);
        ASSERT_STR(resha_error_of(-EIO)->text, "clean-up failed");
        return 0;
}

TASK(error_of_a_child_reaches_the_parent)
{
        struct job j = JOB("a", 25, .result = -EIO);
        char site[64];

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        int line = __LINE__ + 1;
        resha_spawn(&g, job, &j);
        ASSERT_EQ(resha_group_end(&g, 0), -EIO);

        const resha_error *e = resha_error_of(-EIO);
        snprintf(site, sizeof site, "tests/unit/error.c:%d", line);
        ASSERT_STR(e->text, "a failed");
        ASSERT_STR(e->task, "job");
        ASSERT_STR(e->spawned_at, site);
        ASSERT_HAS(e->site, "tests/unit/job.h:");
        if (test_is_sim())
                ASSERT_EQ(e->after.ns, MS(25).ns);
        else
                ASSERT_TRUE(e->after.ns >= MS(25).ns);
        return 0;
}

TASK(error_of_a_child_without_a_record)
{
        resha_task never = { 0 };
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_EQ(resha_task_wait(&never, NULL), -EINVAL);
        ASSERT_EQ(resha_group_end(&g, -EINVAL), -EINVAL);
        ASSERT_TRUE(*resha_error_of(-EINVAL)->text);
        return 0;
}

TASK(error_of_gather_names_the_item_and_counts_the_cancelled)
{
        struct job j[] = { JOB("a", 10), JOB("b", 20, .result = -ENOENT), JOB("c", 30), JOB("d", 40) };

        ASSERT_EQ(resha_gather(job, j, 4, sizeof j[0], NULL), -ENOENT);
        const resha_error *e = resha_error_of(-ENOENT);
        ASSERT_STR(e->text, "b failed");
        ASSERT_EQ(e->item, 2);
        ASSERT_EQ(e->items, 4);
        ASSERT_EQ(e->cancelled, 2);
        return 0;
}

static int pass_up(void *arg)
{
        struct job *j = arg;

        return resha_gather(job, j, 1, sizeof *j, NULL);
}

TASK(error_goes_up_through_several_tasks)
{
        struct job j = JOB("deep", 5, .result = -EBADMSG);

        ASSERT_EQ(resha_gather(pass_up, &j, 1, sizeof j, NULL), -EBADMSG);
        ASSERT_STR(resha_error_of(-EBADMSG)->text, "deep failed");
        ASSERT_HAS(resha_error_of(-EBADMSG)->site, "tests/unit/job.h:");
        return 0;
}

static int records_are_apart(void *arg)
{
        const char *name = arg;

        resha_fail(-EIO, "of %s", name);
        ASSERT_OK(resha_sleep(MS(5)));
        char expected[32];
        snprintf(expected, sizeof expected, "of %s", name);
        ASSERT_STR(resha_error_of(-EIO)->text, expected);
        return 0;
}

TASK(error_records_belong_to_their_task)
{
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, records_are_apart, (char *)"a");
        resha_spawn(&g, records_are_apart, (char *)"b");
        return resha_group_end(&g, 0);
}

static int fails_with_a_record(__attribute__((unused)) void *arg)
{
        return resha_fail(-EIO, "the main task failed");
}

static int succeeds(__attribute__((unused)) void *arg)
{
        resha_fail(-EIO, "handled");
        return 5;
}

TEST(error_of_the_main_task_leaves_the_run)
{
        resha_error e;

        memset(&e, 0xff, sizeof e);
        ASSERT_EQ(test_run_opts(fails_with_a_record, NULL, &(resha_run_opts){ .ret_error = &e }), -EIO);
        ASSERT_EQ(e.code, -EIO);
        ASSERT_STR(e.text, "the main task failed");
        ASSERT_HAS(e.site, "tests/unit/error.c:");

        ASSERT_EQ(test_run_opts(succeeds, NULL, &(resha_run_opts){ .ret_error = &e }), 5);
        ASSERT_EQ(e.code, 0);
        ASSERT_STR(e.text, "");
}

TASK(error_many_codes_in_one_task_keep_the_latest)
{
        for (int code = 1; code <= 100; code++)
                resha_fail(-code, "number %d", code);
        ASSERT_STR(resha_error_of(-100)->text, "number 100");
        ASSERT_STR(resha_error_of(-99)->text, "number 99");
        ASSERT_EQ(resha_error_of(-1)->code, -1); /* perhaps forgotten, still a text */
        ASSERT_TRUE(*resha_error_of(-1)->text);
        return 0;
}

static int own_errno(void *arg)
{
        int mine = *(int *)arg;

        errno = mine;
        for (int i = 0; i < 3; i++) {
                ASSERT_OK(resha_yield());
                ASSERT_EQ(errno, mine);
                ASSERT_OK(resha_sleep(MS(1)));
                ASSERT_EQ(errno, mine);
        }
        return 0;
}

TASK(error_errno_belongs_to_its_task)
{
        int numbers[] = { 5, 7, 11 };

        errno = 3;
        ASSERT_OK(resha_gather(own_errno, numbers, 3, sizeof numbers[0], NULL));
        ASSERT_EQ(errno, 3);
        return 0;
}

static void expect_outside(int rc)
{
        ASSERT_EQ(rc, -EPERM);
        ASSERT_HAS(resha_error_of(rc)->text, "called outside of a task");
        resha_fail(-EPERM, "another");
}

/* What a newcomer calls in main(). */
TEST(error_of_a_call_outside_of_a_task_says_so)
{
        resha_mutex m = { { 0 } };
        resha_pool *p;
        resha_stream *s, *pair[2];
        resha_listener *l;
        RESHA_GROUP(g);

        expect_outside(resha_sleep(MS(1)));
        expect_outside(resha_mutex_lock(&m));
        expect_outside(resha_mutex_try_lock(&m));
        expect_outside(resha_pool_new(NULL, &p));
        expect_outside(resha_stream_pair(pair));
        expect_outside(resha_tcp_connect("127.0.0.1", 1, &s));
        expect_outside(resha_tcp_listen("127.0.0.1", 0, &l));
        expect_outside(resha_group_drain(&g, MS(1)));
}
