/* SPDX-License-Identifier: MIT */
#ifndef RS_LIST_H
#define RS_LIST_H

/* An intrusive list, ended by NULL at both sides, so that an all-zero list is an empty one and needs no initialiser. */

#include <stdbool.h>
#include <stddef.h>

#define RS_CONTAINER(p, type, member) ((type *)(void *)((char *)(p)-offsetof(type, member)))
#define RS_LIKELY(x) __builtin_expect(!!(x), 1)
#define RS_UNLIKELY(x) __builtin_expect(!!(x), 0)

struct rs_node {
        struct rs_node *next, *prev;
};

struct rs_list {
        struct rs_node *first, *last;
};

static inline bool rs_list_empty(const struct rs_list *l)
{
        return !l->first;
}

static inline void rs_list_push(struct rs_list *l, struct rs_node *n)
{
        n->next = NULL;
        n->prev = l->last;
        *(l->last ? &l->last->next : &l->first) = n;
        l->last = n;
}

static inline void rs_list_remove(struct rs_list *l, struct rs_node *n)
{
        *(n->prev ? &n->prev->next : &l->first) = n->next;
        *(n->next ? &n->next->prev : &l->last) = n->prev;
        n->next = n->prev = NULL;
}

static inline struct rs_node *rs_list_pop(struct rs_list *l)
{
        struct rs_node *n = l->first;

        if (n)
                rs_list_remove(l, n);
        return n;
}

#endif
