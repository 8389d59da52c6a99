/* SPDX-License-Identifier: MIT */
/* What asyncio's shield() is used for: tasks that outlive those who wait for them, and clean-up that must come to its
 * end. */

#include <string.h>

#include "base/list.h"
#include "job.h"

static int waits_for(void *arg)
{
        struct job *j = arg;
        int status = 99, rc = resha_task_wait(&j->task, &status);

        note("wait=%d", rc < 0 ? rc : status);
        return rc;
}

/* semantics 163 same
 * asyncio: a cancelled caller of shield() goes on at once, and the inner task goes on, too.
 * resha: the task is spawned in a group further out; resha_task_wait() in the cancelled one gives -ECANCELED, and the
 * task goes on, owned by its group. */
TASK(semantics_163_task_goes_on_when_the_one_that_waits_is_cancelled)
{
        struct job j = JOB("a", 20, .result = 7);

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, job, &j, &j.task));
        ASSERT_EQ(status_when_cancelled(1, waits_for, &j), -ECANCELED);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "a+ wait=-125 a-");
        return 0;
}

/* semantics 164 better
 * asyncio: when the inner task is cancelled, so is the shield, and who awaits it cannot tell which of both was meant.
 * resha: the wait itself gives 0, and the status -ECANCELED: the waiter is not cancelled. */
TASK(semantics_164_status_tells_that_the_task_was_cancelled)
{
        struct job j = JOB("a", 5000);

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, job, &j, &j.task));
        ASSERT_OK(resha_yield());
        resha_task_cancel(&j.task);
        ASSERT_OK(waits_for(&j));
        ASSERT_STR(notes(), "a+ a! wait=-125");
        ASSERT_FALSE(resha_cancelled());
        return resha_group_end(&g, 0);
}

/* semantics 165 better
 * asyncio: a clean-up in shield() is not waited for by the one that is cancelled.
 * resha: a shield is a scope of the same task: its clean-up has ended when the task has. */
TASK(semantics_165_shielded_cleanup_is_waited_for)
{
        struct job j = JOB("a", 5000, .clean = 30);
        resha_instant from = resha_now();

        ASSERT_EQ(status_when_cancelled(1, job, &j), -ECANCELED);
        ASSERT_STR(notes(), "a+ a!");
        ASSERT_PASSED(from, 31);
        return 0;
}

/* semantics 166 better
 * asyncio: an inner task that nobody else holds may be garbage-collected while it runs.
 * resha: a task needs no handle to be kept: its group owns it until it has ended. */
TASK(semantics_166_task_without_a_handle_comes_to_its_end)
{
        struct job j = JOB("a", 20);

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, job, &j);
        ASSERT_OK(resha_sleep(MS(1)));
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "a+ a-");
        return 0;
}

static int ends_while_a_task_runs(void *arg)
{
        struct job *j = arg;

        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        ASSERT_OK(resha_spawn_task(&g, job, j, &j->task));
        ASSERT_OK(resha_sleep(MS(1)));
        return resha_group_end(&g, 0);
}

/* semantics 168 same
 * asyncio: at its end, run() cancels shielded tasks as all others.
 * resha: a task that outlives its waiters ends with its group at the latest, and so before the run does. */
TEST(semantics_168_end_of_the_run_cancels_what_outlived_its_waiters)
{
        struct job j = JOB("a", 5000);
        int status;

        RUN(ends_while_a_task_runs, &j);
        ASSERT_STR(notes(), "a+ a!");
        ASSERT_TRUE(resha_task_done(&j.task, &status));
        ASSERT_EQ(status, -ECANCELED);
}

/* semantics 169 same
 * asyncio: shield() of one that is done gives that itself.
 * resha: to wait for a task that has ended gives its status at once. */
TASK(semantics_169_wait_for_a_task_that_has_ended)
{
        struct job j = JOB("a", 0, .result = 7);

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, job, &j, &j.task));
        ASSERT_OK(resha_group_end(&g, 0));
        resha_instant from = resha_now();
        ASSERT_OK(waits_for(&j));
        ASSERT_STR(notes(), "a+ a- wait=7");
        ASSERT_PASSED(from, 0);
        return 0;
}

/* semantics 170 same
 * asyncio: many cancelled shields of one long task must take their callbacks off it, or it leaks.
 * resha: a waiter that is cancelled is out of the task's list at once; it lay on the waiter's stack. */
TASK(semantics_170_cancelled_waiters_leave_the_task)
{
        struct job j = JOB("a", 5000);

        RESHA_GROUP(outer);
        resha_group_begin(&outer, NULL);
        ASSERT_OK(resha_spawn_task(&outer, job, &j, &j.task));
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (int i = 0; i < 100; i++)
                resha_spawn(&g, waits_for, &j);
        ASSERT_OK(resha_yield());
        ASSERT_FALSE(rs_list_empty((const struct rs_list *)(const void *)j.task._waiters));
        resha_group_cancel(&g);
        ASSERT_TRUE(rs_list_empty((const struct rs_list *)(const void *)j.task._waiters));
        ASSERT_OK(resha_group_end(&g, 0));
        notes();
        resha_group_cancel(&outer);
        return resha_group_end(&outer, 0);
}
