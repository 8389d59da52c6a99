/* SPDX-License-Identifier: MIT */
/* Pairing heap. Fredman, Sedgewick, Sleator, Tarjan, "The pairing heap" (Algorithmica 1, 1986): two-pass merging, here
 * with loops instead of recursion, because a heap of a million timers set in descending order has a chain as deep. */

#include "base/heap.h"

#include <assert.h>

static bool before(const struct rs_timer *a, const struct rs_timer *b)
{
        return a->deadline < b->deadline || (a->deadline == b->deadline && a->seq < b->seq);
}

/* Both are roots without siblings; the later becomes the first child of the earlier. */
static struct rs_timer *meld(struct rs_timer *a, struct rs_timer *b)
{
        if (before(b, a)) {
                struct rs_timer *t = a;
                a = b;
                b = t;
        }
        b->next = a->child;
        b->prev = a;
        if (a->child)
                a->child->prev = b;
        a->child = b;
        return a;
}

/* First pass: meld neighbours in pairs, from the left, onto a stack; second pass: meld the stack from the right. */
static struct rs_timer *merge_children(struct rs_timer *first)
{
        struct rs_timer *stack = NULL, *root = NULL;

        while (first) {
                struct rs_timer *a = first, *b = a->next;
                first = b ? b->next : NULL;
                a->next = a->prev = NULL;
                if (b) {
                        b->next = b->prev = NULL;
                        a = meld(a, b);
                }
                a->next = stack;
                stack = a;
        }
        while (stack) {
                struct rs_timer *a = stack;
                stack = a->next;
                a->next = NULL;
                root = root ? meld(root, a) : a;
        }
        if (root)
                root->prev = NULL;
        return root;
}

void rs_heap_insert(struct rs_heap *h, struct rs_timer *t)
{
        assert(!rs_timer_active(t));
        t->seq = ++h->seq;
        t->child = t->next = t->prev = NULL;
        h->root = h->root ? meld(h->root, t) : t;
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
                        h->root = meld(h->root, rest);
        }
        t->seq = 0;
        t->child = t->next = t->prev = NULL;
}
