/* SPDX-License-Identifier: MIT */
/* Runs of the stress that are given up, with everything in them: thread jobs that do not end in time, tasks that hold
 * out, calls of threads, a map over processes. What the run leaves behind goes on by itself until it has ended, and
 * meets nothing there: each job ends once, threads learn that nobody is there any more, workers can be stopped, and
 * other runs begin and end beside it.
 *
 * The memory of such a run is lost on purpose, so this is a process of its own. */

#include "stress.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { JOBS = 12, POSTERS = 4, RUNS = 5 };

static struct {
        atomic_bool go_on;
        atomic_uint begun, ended, returned;
        unsigned ran; /* posts; the loop's */
        atomic_uint posted;
        resha_loop *refs[POSTERS];
        resha_portal *portal;
        resha_workers *workers;
        pthread_t threads[POSTERS];
} up;

static int holds_out(__attribute__((unused)) void *arg)
{
        atomic_fetch_add(&up.begun, 1);
        while (!atomic_load(&up.go_on))
                usleep(200);
        atomic_fetch_add(&up.ended, 1);
        return 0;
}

static int has_a_job(void *arg)
{
        int rc = resha_pool_run(NULL, holds_out, arg, NULL);

        atomic_fetch_add(&up.returned, 1);
        return rc;
}

static int sleeps_in_a_worker(__attribute__((unused)) void *item)
{
        sleep(3600);
        return 0;
}

static int maps(__attribute__((unused)) void *arg)
{
        static char items[8];

        return resha_workers_map(up.workers, sleeps_in_a_worker, items, sizeof items, 1, NULL);
}

static int never_ends(__attribute__((unused)) void *arg)
{
        resha_event never = { { 0 } }; /* an event is of one loop */

        return resha_event_wait(&never);
}

static int shielded(void *fn)
{
        return resha_shielded(RESHA_FOREVER, *(resha_fn **)fn, NULL);
}

static int serve(__attribute__((unused)) void *arg)
{
        return resha_portal_serve(up.portal);
}

static void count(__attribute__((unused)) void *arg)
{
        up.ran++;
}

/* One of them calls, the others post. */
static void *poster(void *arg)
{
        resha_loop *l = *(resha_loop **)arg;
        static resha_fn *fn = never_ends;
        int rc = 0;

        if (l == up.refs[0]) {
                rc = resha_portal_call(up.portal, shielded, &fn);
                ASSERT_TRUE(rc == RESHA_EGIVENUP || rc == RESHA_ESHUT);
        }
        for (rc = 0; rc == 0; usleep(100)) {
                rc = resha_loop_post(l, count, NULL);
                atomic_fetch_add(&up.posted, rc == 0);
        }
        ASSERT_EQ(rc, RESHA_ESHUT);
        resha_loop_unref(l);
        return NULL;
}

static int given_up(void *arg)
{
        static resha_fn *fns[] = { never_ends, maps };
        RESHA_GROUP(g);

        for (int i = 0; i < POSTERS; i++) {
                up.refs[i] = resha_loop_ref();
                ASSERT_EQ(pthread_create(&up.threads[i], NULL, poster, &up.refs[i]), 0);
        }
        resha_group_begin(&g, NULL);
        for (int i = 0; i < JOBS; i++)
                resha_spawn(&g, has_a_job, arg);
        resha_spawn(&g, shielded, &fns[0]);
        resha_spawn(&g, shielded, &fns[1]);
        resha_spawn(&g, serve, NULL);
        int rc = resha_sleep(RESHA_US(roll(arg, 5000)));
        resha_loop *l = resha_loop_ref();
        resha_loop_cancel(l);
        resha_loop_unref(l);
        return resha_group_end(&g, rc);
}

static int has_jobs(__attribute__((unused)) void *arg)
{
        char items[6];

        return resha_gather(has_a_job, items, 6, 1, NULL);
}

static int left_behind(void *arg)
{
        struct luck luck = luck_of(*(unsigned *)arg, 0);

        ASSERT_OK(resha_workers_start(&(resha_workers_opts){ .processes = 2 }, &up.workers));
        ASSERT_OK(resha_portal_new(NULL, &up.portal));
        int rc = test_run_opts(given_up, &luck, &(resha_run_opts){ .grace = RESHA_MS(20), .threads = 3 });
        ASSERT_EQ(rc, -ECANCELED);
        for (int i = 0; i < POSTERS; i++)
                ASSERT_EQ(pthread_join(up.threads[i], NULL), 0);
        ASSERT_EQ(up.ran, atomic_load(&up.posted));
        resha_portal_unref(up.portal);
        resha_workers_stop(up.workers);
        ASSERT_EQ(waitpid(-1, NULL, WNOHANG), -1);
        unsigned begun = atomic_load(&up.begun), returned = atomic_load(&up.returned);
        ASSERT_EQ(atomic_load(&up.ended), 0);
        if (roll(&luck, 2))
                atomic_store(&up.go_on, true); /* they end while the next run has jobs */
        else
                ASSERT_OK(test_run_opts(never_ends, NULL, NULL) == -EDEADLK ? 0 : -1);
        atomic_store(&up.go_on, true);
        ASSERT_OK(test_run_opts(has_jobs, NULL, &(resha_run_opts){ .threads = 2 }));
        while (atomic_load(&up.ended) < begun + 6)
                usleep(1000); /* for ever, if a job is lost: the test's alarm ends it */
        ASSERT_EQ(atomic_load(&up.begun), begun + 6);
        ASSERT_EQ(atomic_load(&up.returned), returned + 6); /* nothing of the first run has gone on */
        return 42;
}

TEST(what_a_run_leaves_behind_that_is_given_up_ends_by_itself)
{
        if (real_under_tsan() || real_under_asan())
                test_skip("its memory is lost on purpose");
        for (unsigned seed = 1; seed <= RUNS; seed++) {
                static struct test_child c;
                test_child(left_behind, &seed, &c);
                ASSERT_STR(c.text, "");
                ASSERT_TRUE(WIFEXITED(c.status));
                ASSERT_EQ(WEXITSTATUS(c.status), 42);
        }
}
