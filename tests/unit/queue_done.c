/* SPDX-License-Identifier: MIT */
/* When the work of a queue is done: task_done and join, shut-down at once, what is dropped and who is told. */

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "job.h"

static resha_queue *queue_of_ints(size_t capacity, resha_drop_fn *drop)
{
        resha_queue *q = NULL;

        ASSERT_OK(resha_queue_new(sizeof(int), capacity, drop, &q));
        return q;
}

static void put_numbers(resha_queue *q, int n)
{
        for (int i = 1; i <= n; i++)
                ASSERT_EQ(resha_queue_put(q, &i), 1);
}

struct worker {
        resha_queue *q;
        int64_t ms; /* of work for each item */
        resha_task task;
};

static int works(void *arg)
{
        struct worker *w = arg;
        int n, rc;

        while ((rc = resha_queue_get(w->q, &n)) == 1) {
                if ((rc = resha_sleep(MS(w->ms))) < 0)
                        break;
                note("%d", n);
                ASSERT_OK(resha_queue_task_done(w->q));
        }
        return rc;
}

static int joins(void *arg)
{
        struct worker *w = arg;
        int rc = resha_queue_join(w->q);

        note("joined:%d", rc);
        return rc;
}

/* ---- join ---- */

/* semantics 229 same
 * asyncio: join() waits until task_done() was called once for each item that was put; once more is a ValueError.
 * resha: resha_queue_join() waits for as many calls of resha_queue_task_done(); one more gives -EINVAL. */
TASK(semantics_229_join_waits_until_each_item_was_told_done)
{
        resha_queue *q RESHA_CLEANUP(resha_queue_freep) = queue_of_ints(5, NULL);
        struct worker w = { .q = q, .ms = 10 };
        resha_instant start = resha_now();

        ASSERT_EQ(resha_queue_task_done(q), -EINVAL);
        put_numbers(q, 3);
        ASSERT_EQ(resha_queue_unfinished(q), 3);
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, joins, &w);
        resha_spawn(&g, works, &w);
        ASSERT_OK(resha_queue_join(q));
        ASSERT_PASSED(start, 30);
        ASSERT_EQ(resha_queue_unfinished(q), 0);
        ASSERT_EQ(resha_queue_task_done(q), -EINVAL);
        resha_queue_shutdown(q);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "1 2 3 joined:0");
        return 0;
}

/* semantics 230 same
 * asyncio: join() returns at once if nothing is unfinished.
 * resha: resha_queue_join() does, of a queue that was never used and of one whose items are all done. */
TASK(semantics_230_join_of_a_queue_without_work_is_at_once)
{
        resha_queue *q RESHA_CLEANUP(resha_queue_freep) = queue_of_ints(5, NULL);
        int n;

        ASSERT_OK(resha_queue_join(q));
        put_numbers(q, 1);
        ASSERT_EQ(resha_queue_get(q, &n), 1);
        ASSERT_OK(resha_queue_task_done(q));
        ASSERT_OK(resha_queue_join(q));
        resha_queue_shutdown(q);
        ASSERT_OK(resha_queue_join(q));
        return 0;
}

TASK(queue_item_that_is_inside_cannot_be_done)
{
        resha_queue *q RESHA_CLEANUP(resha_queue_freep) = queue_of_ints(5, NULL);
        int n;

        put_numbers(q, 2);
        ASSERT_EQ(resha_queue_task_done(q), -EINVAL);
        ASSERT_EQ(resha_queue_get(q, &n), 1);
        ASSERT_OK(resha_queue_task_done(q));
        ASSERT_EQ(resha_queue_task_done(q), -EINVAL);
        ASSERT_EQ(resha_queue_unfinished(q), 1);
        ASSERT_EQ(resha_queue_get(q, &n), 1);
        return 0;
}

TASK(queue_handed_over_item_is_unfinished_too)
{
        for (size_t capacity = 0; capacity < 2; capacity++) {
                resha_queue *q RESHA_CLEANUP(resha_queue_freep) = queue_of_ints(capacity, NULL);
                struct worker w = { .q = q, .ms = 10 };
                RESHA_GROUP(g);
                resha_group_begin(&g, NULL);
                resha_spawn(&g, works, &w);
                ASSERT_OK(resha_yield());
                put_numbers(q, 1);
                ASSERT_EQ(resha_queue_count(q), 0);
                ASSERT_EQ(resha_queue_unfinished(q), 1);
                ASSERT_OK(resha_queue_join(q));
                ASSERT_STR(notes(), "1");
                resha_queue_shutdown(q);
                ASSERT_OK(resha_group_end(&g, 0));
        }
        return 0;
}

TASK(queue_join_cancelled_and_completed)
{
        resha_queue *q RESHA_CLEANUP(resha_queue_freep) = queue_of_ints(5, NULL);
        struct worker a = { .q = q }, b = { .q = q };
        int n;

        put_numbers(q, 1);
        ASSERT_EQ(status_when_cancelled(1, joins, &a), -ECANCELED);
        ASSERT_STR(notes(), "joined:-125");
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, joins, &b, &b.task));
        ASSERT_OK(resha_yield());
        ASSERT_EQ(resha_queue_get(q, &n), 1);
        ASSERT_OK(resha_queue_task_done(q));
        resha_task_cancel(&b.task); /* too late */
        put_numbers(q, 1);          /* and the next item is none of its business */
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "joined:0");
        ASSERT_EQ(resha_queue_get(q, &n), 1);
        return 0;
}

TEST(queue_join_outside_a_task)
{
        resha_queue *q RESHA_CLEANUP(resha_queue_freep) = queue_of_ints(1, NULL);

        ASSERT_EQ(resha_queue_join(q), -EPERM);
}

/* ---- shut down at once ---- */

static void drop(void *item)
{
        note("drop%d", *(int *)item);
}

/* semantics 232 same
 * asyncio: shutdown(immediate=True) drops the items and takes them from the unfinished count; join() returns only when
 *   that is 0: items being worked on still hold it.
 * resha: resha_queue_shutdown_now() does; the drop function gets each item. */
TASK(semantics_232_items_being_worked_on_hold_join_after_shutdown_now)
{
        resha_queue *q RESHA_CLEANUP(resha_queue_freep) = queue_of_ints(5, drop);
        struct worker w = { .q = q, .ms = 10 };
        resha_instant start = resha_now();
        int n = 0;

        put_numbers(q, 4);
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, works, &w);
        resha_spawn(&g, joins, &w);
        ASSERT_OK(resha_yield());
        resha_queue_shutdown_now(q);
        ASSERT_STR(notes(), "drop2 drop3 drop4");
        ASSERT_EQ(resha_queue_count(q), 0);
        ASSERT_EQ(resha_queue_unfinished(q), 1);
        ASSERT_EQ(resha_queue_put(q, &n), 0);
        ASSERT_EQ(resha_queue_get(q, &n), 0);
        ASSERT_OK(resha_queue_join(q));
        ASSERT_PASSED(start, 10);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "1 joined:0");
        resha_queue_shutdown_now(q);
        ASSERT_EQ(resha_queue_unfinished(q), 0);
        return 0;
}

TASK(queue_shutdown_now_ends_a_join_that_nothing_else_holds)
{
        resha_queue *q RESHA_CLEANUP(resha_queue_freep) = queue_of_ints(5, drop);
        struct worker w = { .q = q };

        put_numbers(q, 2);
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, joins, &w);
        ASSERT_OK(resha_yield());
        resha_queue_shutdown_now(q);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "drop1 drop2 joined:0");
        return 0;
}

static int puts_one(void *arg)
{
        struct worker *w = arg;
        int n = 9, rc = resha_queue_put(w->q, &n);

        note("put:%d", rc);
        return rc;
}

TASK(queue_shutdown_now_leaves_the_items_of_waiting_putters_with_them)
{
        resha_queue *q RESHA_CLEANUP(resha_queue_freep) = queue_of_ints(1, drop);
        struct worker w = { .q = q };

        put_numbers(q, 1);
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, puts_one, &w);
        ASSERT_OK(resha_yield());
        resha_queue_shutdown_now(q);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "drop1 put:0");
        return 0;
}

TASK(queue_shutdown_now_wakes_getters)
{
        resha_queue *q RESHA_CLEANUP(resha_queue_freep) = queue_of_ints(1, NULL);
        struct worker w = { .q = q };

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, works, &w, &w.task));
        ASSERT_OK(resha_yield());
        resha_queue_shutdown_now(q);
        int status = 1;
        ASSERT_OK(resha_task_wait(&w.task, &status));
        ASSERT_EQ(status, 0);
        return resha_group_end(&g, 0);
}

/* A drop function that looks at the queue it is called from. */
static resha_queue *looked_at;

static void drop_and_look(void *item)
{
        int n = *(int *)item;

        ASSERT_EQ(resha_queue_try_put(looked_at, &n), 0);
        ASSERT_EQ(resha_queue_try_get(looked_at, &n), 0);
        ASSERT_EQ(resha_queue_count(looked_at), 0);
        note("drop%d", n);
}

TASK(queue_drop_function_finds_it_shut_down_and_empty)
{
        looked_at = queue_of_ints(3, drop_and_look);
        put_numbers(looked_at, 2);
        resha_queue_free(looked_at);
        ASSERT_STR(notes(), "drop1 drop2");
        return 0;
}

static int puts_at_looked_at(__attribute__((unused)) void *arg)
{
        int n = 9, rc = resha_queue_put(looked_at, &n);

        note("put:%d", rc);
        return rc;
}

TASK(queue_drop_function_finds_no_item_of_a_waiting_putter)
{
        for (enum resha_queue_order order = RESHA_FIFO; order <= RESHA_LIFO; order++) {
                resha_queue_opts opts = { .order = order, .drop = drop_and_look };
                ASSERT_OK(resha_queue_new_opt(sizeof(int), 1, &opts, &looked_at));
                put_numbers(looked_at, 1);
                RESHA_GROUP(g);
                resha_group_begin(&g, NULL);
                resha_spawn(&g, puts_at_looked_at, NULL);
                ASSERT_OK(resha_yield());
                resha_queue_shutdown_now(looked_at);
                ASSERT_OK(resha_group_end(&g, 0));
                ASSERT_STR(notes(), "drop1 put:0");
                ASSERT_EQ(resha_queue_unfinished(looked_at), 0);
                resha_queue_free(looked_at);
        }
        return 0;
}

/* ---- who is told ---- */

struct told {
        unsigned n;
        char text[256];
        const char *task;
};

static void on_report(const resha_report *r, void *arg)
{
        struct told *t = arg;

        ASSERT_EQ(r->kind, RESHA_REPORT_DROPPED);
        t->n++;
        snprintf(t->text, sizeof t->text, "%s", r->text);
        t->task = r->task;
}

static int drops_at_free(void *arg)
{
        resha_queue *q RESHA_CLEANUP(resha_queue_freep) = queue_of_ints(5, arg ? drop : NULL);

        put_numbers(q, 3);
        return 0;
}

static int drops_at_shutdown(__attribute__((unused)) void *arg)
{
        resha_queue *q RESHA_CLEANUP(resha_queue_freep) = queue_of_ints(5, NULL);
        int n;

        put_numbers(q, 2);
        ASSERT_EQ(resha_queue_get(q, &n), 1);
        resha_queue_shutdown_now(q);
        resha_queue_shutdown_now(q); /* says it once, and the free behind it says nothing */
        return 0;
}

static int drops_piled(__attribute__((unused)) void *arg)
{
        resha_queue *q RESHA_CLEANUP(resha_queue_freep) = NULL;

        ASSERT_OK(resha_queue_new_opt(sizeof(int), 5, &(resha_queue_opts){ .order = RESHA_LIFO }, &q));
        put_numbers(q, 4);
        return 0;
}

static int drops_nothing(__attribute__((unused)) void *arg)
{
        resha_queue *q RESHA_CLEANUP(resha_queue_freep) = queue_of_ints(5, NULL);
        int n;

        put_numbers(q, 1);
        resha_queue_shutdown(q); /* the rest is still to be taken */
        return resha_queue_get(q, &n);
}

static struct told told_by(resha_fn *fn, void *arg)
{
        struct told t = { 0 };
        resha_run_opts opts = { .report = on_report, .report_arg = &t };

        ASSERT_OK(test_run_opts(fn, arg, &opts));
        return t;
}

TEST(queue_reports_items_that_nobody_took)
{
        struct told t = told_by(drops_at_free, NULL);

        ASSERT_EQ(t.n, 1);
        ASSERT_STR(t.text, "3 items of a queue were dropped when it was freed; take them before, or give it a drop "
                           "function");
        ASSERT_TRUE(t.task != NULL);
        t = told_by(drops_at_shutdown, NULL);
        ASSERT_EQ(t.n, 1);
        ASSERT_HAS(t.text, "1 item of a queue was dropped when it was shut down at once");
        t = told_by(drops_piled, NULL);
        ASSERT_EQ(t.n, 1);
        ASSERT_HAS(t.text, "4 items");
}

TEST(queue_with_a_drop_function_or_without_items_reports_nothing)
{
        ASSERT_EQ(told_by(drops_at_free, &(int){ 1 }).n, 0);
        ASSERT_EQ(told_by(drops_nothing, NULL).n, 0);
        notes();
}

TEST(queue_freed_outside_of_a_run)
{
        resha_queue *q = queue_of_ints(2, drop), *silent = queue_of_ints(2, NULL);

        ASSERT_EQ(resha_queue_try_put(q, &(int){ 1 }), 1);
        ASSERT_EQ(resha_queue_try_put(silent, &(int){ 1 }), 1);
        resha_queue_free(silent);
        resha_queue_free(q);
        ASSERT_STR(notes(), "drop1");
}

static int frees_while_another_joins(__attribute__((unused)) void *arg)
{
        resha_queue *q = queue_of_ints(3, drop);
        struct worker w = { .q = q };

        put_numbers(q, 1);
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, joins, &w);
        ASSERT_OK(resha_yield());
        resha_queue_free(q);
        return resha_group_end(&g, 0);
}

static int run_that(void *arg)
{
        return test_run_opts(frees_while_another_joins, arg, NULL);
}

TEST(queue_free_while_another_joins_aborts)
{
        struct test_child c;

        test_child(run_that, NULL, &c);
        ASSERT_TRUE(WIFSIGNALED(c.status) && WTERMSIG(c.status) == SIGABRT);
        ASSERT_HAS(c.text, "queue");
}
