/* SPDX-License-Identifier: MIT */
/* The books of queues, and of what channels share with them: how many items went in and out, and that they were the
 * same ones, by a sum of what they hold.
 *
 * An item on its way is in none or in both of the counts: a put that gave its item to a waiting getter has returned
 * before the getter has; an item that was taken from a waiting putter is out before that putter has returned. */

#include "books.h"

struct entry *items_dropping;

void items_inside_end(size_t **count)
{
        (**count)--;
}

/* Of the bytes of an item: the sum over those put and those taken is the same exactly if the items are, but for one
 * chance in 2^64. */
uint64_t items_sum(const struct entry *e, const void *item)
{
        const unsigned char *bytes = item;
        uint64_t h = UINT64_C(0xcbf29ce484222325);

        for (size_t i = 0; i < e->item_size; i++)
                h = (h ^ bytes[i]) * UINT64_C(0x100000001b3);
        return h ^ h >> 29;
}

int items_check(const struct entry *e, int rc)
{
        if (e->loose)
                return rc;
        const char *what = e->kind == QUEUE ? "queue" : "channel";
        int64_t count = e->kind == QUEUE ? (int64_t)resha_queue_count(e->at) : channel_inside(e),
                lost = e->in - e->out - e->gone - count;

        if (e == items_dropping)
                return rc;
        if (lost > (int64_t)e->takers || lost < -(int64_t)e->givers)
                audit_wrong("%s: %lld put, %lld taken, %lld dropped, %lld inside, %zu getters, %zu putters", what,
                            (long long)e->in, (long long)e->out, (long long)e->gone, (long long)count, e->takers,
                            e->givers);
        if (!count && !e->takers && !e->givers && e->sum)
                audit_wrong("%s: as many items came out as went in, but not the same ones", what);
        return rc;
}

void items_put(struct entry *e, uint64_t sum)
{
        e->in++;
        e->sum += sum;
}

void items_got(struct entry *e, const void *item)
{
        e->out++;
        e->sum -= items_sum(e, item);
}

/* ---- made and freed ---- */

void items_drop(void *item)
{
        struct entry *e = items_dropping;

        e->gone++;
        e->sum -= items_sum(e, item);
        e->drop(item);
        items_dropping = e;
}

int audit_queue_new_opt(size_t item_size, size_t capacity, const resha_queue_opts *opts, resha_queue **ret_queue)
{
        resha_queue_opts o = opts ? *opts : (resha_queue_opts){ 0 };

        o.drop = o.drop ? items_drop : NULL;
        int rc = resha_queue_new_opt(item_size, capacity, opts ? &o : NULL, ret_queue);
        if (rc < 0)
                return rc;
        struct entry *e = books_fresh(*ret_queue, QUEUE);
        e->item_size = item_size;
        e->drop = opts ? opts->drop : NULL;
        return rc;
}

int audit_queue_new(size_t item_size, size_t capacity, resha_drop_fn *drop_fn, resha_queue **ret_queue)
{
        return audit_queue_new_opt(item_size, capacity, &(resha_queue_opts){ .drop = drop_fn }, ret_queue);
}

void audit_queue_free(resha_queue *q)
{
        struct entry *e = q ? books_find(q, QUEUE) : NULL;
        int64_t count = q ? (int64_t)resha_queue_count(q) : 0, gone = e ? e->gone : 0;

        if (e)
                items_check(e, 0);
        items_dropping = e;
        resha_queue_free(q);
        items_dropping = NULL;
        if (e && e->drop && e->gone - gone != count)
                audit_wrong("queue: freed with %lld items, %lld were dropped", (long long)count,
                            (long long)(e->gone - gone));
        if (e && e->drop && !e->loose && !e->takers && !e->givers && e->sum)
                audit_wrong("queue: the items that came out are not those that went in");
        if (e)
                e->loose = e->freed = true; /* its memory may be another queue's */
}

void audit_queue_freep(resha_queue **q)
{
        audit_queue_free(*q);
        *q = NULL;
}

void audit_queue_shutdown_now(resha_queue *q)
{
        struct entry *e = books_find(q, QUEUE);
        int64_t count = (int64_t)resha_queue_count(q);

        items_dropping = e;
        resha_queue_shutdown_now(q);
        items_dropping = NULL;
        if (!e)
                return;
        if (!e->drop && count) {
                e->loose = true; /* nobody tells which ones */
                return;
        }
        items_check(e, 0);
}

/* ---- put and get ---- */

static int put_inside(struct entry *e, resha_queue *q, const void *item)
{
        size_t *inside __attribute__((cleanup(items_inside_end), unused)) = &e->givers;

        e->givers++;
        return resha_queue_put(q, item);
}

int audit_queue_put(resha_queue *q, const void *item)
{
        struct entry *e = books_find(q, QUEUE);

        if (!e)
                return resha_queue_put(q, item);
        uint64_t sum = items_sum(e, item);
        int rc = put_inside(e, q, item);
        if (rc == 1)
                items_put(e, sum);
        return items_check(e, rc);
}

static int get_inside(struct entry *e, resha_queue *q, void *ret_item)
{
        size_t *inside __attribute__((cleanup(items_inside_end), unused)) = &e->takers;

        e->takers++;
        return resha_queue_get(q, ret_item);
}

int audit_queue_get(resha_queue *q, void *ret_item)
{
        struct entry *e = books_find(q, QUEUE);

        if (!e)
                return resha_queue_get(q, ret_item);
        int rc = get_inside(e, q, ret_item);
        if (rc == 1)
                items_got(e, ret_item);
        return items_check(e, rc);
}

int audit_queue_try_put(resha_queue *q, const void *item)
{
        struct entry *e = books_find(q, QUEUE);
        uint64_t sum = e ? items_sum(e, item) : 0;
        int rc = resha_queue_try_put(q, item);

        if (e && rc == 1)
                items_put(e, sum);
        return e ? items_check(e, rc) : rc;
}

int audit_queue_try_get(resha_queue *q, void *ret_item)
{
        struct entry *e = books_find(q, QUEUE);
        int rc = resha_queue_try_get(q, ret_item);

        if (e && rc == 1)
                items_got(e, ret_item);
        return e ? items_check(e, rc) : rc;
}

/* ---- select ---- */

static bool takes(const resha_case *c)
{
        return c->_kind == RESHA_CASE_GET || c->_kind == RESHA_CASE_RECV;
}

static struct entry *items_of(const resha_case *c)
{
        bool queue = c->_kind == RESHA_CASE_GET || c->_kind == RESHA_CASE_PUT;
        bool channel = c->_kind == RESHA_CASE_RECV || c->_kind == RESHA_CASE_SEND;

        return (queue || channel) && c->_on._queue ? books_find(c->_on._queue, queue ? QUEUE : CHANNEL) : NULL;
}

struct selecting {
        resha_case *cases;
        size_t n;
};

static void count_cases(const struct selecting *s, size_t by)
{
        for (size_t i = 0; i < s->n; i++) {
                struct entry *e = items_of(&s->cases[i]);
                if (e)
                        *(takes(&s->cases[i]) ? &e->takers : &e->givers) += by;
        }
}

static void selecting_end(struct selecting *s)
{
        count_cases(s, (size_t)-1);
}

static int select_inside(resha_case *cases, size_t n, bool try)
{
        struct selecting s __attribute__((cleanup(selecting_end), unused)) = { cases, n };

        count_cases(&s, 1);
        return try ? resha_try_select(cases, n) : resha_select(cases, n);
}

static int selected(resha_case *cases, size_t n, bool try)
{
        int which = select_inside(cases, n, try);

        if (which >= (int)n)
                audit_wrong("select: case %d of %zu", which, n);
        struct entry *e = which >= 0 ? items_of(&cases[which]) : NULL;
        if (e && cases[which].result == 1 && takes(&cases[which]))
                items_got(e, cases[which]._item._to);
        else if (e && cases[which].result == 1)
                items_put(e, items_sum(e, cases[which]._item._from));
        for (size_t i = 0; i < n; i++)
                if ((e = items_of(&cases[i])))
                        items_check(e, 0);
        return which;
}

int audit_select(resha_case *cases, size_t n)
{
        return selected(cases, n, false);
}

int audit_try_select(resha_case *cases, size_t n)
{
        return selected(cases, n, true);
}
