/* SPDX-License-Identifier: MIT */
/* Tasks: starting, waiting for one, names, fairness, and what is private to each. */

#include <fenv.h>
#include <string.h>

#include "job.h"

/* ---- starting and waiting ---- */

/* semantics 37 same
 * asyncio: the body of a new task does not start before its creator suspends.
 * resha: nor does it here; a spawn in a group with a limit is such a suspension if it has to wait. */
TASK(semantics_37_child_does_not_run_before_the_spawner_waits)
{
        struct job j = JOB("child", 1);

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, job, &j);
        note("body");
        ASSERT_OK(resha_yield());
        note("body");
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "body child+ body child-");
        return 0;
}

TASK(task_wait_gives_the_status)
{
        struct job good = JOB("good", 2, .result = 7), bad = JOB("bad", 1, .result = -ENOENT);
        int status = 1;

        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .keep_going = true });
        ASSERT_OK(resha_spawn_task(&g, job, &good, &good.task));
        ASSERT_OK(resha_spawn_task(&g, job, &bad, &bad.task));
        ASSERT_FALSE(resha_task_done(&good.task, &status));
        ASSERT_EQ(status, 1);
        ASSERT_EQ(resha_task_wait(&good.task, &status), 0);
        ASSERT_EQ(status, 7);
        ASSERT_EQ(resha_task_wait(&bad.task, &status), 0); /* has ended already */
        ASSERT_EQ(status, -ENOENT);
        ASSERT_EQ(resha_task_wait(&bad.task, NULL), 0);
        ASSERT_TRUE(resha_task_done(&bad.task, &status));
        ASSERT_EQ(resha_group_end(&g, 0), -ENOENT);
        return 0;
}

TASK(task_handle_outlives_task_and_group)
{
        struct job j = JOB("a", 1, .result = 3);
        int status = 0;

        {
                RESHA_GROUP(g);
                resha_group_begin(&g, NULL);
                ASSERT_OK(resha_spawn_task(&g, job, &j, &j.task));
                ASSERT_OK(resha_group_end(&g, 0));
        }
        ASSERT_TRUE(resha_task_done(&j.task, &status));
        ASSERT_EQ(status, 3);
        status = 0;
        ASSERT_OK(resha_task_wait(&j.task, &status));
        ASSERT_EQ(status, 3);
        resha_task_cancel(&j.task); /* nothing */
        ASSERT_TRUE(resha_task_done(&j.task, &status));
        ASSERT_EQ(status, 3);
        return 0;
}

TASK(task_handle_can_be_used_again)
{
        struct job j = JOB("a", 1, .result = 3);
        int status;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (int i = 1; i < 4; i++) {
                j.result = i;
                ASSERT_OK(resha_spawn_task(&g, job, &j, &j.task));
                ASSERT_OK(resha_task_wait(&j.task, &status));
                ASSERT_EQ(status, i);
        }
        return resha_group_end(&g, 0);
}

/* semantics 40 same
 * asyncio: the result of a task cannot be set from outside.
 * resha: only the return of its function sets a task's status. The handle of one that runs is not given to another: the
 * spawn fails with -EBUSY. */
TASK(semantics_40_status_is_set_by_the_return_only)
{
        struct job a = JOB("a", 5, .result = 3), b = JOB("b", 0, .result = 4);
        const resha_spawn_opts again = { .copy = sizeof b, .task = &a.task };
        int status;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, job, &a, &a.task));
        ASSERT_EQ(resha_spawn_opt(&g, job, &b, &again), -EBUSY);
        ASSERT_EQ(resha_group_running(&g), 1);
        ASSERT_OK(resha_task_wait(&a.task, &status));
        ASSERT_EQ(status, 3);
        ASSERT_OK(resha_spawn_opt(&g, job, &b, &again));
        ASSERT_OK(resha_task_wait(&a.task, &status));
        ASSERT_EQ(status, 4);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "a+ a- b+ b-");
        return 0;
}

TASK(task_wait_for_a_handle_never_spawned)
{
        resha_task t = { 0 };

        ASSERT_EQ(resha_task_wait(&t, NULL), -EINVAL);
        ASSERT_FALSE(resha_task_done(&t, NULL));
        resha_task_cancel(&t); /* nothing */
        return 0;
}

static int waits_for_itself(void *arg)
{
        return resha_task_wait(arg, NULL);
}

TASK(task_wait_for_itself)
{
        resha_task t = { 0 };
        int status;

        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .keep_going = true });
        ASSERT_OK(resha_spawn_task(&g, waits_for_itself, &t, &t));
        ASSERT_OK(resha_task_wait(&t, &status));
        ASSERT_EQ(status, -EDEADLK);
        ASSERT_EQ(resha_group_end(&g, 0), -EDEADLK);
        return 0;
}

static int waiter(void *arg)
{
        int status, rc = resha_task_wait(arg, &status);

        note("%d", rc < 0 ? rc : status);
        return rc;
}

/* semantics 36 same
 * asyncio: tasks that await the same failed task get the same exception object.
 * resha: each gets the same status. */
TASK(semantics_36_all_waiters_get_the_same_status)
{
        struct job j = JOB("a", 5, .result = 42);

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, job, &j, &j.task));
        for (int i = 0; i < 3; i++)
                resha_spawn(&g, waiter, &j.task);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "a+ a- 42 42 42");
        return 0;
}

/* semantics 69 better
 * asyncio: if one of several tasks that await the same task is cancelled, that task is cancelled, and with it all who
 * wait.
 * resha: cancelling a waiter ends that wait only: the task and the other waiters go on. */
TASK(semantics_69_cancelling_a_waiter_leaves_the_task_and_the_others)
{
        struct job j = JOB("a", 100, .result = 42);
        resha_task first = { 0 };

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, job, &j, &j.task));
        ASSERT_OK(resha_spawn_task(&g, waiter, &j.task, &first));
        resha_spawn(&g, waiter, &j.task);
        ASSERT_OK(resha_sleep(MS(1)));
        resha_task_cancel(&first);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "a+ -125 a- 42");
        return 0;
}

/* semantics 117 better
 * asyncio: a shared task that wait_for() gives up is cancelled for all its other waiters.
 * resha: the timeout of one waiter cancels nothing: the task goes on and can be waited for again. */
TASK(semantics_117_timeout_of_a_waiter_leaves_the_task)
{
        struct job j = JOB("a", 5, .result = 42);
        int status;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, job, &j, &j.task));
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, MS(1));
        int rc = resha_task_wait(&j.task, &status);
        ASSERT_EQ(resha_scope_end(&s, rc), -ETIME);
        ASSERT_OK(resha_task_wait(&j.task, &status));
        ASSERT_EQ(status, 42);
        return resha_group_end(&g, 0);
}

/* ---- the current task ---- */

static int names(__attribute__((unused)) void *arg)
{
        char longer[100];

        ASSERT_TRUE(resha_in_task());
        ASSERT_STR(resha_task_name(), "names");
        ASSERT_OK(resha_task_set_name("other"));
        ASSERT_STR(resha_task_name(), "other");
        memset(longer, 'x', sizeof longer - 1);
        longer[sizeof longer - 1] = '\0';
        ASSERT_OK(resha_task_set_name(longer));
        ASSERT_EQ(strlen(resha_task_name()), 47);
        memcpy(longer, "mine", 5);
        ASSERT_OK(resha_task_set_name(longer));
        longer[0] = '-'; /* it was copied */
        ASSERT_STR(resha_task_name(), "mine");
        return 0;
}

/* semantics 39 better
 * asyncio: a task without a name gets one, and the name can be changed at any time.
 * resha: the name is that of its function, or "task", and need not be unique: reports add the place of the spawn.
 * resha_task_set_name() copies another. */
TASK(semantics_39_tasks_have_names)
{
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, names, NULL);
        return resha_group_end(&g, 0);
}

static int nameless(__attribute__((unused)) void *arg)
{
        ASSERT_STR(resha_task_name(), "task");
        return 0;
}

TASK(task_name_by_default)
{
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_opt(&g, nameless, NULL, NULL));
        return resha_group_end(&g, 0);
}

/* semantics 42 same
 * asyncio: current_task() is None in a plain callback; all_tasks() holds the current task and none that is done.
 * resha: outside a task resha_task_name() is NULL, and what needs a task gives -EPERM; resha_group_running() counts
 * those that have not ended. */
TEST(semantics_42_no_current_task_outside)
{
        ASSERT_FALSE(resha_in_task());
        ASSERT_STR(resha_task_name(), NULL);
        ASSERT_FALSE(resha_cancelled());
        ASSERT_EQ(resha_task_set_name("x"), -EPERM);
        ASSERT_EQ(resha_yield(), -EPERM);
        ASSERT_EQ(resha_checkpoint(), -EPERM);
        resha_task t = { 0 };
        ASSERT_EQ(resha_task_wait(&t, NULL), -EPERM);
}

TASK(semantics_42_tasks_of_a_group_are_those_that_have_not_ended)
{
        struct job j[] = { JOB("a", 1), JOB("b", 10) };

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (size_t i = 0; i < 2; i++)
                ASSERT_OK(resha_spawn_task(&g, job, &j[i], &j[i].task));
        ASSERT_EQ(resha_group_running(&g), 2);
        ASSERT_OK(resha_task_wait(&j[0].task, NULL));
        ASSERT_EQ(resha_group_running(&g), 1);
        ASSERT_OK(resha_task_wait(&j[1].task, NULL));
        ASSERT_EQ(resha_group_running(&g), 0);
        return resha_group_end(&g, 0);
}

static int turns(void *arg)
{
        const char *name = arg;

        for (int i = 1; i <= 3; i++) {
                note("%s%d", name, i);
                ASSERT_OK(resha_yield());
        }
        return 0;
}

TASK(task_yield_lets_every_ready_task_run_once)
{
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, turns, (char *)"a");
        resha_spawn(&g, turns, (char *)"b");
        resha_spawn(&g, turns, (char *)"c");
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "a1 b1 c1 a2 b2 c2 a3 b3 c3");
        return 0;
}

static int count_turns(void *arg)
{
        unsigned *n = arg;

        for (;;) {
                int rc = resha_yield();
                if (rc < 0)
                        return rc;
                ++*n;
        }
}

TASK(semantics_228_immediate_completions_let_others_run)
{
        unsigned n = 0;
        resha_mutex m = { { 0 } };

        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        resha_spawn(&g, count_turns, &n);
        for (int i = 0; i < 6400; i++) {
                ASSERT_OK(resha_mutex_lock(&m));
                ASSERT_OK(resha_mutex_unlock(&m));
        }
        ASSERT_TRUE(n >= 90 && n <= 110); /* a turn for each 64 */
        return resha_group_end(&g, 0);
}

TASK(task_checkpoint_alone_rarely_yields)
{
        unsigned n = 0;

        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        resha_spawn(&g, count_turns, &n);
        for (int i = 0; i < 100000; i++)
                ASSERT_OK(resha_checkpoint());
        ASSERT_TRUE(n > 0);     /* it yields for a loop that only computes */
        ASSERT_TRUE(n < 10000); /* and not at each call */
        return resha_group_end(&g, 0);
}

/* ---- private to each task ---- */

static int rounding(void *arg)
{
        int mine = *(int *)arg;

        ASSERT_EQ(fegetround(), FE_TONEAREST);
        ASSERT_EQ(fesetround(mine), 0);
        for (int i = 0; i < 3; i++) {
                ASSERT_OK(resha_yield());
                ASSERT_EQ(fegetround(), mine);
                volatile double one = 1.0, three = 3.0;
                double third = one / three;
                ASSERT_TRUE((third * 3 == 1.0) || mine != FE_TONEAREST);
                ASSERT_OK(resha_sleep(MS(1)));
                ASSERT_EQ(fegetround(), mine);
        }
        return 0;
}

TASK(task_floating_point_control_is_its_own)
{
        int modes[] = { FE_UPWARD, FE_TONEAREST, FE_DOWNWARD, FE_TOWARDZERO };

        ASSERT_OK(resha_gather(rounding, modes, 4, sizeof modes[0], NULL));
        ASSERT_EQ(fegetround(), FE_TONEAREST);
        return 0;
}

static int leaves_it_changed(__attribute__((unused)) void *arg)
{
        ASSERT_EQ(fegetround(), FE_TONEAREST);
        ASSERT_EQ(errno, 0);
        ASSERT_EQ(fesetround(FE_UPWARD), 0);
        errno = 7;
        return 0;
}

TASK(task_begins_with_the_control_words_of_the_thread_and_without_errno)
{
        int none[4] = { 0 };

        ASSERT_OK(resha_gather(leaves_it_changed, none, 4, sizeof none[0], NULL)); /* one after another on one stack */
        ASSERT_EQ(fegetround(), FE_TONEAREST);
        return 0;
}

static int deep(__attribute__((unused)) void *arg)
{
        volatile char locals[100 * 1024];

        for (size_t i = 0; i < sizeof locals; i += 512)
                locals[i] = (char)(i / 512);
        ASSERT_OK(resha_yield());
        for (size_t i = 0; i < sizeof locals; i += 512)
                ASSERT_EQ(locals[i], (char)(i / 512));
        return 0;
}

TASK(task_stack_holds_100_kib_of_locals)
{
        int dummy[3] = { 0 };

        return resha_gather(deep, dummy, 3, sizeof dummy[0], NULL);
}

static int deeper(__attribute__((unused)) void *arg)
{
        volatile char locals[3 * 1024 * 1024];

        for (size_t i = 0; i < sizeof locals; i += 4096)
                locals[i] = 1;
        ASSERT_OK(resha_yield());
        return locals[4096];
}

TASK(task_stack_of_its_own_size)
{
        resha_task t = { 0 };
        int status = 0;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_opt(&g, deeper, NULL, &(resha_spawn_opts){ .stack = 4 * 1024 * 1024, .task = &t }));
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_TRUE(resha_task_done(&t, &status));
        ASSERT_EQ(status, 1);
        return 0;
}

static int registers(void *arg)
{
        long seed = *(int *)arg, a = seed * 3, b = seed * 5, c = seed * 7, d = seed * 11, e = seed * 13, f = seed * 17;
        double x = (double)seed / 3, y = (double)seed / 5, z = (double)seed / 7;

        for (int i = 0; i < 10; i++) {
                int rc = resha_yield();
                if (rc < 0)
                        return rc;
                a++, b++, c++, d++, e++, f++, x += 1, y += 1, z += 1;
        }
        ASSERT_EQ(a + b + c + d + e + f, seed * 56 + 60);
        ASSERT_TRUE(x > (double)seed / 3 + 9.9 && y > (double)seed / 5 + 9.9 && z > (double)seed / 7 + 9.9);
        return 0;
}

TASK(task_registers_survive_switches)
{
        int seeds[20];

        for (int i = 0; i < 20; i++)
                seeds[i] = i;
        return resha_gather(registers, seeds, 20, sizeof seeds[0], NULL);
}

TASK(task_many_at_once)
{
        unsigned n = 0;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (size_t i = 0; i < 2000; i++)
                ASSERT_OK(resha_spawn(&g, count_turns, &n));
        ASSERT_EQ(resha_group_running(&g), 2000);
        ASSERT_OK(resha_yield());
        ASSERT_OK(resha_yield());
        ASSERT_TRUE(n >= 2000);
        resha_group_cancel(&g);
        return resha_group_end(&g, 0);
}
