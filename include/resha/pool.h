/* SPDX-License-Identifier: MIT */
#ifndef RESHA_POOL_H
#define RESHA_POOL_H

/* Threads for calls that block or compute. A job runs fn(arg) on a thread of a bounded pool while its task waits; the
 * loop goes on. In the simulated world jobs run inline, on the virtual clock. */

#include <resha/base.h>
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

/* Waits for the jobs of other tasks, ends and joins the threads. Tasks that call resha_pool_run() meanwhile, or wait
 * there for room in the queue, get -EBADF. NULL is fine. [task] not a cancellation point */
RESHA_API void resha_pool_free(resha_pool *p);
RESHA_API void resha_pool_freep(resha_pool **p);

/* fn(arg) on a thread of the pool (NULL: the loop's default pool). Result: fn's, with its error record. On cancel: a
 * job that has not started never runs: -ECANCELED; a running one is waited for (arg may be on the caller's stack), and
 * its result is the result; `interrupt`, if given, is called once, on the loop's thread, to make it end sooner.
 * resha_fail() works in fn; other [task] calls give -EPERM (in the simulated world, where the job runs in a no-suspend
 * region of its task, -EDEADLK); to call back into a loop there is resha_portal_call(). -EAGAIN if no thread can be
 * started. [task] cancellation point until the job has started */
typedef struct resha_job_opts {
        void (*interrupt)(void *arg); /* asks a running job to end; thread-safe; never blocks [NULL] */
        uint64_t _reserved[4];
} resha_job_opts;
RESHA_API RESHA_MUST int resha_pool_run(resha_pool *p, resha_fn *fn, void *arg, const resha_job_opts *opts);

RESHA_END_DECLS
#endif
