/* SPDX-License-Identifier: MIT */
/* The books of queues: how many items went in and out, and that they were the same ones, by a sum of what they hold.
 *
 * An item on its way is in none or in both of the counts: a put that gave its item to a waiting getter has returned
 * before the getter has; an item that was taken from a waiting putter is out before that putter has returned. */

#include "books.h"

static struct entry *dropping; /* the queue whose items are being dropped */

static void inside_end(size_t **count)
{
        (**count)--;
}

/* Of the bytes of an item: the sum over those put and those taken is the same exactly if the items are, but for one
 * chance in 2^64. */
static uint64_t sum_of(const struct entry *e, const void *item)
{
        const unsigned char *bytes = item;
        uint64_t h = UINT64_C(0xcbf29ce484222325);

        for (size_t i = 0; i < e->item_size; i++)
                h = (h ^ bytes[i]) * UINT64_C(0x100000001b3);
        return h ^ h >> 29;
}

static int queue_check(const struct entry *e, int rc)
{
        const resha_queue *q = e->at;
        int64_t count = (int64_t)resha_queue_count(q), lost = e->in - e->out - e->gone - count;

        if (e->loose || e == dropping)
                return rc;
        if (lost > (int64_t)e->takers || lost < -(int64_t)e->givers)
                audit_wrong("queue: %lld put, %lld taken, %lld dropped, %lld inside, %zu getters, %zu putters",
                            (long long)e->in, (long long)e->out, (long long)e->gone, (long long)count, e->takers,
                            e->givers);
        if (!count && !e->takers && !e->givers && e->sum)
                audit_wrong("queue: as many items came out as went in, but not the same ones");
        return rc;
}

static void put_done(struct entry *e, uint64_t sum)
{
        e->in++;
        e->sum += sum;
}

static void get_done(struct entry *e, const void *item)
{
        e->out++;
        e->sum -= sum_of(e, item);
}

/* ---- made and freed ---- */

static void drop(void *item)
{
        struct entry *e = dropping;

        e->gone++;
        e->sum -= sum_of(e, item);
        e->drop(item);
        dropping = e;
}

int audit_queue_new_opt(size_t item_size, size_t capacity, const resha_queue_opts *opts, resha_queue **ret_queue)
{
        resha_queue_opts o = opts ? *opts : (resha_queue_opts){ 0 };

        o.drop = o.drop ? drop : NULL;
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
                queue_check(e, 0);
        dropping = e;
        resha_queue_free(q);
        dropping = NULL;
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

        dropping = e;
        resha_queue_shutdown_now(q);
        dropping = NULL;
        if (!e)
                return;
        if (!e->drop && count) {
                e->loose = true; /* nobody tells which ones */
                return;
        }
        queue_check(e, 0);
}

/* ---- put and get ---- */

static int put_inside(struct entry *e, resha_queue *q, const void *item)
{
        size_t *inside __attribute__((cleanup(inside_end), unused)) = &e->givers;

        e->givers++;
        return resha_queue_put(q, item);
}

int audit_queue_put(resha_queue *q, const void *item)
{
        struct entry *e = books_find(q, QUEUE);

        if (!e)
                return resha_queue_put(q, item);
        uint64_t sum = sum_of(e, item);
        int rc = put_inside(e, q, item);
        if (rc == 1)
                put_done(e, sum);
        return queue_check(e, rc);
}

static int get_inside(struct entry *e, resha_queue *q, void *ret_item)
{
        size_t *inside __attribute__((cleanup(inside_end), unused)) = &e->takers;

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
                get_done(e, ret_item);
        return queue_check(e, rc);
}

int audit_queue_try_put(resha_queue *q, const void *item)
{
        struct entry *e = books_find(q, QUEUE);
        uint64_t sum = e ? sum_of(e, item) : 0;
        int rc = resha_queue_try_put(q, item);

        if (e && rc == 1)
                put_done(e, sum);
        return e ? queue_check(e, rc) : rc;
}

int audit_queue_try_get(resha_queue *q, void *ret_item)
{
        struct entry *e = books_find(q, QUEUE);
        int rc = resha_queue_try_get(q, ret_item);

        if (e && rc == 1)
                get_done(e, ret_item);
        return e ? queue_check(e, rc) : rc;
}

/* ---- select ---- */

static struct entry *queue_of(const resha_case *c)
{
        bool queue = c->_kind == RESHA_CASE_GET || c->_kind == RESHA_CASE_PUT;

        return queue && c->_on._queue ? books_find(c->_on._queue, QUEUE) : NULL;
}

struct selecting {
        resha_case *cases;
        size_t n;
};

static void count_cases(const struct selecting *s, size_t by)
{
        for (size_t i = 0; i < s->n; i++) {
                struct entry *e = queue_of(&s->cases[i]);
                if (e)
                        *(s->cases[i]._kind == RESHA_CASE_GET ? &e->takers : &e->givers) += by;
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
        struct entry *e = which >= 0 ? queue_of(&cases[which]) : NULL;
        if (e && cases[which].result == 1 && cases[which]._kind == RESHA_CASE_GET)
                get_done(e, cases[which]._item._to);
        else if (e && cases[which].result == 1)
                put_done(e, sum_of(e, cases[which]._item._from));
        for (size_t i = 0; i < n; i++)
                if ((e = queue_of(&cases[i])))
                        queue_check(e, 0);
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
