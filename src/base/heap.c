/* SPDX-License-Identifier: MIT */
/* Pairing heap. Fredman, Sedgewick, Sleator, Tarjan, "The pairing heap" (Algorithmica 1, 1986): two-pass merging, here
 * with loops instead of recursion, because a heap of a million timers set in descending order has a chain as deep. */

#include "base/heap.h"

#include <assert.h>

#include "base/list.h"

static bool before(const struct rs_timer *a, const struct rs_timer *b)
{
        return (a->deadline < b->deadline) | ((a->deadline == b->deadline) & (a->seq < b->seq));
}

/* Both are roots; what `later` says of its neighbours is not looked at. */
static inline struct rs_timer *add_child(struct rs_timer *first, struct rs_timer *later)
{
        later->next = first->child;
        later->prev = first;
        if (first->child)
                first->child->prev = later;
        first->child = later;
        return first;
}

/* A root and a new timer: mostly the root is the earlier one. */
static inline struct rs_timer *meld_new(struct rs_timer *root, struct rs_timer *t)
{
        return RS_UNLIKELY(before(t, root)) ? add_child(t, root) : add_child(root, t);
}

/* Two among children: which is later is a toss that no branch predictor wins, so it is arithmetic. */
static inline struct rs_timer *meld(struct rs_timer *a, struct rs_timer *b)
{
        uintptr_t swap = ((uintptr_t)a ^ (uintptr_t)b) & -(uintptr_t)before(b, a);

        return add_child((void *)((uintptr_t)a ^ swap), (void *)((uintptr_t)b ^ swap));
}

/* First pass: meld neighbours in pairs, from the left, onto a stack; second pass: meld the stack from the right. */
static struct rs_timer *merge_children(struct rs_timer *first)
{
        struct rs_timer *stack = NULL, *root;

        while (first) {
                struct rs_timer *a = first, *b = a->next;
                first = b ? b->next : NULL;
                if (b)
                        a = meld(a, b);
                a->next = stack;
                stack = a;
        }
        for (root = stack, stack = root->next; stack;) {
                struct rs_timer *a = stack;
                stack = a->next;
                root = meld(root, a);
        }
        root->next = root->prev = NULL;
        return root;
}

void rs_heap_insert(struct rs_heap *h, struct rs_timer *t)
{
        assert(!rs_timer_active(t));
        t->seq = ++h->seq;
        t->child = t->next = t->prev = NULL;
        h->root = h->root ? meld_new(h->root, t) : t;
}

void rs_heap_remove(struct rs_heap *h, struct rs_timer *t)
{
        assert(rs_timer_active(t));
        struct rs_timer *rest = t->child ? merge_children(t->child) : NULL;

        if (t == h->root) {
                h->root = rest;
        } else {
                *(t->prev->child == t ? &t->prev->child : &t->prev->next) = t->next;
                if (t->next)
                        t->next->prev = t->prev;
                if (rest)
                        h->root = meld_new(h->root, rest);
        }
        t->seq = 0;
        t->child = t->next = t->prev = NULL;
}
