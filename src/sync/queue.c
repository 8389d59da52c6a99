/* SPDX-License-Identifier: MIT */
/* The bounded queue: a ring of items, a line of getters, a line of putters.
 *
 * Invariants
 *  1. Getters wait only while the ring is empty, putters only while it is full.
 *  2. Hand-over is direct: a put copies its item into the first getter's memory; a get that makes a place copies the
 *     first putter's item into the ring. Whoever is woken has nothing left to do, so nobody overtakes, and a cancel
 *     that comes after changes nothing. */

#include <string.h>

#include "base/alloc.h"
#include "core/core.h"

enum { ITEM_MAX = 65536 };

struct resha_queue {
        size_t item_size, capacity;
        size_t head, count;              /* items, not bytes */
        struct rs_list getters, putters; /* of queue_wait.wait.node */
        resha_drop_fn *drop;
        bool shutdown;
        _Alignas(max_align_t) char items[]; /* a drop function gets a pointer into it */
};

struct queue_wait {
        struct rs_wait wait;
        struct rs_list *line; /* it stands in */
        void *item;           /* to copy from or to */
};

int resha_queue_new(size_t item_size, size_t capacity, resha_drop_fn *drop, resha_queue **ret_queue)
{
        size_t bytes;

        if (!item_size || item_size > ITEM_MAX || !capacity || __builtin_mul_overflow(item_size, capacity, &bytes) ||
            __builtin_add_overflow(bytes, sizeof(resha_queue), &bytes))
                return -EINVAL;
        resha_queue *q = resha_malloc(bytes);
        if (!q)
                return -ENOMEM;
        *q = (resha_queue){ .item_size = item_size, .capacity = capacity, .drop = drop };
        *ret_queue = q;
        return 0;
}

static char *slot(resha_queue *q, size_t i)
{
        size_t at = q->head + i;

        return q->items + (at >= q->capacity ? at - q->capacity : at) * q->item_size;
}

/* Items are mostly a pointer or an int: worth a copy without a call. */
static void copy_item(void *to, const void *from, size_t size)
{
        if (size == sizeof(uint64_t))
                memcpy(to, from, sizeof(uint64_t));
        else if (size == sizeof(uint32_t))
                memcpy(to, from, sizeof(uint32_t));
        else
                memcpy(to, from, size);
}

void resha_queue_free(resha_queue *q)
{
        if (!q)
                return;
        if (!rs_list_empty(&q->getters) || !rs_list_empty(&q->putters))
                rs_task_abort(rs_loop_current ? rs_loop_current->current : NULL,
                              "frees a queue that tasks wait for; end their group first");
        for (size_t i = 0; q->drop && i < q->count; i++)
                q->drop(slot(q, i));
        resha_free(q);
}

void resha_queue_freep(resha_queue **q)
{
        resha_queue_free(*q);
        *q = NULL;
}

static void append(resha_queue *q, const void *item)
{
        copy_item(slot(q, q->count), item, q->item_size);
        q->count++;
}

static inline int try_put(resha_queue *q, const void *item)
{
        struct rs_node *n;

        if (RS_UNLIKELY(q->shutdown))
                return 0;
        if ((n = rs_list_pop(&q->getters))) {
                struct queue_wait *w = RS_CONTAINER(n, struct queue_wait, wait.node);
                copy_item(w->item, item, q->item_size);
                rs_wake(&w->wait, 1);
                return 1;
        }
        if (q->count == q->capacity)
                return -EAGAIN;
        append(q, item);
        return 1;
}

static inline int try_get(resha_queue *q, void *ret_item)
{
        struct rs_node *n;

        if (!q->count)
                return q->shutdown ? 0 : -EAGAIN;
        copy_item(ret_item, slot(q, 0), q->item_size);
        q->head = q->head + 1 == q->capacity ? 0 : q->head + 1;
        q->count--;
        if ((n = rs_list_pop(&q->putters))) {
                struct queue_wait *w = RS_CONTAINER(n, struct queue_wait, wait.node);
                append(q, w->item);
                rs_wake(&w->wait, 1);
        }
        return 1;
}

int resha_queue_try_put(resha_queue *q, const void *item)
{
        return try_put(q, item);
}

int resha_queue_try_get(resha_queue *q, void *ret_item)
{
        return try_get(q, ret_item);
}

static void queue_cancel(struct rs_wait *wait)
{
        struct queue_wait *w = RS_CONTAINER(wait, struct queue_wait, wait);

        rs_list_remove(w->line, &wait->node);
        rs_wake(wait, -ECANCELED);
}

static int stand_in_line(struct rs_loop *l, resha_queue *q, struct rs_list *line, void *item, const char *what)
{
        struct queue_wait w = { .wait = { .cancel = queue_cancel, .what = what, .object = q },
                                .line = line,
                                .item = item };

        rs_list_push(line, &w.wait.node);
        return (int)rs_wait(l, &w.wait);
}

int resha_queue_put(resha_queue *q, const void *item)
{
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (RS_UNLIKELY(rc < 0))
                return rc;
        rc = try_put(q, item);
        if (rc != -EAGAIN)
                return rs_complete(l, rc);
        return stand_in_line(l, q, &q->putters, (void *)(uintptr_t)item, "place in queue");
}

int resha_queue_get(resha_queue *q, void *ret_item)
{
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (RS_UNLIKELY(rc < 0))
                return rc;
        rc = try_get(q, ret_item);
        if (rc != -EAGAIN)
                return rs_complete(l, rc);
        return stand_in_line(l, q, &q->getters, ret_item, "item of queue");
}

static void wake_line(struct rs_list *line)
{
        struct rs_node *n;

        while ((n = rs_list_pop(line)))
                rs_wake(RS_CONTAINER(n, struct rs_wait, node), 0);
}

void resha_queue_shutdown(resha_queue *q)
{
        q->shutdown = true;
        wake_line(&q->getters); /* empty unless the ring is */
        wake_line(&q->putters);
}

size_t resha_queue_count(const resha_queue *q)
{
        return q->count;
}
