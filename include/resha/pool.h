/* SPDX-License-Identifier: MIT */
#ifndef RESHA_POOL_H
#define RESHA_POOL_H

/* Threads for calls that block or compute. A job runs fn(arg) on a thread of a bounded pool while its task waits; the
 * loop goes on. resha_pool_map() is for many of them. In the simulated world jobs run inline, on the virtual clock. */

#include <resha/base.h>
#include <resha/combine.h>
#include <resha/time.h>

RESHA_BEGIN_DECLS

typedef struct resha_pool resha_pool;

typedef struct resha_pool_opts {
        unsigned threads; /* most threads, 1..256; started when needed, idle ones leave after 10 s [that of the run] */
        unsigned queue;   /* jobs that may wait for a thread; more wait in their task, first come first served [1024] */
        const char *name; /* of its threads; at most 15 bytes ["resha"] */
        uint64_t _reserved[4];
} resha_pool_opts;

/* A pool of your own, on the running loop. One thread makes it a way to run calls one after another, in order. 0,
 * -EINVAL, -ENOMEM, -EPERM. [loop] */
RESHA_API int resha_pool_new(const resha_pool_opts *opts, resha_pool **ret_pool);

/* Waits for the jobs of other tasks (abandoned ones: resha_pool_run()), ends and joins the threads. Tasks that call
 * resha_pool_run() meanwhile, or wait there for room in the queue, get -EBADF. NULL is fine. [task] not a cancellation
 * point */
RESHA_API void resha_pool_free(resha_pool *p);
RESHA_API void resha_pool_freep(resha_pool **p);

typedef struct resha_job_opts {
        void (*interrupt)(void *arg); /* asks a running job to end; on the loop's thread; never blocks [NULL] */
        /* The job owns its argument, and may be abandoned: see resha_pool_run(). On the job's thread if the job has
         * begun, else on the loop's; never blocks [NULL: a running job is waited for] */
        resha_drop_fn *drop;
        /* A running job that is cancelled gets a signal on its thread, so that its system calls end with -EINTR: at
         * once, and then after 1, 2, 4, ... 64 ms and every 64 ms, until it has ended, since one that comes just before
         * a call is lost on it. Look at resha_job_stopped() after -EINTR. The signal is SIGRTMAX - 4, or the nearest
         * below it that is handled by default when it is first needed; its handler does nothing, and the former
         * handling comes back when the pool has ended [false] */
        bool signal;
        uint64_t _reserved[2];
} resha_job_opts;

/* fn(arg) on a thread of the pool (NULL: the loop's default pool). Result: fn's, with its error record. On cancel: a
 * job that has not started never runs: -ECANCELED; a running one sees resha_job_stopped(), `interrupt`, if given, is
 * called once, `signal` sends its signals; and it is waited for (arg may be on the caller's stack): its result is the
 * result.
 *
 * With `drop` a running job is not waited for: it is abandoned, -ECANCELED at once, and goes on without its task. arg
 * is the caller's again if the call returns anything but -ECANCELED; with -ECANCELED it is not: drop(arg) is called
 * once, when the job has ended, or at once if it never began. What arg points to must be the job's, too. An abandoned
 * job holds its thread and its place in the pool until it has ended. The end of the pool, and of the run, waits for it
 * no longer than the run's grace; then it is reported as RESHA_REPORT_STUCK, and its thread goes on by itself.
 *
 * resha_fail() works in fn; other [task] calls give -EPERM (in the simulated world, where the job runs in a no-suspend
 * region of its task, -EDEADLK); to call back into a loop there is resha_portal_call(). -EAGAIN if no thread can be
 * started; -ENOMEM; -EBADF for a pool that is being freed. [task] cancellation point until the job has started, with
 * `drop` until it has ended */
RESHA_API RESHA_MUST int resha_pool_run(resha_pool *p, resha_fn *fn, void *arg, const resha_job_opts *opts);

/* Whether the job that this thread runs should end: its call was cancelled, or it was abandoned, or another item of its
 * map has failed. Costs next to nothing. false outside of jobs. [any-thread] */
RESHA_API bool resha_job_stopped(void);

/* resha_gather() on threads: fn(&items[i]) for all n items of `size` bytes, as jobs of the pool (NULL: the default
 * one), without a task for each. They start in order; `limit` is how many run at once [0: as many as the pool has
 * threads]. Jobs of others get their turn in between. Result, options and ret_... as of resha_gather(): 0, or the first
 * failure in time, with its record. After a failure, or a cancel, what has not started never runs; what runs sees
 * resha_job_stopped(), and is waited for. -ECANCELED if a cancel came before all had succeeded. What fn may do: as in
 * resha_pool_run(). -EINVAL, -ENOMEM, -EAGAIN, -EBADF, -EPERM. [task] cancellation point (waits for its jobs even
 * so) */
RESHA_API RESHA_MUST int resha_pool_map(resha_pool *p, resha_fn *fn, void *items, size_t n, size_t size,
                                        const resha_gather_opts *opts);

RESHA_END_DECLS
#endif
