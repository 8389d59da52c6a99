/* SPDX-License-Identifier: MIT */
#ifndef RESHA_CONDITION_H
#define RESHA_CONDITION_H

/* A condition variable: tasks of one loop wait until what a mutex guards has changed.
 *
 *     static bool has_room(void *arg) { return ((struct store *)arg)->used < 10; }
 *
 *     rc = resha_mutex_lock(&store->mutex);
 *     if (rc < 0)
 *             return rc;
 *     rc = resha_condition_wait_for(&store->changed, has_room, store);  // the mutex is free meanwhile
 *     if (rc >= 0)
 *             store->used++;
 *     resha_mutex_unlock(&store->mutex);                                // it is held, whatever rc is
 *     return rc;
 *
 * and whoever changes it, with the mutex held: `store->used--; resha_condition_notify(&store->changed, 1);`.
 *
 * A notified waiter goes directly to the end of the mutex's line, and its task runs when it has the lock: nobody is
 * woken to wait again. First come, first served. A wait that was notified has been done, so a cancel that comes after
 * that does not take it back and no notification is lost: the next call sees the cancel. */

#include <resha/base.h>
#include <resha/mutex.h>

RESHA_BEGIN_DECLS

typedef struct resha_condition {
        uint64_t _[4]; /* private; nothing to release */
} resha_condition;

/* Nobody waits; m guards what is waited for, and may have several conditions. Both stay where they are while they are
 * used. [any-thread] */
RESHA_API void resha_condition_init(resha_condition *c, resha_mutex *m);

/* Gives the mutex away and waits until notified; then, and also when cancelled, takes it again, however long that
 * takes: taking it is no cancellation point. What was waited for may have changed back by then: look again, or use
 * resha_condition_wait_for(). 0, with the mutex held. -ECANCELED, with the mutex held, and no notification used up.
 * -EPERM if this task does not hold the mutex, -EINVAL without resha_condition_init(): nothing was done. [task]
 * cancellation point */
RESHA_API RESHA_MUST int resha_condition_wait(resha_condition *c);

/* Waits until pred(arg) is true; asks it at once, and after each notification, always with the mutex held. It must not
 * suspend. Results as of resha_condition_wait(); 0: pred(arg) was true and nobody else had the mutex since. [task]
 * cancellation point */
RESHA_API RESHA_MUST int resha_condition_wait_for(resha_condition *c, bool (*pred)(void *arg), void *arg);

/* Notifies the first n of those who wait, or all if there are fewer. They run once this task has given the mutex back.
 * 0; -EPERM if this task does not hold the mutex, -EINVAL without resha_condition_init(). [task] never suspends */
RESHA_API int resha_condition_notify(resha_condition *c, size_t n);

/* The same for all who wait. [task] never suspends */
RESHA_API int resha_condition_notify_all(resha_condition *c);

RESHA_END_DECLS
#endif
