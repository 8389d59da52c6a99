/* SPDX-License-Identifier: MIT */
#ifndef RS_HEAP_H
#define RS_HEAP_H

/* A pairing heap of timers: intrusive, so that setting one never allocates. Insert O(1); remove, at any place, and pop
 * O(log n) amortised. Order: deadline, then the order of insertion. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rs_timer {
        int64_t deadline; /* ns of the loop's clock */
        uint64_t seq;     /* set by insert; 0: not in a heap */
        struct rs_timer *child, *next;
        struct rs_timer *prev; /* the left sibling, or the parent if first child; NULL for the root */
        void (*fire)(struct rs_timer *t);
};

struct rs_heap {
        struct rs_timer *root;
        uint64_t seq; /* last one given */
};

void rs_heap_insert(struct rs_heap *h, struct rs_timer *t);
void rs_heap_remove(struct rs_heap *h, struct rs_timer *t);

static inline bool rs_timer_active(const struct rs_timer *t)
{
        return t->seq != 0;
}

static inline struct rs_timer *rs_heap_first(const struct rs_heap *h)
{
        return h->root;
}

#endif
