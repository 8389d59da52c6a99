/* SPDX-License-Identifier: MIT */
/* Groups: cancelled from outside, by their own cancel, and one inside another. */

#include "job.h"

/* ---- cancelled from outside ---- */

static int group_of_two(void *arg)
{
        struct job *j = arg;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, job, &j[0]);
        resha_spawn(&g, job, &j[1]);
        int rc = j[2].ms ? resha_sleep(MS(j[2].ms)) : 0;
        note("body %d", rc);
        rc = resha_group_end(&g, rc);
        note("end %d", rc);
        return rc;
}

/* semantics 128 same
 * asyncio: when the parent is cancelled in the body, the children are cancelled and awaited, and the cancel comes out.
 * resha: the same, as the children's scopes lie inside of what was cancelled. */
TASK(semantics_128_cancelled_in_the_body)
{
        struct job j[] = { JOB("a", 1000, .clean = 3), JOB("b", 1000), JOB("", 500) };

        ASSERT_EQ(status_when_cancelled(1, group_of_two, j), -ECANCELED);
        const char *n = notes();
        ASSERT_HAS(n, "body -125");
        ASSERT_HAS(n, "b! a! end -125");
        return 0;
}

/* semantics 129 same
 * asyncio: the same when it is cancelled while it waits at the exit.
 * resha: resha_group_end() goes on waiting until all have ended, and gives -ECANCELED. */
TASK(semantics_129_cancelled_at_the_end)
{
        struct job j[] = { JOB("a", 1000, .clean = 3), JOB("b", 1000), JOB("", 0) };

        ASSERT_EQ(status_when_cancelled(1, group_of_two, j), -ECANCELED);
        ASSERT_STR(notes(), "body 0 a+ b+ b! a! end -125");
        return 0;
}

/* semantics 130 same
 * asyncio: a second cancel of the parent does not cancel children again that clean up, and the parent goes on waiting.
 * resha: a cancel is a state, so there is no second one; shielded clean-ups run to their end. */
TASK(semantics_130_cancelled_again_while_children_clean_up)
{
        struct job j[] = { JOB("a", 1000, .clean = 10), JOB("b", 1000), JOB("", 0) };
        resha_task t = { 0 };

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, group_of_two, j, &t));
        for (int i = 0; i < 4; i++) {
                ASSERT_OK(resha_sleep(MS(1)));
                resha_task_cancel(&t);
        }
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "body 0 a+ b+ b! a! end -125");
        return 0;
}

/* semantics 138 same
 * asyncio: when a child of the outer group fails, the inner group is cancelled, and the outer one raises.
 * resha: the inner group's end gives -ECANCELED, the outer one's the failure. */
TASK(semantics_138_failure_in_the_outer_group_cancels_the_inner)
{
        struct job outer = JOB("outer", 2, .result = -EIO), inner = JOB("inner", 1000);

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, job, &outer);
        int rc;
        {
                RESHA_GROUP(h);
                resha_group_begin(&h, NULL);
                resha_spawn(&h, job, &inner);
                rc = resha_group_end(&h, 0);
        }
        ASSERT_EQ(rc, -ECANCELED);
        ASSERT_EQ(resha_group_end(&g, rc), -EIO);
        ASSERT_STR(notes(), "outer+ inner+ outer- inner!");
        return 0;
}

/* semantics 139 better
 * asyncio: an unhandled failure of the inner group comes out as a group within a group.
 * resha: it comes out as its code, once, however deep the groups nest. */
TASK(semantics_139_failure_in_the_inner_group_goes_out_by_its_result)
{
        struct job outer = JOB("outer", 1000), inner = JOB("inner", 2, .result = -EIO);

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, job, &outer);
        int rc;
        {
                RESHA_GROUP(h);
                resha_group_begin(&h, NULL);
                resha_spawn(&h, job, &inner);
                rc = resha_group_end(&h, 0);
        }
        ASSERT_EQ(rc, -EIO);
        ASSERT_FALSE(resha_cancelled());
        ASSERT_EQ(resha_group_end(&g, rc), -EIO);
        ASSERT_STR(resha_error_of(-EIO)->text, "inner failed");
        ASSERT_STR(notes(), "outer+ inner+ inner- outer!");
        return 0;
}

/* semantics 140 better
 * asyncio: if both fail and the inner one's error is handled, the outer one's cancel stays pending until it is left.
 * resha: nothing is counted: waits fail as long as the outer group is cancelled, and no longer. */
TASK(semantics_140_handled_failure_of_the_inner_group_leaves_the_outer)
{
        struct job outer = JOB("outer", 10), inner = JOB("inner", 2, .result = -EIO);

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, job, &outer);
        ASSERT_EQ(resha_gather(job, &inner, 1, sizeof inner, NULL), -EIO); /* handled */
        ASSERT_OK(resha_sleep(MS(1)));
        ASSERT_EQ(resha_group_end(&g, 0), 0);
        ASSERT_STR(notes(), "outer+ inner+ inner- outer-");
        return 0;
}

/* ---- group cancel ---- */

/* semantics 144 better
 * asyncio: cancel() of a group cancels children and body, and the block is left without an error; it may be repeated;
 * before the entry it takes effect on entry, after the end it does nothing.
 * resha: the same for resha_group_cancel(), but that a group is cancelled only while it is open. */
TASK(semantics_144_group_cancel_is_no_failure)
{
        struct job j[] = { JOB("a", 1000), JOB("b", 1000, .clean = 2) };

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (size_t i = 0; i < 2; i++)
                resha_spawn(&g, job, &j[i]);
        ASSERT_OK(resha_yield());
        resha_group_cancel(&g);
        resha_group_cancel(&g);
        int rc = resha_sleep(RESHA_S(9));
        ASSERT_EQ(rc, -ECANCELED);
        ASSERT_EQ(resha_group_end(&g, rc), 0);
        ASSERT_STR(notes(), "a+ b+ a! b!");
        ASSERT_EQ(resha_group_failures(&g), 0);
        resha_group_cancel(&g); /* has ended: nothing */
        ASSERT_OK(resha_sleep(MS(1)));
        return 0;
}

static int group_cancels_itself(void *arg)
{
        struct job *j = arg;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, job, j);
        int rc = resha_yield();
        resha_group_cancel(&g);
        rc = resha_group_end(&g, rc); /* its child cleans up meanwhile */
        note("end %d", rc);
        return rc;
}

/* semantics 145 same
 * asyncio: an outside cancel that comes while a cancelled group winds down comes out.
 * resha: the end gives -ECANCELED: outside beats inside. */
TASK(semantics_145_outside_cancel_of_a_cancelled_group_comes_out)
{
        struct job j = JOB("a", 1000, .clean = 10);

        ASSERT_EQ(status_when_cancelled(3, group_cancels_itself, &j), -ECANCELED);
        ASSERT_STR(notes(), "a+ a! end -125");
        return 0;
}

static int cancels_its_group(void *arg)
{
        resha_group_cancel(arg);
        note("on");
        int rc = resha_sleep(RESHA_S(9));
        note("%d", rc);
        return rc;
}

/* semantics 146 same
 * asyncio: a child that cancels its group before its first suspension is cancelled too.
 * resha: its first wait fails. */
TASK(semantics_146_child_that_cancels_its_group_is_cancelled_too)
{
        struct job j = JOB("a", 1000);

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, job, &j);
        resha_spawn(&g, cancels_its_group, &g);
        ASSERT_EQ(resha_group_end(&g, 0), 0);
        ASSERT_HAS(notes(), "-125");
        return 0;
}

/* ---- what is left behind ---- */

static int fails_inside(void *arg)
{
        struct job *j = arg;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, job, j);
        int rc = resha_group_end(&g, resha_sleep(RESHA_S(9)));
        note("%d %d", rc, resha_cancelled());
        return 0;
}

/* semantics 132 better
 * asyncio: when a group has cancelled its parent task itself, the count of cancels is what it was before, after the
 * exit.
 * resha: nothing is counted: what a group has cancelled ends with it, and what surrounds it is cancelled or not. */
TASK(semantics_132_group_that_has_ended_leaves_no_cancel)
{
        struct job a = JOB("a", 1, .result = -EIO);

        ASSERT_OK(fails_inside(&a));
        ASSERT_OK(resha_sleep(MS(1)));
        ASSERT_STR(notes(), "a+ a- -5 0");
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, RESHA_FOREVER);
        resha_scope_cancel(&s);
        ASSERT_OK(fails_inside(&a));
        ASSERT_STR(notes(), "-125 1");
        return resha_scope_end(&s, 0);
}

static int spawns_outside(void *arg)
{
        resha_group *outer = arg;
        static struct job kept = JOB("kept", 20), own = JOB("own", 1);

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(outer, job, &kept);
        resha_spawn(&g, job, &own);
        int rc = resha_group_end(&g, 0);
        note("inner");
        return rc;
}

/* semantics 147 better
 * asyncio: a task that is made inside the block with plain create_task is not the group's, and nobody waits for it.
 * resha: there is no task without an owner: each is spawned in a group, and that one waits for it. */
TASK(semantics_147_every_task_has_an_owner_that_waits)
{
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, spawns_outside, &g);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "kept+ own+ own- inner kept-");
        return 0;
}
