/* SPDX-License-Identifier: MIT */
/* Items in another order than that of put.
 *
 * The latest first is an array with its end. The smallest first is a binary heap in that array. Each item of a heap has
 * a number, the count of puts when it came: where the comparison says equal the smaller number comes first, so the heap
 * is stable. Items move through a hole, one copy for each level, and the one that finds its place is not copied before
 * it has: no memory beside the array is needed.
 *
 * Invariants
 *  1. items[0 .. count) are alive.
 *  2. compared: before(i, (i - 1) / 2) holds for no i > 0. */

#include <string.h>

#include "base/alloc.h"
#include "sync/queue.h"

int rs_pile_grow(struct rs_pile *p, size_t room)
{
        size_t bytes, numbers = p->compare ? room : 0;

        if (__builtin_mul_overflow(p->item_size, room, &bytes) || bytes > SIZE_MAX - 7 - numbers * sizeof(uint64_t))
                return -ENOMEM;
        size_t aligned = (bytes + 7) & ~(size_t)7;
        char *items = resha_malloc(aligned + numbers * sizeof(uint64_t));
        if (!items)
                return -ENOMEM;
        uint64_t *when = p->compare ? (uint64_t *)(void *)(items + aligned) : NULL;
        if (p->count)
                memcpy(items, p->items, p->count * p->item_size);
        if (p->count && when)
                memcpy(when, p->when, p->count * sizeof *when);
        resha_free(p->items);
        p->items = items;
        p->when = when;
        p->room = room;
        return 0;
}

/* Whether a, put as number a_when, comes before the item at i. */
static bool before(const struct rs_pile *p, const void *a, uint64_t a_when, size_t i)
{
        int order = p->compare(a, rs_pile_at(p, i));

        return order < 0 || (order == 0 && a_when < p->when[i]);
}

static void move(struct rs_pile *p, size_t to, size_t from)
{
        memcpy(rs_pile_at(p, to), rs_pile_at(p, from), p->item_size);
        p->when[to] = p->when[from];
}

/* The hole at the end goes up to where the item belongs. */
static void heap_push(struct rs_pile *p, const void *item)
{
        uint64_t when = p->puts++;
        size_t hole = p->count;

        for (; hole && before(p, item, when, (hole - 1) / 2); hole = (hole - 1) / 2)
                move(p, hole, (hole - 1) / 2);
        memcpy(rs_pile_at(p, hole), item, p->item_size);
        p->when[hole] = when;
}

/* The hole at the root goes down to where the last item belongs. count is without the one that went. */
static void heap_close(struct rs_pile *p)
{
        size_t last = p->count, hole = 0, child;

        while ((child = 2 * hole + 1) < p->count) {
                if (child + 1 < p->count && before(p, rs_pile_at(p, child + 1), p->when[child + 1], child))
                        child++;
                if (before(p, rs_pile_at(p, last), p->when[last], child))
                        break;
                move(p, hole, child);
                hole = child;
        }
        if (hole != last)
                move(p, hole, last);
}

void rs_pile_push(struct rs_pile *p, const void *item)
{
        if (p->compare)
                heap_push(p, item);
        else
                memcpy(rs_pile_at(p, p->count), item, p->item_size);
        p->count++;
}

void rs_pile_pop(struct rs_pile *p, void *ret_item)
{
        p->count--;
        memcpy(ret_item, rs_pile_at(p, p->compare ? 0 : p->count), p->item_size);
        if (p->compare)
                heap_close(p);
}
