/* SPDX-License-Identifier: MIT */
#ifndef RESHA_MUTEX_H
#define RESHA_MUTEX_H

/* A lock between tasks of one loop, held across waits. First come, first served: unlock hands it to the first waiter,
 * nobody overtakes. The task that locked it is its owner, and nobody else unlocks it.
 *
 *     #include <stdio.h>
 *     #include <resha/resha.h>
 *
 *     struct account { resha_mutex mutex; int balance; };
 *
 *     static int pay_in(void *arg)
 *     {
 *             struct account *a = arg;
 *             int rc = resha_mutex_lock(&a->mutex);
 *
 *             if (rc < 0)
 *                     return rc;              // cancelled: it is not ours
 *             int seen = a->balance;
 *             rc = resha_sleep(RESHA_MS(10)); // others run, and wait for the lock
 *             if (rc >= 0)
 *                     a->balance = seen + 5;
 *             resha_mutex_unlock(&a->mutex);
 *             return rc;
 *     }
 *
 *     static int program(void *arg)
 *     {
 *             struct account a = { .balance = 0 };
 *             RESHA_GROUP(g);
 *
 *             (void)arg;
 *             resha_group_begin(&g, NULL);
 *             for (int i = 0; i < 3; i++)
 *                     resha_spawn(&g, pay_in, &a);
 *             int rc = resha_group_end(&g, 0);
 *             printf("%d\n", a.balance);
 *             return rc;
 *     }
 *
 *     int main(void)
 *     {
 *             return resha_main(program, NULL);
 *     }
 *
 * A waiter that was given the lock has it, even if it is cancelled before it runs: it unlocks as always. */

#include <resha/base.h>

RESHA_BEGIN_DECLS

typedef struct resha_mutex {
        uint64_t _[4]; /* private; all zero is unlocked; nothing to release */
} resha_mutex;

/* Takes the lock. 0; -ECANCELED (not taken); -EDEADLK if this task holds it; -EPERM if a task of another loop does.
 * [task] cancellation point */
RESHA_API RESHA_MUST int resha_mutex_lock(resha_mutex *m);

/* Takes it if it is free. 0, -EAGAIN, or -EDEADLK if this task holds it. [task] never suspends */
RESHA_API RESHA_MUST int resha_mutex_try_lock(resha_mutex *m);

/* Gives it to the first waiter. 0, or -EPERM if this task does not hold it. [task] never suspends */
RESHA_API int resha_mutex_unlock(resha_mutex *m);

/* Whether somebody holds it. [loop] */
RESHA_API bool resha_mutex_locked(const resha_mutex *m);

RESHA_END_DECLS
#endif
