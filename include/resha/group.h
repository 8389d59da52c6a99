/* SPDX-License-Identifier: MIT */
#ifndef RESHA_GROUP_H
#define RESHA_GROUP_H

/* Groups own tasks. A group cannot end before its children have, on every way out of its block, so children may use
 * whatever the parent declared before the group. The first failure cancels the other children and the body, and is the
 * result.
 *
 *     RESHA_GROUP(g);                             // declare it after everything its children use
 *     resha_group_begin(&g, &(resha_group_opts){ .limit = 5 });
 *     for (size_t i = 0; i < n; i++)
 *             resha_spawn(&g, fetch, &items[i]);  // waits while five are running
 *     return resha_group_end(&g, 0);              // joins
 *
 * A child that is cancelled on its own, by its handle (resha_task_cancel()) or by a trial of test.h, is no failure: the
 * others and the body go on. One that gives -ECANCELED though nobody has cancelled it has failed.
 *
 * A group is also a scope (scope.h): it may be cancelled, and what is cancelled outside of it reaches body and
 * children. A child inherits cancellation and deadlines from its group, not from the place of its spawn. */

#include <resha/base.h>
#include <resha/error.h>
#include <resha/task.h>
#include <resha/time.h>

RESHA_BEGIN_DECLS

typedef struct resha_group {
        uint64_t _[32]; /* private; all zero before begin */
} resha_group;

/* Declares a group that ends, at the latest, when its block is left: then its children are cancelled and joined. */
#define RESHA_GROUP(g) resha_group g __attribute__((cleanup(resha_group_leave))) = { { 0 } }

typedef struct resha_group_opts {
        /* at most this many children at once: spawn waits, and is a cancellation point [0: no limit] */
        unsigned limit;
        bool keep_going; /* a failure cancels nobody; end gives the first [false] */
        bool background; /* end cancels the children as soon as the body is done: servants of the body [false] */
        /* caller's list: failures in order of time, at most max_errors; the first is kept anyway [NULL] */
        resha_error *errors;
        size_t max_errors;
        uint64_t _reserved[4];
} resha_group_opts;

/* Opens the group. What it cannot do is told by end: -EINVAL for bad options; -EDEADLK inside of a no-suspend region,
 * where nobody could wait for the children; -EPERM outside a task. [task] never suspends */
RESHA_API void resha_group_begin(resha_group *g, const resha_group_opts *opts);

/* Ends the group: rc < 0 cancels the children; joins them all. Result: the first failure, of a child or the body (rc);
 * 0 if the group was cancelled by resha_group_cancel() and nothing outside is; -ECANCELED if cancelled from outside;
 * else rc, or what begin could not do if rc >= 0. [task] not a cancellation point: waits for the children whatever is
 * cancelled */
RESHA_API RESHA_MUST int resha_group_end(resha_group *g, int rc);

/* Waits for the children, for at most `grace`; then cancels and joins the rest. 0: all ended by themselves; -ETIME:
 * some were cancelled; -ECANCELED: cancelled meanwhile (children too). The group stays open and can be ended. [task]
 * cancellation point */
RESHA_API RESHA_MUST int resha_group_drain(resha_group *g, resha_duration grace);

/* Cancels body and children. Idempotent, never waits, no error by itself; nothing on another thread than its loop's.
 * [loop] */
RESHA_API void resha_group_cancel_at(resha_group *g, const char *site);
/* resha_group_cancel(g) */
#define resha_group_cancel(g) resha_group_cancel_at((g), RESHA_SITE)

/* How many children and bodies have failed so far; how many children have not ended. [loop] */
RESHA_API size_t resha_group_failures(const resha_group *g);
RESHA_API size_t resha_group_running(const resha_group *g);

/* The clean-up of RESHA_GROUP: nothing after end or before begin. A failure that it finds is remembered: if the block
 * was left with -ECANCELED only because of it, it takes that code's place at the next boundary; otherwise it is
 * reported as lost. [task] not a cancellation point: waits for the children */
RESHA_API void resha_group_leave(resha_group *g);

typedef struct resha_spawn_opts {
        size_t copy;      /* bytes of *arg to copy for the task; at most 16 KiB [0: borrowed] */
        resha_task *task; /* a handle to fill; -EBUSY while its last task runs [NULL] */
        const char *name; /* static [NULL: "task"] */
        const char *site; /* static, FILE:LINE [NULL] */
        size_t stack;     /* bytes of address space for the stack [that of the run] */
        uint64_t _reserved[4];
} resha_spawn_opts;

/* Starts fn(arg) as a child of g; it is queued and runs when the caller next suspends. A task always runs to its first
 * wait, even if it is cancelled before. arg is borrowed until the task has ended, unless copied.
 * 0; -ECANCELED if the group is cancelled (nothing was started); -EAGAIN at a limit of the system, -ENOMEM, -EINVAL
 * (options), -EPERM (group not open, or of another loop). With a borrowed arg the result may be left unchecked: the
 * group fails with it. With a copy it must be checked: what *arg owns is still the caller's. In a group with a limit:
 * [task] cancellation point; otherwise [loop] */
RESHA_API int resha_spawn_opt(resha_group *g, resha_fn *fn, const void *arg, const resha_spawn_opts *opts);
RESHA_API int resha_spawn_at(resha_group *g, resha_fn *fn, void *arg, const char *name, const char *site);
RESHA_API int resha_spawn_task_at(resha_group *g, resha_fn *fn, void *arg, resha_task *handle, const char *name,
                                  const char *site);
RESHA_API RESHA_MUST int resha_spawn_copy_at(resha_group *g, resha_fn *fn, const void *arg, size_t size,
                                             const char *name, const char *site);

/* With a name and a place: resha_spawn(g, fn, arg), resha_spawn_task(g, fn, arg, handle), resha_spawn_copy(g, fn, arg).
 * All take compound literals too, as &(struct client){ a, b }. */
#define resha_spawn(g, fn, ...) resha_spawn_at((g), (fn), __VA_ARGS__, #fn, RESHA_SITE)
#define resha_spawn_task(g, fn, ...) resha_spawn_task_at((g), (fn), __VA_ARGS__, #fn, RESHA_SITE)
#define resha_spawn_copy(g, fn, ...) \
        resha_spawn_copy_at((g), (fn), (__VA_ARGS__), sizeof *(__VA_ARGS__), #fn, RESHA_SITE)

RESHA_END_DECLS
#endif
