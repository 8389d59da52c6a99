/* SPDX-License-Identifier: MIT */
/* Pools of threads: places, and the ends of pools.
 *
 * Whatever is to run on a thread needs a place first: there are as many as threads and entries of the queue; who finds
 * none stands in line, and a place that is given back goes to the first in it.
 *
 *     task: [line ->] crew's queue          thread: fn -> inbox          loop: wakes the task, gives the place on
 *
 * It goes from the line to the queue when it gets its place, not when its task next runs: others might run before, find
 * a place and overtake it. What it is: a job (pool_job.c), or one that works through the items of a map (pool_map.c).
 *
 * In the simulated world there are no threads: the places are the threads.
 *
 * A pool that is left over at the end of the run is ended then. That waits for abandoned jobs as long as the grace;
 * what still runs goes on by itself: the last thread frees the pool, and each job is freed where its post ends. A run
 * that is given up after its grace leaves its pools behind, on purpose: threads with stuck jobs still use them, and go
 * when those have ended; idle ones go at once. */

#include "exec/pool.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <resha/alloc.h>

#include "sys/nudge.h"

enum {
        THREADS_MAX = 256,
        QUEUE_DEFAULT = 1024,
        COUNT_MOST = 10000,
        NAME_MAX_BYTES = 15,
};

/* ---- places ---- */

static void turn_away(struct rs_placed *p, int code)
{
        p->in_line = false;
        p->out(p, code);
}

/* It has its place. False: there is no thread and none can be started. */
static bool hand_over(struct rs_placed *p)
{
        if (!p->pool->loop->simulated)
                return rs_workers_add(&p->pool->crew, &p->work) == 0;
        p->out(p, 0);
        return true;
}

/* Who waits to free the pool goes on once only abandoned jobs are left, or none. */
void rs_pool_closer(resha_pool *p)
{
        if (p->closer && p->taken == (p->tasks_only ? p->abandoned_jobs : 0)) {
                struct rs_wait *w = p->closer;
                p->closer = NULL;
                rs_wake(w, 0);
        }
}

void rs_pool_give_place(resha_pool *p)
{
        for (struct rs_node *n; (n = rs_list_pop(&p->line));) {
                struct rs_placed *next = RS_CONTAINER(n, struct rs_placed, line);
                next->in_line = false;
                if (hand_over(next))
                        return;
                turn_away(next, -EAGAIN);
        }
        p->taken--;
        rs_pool_closer(p);
}

/* True: it stands in line. Otherwise it has a place. */
bool rs_pool_stand(struct rs_placed *p)
{
        resha_pool *pool = p->pool;

        p->in_line = pool->taken >= pool->places || !rs_list_empty(&pool->line);
        if (p->in_line)
                rs_list_push(&pool->line, &p->line);
        else
                pool->taken++;
        return p->in_line;
}

int rs_pool_place(struct rs_placed *p)
{
        if (rs_pool_stand(p))
                return 1;
        if (hand_over(p))
                return 0;
        rs_pool_give_place(p->pool);
        return -EAGAIN;
}

bool rs_pool_recall(struct rs_placed *p)
{
        if (p->in_line) {
                rs_list_remove(&p->pool->line, &p->line);
                p->in_line = false;
                return true;
        }
        bool queued = rs_workers_remove(&p->pool->crew, &p->work);
        if (queued)
                rs_pool_give_place(p->pool);
        return queued;
}

/* ---- what is shown ---- */

static uint64_t in_line(const resha_pool *p)
{
        uint64_t n = 0;

        for (const struct rs_node *x = p->line.first; x && n < COUNT_MOST; x = x->next)
                n++;
        return n;
}

static void refresh(void *object)
{
        resha_pool *p = object;

        rs_lock(&p->crew.lock);
        p->figures[RS_POOL_THREADS] = p->crew.threads;
        p->figures[RS_POOL_BUSY] = p->crew.threads - p->crew.idle;
        p->figures[RS_POOL_QUEUED] = p->crew.queued;
        rs_unlock(&p->crew.lock);
        p->figures[RS_POOL_IN_LINE] = in_line(p);
}

static void describe(const void *object, char *text, size_t size)
{
        const resha_pool *p = object;
        const uint64_t *f = p->figures;

        refresh((void *)(uintptr_t)p);
        snprintf(text, size,
                 "%" PRIu64 " of %u threads run jobs, %" PRIu64 " queued, %" PRIu64 " more wait; %" PRIu64
                 " done, the longest waited %" PRIu64 " ms",
                 f[RS_POOL_BUSY], p->crew.most, f[RS_POOL_QUEUED], f[RS_POOL_IN_LINE], f[RS_POOL_DONE],
                 f[RS_POOL_LONGEST] / 1000000);
}

static const resha_figure figures[RS_POOL_FIGURES] = {
        [RS_POOL_THREADS] = { "resha_pool_threads", "Threads that the pool has now.", RESHA_FIGURE_GAUGE, false },
        [RS_POOL_BUSY] = { "resha_pool_busy", "Threads that run a job.", RESHA_FIGURE_GAUGE, false },
        [RS_POOL_QUEUED] = { "resha_pool_queued", "Jobs that wait for a thread.", RESHA_FIGURE_GAUGE, false },
        [RS_POOL_IN_LINE] = { "resha_pool_waiting", "Jobs that wait for room in the queue, counted to 10,000.",
                              RESHA_FIGURE_GAUGE, false },
        [RS_POOL_DONE] = { "resha_pool_jobs_total", "Jobs that have ended.", RESHA_FIGURE_COUNTER, false },
        [RS_POOL_WAITED] = { "resha_pool_waited_seconds_total", "Time that jobs waited before they began.",
                             RESHA_FIGURE_COUNTER, true },
        [RS_POOL_LONGEST] = { "resha_pool_waited_most_seconds", "The longest that a job waited before it began.",
                              RESHA_FIGURE_MOST, true },
};

static const resha_shown_kind pool_kind = { .kind = "pool",
                                            .figures = figures,
                                            .count = RS_POOL_FIGURES,
                                            .label = "pool",
                                            .describe = describe,
                                            .refresh = refresh };

/* A job has ended that waited so long. */
void rs_pool_count(resha_pool *p, int64_t waited)
{
        uint64_t ns = waited > 0 ? (uint64_t)waited : 0;

        p->figures[RS_POOL_DONE]++;
        p->figures[RS_POOL_WAITED] += ns;
        if (ns > p->figures[RS_POOL_LONGEST])
                p->figures[RS_POOL_LONGEST] = ns;
}

/* ---- pools ---- */

static void pool_free(resha_pool *p)
{
        rs_inbox_unref(p->inbox);
        if (p->nudges)
                rs_nudge_unuse();
        resha_free(p);
}

/* The last thread of one that was left to its abandoned jobs. */
static void crew_ended(struct rs_workers *crew)
{
        pool_free(RS_CONTAINER(crew, resha_pool, crew));
}

struct patience {
        struct rs_wait wait;
        struct rs_timer timer;
        resha_pool *pool;
};

static void patience_over(struct rs_timer *timer)
{
        struct patience *w = RS_CONTAINER(timer, struct patience, timer);

        w->pool->closer = NULL;
        rs_wake(&w->wait, -ETIME);
}

/* For the jobs of tasks as long as they take, for abandoned ones as long as the grace. */
static void wait_for_jobs(struct rs_loop *l, resha_pool *p, bool tasks_only)
{
        struct patience w = { .wait = { .what = "jobs of a pool", .object = p },
                              .timer = { .fire = patience_over },
                              .pool = p };

        p->tasks_only = tasks_only;
        if (p->taken == (tasks_only ? p->abandoned_jobs : 0))
                return;
        p->closer = &w.wait;
        if (!tasks_only && l->opts.grace.ns != INT64_MAX)
                rs_timer_set(l, &w.timer, rs_time_add(rs_now(l), l->opts.grace.ns));
        rs_wait(l, &w.wait);
        rs_timer_clear(l, &w.timer);
}

/* Nobody waits for them any more. */
static void leave_abandoned(struct rs_loop *l, resha_pool *p)
{
        rs_report(l, RESHA_REPORT_STUCK, 0, NULL, "%zu abandoned %s of pool \"%s\" still %s: left to their threads",
                  p->abandoned_jobs, p->abandoned_jobs == 1 ? "job" : "jobs", p->crew.name,
                  p->abandoned_jobs == 1 ? "runs" : "run");
        rs_jobs_leave(p);
        if (!rs_workers_abandon(&p->crew, crew_ended))
                pool_free(p);
}

/* No job is left, or abandoned ones only. */
static void pool_end(struct rs_loop *l, resha_pool *p)
{
        if (l->exec == p)
                l->exec = NULL;
        rs_shown_remove(&p->shown);
        rs_list_remove(&l->given_up, &p->given_up.node);
        if (p->taken)
                wait_for_jobs(l, p, false);
        if (p->taken) {
                leave_abandoned(l, p);
        } else {
                rs_workers_rest(&p->crew, true); /* the threads have at most to see that */
                pool_free(p);
        }
}

/* At the end of the run every task has ended, and with them their jobs. */
static void pool_cleanup(struct rs_cleanup *c)
{
        resha_pool *p = RS_CONTAINER(c, struct resha_pool, cleanup);

        p->closing = true;
        pool_end(p->loop, p);
}

/* Nothing comes to it any more: who is idle goes now, and the others once they have done their work. */
static void pool_given_up(struct rs_cleanup *c)
{
        rs_workers_rest(&RS_CONTAINER(c, struct resha_pool, given_up)->crew, false);
}

int resha_pool_new(const resha_pool_opts *opts, resha_pool **ret_pool)
{
        static const resha_pool_opts defaults;
        const resha_pool_opts *o = opts ? opts : &defaults;
        const char *name = o->name ? o->name : "resha";
        struct rs_loop *l = rs_loop_current;

        if (!l)
                return rs_outside();
        if (!rs_reserved_zero(o->_reserved) || o->threads > THREADS_MAX || strlen(name) > NAME_MAX_BYTES)
                return resha_fail_at(-EINVAL, NULL,
                                     "pool \"%s\": at most 256 threads, 15 bytes of name, reserved words zero", name);
        resha_pool *p = resha_malloc(sizeof *p);
        if (!p)
                return -ENOMEM;
        unsigned threads = o->threads ? o->threads : l->opts.threads, queue = o->queue ? o->queue : QUEUE_DEFAULT;
        *p = (resha_pool){
                .crew = RS_WORKERS_INIT(threads, ""),
                .loop = l,
                .inbox = rs_inbox_ref(l->inbox),
                .cleanup = { .fn = pool_cleanup },
                .given_up = { .fn = pool_given_up },
                .places = l->simulated ? threads : (size_t)threads + queue,
        };
        memcpy(p->crew.name, name, strlen(name) + 1);
        rs_shown_add(l, &p->shown, &pool_kind, p, -1);
        RS_OPENED_HERE(&p->shown);
        p->shown.name = p->crew.name;
        p->shown.values = p->figures;
        p->shown.ours = true;
        rs_cleanup_add(l, &p->cleanup);
        rs_list_push(&l->given_up, &p->given_up.node);
        *ret_pool = p;
        return 0;
}

void resha_pool_free(resha_pool *p)
{
        struct rs_loop *l;

        if (!p || p->closing)
                return;
        int rc = rs_enter_shielded(&l);
        if (p->loop != rs_loop_current || (p->taken && rc < 0))
                return; /* cannot wait here: the end of the run ends it */
        p->closing = true;
        for (struct rs_node *n; (n = rs_list_pop(&p->line));)
                turn_away(RS_CONTAINER(n, struct rs_placed, line), -EBADF);
        if (p->taken)
                wait_for_jobs(l, p, true);
        rs_cleanup_remove(p->loop, &p->cleanup);
        pool_end(p->loop, p);
}

void resha_pool_freep(resha_pool **p)
{
        resha_pool_free(*p);
        *p = NULL;
}

/* The loop's own, made when it is first needed. */
static int default_pool(struct rs_loop *l, resha_pool **ret_pool)
{
        int rc = 0;

        if (!l->exec) {
                resha_pool *made;
                rc = resha_pool_new(NULL, &made);
                if (rc == 0) {
                        made->shown.opened_by = NULL;
                        l->exec = made;
                }
        }
        *ret_pool = l->exec;
        return rc;
}

int rs_pool_enter(resha_pool *p, struct rs_loop **ret_loop, resha_pool **ret_pool)
{
        int rc = rs_enter(ret_loop);

        if (rc == 0 && !p)
                rc = default_pool(*ret_loop, &p);
        if (rc < 0)
                return rc;
        if (p->loop != *ret_loop)
                return resha_fail_at(-EPERM, NULL, "the pool belongs to another loop");
        if (p->closing)
                return resha_fail_at(-EBADF, NULL, "the pool is being freed");
        *ret_pool = p;
        return 0;
}

int rs_pool_no_thread(int rc)
{
        return resha_fail_at(rc, NULL,
                             rc == -EBADF ? "the pool is being freed"
                                          : "no thread can be started for the pool; allow more processes and memory "
                                            "(ulimit -u, ulimit -v, pids.max of the control group)");
}

int rs_pool_nudges(resha_pool *p)
{
        int rc = p->nudges || p->loop->simulated ? 0 : rs_nudge_use();

        if (rc < 0)
                return resha_fail_at(rc, NULL, "no real-time signal is free for the jobs of pool \"%s\"", p->crew.name);
        p->nudges |= !p->loop->simulated;
        return 0;
}
