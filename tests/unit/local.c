/* SPDX-License-Identifier: MIT */
/* Task-locals: who sees what, from spawn to thread jobs and reports. */

#include <string.h>

#include "base/alloc.h"
#include "job.h"

struct name {
        char text[16];
};

RESHA_LOCAL(number, int, -1);
RESHA_LOCAL(who, struct name, { "nobody" });
RESHA_LOCAL(pointer, const char *, "static");
static const resha_local zeros = { "zeros", 64, NULL }, large = { "large", 65, NULL };

static int get(void)
{
        return *(const int *)resha_local_get(&number);
}

static const char *name(void)
{
        return ((const struct name *)resha_local_get(&who))->text;
}

static void set(int n)
{
        ASSERT_OK(resha_local_set(&number, &n));
}

TASK(local_initial_values)
{
        static const char none[64];

        ASSERT_EQ(get(), -1);
        ASSERT_STR(name(), "nobody");
        ASSERT_STR(*(const char *const *)resha_local_get(&pointer), "static");
        ASSERT_EQ(memcmp(resha_local_get(&zeros), none, 64), 0);
        ASSERT_PTR(resha_local_get(&large), NULL);
        return 0;
}

TASK(local_set_is_a_copy)
{
        struct name n = { "ann" };

        ASSERT_OK(resha_local_set(&who, &n));
        n.text[0] = 'x';
        ASSERT_STR(name(), "ann");
        ASSERT_OK(resha_local_set(&who, resha_local_get(&who))); /* of itself */
        ASSERT_STR(name(), "ann");
        set(3);
        ASSERT_EQ(get(), 3);
        ASSERT_STR(name(), "ann");
        return 0;
}

static int sees(void *arg)
{
        int *n = arg, before = get();

        set(before * 10);
        int rc = resha_sleep(MS(2));
        *n = before;
        ASSERT_EQ(get(), before * 10);
        return rc;
}

/* semantics 38 same
 * asyncio: a task gets a copy of its creator's context; later changes flow neither way.
 * resha: a child begins with its spawner's task-locals; what one of them sets later, the other does not see. There is
 * no sharing of one context by several tasks: share memory instead. */
TASK(semantics_38_child_begins_with_its_spawners_locals)
{
        int first = 0, second = 0;

        RESHA_GROUP(g);
        set(1);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, sees, &first);
        set(2);
        resha_spawn(&g, sees, &second);
        set(3);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(first, 1);
        ASSERT_EQ(second, 2);
        ASSERT_EQ(get(), 3);
        return 0;
}

static int asks(void *arg)
{
        resha_event *e = arg;

        set(7);
        int rc = resha_event_wait(e);
        note("%d", get());
        return rc;
}

/* semantics 30 same
 * asyncio: a done callback runs in the context that was current when it was registered.
 * resha: there are no callbacks; what is to be done afterwards is a task that waits, and it goes on with its own
 * task-locals, whoever wakes it. */
TASK(semantics_30_a_woken_task_has_its_own_locals)
{
        resha_event e = { { 0 } };

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, asks, &e);
        ASSERT_OK(resha_yield());
        set(8);
        resha_event_set(&e);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "7");
        return 0;
}

static int tells(__attribute__((unused)) void *arg)
{
        note("%d", get());
        return 0;
}

/* semantics 324 same
 * asyncio: a callback that is queued runs in the context of that moment.
 * resha: a task that is spawned runs with the task-locals of the moment of its spawn, though it runs later. */
TASK(semantics_324_locals_of_the_moment_of_the_spawn)
{
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        set(1);
        resha_spawn(&g, tells, NULL);
        set(2);
        resha_spawn(&g, tells, NULL);
        set(3);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "1 2");
        return 0;
}

TASK(local_gather_takes_those_of_its_caller)
{
        int n[3] = { 0 };

        set(4);
        ASSERT_OK(resha_gather(sees, n, 3, sizeof n[0], NULL));
        for (int i = 0; i < 3; i++)
                ASSERT_EQ(n[i], 4);
        ASSERT_EQ(get(), 4);
        return 0;
}

static int inner_block(__attribute__((unused)) void *arg)
{
        RESHA_LOCALS(before);
        set(5);
        ASSERT_OK(resha_local_set(&who, &(struct name){ "bob" }));
        {
                RESHA_LOCALS(again);
                set(6);
                ASSERT_STR(name(), "bob");
        }
        ASSERT_EQ(get(), 5);
        return -EIO;
}

TASK(local_block_undoes_what_was_set_in_it)
{
        ASSERT_EQ(inner_block(NULL), -EIO);
        ASSERT_EQ(get(), -1);
        set(1);
        ASSERT_EQ(inner_block(NULL), -EIO);
        ASSERT_EQ(get(), 1);
        ASSERT_STR(name(), "nobody");
        return 0;
}

static int set_and_nest(void *arg)
{
        int *depth = arg;
        int mine = *depth;

        set(mine);
        if (mine % 3 == 0)
                ASSERT_OK(resha_local_set(&who, &(struct name){ "three" }));
        if (++*depth < 20) {
                RESHA_GROUP(g);
                resha_group_begin(&g, NULL);
                resha_spawn(&g, set_and_nest, depth);
                ASSERT_OK(resha_group_end(&g, 0));
        }
        ASSERT_EQ(get(), mine);
        return 0;
}

TASK(local_values_of_nested_tasks)
{
        int depth = 1;

        ASSERT_OK(resha_gather(set_and_nest, &depth, 1, sizeof depth, NULL));
        ASSERT_EQ(get(), -1);
        return 0;
}

TASK(local_setting_again_and_again_keeps_one)
{
        int64_t live = rs_alloc_live();

        for (int i = 0; i < 1000; i++) {
                set(i);
                ASSERT_EQ(get(), i);
        }
        ASSERT_TRUE(rs_alloc_live() - live < 10);
        return 0;
}

static int reads(void *arg)
{
        int *n = arg;

        *n = get();
        return resha_local_set(&number, n);
}

TASK(local_thread_job_sees_those_of_its_task)
{
        int seen = 0;

        set(12);
        ASSERT_EQ(resha_pool_run(NULL, reads, &seen, NULL), -EPERM); /* it sets none */
        ASSERT_EQ(seen, 12);
        ASSERT_EQ(get(), 12);
        return 0;
}

static int fails_late(__attribute__((unused)) void *arg)
{
        return resha_fail(-EIO, "late");
}

static int loses_an_error(__attribute__((unused)) void *arg)
{
        set(77);
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, fails_late, NULL);
        int rc = resha_sleep(MS(1));
        return rc == -ECANCELED ? 1 : rc; /* left with success */
}

static int calls_one_that_loses_an_error(__attribute__((unused)) void *arg)
{
        RESHA_LOCALS(before);
        set(76);
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, loses_an_error, NULL);
        return resha_group_end(&g, 0);
}

static void sink(const resha_report *report, void *arg)
{
        *(int *)arg = get();
        ASSERT_EQ(report->kind, RESHA_REPORT_LOST_ERROR);
        ASSERT_EQ(resha_local_set(&number, arg), -EPERM);
}

TEST(local_report_sink_sees_those_of_the_task)
{
        int seen = 0;

        ASSERT_OK(test_run_opts(calls_one_that_loses_an_error, NULL,
                                &(resha_run_opts){ .report = sink, .report_arg = &seen }));
        ASSERT_EQ(seen, 77);
}

TASK(local_keys_of_a_bad_size)
{
        static const resha_local none = { "none", 0, NULL }, huge = { "huge", 4097, NULL },
                                 most = { "most", 4096, NULL };
        static char value[4096];

        ASSERT_EQ(resha_local_set(&none, value), -EINVAL);
        ASSERT_EQ(resha_local_set(&huge, value), -EINVAL);
        value[4095] = 'x';
        ASSERT_OK(resha_local_set(&most, value));
        ASSERT_EQ(((const char *)resha_local_get(&most))[4095], 'x');
        return 0;
}

TEST(local_outside_a_task)
{
        int one = 1;

        ASSERT_EQ(resha_local_set(&number, &one), -EPERM);
        ASSERT_EQ(get(), -1);
        RESHA_LOCALS(before);
        ASSERT_EQ(get(), -1);
}
