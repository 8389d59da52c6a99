/* SPDX-License-Identifier: MIT */
/* Jobs that are cancelled while they run on real threads: told by resha_job_stopped(), by a signal, abandoned. */

#include "common.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "sys/workers.h"

struct job {
        resha_pool *pool;
        resha_job_opts opts;
        resha_fn *fn;
        int fds[2];
        atomic_int started, go, ended, dropped;
        atomic_bool on_loop; /* was dropped there */
        pthread_t loop;
        int result;
};

static void until(atomic_int *flag)
{
        while (!atomic_load(flag))
                ASSERT_OK(resha_sleep(RESHA_MS(1)));
}

static int ask(void *arg)
{
        struct job *j = arg;

        j->loop = pthread_self();
        j->result = resha_pool_run(j->pool, j->fn, j, &j->opts);
        return j->result;
}

static void drop(void *arg)
{
        struct job *j = arg;

        atomic_store(&j->on_loop, pthread_equal(pthread_self(), j->loop) != 0);
        atomic_fetch_add(&j->dropped, 1);
}

/* Cancels the job once it has begun. */
static void cancel_running(struct job *j)
{
        resha_task handle = { 0 };
        RESHA_GROUP(g);

        resha_group_begin(&g, &(resha_group_opts){ .keep_going = true });
        ASSERT_OK(resha_spawn_task(&g, ask, j, &handle));
        until(&j->started);
        resha_task_cancel(&handle);
        int rc = resha_group_end(&g, 0);
        ASSERT_EQ(rc, j->result < 0 && j->result != -ECANCELED ? j->result : 0);
}

/* ---- told ---- */

static int until_stopped(void *arg)
{
        struct job *j = arg;

        ASSERT_FALSE(resha_job_stopped());
        atomic_store(&j->started, 1);
        while (!resha_job_stopped())
                usleep(200);
        atomic_store(&j->ended, 1);
        return 5;
}

TASK(a_running_job_sees_that_it_was_cancelled)
{
        struct job j = { .fn = until_stopped };

        ASSERT_FALSE(resha_job_stopped());
        cancel_running(&j);
        ASSERT_EQ(j.result, 5);
        ASSERT_EQ(atomic_load(&j.ended), 1);
        return 0;
}

/* ---- signals ---- */

static int read_for_ever(void *arg)
{
        struct job *j = arg;
        char c;

        atomic_store(&j->started, 1);
        while (!resha_job_stopped())
                if (read(j->fds[0], &c, 1) < 0)
                        ASSERT_EQ(errno, EINTR);
        return -EINTR;
}

TASK(a_signal_ends_a_blocking_read_of_a_cancelled_job)
{
        struct job j = { .fn = read_for_ever, .opts = { .signal = true } };

        ASSERT_EQ(pipe(j.fds), 0);
        cancel_running(&j);
        ASSERT_EQ(j.result, -EINTR);
        close(j.fds[0]);
        close(j.fds[1]);
        return 0;
}

/* The first call is not told in advance, and the second would sleep for an hour, too. */
static int sleep_twice(void *arg)
{
        struct job *j = arg;

        atomic_store(&j->started, 1);
        for (int i = 0; i < 2; i++) {
                ASSERT_EQ(nanosleep(&(struct timespec){ .tv_sec = 3600 }, NULL), -1);
                ASSERT_EQ(errno, EINTR);
        }
        return resha_job_stopped() ? 2 : 1;
}

TASK(signals_come_again_until_the_job_has_ended)
{
        struct job j = { .fn = sleep_twice, .opts = { .signal = true } };

        cancel_running(&j);
        ASSERT_EQ(j.result, 2);
        return 0;
}

static int sleep_20_ms(void *arg)
{
        (void)arg;
        return nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL) < 0 ? -errno : 0;
}

/* On the same thread, at every distance from the end of the job before. */
TASK(a_signal_never_reaches_the_next_job_of_the_thread)
{
        resha_pool *p RESHA_CLEANUP(resha_pool_freep) = NULL;

        ASSERT_OK(resha_pool_new(&(resha_pool_opts){ .threads = 1 }, &p));
        for (int i = 0; i < 30; i++) {
                struct job j = { .pool = p, .fn = i % 2 ? until_stopped : sleep_twice, .opts = { .signal = true } };
                cancel_running(&j);
                ASSERT_EQ(j.result, i % 2 ? 5 : 2);
                ASSERT_OK(resha_pool_run(p, sleep_20_ms, NULL, NULL));
        }
        return 0;
}

static bool is_default(int sig)
{
        struct sigaction now;

        ASSERT_EQ(sigaction(sig, NULL, &now), 0);
        return now.sa_handler == SIG_DFL;
}

static int one_signalled(void *arg)
{
        struct job j = { .fn = sleep_twice, .opts = { .signal = true } };

        (void)arg;
        cancel_running(&j);
        ASSERT_FALSE(is_default(SIGRTMAX - 4));
        return 0;
}

TEST(the_signal_is_handled_as_before_when_the_run_has_ended)
{
        ASSERT_TRUE(is_default(SIGRTMAX - 4));
        RUN(one_signalled, NULL);
        ASSERT_TRUE(is_default(SIGRTMAX - 4));
}

/* ---- abandoned ---- */

static int wait_for_go(void *arg)
{
        struct job *j = arg;

        atomic_store(&j->started, 1);
        while (!atomic_load(&j->go))
                usleep(200);
        ASSERT_TRUE(resha_job_stopped());
        ASSERT_EQ(atomic_load(&j->dropped), 0);
        atomic_store(&j->ended, 1);
        return resha_fail(-EIO, "nobody hears of this");
}

TASK(semantics_235_job_that_owns_its_argument_is_abandoned)
{
        struct job j = { .fn = wait_for_go, .opts = { .drop = drop } };

        cancel_running(&j);
        ASSERT_EQ(j.result, -ECANCELED);
        ASSERT_EQ(atomic_load(&j.ended), 0);
        ASSERT_EQ(atomic_load(&j.dropped), 0);
        atomic_store(&j.go, 1);
        until(&j.dropped);
        ASSERT_EQ(atomic_load(&j.ended), 1);
        ASSERT_FALSE(atomic_load(&j.on_loop));
        return 0;
}

static int nothing(void *arg)
{
        (void)arg;
        return 3;
}

TASK(an_argument_is_dropped_once_at_once_or_never)
{
        resha_pool *p;
        struct job first = { .fn = wait_for_go, .opts = { .drop = drop } }, second = { .fn = nothing }, third;

        ASSERT_OK(resha_pool_new(&(resha_pool_opts){ .threads = 1 }, &p));
        first.pool = p;
        cancel_running(&first);
        second.opts.drop = drop;
        second.pool = p;
        ASSERT_EQ(resha_timeout(RESHA_MS(2), ask, &second), -ETIME); /* the abandoned one still holds the thread */
        ASSERT_EQ(atomic_load(&second.dropped), 1);
        ASSERT_TRUE(atomic_load(&second.on_loop));
        atomic_store(&first.go, 1);
        third = (struct job){ .fn = nothing, .pool = p, .opts = { .drop = drop } };
        ASSERT_EQ(ask(&third), 3);
        ASSERT_EQ(atomic_load(&third.dropped), 0);
        resha_pool_free(p);
        ASSERT_EQ(atomic_load(&first.dropped), 1);
        return 0;
}

TASK(an_abandoned_job_may_be_signalled)
{
        struct job j = { .fn = sleep_twice, .opts = { .drop = drop, .signal = true } };

        cancel_running(&j);
        ASSERT_TRUE(j.result == -ECANCELED);
        until(&j.dropped);
        return 0;
}

static int quick(void *arg)
{
        struct job *j = arg;

        atomic_store(&j->started, 1);
        usleep(50);
        atomic_store(&j->ended, 1);
        return 1;
}

TASK(a_cancel_and_the_end_of_a_job_meet)
{
        static struct job jobs[1000]; /* some are abandoned */
        int dropped = 0;

        for (int i = 0; i < 1000; i++) {
                struct job *j = &jobs[i];
                *j = (struct job){ .fn = quick, .opts = { .drop = drop, .signal = i % 2 } };
                int rc = resha_timeout(RESHA_US(i % 200), ask, j);
                ASSERT_TRUE(rc == 1 || rc == -ETIME);
                if (rc == -ETIME)
                        until(&j->dropped);
                ASSERT_EQ(atomic_load(&j->started), atomic_load(&j->ended));
                dropped += rc == -ETIME;
        }
        for (int i = 0; i < 1000; i++)
                ASSERT_EQ(atomic_load(&jobs[i].dropped), jobs[i].result == -ECANCELED);
        printf("%d dropped\n", dropped);
        ASSERT_TRUE(dropped > 0);
        return 0;
}

static struct job left;
static unsigned reported;

static void on_report(const resha_report *r, void *arg)
{
        (void)arg;
        if (r->kind == RESHA_REPORT_STUCK) {
                ASSERT_HAS(r->text, "1 abandoned job of pool \"resha\" still runs");
                reported++;
        }
}

static int abandon_one(void *arg)
{
        (void)arg;
        cancel_running(&left);
        ASSERT_EQ(left.result, -ECANCELED);
        return 0;
}

TEST(the_run_waits_for_abandoned_jobs_no_longer_than_its_grace)
{
        resha_instant start = resha_now();

        left = (struct job){ .fn = wait_for_go, .opts = { .drop = drop } };
        ASSERT_EQ(test_run_opts(abandon_one, NULL, &(resha_run_opts){ .grace = RESHA_MS(50), .report = on_report }), 0);
        ASSERT_EQ(reported, 1);
        ASSERT_TRUE(test_ms_since(start) >= 50);
        ASSERT_EQ(atomic_load(&left.dropped), 0);
        atomic_store(&left.go, 1);
        for (int i = 0; i < 60000 && !atomic_load(&left.dropped); i++)
                usleep(1000);
        ASSERT_EQ(atomic_load(&left.dropped), 1);
        real_threads_left(1);
}

/* ---- the crew ---- */

static struct rs_workers crew = RS_WORKERS_INIT(2, "crew");
static atomic_int crew_rested, crew_may_end;

static void waits_to_end(__attribute__((unused)) struct rs_work *w)
{
        while (!crew_may_end)
                usleep(100);
}

static void *rests(void *arg)
{
        rs_workers_rest(&crew, true);
        crew_rested = 1;
        return arg;
}

static bool goes_home(void)
{
        rs_lock(&crew.lock);
        bool leave = crew.leave;
        rs_unlock(&crew.lock);
        return leave;
}

/* Another loop has work for it meanwhile: the first one's end does not wait for that. */
TEST(a_crew_that_is_to_rest_and_gets_work_goes_on)
{
        struct rs_work first = { .run = waits_to_end }, next = { .run = waits_to_end };
        pthread_t t;

        ASSERT_OK(rs_workers_add(&crew, &first));
        ASSERT_EQ(pthread_create(&t, NULL, rests, NULL), 0);
        while (!goes_home())
                usleep(100);
        ASSERT_OK(rs_workers_add(&crew, &next));
        for (int i = 0; i < 10000 && !crew_rested; i++)
                usleep(1000);
        ASSERT_TRUE(crew_rested);
        ASSERT_EQ(pthread_join(t, NULL), 0);
        crew_may_end = 1;
        rs_workers_rest(&crew, true);
}
