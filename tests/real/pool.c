/* SPDX-License-Identifier: MIT */
/* Pools with real threads: many jobs, cancels in each state, order, limits, errors, ends. */

#include "common.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- many ---- */

enum { TASKS = 200, JOBS = 50 };

static atomic_uint ran;

static int count_up(void *arg)
{
        atomic_fetch_add(&ran, 1);
        return *(int *)arg + 1;
}

static int many_jobs(void *arg)
{
        resha_pool **p = arg;

        for (int i = 0; i < JOBS; i++)
                ASSERT_EQ(resha_pool_run(*p, count_up, &i, NULL), i + 1);
        return 0;
}

static int ten_thousand(resha_pool *p)
{
        RESHA_GROUP(g);

        atomic_store(&ran, 0);
        resha_group_begin(&g, NULL);
        for (int i = 0; i < TASKS; i++)
                resha_spawn(&g, many_jobs, &p);
        int rc = resha_group_end(&g, 0);
        ASSERT_EQ(atomic_load(&ran), TASKS * JOBS);
        return rc;
}

TASK(ten_thousand_jobs_of_many_tasks)
{
        return ten_thousand(NULL);
}

static int own_thread(void *arg)
{
        *(pthread_t *)arg = pthread_self();
        return 0;
}

/* One that is about to be back is waited for. */
TASK(jobs_one_after_the_other_need_one_thread)
{
        pthread_t first, t;

        ASSERT_OK(resha_pool_run(NULL, own_thread, &first, NULL));
        for (int i = 0; i < 2000; i++) {
                ASSERT_OK(resha_pool_run(NULL, own_thread, &t, NULL));
                ASSERT_TRUE(pthread_equal(first, t));
        }
        return 0;
}

/* With room for three jobs in all, most tasks wait in line. */
TASK(ten_thousand_jobs_through_a_narrow_pool)
{
        resha_pool *p;

        ASSERT_OK(resha_pool_new(&(resha_pool_opts){ .threads = 2, .queue = 1, .name = "narrow" }, &p));
        ASSERT_OK(ten_thousand(p));
        ASSERT_TRUE(real_threads() <= 3);
        resha_pool_free(p);
        real_threads_left(1);
        return 0;
}

static int one_job(void *arg)
{
        int n = 41;

        (void)arg;
        return resha_pool_run(NULL, count_up, &n, NULL) == 42 ? 0 : -EIO;
}

TEST(the_threads_are_gone_after_the_run)
{
        for (int i = 0; i < 3; i++) {
                RUN(one_job, NULL);
                real_threads_left(1);
        }
}

/* ---- order ---- */

struct ordered {
        resha_pool *pool;
        int number;
};

static atomic_int next_number;

static int in_order(void *arg)
{
        return atomic_fetch_add(&next_number, 1) == ((struct ordered *)arg)->number ? 0 : -EIO;
}

/* Takes its time before, so that jobs come back and give their places on while others have not asked yet. */
static int run_ordered(void *arg)
{
        resha_instant start = resha_now();

        while (resha_between(start, resha_now()).ns < 25000)
                ;
        return resha_pool_run(((struct ordered *)arg)->pool, in_order, arg, NULL);
}

static int in_order_with_queue_of(unsigned n)
{
        struct ordered jobs[100];
        resha_pool *p;
        RESHA_GROUP(g);

        ASSERT_OK(resha_pool_new(&(resha_pool_opts){ .threads = 1, .queue = n }, &p));
        atomic_store(&next_number, 0);
        resha_group_begin(&g, NULL);
        for (int i = 0; i < 100; i++) {
                jobs[i] = (struct ordered){ p, i };
                resha_spawn(&g, run_ordered, &jobs[i]);
        }
        int rc = resha_group_end(&g, 0);
        resha_pool_free(p);
        return rc;
}

TASK(one_thread_runs_jobs_in_the_order_of_their_calls)
{
        for (unsigned n = 1; n <= 10; n++)
                ASSERT_OK(in_order_with_queue_of(n));
        return 0;
}

/* ---- cancels ---- */

struct blocking {
        resha_pool *pool;
        atomic_int started, go;
        bool interruptible;
        int result;
};

static int block(void *arg)
{
        struct blocking *b = arg;

        atomic_store(&b->started, 1);
        while (!atomic_load(&b->go))
                usleep(500);
        return 7;
}

static void unblock(void *arg)
{
        atomic_store(&((struct blocking *)arg)->go, 1);
}

static void until_started(struct blocking *b)
{
        while (!atomic_load(&b->started))
                ASSERT_OK(resha_sleep(RESHA_MS(1)));
}

static int run_blocking(void *arg)
{
        struct blocking *b = arg;
        resha_job_opts opts = { .interrupt = b->interruptible ? unblock : NULL };

        b->result = resha_pool_run(b->pool, block, b, &opts);
        return b->result;
}

static int run_count(void *arg)
{
        struct blocking *b = arg;
        int n = 0;

        b->result = resha_pool_run(b->pool, count_up, &n, NULL);
        return b->result;
}

TASK(a_job_in_the_queue_that_is_cancelled_never_runs)
{
        struct blocking first = { 0 }, second = { 0 };
        resha_pool *p;
        RESHA_GROUP(g);

        ASSERT_OK(resha_pool_new(&(resha_pool_opts){ .threads = 1 }, &p));
        first.pool = second.pool = p;
        resha_group_begin(&g, NULL);
        resha_spawn(&g, run_blocking, &first);
        until_started(&first);
        ASSERT_EQ(resha_timeout(RESHA_MS(2), run_count, &second), -ETIME);
        ASSERT_EQ(second.result, -ECANCELED);
        unblock(&first);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(first.result, 7);
        ASSERT_EQ(atomic_load(&ran), 0);
        resha_pool_free(p);
        return 0;
}

TASK(a_job_that_waits_in_line_and_is_cancelled_never_runs)
{
        struct blocking jobs[3] = { 0 };
        resha_pool *p;
        RESHA_GROUP(g);

        ASSERT_OK(resha_pool_new(&(resha_pool_opts){ .threads = 1, .queue = 1 }, &p));
        resha_group_begin(&g, NULL);
        for (int i = 0; i < 3; i++)
                jobs[i].pool = p;
        resha_spawn(&g, run_blocking, &jobs[0]);
        resha_spawn(&g, run_count, &jobs[1]);
        until_started(&jobs[0]);
        ASSERT_EQ(resha_timeout(RESHA_MS(2), run_count, &jobs[2]), -ETIME);
        unblock(&jobs[0]);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(atomic_load(&ran), 1);
        resha_pool_free(p);
        return 0;
}

/* semantics 235 better
 * asyncio: a task that waits for a thread and is cancelled goes on at once; the thread runs on, its result is dropped.
 * resha: a job that runs is waited for, because it may use the caller's stack, and its result is the result; a function
 * given with the job, or a signal, can make it end sooner. One that owns its argument is abandoned, as in asyncio, and
 * drops it when it has ended. */
TASK(semantics_235_running_job_is_waited_for_and_its_result_counts)
{
        struct blocking b = { 0 };
        resha_task handle = { 0 };
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        resha_spawn_task(&g, run_blocking, &b, &handle);
        until_started(&b);
        resha_task_cancel(&handle);
        ASSERT_OK(resha_sleep(RESHA_MS(5)));
        ASSERT_FALSE(resha_task_done(&handle, NULL));
        unblock(&b);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(b.result, 7);
        return 0;
}

TASK(semantics_235_interrupt_makes_a_running_job_end_sooner)
{
        struct blocking b = { .interruptible = true };
        resha_task handle = { 0 };
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        resha_spawn_task(&g, run_blocking, &b, &handle);
        until_started(&b);
        resha_task_cancel(&handle);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(b.result, 7);
        return 0;
}

/* A job and its cancel meet at every distance. */
struct short_job {
        atomic_int started, ended;
};

static int short_job(void *arg)
{
        struct short_job *j = arg;

        atomic_store(&j->started, 1);
        usleep(50);
        atomic_store(&j->ended, 1);
        return 1;
}

static int run_short(void *arg)
{
        return resha_pool_run(NULL, short_job, arg, NULL);
}

TASK(semantics_22_a_job_has_either_ended_or_never_started)
{
        int done = 0, never = 0;

        for (int i = 0; i < 2000 || (!done && i < 100000); i++) {
                struct short_job j = { 0 };
                int rc = resha_timeout(RESHA_US(i % 200), run_short, &j);
                ASSERT_EQ(atomic_load(&j.started), atomic_load(&j.ended));
                ASSERT_EQ(rc, atomic_load(&j.ended) ? 1 : -ETIME);
                done += rc == 1;
                never += rc == -ETIME;
        }
        printf("%d jobs ended, %d never started\n", done, never);
        ASSERT_TRUE(done > 0 && never > 0);
        return 0;
}

/* ---- what a job may do ---- */

static int failing_job(void *arg)
{
        resha_fail(-EIO, "another failure");
        ASSERT_STR(resha_error_of(-EIO)->text, "another failure");
        return resha_fail(-ENOENT, "no such thing: %s", (const char *)arg);
}

TASK(the_error_record_of_a_job_comes_with_its_result)
{
        ASSERT_EQ(resha_pool_run(NULL, failing_job, "unicorn", NULL), -ENOENT);
        ASSERT_STR(resha_error_of(-ENOENT)->text, "no such thing: unicorn");
        ASSERT_HAS(resha_error_of(-ENOENT)->site, "pool.c:");
        ASSERT_STR(resha_error_of(-EIO)->text, "Input/output error");
        return 0;
}

static int calls_of_tasks(void *arg)
{
        sigset_t blocked;

        (void)arg;
        ASSERT_EQ(resha_sleep(RESHA_MS(1)), -EPERM);
        ASSERT_EQ(resha_pool_run(NULL, calls_of_tasks, NULL, NULL), -EPERM);
        ASSERT_FALSE(resha_in_task());
        ASSERT_EQ(pthread_sigmask(SIG_BLOCK, NULL, &blocked), 0);
        ASSERT_EQ(sigismember(&blocked, SIGINT), 1);
        ASSERT_EQ(sigismember(&blocked, SIGTERM), 1);
        return 0;
}

TASK(a_job_is_no_task_and_gets_no_signals)
{
        return resha_pool_run(NULL, calls_of_tasks, NULL, NULL);
}

TASK(other_tasks_go_on_while_a_job_blocks)
{
        struct blocking b = { 0 };
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        resha_spawn(&g, run_blocking, &b);
        for (int i = 0; i < 10; i++)
                ASSERT_OK(resha_sleep(RESHA_MS(1)));
        unblock(&b);
        return resha_group_end(&g, 0);
}

/* ---- limits and misuse ---- */

static int no_threads(enum rs_syscall call)
{
        return call == RS_SYS_THREAD ? -EAGAIN : 0;
}

TASK(without_a_thread_a_job_fails_and_the_next_may_not)
{
        int n = 0;

        rs_fault_hook = no_threads;
        ASSERT_EQ(resha_pool_run(NULL, count_up, &n, NULL), -EAGAIN);
        ASSERT_HAS(resha_error_of(-EAGAIN)->text, "no thread can be started for the pool; allow more");
        rs_fault_hook = NULL;
        ASSERT_EQ(resha_pool_run(NULL, count_up, &n, NULL), 1);
        return 0;
}

TASK(bad_options_are_refused)
{
        resha_pool *p;

        ASSERT_EQ(resha_pool_new(&(resha_pool_opts){ .threads = 257 }, &p), -EINVAL);
        ASSERT_EQ(resha_pool_new(&(resha_pool_opts){ .name = "a name that is too long" }, &p), -EINVAL);
        ASSERT_EQ(resha_pool_new(&(resha_pool_opts){ ._reserved = { 1 } }, &p), -EINVAL);
        resha_pool_free(NULL);
        return 0;
}

static int free_it(void *arg)
{
        resha_pool_free(arg);
        note("freed");
        return 0;
}

static int run_and_note(void *arg)
{
        note("job %d", run_blocking(arg));
        return 0;
}

TASK(free_waits_for_running_jobs_and_refuses_new_ones)
{
        struct blocking b = { 0 };
        resha_pool *p;
        int n = 0;
        RESHA_GROUP(g);

        ASSERT_OK(resha_pool_new(&(resha_pool_opts){ .threads = 1 }, &p));
        b.pool = p;
        resha_group_begin(&g, NULL);
        resha_spawn(&g, run_and_note, &b);
        until_started(&b);
        resha_spawn(&g, free_it, p);
        ASSERT_OK(resha_sleep(RESHA_MS(2)));
        ASSERT_EQ(resha_pool_run(p, count_up, &n, NULL), -EBADF);
        unblock(&b);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_HAS(notes(), "freed");
        ASSERT_EQ(b.result, 7);
        return 0;
}

static int leave_a_pool(void *arg)
{
        resha_pool *p;
        int n = 0;

        (void)arg;
        ASSERT_OK(resha_pool_new(&(resha_pool_opts){ .threads = 2 }, &p));
        return resha_pool_run(p, count_up, &n, NULL) == 1 ? 0 : -EIO;
}

TEST(a_pool_that_was_left_over_ends_with_the_run)
{
        RUN(leave_a_pool, NULL);
        real_threads_left(1);
}

/* ---- a job that does not end ---- */

static struct blocking stuck;
static unsigned reported;

static void on_report(const resha_report *r, void *arg)
{
        (void)arg;
        reported += r->kind == RESHA_REPORT_STUCK;
}

static atomic_bool other_done;

static int other_job(void *arg)
{
        (void)arg;
        atomic_store(&other_done, true);
        return 0;
}

static int interrupt_and_block(void *arg)
{
        while (!atomic_load(&other_done))
                usleep(100);
        kill(getpid(), SIGINT); /* once it runs, and for the thread of the loop: this one takes no signals */
        return block(arg);
}

static int run_stuck_job(void *arg)
{
        (void)arg;
        return resha_pool_run(NULL, interrupt_and_block, &stuck, NULL);
}

/* A second thread is idle by then. */
static int interrupted_while_stuck(void *arg)
{
        RESHA_GROUP(g);

        (void)arg;
        resha_group_begin(&g, NULL);
        resha_spawn(&g, run_stuck_job, NULL);
        int rc = resha_yield();
        if (rc == 0)
                rc = resha_pool_run(NULL, other_job, NULL, NULL);
        return resha_group_end(&g, rc);
}

/* The run ends after its grace; what the job uses is leaked on purpose, so this is a process of its own. */
static int run_with_stuck_job(void *arg)
{
        (void)arg;
        resha_instant start = resha_now();
        int rc = test_run_opts(interrupted_while_stuck, NULL,
                               &(resha_run_opts){ .grace = RESHA_MS(50), .threads = 2, .report = on_report });
        ASSERT_EQ(rc, -ECANCELED);
        ASSERT_TRUE(reported > 0);
        ASSERT_TRUE(test_ms_since(start) < 5000);
        real_threads_left(2); /* the idle one does not linger */
        unblock(&stuck);      /* it comes back to nobody */
        real_threads_left(1);
        return 42;
}

/* semantics 243 same
 * asyncio: the result of a thread that ends after the loop was closed is dropped in silence.
 * resha: the same for a job that outlasts the grace of its run; the run has reported it as stuck, and returned. */
TEST(semantics_243_stuck_job_comes_back_to_nobody)
{
        struct test_child c;

        if (real_under_tsan())
                test_skip("TSan runs handlers later: not while the loop sleeps in a call that it does not know");
        test_child(run_with_stuck_job, NULL, &c);
        ASSERT_STR(c.text, "");
        ASSERT_TRUE(WIFEXITED(c.status));
        ASSERT_EQ(WEXITSTATUS(c.status), 42);
}

/* ---- stacks that go from task to task, which ThreadSanitizer must be told of ---- */

static int yields_or_not(void *arg)
{
        return *(int *)arg % 2 ? resha_yield() : 0;
}

TASK(tasks_end_on_each_others_stacks)
{
        int items[50];

        for (int i = 0; i < 50; i++)
                items[i] = i;
        for (int round = 0; round < 20; round++)
                ASSERT_OK(resha_gather(yields_or_not, items, 50, sizeof items[0], NULL));
        return 0;
}
