/* SPDX-License-Identifier: MIT */
#ifndef RESHA_BASE_H
#define RESHA_BASE_H

/* What every other header builds on: attributes, the shape of a task function, version.
 *
 * Conventions of the whole API
 *   Results      0 or more: good. Negative: failed, a negative errno or one of the codes in error.h. Never through
 *                errno, which each task has to itself.
 *   Streams of   1: got or did one. 0: ended or shut down. Negative: failed. (queue, read, accept, ticker)
 *   items        `try` forms give -EAGAIN where the waiting form would wait.
 *   Outputs      come last, are called ret_*, and are written on success only; counts of progress are written always.
 *   Options      a struct whose zero value means all defaults; a NULL pointer too. Reserved words must be zero or the
 *                call gives -EINVAL.
 *   Tags         [task]       called inside a task; may suspend, and may yield even if it need not wait
 *                [loop]       called on the thread of a running loop, inside a task or not; never suspends. On another
 *                             thread (that of a job, too) a call that would wake a task aborts
 *                [any-thread] called from anywhere, a running loop or none
 *                [signal-safe] as [any-thread], from a signal handler too
 *                A [task] call that says "cancellation point" gives -ECANCELED, after having yielded once, while the
 *                scope around it is cancelled. Called outside a task, [task] calls give -EPERM.
 *   Durability   every call that can give -ECANCELED must be checked by the caller (RESHA_MUST).
 */

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define RESHA_VERSION_MAJOR 0
#define RESHA_VERSION_MINOR 1
#define RESHA_VERSION_PATCH 0

/* Never inlined, not even where the static library is optimised with the program: calls look at their own frame. */
#define RESHA_API __attribute__((visibility("default"), noinline))
#define RESHA_MUST __attribute__((warn_unused_result))
#define RESHA_PRINTF(format_index, first_index) __attribute__((format(printf, format_index, first_index)))

/* RESHA_CLEANUP(fn): calls fn(&variable) when the variable goes out of scope, on every way out of the block. No goto
 * may jump over the declaration into its block, nor over RESHA_GROUP() and its like: the variable would be cleaned
 * up without having been set. clang refuses that; gcc tells with -Wjump-misses-init alone. */
#define RESHA_CLEANUP(fn) __attribute__((cleanup(fn)))

#define RESHA_STRINGIFY_(x) #x
#define RESHA_STRINGIFY(x) RESHA_STRINGIFY_(x)
#define RESHA_SITE __FILE__ ":" RESHA_STRINGIFY(__LINE__)

#ifdef __cplusplus
#define RESHA_BEGIN_DECLS extern "C" {
#define RESHA_END_DECLS }
#define RESHA_LITERAL(type) type
#else
#define RESHA_BEGIN_DECLS
#define RESHA_END_DECLS
#define RESHA_LITERAL(type) (type)
#endif

RESHA_BEGIN_DECLS

/* What a task runs. 0 or more: good; negative: failed. Must not be left by longjmp(), pthread_exit() or a C++
 * exception. */
typedef int resha_fn(void *arg);

/* Releases what an item owns; never suspends. */
typedef void resha_drop_fn(void *item);

/* "0.1.0", of the library that is loaded. [any-thread] */
RESHA_API const char *resha_version(void);

RESHA_END_DECLS
#endif
