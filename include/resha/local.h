/* SPDX-License-Identifier: MIT */
#ifndef RESHA_LOCAL_H
#define RESHA_LOCAL_H

/* Task-locals: values that belong to a task and are seen by all it calls and starts, without being handed from function
 * to function: the number of a request for the log, the user on whose behalf something is done.
 *
 *     RESHA_LOCAL(request, int, 0);                        // a key, and the value where none was set
 *
 *     static int handle(void *arg)
 *     {
 *             resha_local_set(&request, &(int){ next++ }); // a copy is kept
 *             return work(arg);                            // here, in its children and its thread jobs:
 *     }                                                    // *(const int *)resha_local_get(&request)
 *
 * A task starts with the values that its spawner has at the spawn (the caller of gather or race, for theirs). From
 * then on what one of them sets is not seen by the other. A job on a thread (pool.h) sees those of the task that waits
 * for it, and the report sink (run.h) those of the task that it is told of. */

#include <resha/base.h>

RESHA_BEGIN_DECLS

/* A key: a constant of static storage, known by its address. The value where none was set is at `initial`, or all zero
 * bytes if that is NULL and size is at most 64 (else NULL). */
typedef struct resha_local {
        const char *name; /* static; shown by reports */
        size_t size;      /* of a value, 1 to 4096 bytes */
        const void *initial;
} resha_local;

/* RESHA_LOCAL(name, type, initial): defines a key of this file. The type stands left of a name, as in a declaration;
 * for an array use a struct. */
#define RESHA_LOCAL(key, type, ...) \
        static type const key##_initial_ = __VA_ARGS__; \
        static const resha_local key = { #key, sizeof(type), &key##_initial_ }

/* Sets the current task's value to a copy of *value, until it is set again, the block of RESHA_LOCALS around is left,
 * or the task ends. 0; -ENOMEM, the old value stays; -EINVAL for a key of no size or more than 4096 bytes; -EPERM
 * outside of tasks: in thread jobs and in the report sink too. [task] never suspends */
RESHA_API int resha_local_set(const resha_local *key, const void *value);

/* The value: the one of the current task, else the initial one. Owned by the library, valid until it is set again here,
 * the block of RESHA_LOCALS in which it was set is left, or the task ends. [any-thread] */
RESHA_API const void *resha_local_get(const resha_local *key);

/* The values of a task at one moment. Private fields. */
typedef struct resha_locals {
        void *_task, *_values;
} resha_locals;

/* Declares a block in which values may be set that are gone when it is left, on every way out:
 *
 *     {
 *             RESHA_LOCALS(before);
 *             resha_local_set(&request, &inner);
 *             ...
 *     } // as before */
#define RESHA_LOCALS(saved) \
        resha_locals saved __attribute__((cleanup(resha_locals_restore), unused)) = resha_locals_save()

/* What RESHA_LOCALS is made of. Each save is followed by one restore, in the same task, the latest first. [loop] */
RESHA_API resha_locals resha_locals_save(void);
RESHA_API void resha_locals_restore(resha_locals *saved);

RESHA_END_DECLS
#endif
