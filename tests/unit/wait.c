/* SPDX-License-Identifier: MIT */
/* Waiting for tasks: one, any, the first that fails, all; with a time that cancels nothing. */

#include <string.h>

#include "base/alloc.h"
#include "job.h"
#include "sys/sys.h"

enum { MOST = 4 };

/* Jobs whose handles lie in an array. */
struct set {
        struct job job[MOST];
        resha_task task[MOST];
        size_t n;
};

static void start(resha_group *g, struct set *s)
{
        for (s->n = 0; s->n < MOST && s->job[s->n].name; s->n++)
                ASSERT_OK(resha_spawn_task(g, job, &s->job[s->n], &s->task[s->n]));
}

static void begin(resha_group *g, struct set *s)
{
        resha_group_begin(g, &(resha_group_opts){ .keep_going = true });
        start(g, s);
}

TASK(wait_any_gives_the_first_that_ends)
{
        struct set s = { .job = { JOB("a", 30), JOB("b", 10, .result = -EIO), JOB("c", 20) } };
        resha_instant from = resha_now();
        size_t index = 9;

        RESHA_GROUP(g);
        begin(&g, &s);
        ASSERT_OK(resha_task_wait_any(s.task, s.n, RESHA_S(5), &index));
        ASSERT_EQ(index, 1);
        ASSERT_PASSED(from, 10);
        ASSERT_STR(notes(), "a+ b+ c+ b-");
        ASSERT_OK(resha_task_wait_any(s.task, s.n, RESHA_FOREVER, &index)); /* it still is one that has ended */
        ASSERT_EQ(index, 1);
        ASSERT_OK(resha_task_wait_any(s.task + 2, 1, RESHA_FOREVER, NULL));
        ASSERT_PASSED(from, 20);
        ASSERT_EQ(resha_group_end(&g, 0), -EIO);
        return 0;
}

TASK(wait_all)
{
        struct set s = { .job = { JOB("a", 30), JOB("b", 10, .result = -EIO), JOB("c", 20) } };
        resha_instant from = resha_now();
        size_t ended = 9;

        RESHA_GROUP(g);
        begin(&g, &s);
        ASSERT_OK(resha_task_wait_all(s.task, s.n, RESHA_S(5), &ended));
        ASSERT_EQ(ended, 3);
        ASSERT_PASSED(from, 30);
        ASSERT_OK(resha_task_wait_all(s.task, s.n, RESHA_S(0), NULL));
        ASSERT_EQ(resha_group_end(&g, 0), -EIO);
        return 0;
}

/* semantics 171 same
 * asyncio: waiting for an empty set is a ValueError, and so is one that holds what is no task.
 * resha: n = 0 and a handle that was never spawned give -EINVAL; a caller that waits for itself gets -EDEADLK. */
TASK(semantics_171_wait_for_nothing_is_an_error)
{
        resha_task none[2] = { 0 };
        size_t n = 9;

        ASSERT_EQ(resha_task_wait_any(none, 0, RESHA_S(1), &n), -EINVAL);
        ASSERT_EQ(resha_task_wait_failed(none, 0, RESHA_S(1), &n), -EINVAL);
        ASSERT_EQ(resha_task_wait_any(none, 2, RESHA_S(1), &n), -EINVAL);
        ASSERT_EQ(resha_task_wait_for(none, RESHA_S(1), NULL), -EINVAL);
        ASSERT_EQ(n, 9);
        ASSERT_EQ(resha_task_wait_all(none, 0, RESHA_S(1), &n), -EINVAL);
        ASSERT_EQ(n, 0);
        return 0;
}

static int waits_among_others(void *arg)
{
        return resha_task_wait_all(arg, 2, RESHA_S(1), NULL);
}

TASK(wait_for_itself_among_others)
{
        resha_task t[2] = { 0 };
        struct job j = JOB("a", 1);
        int status;

        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .keep_going = true });
        ASSERT_OK(resha_spawn_task(&g, job, &j, &t[0]));
        ASSERT_OK(resha_spawn_task(&g, waits_among_others, t, &t[1]));
        ASSERT_OK(resha_task_wait_for(&t[1], RESHA_S(5), &status));
        ASSERT_EQ(status, -EDEADLK);
        ASSERT_EQ(resha_group_end(&g, 0), -EDEADLK);
        return 0;
}

/* semantics 172 same
 * asyncio: when the time of wait() has passed, nothing is raised and nothing is cancelled: some are done, some pending.
 * resha: -ETIME says so, the count tells how many have ended, and the tasks go on. */
TASK(semantics_172_time_of_a_wait_cancels_nothing)
{
        struct set s = { .job = { JOB("a", 10), JOB("b", 50), JOB("c", 60) } };
        size_t ended = 9, index = 9;
        int status = 1;

        RESHA_GROUP(g);
        begin(&g, &s);
        ASSERT_EQ(resha_task_wait_any(s.task, s.n, MS(5), &index), -ETIME);
        ASSERT_EQ(index, 9);
        ASSERT_EQ(resha_task_wait_all(s.task, s.n, MS(15), &ended), -ETIME);
        ASSERT_EQ(ended, 1);
        ASSERT_STR(resha_error_of(-ETIME)->text, "2 of 3 tasks have not ended in time");
        ASSERT_EQ(resha_task_wait_failed(s.task, s.n, MS(5), &index), -ETIME);
        ASSERT_EQ(resha_task_wait_for(&s.task[1], MS(5), &status), -ETIME);
        ASSERT_EQ(status, 1);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "a+ b+ c+ a- b- c-");
        return 0;
}

/* semantics 174 same
 * asyncio: FIRST_EXCEPTION is not met by a task that was cancelled; without an exception it waits for all.
 * resha: resha_task_wait_failed() gives 1 at the first status that is negative and not -ECANCELED, else 0 when all have
 * ended. */
TASK(semantics_174_wait_failed_is_not_met_by_a_cancelled_task)
{
        struct set s = { .job = { JOB("a", 5000), JOB("b", 10), JOB("c", 20, .result = -EIO), JOB("d", 5000) } };
        resha_instant from = resha_now();
        size_t index = 9;

        RESHA_GROUP(g);
        begin(&g, &s);
        ASSERT_OK(resha_yield());
        resha_task_cancel(&s.task[0]);
        ASSERT_EQ(resha_task_wait_failed(s.task, s.n, RESHA_S(5), &index), 1);
        ASSERT_EQ(index, 2);
        ASSERT_PASSED(from, 20);
        ASSERT_EQ(resha_task_wait_failed(s.task, s.n, RESHA_S(0), &index), 1);
        index = 9;
        ASSERT_EQ(resha_task_wait_failed(s.task, 2, RESHA_S(5), &index), 0); /* cancelled, and good */
        ASSERT_EQ(index, 9);
        resha_task_cancel(&s.task[3]);
        ASSERT_EQ(resha_group_end(&g, 0), -EIO);
        return 0;
}

TASK(wait_failed_without_a_failure_waits_for_all)
{
        struct set s = { .job = { JOB("a", 10), JOB("b", 30), JOB("c", 20) } };
        resha_instant from = resha_now();

        RESHA_GROUP(g);
        begin(&g, &s);
        ASSERT_EQ(resha_task_wait_failed(s.task, s.n, RESHA_FOREVER, NULL), 0);
        ASSERT_PASSED(from, 30);
        return resha_group_end(&g, 0);
}

static int waits_for_all(void *arg)
{
        struct set *s = arg;
        int rc = resha_task_wait_all(s->task, s->n, RESHA_S(5), NULL);

        note("%d", rc);
        return rc;
}

/* semantics 175 same
 * asyncio: if the one who waits is cancelled, the tasks it waits for are not.
 * resha: the same; a timeout around the wait leaves them alone, too. */
TASK(semantics_175_cancelled_waiter_leaves_the_tasks)
{
        struct set s = { .job = { JOB("a", 10), JOB("b", 20) } };
        resha_task waiter = { 0 };

        SIM_ONLY();
        RESHA_GROUP(g);
        begin(&g, &s);
        ASSERT_OK(resha_spawn_task(&g, waits_for_all, &s, &waiter));
        ASSERT_EQ(resha_timeout(MS(5), waits_for_all, &s), -ETIME);
        resha_task_cancel(&waiter);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "a+ b+ -125 -125 a- b-");
        return 0;
}

/* semantics 176 same
 * asyncio: with a timeout of 0 those that are done already come back.
 * resha: zero is a look without waiting: 0 if what was asked for is so, else -ETIME. */
TASK(semantics_176_wait_of_no_time_is_a_look)
{
        struct set s = { .job = { JOB("a", 0), JOB("b", 50) } };
        resha_instant from = resha_now();
        size_t index = 9, ended;

        SIM_ONLY();
        RESHA_GROUP(g);
        begin(&g, &s);
        ASSERT_EQ(resha_task_wait_any(s.task, s.n, RESHA_S(0), &index), -ETIME);
        ASSERT_OK(resha_sleep(RESHA_S(0)));
        ASSERT_OK(resha_yield());
        ASSERT_OK(resha_task_wait_any(s.task, s.n, RESHA_S(0), &index));
        ASSERT_EQ(index, 0);
        ASSERT_EQ(resha_task_wait_all(s.task, s.n, RESHA_NS(-5), &ended), -ETIME);
        ASSERT_EQ(ended, 1);
        ASSERT_PASSED(from, 0);
        return resha_group_end(&g, 0);
}

/* semantics 177 same
 * asyncio: a task that is given twice counts once, and errors of done tasks are not raised by wait().
 * resha: an array of handles cannot name one twice; what the tasks have ended with is their status, not the result. */
TASK(semantics_177_status_of_a_task_is_not_the_result_of_a_wait)
{
        struct set s = { .job = { JOB("a", 1, .result = -EIO), JOB("b", 2, .result = -ENOENT) } };
        int status;

        RESHA_GROUP(g);
        begin(&g, &s);
        ASSERT_OK(resha_task_wait_all(s.task, s.n, RESHA_S(5), NULL));
        ASSERT_OK(resha_task_wait_any(s.task, s.n, RESHA_S(5), NULL));
        ASSERT_OK(resha_task_wait_for(&s.task[1], RESHA_S(5), &status));
        ASSERT_EQ(status, -ENOENT);
        ASSERT_EQ(resha_group_end(&g, 0), -EIO);
        return 0;
}

static int waits_for_any(void *arg)
{
        struct set *s = arg;
        size_t index;
        int rc = resha_task_wait_any(s->task, s->n, MS(50), &index);

        note("%d", rc < 0 ? rc : (int)index);
        return rc == -ETIME ? 0 : rc;
}

/* semantics 178 same
 * asyncio: when wait() returns it has taken its callbacks off those that are pending.
 * resha: whoever leaves a wait, by any way, is out of the one list it stood in; tasks that end later know nothing. */
TASK(semantics_178_waiters_leave_nothing_behind)
{
        struct set s = { .job = { JOB("a", 100), JOB("b", 20), JOB("c", 120) } };
        resha_task waiter = { 0 };

        SIM_ONLY();
        RESHA_GROUP(g);
        begin(&g, &s);
        resha_spawn(&g, waits_for_any, &s);
        ASSERT_OK(resha_spawn_task(&g, waits_for_any, &s, &waiter));
        for (int i = 0; i < 5; i++)
                ASSERT_EQ(resha_task_wait_any(s.task, s.n, MS(2), NULL), -ETIME);
        resha_task_cancel(&waiter);
        ASSERT_EQ(resha_task_wait_all(s.task, s.n, MS(60), NULL), -ETIME);
        ASSERT_OK(resha_group_end(&g, 0)); /* a and c end, long after all that waited have gone */
        ASSERT_STR(notes(), "a+ b+ c+ -125 b- 1 a- c-");
        return 0;
}

TASK(wait_for_one)
{
        struct job j = JOB("a", 10, .result = 5);
        int status = 0;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, job, &j, &j.task));
        ASSERT_EQ(resha_task_wait_for(&j.task, MS(2), &status), -ETIME);
        ASSERT_STR(resha_error_of(-ETIME)->text, "the task has not ended in time");
        ASSERT_OK(resha_task_wait_for(&j.task, RESHA_S(60), &status));
        ASSERT_EQ(status, 5);
        ASSERT_OK(resha_task_wait_for(&j.task, RESHA_S(0), NULL));
        return resha_group_end(&g, 0);
}

TEST(wait_several_outside_a_task)
{
        resha_task t = { 0 };

        ASSERT_EQ(resha_task_wait_any(&t, 1, RESHA_S(1), NULL), -EPERM);
        ASSERT_EQ(resha_task_wait_all(&t, 1, RESHA_S(1), NULL), -EPERM);
        ASSERT_EQ(resha_task_wait_failed(&t, 1, RESHA_S(1), NULL), -EPERM);
        ASSERT_EQ(resha_task_wait_for(&t, RESHA_S(1), NULL), -EPERM);
}

TASK(wait_allocates_nothing)
{
        struct set s = { .job = { JOB("a", 10), JOB("b", 20), JOB("c", 30) } };

        RESHA_GROUP(g);
        begin(&g, &s);
        rs_alloc_fail_after(1, true);
        ASSERT_OK(resha_task_wait_any(s.task, s.n, RESHA_S(5), NULL));
        ASSERT_OK(resha_task_wait_for(&s.task[1], RESHA_S(5), NULL));
        ASSERT_OK(resha_task_wait_all(s.task, s.n, RESHA_S(5), NULL));
        ASSERT_EQ(rs_alloc_failed(), 0);
        rs_alloc_fail_after(0, false);
        return resha_group_end(&g, 0);
}

static int waiter_of_many(void *arg)
{
        struct set *s = arg;
        size_t index = MOST;
        int rc = resha_task_wait_any(s->task, s->n, MS(3), &index);

        if (rc == 0)
                ASSERT_TRUE(resha_task_done(&s->task[index], NULL));
        return rc == -ETIME ? 0 : rc;
}

static int many_waiters(__attribute__((unused)) void *arg)
{
        struct set s = { .job = { JOB("a", 1), JOB("b", 3), JOB("c", 3), JOB("d", 6) } };
        size_t ended;

        RESHA_GROUP(g);
        begin(&g, &s);
        for (int i = 0; i < 5; i++)
                resha_spawn(&g, waiter_of_many, &s);
        int rc = resha_task_wait_all(s.task, s.n, MS(3), &ended);
        ASSERT_TRUE(rc == 0 || rc == -ETIME);
        ASSERT_EQ(rc == 0, ended == 4);
        rc = resha_group_end(&g, 0);
        notes();
        return rc;
}

TEST(wait_under_many_seeds)
{
        RUN_SEEDS(many_waiters, NULL, 100);
}

/* ---- handles that are given to another task meanwhile ---- */

struct again {
        resha_group *group;
        resha_task *task;
        struct job *next;
};

/* Gives the handle of a task that has ended to another one, before those that waited for it run. */
static int spawns_again(void *arg)
{
        struct again *a = arg;
        int rc = 0;

        while (rc == 0 && !resha_task_done(a->task, NULL))
                rc = resha_yield();
        return rc < 0 ? rc : resha_spawn_task(a->group, job, a->next, a->task);
}

static int waits_for_its_status(void *arg)
{
        int status = 0, rc = resha_task_wait(arg, &status);

        note("%d", rc < 0 ? rc : status);
        return 0;
}

static int waits_for_its_status_for_long(void *arg)
{
        int status = 0, rc = resha_task_wait_for(arg, RESHA_S(5), &status);

        note("%d", rc < 0 ? rc : status);
        return 0;
}

static int waits_for_its_failure(void *arg)
{
        note("%d", resha_task_wait_failed(arg, 1, RESHA_S(5), NULL));
        return 0;
}

static int yields(void *arg)
{
        struct job *j = arg;
        int rc = resha_yield();

        return rc < 0 ? rc : j->result;
}

TASK(wait_tells_of_the_task_that_was_waited_for)
{
        resha_task t = { 0 };
        struct job first = JOB("a", 0, .result = -EIO), next = JOB("b", 10, .result = 3);

        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .keep_going = true });
        struct again again = { &g, &t, &next };
        ASSERT_OK(resha_spawn_task(&g, yields, &first, &t));
        ASSERT_OK(resha_spawn(&g, waits_for_its_status, &t));
        ASSERT_OK(resha_spawn(&g, waits_for_its_status_for_long, &t));
        ASSERT_OK(resha_spawn(&g, waits_for_its_failure, &t));
        ASSERT_OK(resha_spawn(&g, spawns_again, &again));
        for (int i = 0; i < 3; i++)
                ASSERT_OK(resha_yield());
        ASSERT_STR(notes(), "-5 -5 1 b+");
        ASSERT_EQ(resha_group_end(&g, 0), -EIO);
        return 0;
}

static int waits_for_the_set(void *arg)
{
        struct set *s = arg;
        int rc = resha_task_wait_all(s->task, s->n, RESHA_S(60), NULL);

        note("all");
        return rc;
}

TASK(wait_all_counts_a_handle_that_is_used_again_once)
{
        struct set s = { .job = { JOB("a", 1), JOB("b", 50) } };

        RESHA_GROUP(g);
        begin(&g, &s);
        ASSERT_OK(resha_spawn(&g, waits_for_the_set, &s));
        for (int i = 0; i < 3; i++) {
                ASSERT_OK(resha_task_wait(&s.task[0], NULL));
                ASSERT_OK(resha_spawn_task(&g, job, &s.job[0], &s.task[0]));
        }
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "a+ b+ a- a+ a- a+ a- a+ a- b- all");
        return 0;
}

/* ---- many ---- */

enum { CROWD = 12000 };

static int waits_for_one_of_a_crowd(void *arg)
{
        return arg ? resha_task_wait_for(arg, RESHA_S(600), NULL) : resha_sleep(MS(1));
}

static int sleeps_a_little(__attribute__((unused)) void *arg)
{
        return resha_sleep(MS(1));
}

/* How long a crowd of pairs takes in which each waits for its other, or for nobody; ns of real time. */
static int64_t crowd_takes(resha_task *crowd, bool waits)
{
        int64_t from = rs_sys_now();
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        for (size_t i = 0; i < CROWD; i++) {
                ASSERT_OK(resha_spawn_task(&g, sleeps_a_little, NULL, &crowd[i]));
                ASSERT_OK(resha_spawn(&g, waits_for_one_of_a_crowd, waits ? &crowd[i] : NULL));
        }
        ASSERT_OK(resha_group_end(&g, 0));
        return rs_sys_now() - from;
}

/* Each waits for one, and for a time: what a task pays at its end does not grow with how many wait for others. If each
 * looks at all of them, it takes more than a hundred times what the same crowd takes without; as it is, some three. */
TASK(waits_for_one_each_of_a_crowd)
{
        resha_task *crowd = resha_calloc(CROWD, sizeof *crowd);

        ASSERT_TRUE(crowd);
        crowd_takes(crowd, false); /* makes the stacks */
        int64_t without = crowd_takes(crowd, false);
        ASSERT_TRUE(crowd_takes(crowd, true) < 40 * without);
        resha_free(crowd);
        return 0;
}
