/* SPDX-License-Identifier: MIT */
/* What other threads bring to a loop by a reference to it: whatever the loop does at that moment, nothing is lost, and
 * nothing spins. */

#include "common.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "core/core.h"

enum { THREADS = 4, POSTS = 500, ROUNDS = 20000 };

static pthread_t start_thread(void *(*fn)(void *arg), void *arg)
{
        pthread_t thread;

        ASSERT_EQ(pthread_create(&thread, NULL, fn, arg), 0);
        return thread;
}

static void join(pthread_t thread)
{
        ASSERT_EQ(pthread_join(thread, NULL), 0);
}

static uint64_t visits(void)
{
        return rs_loop_current->polls;
}

static void set_event(void *event)
{
        ASSERT_FALSE(resha_in_task());
        ASSERT_EQ(resha_yield(), -EPERM);
        resha_event_set(event);
}

/* ---- one post ---- */

struct one {
        resha_loop *loop;
        resha_event event;
};

static void *posts_one(void *arg)
{
        struct one *o = arg;

        usleep(2000); /* the loop sleeps by now */
        ASSERT_OK(resha_loop_post(o->loop, set_event, &o->event));
        resha_loop_unref(o->loop);
        return NULL;
}

/* There is no other call here that asyncio's plain call_soon() could be mistaken for. */
TASK(semantics_21_a_post_wakes_a_loop_that_sleeps)
{
        struct one o = { .loop = resha_loop_ref() };
        uint64_t before = visits();

        pthread_t thread = start_thread(posts_one, &o);
        ASSERT_OK(resha_event_wait(&o.event));
        if (!test_is_sim())
                ASSERT_TRUE(visits() - before <= 3);
        join(thread);
        return 0;
}

static void notes_number(void *arg)
{
        note("%d", *(int *)arg);
}

/* ---- a post at any moment of the loop's going to sleep ---- */

static atomic_int rounds_begun;

static void *posts_meanwhile(void *arg)
{
        struct one *o = arg;

        for (int r = 1; r <= ROUNDS; r++) {
                for (int looks = 0; rounds_begun < r; looks++)
                        if (looks > 1000)
                                sched_yield();
                ASSERT_OK(resha_loop_post(o->loop, set_event, &o->event));
        }
        resha_loop_unref(o->loop);
        return NULL;
}

static int waits_for_post(void *event)
{
        return resha_event_wait(event);
}

TASK(a_loop_that_goes_to_sleep_meanwhile_is_woken)
{
        if (test_is_sim())
                test_skip("it does not sleep");
        struct one o = { .loop = resha_loop_ref() };
        pthread_t thread = start_thread(posts_meanwhile, &o);

        for (int r = 1; r <= ROUNDS; r++) {
                rounds_begun = r;
                for (volatile int pause = r % 512; pause > 0; pause--)
                        ; /* the post takes longer than the way to sleep */
                ASSERT_OK(resha_timeout(RESHA_S(5), waits_for_post, &o.event));
                resha_event_clear(&o.event);
        }
        join(thread);
        return 0;
}

TASK(semantics_1_posts_run_in_order_after_the_task_that_made_them)
{
        RESHA_CLEANUP(resha_loop_unrefp) resha_loop *l = resha_loop_ref();
        int n[] = { 1, 2, 3 };

        for (int i = 0; i < 3; i++)
                ASSERT_OK(resha_loop_post(l, notes_number, &n[i]));
        ASSERT_STR(notes(), "");
        ASSERT_OK(resha_sleep(RESHA_MS(1)));
        ASSERT_STR(notes(), "1 2 3");
        return 0;
}

struct again {
        resha_loop *loop;
        int left;
};

static void posts_again(void *arg)
{
        struct again *a = arg;

        if (--a->left > 0)
                ASSERT_OK(resha_loop_post(a->loop, posts_again, a));
}

TASK(what_posts_itself_again_and_again_keeps_nobody_out)
{
        RESHA_CLEANUP(resha_loop_unrefp) resha_loop *l = resha_loop_ref();
        struct again a = { .loop = l, .left = 1000000 };

        ASSERT_OK(resha_loop_post(l, posts_again, &a));
        ASSERT_OK(resha_sleep(RESHA_MS(1)));
        if (!test_is_sim())
                ASSERT_TRUE(a.left > 0); /* on the virtual clock all of it takes no time */
        a.left = 0;
        return resha_sleep(RESHA_MS(1));
}

TEST(outside_of_a_loop_there_is_none)
{
        ASSERT_TRUE(resha_loop_ref() == NULL);
        resha_loop_unref(NULL);
}

TASK(without_memory_a_post_says_so)
{
        RESHA_CLEANUP(resha_loop_unrefp) resha_loop *l = resha_loop_ref();
        int n = 1;

        rs_alloc_fail_after(1, true);
        int rc = resha_loop_post(l, notes_number, &n);
        rs_alloc_fail_after(0, false);
        ASSERT_EQ(rc, -ENOMEM);
        ASSERT_OK(resha_sleep(RESHA_MS(1)));
        ASSERT_STR(notes(), "");
        return 0;
}

/* ---- many ---- */

struct many {
        resha_loop *loop;
        atomic_uint posted, refused;
        unsigned ran[THREADS]; /* the loop's */
        resha_event all;
        bool until_the_end;
        atomic_int next;
        atomic_bool stop;
};

static struct many many;

/* From one thread they come in order. */
static void counts(void *arg)
{
        uintptr_t number = (uintptr_t)arg;
        unsigned total = 0;

        ASSERT_EQ(many.ran[number / POSTS % THREADS], number % POSTS);
        many.ran[number / POSTS % THREADS]++;
        for (int i = 0; i < THREADS; i++)
                total += many.ran[i];
        if (total == THREADS * POSTS)
                resha_event_set(&many.all);
}

static void *posts_many(void *arg)
{
        resha_loop *l = arg;
        unsigned me = (unsigned)atomic_fetch_add(&many.next, 1);

        for (unsigned i = 0; i < POSTS; i++) {
                int rc = resha_loop_post(l, counts, (void *)(uintptr_t)(me * POSTS + i));
                if (rc < 0) {
                        ASSERT_EQ(rc, RESHA_ESHUT);
                        ASSERT_HAS(resha_error_of(rc)->text, "has ended");
                        break;
                }
                atomic_fetch_add(&many.posted, 1);
                if (i % 50 == me)
                        usleep(100);
        }
        resha_loop_unref(l);
        return NULL;
}

static void start_many(pthread_t threads[THREADS])
{
        many = (struct many){ 0 };
        for (int i = 0; i < THREADS; i++)
                threads[i] = start_thread(posts_many, resha_loop_ref());
}

static void join_many(pthread_t threads[THREADS])
{
        for (int i = 0; i < THREADS; i++)
                join(threads[i]);
}

TASK(posts_of_many_threads_to_a_loop_that_sleeps)
{
        pthread_t threads[THREADS];
        uint64_t before = visits();

        start_many(threads);
        ASSERT_OK(resha_event_wait(&many.all));
        if (!test_is_sim())
                ASSERT_TRUE(visits() - before <= THREADS * POSTS + 10);
        join_many(threads);
        return 0;
}

static int works(void *arg)
{
        int rc = 0;

        while (rc == 0 && !resha_event_is_set(&many.all))
                rc = resha_yield();
        (void)arg;
        return rc;
}

TASK(posts_of_many_threads_to_a_loop_that_runs)
{
        pthread_t threads[THREADS];
        int none[3];

        start_many(threads);
        ASSERT_OK(resha_gather(works, none, 3, sizeof none[0], NULL));
        join_many(threads);
        return 0;
}

/* ---- posts while the run ends ---- */

static pthread_t posters[THREADS];

static int ends_soon(void *arg)
{
        start_many(posters);
        return resha_sleep(RESHA_US(*(int *)arg));
}

static unsigned total_run(void)
{
        unsigned total = 0;

        for (int i = 0; i < THREADS; i++)
                total += many.ran[i];
        return total;
}

/* asyncio drops what is queued when its loop is closed. */
TEST(semantics_16_what_was_posted_runs_and_after_the_end_nothing_can_be)
{
        for (int us = 0; us < 1500; us += 50) {
                ASSERT_EQ(test_run_opts(ends_soon, &us, NULL), 0);
                unsigned ran = total_run();
                join_many(posters);
                ASSERT_EQ(ran, atomic_load(&many.posted)); /* none came later, none is missing */
        }
}

static int posts_and_returns(void *arg)
{
        resha_loop **l = arg;
        static int n = 5;

        *l = resha_loop_ref();
        ASSERT_OK(resha_loop_post(*l, notes_number, &n));
        return 0;
}

TEST(a_reference_outlives_its_loop)
{
        resha_loop *l;
        int n = 6;

        ASSERT_EQ(test_run_opts(posts_and_returns, &l, NULL), 0);
        ASSERT_STR(notes(), "5");
        ASSERT_EQ(resha_loop_post(l, notes_number, &n), RESHA_ESHUT);
        ASSERT_STR(resha_error_of(RESHA_ESHUT)->text, "the run has ended: the function will not be called");
        resha_loop_cancel(l);
        resha_loop_unref(l);
        ASSERT_STR(notes(), "");
}

/* ---- cancel ---- */

struct victim {
        resha_loop *loop;
        atomic_bool go, ended;
        bool busy;
};

static void *cancels(void *arg)
{
        struct victim *v = arg;

        while (!atomic_load(&v->go))
                usleep(100);
        do
                resha_loop_cancel(v->loop);
        while (!atomic_load(&v->ended));
        resha_loop_unref(v->loop);
        return NULL;
}

static int is_cancelled(void *arg)
{
        resha_event never = { { 0 } };
        struct victim *v = arg;
        int rc = 0;

        atomic_store(&v->go, true);
        while (v->busy && rc == 0)
                rc = resha_yield();
        return rc < 0 ? rc : resha_event_wait(&never);
}

static pthread_t cancellers[THREADS];

static int under_cancels(void *arg)
{
        struct victim *v = arg;

        for (int i = 0; i < THREADS; i++) {
                v->loop = resha_loop_ref(); /* the same for all */
                cancellers[i] = start_thread(cancels, v);
        }
        return is_cancelled(v);
}

static void run_under_cancels(bool busy)
{
        struct victim v = { .busy = busy };
        resha_error error;
        bool interrupted = true;

        int rc = test_run_opts(under_cancels, &v,
                               &(resha_run_opts){ .ret_error = &error, .ret_interrupted = &interrupted });
        atomic_store(&v.ended, true);
        for (int i = 0; i < THREADS; i++)
                join(cancellers[i]);
        ASSERT_EQ(rc, -ECANCELED);
        ASSERT_FALSE(interrupted);
        ASSERT_STR(error.text, "cancelled by another thread");
        ASSERT_HAS(error.site, "loop_ref.c:");
}

TEST(a_loop_that_sleeps_is_cancelled_by_many_threads_at_once)
{
        for (int i = 0; i < 20; i++)
                run_under_cancels(false);
}

TEST(a_loop_that_runs_is_cancelled_by_many_threads_at_once)
{
        for (int i = 0; i < 20; i++)
                run_under_cancels(true);
}

static resha_loop *loop_of_handler;

static void handler(int sig)
{
        (void)sig;
        resha_loop_cancel(loop_of_handler);
}

static int raises(void *arg)
{
        bool *asleep = arg;

        loop_of_handler = resha_loop_ref();
        if (*asleep)
                alarm(1);
        else
                ASSERT_EQ(raise(SIGALRM), 0);
        int rc = resha_sleep(RESHA_S(3600));
        resha_loop_unrefp(&loop_of_handler);
        return rc;
}

TEST(a_signal_handler_cancels_a_loop)
{
        if (test_is_sim())
                test_skip("an hour passes at once");
        signal(SIGALRM, handler);
        for (int asleep = 0; asleep < 2; asleep++)
                ASSERT_EQ(test_run_opts(raises, &(bool){ asleep }, NULL), -ECANCELED);
}

static int cleans_up(void *arg)
{
        (void)arg;
        return resha_sleep(RESHA_S(3600));
}

static int holds_out(void *arg)
{
        resha_loop *l = resha_loop_ref();

        resha_loop_cancel(l);
        resha_loop_unref(l);
        return resha_shielded(RESHA_FOREVER, cleans_up, arg);
}

static int run_holds_out(void *arg)
{
        int rc = test_run_opts(holds_out, arg, &(resha_run_opts){ .grace = RESHA_MS(10) });

        return rc == -ECANCELED ? 42 : 1;
}

TEST(a_cancelled_run_must_end_within_its_grace)
{
        struct test_child c;

        test_child(run_holds_out, NULL, &c);
        ASSERT_EQ(c.status, 42 << 8);
}

/* ---- waiting for the outside ---- */

static void *gives_back_late(void *arg)
{
        usleep(20000);
        resha_loop_unref(arg);
        return NULL;
}

static uint64_t visits_seen;

static int waits_for_nothing(void *arg)
{
        resha_event never = { { 0 } };
        uint64_t before = visits();

        *(pthread_t *)arg = start_thread(gives_back_late, resha_loop_ref());
        int rc = resha_event_wait(&never);
        visits_seen = visits() - before;
        return rc;
}

/* While somebody holds a reference the loop sleeps, and does not spin; afterwards nobody can wake it. */
TEST(a_deadlock_is_seen_once_the_last_reference_is_given_back)
{
        pthread_t thread;
        resha_error error;

        ASSERT_EQ(test_run_opts(waits_for_nothing, &thread, &(resha_run_opts){ .ret_error = &error }), -EDEADLK);
        join(thread);
        ASSERT_EQ(error.code, -EDEADLK);
        if (!test_is_sim())
                ASSERT_TRUE(visits_seen <= 4);
}

/* ---- fork ---- */

static int in_child(void *arg)
{
        int n = 1;

        ASSERT_EQ(resha_loop_post(arg, notes_number, &n), -EPERM);
        resha_loop_cancel(arg);
        resha_loop_unref(arg);
        return 42;
}

TASK(a_forked_child_has_no_part_in_its_parents_loop)
{
        RESHA_CLEANUP(resha_loop_unrefp) resha_loop *l = resha_loop_ref();
        struct test_child c;

        test_child(in_child, l, &c);
        ASSERT_STR(c.text, "");
        ASSERT_EQ(c.status, 42 << 8);
        return resha_sleep(RESHA_MS(1)); /* not cancelled */
}
