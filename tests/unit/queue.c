/* SPDX-License-Identifier: MIT */
/* The bounded queue: order, hand-over, shut-down, and that no item is lost or doubled. */

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "job.h"

struct end {
        resha_queue *queue;
        const char *name;
        int first, count; /* puts these numbers; or takes so many, 0: all */
        resha_task task;
};

static int puts_numbers(void *arg)
{
        struct end *e = arg;

        for (int i = 0; i < e->count; i++) {
                int n = e->first + i, rc = resha_queue_put(e->queue, &n);
                note(rc == 1 ? "%s%d" : "%s%d:%d", e->name, n, rc);
                if (rc <= 0)
                        return rc;
        }
        return 0;
}

static int gets_numbers(void *arg)
{
        struct end *e = arg;
        int n, rc = 1;

        for (int i = 0; !e->count || i < e->count; i++) {
                rc = resha_queue_get(e->queue, &n);
                if (rc <= 0) {
                        note("%s:%d", e->name, rc);
                        return rc;
                }
                note("%s%d", e->name, n);
        }
        return 0;
}

static resha_queue *queue_of_ints(size_t capacity)
{
        resha_queue *q = NULL;

        ASSERT_OK(resha_queue_new(sizeof(int), capacity, NULL, &q));
        return q;
}

TEST(queue_new_checks_its_sizes)
{
        resha_queue *q = NULL;

        ASSERT_EQ(resha_queue_new(0, 1, NULL, &q), -EINVAL);
        ASSERT_EQ(resha_queue_new(65537, 1, NULL, &q), -EINVAL);
        ASSERT_EQ(resha_queue_new(65536, SIZE_MAX / 2, NULL, &q), -EINVAL);
        ASSERT_PTR(q, NULL);
        resha_queue_free(NULL);
        resha_queue_freep(&q);
}

TASK(queue_first_in_first_out)
{
        resha_queue *q RESHA_CLEANUP(resha_queue_freep) = queue_of_ints(3);
        int n = 0;

        for (int round = 0; round < 5; round++) { /* around the end of its ring */
                for (int i = 0; i < 3; i++)
                        ASSERT_EQ(resha_queue_put(q, &(int){ round * 3 + i }), 1);
                ASSERT_EQ(resha_queue_count(q), 3);
                ASSERT_EQ(resha_queue_try_put(q, &n), -EAGAIN);
                for (int i = 0; i < 3; i++) {
                        ASSERT_EQ(resha_queue_get(q, &n), 1);
                        ASSERT_EQ(n, round * 3 + i);
                }
                ASSERT_EQ(resha_queue_count(q), 0);
                ASSERT_EQ(resha_queue_try_get(q, &n), -EAGAIN);
                ASSERT_EQ(resha_queue_put(q, &n), 1); /* moves the start */
                ASSERT_EQ(resha_queue_get(q, &n), 1);
        }
        return 0;
}

TASK(queue_items_of_every_size)
{
        const size_t sizes[] = { 1, 3, 4, 7, 8, 12, 16, 100, 4096 };
        static unsigned char in[4096], out[4096];

        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
                resha_queue *q RESHA_CLEANUP(resha_queue_freep) = NULL;
                ASSERT_OK(resha_queue_new(sizes[i], 2, NULL, &q));
                for (int round = 0; round < 3; round++) {
                        memset(in, round + 1, sizes[i]);
                        memset(out, 0, sizeof out);
                        ASSERT_EQ(resha_queue_try_put(q, in), 1);
                        ASSERT_EQ(resha_queue_try_get(q, out), 1);
                        ASSERT_EQ(memcmp(in, out, sizes[i]), 0);
                        ASSERT_EQ(sizes[i] < 4096 && out[sizes[i]], 0); /* and not a byte more */
                }
        }
        return 0;
}

TASK(queue_put_waits_while_it_is_full)
{
        resha_queue *q RESHA_CLEANUP(resha_queue_freep) = queue_of_ints(2);
        struct end producer = { .queue = q, .name = "p", .first = 1, .count = 4 };
        int n;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, puts_numbers, &producer);
        ASSERT_OK(resha_sleep(MS(1)));
        ASSERT_STR(notes(), "p1 p2");
        ASSERT_EQ(resha_queue_get(q, &n), 1);
        ASSERT_EQ(n, 1);
        ASSERT_EQ(resha_queue_count(q), 2); /* the waiting item took the place at once */
        ASSERT_OK(resha_sleep(MS(1)));
        ASSERT_STR(notes(), "p3");
        for (int i = 2; i <= 4; i++) {
                ASSERT_EQ(resha_queue_get(q, &n), 1);
                ASSERT_EQ(n, i);
        }
        return resha_group_end(&g, 0);
}

TASK(queue_getters_are_served_in_order)
{
        resha_queue *q RESHA_CLEANUP(resha_queue_freep) = queue_of_ints(5);
        struct end e[] = { { .queue = q, .name = "a", .count = 1 },
                           { .queue = q, .name = "b", .count = 1 },
                           { .queue = q, .name = "c", .count = 1 } };

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (size_t i = 0; i < 3; i++)
                resha_spawn(&g, gets_numbers, &e[i]);
        ASSERT_OK(resha_yield());
        for (int i = 1; i <= 3; i++)
                ASSERT_EQ(resha_queue_put(q, &i), 1);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "a1 b2 c3");
        return 0;
}

/* semantics 222 better
 * asyncio: a getter that was woken goes to the back of the line if another task takes the item before it runs.
 * resha: the item is handed to the first getter by the put itself; nobody can take it before that one runs. */
TASK(semantics_222_item_is_handed_to_the_first_getter_and_nobody_overtakes)
{
        resha_queue *q RESHA_CLEANUP(resha_queue_freep) = queue_of_ints(5);
        struct end e = { .queue = q, .name = "getter", .count = 1 };
        int n = 7;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, gets_numbers, &e);
        ASSERT_OK(resha_yield());
        ASSERT_EQ(resha_queue_put(q, &n), 1);
        ASSERT_EQ(resha_queue_count(q), 0);
        ASSERT_EQ(resha_queue_try_get(q, &n), -EAGAIN);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "getter7");
        return 0;
}

static int get_then_sleep(void *arg)
{
        struct end *e = arg;
        int n = 0, rc = resha_queue_get(e->queue, &n);

        note("%s: %d %d", e->name, rc, n);
        return rc < 0 ? rc : resha_sleep(MS(1));
}

/* semantics 223 same
 * asyncio: if a getter is cancelled after it was woken, the item stays for the next getter.
 * resha: no item is lost or doubled: the getter that was woken has it, and its call gives 1 in spite of the cancel. */
TASK(semantics_223_getter_cancelled_after_its_item_came_has_it)
{
        resha_queue *q RESHA_CLEANUP(resha_queue_freep) = queue_of_ints(5);
        struct end e = { .queue = q, .name = "getter" };
        int status;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, get_then_sleep, &e, &e.task));
        ASSERT_OK(resha_yield());
        ASSERT_EQ(resha_queue_put(q, &(int){ 7 }), 1);
        resha_task_cancel(&e.task);
        ASSERT_OK(resha_task_wait(&e.task, &status));
        ASSERT_EQ(status, -ECANCELED);
        ASSERT_STR(notes(), "getter: 1 7");
        return resha_group_end(&g, 0);
}

TASK(queue_cancelled_getter_takes_nothing)
{
        resha_queue *q RESHA_CLEANUP(resha_queue_freep) = queue_of_ints(5);
        struct end e[] = { { .queue = q, .name = "a", .count = 1 }, { .queue = q, .name = "b", .count = 1 } };

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (size_t i = 0; i < 2; i++)
                ASSERT_OK(resha_spawn_task(&g, gets_numbers, &e[i], &e[i].task));
        ASSERT_OK(resha_yield());
        resha_task_cancel(&e[0].task);
        ASSERT_EQ(resha_queue_put(q, &(int){ 7 }), 1);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "a:-125 b7");
        return 0;
}

/* semantics 224 same
 * asyncio: if a putter is cancelled after it was woken, its item is not put and the place goes to the next putter.
 * resha: no place is lost: the item of a putter that was woken is in the queue, and its call gives 1 in spite of the
 *   cancel; the item of one that was cancelled before is not. */
TASK(semantics_224_putter_cancelled_after_its_place_came_has_put)
{
        resha_queue *q RESHA_CLEANUP(resha_queue_freep) = queue_of_ints(1);
        struct end e = { .queue = q, .name = "p", .first = 5, .count = 2 };
        int n, status;

        ASSERT_EQ(resha_queue_put(q, &(int){ 1 }), 1);
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, puts_numbers, &e, &e.task));
        ASSERT_OK(resha_yield());
        ASSERT_EQ(resha_queue_get(q, &n), 1);
        resha_task_cancel(&e.task);
        ASSERT_OK(resha_task_wait(&e.task, &status));
        ASSERT_EQ(status, -ECANCELED);
        ASSERT_STR(notes(), "p5 p6:-125");
        ASSERT_EQ(resha_queue_count(q), 1);
        ASSERT_EQ(resha_queue_get(q, &n), 1);
        ASSERT_EQ(n, 5);
        return resha_group_end(&g, 0);
}

TASK(queue_item_of_a_cancelled_putter_is_not_put)
{
        resha_queue *q RESHA_CLEANUP(resha_queue_freep) = queue_of_ints(1);
        struct end e[] = { { .queue = q, .name = "a", .first = 5, .count = 1 },
                           { .queue = q, .name = "b", .first = 6, .count = 1 } };
        int n;

        ASSERT_EQ(resha_queue_put(q, &(int){ 1 }), 1);
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (size_t i = 0; i < 2; i++)
                ASSERT_OK(resha_spawn_task(&g, puts_numbers, &e[i], &e[i].task));
        ASSERT_OK(resha_yield());
        resha_task_cancel(&e[0].task);
        ASSERT_EQ(resha_queue_get(q, &n), 1);
        ASSERT_EQ(n, 1);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "a5:-125 b6");
        ASSERT_EQ(resha_queue_get(q, &n), 1);
        ASSERT_EQ(n, 6);
        ASSERT_EQ(resha_queue_count(q), 0);
        return 0;
}

static int get_in_time(void *arg)
{
        struct end *e = arg;
        int n = 0, rc = resha_queue_get(e->queue, &n);

        return rc == 1 ? n : rc;
}

static int waits_as_long_as_the_putter(void *arg)
{
        struct end *e = arg;
        int rc = resha_timeout(MS(1), get_in_time, e);

        e->count = rc; /* the item, or why there is none */
        return rc == -ETIME ? 0 : rc;
}

static int puts_when_the_time_is_over(void *arg)
{
        struct end *e = arg;
        int rc = resha_sleep(MS(1));

        return rc < 0 ? rc : resha_queue_put(e->queue, &e->first);
}

static int item_and_deadline_together(__attribute__((unused)) void *arg)
{
        resha_queue *q RESHA_CLEANUP(resha_queue_freep) = queue_of_ints(5);
        struct end getter = { .queue = q }, putter = { .queue = q, .first = 7 };
        int n = 0;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, puts_when_the_time_is_over, &putter);
        resha_spawn(&g, waits_as_long_as_the_putter, &getter);
        ASSERT_OK(resha_group_end(&g, 0));
        if (getter.count == 7) {
                ASSERT_EQ(resha_queue_count(q), 0);
                return 0;
        }
        ASSERT_EQ(getter.count, -ETIME);
        ASSERT_EQ(resha_queue_get(q, &n), 1);
        ASSERT_EQ(n, 7);
        return 0;
}

/* semantics 225 better
 * asyncio: the item is lost if get() runs in a task of its own, as wait_for() made it, and its awaiter is cancelled
 * when
 *   that is done.
 * resha: a timeout runs the call in the task itself: either it has the item, or the item is still in the queue. */
TEST(semantics_225_item_that_comes_with_the_deadline_is_not_lost)
{
        RUN_SEEDS(item_and_deadline_together, NULL, 100);
}

/* ---- shut-down ---- */

/* semantics 231 same
 * asyncio: after shutdown() put raises at once, get drains the rest and then raises; blocked putters wake with
 *   QueueShutDown, getters too if nothing is left.
 * resha: resha_queue_shutdown() does; those calls give 0. */
TASK(semantics_231_shutdown_lets_getters_take_the_rest)
{
        resha_queue *q RESHA_CLEANUP(resha_queue_freep) = queue_of_ints(3);
        int n = 0;

        ASSERT_EQ(resha_queue_put(q, &(int){ 1 }), 1);
        ASSERT_EQ(resha_queue_put(q, &(int){ 2 }), 1);
        resha_queue_shutdown(q);
        resha_queue_shutdown(q);
        ASSERT_EQ(resha_queue_put(q, &n), 0);
        ASSERT_EQ(resha_queue_try_put(q, &n), 0);
        ASSERT_EQ(resha_queue_get(q, &n), 1);
        ASSERT_EQ(resha_queue_try_get(q, &n), 1);
        ASSERT_EQ(n, 2);
        ASSERT_EQ(resha_queue_get(q, &n), 0);
        ASSERT_EQ(resha_queue_try_get(q, &n), 0);
        ASSERT_EQ(n, 2); /* written when an item came only */
        return 0;
}

TASK(semantics_231_shutdown_wakes_getters)
{
        resha_queue *q RESHA_CLEANUP(resha_queue_freep) = queue_of_ints(3);
        struct end e[] = { { .queue = q, .name = "a" }, { .queue = q, .name = "b" } };

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (size_t i = 0; i < 2; i++)
                resha_spawn(&g, gets_numbers, &e[i]);
        ASSERT_OK(resha_yield());
        resha_queue_shutdown(q);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "a:0 b:0");
        return 0;
}

TASK(semantics_231_shutdown_wakes_putters_whose_items_are_not_put)
{
        resha_queue *q RESHA_CLEANUP(resha_queue_freep) = queue_of_ints(1);
        struct end e = { .queue = q, .name = "p", .first = 1, .count = 3 };
        int n;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, puts_numbers, &e);
        ASSERT_OK(resha_yield());
        resha_queue_shutdown(q);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "p1 p2:0");
        ASSERT_EQ(resha_queue_get(q, &n), 1);
        ASSERT_EQ(n, 1);
        ASSERT_EQ(resha_queue_get(q, &n), 0);
        return 0;
}

/* ---- freeing ---- */

static void drop(void *item)
{
        note("drop%d", *(int *)item);
}

TASK(queue_free_drops_what_is_left)
{
        resha_queue *q = NULL;
        int n;

        ASSERT_OK(resha_queue_new(sizeof(int), 3, drop, &q));
        for (int i = 1; i <= 3; i++)
                ASSERT_EQ(resha_queue_put(q, &i), 1);
        ASSERT_EQ(resha_queue_get(q, &n), 1);
        ASSERT_EQ(resha_queue_put(q, &(int){ 4 }), 1); /* around the end */
        ASSERT_STR(notes(), "");
        resha_queue_freep(&q);
        ASSERT_PTR(q, NULL);
        ASSERT_STR(notes(), "drop2 drop3 drop4");
        return 0;
}

static int frees_a_queue_in_use(__attribute__((unused)) void *arg)
{
        resha_queue *q = queue_of_ints(3);
        struct end e = { .queue = q, .name = "a" };

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, gets_numbers, &e);
        ASSERT_OK(resha_yield());
        resha_queue_free(q);
        return resha_group_end(&g, 0);
}

static int run_that(void *arg)
{
        return test_run_opts(frees_a_queue_in_use, arg, NULL);
}

TEST(queue_free_while_tasks_wait_aborts)
{
        struct test_child c;

        test_child(run_that, NULL, &c);
        ASSERT_TRUE(WIFSIGNALED(c.status) && WTERMSIG(c.status) == SIGABRT);
        ASSERT_HAS(c.text, "queue");
}

/* ---- many ---- */

enum { ITEMS = 200 };

struct tally {
        resha_queue *queue;
        int seen[ITEMS];
        int last[2]; /* of each producer */
        bool ordered;
};

static int consumes(void *arg)
{
        struct tally *t = arg;
        int n, rc;

        while ((rc = resha_queue_get(t->queue, &n)) > 0) {
                t->seen[n]++;
                int producer = n / (ITEMS / 2);
                ASSERT_TRUE(!t->ordered || n > t->last[producer]);
                t->last[producer] = n;
                if (n % 7 == 0)
                        ASSERT_OK(resha_sleep(MS(1)));
        }
        return rc;
}

static int exactly_once(__attribute__((unused)) void *arg)
{
        struct tally t = { .last = { -1, -1 } };
        struct end p[2];

        resha_queue *q RESHA_CLEANUP(resha_queue_freep) = t.queue = queue_of_ints(5);
        RESHA_GROUP(consumers);
        resha_group_begin(&consumers, NULL);
        for (int i = 0; i < 4; i++)
                resha_spawn(&consumers, consumes, &t);
        for (int i = 0; i < 2; i++)
                p[i] = (struct end){ .queue = q, .name = "", .first = i * ITEMS / 2, .count = ITEMS / 2 };
        ASSERT_OK(resha_gather(puts_numbers, p, 2, sizeof p[0], NULL));
        resha_queue_shutdown(q);
        ASSERT_OK(resha_group_end(&consumers, 0));
        notes();
        for (int i = 0; i < ITEMS; i++)
                ASSERT_EQ(t.seen[i], 1);
        return 0;
}

TEST(queue_every_item_exactly_once)
{
        RUN_SEEDS(exactly_once, NULL, 50);
}

static int one_consumer_keeps_order(__attribute__((unused)) void *arg)
{
        struct tally t = { .last = { -1, -1 }, .ordered = true };
        struct end p[2];

        resha_queue *q RESHA_CLEANUP(resha_queue_freep) = t.queue = queue_of_ints(3);
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, consumes, &t);
        for (int i = 0; i < 2; i++)
                p[i] = (struct end){ .queue = q, .name = "", .first = i * ITEMS / 2, .count = ITEMS / 2 };
        ASSERT_OK(resha_gather(puts_numbers, p, 2, sizeof p[0], NULL));
        resha_queue_shutdown(q);
        ASSERT_OK(resha_group_end(&g, 0));
        notes();
        return 0;
}

TEST(queue_items_of_one_producer_stay_in_order)
{
        RUN_SEEDS(one_consumer_keeps_order, NULL, 50);
}

TEST(queue_outside_a_task)
{
        resha_queue *q RESHA_CLEANUP(resha_queue_freep) = NULL;
        int n = 1;

        if (resha_queue_new(sizeof(int), 1, NULL, &q) == 0) { /* without a running loop it may be refused */
                ASSERT_EQ(resha_queue_put(q, &n), -EPERM);
                ASSERT_EQ(resha_queue_get(q, &n), -EPERM);
        }
}
