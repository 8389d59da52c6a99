/* SPDX-License-Identifier: MIT */
#ifndef RESHA_TASK_H
#define RESHA_TASK_H

/* Tasks: handles, waiting for one or several, the current one. Tasks are started in groups (group.h): there is no task
 * without an owner. */

#include <resha/base.h>
#include <resha/time.h>

RESHA_BEGIN_DECLS

/* A handle on a task, in the caller's memory, filled by resha_spawn_task(). Optional. It must stay where it is until
 * the task has ended; it outlives task and group, and keeps the status. Zero-initialise it. Private fields. */
typedef struct resha_task {
        void *_task;       /* while it runs */
        void *_waiters[2]; /* who waits for it */
        int _status;
        uint32_t _state;
        void *_loop; /* that runs it */
        uint64_t _reserved[1];
} resha_task;

/* Waits until the task has ended. Result: 0 for the wait, or -ECANCELED (the task goes on); -EINVAL for a handle never
 * spawned; -EDEADLK for the caller's own; -EPERM if it runs on another loop. The task's own result is in *ret_status
 * (may be NULL), -ECANCELED if it ended cancelled. [task] cancellation point */
RESHA_API RESHA_MUST int resha_task_wait(resha_task *t, int *ret_status);

/* Waits for one of n tasks, whose handles lie in an array: until the first of them has ended, for at most `at_most`.
 * Nothing is cancelled when that has passed. 0 and the index of the task that has ended first, of those that had ended
 * before the call the lowest (may be NULL); -ETIME, -ECANCELED; -EINVAL for n = 0 or a handle never spawned; -EDEADLK
 * if the caller's own is among them. Zero or negative: a look, without waiting. [task] cancellation point
 *
 *     resha_task mirrors[3] = { 0 };
 *     ...
 *     size_t first;
 *     int rc = resha_task_wait_any(mirrors, 3, RESHA_S(2), &first); */
RESHA_API RESHA_MUST int resha_task_wait_any(resha_task *tasks, size_t n, resha_duration at_most, size_t *ret_index);

/* The same until one of them has failed, that is: has ended with a negative status other than -ECANCELED. 1 and its
 * index; 0: all have ended, and none has failed; errors as resha_task_wait_any(). [task] cancellation point */
RESHA_API RESHA_MUST int resha_task_wait_failed(resha_task *tasks, size_t n, resha_duration at_most, size_t *ret_index);

/* The same until all of them have ended: 0. A handle that is given to another task meanwhile is waited for again.
 * *ret_ended is how many have (may be NULL; written always). Errors as resha_task_wait_any(). [task] cancellation
 * point */
RESHA_API RESHA_MUST int resha_task_wait_all(resha_task *tasks, size_t n, resha_duration at_most, size_t *ret_ended);

/* As resha_task_wait(), for at most `at_most`: then -ETIME, and the task goes on. [task] cancellation point */
RESHA_API RESHA_MUST int resha_task_wait_for(resha_task *t, resha_duration at_most, int *ret_status);

/* True once the task has ended; then *ret_status (may be NULL) is set. [loop] */
RESHA_API bool resha_task_done(const resha_task *t, int *ret_status);

/* Cancels the task: every wait of it fails with -ECANCELED from now on. Idempotent, never waits; nothing if it has
 * ended, and nothing on another thread than its loop's. The record of -ECANCELED (error.h) says where this was.
 * [loop] */
RESHA_API void resha_task_cancel_at(resha_task *t, const char *site);
/* resha_task_cancel(t) */
#define resha_task_cancel(t) resha_task_cancel_at((t), RESHA_SITE)

/* Lets every task that is ready run once. 0, or -ECANCELED. [task] cancellation point */
RESHA_API RESHA_MUST int resha_yield(void);

/* -ECANCELED if this task is cancelled here (after having yielded once), else 0; yields only when the task has gone on
 * for long. For loops that compute. [task] cancellation point */
RESHA_API RESHA_MUST int resha_checkpoint(void);

/* Whether the innermost scope is cancelled, without yielding. False outside a task. [loop] */
RESHA_API bool resha_cancelled(void);

/* Whether the caller is a task. [any-thread] */
RESHA_API bool resha_in_task(void);

/* Name of the current task; NULL outside. Static or owned by the task. [loop] */
RESHA_API const char *resha_task_name(void);

/* Replaces the name by a copy of at most 47 bytes: shown in reports and timelines. 0, -ENOMEM, -EPERM. [loop] */
RESHA_API int resha_task_set_name(const char *name);

/* The stack of a task, NULL being the current one: at most max return addresses to ret_addresses, innermost first, of
 * the call in which it waits and all that led to it. Result: their number; 0 if the task has not started or has ended,
 * outside a loop, and where less than 16 KiB of the current task's own stack are left. Names: resha_frame_format()
 * (run.h). [loop]
 */
RESHA_API size_t resha_task_stack(const resha_task *t, const void **ret_addresses, size_t max);

/* fn(arg) on the stack of the thread itself, which is large (8 MiB, mostly; `ulimit -s`), for code of others that needs
 * much: a parser that recurses, a TLS handshake, a regular expression. What a task's own stack has once used stays its
 * memory, so this also keeps tasks small. fn must not wait: it runs in a no-suspend region, where what may wait gives
 * -EDEADLK; resha_fail() works. Inside of such a call, and outside of a task, fn is simply called. Result: fn's. Costs
 * less than a switch to another task and back. [any-thread] */
RESHA_API int resha_deep_call(resha_fn *fn, void *arg);

RESHA_END_DECLS
#endif
