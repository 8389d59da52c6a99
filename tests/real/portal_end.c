/* SPDX-License-Identifier: MIT */
/* How portals end: shut down, cancelled, never served, given up, forked; and all of it at random, from many threads. */

#include "common.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"

static resha_portal *portal; /* of the test */

static int serve(void *arg)
{
        return resha_portal_serve(arg);
}

struct step {
        atomic_int started, go_on;
};

/* Until it is told to go on, or cancelled. */
static int step(void *arg)
{
        struct step *s = arg;
        int rc = 0;

        atomic_store(&s->started, 1);
        while (rc == 0 && !atomic_load(&s->go_on))
                rc = resha_sleep(RESHA_US(200));
        return rc < 0 ? rc : 5;
}

static void until(atomic_int *flag)
{
        while (!atomic_load(flag))
                usleep(200);
}

static pthread_t start_thread(void *(*fn)(void *arg), void *arg)
{
        pthread_t thread;

        ASSERT_EQ(pthread_create(&thread, NULL, fn, arg), 0);
        return thread;
}

static int result_of(resha_portal_handle *h)
{
        int result;

        ASSERT_OK(resha_portal_wait(h, RESHA_FOREVER, &result));
        return result;
}

/* ---- shut down ---- */

static void *shuts_down_in_the_middle(void *arg)
{
        resha_portal_handle h[2] = { 0 };
        struct step s[2] = { 0 };

        ASSERT_OK(resha_portal_start(portal, &h[0], step, &s[0]));
        until(&s[0].started);
        ASSERT_OK(resha_portal_start(portal, &h[1], step, &s[1]));
        resha_portal_shutdown(portal);
        resha_portal_shutdown(portal);
        ASSERT_EQ(resha_portal_call(portal, step, &s[1]), RESHA_ESHUT);
        ASSERT_STR(resha_error_of(RESHA_ESHUT)->text, "the portal is shut down: the call was not started");
        ASSERT_FALSE(atomic_load(&s[1].started));
        atomic_store(&s[0].go_on, 1);
        ASSERT_EQ(result_of(&h[0]), 5);
        until(&s[1].started);
        resha_portal_cancel(&h[1]); /* while the server joins */
        ASSERT_EQ(result_of(&h[1]), -ECANCELED);
        resha_portal_unref(portal);
        return arg;
}

TEST(what_was_called_before_the_end_still_runs)
{
        ASSERT_OK(resha_portal_new(&(resha_portal_opts){ .limit = 1 }, &portal));
        pthread_t thread = start_thread(shuts_down_in_the_middle, resha_portal_ref(portal));
        ASSERT_EQ(test_run_opts(serve, portal, NULL), 0);
        resha_portal_unref(portal); /* by whom last is open */
        ASSERT_EQ(pthread_join(thread, NULL), 0);
}

static void *never_started(void *handle)
{
        ASSERT_EQ(result_of(handle), RESHA_ESHUT);
        ASSERT_STR(resha_error_of(RESHA_ESHUT)->text, "the portal was shut down before the call had started");
        ASSERT_STR(resha_error_of(RESHA_ESHUT)->task, "step");
        return NULL;
}

TEST(a_call_that_nobody_serves_ends_with_the_portal)
{
        resha_portal_handle h = { { 0 } };

        ASSERT_OK(resha_portal_new(NULL, &portal));
        ASSERT_OK(resha_portal_start(portal, &h, step, NULL));
        pthread_t thread = start_thread(never_started, &h);
        usleep(1000);
        resha_portal_shutdown(portal);
        resha_portal_unref(portal); /* the handle may still hold one */
        ASSERT_EQ(pthread_join(thread, NULL), 0);
}

/* ---- no memory for a task ---- */

enum { MANY = 100 };

static int shuts_down(void *p)
{
        resha_portal_shutdown(p);
        return 1;
}

static int serve_without_memory(void *p)
{
        rs_alloc_fail_after(1, true);
        int rc = resha_portal_serve(p);
        rs_alloc_fail_after(0, false);
        return rc;
}

TEST(a_call_for_whose_task_there_is_no_memory_fails_alone)
{
        static resha_portal_handle h[MANY];
        unsigned good = 0, failed = 0;

        ASSERT_OK(resha_portal_new(NULL, &portal));
        for (int i = 0; i < MANY; i++)
                ASSERT_OK(resha_portal_start(portal, &h[i], shuts_down, portal));
        ASSERT_EQ(test_run_opts(serve_without_memory, portal, NULL), 0);
        for (int i = 0; i < MANY; i++) {
                int rc = result_of(&h[i]);
                good += rc == 1;
                failed += rc == -ENOMEM;
        }
        ASSERT_TRUE(good > 0 && failed > 0);
        ASSERT_EQ(good + failed, MANY);
        resha_portal_unref(portal);
}

/* ---- the server is cancelled ---- */

static int serve_for_a_while(void *arg)
{
        ASSERT_EQ(resha_timeout(RESHA_MS(20), serve, arg), -ETIME);
        return 0;
}

TEST(a_cancelled_server_cancels_what_runs_and_refuses_what_waits)
{
        resha_portal_handle h[2] = { 0 };
        struct step s[2] = { 0 };

        ASSERT_OK(resha_portal_new(&(resha_portal_opts){ .limit = 1 }, &portal));
        ASSERT_OK(resha_portal_start(portal, &h[0], step, &s[0]));
        ASSERT_OK(resha_portal_start(portal, &h[1], step, &s[1]));
        ASSERT_OK(test_run_opts(serve_for_a_while, portal, NULL));
        ASSERT_TRUE(atomic_load(&s[0].started));
        ASSERT_EQ(result_of(&h[0]), -ECANCELED);
        ASSERT_STR(resha_error_of(-ECANCELED)->text, "cancelled because a deadline passed");
        never_started(&h[1]);
        ASSERT_FALSE(atomic_load(&s[1].started));
        ASSERT_EQ(resha_portal_call(portal, step, &s[1]), RESHA_ESHUT);
        resha_portal_unref(portal);
}

static int serve_cancelled(void *arg)
{
        ASSERT_EQ(resha_timeout(RESHA_S(0), serve, arg), -ETIME);
        return 0;
}

TEST(a_server_that_is_cancelled_before_it_begins_refuses_what_waits)
{
        resha_portal_handle h = { { 0 } };

        ASSERT_OK(resha_portal_new(NULL, &portal));
        ASSERT_OK(resha_portal_start(portal, &h, step, NULL));
        ASSERT_OK(test_run_opts(serve_cancelled, portal, NULL));
        never_started(&h);
        resha_portal_unref(portal);
}

/* ---- the run is given up ---- */

static int ignores_cancels(void *arg)
{
        resha_event never = { { 0 } };

        atomic_store(&((struct step *)arg)->started, 1);
        return resha_shielded(RESHA_FOREVER, (resha_fn *)(void *)resha_event_wait, &never);
}

static void *is_given_up(void *arg)
{
        static resha_portal_handle h[2];
        static struct step s[2];

        ASSERT_OK(resha_portal_start(portal, &h[0], ignores_cancels, &s[0]));
        until(&s[0].started);
        ASSERT_OK(resha_portal_start(portal, &h[1], step, &s[1]));
        atomic_store((atomic_int *)arg, 1);
        ASSERT_EQ(result_of(&h[1]), RESHA_ESHUT);
        ASSERT_EQ(result_of(&h[0]), RESHA_EGIVENUP);
        ASSERT_HAS(resha_error_of(RESHA_EGIVENUP)->text, "the run was given up after its grace");
        ASSERT_EQ(resha_portal_call(portal, step, &s[1]), RESHA_ESHUT);
        return NULL;
}

static int serve_and_interrupt(void *arg)
{
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        resha_spawn(&g, serve, portal);
        while (!atomic_load((atomic_int *)arg))
                ASSERT_OK(resha_sleep(RESHA_MS(1)));
        kill(getpid(), SIGINT);
        return resha_group_end(&g, 0);
}

static int run_that_is_given_up(void *arg)
{
        atomic_int ready = 0;

        (void)arg;
        ASSERT_OK(resha_portal_new(&(resha_portal_opts){ .limit = 1 }, &portal));
        pthread_t thread = start_thread(is_given_up, &ready);
        int rc = test_run_opts(serve_and_interrupt, &ready, &(resha_run_opts){ .grace = RESHA_MS(50) });
        ASSERT_EQ(rc, -ECANCELED);
        ASSERT_EQ(pthread_join(thread, NULL), 0);
        resha_portal_unref(portal);
        return 42;
}

/* Its tasks are leaked on purpose, so this is a process of its own. */
TEST(calls_of_a_run_that_is_given_up_end)
{
        struct test_child c;

        if (real_under_tsan() || test_is_sim())
                test_skip("needs Ctrl-C, at once, and a child with threads");
        test_child(run_that_is_given_up, NULL, &c);
        ASSERT_STR(c.text, "");
        ASSERT_TRUE(WIFEXITED(c.status));
        ASSERT_EQ(WEXITSTATUS(c.status), 42);
}

/* ---- a forked child ---- */

static resha_portal_handle parents;
static struct step parents_step;

static int use_parents_portal(__attribute__((unused)) void *arg)
{
        resha_portal_handle h = { { 0 } };
        int result;

        ASSERT_EQ(resha_portal_call(portal, step, NULL), -EPERM);
        ASSERT_HAS(resha_error_of(-EPERM)->text, "the portal is the parent process's");
        ASSERT_EQ(resha_portal_start(portal, &h, step, NULL), -EPERM);
        ASSERT_EQ(resha_portal_wait(&parents, RESHA_FOREVER, &result), -EPERM);
        resha_portal_cancel(&parents);
        resha_portal_shutdown(portal);
        resha_portal_unref(portal);
        return 42;
}

static void *calls_meanwhile(void *arg)
{
        ASSERT_OK(resha_portal_start(portal, &parents, step, &parents_step));
        until(arg);
        atomic_store(&parents_step.go_on, 1);
        ASSERT_EQ(result_of(&parents), 5);
        resha_portal_shutdown(portal);
        return arg;
}

static int fork_while_served(void *arg)
{
        struct test_child c;
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        resha_spawn(&g, serve, portal);
        while (!atomic_load(&parents_step.started))
                ASSERT_OK(resha_sleep(RESHA_MS(1)));
        test_child(use_parents_portal, NULL, &c);
        ASSERT_STR(c.text, "");
        ASSERT_EQ(WEXITSTATUS(c.status), 42);
        atomic_store((atomic_int *)arg, 1);
        return resha_group_end(&g, 0);
}

TEST(a_forked_child_leaves_the_portal_alone)
{
        atomic_int forked = 0;

        if (real_under_tsan())
                test_skip("TSan knows no threads in a process that forks");
        ASSERT_OK(resha_portal_new(NULL, &portal));
        pthread_t thread = start_thread(calls_meanwhile, &forked);
        ASSERT_OK(test_run_opts(fork_while_served, &forked, NULL));
        ASSERT_EQ(pthread_join(thread, NULL), 0);
        resha_portal_unref(portal);
}

/* ---- many threads, at random ---- */

enum { THREADS = 8, ROUNDS = 30, CALLS = 60 };

struct thread {
        pthread_t id;
        unsigned seed;
        resha_portal_handle handle; /* cancelled by others, too */
        unsigned good, failed, cancelled, refused;
};

static struct thread threads[THREADS];
static atomic_uint begun, over; /* tasks */
static atomic_uint left;        /* threads */

static unsigned luck(struct thread *t, unsigned n)
{
        return (unsigned)rand_r(&t->seed) % n;
}

/* What a task does: *arg is 0..3. */
static int any_task(void *arg)
{
        unsigned kind = *(unsigned *)arg;
        resha_event never = { { 0 } };
        int rc = 0;

        atomic_fetch_add(&begun, 1);
        if (kind == 1)
                rc = resha_sleep(RESHA_US(50));
        else if (kind == 2)
                rc = resha_yield() < 0 ? -ECANCELED : resha_fail(-EBADMSG, "of kind 2");
        else if (kind == 3)
                rc = resha_event_wait(&never);
        atomic_fetch_add(&over, 1);
        return rc < 0 ? rc : (int)kind + 10;
}

static void account(struct thread *t, unsigned kind, int rc)
{
        switch (rc) {
        case -ECANCELED: t->cancelled++; break;
        case -EBADMSG:
                ASSERT_EQ(kind, 2);
                ASSERT_STR(resha_error_of(rc)->text, "of kind 2");
                t->failed++;
                break;
        case RESHA_ESHUT:
        case RESHA_EFULL: t->refused++; break;
        default: ASSERT_EQ(rc, kind + 10); t->good++;
        }
}

static int start_and_wait(struct thread *t, unsigned *kind)
{
        int rc = resha_portal_start(portal, &t->handle, any_task, kind), result;

        if (rc < 0)
                return rc;
        if (luck(t, 2))
                usleep(luck(t, 100));
        if (*kind == 3 || luck(t, 4) == 0)
                resha_portal_cancel(&t->handle);
        while ((rc = resha_portal_wait(&t->handle, RESHA_US(luck(t, 300)), &result)) == -ETIME) {}
        ASSERT_OK(rc);
        return result;
}

static void *stress_thread(void *arg)
{
        struct thread *t = arg;

        for (int i = 0, rc = 0; i < CALLS && rc != RESHA_ESHUT; i++) {
                unsigned kind = luck(t, 4);
                bool simple = kind < 3 && luck(t, 3) == 0;
                rc = simple ? resha_portal_call(portal, any_task, &kind) : start_and_wait(t, &kind);
                account(t, kind, rc);
                if (luck(t, 8) == 0)
                        resha_portal_cancel(&threads[luck(t, THREADS)].handle);
                if (luck(t, CALLS * THREADS) == 0)
                        resha_portal_shutdown(portal);
        }
        if (atomic_fetch_sub(&left, 1) == 1)
                resha_portal_shutdown(portal);
        resha_portal_unref(portal);
        return arg;
}

static int serve_round(void *arg)
{
        int rc = resha_timeout(*(resha_duration *)arg, serve, portal);

        ASSERT_TRUE(rc == 0 || rc == -ETIME);
        return 0;
}

static void stress_round(unsigned seed)
{
        resha_duration at_most = seed % 2 ? RESHA_MS(seed % 7) : RESHA_S(60);

        ASSERT_OK(resha_portal_new(&(resha_portal_opts){ .limit = 1 + seed % 4, .queue = 1 + seed % 5 }, &portal));
        atomic_store(&left, THREADS);
        for (unsigned i = 0; i < THREADS; i++) {
                threads[i].seed = seed * THREADS + i + 1;
                resha_portal_ref(portal);
                threads[i].id = start_thread(stress_thread, &threads[i]);
        }
        ASSERT_OK(test_run_opts(serve_round, &at_most, NULL));
        for (unsigned i = 0; i < THREADS; i++)
                ASSERT_EQ(pthread_join(threads[i].id, NULL), 0);
        resha_portal_unref(portal);
}

TEST(many_threads_call_cancel_and_shut_down_at_random)
{
        struct thread sum = { 0 };

        for (unsigned seed = 0; seed < (test_is_sim() ? 4 : ROUNDS); seed++)
                stress_round(seed);
        for (unsigned i = 0; i < THREADS; i++) {
                sum.good += threads[i].good;
                sum.failed += threads[i].failed;
                sum.cancelled += threads[i].cancelled;
                sum.refused += threads[i].refused;
        }
        printf("%u good, %u failed, %u cancelled, %u refused; %u tasks\n", sum.good, sum.failed, sum.cancelled,
               sum.refused, atomic_load(&begun));
        ASSERT_EQ(atomic_load(&begun), atomic_load(&over));
        ASSERT_TRUE(test_is_sim() || (sum.good && sum.failed && sum.cancelled && sum.refused));
}
