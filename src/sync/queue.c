/* SPDX-License-Identifier: MIT */
/* The queue: items inside, a line of getters, a line of putters, a line of those who wait until all is done.
 *
 * Bounded and in order of put, as most are, it is a ring, and that is the straight way through put and get. The others
 * leave that way where the ring is full or empty: a rendezvous has a ring of no places, a queue without a bound makes
 * its ring larger, and one in another order keeps its items in a pile (queue_order.c) behind a ring of no places.
 *
 * Invariants
 *  1. Getters wait only while nothing is inside, putters only while it is full. In the lines of a rendezvous both wait
 *     at once only where one task does (select).
 *  2. Hand-over is direct: a put copies its item into the first getter's memory; a get that makes a place copies the
 *     first putter's item inside. Whoever is woken has nothing left to do, so nobody overtakes, and a cancel that comes
 *     after changes nothing.
 *  3. unfinished >= items inside; who waits in `joiners` waits only while it is not 0. */

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "sync/item.h"
#include "sync/line.h"
#include "sync/queue.h"
#include "sync/waited.h"

enum { ITEM_MAX = 65536, ROOM_FIRST = 16 };

enum { ITEMS, GETTERS, PUTTERS, FIGURES, COUNT_MOST = 10000 };

enum kind { BOUNDED, UNBOUNDED, RENDEZVOUS, PILE };

struct resha_queue {
        char *items, *end; /* the ring's memory; a drop function gets a pointer into it */
        char *head, *tail;
        size_t item_size;
        size_t count, room; /* of the ring */
        size_t unfinished;
        struct rs_list getters, putters; /* of rs_queue_wait.wait.node */
        struct rs_list joiners;
        const struct rs_loop *home; /* of all who wait */
        size_t capacity;            /* as it was stated */
        enum kind kind;
        bool shutdown;
        resha_drop_fn *drop;
        struct rs_pile pile;
        struct rs_shown shown;
        uint64_t figures[FIGURES]; /* as they were when somebody looked */
};

/* ---- the ring ---- */

static inline char *next_of(const resha_queue *q, char *at)
{
        return at + q->item_size == q->end ? q->items : at + q->item_size;
}

static inline void append(resha_queue *q, const void *item)
{
        rs_item_copy(q->tail, item, q->item_size);
        q->tail = next_of(q, q->tail);
        q->count++;
}

/* A full one, or the first: what is inside comes to lie at the start of a larger one. */
static int ring_grow(resha_queue *q, size_t room)
{
        size_t bytes;
        char *items;

        assert(q->count == q->room && q->room < room);
        if (__builtin_mul_overflow(q->item_size, room, &bytes) || !(items = resha_malloc(bytes)))
                return -ENOMEM;
        size_t inside = q->count * q->item_size, straight = (size_t)(q->end - q->head);
        if (inside) {
                memcpy(items, q->head, straight);
                memcpy(items + straight, q->items, inside - straight);
        }
        resha_free(q->items);
        q->items = q->head = items;
        q->end = items + bytes;
        q->tail = items + inside;
        q->room = room;
        return 0;
}

/* ---- made and freed ---- */

static int check_opts(size_t item_size, size_t capacity, const resha_queue_opts *o)
{
        size_t bytes;

        if (!item_size || item_size > ITEM_MAX)
                return resha_fail_at(-EINVAL, NULL, "a queue of items of %zu bytes: 1 to %d are possible", item_size,
                                     ITEM_MAX);
        if (!rs_reserved_zero(o->_reserved))
                return resha_fail_at(-EINVAL, NULL, "a reserved word of a queue's options is not zero");
        if (o->order > RESHA_PRIORITY || (o->order == RESHA_PRIORITY) != (o->compare != NULL))
                return resha_fail_at(-EINVAL, NULL,
                                     "a queue has `compare` in the order RESHA_PRIORITY, and only there");
        if (capacity == 0 && o->order != RESHA_FIFO)
                return resha_fail_at(-EINVAL, NULL, "a queue of capacity 0 has no order but RESHA_FIFO");
        if (capacity != RESHA_UNBOUNDED && __builtin_mul_overflow(item_size + sizeof(uint64_t), capacity, &bytes))
                return resha_fail_at(-EINVAL, NULL, "a queue of %zu items of %zu bytes is larger than any memory",
                                     capacity, item_size);
        return 0;
}

static enum kind kind_of(size_t capacity, enum resha_queue_order order)
{
        return order != RESHA_FIFO           ? PILE
               : capacity == 0               ? RENDEZVOUS
               : capacity == RESHA_UNBOUNDED ? UNBOUNDED
                                             : BOUNDED;
}

/* ---- what is shown ---- */

static uint64_t length(const struct rs_list *line)
{
        uint64_t n = 0;

        for (const struct rs_node *w = line->first; w && n < COUNT_MOST; w = w->next)
                n++;
        return n;
}

static void refresh(void *object)
{
        resha_queue *q = object;

        q->figures[ITEMS] = q->count + q->pile.count;
        q->figures[GETTERS] = length(&q->getters);
        q->figures[PUTTERS] = length(&q->putters);
}

static void describe(const void *object, char *text, size_t size)
{
        const resha_queue *q = object;
        char of[32] = "";

        if (q->capacity != RESHA_UNBOUNDED)
                snprintf(of, sizeof of, " of %zu", q->capacity);
        snprintf(text, size, "%zu%s items, %" PRIu64 " wait to put, %" PRIu64 " to get%s", q->count + q->pile.count, of,
                 length(&q->putters), length(&q->getters), q->shutdown ? ", shut down" : "");
}

static const resha_figure figures[FIGURES] = {
        { "resha_queue_items", "Items inside of the queues.", RESHA_FIGURE_GAUGE, false },
        { "resha_queue_waiting_to_get", "Tasks that wait for an item, of each queue counted to 10,000.",
          RESHA_FIGURE_GAUGE, false },
        { "resha_queue_waiting_to_put", "Tasks that wait for room, of each queue counted to 10,000.",
          RESHA_FIGURE_GAUGE, false },
};

static const resha_shown_kind queue_kind = {
        .kind = "queue", .figures = figures, .count = FIGURES, .describe = describe, .refresh = refresh
};

int resha_queue_new_opt(size_t item_size, size_t capacity, const resha_queue_opts *opts, resha_queue **ret_queue)
{
        static const resha_queue_opts defaults;
        const resha_queue_opts *o = opts ? opts : &defaults;
        int rc = check_opts(item_size, capacity, o);

        if (rc < 0)
                return rc;
        resha_queue *q = resha_malloc(sizeof *q);
        if (!q)
                return -ENOMEM;
        *q = (resha_queue){ .item_size = item_size,
                            .capacity = capacity,
                            .kind = kind_of(capacity, o->order),
                            .drop = o->drop,
                            .pile = { .item_size = item_size, .compare = o->compare } };
        if (q->kind == BOUNDED)
                rc = ring_grow(q, capacity);
        else if (q->kind == PILE && capacity != RESHA_UNBOUNDED)
                rc = rs_pile_grow(&q->pile, capacity);
        if (rc < 0) {
                resha_free(q);
                return resha_fail_at(rc, NULL, "no memory for a queue of %zu items of %zu bytes", capacity, item_size);
        }
        if (rs_loop_current) {
                rs_shown_add(rs_loop_current, &q->shown, &queue_kind, q, -1);
                q->shown.values = q->figures;
                RS_OPENED_HERE(&q->shown);
        }
        *ret_queue = q;
        return 0;
}

int resha_queue_new(size_t item_size, size_t capacity, resha_drop_fn *drop, resha_queue **ret_queue)
{
        int rc = resha_queue_new_opt(item_size, capacity, &(resha_queue_opts){ .drop = drop }, ret_queue);

        if (rc == 0 && rs_loop_current)
                RS_OPENED_HERE(&(*ret_queue)->shown);
        return rc;
}

static void report_dropped(size_t n, const char *when)
{
        struct rs_loop *l = rs_loop_current;

        if (l)
                rs_report(
                        l, RESHA_REPORT_DROPPED, 0, l->current,
                        "%zu item%s of a queue %s dropped when it was %s; take them before, or give it a drop function",
                        n, n == 1 ? "" : "s", n == 1 ? "was" : "were", when);
}

/* All that is inside. No put comes after it. */
static void drop_all(resha_queue *q, const char *when)
{
        size_t in_ring = q->count, in_pile = q->pile.count;

        q->shutdown = true;
        q->count = q->pile.count = 0;
        q->unfinished -= in_ring + in_pile;
        if (!q->drop && in_ring + in_pile)
                report_dropped(in_ring + in_pile, when);
        if (!q->drop)
                return;
        for (; in_ring; in_ring--, q->head = next_of(q, q->head))
                q->drop(q->head);
        for (size_t i = 0; i < in_pile; i++)
                q->drop(rs_pile_at(&q->pile, i));
}

void resha_queue_free(resha_queue *q)
{
        if (!q)
                return;
        if (!rs_list_empty(&q->getters) || !rs_list_empty(&q->putters) || !rs_list_empty(&q->joiners))
                rs_task_abort(rs_loop_current ? rs_loop_current->current : NULL,
                              "frees a queue that tasks wait for; end their group first");
        drop_all(q, "freed");
        rs_shown_remove(&q->shown);
        resha_free(q->items);
        resha_free(q->pile.items);
        resha_free(q);
}

void resha_queue_freep(resha_queue **q)
{
        resha_queue_free(*q);
        *q = NULL;
}

/* ---- put and get ---- */

/* Where the ring has no place for it. */
static __attribute__((noinline)) int put_otherwise(resha_queue *q, const void *item)
{
        struct rs_pile *p = &q->pile;
        bool larger = q->kind == UNBOUNDED || (q->kind == PILE && q->capacity == RESHA_UNBOUNDED);
        size_t room = q->kind == PILE ? p->room : q->room, count = q->kind == PILE ? p->count : q->count;
        int rc = 0;

        if (count == room && !larger)
                return -EAGAIN;
        if (count == room) {
                room = room ? 2 * room : ROOM_FIRST;
                rc = q->kind == PILE ? rs_pile_grow(p, room) : ring_grow(q, room);
        }
        if (rc < 0)
                return resha_fail_at(rc, NULL, "no memory for item %zu of a queue without a bound", count + 1);
        if (q->kind == PILE)
                rs_pile_push(p, item);
        else
                append(q, item);
        q->unfinished++;
        return 1;
}

static inline __attribute__((always_inline)) int try_put(struct rs_loop *l, resha_queue *q, const void *item)
{
        struct rs_node *n;

        if (RS_UNLIKELY(q->shutdown))
                return 0;
        if ((n = q->getters.first)) {
                if (RS_UNLIKELY(q->home != l))
                        return rs_line_refuse("queue");
                rs_list_remove(&q->getters, n);
                struct rs_queue_wait *w = RS_CONTAINER(n, struct rs_queue_wait, wait.node);
                rs_item_copy(w->item, item, q->item_size);
                q->unfinished++;
                rs_wake(&w->wait, 1);
                return 1;
        }
        if (q->count == q->room)
                return RS_LIKELY(q->kind == BOUNDED) ? -EAGAIN : put_otherwise(q, item);
        append(q, item);
        q->unfinished++;
        return 1;
}

/* Where the ring is empty. */
static __attribute__((noinline)) int get_otherwise(struct rs_loop *l, resha_queue *q, void *ret_item)
{
        if (q->putters.first && q->home != l)
                return rs_line_refuse("queue");
        bool piled = q->pile.count > 0;

        if (piled)
                rs_pile_pop(&q->pile, ret_item);
        struct rs_node *n = rs_list_pop(&q->putters);
        if (n) {
                struct rs_queue_wait *w = RS_CONTAINER(n, struct rs_queue_wait, wait.node);
                if (piled)
                        rs_pile_push(&q->pile, w->item);
                else
                        rs_item_copy(ret_item, w->item, q->item_size);
                q->unfinished++;
                rs_wake(&w->wait, 1);
        }
        return piled || n ? 1 : q->shutdown ? 0 : -EAGAIN;
}

static inline __attribute__((always_inline)) int try_get(struct rs_loop *l, resha_queue *q, void *ret_item)
{
        struct rs_node *n;

        if (!q->count)
                return RS_UNLIKELY(q->kind != BOUNDED) ? get_otherwise(l, q, ret_item) : q->shutdown ? 0 : -EAGAIN;
        if (RS_UNLIKELY((n = q->putters.first) && q->home != l))
                return rs_line_refuse("queue");
        rs_item_copy(ret_item, q->head, q->item_size);
        q->head = next_of(q, q->head);
        q->count--;
        if (n) {
                rs_list_remove(&q->putters, n);
                struct rs_queue_wait *w = RS_CONTAINER(n, struct rs_queue_wait, wait.node);
                append(q, w->item);
                q->unfinished++;
                rs_wake(&w->wait, 1);
        }
        return 1;
}

int resha_queue_try_put(resha_queue *q, const void *item)
{
        rs_wake_check(&q->getters);
        return try_put(rs_loop_current, q, item);
}

int resha_queue_try_get(resha_queue *q, void *ret_item)
{
        rs_wake_check(&q->putters);
        return try_get(rs_loop_current, q, ret_item);
}

/* ---- the lines ---- */

static void queue_cancel(struct rs_wait *wait)
{
        rs_queue_leave(RS_CONTAINER(wait, struct rs_queue_wait, wait));
        rs_wake(wait, -ECANCELED);
}

bool rs_queue_elsewhere(const struct rs_loop *l, const resha_queue *q)
{
        return q->home != l && (q->getters.first || q->putters.first || q->joiners.first);
}

void rs_queue_stand(struct rs_queue_wait *w, resha_queue *q, bool put, void *item)
{
        w->line = put ? &q->putters : &q->getters;
        w->item = item;
        q->home = rs_loop_current;
        rs_list_push(w->line, &w->wait.node);
}

static int stand_in_line(struct rs_loop *l, resha_queue *q, struct rs_list *line, void *item, const char *what)
{
        struct rs_queue_wait w = { .wait = { .cancel = queue_cancel, .what = what, .object = q },
                                   .line = line,
                                   .item = item };

        if (RS_UNLIKELY(rs_queue_elsewhere(l, q)))
                return rs_line_refuse("queue");
        q->home = l;
        rs_list_push(line, &w.wait.node);
        return (int)rs_wait(l, &w.wait);
}

int resha_queue_put(resha_queue *q, const void *item)
{
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (RS_UNLIKELY(rc < 0))
                return rc;
        rc = try_put(l, q, item);
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
        rc = try_get(l, q, ret_item);
        if (rc != -EAGAIN)
                return rs_complete(l, rc);
        return stand_in_line(l, q, &q->getters, ret_item, "item of queue");
}

static void wake_line(struct rs_list *line)
{
        struct rs_node *n;

        rs_wake_check(line);
        while ((n = rs_list_pop(line)))
                rs_wake(RS_CONTAINER(n, struct rs_wait, node), 0);
}

/* ---- until all is done ---- */

int resha_queue_task_done(resha_queue *q)
{
        if (q->unfinished == resha_queue_count(q))
                return rs_misuse(-EINVAL, "an item of a queue is told done that nobody has taken: once for each get");
        if (--q->unfinished == 0)
                wake_line(&q->joiners);
        return 0;
}

int resha_queue_join(resha_queue *q)
{
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (rc < 0)
                return rc;
        if (!q->unfinished)
                return rs_complete(l, 0);
        return stand_in_line(l, q, &q->joiners, NULL, "end of queue's work");
}

void resha_queue_shutdown(resha_queue *q)
{
        q->shutdown = true;
        wake_line(&q->getters); /* empty unless nothing is inside */
        wake_line(&q->putters);
}

/* Who waits is told first: a drop function that looks at the queue finds nobody's item in it. */
void resha_queue_shutdown_now(resha_queue *q)
{
        resha_queue_shutdown(q);
        drop_all(q, "shut down at once");
        if (!q->unfinished)
                wake_line(&q->joiners);
}

size_t resha_queue_count(const resha_queue *q)
{
        return q->count + q->pile.count;
}

size_t resha_queue_unfinished(const resha_queue *q)
{
        return q->unfinished;
}

/* ---- for who looks from outside ---- */

static void queue_see(const struct rs_reader *r, const struct rs_wait *at, const struct rs_wait *w,
                      struct rs_waited *ret)
{
        resha_queue q;

        (void)at;
        if (!r->read(&q, w->object, sizeof q))
                return;
        size_t inside = q.kind == PILE ? q.pile.count : q.count, put = rs_waited_count(r, w, &q.putters);
        size_t get = rs_waited_count(r, w, &q.getters), join = rs_waited_count(r, w, &q.joiners);
        char of[32] = "";

        ret->kind = "queue";
        ret->held = inside;
        ret->limit = q.capacity == RESHA_UNBOUNDED ? 0 : q.capacity;
        ret->waiting = put + get + join;
        if (q.capacity != RESHA_UNBOUNDED)
                snprintf(of, sizeof of, " of %zu", q.capacity);
        snprintf(ret->state, sizeof ret->state, "%zu%s items, %zu%s wait to put, %zu%s to get%s", inside, of, put,
                 put < RS_WAITED_COUNT ? "" : "+", get, get < RS_WAITED_COUNT ? "" : "+",
                 join ? ", some until all is done" : "");
}

const struct rs_waits rs_queue_waits = { .cancel = queue_cancel, .see = queue_see };
