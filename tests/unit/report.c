/* SPDX-License-Identifier: MIT */
/* Reports: circles of waits, deadlocks, stuck tasks; what the sink may do. Stacks: trace.c. */

#include <string.h>

#include "test.h"

#define MS RESHA_MS

/* What the sink was told, in order: "kind part/parts task: text\n" each. */
static struct {
        char text[8192];
        size_t n, reports;
        bool stacks; /* each had one */
} told = { .stacks = true };

static const char *const kinds[] = { "?",        "lost",    "ignored", "stuck", "deadlock",
                                     "fallback", "dropped", "circle",  "task" };

static void sink(const resha_report *r, __attribute__((unused)) void *arg)
{
        told.n += (size_t)snprintf(told.text + told.n, sizeof told.text - told.n, "%s %u/%u %s: %s\n", kinds[r->kind],
                                   r->part, r->parts, r->task, r->text);
        told.reports++;
        told.stacks &= r->depth > 0 && r->stack[0];
}

static int run(resha_fn *fn, void *arg)
{
        return test_run_opts(fn, arg, &(resha_run_opts){ .report = sink });
}

/* ---- circles ---- */

struct two {
        resha_mutex a, b;
        resha_duration patience;
        int results[2];
};

static int lock_both(resha_mutex *first, resha_mutex *second, resha_duration patience)
{
        int rc = resha_mutex_lock(first);

        if (rc < 0)
                return rc;
        rc = resha_yield();
        if (rc == 0) {
                RESHA_SCOPE(s);
                resha_timeout_begin(&s, patience);
                rc = resha_mutex_lock(second);
                if (rc == 0)
                        resha_mutex_unlock(second);
                rc = resha_scope_end(&s, rc);
        }
        resha_mutex_unlock(first);
        return rc;
}

static int one_way(void *arg)
{
        struct two *t = arg;

        return t->results[0] = lock_both(&t->a, &t->b, t->patience);
}

static int other_way(void *arg)
{
        struct two *t = arg;

        return t->results[1] = lock_both(&t->b, &t->a, t->patience);
}

enum { SPAWNED_AT = __LINE__ + 6 }; /* the first spawn */

static int both(void *arg)
{
        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .keep_going = true });
        resha_spawn(&g, one_way, arg);
        resha_spawn(&g, other_way, arg);
        return resha_group_end(&g, 0);
}

static const char *expected(const char *format)
{
        static char text[4096];

        snprintf(text, sizeof text, format, SPAWNED_AT, SPAWNED_AT + 1, SPAWNED_AT, SPAWNED_AT + 1);
        return text;
}

TEST(circle_of_two_mutexes_is_told_once_and_a_deadline_breaks_it)
{
        struct two t = { .patience = MS(20) };

        run(both, &t);
        ASSERT_STR(
                told.text,
                expected("circle 1/2 other_way: waits in a circle, which only a deadline or a cancel can break: for "
                         "a mutex held by task \"one_way\" (tests/unit/report.c:%d), which waits for a mutex held by "
                         "this task\n"
                         "circle 2/2 one_way: waits in the same circle: for a mutex held by task \"other_way\" "
                         "(tests/unit/report.c:%d)\n"));
        ASSERT_TRUE(told.stacks);
        ASSERT_EQ(t.results[0], -ETIME);
        ASSERT_OK(t.results[1] == -ETIME ? 0 : t.results[1]);
}

TEST(circle_without_a_deadline_is_a_deadlock)
{
        struct two t = { .patience = RESHA_FOREVER };
        resha_error e;
        int rc = test_run_opts(both, &t, &(resha_run_opts){ .report = sink, .ret_error = &e });

        ASSERT_EQ(rc, -EDEADLK);
        ASSERT_STR(e.text, "all tasks wait and nothing can wake them");
        ASSERT_EQ(told.reports, 5);
        ASSERT_HAS(told.text, "circle 2/2 one_way: ");
        ASSERT_HAS(
                told.text,
                expected("deadlock 1/3 main: nothing can wake it: waits for the end of 2 tasks: task \"one_way\" "
                         "(tests/unit/report.c:%d), task \"other_way\" (tests/unit/report.c:%d)\n"
                         "deadlock 2/3 one_way: nothing can wake it: waits for a mutex held by task \"other_way\" "));
        ASSERT_TRUE(told.stacks);
}
