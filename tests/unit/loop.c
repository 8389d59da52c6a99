/* SPDX-License-Identifier: MIT */
/* The loop: in which order things run, which clock it looks at, when it wakes, how a run ends. What asyncio says of
 * callbacks holds here for tasks and the wake-ups of tasks; its handles are task handles and scopes. */

#include <pthread.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "core/core.h"
#include "job.h"

/* ---- the order ---- */

struct turn {
        const char *name;
        unsigned *running; /* of these at this moment */
        pthread_t thread;
};

static int takes_its_turn(void *arg)
{
        struct turn *t = arg;

        ASSERT_EQ(++*t->running, 1);
        ASSERT_TRUE(pthread_equal(t->thread, pthread_self()));
        note("%s", t->name);
        --*t->running;
        return 0;
}

/* semantics 1 same
 * asyncio: callbacks that are queued run in that order, one at a time, on the loop's thread.
 * resha: so do tasks that are spawned. */
TASK(semantics_1_tasks_run_in_the_order_of_their_spawns)
{
        unsigned running = 0;
        struct turn t[] = { { "a", &running, pthread_self() },
                            { "b", &running, pthread_self() },
                            { "c", &running, pthread_self() } };

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (size_t i = 0; i < 3; i++)
                ASSERT_OK(resha_spawn(&g, takes_its_turn, &t[i]));
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "a b c");
        return 0;
}

static int notes_its_name(void *arg)
{
        note("%s", (const char *)arg);
        return 0;
}

static int wakes_and_spawns(void *arg)
{
        struct {
                resha_group *group;
                resha_event *event;
        } *w = arg;

        note("a");
        resha_event_set(w->event);
        return resha_spawn(w->group, notes_its_name, (char *)"spawned");
}

static int waits_and_notes(void *arg)
{
        int rc = resha_event_wait(arg);

        note("woken");
        return rc;
}

/* semantics 2 better
 * asyncio: what a running callback queues runs in the next iteration, after one more poll, never in the current batch.
 * resha: what a task wakes or spawns goes to the end of the one line, behind all that were ready. The loop polls by
 * time (after 50 us or 8 switches) and not once a round. */
TASK(semantics_2_what_a_task_wakes_or_spawns_runs_behind_all_that_were_ready)
{
        resha_event e = { { 0 } };

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, waits_and_notes, &e);
        ASSERT_OK(resha_yield());
        struct {
                resha_group *group;
                resha_event *event;
        } w = { &g, &e };
        resha_spawn(&g, wakes_and_spawns, &w);
        resha_spawn(&g, notes_its_name, (char *)"b");
        resha_spawn(&g, notes_its_name, (char *)"c");
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "a b c woken spawned");
        return 0;
}

static int cancels_twice(void *arg)
{
        note("cancel");
        resha_task_cancel(arg);
        resha_task_cancel(arg);
        return 0;
}

static int takes_and_gives_back(__attribute__((unused)) void *arg)
{
        note("take");
        int rc = resha_sleep(RESHA_S(10));
        note("give back");
        return rc;
}

/* semantics 3 better
 * asyncio: a handle that is cancelled before its turn, even by an earlier one of the same batch, does not run;
 * cancelling it twice, or after it ran, has no effect.
 * resha: a task that is cancelled before its turn still runs to its first wait, so that it can give back what it was
 * given, and no further. To cancel it again, or after its end, is nothing. */
TASK(semantics_3_task_cancelled_before_its_turn_runs_to_its_first_wait_only)
{
        resha_task t = { 0 };
        int status;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, cancels_twice, &t);
        ASSERT_OK(resha_spawn_task(&g, takes_and_gives_back, NULL, &t));
        ASSERT_OK(resha_task_wait(&t, &status));
        ASSERT_EQ(status, -ECANCELED);
        resha_task_cancel(&t);
        ASSERT_TRUE(resha_task_done(&t, &status));
        ASSERT_EQ(status, -ECANCELED);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "cancel take give back");
        return 0;
}

/* ---- the clock ---- */

/* The time of day, for this program, is never the same for long: it jumps by a day, forwards and back. */
static int64_t day_jump(void)
{
        static int64_t n;

        return (++n % 2 ? 1 : -1) * 86400;
}

int clock_gettime(clockid_t id, struct timespec *t)
{
        long rc = syscall(SYS_clock_gettime, id, t);

        if (rc == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
                t->tv_sec += day_jump();
        return (int)rc;
}

time_t time(time_t *t)
{
        struct timespec now;

        clock_gettime(CLOCK_REALTIME, &now);
        if (t)
                *t = now.tv_sec;
        return now.tv_sec;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
        (void)zone;
        *t = (struct timeval){ .tv_sec = time(NULL) };
        return 0;
}

static int64_t kernel_time(void)
{
        struct timespec t;

        ASSERT_EQ(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t), 0);
        return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static int sleeps_an_hour(__attribute__((unused)) void *arg)
{
        return resha_sleep(RESHA_S(3600));
}

/* semantics 9 same
 * asyncio: a change of the wall clock moves no timer: the loop's time is monotonic.
 * resha: sleeps and deadlines are measured by CLOCK_MONOTONIC alone; here the time of day jumps by a day at each
 * look. */
TASK(semantics_9_changes_of_the_wall_clock_move_no_timer)
{
        if (test_is_sim())
                test_skip("the simulated world has a clock of its own");
        int64_t start = kernel_time();
        for (int i = 0; i < 4; i++) {
                ASSERT_OK(resha_sleep(RESHA_MS(2)));
                ASSERT_EQ(resha_timeout(RESHA_MS(2), sleeps_an_hour, NULL), -ETIME);
        }
        int64_t passed = kernel_time() - start;
        ASSERT_TRUE(passed >= RESHA_MS(16).ns);
        ASSERT_TRUE(passed < RESHA_S(3600).ns);
        return 0;
}

/* semantics 10 better
 * asyncio: a loop whose next deadline is more than a day away still wakes once a day.
 * resha: it sleeps until the deadline, however far away. */
TASK(semantics_10_a_sleep_of_a_month_is_one_wake_up)
{
        SIM_ONLY();
        resha_instant start = resha_now();
        uint64_t polls = rs_loop_current->polls;

        ASSERT_OK(resha_sleep(RESHA_S(30 * 86400)));
        ASSERT_PASSED(start, INT64_C(30) * 86400 * 1000);
        ASSERT_TRUE(rs_loop_current->polls - polls <= 2);
        return 0;
}

/* ---- how a run ends ---- */

static int leaves_what_it_queued(void *arg)
{
        struct job *j = arg;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (size_t i = 0; i < 2; i++)
                ASSERT_OK(resha_spawn(&g, job, &j[i]));
        note("returns");
        return 3;
}

/* semantics 12 better
 * asyncio: when a callback calls stop(), the current batch is finished, and what it queued waits for the next run.
 * resha: there is no stop(): a run ends when its main task has returned, and nothing is left over for another run. What
 * was queued by then is cancelled, runs to its first wait, and is joined. */
TEST(semantics_12_nothing_that_was_queued_is_left_for_the_next_run)
{
        struct job j[] = { JOB("a", 1000), JOB("b", 1000) };

        ASSERT_EQ(test_run_opts(leaves_what_it_queued, j, NULL), 3);
        ASSERT_STR(notes(), "returns a+ b+ a! b!");
        ASSERT_EQ(test_run_opts(notes_its_name, (char *)"next", NULL), 0);
        ASSERT_STR(notes(), "next");
}

static int cancels_all_before_it_begins(void *arg)
{
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn(&g, job, arg));
        resha_group_cancel(&g);
        return resha_group_end(&g, 0);
}

/* semantics 13 better
 * asyncio: if stop() came before run_forever(), one iteration runs and then it returns.
 * resha: there is no stop(). A program that cancels everything before anything has run ends at once and without an
 * error: each task runs to its first wait. */
TEST(semantics_13_run_whose_tasks_are_cancelled_before_they_begin_ends_at_once)
{
        struct job j = JOB("a", 3600 * 1000);
        resha_instant start = resha_now();

        ASSERT_EQ(test_run_opts(cancels_all_before_it_begins, &j, NULL), 0);
        ASSERT_STR(notes(), "a+ a!");
        ASSERT_TRUE(resha_between(start, resha_now()).ns < RESHA_S(60).ns);
}

static int waits_for_what_never_comes(__attribute__((unused)) void *arg)
{
        resha_event never = { { 0 } };
        int rc = resha_event_wait(&never);

        note("cleans up %d", rc);
        return 5;
}

/* semantics 14 better
 * asyncio: if the loop is stopped before the future of run_until_complete() is done, that is a RuntimeError.
 * resha: resha_run() returns with the main task's own result or not at all, except where nothing can wake it any more:
 * -EDEADLK, with a report, after the main task was cancelled and has cleaned up. */
TEST(semantics_14_run_without_a_result_is_a_deadlock)
{
        ASSERT_EQ(test_run_opts(waits_for_what_never_comes, NULL, NULL), -EDEADLK);
        ASSERT_STR(notes(), "cleans up -125");
}

static int returns_its_argument(void *arg)
{
        return *(int *)arg;
}

static int runs_another(void *arg)
{
        ASSERT_EQ(resha_run(returns_its_argument, arg, NULL), -EBUSY);
        ASSERT_EQ(resha_run(returns_its_argument, arg, &(resha_run_opts){ .backend = "sim:1" }), -EBUSY);
        ASSERT_OK(resha_sleep(MS(1))); /* this one is none the worse */
        return 6;
}

/* semantics 15 same
 * asyncio: a loop that runs, or another one on the same thread, cannot be started.
 * resha: resha_run() in a task gives -EBUSY; the loop that runs goes on. After its end there may be another. */
TEST(semantics_15_one_loop_at_a_time_on_a_thread)
{
        ASSERT_EQ(test_run_opts(runs_another, &(int){ 4 }, NULL), 6);
        ASSERT_EQ(test_run_opts(returns_its_argument, &(int){ 4 }, NULL), 4);
}
