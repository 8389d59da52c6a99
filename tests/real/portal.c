/* SPDX-License-Identifier: MIT */
/* Portals: threads without a loop call into one, cancel, and meet its end. On epoll, and with the same threads on a
 * loop of the simulated world. */

#include "common.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/core.h"

static resha_portal *portal; /* of the test */

static int serve(void *arg)
{
        return resha_portal_serve(arg);
}

static int answer(void *arg)
{
        int rc = resha_yield();

        return rc < 0 ? rc : *(int *)arg + 1;
}

static int fails(__attribute__((unused)) void *arg)
{
        return resha_fail(-ENOENT, "no answer");
}

struct forever {
        atomic_int started, ended;
};

static int for_ever(void *arg)
{
        struct forever *f = arg;
        resha_event never = { { 0 } };

        atomic_store(&f->started, 1);
        int rc = resha_event_wait(&never);
        atomic_store(&f->ended, 1);
        return rc;
}

static void until(atomic_int *flag)
{
        while (!atomic_load(flag))
                usleep(200);
}

static void start_thread(pthread_t *ret_thread, void *(*fn)(void *arg), void *arg)
{
        ASSERT_EQ(pthread_create(ret_thread, NULL, fn, arg), 0);
}

static void join(pthread_t thread)
{
        ASSERT_EQ(pthread_join(thread, NULL), 0);
}

/* fn on a thread, while a loop serves the portal; fn ends that. The result of the run. */
static int served(void *(*fn)(void *arg), const resha_portal_opts *opts)
{
        pthread_t thread;

        ASSERT_OK(resha_portal_new(opts, &portal));
        start_thread(&thread, fn, NULL);
        int rc = test_run_opts(serve, portal, NULL);
        join(thread);
        resha_portal_unref(portal);
        return rc;
}

/* ---- results, failures, cancels ---- */

static void cancels_its_call(void)
{
        resha_portal_handle h = { { 0 } };
        struct forever f = { 0 };
        int result;

        ASSERT_OK(resha_portal_start(portal, &h, for_ever, &f));
        until(&f.started);
        ASSERT_EQ(resha_portal_wait(&h, RESHA_MS(1), &result), -ETIME);
        resha_portal_cancel(&h);
        resha_portal_cancel(&h);
        ASSERT_OK(resha_portal_wait(&h, RESHA_FOREVER, &result));
        ASSERT_EQ(result, -ECANCELED);
        ASSERT_TRUE(atomic_load(&f.ended));
        ASSERT_STR(resha_error_of(-ECANCELED)->text, "cancelled by another thread");
        ASSERT_HAS(resha_error_of(-ECANCELED)->site, "portal.c:");
        resha_portal_cancel(&h); /* it is over */
}

/* As a task: it is the only one. */
static int sees_itself(void *ended)
{
        char text[RESHA_DESCRIBE_MAX], expected[64];
        const struct rs_node *n = rs_loop_current->shown.first;

        while (n && strcmp(RS_CONTAINER((void *)(uintptr_t)n, struct rs_shown, node)->kind->kind, "portal") != 0)
                n = n->next;
        ASSERT_TRUE(n != NULL);
        rs_shown_describe(RS_CONTAINER((void *)(uintptr_t)n, struct rs_shown, node), text, sizeof text);
        snprintf(expected, sizeof expected, "portal 1 of 1000 calls run, 0 wait; %d have ended", *(int *)ended);
        ASSERT_STR(text, expected);
        return 0;
}

static void *calls(void *arg)
{
        int n = 41;

        ASSERT_OK(resha_portal_call(portal, sees_itself, &(int){ 0 }));
        ASSERT_EQ(resha_portal_call(portal, answer, &n), 42);
        ASSERT_OK(resha_portal_call(portal, sees_itself, &(int){ 2 }));
        ASSERT_EQ(resha_portal_call(portal, fails, NULL), -ENOENT);
        ASSERT_STR(resha_error_of(-ENOENT)->text, "no answer");
        ASSERT_HAS(resha_error_of(-ENOENT)->site, "portal.c:");
        ASSERT_STR(resha_error_of(-ENOENT)->task, "fails");
        ASSERT_HAS(resha_error_of(-ENOENT)->spawned_at, "portal.c:");
        ASSERT_STR(resha_error_of(-EIO)->text, "Input/output error");
        cancels_its_call();
        resha_portal_shutdown(portal);
        return arg;
}

/* semantics 242 same
 * asyncio: another thread can start a coroutine on the loop, wait for its result or exception, and cancel it.
 * resha: resha_portal_call() gives a thread the result of a task, with the error record of its failure;
 * resha_portal_start(), resha_portal_wait() and resha_portal_cancel() are the same in parts, on memory of the
 * caller. */
TEST(semantics_242_a_thread_gets_result_or_error_and_may_cancel)
{
        ASSERT_EQ(served(calls, NULL), 0);
}

/* A handle that another thread cancels at any moment. */
static resha_portal_handle shared;

static int short_sleep(__attribute__((unused)) void *arg)
{
        return resha_sleep(RESHA_US(30));
}

static void *cancels(void *arg)
{
        while (!atomic_load((atomic_int *)arg)) {
                resha_portal_cancel(&shared);
                usleep(20);
        }
        return NULL;
}

static void *meets_cancels(void *arg)
{
        int done = 0, cancelled = 0, rounds = test_is_sim() ? 50 : 2000;
        atomic_int stop = 0;
        pthread_t thread;

        start_thread(&thread, cancels, &stop);
        for (int i = 0; i < rounds || (!test_is_sim() && (!done || !cancelled) && i < 20000); i++) {
                int result;
                ASSERT_OK(resha_portal_start(portal, &shared, short_sleep, NULL));
                if (i % 2)
                        usleep((unsigned)i % 100);
                ASSERT_OK(resha_portal_wait(&shared, RESHA_FOREVER, &result));
                ASSERT_TRUE(result == 0 || result == -ECANCELED);
                done += result == 0;
                cancelled += result < 0;
        }
        atomic_store(&stop, 1);
        join(thread);
        printf("%d ended, %d were cancelled\n", done, cancelled);
        ASSERT_TRUE(test_is_sim() || (done > 0 && cancelled > 0));
        resha_portal_shutdown(portal);
        return arg;
}

/* semantics 22 same
 * asyncio: a handle of call_soon_threadsafe() may be cancelled from another thread, since 3.14.
 * resha: resha_portal_cancel() may be called on any thread, before, while and after the call runs. The handle of a task
 * is its loop's own: cancelled on another thread it does nothing. */
TEST(semantics_22_any_thread_cancels_a_call_at_any_moment)
{
        ASSERT_EQ(served(meets_cancels, NULL), 0);
}

/* ---- waking the loop ---- */

static void *wakes(void *arg)
{
        resha_instant start = resha_now();
        int n = 1;

        if (!test_is_sim())
                usleep(2000); /* so that it sleeps */
        ASSERT_EQ(resha_portal_call(portal, answer, &n), 2);
        ASSERT_TRUE(resha_between(start, resha_now()).ns < RESHA_S(60).ns);
        resha_portal_shutdown(portal);
        return arg;
}

static int sleeps_an_hour(__attribute__((unused)) void *arg)
{
        return resha_sleep(RESHA_S(3600));
}

static int serve_beside_a_sleeper(void *arg)
{
        RESHA_GROUP(g);

        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        resha_spawn(&g, sleeps_an_hour, NULL);
        return resha_group_end(&g, resha_portal_serve(arg));
}

/* semantics 21 better
 * asyncio: call_soon_threadsafe() wakes a loop that is blocked in its poll; plain call_soon() from a thread does not,
 * and what it queued is late.
 * resha: a call through a portal wakes a loop that sleeps, and only that, as does the end of a job on a thread;
 * spawning from a thread is refused with -EPERM instead of being late. */
TEST(semantics_21_a_call_wakes_a_sleeping_loop)
{
        pthread_t thread;

        ASSERT_OK(resha_portal_new(NULL, &portal));
        start_thread(&thread, wakes, NULL);
        ASSERT_OK(test_run_opts(serve_beside_a_sleeper, portal, NULL));
        join(thread);
        resha_portal_unref(portal);
}

enum { BURST = 200 };

static void start_all(resha_portal_handle h[BURST], int *n)
{
        for (int i = 0; i < BURST; i++)
                ASSERT_OK(resha_portal_start(portal, &h[i], answer, n));
}

static void wait_all(resha_portal_handle h[BURST], int expected)
{
        for (int i = 0; i < BURST; i++) {
                int result;
                ASSERT_OK(resha_portal_wait(&h[i], RESHA_FOREVER, &result));
                ASSERT_EQ(result, expected);
        }
}

static atomic_uint wake_ups;
static const struct rs_backend_ops *ops;

static void counting_wake(struct rs_backend *b)
{
        atomic_fetch_add(&wake_ups, 1);
        ops->wake(b);
}

struct busy {
        atomic_int runs, go_on;
};

static int keeps_the_loop_busy(void *arg)
{
        static struct rs_backend_ops counting;
        struct busy *b = arg;

        ops = rs_loop_current->backend->ops;
        counting = *ops;
        counting.wake = counting_wake;
        rs_loop_current->backend->ops = &counting;
        atomic_store(&b->runs, 1);
        until(&b->go_on);
        return 0;
}

static void *bursts(void *arg)
{
        static resha_portal_handle h[BURST], first;
        struct busy b = { 0 };
        int n = 6, result;

        ASSERT_OK(resha_portal_start(portal, &first, keeps_the_loop_busy, &b));
        until(&b.runs);
        start_all(h, &n);
        ASSERT_EQ(atomic_load(&wake_ups), 0);
        atomic_store(&b.go_on, 1);
        wait_all(h, 7);
        ASSERT_OK(resha_portal_wait(&first, RESHA_FOREVER, &result));
        resha_portal_shutdown(portal);
        return arg;
}

TEST(a_busy_loop_is_not_woken)
{
        ASSERT_EQ(served(bursts, NULL), 0);
}

/* ---- limits ---- */

static void *fills(void *arg)
{
        resha_portal_handle h[3] = { 0 };
        struct forever f[3] = { 0 };
        int result;

        for (int i = 0; i < 3; i++)
                ASSERT_OK(resha_portal_start(portal, &h[i], for_ever, &f[i]));
        until(&f[0].started);
        until(&f[1].started);
        ASSERT_EQ(resha_portal_call(portal, answer, &result), RESHA_EFULL);
        ASSERT_HAS(resha_error_of(RESHA_EFULL)->text, "as many calls wait for the portal as may");
        resha_portal_cancel(&h[0]);
        ASSERT_OK(resha_portal_wait(&h[0], RESHA_FOREVER, &result));
        until(&f[2].started); /* its turn has come */
        ASSERT_OK(resha_portal_start(portal, &h[0], for_ever, &f[0]));
        resha_portal_cancel_at(&h[0], "here:1"); /* in the queue: it never runs again */
        ASSERT_OK(resha_portal_wait(&h[0], RESHA_S(0), &result));
        ASSERT_EQ(result, -ECANCELED);
        ASSERT_STR(resha_error_of(-ECANCELED)->text, "cancelled by another thread, before it had started");
        ASSERT_STR(resha_error_of(-ECANCELED)->site, "here:1");
        for (int i = 1; i < 3; i++) {
                resha_portal_cancel(&h[i]);
                ASSERT_OK(resha_portal_wait(&h[i], RESHA_FOREVER, &result));
                ASSERT_EQ(result, -ECANCELED);
        }
        resha_portal_shutdown(portal);
        return arg;
}

TEST(so_many_run_so_many_wait_and_one_more_is_refused)
{
        ASSERT_EQ(served(fills, &(resha_portal_opts){ .limit = 2, .queue = 1 }), 0);
}

static int next_number;

static int in_order(void *arg)
{
        int rc = resha_yield();

        return rc < 0 ? rc : next_number++ == *(int *)arg ? 0 : -EIO;
}

static void *in_line(void *arg)
{
        static resha_portal_handle h[BURST];
        static int numbers[BURST];

        for (int i = 0; i < BURST; i++) {
                numbers[i] = i;
                ASSERT_OK(resha_portal_start(portal, &h[i], in_order, &numbers[i]));
        }
        wait_all(h, 0);
        resha_portal_shutdown(portal);
        return arg;
}

TEST(calls_that_wait_start_in_their_order)
{
        ASSERT_EQ(served(in_line, &(resha_portal_opts){ .limit = 1 }), 0);
}

/* ---- misuse ---- */

TASK(a_thread_that_runs_a_loop_is_refused)
{
        resha_portal_handle h = { { 0 } };
        int n = 0;

        ASSERT_OK(resha_portal_new(NULL, &portal));
        ASSERT_EQ(resha_portal_call(portal, answer, &n), -EDEADLK);
        ASSERT_HAS(resha_error_of(-EDEADLK)->text, "would stop the loop that this thread runs");
        ASSERT_EQ(resha_portal_start(portal, &h, answer, &n), -EDEADLK);
        ASSERT_EQ(resha_portal_wait(&h, RESHA_FOREVER, &n), -EINVAL);
        resha_portal_cancel(&h);
        resha_portal_unrefp(&portal);
        ASSERT_PTR(portal, NULL);
        resha_portal_unref(NULL);
        ASSERT_PTR(resha_portal_ref(NULL), NULL);
        return 0;
}

static int call_here(void *p)
{
        return resha_portal_call(p, serve, p);
}

static int call_in_a_strict_run(void *p)
{
        return test_run_opts(call_here, p, &(resha_run_opts){ .strict = true });
}

TEST(in_a_strict_run_that_aborts)
{
        struct test_child c;

        ASSERT_OK(resha_portal_new(NULL, &portal));
        test_child(call_in_a_strict_run, portal, &c);
        ASSERT_HAS(c.text, "would stop the loop that this thread runs");
        ASSERT_TRUE(WIFSIGNALED(c.status));
        resha_portal_unref(portal);
}

TEST(what_is_wrong_is_said)
{
        resha_portal_handle h = { { 0 } };
        int n = 0;

        ASSERT_EQ(resha_portal_new(&(resha_portal_opts){ ._reserved = { 1 } }, &portal), -EINVAL);
        ASSERT_HAS(resha_error_of(-EINVAL)->text, "reserved words");
        ASSERT_OK(resha_portal_new(NULL, &portal));
        ASSERT_EQ(resha_portal_wait(&h, RESHA_FOREVER, &n), -EINVAL);
        ASSERT_HAS(resha_error_of(-EINVAL)->text, "no call was started");
        ASSERT_EQ(resha_portal_serve(portal), -EPERM);
        ASSERT_OK(resha_portal_start(portal, &h, answer, &n));
        ASSERT_EQ(resha_portal_start(portal, &h, answer, &n), -EBUSY);
        ASSERT_EQ(resha_portal_wait(&h, RESHA_MS(-1), &n), -ETIME);
        resha_portal_shutdown(portal);
        ASSERT_OK(resha_portal_wait(&h, RESHA_FOREVER, &n));
        ASSERT_EQ(n, RESHA_ESHUT);
        ASSERT_EQ(resha_portal_wait(&h, RESHA_FOREVER, &n), -EINVAL);
        resha_portal_unref(portal);
}

static int call_from_a_job(__attribute__((unused)) void *arg)
{
        int n = 8, rc = resha_portal_call(portal, answer, &n);

        ASSERT_EQ(rc, test_is_sim() ? -EDEADLK : 9); /* simulated, the job is on the loop's thread */
        resha_portal_shutdown(portal);
        return 0;
}

static int job(void *arg)
{
        return resha_pool_run(NULL, call_from_a_job, arg, NULL);
}

TASK(a_thread_job_may_call_back_except_in_the_simulated_world)
{
        RESHA_GROUP(g);

        ASSERT_OK(resha_portal_new(NULL, &portal));
        resha_group_begin(&g, NULL);
        resha_spawn(&g, serve, portal);
        ASSERT_OK(resha_yield());
        ASSERT_EQ(resha_portal_serve(portal), -EBUSY);
        resha_spawn(&g, job, NULL);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_OK(resha_portal_serve(portal)); /* it is shut down */
        resha_portal_unref(portal);
        return 0;
}

RESHA_LOCAL(user, int, 0);

static int sees_user(__attribute__((unused)) void *arg)
{
        return *(const int *)resha_local_get(&user);
}

static void *asks_for_user(void *arg)
{
        ASSERT_EQ(resha_portal_call(portal, sees_user, NULL), 1000);
        resha_portal_shutdown(portal);
        return arg;
}

TASK(a_call_has_the_task_locals_of_the_server)
{
        pthread_t thread;

        ASSERT_OK(resha_portal_new(NULL, &portal));
        ASSERT_OK(resha_local_set(&user, &(int){ 1000 }));
        start_thread(&thread, asks_for_user, NULL);
        ASSERT_OK(resha_portal_serve(portal));
        join(thread);
        resha_portal_unref(portal);
        return 0;
}
