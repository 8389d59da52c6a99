/* SPDX-License-Identifier: MIT */
#ifndef RESHA_LOOP_H
#define RESHA_LOOP_H

/* A loop as other threads see it: they run a function on its thread, or cancel its run.
 *
 *     static void news(void *arg) // on the loop, outside of tasks
 *     {
 *             resha_event_set(arg);
 *     }
 *
 *     static void *thread(void *arg) // without a loop
 *     {
 *             resha_loop *loop = arg;
 *
 *             if (resha_loop_post(loop, news, &came) < 0)
 *                     puts("the run has ended");
 *             resha_loop_unref(loop);
 *             return NULL;
 *     }
 *
 *     ... in a task:  pthread_create(&t, NULL, thread, resha_loop_ref());
 *
 * Which to use when
 *     resha_loop_post()    to tell a loop something, with no answer: a few instructions that never wait, on the loop's
 *                          thread, in order. Nothing holds back who posts faster than the loop runs.
 *     resha_portal_call()  (portal.h) to have something done that may wait, fail or be cancelled: a task, its result
 *                          and its error record, limits on how many run and wait, and somebody who serves it.
 *     resha_loop_cancel()  to end the run as Ctrl-C does: from a thread, a signal handler, the host of an embedded run.
 *
 * A reference outlives its loop. One that was taken before a fork() is of no use in the child: posts give -EPERM, the
 * other calls do nothing. */

#include <resha/base.h>

RESHA_BEGIN_DECLS

typedef struct resha_loop resha_loop;

/* What is posted. It runs outside of tasks: what may wait gives -EPERM, what only wakes can be called. */
typedef void resha_post_fn(void *arg);

/* One reference more to the running loop, for resha_loop_unref(); NULL outside of a loop. While the program holds one,
 * something outside can wake the loop: no deadlock is seen. [loop] */
RESHA_API resha_loop *resha_loop_ref(void);

/* Gives a reference back; the loop may have ended. NULL is fine. [any-thread] */
RESHA_API void resha_loop_unref(resha_loop *l);
RESHA_API void resha_loop_unrefp(resha_loop **l);

/* fn(arg) runs once on the loop's thread, soon: a loop that sleeps is woken. Never waits for the loop. 0: it will run,
 * in the order of the posts, and even if the main task returns before that: then while the run ends, so `arg` must not
 * lie in a task's frame that may be gone. RESHA_ESHUT: the run has ended; -ENOMEM; -EPERM, in a forked child. Not for
 * signal handlers. [any-thread] */
RESHA_API int resha_loop_post(resha_loop *l, resha_post_fn *fn, void *arg);

/* Cancels the main task as a first Ctrl-C does, and the run must end within its grace; its record says "by another
 * thread", and where. Never waits, takes no lock, allocates nothing, may be repeated; nothing if the main task has
 * ended. [any-thread] [signal-safe] */
RESHA_API void resha_loop_cancel_at(resha_loop *l, const char *site);
/* resha_loop_cancel(l) */
#define resha_loop_cancel(l) resha_loop_cancel_at((l), RESHA_SITE)

RESHA_END_DECLS
#endif
