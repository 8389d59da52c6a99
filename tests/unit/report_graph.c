/* SPDX-License-Identifier: MIT */
/* Who waits for whom, on demand; and what debugging aids of asyncio are here without a debug mode. */

#include <pthread.h>
#include <string.h>

#include "job.h"

static struct {
        char text[8192];
        size_t n;
        unsigned reports, stacks;
} told;

static void sink(const resha_report *r, __attribute__((unused)) void *arg)
{
        told.n += (size_t)snprintf(told.text + told.n, sizeof told.text - told.n, "%u/%u %s from %s: %s\n", r->part,
                                   r->parts, r->task, r->spawned_at ? r->spawned_at : "nowhere", r->text);
        told.reports++;
        told.stacks += r->depth > 0;
}

static int run(resha_fn *fn, void *arg)
{
        return test_run_opts(fn, arg, &(resha_run_opts){ .report = sink });
}

/* ---- the graph ---- */

struct world {
        resha_mutex mutex;
        resha_event event;
        resha_task holder, waiter;
        resha_group inner;
};

static int holds(void *arg)
{
        struct world *w = arg;
        int rc = resha_mutex_lock(&w->mutex);

        if (rc == 0)
                rc = resha_event_wait(&w->event);
        resha_mutex_unlock(&w->mutex);
        return rc;
}

static int locks(void *arg)
{
        struct world *w = arg;
        int rc = resha_mutex_lock(&w->mutex);

        return rc == 0 ? resha_mutex_unlock(&w->mutex) : rc;
}

static int waits_for_handle(void *arg)
{
        return resha_task_wait(&((struct world *)arg)->holder, NULL);
}

static int waits_for_both(void *arg)
{
        struct world *w = arg;

        return resha_task_wait_all(&w->holder, 2, RESHA_FOREVER, NULL);
}

static int joins(void *arg)
{
        return resha_gather(locks, arg, 1, sizeof(struct world), NULL);
}

static int asks(void *arg)
{
        int rc = resha_sleep(RESHA_MS(5));

        if (rc < 0)
                return rc;
        ASSERT_OK(resha_report_tasks());
        resha_event_set(&((struct world *)arg)->event);
        return 0;
}

static int graph(void *arg)
{
        struct world *w = arg;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn_task(&g, holds, w, &w->holder);
        resha_spawn_task(&g, waits_for_handle, w, &w->waiter);
        resha_spawn(&g, waits_for_both, w);
        resha_spawn(&g, joins, w);
        resha_spawn(&g, asks, w);
        return resha_group_end(&g, 0);
}

/* The text of the report of this task, from the colon on. */
static const char *text_of(const char *task)
{
        static char text[1024];
        char begin[64];
        const char *line;

        snprintf(begin, sizeof begin, " %s from ", task);
        line = strstr(told.text, begin);
        if (!line)
                FAIL("no report of %s in %s", task, told.text);
        line = strstr(line, ": ") + 2;
        snprintf(text, sizeof text, "%.*s", (int)strcspn(line, "\n"), line);
        return text;
}

/* semantics 321 better
 * asyncio: a future knows which tasks wait for it, directly or through gather, shield, wait or a group.
 * resha: each task that waits knows what for, and whom: the holder of a mutex, the tasks of handles, the children of a
 * group or gather. The reports say it, at no cost while nobody asks. */
TEST(semantics_321_reports_say_who_waits_for_whom)
{
        struct world w = { 0 };

        ASSERT_OK(run(graph, &w));
        ASSERT_HAS(text_of("main"), "waits for the end of 5 tasks: task \"holds\" (tests/unit/report_graph.c:");
        ASSERT_STR(text_of("holds"), "waits for event");
        ASSERT_HAS(text_of("waits_for_handle"), "waits for the end of task \"holds\" (");
        ASSERT_HAS(text_of("waits_for_both"), "waits for the end of 2 tasks: task \"holds\" (");
        ASSERT_HAS(text_of("waits_for_both"), "task \"waits_for_handle\" (");
        ASSERT_HAS(text_of("joins"), "waits for the end of task \"locks\" (1 of 1, ");
        ASSERT_HAS(text_of("locks"), "waits for a mutex held by task \"holds\" (");
}

/* semantics 322 same
 * asyncio: capture_call_graph() shows the frames of the current task down to its root, and those that wait for it.
 * resha: resha_report_tasks() reports every task, the current one too, with its stack and whom it waits for. */
TEST(semantics_322_every_task_is_told_with_its_stack)
{
        struct world w = { 0 };

        ASSERT_OK(run(graph, &w));
        ASSERT_EQ(told.reports, 7);
        ASSERT_EQ(told.stacks, 7);
        ASSERT_STR(text_of("asks"), "runs");
        ASSERT_HAS(told.text, "1/7 main from nowhere: ");
        ASSERT_HAS(told.text, "7/7 ");
}

/* ---- aids ---- */

static int fails(__attribute__((unused)) void *arg)
{
        return resha_fail(-EIO, "no disk");
}

enum { LOST_AT = __LINE__ + 6 };

static int loses(__attribute__((unused)) void *arg)
{
        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .keep_going = true });
        resha_spawn(&g, fails, NULL);
        return resha_yield();
}

static int loses_in_a_task(void *arg)
{
        return resha_gather(loses, arg, 1, 1, NULL);
}

/* semantics 319 better
 * asyncio: in debug mode tasks remember where they were made, and reports show it.
 * resha: a task always knows the place of its spawn, a stream, listener or file that of the call that opened it;
 * reports, error records and what is seen from outside have them. */
TEST(semantics_319_reports_have_the_place_of_the_spawn)
{
        char expected[512], item[1];

        ASSERT_OK(run(loses_in_a_task, item));
        snprintf(expected, sizeof expected,
                 "1/1 loses from %s:%d: a failure was lost: no disk (%s:%d, task \"fails\" from %s:%d): "
                 "the block of its group was left without it; return resha_group_end()\n",
                 __FILE__, LOST_AT + 6, __FILE__, LOST_AT - 9, __FILE__, LOST_AT);
        ASSERT_STR(told.text, expected);
}

static int sleeps(void *arg)
{
        int rc = resha_sleep(RESHA_S(100));

        *(int *)arg = rc;
        return rc;
}

static int leaves_early(void *arg)
{
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, sleeps, arg);
        return resha_yield();
}

/* semantics 314 better
 * asyncio: a pending task that is destroyed is reported.
 * resha: there is none: a group cannot be left before its tasks have ended, they are cancelled and joined. */
TASK(semantics_314_no_task_is_destroyed_while_it_waits)
{
        int seen = 0, rc = leaves_early(&seen);

        ASSERT_EQ(seen, -ECANCELED);
        return rc;
}

struct stranger {
        resha_group *group;
        resha_mutex *mutex;
        int spawned, unlocked, slept, ran;
};

static int ran(void *arg)
{
        return (*(int *)arg)++;
}

static void *other_thread(void *arg)
{
        struct stranger *s = arg;

        s->spawned = resha_spawn(s->group, ran, &s->ran);
        s->unlocked = resha_mutex_unlock(s->mutex);
        s->slept = resha_sleep(RESHA_MS(1));
        return NULL;
}

/* semantics 316 better
 * asyncio: in debug mode, scheduling from another thread than the loop's is refused; otherwise nobody looks.
 * resha: always refused, with -EPERM: a thread without a loop has nothing to schedule on. */
TASK(semantics_316_another_thread_is_refused)
{
        resha_mutex m = { { 0 } };
        pthread_t thread;

        ASSERT_OK(resha_mutex_lock(&m));
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        struct stranger s = { .group = &g, .mutex = &m };
        ASSERT_EQ(pthread_create(&thread, NULL, other_thread, &s), 0);
        ASSERT_EQ(pthread_join(thread, NULL), 0);
        int rc = resha_group_end(&g, 0);
        ASSERT_EQ(s.spawned, -EPERM);
        ASSERT_EQ(s.unlocked, -EPERM);
        ASSERT_EQ(s.slept, -EPERM);
        ASSERT_EQ(s.ran, 0);
        ASSERT_OK(resha_mutex_unlock(&m));
        return rc;
}
