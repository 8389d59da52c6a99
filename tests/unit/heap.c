/* SPDX-License-Identifier: MIT */
/* The heap of timers, against a sorted array. */

#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "test.h"

enum { N = 500 };

struct model {
        struct rs_timer *timers[N]; /* in order */
        size_t n;
};

static uint64_t state = 88172645463325252u;

static uint64_t draw(uint64_t below)
{
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return state % below;
}

static void model_insert(struct model *m, struct rs_timer *t)
{
        size_t i = m->n++;

        for (; i > 0 && m->timers[i - 1]->deadline > t->deadline; i--)
                m->timers[i] = m->timers[i - 1];
        m->timers[i] = t;
}

static void model_remove(struct model *m, size_t i)
{
        memmove(&m->timers[i], &m->timers[i + 1], (m->n - i - 1) * sizeof m->timers[0]);
        m->n--;
}

static void insert(struct rs_heap *h, struct model *m, struct rs_timer *t, uint64_t range)
{
        t->deadline = (int64_t)draw(range);
        rs_heap_insert(h, t);
        model_insert(m, t);
}

static void random_operations(uint64_t range)
{
        static struct rs_timer timers[N];
        struct rs_heap h = { 0 };
        struct model m = { .n = 0 };

        for (int step = 0; step < 20000; step++) {
                struct rs_timer *t = &timers[draw(N)];

                if (!rs_timer_active(t)) {
                        insert(&h, &m, t, range);
                } else if (draw(2)) { /* pop */
                        rs_heap_remove(&h, m.timers[0]);
                        ASSERT_FALSE(rs_timer_active(m.timers[0]));
                        model_remove(&m, 0);
                } else { /* remove anywhere */
                        size_t i = draw(m.n);
                        rs_heap_remove(&h, m.timers[i]);
                        model_remove(&m, i);
                }
                ASSERT_PTR(rs_heap_first(&h), m.n ? m.timers[0] : NULL);
        }
        while (m.n) {
                ASSERT_PTR(rs_heap_first(&h), m.timers[0]);
                rs_heap_remove(&h, m.timers[0]);
                model_remove(&m, 0);
        }
        ASSERT_PTR(rs_heap_first(&h), NULL);
}

TEST(heap_random_operations)
{
        random_operations(1000000000);
}
TEST(heap_random_operations_with_many_equal)
{
        random_operations(10);
}
TEST(heap_random_operations_all_equal)
{
        random_operations(1);
}

static void in_order_of(int64_t (*deadline)(size_t i))
{
        static struct rs_timer timers[100000];
        struct rs_heap h = { 0 };
        int64_t last = INT64_MIN;

        for (size_t i = 0; i < 100000; i++) {
                timers[i].deadline = deadline(i);
                rs_heap_insert(&h, &timers[i]);
        }
        for (size_t i = 0; i < 100000; i++) {
                struct rs_timer *t = rs_heap_first(&h);
                ASSERT_TRUE(t->deadline >= last);
                last = t->deadline;
                rs_heap_remove(&h, t);
        }
        ASSERT_PTR(rs_heap_first(&h), NULL);
}

static int64_t up(size_t i)
{
        return (int64_t)i;
}
static int64_t down(size_t i)
{
        return -(int64_t)i;
}
static int64_t zigzag(size_t i)
{
        return i % 2 ? (int64_t)i : -(int64_t)i;
}

/* Deep trees: merging must not recurse. */
TEST(heap_ascending)
{
        in_order_of(up);
}
TEST(heap_descending)
{
        in_order_of(down);
}
TEST(heap_zigzag)
{
        in_order_of(zigzag);
}

TEST(heap_equal_deadlines_in_order_of_insertion)
{
        static struct rs_timer timers[1000];
        struct rs_heap h = { 0 };

        for (size_t i = 0; i < 1000; i++)
                rs_heap_insert(&h, &timers[i]);
        for (size_t i = 1; i < 1000; i += 2) /* whatever was taken out between them */
                rs_heap_remove(&h, &timers[i]);
        for (size_t i = 0; i < 1000; i += 2) {
                ASSERT_PTR(rs_heap_first(&h), &timers[i]);
                rs_heap_remove(&h, &timers[i]);
        }
}
