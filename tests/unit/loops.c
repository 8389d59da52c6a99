/* SPDX-License-Identifier: MIT */
/* Several loops at once, each on a thread of its own: nothing is shared. */

#include <pthread.h>

#include "job.h"

enum { THREADS = 4, ROUNDS = 5 };

struct worker {
        pthread_t thread;
        resha_fn *fn;
        int number, rc;
        resha_error error;
};

static int adds(void *arg)
{
        int *n = arg;

        for (int i = 0; i < 20; i++) {
                int rc = i % 3 ? resha_yield() : resha_sleep(RESHA_US(50));
                if (rc < 0)
                        return rc;
                ++*n;
        }
        return 0;
}

static int many_tasks(void *arg)
{
        struct worker *w = arg;
        int n = 0, again = 0;
        resha_mutex m = { { 0 } };

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (int i = 0; i < 50; i++)
                ASSERT_OK(resha_spawn(&g, adds, &n));
        ASSERT_OK(resha_mutex_lock(&m));
        ASSERT_OK(resha_gather(adds, &again, 1, sizeof again, NULL));
        ASSERT_OK(resha_mutex_unlock(&m));
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(n, 1000);
        return resha_fail(-EIO, "of thread %d", w->number);
}

static void *runs(void *arg)
{
        struct worker *w = arg;

        for (int i = 0; i < ROUNDS; i++)
                w->rc = resha_run(w->fn, w, &(resha_run_opts){ .backend = test_backend(), .ret_error = &w->error });
        return NULL;
}

static void on_threads(struct worker w[THREADS], resha_fn *fn)
{
        for (int i = 0; i < THREADS; i++) {
                w[i].fn = fn;
                w[i].number = i;
                ASSERT_EQ(pthread_create(&w[i].thread, NULL, runs, &w[i]), 0);
        }
        for (int i = 0; i < THREADS; i++)
                ASSERT_EQ(pthread_join(w[i].thread, NULL), 0);
}

TEST(loops_on_several_threads)
{
        static struct worker w[THREADS];
        char text[32];

        on_threads(w, many_tasks);
        for (int i = 0; i < THREADS; i++) {
                snprintf(text, sizeof text, "of thread %d", i);
                ASSERT_EQ(w[i].rc, -EIO);
                ASSERT_STR(w[i].error.text, text);
        }
}

static int on_the_pool(void *arg)
{
        int *n = arg;

        return ++*n;
}

static int through_the_pool(void *arg)
{
        return resha_pool_run(NULL, on_the_pool, arg, NULL);
}

static int blocking_jobs(void *arg)
{
        int n[20] = { 0 }, status[20];

        (void)arg;
        ASSERT_OK(resha_gather(through_the_pool, n, 20, sizeof n[0], &(resha_gather_opts){ .ret_status = status }));
        for (int i = 0; i < 20; i++) {
                ASSERT_EQ(n[i], 1);
                ASSERT_EQ(status[i], 1);
        }
        return 0;
}

TEST(loops_each_with_a_pool)
{
        static struct worker w[THREADS];

        on_threads(w, blocking_jobs);
        for (int i = 0; i < THREADS; i++)
                ASSERT_EQ(w[i].rc, 0);
}

/* ---- a mutex of another loop ---- */

static int locks_what_is_held_elsewhere(void *mutex)
{
        ASSERT_EQ(resha_mutex_unlock(mutex), -EPERM);
        ASSERT_EQ(resha_mutex_lock(mutex), -EPERM);
        ASSERT_HAS(resha_error_of(-EPERM)->text, "another loop");
        return 0;
}

static void *runs_locks(void *mutex)
{
        ASSERT_OK(resha_run(locks_what_is_held_elsewhere, mutex, &(resha_run_opts){ .backend = test_backend() }));
        return NULL;
}

/* semantics 192 same
 * asyncio: a lock that is contended from two loops is an error.
 * resha: a mutex belongs to the loop whose task holds it; to wait for it from another gives -EPERM. */
TASK(semantics_192_mutex_held_in_another_loop)
{
        resha_mutex m = { { 0 } };
        pthread_t thread;

        ASSERT_OK(resha_mutex_lock(&m));
        ASSERT_EQ(pthread_create(&thread, NULL, runs_locks, &m), 0);
        ASSERT_EQ(pthread_join(thread, NULL), 0); /* this loop stands still meanwhile */
        ASSERT_TRUE(resha_mutex_locked(&m));
        ASSERT_OK(resha_mutex_unlock(&m));
        return 0;
}
