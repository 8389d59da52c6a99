/* SPDX-License-Identifier: MIT */
#ifndef RESHA_PORTAL_H
#define RESHA_PORTAL_H

/* A way into a loop for threads that have none: a thread asks for fn(arg) to be run as a task there, waits for the
 * result, and may cancel it. What is run belongs to the task that serves the portal, as a group's children do.
 *
 *     #include <pthread.h>
 *     #include <stdio.h>
 *     #include <resha/resha.h>
 *
 *     static resha_portal *portal;
 *
 *     static int add_slowly(void *arg) // a task
 *     {
 *             int *n = arg, rc = resha_sleep(RESHA_MS(10));
 *
 *             return rc < 0 ? rc : *n + 1;
 *     }
 *
 *     static void *thread(void *arg) // without a loop
 *     {
 *             int n = 41, rc = resha_portal_call(portal, add_slowly, &n);
 *
 *             if (rc < 0)
 *                     puts(resha_error_of(rc)->text);
 *             else
 *                     printf("%d\n", rc);
 *             resha_portal_shutdown(portal);
 *             return arg;
 *     }
 *
 *     static int program(void *arg)
 *     {
 *             return resha_portal_serve(arg);
 *     }
 *
 *     int main(void)
 *     {
 *             pthread_t t;
 *
 *             if (resha_portal_new(NULL, &portal) < 0 || pthread_create(&t, NULL, thread, NULL) != 0)
 *                     return 1;
 *             int status = resha_main(program, portal);
 *             resha_portal_shutdown(portal); // if the run could not begin, the thread would wait for ever
 *             pthread_join(t, NULL);
 *             resha_portal_unref(portal);
 *             return status;
 *     }
 *
 * Whoever uses a portal or one of its handles holds a reference. A portal that was made before a fork() in a run is the
 * parent's: in the child, calls give -EPERM and the others do nothing. */

#include <resha/base.h>
#include <resha/time.h>

RESHA_BEGIN_DECLS

typedef struct resha_portal resha_portal;

typedef struct resha_portal_opts {
        unsigned limit; /* most calls that run at once; others wait, first come first served [1000] */
        unsigned queue; /* calls that may wait beside those that run, or until the portal is served [1024] */
        uint64_t _reserved[4];
} resha_portal_opts;

/* A portal with one reference, of no loop yet. 0, -EINVAL, -ENOMEM. [any-thread] */
RESHA_API int resha_portal_new(const resha_portal_opts *opts, resha_portal **ret_portal);

/* One reference more (returns p), or less; the last one frees it. NULL is fine. [any-thread] */
RESHA_API resha_portal *resha_portal_ref(resha_portal *p);
RESHA_API void resha_portal_unref(resha_portal *p);
RESHA_API void resha_portal_unrefp(resha_portal **p);

/* Runs what is called through the portal, each as a task in a group of its own, with the task-locals of the caller.
 * Failures are those of the calls alone. Until the portal is shut down and the calls made before that have ended: 0; or
 * cancelled: -ECANCELED, after the calls that run were cancelled and joined. Either way the portal is shut down then.
 * 0 at once if it was already; -EBUSY if it is being served. While it is served, something outside can wake the loop:
 * no deadlock is seen. [task] cancellation point */
RESHA_API RESHA_MUST int resha_portal_serve(resha_portal *p);

/* No more calls: new ones give RESHA_ESHUT. Those made before still run, if the portal is served; if not, they give it
 * too, and it will not be served. Idempotent. Who cannot serve a portal that others call shuts it down. [any-thread] */
RESHA_API void resha_portal_shutdown(resha_portal *p);

/* Calls fn(arg) as a task of the loop that serves the portal, and blocks the thread until that has ended or will never
 * start: arg may be on the caller's stack. Waits for a portal that is not served yet. Task-locals of the thread, if
 * any, do not go along. Result: fn's, with its error record for resha_error_of() on this thread; -ECANCELED if the
 * server was cancelled meanwhile. Not started: RESHA_ESHUT, shut down before; RESHA_EFULL, as many wait as may;
 * -EDEADLK, on a thread that runs a loop, which would stop: spawn a task (in the simulated world that holds for thread
 * jobs, which run on the loop's thread); and why no task could be made, -EAGAIN or -ENOMEM. RESHA_EGIVENUP: the run was
 * given up after its grace, with the task in it: it will never go on, but thread jobs of its may still use what it lent
 * them. [any-thread], blocks it
 *
 *     int rc = resha_portal_call(portal, fetch, &page); */
#define resha_portal_call(p, fn, ...) resha_portal_call_at((p), (fn), __VA_ARGS__, #fn, RESHA_SITE)
RESHA_API RESHA_MUST int resha_portal_call_at(resha_portal *p, resha_fn *fn, void *arg, const char *name,
                                              const char *site);

/* A call that is under way, in the caller's memory: it must stay where it is until it was waited for. Zero-initialise
 * it. Private. */
typedef struct resha_portal_handle {
        uint64_t _[64];
} resha_portal_handle;

/* Starts the same call and does not block. Once this gives 0, resha_portal_wait() must be called until that does, too,
 * whatever becomes of the call. 0; -EBUSY for a handle that was not waited for yet; RESHA_ESHUT, RESHA_EFULL, -EDEADLK,
 * -EPERM as above. [any-thread] */
#define resha_portal_start(p, handle, fn, ...) resha_portal_start_at((p), (handle), (fn), __VA_ARGS__, #fn, RESHA_SITE)
RESHA_API int resha_portal_start_at(resha_portal *p, resha_portal_handle *h, resha_fn *fn, void *arg, const char *name,
                                    const char *site);

/* Waits for a call that was started, for at most `at_most`; zero or negative: a look. 0, and the result of the call as
 * resha_portal_call() gives it, with its record; the handle may be used again. -ETIME: it goes on, and is still to be
 * waited for; -EINVAL: nothing was started; -EDEADLK, -EPERM as above. For one thread at a time. [any-thread], blocks
 * it */
RESHA_API RESHA_MUST int resha_portal_wait(resha_portal_handle *h, resha_duration at_most, int *ret_result);

/* Cancels a call. One that has not started never runs, and ends with -ECANCELED; the task of one that runs is cancelled
 * as by resha_task_cancel(), and its result is the result. Idempotent, never waits, may meet the end of the call;
 * nothing if none was started or it was waited for. [any-thread] */
RESHA_API void resha_portal_cancel_at(resha_portal_handle *h, const char *site);
/* resha_portal_cancel(h) */
#define resha_portal_cancel(h) resha_portal_cancel_at((h), RESHA_SITE)

RESHA_END_DECLS
#endif
