/* SPDX-License-Identifier: MIT */
/* Maps: one function over many items, by as many runners as may work at once.
 *
 * A runner is a work of the pool. It takes the next item, calls the function, and so on until there is none, or the map
 * was stopped (a failure, a cancel); then it comes back to the loop, and the last one wakes the task. There is no more
 * for an item than the call and one atomic addition. Where others wait for a thread, a runner goes to the end of the
 * crew's queue after each item, so that a long map and jobs of others take turns.
 *
 * Who comes back takes those along that have not begun and have nothing to do: they may stand behind long jobs.
 *
 * Invariants
 *  1. An index is taken only by who sees that the map is not stopped; an item that was taken is worked on to its end.
 *     So the items that never started are those from `next` on, once all runners are back.
 *  2. Results and records of an item are written by its runner alone, before it comes back. */

#include "exec/pool.h"

#include <resha/alloc.h>

struct map;

struct runner {
        struct rs_placed placed;
        struct map *map;
        struct rs_records records; /* of the item it works on */
        size_t done;               /* items */
        bool out;                  /* is back, or never went */
};

struct map {
        struct rs_wait wait;
        resha_pool *pool;
        resha_fn *fn;
        char *items;
        size_t n, size;
        const resha_gather_opts *opts;
        const struct rs_local *locals;
        struct runner *runners;
        size_t n_runners, away;
        int refused;          /* why a runner found no thread; 0: all did */
        bool cancelled;       /* the task was, meanwhile */
        struct rs_task *task; /* for messages */
        size_t next;          /* item; atomic, as the following */
        size_t failed;        /* how many */
        uint32_t state;       /* RS_JOB_STOPPED */
        int first;            /* failure; 0: none */
        resha_error why;      /* its record, by who has set `first` */
};

static bool stopped(const struct map *m)
{
        return (__atomic_load_n(&m->state, __ATOMIC_ACQUIRE) & RS_JOB_STOPPED) != 0;
}

static bool nothing_to_do(const struct map *m)
{
        return stopped(m) || __atomic_load_n(&m->next, __ATOMIC_RELAXED) >= m->n;
}

/* ---- on threads, or inline ---- */

/* Result and record of item i; where its function ran, so that its records are at hand. */
static void item_done(struct map *m, size_t i, int rc)
{
        const resha_gather_opts *o = m->opts;
        resha_error e = { 0 };
        int none = 0;

        if (rc < 0) {
                e = *resha_error_of(rc);
                e.item = (uint32_t)(i + 1);
                e.items = (uint32_t)m->n;
                __atomic_add_fetch(&m->failed, 1, __ATOMIC_RELAXED);
        }
        if (o->ret_status)
                o->ret_status[i] = rc;
        if (o->ret_errors)
                o->ret_errors[i] = e;
        if (rc >= 0 || o->keep_going)
                return;
        if (__atomic_compare_exchange_n(&m->first, &none, rc, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
                m->why = e;
        __atomic_fetch_or(&m->state, RS_JOB_STOPPED, __ATOMIC_RELEASE);
}

/* Items of no size may be nowhere. */
static void *item_at(const struct map *m, size_t i)
{
        return m->size ? m->items + i * m->size : m->items;
}

/* Works on one item. False: there is none for it. */
static bool one_item(struct runner *r)
{
        struct map *m = r->map;
        unsigned forks = rs_forks;

        if (nothing_to_do(m))
                return false;
        size_t i = __atomic_fetch_add(&m->next, 1, __ATOMIC_RELAXED);
        if (i >= m->n)
                return false;
        item_done(m, i, m->fn(item_at(m, i)));
        r->done++;
        if (rs_forks != forks)
                rs_task_abort(m->task, "a forked child returns from a thread job into its parent's pool: end it with "
                                       "_exit() or exec()");
        if (r->records.first)
                rs_records_free(NULL, &r->records);
        return true;
}

static void runner_run(struct rs_work *work)
{
        struct runner *r = RS_CONTAINER(RS_CONTAINER(work, struct rs_placed, work), struct runner, placed);
        struct rs_workers *crew = &r->placed.pool->crew;
        struct rs_inbox *inbox = r->placed.pool->inbox;
        bool more, others = false;

        rs_job_begin(&r->map->state, r->map->locals, &r->records);
        do {
                more = one_item(r);
                others = more && rs_workers_queued(crew) && !nothing_to_do(r->map);
        } while (more && !others);
        rs_job_end();
        if (others) {
                (void)rs_workers_add(crew, &r->placed.work); /* cannot fail: there is this thread */
                return;
        }
        rs_workers_soon(crew, work);
        rs_inbox_post(inbox, &r->placed.post);
}

/* ---- on the loop ---- */

static void runner_out(struct runner *r)
{
        r->out = true;
        if (--r->map->away == 0)
                rs_wake(&r->map->wait, 0);
}

/* Those that have not begun, or stand in the queue between two items. */
static void recall_all(struct map *m)
{
        for (size_t i = 0; i < m->n_runners; i++) {
                struct runner *r = &m->runners[i];
                if (!r->out && rs_pool_recall(&r->placed))
                        runner_out(r);
        }
}

static void runner_back(struct rs_post *post)
{
        struct runner *r = RS_CONTAINER(RS_CONTAINER(post, struct rs_placed, post), struct runner, placed);
        resha_pool *p = r->placed.pool;

        p->figures[RS_POOL_DONE] += r->done;
        r->out = true; /* recall_all() leaves it alone; and it is away until the end of this, so that is not the last */
        if (nothing_to_do(r->map))
                recall_all(r->map);
        runner_out(r);
        rs_pool_give_place(p);
}

static void runner_refused(struct rs_placed *p, int rc)
{
        struct runner *r = RS_CONTAINER(p, struct runner, placed);

        r->map->refused = rc;
        runner_out(r);
}

static void map_cancel(struct rs_wait *w)
{
        struct map *m = RS_CONTAINER(w, struct map, wait);

        m->cancelled = true;
        __atomic_fetch_or(&m->state, RS_JOB_STOPPED, __ATOMIC_RELEASE);
        recall_all(m);
}

/* Sends the runners; how many are away. More than find a thread are not needed. */
static void send(struct map *m)
{
        for (size_t i = 0; i < m->n_runners; i++) {
                m->runners[i] = (struct runner){
                        .placed = { .work = { .run = runner_run },
                                    .post = { .fn = runner_back },
                                    .pool = m->pool,
                                    .out = runner_refused },
                        .map = m,
                };
                m->away++;
                int rc = rs_pool_place(&m->runners[i].placed);
                if (rc < 0) {
                        m->refused = rc;
                        m->runners[i].out = true;
                        m->away--;
                }
        }
}

static int map_on_threads(struct rs_loop *l, struct map *m)
{
        size_t limit = m->pool->crew.most;

        if (m->opts->limit && m->opts->limit < limit)
                limit = m->opts->limit;
        m->n_runners = limit < m->n ? limit : m->n;
        m->runners = resha_malloc(m->n_runners * sizeof *m->runners);
        if (!m->runners)
                return -ENOMEM;
        send(m);
        if (m->away) {
                l->jobs++;
                rs_wait(l, &m->wait);
                l->jobs--;
        }
        resha_free(m->runners);
        return 0;
}

static void map_inline(struct rs_loop *l, struct map *m)
{
        while (!nothing_to_do(m)) {
                bool began = false;
                int rc = rs_pool_inline(l, m->pool, m->fn, item_at(m, m->next), &began);
                if (began) {
                        item_done(m, m->next++, rc);
                } else {
                        m->cancelled = rc == -ECANCELED;
                        m->refused = rc;
                        m->state = RS_JOB_STOPPED;
                }
        }
}

/* What the call returns once nothing of it runs any more. */
static int map_result(struct rs_loop *l, const struct map *m, size_t started)
{
        if (m->first < 0) {
                rs_error_give(l, &m->why);
                return m->first;
        }
        if (m->cancelled && (started < m->n || m->failed))
                return -ECANCELED;
        return started < m->n ? rs_pool_no_thread(m->refused) : 0;
}

static int map_run(struct map *m)
{
        struct rs_loop *l = NULL;
        int rc = rs_pool_enter(m->pool, &l, &m->pool);

        if (rc == 0 && (!rs_reserved_zero(m->opts->_reserved) || m->n >= UINT32_MAX))
                rc = resha_fail_at(-EINVAL, NULL, "a map of %zu items: less than 2^32, and reserved words zero", m->n);
        if (rc == 0 && m->n) {
                m->wait.object = m->pool;
                m->task = l->current;
                m->locals = l->current->locals;
                if (l->simulated)
                        map_inline(l, m);
                else
                        rc = map_on_threads(l, m);
        }
        size_t started = m->next < m->n ? m->next : m->n;
        rs_gather_not_started(m->opts, started, m->n);
        if (m->opts->ret_failed)
                *m->opts->ret_failed = m->failed + (m->n - started);
        return rc < 0 ? rc : map_result(l, m, started);
}

int resha_pool_map(resha_pool *p, resha_fn *fn, void *items, size_t n, size_t size, const resha_gather_opts *opts)
{
        static const resha_gather_opts defaults;
        struct map m = {
                .wait = { .cancel = map_cancel, .what = "thread jobs of a map" },
                .pool = p,
                .fn = fn,
                .items = items,
                .n = n,
                .size = size,
                .opts = opts ? opts : &defaults,
        };

        return map_run(&m);
}
