/* SPDX-License-Identifier: MIT */
#ifndef RESHA_MUTEX_H
#define RESHA_MUTEX_H

/* A lock between tasks of one loop, held across waits. First come, first served: unlock hands it to the first waiter,
 * nobody overtakes. */

#include <resha/base.h>

RESHA_BEGIN_DECLS

typedef struct resha_mutex {
        uint64_t _[4]; /* private; all zero is unlocked; nothing to release */
} resha_mutex;

/* Takes the lock. 0; -ECANCELED (not taken); -EDEADLK if this task holds it; -EPERM if a task of another loop does.
 * [task] cancellation point */
RESHA_API RESHA_MUST int resha_mutex_lock(resha_mutex *m);

/* Takes it if it is free. 0, -EAGAIN, -EDEADLK. [task] never suspends */
RESHA_API RESHA_MUST int resha_mutex_try_lock(resha_mutex *m);

/* Gives it to the first waiter. 0, or -EPERM if this task does not hold it. [task] never suspends */
RESHA_API int resha_mutex_unlock(resha_mutex *m);

/* Whether somebody holds it. [loop] */
RESHA_API bool resha_mutex_locked(const resha_mutex *m);

RESHA_END_DECLS
#endif
