/* SPDX-License-Identifier: MIT */
/* Jobs: one call of a function on a thread, for which a task waits.
 *
 * A job lies on the stack of its task from the call to the return: in line, in the crew's queue, on a thread, or on
 * its way back in the loop's inbox. Nothing is allocated for it.
 *
 * Cancelled in line or in the queue, it never runs. Once it runs, arg belongs to the thread until it has come back, so
 * the task goes on waiting, and the job's result is the result. One that owns its argument (`drop`) lies in memory of
 * its own, and can be abandoned: its task goes on at once. The two sides tell each other by bits of `state`:
 *
 *     thread sets ENDED first:       the cancel came too late, the result is the result
 *     loop sets ABANDONED first:     the thread drops the argument; nobody waits for what comes back
 *     thread sets OPEN:              it may be nudged by signals from now on, until ENDED
 *     loop sets NUDGING for a while: a thread that has ended waits until that is over, so that no signal comes later
 *
 * In the simulated world a job starts after a delay of the world's luck and runs on its task's stack, where it must not
 * suspend. */

#include "exec/pool.h"

#include <stdio.h>

#include <resha/alloc.h>

#include "core/waited.h"
#include "os/delay.h"
#include "sys/nudge.h"
#include "sys/sys.h"

static const int64_t NUDGE_FIRST_NS = 1000000, NUDGE_MOST_NS = 64000000;

struct job;

/* The task's side, on its stack. */
struct caller {
        struct rs_wait wait;
        struct job *job;
        bool refused;   /* there was no thread for it, or the pool is being freed */
        bool abandoned; /* the job is not the caller's any more */
};

struct job {
        struct rs_placed placed;
        struct caller *caller; /* valid until it is abandoned */
        struct rs_loop *loop;
        struct rs_node abandoned;
        struct rs_local *locals; /* of the task; held for one that may be abandoned */
        resha_fn *fn;
        void *arg;
        resha_job_opts opts;
        struct rs_records records; /* of resha_fail() on the thread */
        struct rs_thread thread;   /* valid from OPEN on */
        struct rs_timer nudge;     /* for the next one */
        int64_t nudge_after;
        int64_t placed_at, began_at; /* for a place; on its thread */
        uint32_t state;              /* RS_JOB_... */
        int result;
        bool left; /* abandoned, and its pool has not waited for it: that may be gone */
};

static struct job *job_of(struct rs_placed *p)
{
        return RS_CONTAINER(p, struct job, placed);
}

/* ---- what a thread sees of its job ---- */

static const uint32_t inline_job; /* in place of a state: the task of the simulated world is asked */
static _Thread_local const uint32_t *job_state;

void rs_job_begin(const uint32_t *state, const struct rs_local *locals, struct rs_records *records)
{
        rs_thread_records_set(records);
        rs_local_job(true, locals);
        job_state = state;
}

void rs_job_end(void)
{
        job_state = NULL;
        rs_local_job(false, NULL);
        rs_thread_records_set(NULL);
}

bool resha_job_stopped(void)
{
        if (job_state == &inline_job)
                return resha_cancelled();
        return job_state && (__atomic_load_n(job_state, __ATOMIC_RELAXED) & RS_JOB_STOPPED);
}

/* ---- on the thread ---- */

static void nudges_begin(struct job *j)
{
        j->thread = rs_thread_self();
        rs_nudge_open();
        __atomic_fetch_or(&j->state, RS_JOB_OPEN, __ATOMIC_ACQ_REL);
}

/* After ENDED. */
static void nudges_end(struct job *j)
{
        for (unsigned n = 0; __atomic_load_n(&j->state, __ATOMIC_ACQUIRE) & RS_JOB_NUDGING; n++)
                rs_sys_yield(n);
        rs_nudge_close();
}

static void job_run(struct rs_work *work)
{
        struct job *j = job_of(RS_CONTAINER(work, struct rs_placed, work));
        struct rs_inbox *inbox = j->placed.pool->inbox;
        unsigned forks = rs_forks;

        j->began_at = rs_sys_now();
        if (j->opts.signal)
                nudges_begin(j);
        rs_job_begin(&j->state, j->locals, &j->records);
        j->result = j->fn(j->arg);
        uint32_t before = 0;
        if (j->opts.signal || j->opts.drop)
                before = __atomic_fetch_or(&j->state, RS_JOB_ENDED, __ATOMIC_ACQ_REL);
        bool abandoned = (before & RS_JOB_ABANDONED) != 0;
        if (rs_forks != forks)
                rs_task_abort(abandoned ? NULL : j->caller->wait.task,
                              "a forked child returns from a thread job into its parent's pool: end it with _exit() or "
                              "exec()");
        if (j->opts.signal)
                nudges_end(j);
        if (abandoned)
                j->opts.drop(j->arg);
        j->placed.post.quiet = abandoned;
        rs_job_end();
        rs_workers_soon(&j->placed.pool->crew, work);
        rs_inbox_post(inbox, &j->placed.post); /* from here on j may be gone */
}

/* ---- on the loop ---- */

/* Loops that have ended cannot keep count of the values; jobs that outlast them share some. */
static struct rs_lock left_locals = RS_LOCK_INIT;

void rs_jobs_forked(void)
{
        left_locals = (struct rs_lock)RS_LOCK_INIT;
}

/* l: NULL where the loop has ended. */
static void job_done(struct rs_loop *l, struct job *j)
{
        rs_records_free(l, &j->records);
        if (!j->opts.drop)
                return;
        if (!l)
                rs_lock(&left_locals);
        rs_local_drop(l, j->locals);
        if (!l)
                rs_unlock(&left_locals);
        resha_free(j);
}

static bool is_abandoned(const struct job *j)
{
        return (__atomic_load_n(&j->state, __ATOMIC_ACQUIRE) & RS_JOB_ABANDONED) != 0;
}

static void forget_abandoned(struct job *j)
{
        resha_pool *p = j->placed.pool;

        rs_list_remove(&p->abandoned, &j->abandoned);
        p->abandoned_jobs--;
        p->loop->jobs--;
}

static void job_back(struct rs_post *post)
{
        struct job *j = job_of(RS_CONTAINER(post, struct rs_placed, post));
        resha_pool *p = j->left ? NULL : j->placed.pool;

        rs_timer_clear(j->loop, &j->nudge);
        if (p)
                rs_pool_count(p, j->began_at - j->placed_at);
        if (is_abandoned(j)) {
                if (p)
                        forget_abandoned(j);
                job_done(j->loop, j);
        } else {
                rs_wake(&j->caller->wait, j->result);
        }
        if (p)
                rs_pool_give_place(p);
}

/* The loop has ended before: on the thread, or at its very end. Others belong to tasks that were given up. */
static void job_lost(struct rs_post *post)
{
        struct job *j = job_of(RS_CONTAINER(post, struct rs_placed, post));

        if (is_abandoned(j))
                job_done(NULL, j);
}

void rs_jobs_leave(resha_pool *p)
{
        while (p->abandoned.first) {
                struct job *j = RS_CONTAINER(p->abandoned.first, struct job, abandoned);
                forget_abandoned(j);
                rs_timer_clear(j->loop, &j->nudge);
                j->left = true;
        }
}

/* A thread that has not come to open itself is nudged the next time. */
static void nudge(struct job *j)
{
        uint32_t before = __atomic_fetch_or(&j->state, RS_JOB_NUDGING, __ATOMIC_ACQ_REL);

        if ((before & RS_JOB_OPEN) && !(before & RS_JOB_ENDED))
                rs_nudge(j->thread);
        __atomic_fetch_and(&j->state, ~(uint32_t)RS_JOB_NUDGING, __ATOMIC_RELEASE);
        if (before & RS_JOB_ENDED)
                return;
        rs_timer_set(j->loop, &j->nudge, rs_time_add(rs_now(j->loop), j->nudge_after));
        if (j->nudge_after < NUDGE_MOST_NS)
                j->nudge_after *= 2;
}

static void nudge_again(struct rs_timer *timer)
{
        nudge(RS_CONTAINER(timer, struct job, nudge));
}

/* It goes on without its task; unless it has ended already, and is on its way back. */
static void abandon(struct job *j)
{
        uint32_t before = __atomic_load_n(&j->state, __ATOMIC_ACQUIRE);

        do {
                if (before & RS_JOB_ENDED)
                        return;
        } while (!__atomic_compare_exchange_n(&j->state, &before, before | RS_JOB_ABANDONED, false, __ATOMIC_ACQ_REL,
                                              __ATOMIC_ACQUIRE));
        rs_list_push(&j->placed.pool->abandoned, &j->abandoned);
        j->placed.pool->abandoned_jobs++;
        j->loop->jobs++;
        j->caller->abandoned = true;
        rs_wake(&j->caller->wait, -ECANCELED);
        rs_pool_closer(j->placed.pool);
}

/* `interrupt` comes before the job can be abandoned: after that arg may be dropped at any moment. */
static void job_cancel(struct rs_wait *w)
{
        struct job *j = RS_CONTAINER(w, struct caller, wait)->job;

        if (rs_pool_recall(&j->placed)) {
                rs_wake(w, -ECANCELED);
                return;
        }
        __atomic_fetch_or(&j->state, RS_JOB_STOPPED, __ATOMIC_RELEASE);
        if (j->opts.interrupt)
                j->opts.interrupt(j->arg);
        if (j->opts.drop)
                abandon(j);
        if (j->opts.signal)
                nudge(j);
}

static void job_out(struct rs_placed *p, int rc)
{
        struct caller *c = job_of(p)->caller;

        c->refused = true;
        rs_wake(&c->wait, rc);
}

/* j is the caller's, unless c says that it has abandoned it. */
static int job_wait(struct rs_loop *l, struct job *j, struct caller *c)
{
        j->placed_at = rs_sys_now();
        int rc = rs_pool_place(&j->placed);

        if (rc < 0)
                return rs_pool_no_thread(rc);
        l->jobs++;
        rc = (int)rs_wait(l, &c->wait);
        l->jobs--;
        if (c->refused)
                return rs_pool_no_thread(rc);
        const resha_error *e = rc < 0 && !c->abandoned ? rs_records_find(&j->records, rc) : NULL;
        if (e)
                rs_error_give(l, e);
        return rc;
}

static void job_init(struct job *j, struct rs_loop *l, resha_pool *p, resha_fn *fn, void *arg,
                     const resha_job_opts *opts, struct caller *c)
{
        *j = (struct job){
                .placed = { .work = { .run = job_run },
                            .post = { .fn = job_back, .lost = job_lost },
                            .pool = p,
                            .out = job_out },
                .caller = c,
                .loop = l,
                .locals = l->current->locals,
                .fn = fn,
                .arg = arg,
                .opts = opts ? *opts : (resha_job_opts){ 0 },
                .nudge = { .fire = nudge_again },
                .nudge_after = NUDGE_FIRST_NS,
        };
        *c = (struct caller){ .wait = { .cancel = job_cancel, .what = "thread job", .object = p }, .job = j };
}

static int run_borrowing(struct rs_loop *l, resha_pool *p, resha_fn *fn, void *arg, const resha_job_opts *opts)
{
        struct job j;
        struct caller c;

        job_init(&j, l, p, fn, arg, opts, &c);
        int rc = job_wait(l, &j, &c);
        job_done(l, &j);
        return rc;
}

/* *ret_gone: the job has its argument. */
static int run_owning(struct rs_loop *l, resha_pool *p, resha_fn *fn, void *arg, const resha_job_opts *opts,
                      bool *ret_gone)
{
        struct job *j = resha_malloc(sizeof *j);
        struct caller c;

        if (!j)
                return -ENOMEM;
        job_init(j, l, p, fn, arg, opts, &c);
        (void)rs_local_hold(j->locals);
        int rc = job_wait(l, j, &c);
        *ret_gone = c.abandoned;
        if (!c.abandoned)
                job_done(l, j);
        return rc;
}

/* ---- jobs of the simulated world ---- */

struct inline_job {
        struct rs_placed placed;
        struct rs_wait wait;
};

static void inline_out(struct rs_placed *p, int rc)
{
        rs_wake(&RS_CONTAINER(p, struct inline_job, placed)->wait, rc);
}

static void inline_cancel(struct rs_wait *w)
{
        rs_pool_recall(&RS_CONTAINER(w, struct inline_job, wait)->placed);
        rs_wake(w, -ECANCELED);
}

static __attribute__((noinline)) int call(resha_fn *fn, void *arg)
{
        RESHA_SCOPE(s);

        resha_nosuspend_begin(&s, "thread job");
        rs_local_job(true, rs_loop_current->current->locals);
        job_state = &inline_job;
        int rc = fn(arg);
        job_state = NULL;
        rs_local_job(false, NULL);
        return resha_scope_end(&s, rc);
}

int rs_pool_inline(struct rs_loop *l, resha_pool *p, resha_fn *fn, void *arg, bool *ret_began)
{
        struct inline_job j = { .placed = { .pool = p, .out = inline_out },
                                .wait = { .cancel = inline_cancel, .what = "thread job", .object = p } };
        int64_t placed_at = rs_now(l);
        int rc = rs_pool_stand(&j.placed) ? (int)rs_wait(l, &j.wait) : 0;

        if (rc < 0)
                return rc == -ECANCELED ? rc : rs_pool_no_thread(rc);
        rc = rs_delay(l, j.wait.what);
        *ret_began = rc == 0;
        int64_t waited = rs_now(l) - placed_at;
        if (rc == 0)
                rc = call(fn, arg);
        rs_pool_count(p, waited);
        rs_pool_give_place(p);
        return rc;
}

/* ---- the call ---- */

static int run(resha_pool *p, resha_fn *fn, void *arg, const resha_job_opts *opts, bool *ret_gone)
{
        struct rs_loop *l;
        bool began;
        int rc = rs_pool_enter(p, &l, &p);

        if (rc < 0)
                return rc;
        if (opts && (opts->_reserved[0] | opts->_reserved[1]))
                return resha_fail_at(-EINVAL, NULL, "a reserved word of job options is not zero");
        if (opts && opts->signal && (rc = rs_pool_nudges(p)) < 0)
                return rc;
        if (l->simulated)
                return rs_pool_inline(l, p, fn, arg, &began);
        if (opts && opts->drop)
                return run_owning(l, p, fn, arg, opts, ret_gone);
        return run_borrowing(l, p, fn, arg, opts);
}

int resha_pool_run(resha_pool *p, resha_fn *fn, void *arg, const resha_job_opts *opts)
{
        bool gone = false;
        int rc = run(p, fn, arg, opts, &gone);

        if (rc == -ECANCELED && opts && opts->drop && !gone)
                opts->drop(arg);
        return rc;
}

/* ---- for who looks from outside ---- */

/* The pool is told of by the first in its line, for the others would count that again, each of them; by those who have
 * their place if there is none. */
static void job_see(const struct rs_reader *r, const struct rs_wait *at, const struct rs_wait *w, struct rs_waited *ret)
{
        struct resha_pool p;
        struct caller c;
        struct job j;

        if (!r->read(&p, w->object, sizeof p) || !r->read(&c, at, sizeof c) || !r->read(&j, c.job, sizeof j))
                return;
        bool in_line = RS_READ_BOOL(j.placed.in_line);
        snprintf(ret->detail, sizeof ret->detail, "of pool %.15s%s", p.crew.name,
                 in_line ? ", in line for a place in its queue" : "");
        if (in_line ? j.placed.line.prev != NULL : p.line.first != NULL)
                return;
        ret->kind = "pool";
        ret->limit = p.crew.most;
        ret->held = p.taken < ret->limit ? p.taken : ret->limit; /* a job with a place runs, or is the next to */
        ret->waiting = p.taken - ret->held + rs_waited_count(r, w, &p.line);
        snprintf(ret->state, sizeof ret->state, "%.15s: %zu of %zu threads are taken, %zu %s for one", p.crew.name,
                 ret->held, ret->limit, ret->waiting, ret->waiting == 1 ? "job waits" : "jobs wait");
}

const struct rs_waits rs_job_waits = { .cancel = job_cancel, .shared = true, .see = job_see };
