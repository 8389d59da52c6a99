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

/* The sink may break the circle. */
static resha_group *to_cancel;

static void cancelling_sink(const resha_report *r, void *arg)
{
        sink(r, arg);
        resha_group_cancel(to_cancel);
}

static int both_cancelled(void *arg)
{
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        to_cancel = &g;
        resha_spawn(&g, one_way, arg);
        resha_spawn(&g, other_way, arg);
        return resha_group_end(&g, 0);
}

TEST(circle_that_the_sink_breaks)
{
        struct two t = { .patience = RESHA_FOREVER };

        ASSERT_OK(test_run_opts(both_cancelled, &t, &(resha_run_opts){ .report = cancelling_sink }));
        ASSERT_EQ(told.reports, 2);
        ASSERT_EQ(t.results[0], -ECANCELED);
        ASSERT_EQ(t.results[1], -ECANCELED);
}

/* A lock by a task that ends with it: nobody can be named, and nothing follows the pointer. */
static int keeps(void *arg)
{
        return resha_mutex_lock(arg);
}

static int waits_for_keeper(void *arg)
{
        int rc = resha_gather(keeps, arg, 1, sizeof(resha_mutex), NULL);

        return rc < 0 ? rc : resha_mutex_lock(arg);
}

TEST(mutex_of_a_task_that_has_ended)
{
        resha_mutex m = { { 0 } };

        ASSERT_EQ(run(waits_for_keeper, &m), -EDEADLK);
        ASSERT_STR(told.text,
                   "deadlock 1/1 main: nothing can wake it: waits for a mutex whose holder has ended without "
                   "unlocking it\n");
}

/* ---- circles of other waits ---- */

struct knot {
        resha_mutex mutex;
        resha_event never;
        resha_task first, second;
};

static int waits_for_second(void *arg)
{
        struct knot *k = arg;
        int rc = resha_yield();

        return rc < 0 ? rc : resha_task_wait(&k->second, NULL);
}

static int waits_for_first(void *arg)
{
        struct knot *k = arg;

        return resha_task_wait_all(&k->first, 1, RESHA_FOREVER, NULL);
}

static int handles(void *arg)
{
        struct knot *k = arg;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn_task(&g, waits_for_second, k, &k->first);
        resha_spawn_task(&g, waits_for_first, k, &k->second);
        int rc = resha_sleep(MS(5));
        resha_group_cancel(&g);
        return resha_group_end(&g, rc);
}

TEST(circle_of_task_waits_that_a_cancel_breaks)
{
        struct knot k = { 0 };

        ASSERT_EQ(run(handles, &k), 0);
        ASSERT_EQ(told.reports, 2);
        ASSERT_HAS(told.text, "circle 1/2 waits_for_second: waits in a circle, which only a deadline or a cancel can "
                              "break: for the end of task \"waits_for_first\" (tests/unit/report.c:");
        ASSERT_HAS(told.text, "), which waits for the end of this task\ncircle 2/2 waits_for_first: waits in the same "
                              "circle: for the end of task \"waits_for_second\" (");
}

static int locks(void *arg)
{
        int rc = resha_mutex_lock(arg);

        return rc == 0 ? resha_mutex_unlock(arg) : rc;
}

static int idle(void *arg)
{
        return resha_event_wait(arg);
}

/* The lock is held across the end of the group: one of many children wants it. */
static int joins_with_the_lock(void *arg)
{
        struct knot *k = arg;
        int rc = resha_mutex_lock(&k->mutex);

        if (rc < 0)
                return rc;
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (int i = 0; i < 50; i++)
                resha_spawn(&g, idle, &k->never);
        resha_spawn_task(&g, locks, &k->mutex, &k->second);
        rc = resha_timeout(MS(10), locks, &k->mutex); /* of its own: -EDEADLK at once */
        ASSERT_EQ(rc, -EDEADLK);
        rc = resha_yield();
        return resha_group_end(&g, rc);
}

TEST(circle_through_a_group)
{
        struct knot k = { 0 };

        ASSERT_EQ(run(joins_with_the_lock, &k), -EDEADLK);
        ASSERT_HAS(told.text, "circle 1/2 ");
        ASSERT_HAS(told.text, "circle 2/2 ");
        ASSERT_FALSE(strstr(told.text, "/3"));
        ASSERT_HAS(told.text, "for a mutex held by task \"main\"");
        ASSERT_HAS(told.text, "deadlock 1/52 main: nothing can wake it: waits for the end of 51 tasks: task "
                              "\"idle\" (tests/unit/report.c:");
}

static int drains_with_the_lock(void *arg)
{
        struct knot *k = arg;
        int rc = resha_mutex_lock(&k->mutex);

        if (rc < 0)
                return rc;
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, locks, &k->mutex);
        rc = resha_group_drain(&g, MS(5));
        ASSERT_EQ(rc, -ETIME);
        return resha_group_end(&g, 0);
}

TEST(circle_through_a_drain)
{
        struct knot k = { 0 };

        ASSERT_EQ(run(drains_with_the_lock, &k), 0);
        ASSERT_EQ(told.reports, 2);
        ASSERT_HAS(told.text, "circle 1/2 locks: waits in a circle, which only a deadline or a cancel can break: for a "
                              "mutex held by task \"main\", which waits for the end of this task\n");
        ASSERT_HAS(told.text, "circle 2/2 main: waits in the same circle: for the end of task \"locks\" (");
}

/* A notified waiter of a condition stands in the mutex's line, without having run. */
struct notified {
        resha_mutex mutex, other;
        resha_condition condition;
        resha_task waiter;
        resha_scope *circle;
};

static int waits_notified(void *arg)
{
        struct notified *n = arg;
        int rc = resha_mutex_lock(&n->mutex);

        if (rc < 0)
                return rc;
        rc = resha_condition_wait(&n->condition);
        resha_mutex_unlock(&n->mutex);
        return rc;
}

static int notifies(void *arg)
{
        struct notified *n = arg;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn_task(&g, waits_notified, n, &n->waiter);
        int rc = resha_yield();
        if (rc == 0)
                rc = resha_mutex_lock(&n->mutex);
        if (rc == 0)
                rc = resha_condition_notify_all(&n->condition);
        if (rc == 0)
                rc = resha_task_wait_for(&n->waiter, MS(5), NULL);
        resha_mutex_unlock(&n->mutex);
        return resha_group_end(&g, rc == -ETIME ? 0 : rc);
}

TEST(circle_through_the_lock_of_a_condition)
{
        struct notified n = { 0 };

        resha_condition_init(&n.condition, &n.mutex);
        ASSERT_EQ(run(notifies, &n), 0);
        ASSERT_EQ(told.reports, 2);
        ASSERT_HAS(told.text, "circle 2/2 waits_notified: waits in the same circle: for a mutex held by task \"main\"");
}

/* So does one that is cancelled: the last step into a circle, without a call of its own. */
static int waits_with_another_lock(void *arg)
{
        struct notified *n = arg;
        int rc = resha_mutex_lock(&n->other);

        if (rc < 0)
                return rc;
        rc = waits_notified(n);
        resha_mutex_unlock(&n->other);
        return rc;
}

static int cancels_waiter(void *arg)
{
        struct notified *n = arg;
        int rc = resha_sleep(MS(1));

        resha_task_cancel(&n->waiter);
        for (int i = 0; rc == 0 && told.reports < 2 && i < 5000; i++)
                rc = resha_sleep(MS(1));
        if (n->circle)
                resha_scope_cancel(n->circle); /* nothing else ends it */
        return rc;
}

static int locks_the_other(void *arg)
{
        return resha_mutex_lock(&((struct notified *)arg)->other);
}

static int locks_both(void *arg)
{
        struct notified *n = arg;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn_task(&g, waits_with_another_lock, n, &n->waiter);
        resha_spawn(&g, cancels_waiter, n);
        int rc = resha_yield();
        if (rc == 0)
                rc = resha_mutex_lock(&n->mutex);
        if (rc == 0) {
                RESHA_SCOPE(s);
                n->circle = &s;
                resha_timeout_begin(&s, RESHA_FOREVER);
                rc = resha_scope_end(&s, locks_the_other(n));
                n->circle = NULL;
                resha_mutex_unlock(&n->mutex);
        }
        return resha_group_end(&g, rc);
}

TEST(circle_that_a_cancelled_waiter_of_a_condition_closes)
{
        struct notified n = { 0 };

        resha_condition_init(&n.condition, &n.mutex);
        ASSERT_EQ(run(locks_both, &n), 0);
        ASSERT_EQ(told.reports, 2);
        ASSERT_HAS(told.text, "waits_with_another_lock: waits in a circle");
        ASSERT_HAS(told.text, "circle 2/2 main: waits in the same circle: for a mutex held by task "
                              "\"waits_with_another_lock\"");
}

/* ---- none where there is none ---- */

enum { TASKS = 12, LOCKS = 3 };

struct crowd {
        resha_mutex locks[LOCKS];
        resha_semaphore permits;
        unsigned done;
};

static int in_order(struct crowd *c, unsigned from)
{
        int rc = from == LOCKS ? resha_sleep(MS(1)) : resha_mutex_lock(&c->locks[from]);

        if (rc < 0 || from == LOCKS)
                return rc;
        rc = in_order(c, from + 1);
        resha_mutex_unlock(&c->locks[from]);
        return rc;
}

static int member(void *arg)
{
        struct crowd *c = *(struct crowd **)arg;
        int rc = resha_semaphore_acquire(&c->permits);

        if (rc < 0)
                return rc;
        rc = in_order(c, c->done % LOCKS);
        resha_semaphore_release(&c->permits);
        c->done += rc == 0;
        return rc;
}

static int crowd_of_pairs(void *arg)
{
        struct crowd *pair[] = { arg, arg };

        return resha_gather(member, pair, 2, sizeof pair[0], NULL);
}

static int crowd(void *arg)
{
        unsigned seed = *(unsigned *)arg;
        struct crowd c = { .done = seed };

        resha_semaphore_init(&c.permits, 4);
        struct crowd *all[TASKS / 2];
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (int i = 0; i < TASKS / 2; i++) {
                all[i] = &c;
                resha_spawn(&g, crowd_of_pairs, all[i]);
        }
        int rc = resha_group_end(&g, 0);
        ASSERT_EQ(c.done, seed + TASKS);
        return rc;
}

TEST(no_circle_where_locks_are_taken_in_order)
{
        for (unsigned seed = 0; seed < 200; seed++) {
                char backend[32];

                snprintf(backend, sizeof backend, "sim:%u", seed);
                ASSERT_OK(resha_run(crowd, &seed, &(resha_run_opts){ .backend = backend, .report = sink }));
        }
        ASSERT_STR(told.text, "");
}
