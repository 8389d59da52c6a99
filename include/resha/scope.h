/* SPDX-License-Identifier: MIT */
#ifndef RESHA_SCOPE_H
#define RESHA_SCOPE_H

/* Scopes: a stretch of code in one task that has a deadline, can be cancelled, or is shielded from cancellation around
 * it.
 *
 *     RESHA_SCOPE(s);
 *     resha_timeout_begin(&s, RESHA_S(5));
 *     int rc = talk(peer);            // each wait in here, at any depth and in any child, ends by the deadline
 *     return resha_scope_end(&s, rc); // -ETIME if that is why; a plain `return rc` is safe too, but gives -ECANCELED
 *
 * Cancellation is level-triggered: while a scope is cancelled, every call in it that may wait fails. Scopes nest, in
 * one task, and end in reverse order of their begin. Outside beats inside: a scope whose deadline passed while
 * something visible outside of it is cancelled ends with -ECANCELED. What lies outside a shield is not visible
 * inside. */

#include <resha/base.h>
#include <resha/time.h>

RESHA_BEGIN_DECLS

typedef struct resha_scope {
        uint64_t _[16]; /* private; all zero before begin */
} resha_scope;

/* Declares a scope that ends, at the latest, when its block is left. */
#define RESHA_SCOPE(s) resha_scope s __attribute__((cleanup(resha_scope_leave))) = { { 0 } }

/* Everything until the end takes at most d, counted from now. Zero or negative: cancelled from the start. [task] never
 * suspends */
RESHA_API void resha_timeout_begin(resha_scope *s, resha_duration d);

/* The same with an instant. [task] never suspends */
RESHA_API void resha_deadline_begin(resha_scope *s, resha_instant t);

/* Cancellation and deadlines from outside do not reach in, for at most d: then waits fail with -ECANCELED, and end
 * gives -ETIME. For clean-up that must wait. [task] never suspends */
RESHA_API void resha_shield_begin(resha_scope *s, resha_duration at_most);

/* Nothing inside may suspend: for code of another library that calls back (qsort, curl, SQLite). A suspending call
 * inside gives -EDEADLK, and aborts when the run is strict. `why` is static. [task] never suspends */
RESHA_API void resha_nosuspend_begin(resha_scope *s, const char *why);

/* Ends the scope; returns what its block returns. rc as it is, except: -ECANCELED becomes -ETIME if this scope's
 * deadline passed, 0 if resha_scope_cancel() was called (of both, what came first), only while nothing visible outside
 * is cancelled.
 * If `begin` could not do its work, its error (-EINVAL, -EPERM) where rc >= 0. [task] never suspends */
RESHA_API RESHA_MUST int resha_scope_end(resha_scope *s, int rc);

/* True if the end of this scope gave -ETIME on its own account; also after the end. [loop] */
RESHA_API bool resha_scope_expired(const resha_scope *s);

/* Cancels what runs inside. Idempotent, never waits, no error by itself; nothing on another thread than its loop's.
 * [loop] */
RESHA_API void resha_scope_cancel_at(resha_scope *s, const char *site);
/* resha_scope_cancel(s) */
#define resha_scope_cancel(s) resha_scope_cancel_at((s), RESHA_SITE)

/* Moves the deadline of a scope that is open and not expired: 0, or -EINVAL. RESHA_NEVER takes it away. [loop] */
RESHA_API int resha_scope_reschedule(resha_scope *s, resha_instant t);

/* The clean-up of RESHA_SCOPE: nothing after end or before begin. [task] never suspends */
RESHA_API void resha_scope_leave(resha_scope *s);

/* fn(arg) in the current task under a timeout: its result, or -ETIME. [task] cancellation point if fn has one */
RESHA_API RESHA_MUST int resha_timeout(resha_duration d, resha_fn *fn, void *arg);

/* fn(arg) in the current task under a shield: its result, or -ETIME. [task] not a cancellation point */
RESHA_API RESHA_MUST int resha_shielded(resha_duration at_most, resha_fn *fn, void *arg);

RESHA_END_DECLS
#endif
