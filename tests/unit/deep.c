/* SPDX-License-Identifier: MIT */
/* Calls on the thread's own stack. */

#include <string.h>

#include "core/core.h"
#include "job.h"

enum { DEEP = 600 }; /* KiB: more than a task has, much less than a thread */

static int recurse(int depth)
{
        volatile char page[1024];

        memset((char *)page, depth, sizeof page);
        return depth == 0 ? 0 : recurse(depth - 1) + (page[7] == (char)depth);
}

static int goes_deep(void *arg)
{
        int *ret_found = arg;

        *ret_found = recurse(DEEP);
        return 17;
}

TASK(deep_call_has_the_stack_of_the_thread)
{
        int found = 0;

        ASSERT_EQ(resha_deep_call(goes_deep, &found), 17);
        ASSERT_EQ(found, DEEP);
        ASSERT_OK(resha_yield());
        return 0;
}

static int remembers(void *arg)
{
        for (int i = 0; i < 20; i++) {
                int found = 0;
                ASSERT_EQ(resha_deep_call(goes_deep, &found), 17);
                ASSERT_EQ(found, DEEP);
                int rc = resha_yield();
                if (rc < 0)
                        return rc;
                ++*(int *)arg;
        }
        return 0;
}

TASK(deep_calls_of_several_tasks)
{
        int n[8] = { 0 };

        ASSERT_OK(resha_gather(remembers, n, 8, sizeof n[0], NULL));
        for (int i = 0; i < 8; i++)
                ASSERT_EQ(n[i], 20);
        return 0;
}

static int waits(void *arg)
{
        (void)arg;
        ASSERT_EQ(resha_sleep(RESHA_MS(1)), -EDEADLK);
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, RESHA_S(1));
        ASSERT_EQ(resha_yield(), -EDEADLK);
        ASSERT_EQ(resha_scope_end(&s, 0), 0);
        ASSERT_EQ(resha_yield(), -EDEADLK); /* still */
        return resha_fail(-EXDEV, "from below");
}

TASK(deep_call_cannot_wait_and_fails_as_any)
{
        ASSERT_EQ(resha_deep_call(waits, NULL), -EXDEV);
        ASSERT_STR(resha_error_of(-EXDEV)->text, "from below");
        ASSERT_OK(resha_yield());
        return 0;
}

static int nested(void *arg)
{
        int found = 0;

        ASSERT_EQ(resha_deep_call(goes_deep, &found), 17);
        ASSERT_EQ(found, DEEP);
        ASSERT_EQ(resha_yield(), -EDEADLK);
        *(bool *)arg = true;
        return 0;
}

TASK(deep_call_inside_of_another)
{
        bool done = false;

        ASSERT_OK(resha_deep_call(nested, &done));
        ASSERT_TRUE(done);
        ASSERT_OK(resha_yield());
        return 0;
}

TEST(deep_call_outside_of_a_task)
{
        int found = 0;

        ASSERT_EQ(resha_deep_call(goes_deep, &found), 17);
        ASSERT_EQ(found, DEEP);
}

static int is_cancelled(void *arg)
{
        (void)arg;
        ASSERT_TRUE(resha_cancelled());
        ASSERT_EQ(resha_checkpoint(), -EDEADLK);
        return 0;
}

TASK(deep_call_of_a_cancelled_task)
{
        RESHA_SCOPE(s);

        resha_timeout_begin(&s, RESHA_FOREVER);
        resha_scope_cancel(&s);
        ASSERT_EQ(resha_deep_call(is_cancelled, NULL), 0);
        ASSERT_EQ(resha_yield(), -ECANCELED);
        ASSERT_EQ(resha_scope_end(&s, -ECANCELED), 0);
        return 0;
}

static int cancels(void *arg)
{
        resha_scope_cancel(arg);
        ASSERT_TRUE(resha_cancelled());
        ASSERT_EQ(resha_checkpoint(), -EDEADLK);
        return 0;
}

TASK(deep_call_that_cancels_its_task)
{
        RESHA_SCOPE(s);

        resha_timeout_begin(&s, RESHA_FOREVER);
        ASSERT_EQ(resha_deep_call(cancels, &s), 0);
        ASSERT_EQ(resha_yield(), -ECANCELED);
        ASSERT_EQ(resha_scope_end(&s, -ECANCELED), 0);
        ASSERT_OK(resha_yield());
        return 0;
}

static int on_a_thread(void *arg)
{
        return resha_deep_call(goes_deep, arg);
}

TASK(deep_call_in_a_job_of_a_pool)
{
        int found = 0;

        ASSERT_EQ(resha_pool_run(NULL, on_a_thread, &found, NULL), 17);
        ASSERT_EQ(found, DEEP);
        return 0;
}

static int looks(void *arg)
{
        const void *addresses[32];
        size_t n = resha_task_stack(NULL, addresses, 32);

        *(size_t *)arg = n;
        return 0;
}

TASK(deep_call_shows_in_the_stack_of_its_task)
{
        size_t n = 0;

        ASSERT_OK(resha_deep_call(looks, &n));
        ASSERT_TRUE(n > 2); /* this frame among them, on the other stack */
        return 0;
}
