/* SPDX-License-Identifier: MIT */
/* The allocator, and what tests do with it. */

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "job.h"

#if TEST_ASAN
/* So that calloc() gives NULL there too. */
const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__asan_default_options(void)
{
        return "allocator_may_return_null=1";
}
#endif

TEST(alloc_counts_what_lives)
{
        int64_t live = rs_alloc_live();
        void *a = resha_malloc(10), *b = resha_calloc(3, 5), *c = resha_strdup("text");

        ASSERT_TRUE(a && b && c);
        ASSERT_STR(c, "text");
        for (size_t i = 0; i < 15; i++)
                ASSERT_EQ(((char *)b)[i], 0);
        ASSERT_EQ(rs_alloc_live() - live, 3);
        a = resha_realloc(a, 100000);
        ASSERT_TRUE(a);
        ASSERT_EQ(rs_alloc_live() - live, 3);
        resha_free(a);
        resha_free(b);
        resha_free(c);
        resha_free(NULL);
        ASSERT_EQ(rs_alloc_live() - live, 0);
        a = resha_realloc(NULL, 8);
        ASSERT_EQ(rs_alloc_live() - live, 1);
        resha_free(a);
}

TEST(alloc_checks_the_product)
{
        volatile size_t huge = SIZE_MAX / 2;

        ASSERT_PTR(resha_calloc(huge, 3), NULL);
}

TEST(alloc_can_be_made_to_fail)
{
        rs_alloc_fail_after(2, false);
        void *a = resha_malloc(1), *b = resha_malloc(1), *c = resha_malloc(1);

        ASSERT_TRUE(a && !b && c);
        ASSERT_EQ(rs_alloc_failed(), 1);
        rs_alloc_fail_after(1, true);
        ASSERT_PTR(resha_malloc(1), NULL);
        ASSERT_PTR(resha_calloc(1, 1), NULL);
        ASSERT_PTR(resha_strdup(""), NULL);
        ASSERT_PTR(resha_realloc(a, 1000), NULL); /* a is still there */
        ASSERT_EQ(rs_alloc_failed(), 4);
        rs_alloc_fail_after(0, false);
        resha_free(a);
        resha_free(c);
}

static int little_program(__attribute__((unused)) void *arg)
{
        struct job j[] = { JOB("a", 1), JOB("b", 2, .result = -EIO), JOB("c", 3) };
        int rc = resha_gather(job, j, 3, sizeof j[0], &(resha_gather_opts){ .keep_going = true });

        notes();
        if (rc < 0)
                return rc;
        resha_queue *q RESHA_CLEANUP(resha_queue_freep) = NULL;
        rc = resha_queue_new(4, 4, NULL, &q);
        if (rc < 0)
                return rc;
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        rc = resha_spawn_copy(&g, job, &j[0]);
        rc = resha_group_end(&g, rc);
        notes();
        return rc < 0 ? rc : resha_task_set_name("another");
}

TEST(alloc_failing_anywhere_is_survived)
{
        int64_t n = 0;

        do {
                rs_alloc_fail_after(++n, false);
                int rc = test_run_opts(little_program, NULL, NULL);
                ASSERT_TRUE(rc == 0 || rc == -ENOMEM || rc == -EAGAIN);
                if (rc < 0)
                        ASSERT_EQ(rs_alloc_failed(), 1);
                notes();
        } while (rs_alloc_failed());
        ASSERT_TRUE(n > 5);
        rs_alloc_fail_after(0, false);
}
