/* SPDX-License-Identifier: MIT */
/* Pools of threads for calls that block or compute.
 *
 * A job lies on the stack of its task from the call to the return: in line, in the crew's queue, on a thread, or on
 * its way back in the loop's inbox. Nothing is allocated for it. It needs a place first: there are as many as threads
 * and entries of the queue; who finds none stands in line, and a place that is given back goes to the first in it.
 *
 *     task: [line ->] crew's queue          thread: fn -> inbox          loop: wakes the task, gives the place on
 *
 * A job goes from the line to the queue when it gets its place, not when its task next runs: others might run before,
 * find a place and overtake it.
 *
 * Cancelled in line or in the queue, the job never runs. Once it runs, arg belongs to the thread until it has come
 * back, so the task goes on waiting, and the job's result is the result.
 *
 * In the simulated world there are no threads: the places are the threads, a job starts after a delay of the world's
 * luck and runs on its task's stack, where it must not suspend.
 *
 * A pool that is left over at the end of the run is ended then. A run that is given up after its grace leaves the
 * pools of its stuck jobs behind, on purpose: their threads still use them. */

#include <string.h>

#include <resha/alloc.h>
#include <resha/pool.h>

#include "core/core.h"
#include "os/delay.h"
#include "sys/sys.h"
#include "sys/workers.h"

enum {
        THREADS_MAX = 256,
        QUEUE_DEFAULT = 1024,
        NAME_MAX_BYTES = 15,
};

struct resha_pool {
        struct rs_workers crew;
        struct rs_loop *loop;
        struct rs_inbox *inbox; /* outlives the loop if a job does */
        struct rs_cleanup cleanup;
        struct rs_list line; /* of rs_wait.node: tasks without a place */
        size_t places, taken;
        struct rs_wait *closer; /* waits until no place is taken */
        bool closing;
};

struct job {
        struct rs_work work;
        struct rs_post post;
        struct rs_wait wait;
        resha_pool *pool;
        const struct rs_local *locals; /* of the task */
        resha_fn *fn;
        void *arg;
        void (*interrupt)(void *arg);
        struct rs_records records; /* of resha_fail() on the thread */
        int result;
        bool in_line;
        bool refused; /* there is no thread for it */
};

/* ---- places ---- */

/* For a job that has its place. False: there is no thread and none can be started. */
static bool hand_over(resha_pool *p, struct job *j)
{
        if (p->loop->simulated)
                rs_wake(&j->wait, 0);
        else
                j->refused = rs_workers_add(&p->crew, &j->work) < 0;
        return !j->refused;
}

static void give_place(resha_pool *p)
{
        for (struct rs_node *n; (n = rs_list_pop(&p->line));) {
                struct job *j = RS_CONTAINER(n, struct job, wait.node);
                j->in_line = false;
                if (hand_over(p, j))
                        return;
                rs_wake(&j->wait, -EAGAIN);
        }
        if (--p->taken == 0 && p->closer) {
                struct rs_wait *w = p->closer;
                p->closer = NULL;
                rs_wake(w, 0);
        }
}

/* True: the job stands in line. Otherwise it has a place. */
static bool stand_in_line(resha_pool *p, struct job *j)
{
        j->in_line = p->taken >= p->places || !rs_list_empty(&p->line);
        if (j->in_line)
                rs_list_push(&p->line, &j->wait.node);
        else
                p->taken++;
        return j->in_line;
}

static void job_cancel(struct rs_wait *w)
{
        struct job *j = RS_CONTAINER(w, struct job, wait);
        resha_pool *p = j->pool;

        if (j->in_line) {
                rs_list_remove(&p->line, &w->node);
                rs_wake(w, -ECANCELED);
        } else if (rs_workers_remove(&p->crew, &j->work)) {
                give_place(p);
                rs_wake(w, -ECANCELED);
        } else if (j->interrupt) {
                j->interrupt(j->arg);
        }
}

/* ---- jobs on threads ---- */

static void job_run(struct rs_work *work)
{
        struct job *j = RS_CONTAINER(work, struct job, work);
        struct rs_inbox *inbox = j->pool->inbox;
        unsigned forks = rs_forks;

        rs_thread_records_set(&j->records);
        rs_local_job(true, j->locals);
        j->result = j->fn(j->arg);
        if (rs_forks != forks)
                rs_task_abort(j->wait.task, "a forked child returns from a thread job into its parent's pool: end it "
                                            "with _exit() or exec()");
        rs_local_job(false, NULL);
        rs_thread_records_set(NULL);
        rs_inbox_post(inbox, &j->post); /* from here on j may be gone */
}

static void job_back(struct rs_post *post)
{
        struct job *j = RS_CONTAINER(post, struct job, post);

        give_place(j->pool);
        rs_wake(&j->wait, j->result);
}

static int run_on_thread(struct rs_loop *l, resha_pool *p, struct job *j)
{
        if (!stand_in_line(p, j) && !hand_over(p, j))
                give_place(p);
        int rc = -EAGAIN;
        if (!j->refused) {
                l->jobs++;
                rc = (int)rs_wait(l, &j->wait);
                l->jobs--;
        }
        if (j->refused)
                return resha_fail_at(rc, NULL, "no thread can be started for pool \"%s\"", p->crew.name);
        const resha_error *e = rc < 0 ? rs_records_find(&j->records, rc) : NULL;
        if (e)
                rs_error_give(l, e);
        rs_records_free(l, &j->records);
        return rc;
}

/* ---- jobs of the simulated world ---- */

static int call(const struct job *j)
{
        RESHA_SCOPE(s);

        resha_nosuspend_begin(&s, "thread job");
        rs_local_job(true, j->locals);
        int rc = j->fn(j->arg);
        rs_local_job(false, NULL);
        return resha_scope_end(&s, rc);
}

static int run_inline(struct rs_loop *l, resha_pool *p, struct job *j)
{
        int rc = stand_in_line(p, j) ? (int)rs_wait(l, &j->wait) : 0;

        if (rc < 0)
                return rc;
        rc = rs_delay(l, j->wait.what);
        if (rc == 0)
                rc = call(j);
        give_place(p);
        return rc;
}

/* ---- pools ---- */

/* No job is left: the threads have at most to see that. */
static void pool_end(resha_pool *p)
{
        rs_workers_rest(&p->crew, true);
        rs_inbox_unref(p->inbox);
        if (p->loop->exec == p)
                p->loop->exec = NULL;
        resha_free(p);
}

/* At the end of the run every task has ended, and with them their jobs. */
static void pool_cleanup(struct rs_cleanup *c)
{
        pool_end(RS_CONTAINER(c, struct resha_pool, cleanup));
}

int resha_pool_new(const resha_pool_opts *opts, resha_pool **ret_pool)
{
        static const resha_pool_opts defaults;
        const resha_pool_opts *o = opts ? opts : &defaults;
        const char *name = o->name ? o->name : "resha";
        struct rs_loop *l = rs_loop_current;

        if (!l)
                return -EPERM;
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
                .places = l->simulated ? threads : (size_t)threads + queue,
        };
        memcpy(p->crew.name, name, strlen(name) + 1);
        rs_cleanup_add(l, &p->cleanup);
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
                rs_wake(RS_CONTAINER(n, struct rs_wait, node), -EBADF);
        if (p->taken) {
                struct rs_wait w = { .what = "jobs of a pool", .object = p };
                p->closer = &w;
                rs_wait(l, &w);
        }
        rs_cleanup_remove(p->loop, &p->cleanup);
        pool_end(p);
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
                if (rc == 0)
                        l->exec = made;
        }
        *ret_pool = l->exec;
        return rc;
}

int resha_pool_run(resha_pool *p, resha_fn *fn, void *arg, const resha_job_opts *opts)
{
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (rc < 0)
                return rc;
        if (opts && !rs_reserved_zero(opts->_reserved))
                return resha_fail_at(-EINVAL, NULL, "a reserved word of job options is not zero");
        if (!p)
                rc = default_pool(l, &p);
        if (rc < 0)
                return rc;
        if (p->loop != l)
                return resha_fail_at(-EPERM, NULL, "the pool belongs to another loop");
        if (p->closing)
                return resha_fail_at(-EBADF, NULL, "the pool is being freed");
        struct job j = {
                .work = { .run = job_run },
                .post = { .fn = job_back },
                .wait = { .cancel = job_cancel, .what = "thread job", .object = p },
                .pool = p,
                .locals = l->current->locals,
                .fn = fn,
                .arg = arg,
                .interrupt = opts ? opts->interrupt : NULL,
        };
        return l->simulated ? run_inline(l, p, &j) : run_on_thread(l, p, &j);
}
