/* SPDX-License-Identifier: MIT */
/* Queues of other kinds: the latest first, the smallest first, without a bound, a rendezvous. */

#include <string.h>

#include "base/alloc.h"
#include "job.h"

struct entry {
        int rank, serial;
};

static int by_rank(const void *a, const void *b)
{
        int x, y;

        memcpy(&x, a, sizeof x); /* items of odd sizes are not aligned */
        memcpy(&y, b, sizeof y);
        return (x > y) - (x < y);
}

static resha_queue *queue_of(size_t item_size, size_t capacity, enum resha_queue_order order)
{
        resha_queue *q = NULL;
        resha_queue_opts opts = { .order = order, .compare = order == RESHA_PRIORITY ? by_rank : NULL };

        ASSERT_OK(resha_queue_new_opt(item_size, capacity, &opts, &q));
        return q;
}

TEST(queue_opts_are_checked)
{
        resha_queue *q = NULL;
        const resha_queue_opts bad[] = { { .order = RESHA_PRIORITY },
                                         { .compare = by_rank },
                                         { .order = RESHA_LIFO, .compare = by_rank },
                                         { .order = (enum resha_queue_order)3 },
                                         { ._reserved = { 0, 0, 0, 1 } } };

        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
                ASSERT_EQ(resha_queue_new_opt(4, 1, &bad[i], &q), -EINVAL);
        /* a rendezvous has no order of its own */
        ASSERT_EQ(resha_queue_new_opt(4, 0, &(resha_queue_opts){ .order = RESHA_LIFO }, &q), -EINVAL);
        ASSERT_EQ(resha_queue_new(4, SIZE_MAX - 1, NULL, &q), -EINVAL);
        ASSERT_PTR(q, NULL);
        ASSERT_OK(resha_queue_new_opt(4, 1, NULL, &q));
        resha_queue_freep(&q);
}

TEST(queue_new_without_memory)
{
        const enum resha_queue_order orders[] = { RESHA_FIFO, RESHA_LIFO, RESHA_PRIORITY };
        resha_queue *q = NULL;

        for (size_t i = 0; i < 3; i++) {
                resha_queue_opts o = { .order = orders[i], .compare = i == 2 ? by_rank : NULL };
                for (int64_t n = 1; n <= 2; n++) {
                        rs_alloc_fail_after(n, false);
                        int64_t live = rs_alloc_live();
                        ASSERT_EQ(resha_queue_new_opt(8, 4, &o, &q), -ENOMEM);
                        ASSERT_EQ(rs_alloc_live(), live);
                        rs_alloc_fail_after(0, false);
                }
        }
        ASSERT_PTR(q, NULL);
}

/* ---- the latest first ---- */

TASK(queue_lifo_gives_the_latest_first)
{
        resha_queue *q RESHA_CLEANUP(resha_queue_freep) = queue_of(sizeof(int), 3, RESHA_LIFO);
        int n = 0;

        for (int i = 1; i <= 3; i++)
                ASSERT_EQ(resha_queue_put(q, &i), 1);
        ASSERT_EQ(resha_queue_try_put(q, &n), -EAGAIN);
        ASSERT_EQ(resha_queue_count(q), 3);
        ASSERT_EQ(resha_queue_get(q, &n), 1);
        ASSERT_EQ(n, 3);
        ASSERT_EQ(resha_queue_put(q, &(int){ 4 }), 1);
        for (int i = 0; i < 3; i++) {
                ASSERT_EQ(resha_queue_get(q, &n), 1);
                note("%d", n);
        }
        ASSERT_STR(notes(), "4 2 1");
        ASSERT_EQ(resha_queue_try_get(q, &n), -EAGAIN);
        resha_queue_shutdown(q);
        ASSERT_EQ(resha_queue_get(q, &n), 0);
        return 0;
}

struct end {
        resha_queue *q;
        int first, count;
        resha_task task;
};

static int puts_some(void *arg)
{
        struct end *e = arg;

        for (int i = 0; i < e->count; i++) {
                struct entry n = { e->first + i, 0 }; /* or its first int */
                int rc = resha_queue_put(e->q, &n);
                note("p%d:%d", n.rank, rc);
                if (rc <= 0)
                        return rc;
        }
        return 0;
}

static int gets_some(void *arg)
{
        struct end *e = arg;

        for (int i = 0; i < e->count; i++) {
                struct entry n = { 0 };
                int rc = resha_queue_get(e->q, &n);
                note("g%d:%d", n.rank, rc);
                if (rc <= 0)
                        return rc;
        }
        return 0;
}

TASK(queue_of_another_order_hands_a_place_to_the_first_putter)
{
        const enum resha_queue_order orders[] = { RESHA_LIFO, RESHA_PRIORITY };

        for (size_t i = 0; i < 2; i++) {
                resha_queue *q RESHA_CLEANUP(resha_queue_freep) = queue_of(8, 1, orders[i]);
                struct entry e = { 5, 0 };
                struct end p[] = { { .q = q, .first = 7, .count = 1 }, { .q = q, .first = 3, .count = 1 } };
                ASSERT_EQ(resha_queue_put(q, &e), 1);
                RESHA_GROUP(g);
                resha_group_begin(&g, NULL);
                for (size_t k = 0; k < 2; k++)
                        resha_spawn(&g, puts_some, &p[k]);
                ASSERT_OK(resha_yield());
                for (int k = 0; k < 3; k++) {
                        ASSERT_EQ(resha_queue_get(q, &e), 1);
                        note("%d", e.rank);
                        ASSERT_EQ(resha_queue_count(q), k < 2 ? 1 : 0);
                }
                ASSERT_STR(notes(), "5 7 3");
                ASSERT_OK(resha_group_end(&g, 0));
                ASSERT_STR(notes(), "p7:1 p3:1");
        }
        return 0;
}

/* ---- the smallest first ---- */

/* Against the plain way: look through all for the smallest, the earliest of equals. */
static int against_a_list(void *arg)
{
        resha_queue *q RESHA_CLEANUP(resha_queue_freep) =
                queue_of(sizeof(struct entry), *(const size_t *)arg, RESHA_PRIORITY);
        struct entry list[64], got;
        size_t n = 0;
        uint32_t rng = 12345;

        for (int serial = 0; serial < 3000; serial++) {
                rng = rng * 1664525 + 1013904223;
                if (n < 64 && (n == 0 || rng >> 30)) {
                        list[n] = (struct entry){ (int)(rng >> 16) % 7, serial };
                        ASSERT_EQ(resha_queue_put(q, &list[n]), 1);
                        n++;
                        continue;
                }
                size_t least = 0;
                for (size_t i = 1; i < n; i++)
                        if (list[i].rank < list[least].rank)
                                least = i;
                ASSERT_EQ(resha_queue_get(q, &got), 1);
                ASSERT_EQ(got.rank, list[least].rank);
                ASSERT_EQ(got.serial, list[least].serial);
                memmove(&list[least], &list[least + 1], (--n - least) * sizeof list[0]);
                ASSERT_EQ(resha_queue_count(q), n);
        }
        int rc;
        while ((rc = resha_queue_try_get(q, &got)) == 1)
                n--;
        ASSERT_EQ(rc, -EAGAIN);
        ASSERT_EQ(n, 0);
        return 0;
}

TEST(queue_priority_is_in_order_and_stable)
{
        RUN(against_a_list, &(size_t){ 64 });
        RUN(against_a_list, &(size_t){ RESHA_UNBOUNDED });
}

struct wide {
        _Alignas(16) int rank;
        unsigned char body[83];
};

TASK(queue_priority_items_of_any_size_keep_their_bytes_and_alignment)
{
        const size_t sizes[] = { 4, 5, 7, 12, sizeof(struct wide) };
        static struct wide in, out;

        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
                resha_queue *q RESHA_CLEANUP(resha_queue_freep) = queue_of(sizes[k], RESHA_UNBOUNDED, RESHA_PRIORITY);
                for (int i = 40; i > 0; i--) {
                        memset(&in, i, sizeof in);
                        in.rank = i;
                        ASSERT_EQ(resha_queue_put(q, &in), 1);
                }
                for (int i = 1; i <= 40; i++) {
                        memset(&out, 0, sizeof out);
                        ASSERT_EQ(resha_queue_get(q, &out), 1);
                        memset(&in, i, sizeof in);
                        in.rank = i;
                        ASSERT_EQ(memcmp(&in, &out, sizes[k]), 0);
                        ASSERT_EQ(sizes[k] < sizeof out && ((unsigned char *)&out)[sizes[k]], 0);
                }
        }
        return 0;
}

static size_t misaligned, dropped;

static void drop_wide(void *item)
{
        misaligned += (uintptr_t)item % 16 != 0;
        dropped++;
}

TASK(queue_drops_aligned_items_of_every_order)
{
        resha_queue_opts o[] = { { .drop = drop_wide },
                                 { .drop = drop_wide, .order = RESHA_LIFO },
                                 { .drop = drop_wide, .order = RESHA_PRIORITY, .compare = by_rank } };

        for (size_t i = 0; i < 3; i++)
                for (size_t capacity = 5; capacity; capacity = capacity == 5 ? RESHA_UNBOUNDED : 0) {
                        resha_queue *q RESHA_CLEANUP(resha_queue_freep) = NULL;
                        ASSERT_OK(resha_queue_new_opt(sizeof(struct wide), capacity, &o[i], &q));
                        for (int n = 0; n < 5; n++)
                                ASSERT_EQ(resha_queue_put(q, &(struct wide){ .rank = 3 }), 1);
                        misaligned = dropped = 0;
                        resha_queue_freep(&q);
                        ASSERT_EQ(dropped, 5);
                        ASSERT_EQ(misaligned, 0);
                }
        return 0;
}

/* ---- without a bound ---- */

/* semantics 226 better
 * asyncio: a maximum size of 0 or less means no bound: full() is never true and nothing holds producers back.
 * resha: the capacity must be stated; without a bound only by name, RESHA_UNBOUNDED, and 0 is a rendezvous. */
TASK(semantics_226_only_a_name_takes_the_bound_away)
{
        resha_queue *q RESHA_CLEANUP(resha_queue_freep) = queue_of(sizeof(int), RESHA_UNBOUNDED, RESHA_FIFO);
        resha_queue *none RESHA_CLEANUP(resha_queue_freep) = queue_of(sizeof(int), 0, RESHA_FIFO);
        int n = 0;

        for (int i = 0; i < 10000; i++) {
                int rc = resha_queue_try_put(q, &i);
                ASSERT_EQ(rc, 1);
        }
        ASSERT_EQ(resha_queue_count(q), 10000);
        ASSERT_EQ(resha_queue_try_put(none, &n), -EAGAIN);
        for (int i = 0; i < 10000; i++) {
                ASSERT_EQ(resha_queue_try_get(q, &n), 1);
                ASSERT_EQ(n, i);
        }
        return 0;
}

TASK(queue_unbounded_grows_wherever_its_start_is)
{
        for (int before = 0; before < 40; before++) {
                resha_queue *q RESHA_CLEANUP(resha_queue_freep) = queue_of(sizeof(int), RESHA_UNBOUNDED, RESHA_FIFO);
                int n, next = 0, put = 0;
                for (int i = 0; i < before; i++) { /* moves the start */
                        ASSERT_EQ(resha_queue_put(q, &(int){ put++ }), 1);
                        if (i % 3) {
                                ASSERT_EQ(resha_queue_get(q, &n), 1);
                                ASSERT_EQ(n, next++);
                        }
                }
                for (int i = 0; i < 50; i++)
                        ASSERT_EQ(resha_queue_put(q, &(int){ put++ }), 1);
                while (next < put) {
                        ASSERT_EQ(resha_queue_get(q, &n), 1);
                        ASSERT_EQ(n, next++);
                }
                ASSERT_EQ(resha_queue_count(q), 0);
        }
        return 0;
}

TASK(queue_unbounded_without_memory_keeps_what_it_has)
{
        const enum resha_queue_order orders[] = { RESHA_FIFO, RESHA_LIFO, RESHA_PRIORITY };

        for (size_t k = 0; k < 3; k++) {
                resha_queue *q RESHA_CLEANUP(resha_queue_freep) = queue_of(8, RESHA_UNBOUNDED, orders[k]);
                struct entry e = { 1, 1 };
                int inside = 0;
                rs_alloc_fail_after(2, true); /* one growth goes well */
                while (resha_queue_put(q, &e) == 1)
                        inside++;
                rs_alloc_fail_after(1, false); /* and there is memory for the record */
                ASSERT_EQ(resha_queue_put(q, &e), -ENOMEM);
                ASSERT_HAS(resha_error_of(-ENOMEM)->text, "queue");
                rs_alloc_fail_after(0, false);
                ASSERT_TRUE(inside > 0);
                ASSERT_EQ(resha_queue_count(q), inside);
                ASSERT_EQ(resha_queue_unfinished(q), inside);
                ASSERT_EQ(resha_queue_put(q, &e), 1);
                while (resha_queue_try_get(q, &e) == 1)
                        inside--;
                ASSERT_EQ(inside, -1);
        }
        return 0;
}

static int counts_turns(void *arg)
{
        int *turns = arg, rc;

        while ((rc = resha_yield()) == 0)
                ++*turns;
        return rc;
}

/* semantics 228 better
 * asyncio: put() and get() that need not wait do not let others run: a producer on a queue without a bound starves all.
 * resha: each call that need not wait counts, and every so often one yields; others run meanwhile. */
TASK(semantics_228_who_never_has_to_wait_lets_others_run)
{
        resha_queue *q RESHA_CLEANUP(resha_queue_freep) = queue_of(sizeof(int), RESHA_UNBOUNDED, RESHA_FIFO);
        int turns = 0, rc = 1;

        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        resha_spawn(&g, counts_turns, &turns);
        for (int i = 0; i < 1000 && rc == 1; i++)
                rc = resha_queue_put(q, &i);
        ASSERT_EQ(rc, 1);
        int while_put = turns;
        ASSERT_TRUE(while_put >= 10 && while_put <= 100);
        for (int n, i = 0; i < 1000 && rc == 1; i++)
                rc = resha_queue_get(q, &n);
        ASSERT_EQ(rc, 1);
        ASSERT_TRUE(turns >= while_put + 10);
        return resha_group_end(&g, 0);
}

/* ---- rendezvous ---- */

TASK(queue_rendezvous_put_is_done_when_its_item_is_taken)
{
        resha_queue *q RESHA_CLEANUP(resha_queue_freep) = queue_of(sizeof(int), 0, RESHA_FIFO);
        struct end p = { .q = q, .first = 1, .count = 2 };
        int n = 0;

        ASSERT_EQ(resha_queue_try_get(q, &n), -EAGAIN);
        ASSERT_EQ(resha_queue_try_put(q, &n), -EAGAIN);
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, puts_some, &p);
        ASSERT_OK(resha_sleep(MS(1)));
        ASSERT_STR(notes(), "");
        ASSERT_EQ(resha_queue_count(q), 0);
        ASSERT_EQ(resha_queue_unfinished(q), 0);
        ASSERT_EQ(resha_queue_get(q, &n), 1);
        ASSERT_EQ(n, 1);
        ASSERT_EQ(resha_queue_unfinished(q), 1);
        ASSERT_OK(resha_sleep(MS(1)));
        ASSERT_STR(notes(), "p1:1");
        ASSERT_EQ(resha_queue_try_get(q, &n), 1); /* the putter waits at the other side */
        ASSERT_EQ(n, 2);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "p2:1");
        return 0;
}

TASK(queue_rendezvous_getters_are_served_in_order)
{
        resha_queue *q RESHA_CLEANUP(resha_queue_freep) = queue_of(sizeof(int), 0, RESHA_FIFO);
        struct end e[] = { { .q = q, .count = 1 }, { .q = q, .count = 1 }, { .q = q, .count = 1 } };

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (size_t i = 0; i < 3; i++)
                ASSERT_OK(resha_spawn_task(&g, gets_some, &e[i], &e[i].task));
        ASSERT_OK(resha_yield());
        resha_task_cancel(&e[1].task);
        ASSERT_EQ(resha_queue_try_put(q, &(int){ 7 }), 1);
        ASSERT_EQ(resha_queue_put(q, &(int){ 8 }), 1);
        ASSERT_EQ(resha_queue_try_put(q, &(int){ 9 }), -EAGAIN);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "g0:-125 g7:1 g8:1");
        return 0;
}

TASK(queue_rendezvous_shutdown_leaves_waiting_items_with_their_putters)
{
        resha_queue *q RESHA_CLEANUP(resha_queue_freep) = queue_of(sizeof(int), 0, RESHA_FIFO);
        struct end p = { .q = q, .first = 1, .count = 1 };
        int n = 5;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, puts_some, &p);
        ASSERT_OK(resha_yield());
        resha_queue_shutdown(q);
        ASSERT_EQ(resha_queue_get(q, &n), 0);
        ASSERT_EQ(n, 5);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "p1:0");
        return 0;
}

/* ---- no wait allocates ---- */

static int joins(void *arg)
{
        return resha_queue_join(arg);
}

static int waits_at_each_kind(__attribute__((unused)) void *arg)
{
        const enum resha_queue_order orders[] = { RESHA_FIFO, RESHA_LIFO, RESHA_PRIORITY };

        for (size_t k = 0; k < 4; k++) {
                resha_queue *q RESHA_CLEANUP(resha_queue_freep) = queue_of(8, k == 3 ? 0 : 1, orders[k % 3]);
                struct end p = { .q = q, .first = 1, .count = 3 }, c = { .q = q, .count = 3 };
                struct entry e;
                RESHA_GROUP(g);
                resha_group_begin(&g, NULL);
                ASSERT_OK(resha_spawn_task(&g, puts_some, &p, &p.task));
                resha_spawn(&g, gets_some, &c);
                ASSERT_OK(resha_yield());
                rs_alloc_fail_after(1, true);
                ASSERT_OK(resha_task_wait(&p.task, NULL));
                ASSERT_EQ(resha_timeout(MS(1), joins, q), -ETIME);
                while (resha_queue_unfinished(q) > 0)
                        ASSERT_OK(resha_queue_task_done(q));
                ASSERT_OK(resha_queue_join(q));
                ASSERT_EQ(resha_queue_try_get(q, &e), -EAGAIN);
                ASSERT_EQ(rs_alloc_failed() <= 1, 1); /* the record of -ETIME */
                rs_alloc_fail_after(0, false);
                ASSERT_OK(resha_group_end(&g, 0));
                notes();
        }
        return 0;
}

TEST(queue_waits_do_not_allocate)
{
        RUN(waits_at_each_kind, NULL);
}
