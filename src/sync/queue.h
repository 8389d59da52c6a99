/* SPDX-License-Identifier: MIT */
#ifndef RS_QUEUE_H
#define RS_QUEUE_H

/* Between the queue's files and select. */

#include "core/core.h"

/* Items in another order than that of put (queue_order.c): the latest first, or the smallest. */
struct rs_pile {
        char *items;    /* room of them; behind them, where they are compared, a number for each: when it was put */
        uint64_t *when; /* NULL: not compared */
        size_t item_size, count, room;
        uint64_t puts;
        int (*compare)(const void *a, const void *b); /* NULL: the latest first */
};

int rs_pile_grow(struct rs_pile *p, size_t room);                 /* 0 or -ENOMEM */
void rs_pile_push(struct rs_pile *p, const void *item);           /* there is room */
void rs_pile_pop(struct rs_pile *p, void *ret_item);              /* there is one */
static inline void *rs_pile_at(const struct rs_pile *p, size_t i) /* in no order */
{
        return p->items + i * p->item_size;
}

/* One who waits for a queue: for an item, a place, or that all is done. */
struct rs_queue_wait {
        struct rs_wait wait;
        struct rs_list *line; /* it stands in */
        void *item;           /* to copy from or to */
};

/* Whether tasks of another loop wait for it: nobody of this one may stand in its lines then. */
bool rs_queue_elsewhere(const struct rs_loop *l, const resha_queue *q);

/* At the end of the line of those who get or put, when it cannot be done at once. */
void rs_queue_stand(struct rs_queue_wait *w, resha_queue *q, bool put, void *item);

static inline void rs_queue_leave(struct rs_queue_wait *w)
{
        rs_list_remove(w->line, &w->wait.node);
}

#endif
