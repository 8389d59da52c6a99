/* SPDX-License-Identifier: MIT */
/* Thread jobs, as far as both worlds have them: what they see, what comes back, which never run. Threads themselves:
 * tests/real/pool.c. */

#include "test.h"

/* ---- what a job sees ---- */

RESHA_LOCAL(user, int, 1);

static int look_at_user(void *arg)
{
        *(int *)arg = *(const int *)resha_local_get(&user);
        return resha_local_set(&user, &(int){ 99 });
}

/* semantics 234 better
 * asyncio: a function in to_thread() sees a copy of the caller's context variables, one in run_in_executor() does not;
 * what it sets does not come back.
 * resha: every job sees the task-locals of the task that waits for it, and cannot set them: -EPERM. */
TASK(semantics_234_job_sees_the_locals_of_its_task)
{
        int seen = 0;

        ASSERT_EQ(resha_pool_run(NULL, look_at_user, &seen, NULL), -EPERM);
        ASSERT_EQ(seen, 1);
        ASSERT_OK(resha_local_set(&user, &(int){ 7 }));
        ASSERT_EQ(resha_pool_run(NULL, look_at_user, &seen, NULL), -EPERM);
        ASSERT_EQ(seen, 7);
        ASSERT_EQ(*(const int *)resha_local_get(&user), 7);
        return 0;
}

static int fail_in_a_job(void *arg)
{
        resha_fail(-EIO, "another failure");
        return resha_fail(-ENOENT, "no such thing: %s", (const char *)arg);
}

/* semantics 237 same
 * asyncio: what a function raises on its thread reaches the task that waits.
 * resha: its negative result does, with the record. */
TASK(semantics_237_failure_of_a_job_comes_with_its_record)
{
        ASSERT_EQ(resha_pool_run(NULL, fail_in_a_job, (char *)"unicorn", NULL), -ENOENT);
        ASSERT_STR(resha_error_of(-ENOENT)->text, "no such thing: unicorn");
        ASSERT_HAS(resha_error_of(-ENOENT)->site, "pool.c:");
        return 0;
}

/* ---- jobs that never run ---- */

struct call {
        resha_pool *pool;
        unsigned *entered;
        int ran, rc;
};

/* Takes 20 ms where it has a thread of its own. */
static int job_of_call(void *arg)
{
        struct call *c = arg;
        resha_instant until = resha_after(RESHA_MS(20));

        while (!test_is_sim() && resha_now().ns < until.ns)
                ;
        c->ran++;
        return 0;
}

static int run_call(void *arg)
{
        struct call *c = arg;

        ++*c->entered;
        c->rc = resha_pool_run(c->pool, job_of_call, c, NULL);
        return 0;
}

enum { CALLS = 5 };

/* One thread, and most have to wait for it. Returns when all have called. */
static int start_calls(resha_group *g, resha_pool *p, struct call calls[CALLS], unsigned *entered)
{
        int rc = 0;

        for (int i = 0; i < CALLS; i++) {
                calls[i] = (struct call){ .pool = p, .entered = entered, .rc = 1 };
                resha_spawn(g, run_call, &calls[i]);
        }
        while (rc == 0 && *entered < CALLS)
                rc = resha_yield();
        return rc;
}

/* Each has ended in one way or the other; how many were refused. */
static int refused(const struct call calls[CALLS], int code)
{
        int n = 0;

        for (int i = 0; i < CALLS; i++) {
                ASSERT_EQ(calls[i].rc, calls[i].ran ? 0 : code);
                n += calls[i].rc == code;
        }
        return n;
}

/* semantics 236 same
 * asyncio: a job that is cancelled before a thread has taken it never runs.
 * resha: neither in the queue nor in the line of those that wait for a place there. */
TASK(semantics_236_job_that_is_cancelled_before_it_starts_never_runs)
{
        resha_pool *p RESHA_CLEANUP(resha_pool_freep) = NULL;
        struct call calls[CALLS];
        unsigned entered = 0;
        RESHA_GROUP(g);

        ASSERT_OK(resha_pool_new(&(resha_pool_opts){ .threads = 1, .queue = 1 }, &p));
        resha_group_begin(&g, NULL);
        ASSERT_OK(start_calls(&g, p, calls, &entered));
        resha_group_cancel(&g);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_TRUE(refused(calls, -ECANCELED) > 0);
        return 0;
}

/* semantics 238 same
 * asyncio: an executor that was shut down refuses calls; a shutdown with a timeout warns and stops waiting.
 * resha: a pool that is being freed refuses calls, also of tasks that wait for a place in it: -EBADF. The free waits
 * for the jobs that have one; at the end of a run those get its grace, and are then reported as stuck. */
TASK(semantics_238_pool_that_is_freed_refuses_calls)
{
        struct call calls[CALLS];
        unsigned entered = 0;
        resha_pool *p;
        RESHA_GROUP(g);

        ASSERT_OK(resha_pool_new(&(resha_pool_opts){ .threads = 1, .queue = 1 }, &p));
        resha_group_begin(&g, NULL);
        ASSERT_OK(start_calls(&g, p, calls, &entered));
        resha_pool_free(p);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_TRUE(refused(calls, -EBADF) > 0);
        return 0;
}

/* ---- maps ---- */

struct item {
        int number, fails;
        bool ran;
};

static int work(void *arg)
{
        struct item *item = arg;

        item->ran = true;
        return item->fails ? resha_fail(item->fails, "item %d", item->number) : 0;
}

TASK(a_map_of_nothing_and_of_many)
{
        struct item items[50] = { 0 };
        int status[50];
        size_t failed = 1;

        ASSERT_OK(resha_pool_map(NULL, work, NULL, 0, 0, &(resha_gather_opts){ .ret_failed = &failed }));
        ASSERT_EQ(failed, 0);
        ASSERT_OK(resha_pool_map(NULL, work, items, 50, sizeof items[0], &(resha_gather_opts){ .ret_status = status }));
        for (int i = 0; i < 50; i++)
                ASSERT_TRUE(items[i].ran && status[i] == 0);
        ASSERT_EQ(resha_pool_map(NULL, work, items, 50, sizeof items[0], &(resha_gather_opts){ ._reserved = { 1 } }),
                  -EINVAL);
        return 0;
}

/* With one at a time, what comes after a failure has not started. */
TASK(a_map_with_a_limit_of_one_starts_in_order_and_stops_at_a_failure)
{
        struct item items[10] = { [4] = { .number = 4, .fails = -EBADMSG } };
        int status[10];
        size_t failed;

        ASSERT_EQ(resha_pool_map(NULL, work, items, 10, sizeof items[0],
                                 &(resha_gather_opts){ .limit = 1, .ret_status = status, .ret_failed = &failed }),
                  -EBADMSG);
        ASSERT_STR(resha_error_of(-EBADMSG)->text, "item 4");
        ASSERT_EQ(resha_error_of(-EBADMSG)->item, 5);
        for (int i = 0; i < 10; i++) {
                ASSERT_EQ(items[i].ran, i <= 4);
                ASSERT_EQ(status[i], i < 4 ? 0 : i == 4 ? -EBADMSG : -ECANCELED);
        }
        ASSERT_EQ(failed, 6);
        return 0;
}

static int map_cancelled(void *arg)
{
        return resha_pool_map(NULL, work, arg, 3, sizeof(struct item), NULL);
}

TASK(a_map_in_a_cancelled_scope_starts_nothing)
{
        struct item items[3] = { 0 };
        RESHA_SCOPE(s);

        resha_timeout_begin(&s, RESHA_FOREVER);
        resha_scope_cancel(&s);
        ASSERT_EQ(map_cancelled(items), -ECANCELED);
        (void)!resha_scope_end(&s, 0);
        ASSERT_FALSE(items[0].ran || items[1].ran || items[2].ran);
        return 0;
}

/* ---- jobs that own their argument ---- */

static int dropped;

static void drop(void *arg)
{
        dropped += *(int *)arg;
}

static int take(void *arg)
{
        return *(int *)arg;
}

TASK(a_job_that_never_began_drops_its_argument)
{
        resha_job_opts opts = { .drop = drop };
        int one = 1;
        RESHA_SCOPE(s);

        dropped = 0;
        ASSERT_FALSE(resha_job_stopped());
        ASSERT_EQ(resha_pool_run(NULL, take, &one, &opts), 1);
        ASSERT_EQ(dropped, 0);
        resha_timeout_begin(&s, RESHA_FOREVER);
        resha_scope_cancel(&s);
        ASSERT_EQ(resha_pool_run(NULL, take, &one, &opts), -ECANCELED);
        (void)!resha_scope_end(&s, 0);
        ASSERT_EQ(dropped, 1);
        return 0;
}
