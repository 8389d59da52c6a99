/* SPDX-License-Identifier: MIT */
#ifndef RESHA_CONDITION_H
#define RESHA_CONDITION_H

/* A condition variable: tasks of one loop wait until what a mutex guards has changed.
 *
 *     #include <stdio.h>
 *     #include <resha/resha.h>
 *
 *     struct store { resha_mutex mutex; resha_condition filled; int goods; };
 *
 *     static bool has_goods(void *arg)
 *     {
 *             return ((struct store *)arg)->goods > 0;
 *     }
 *
 *     static int buy(void *arg)
 *     {
 *             struct store *s = arg;
 *             int rc = resha_mutex_lock(&s->mutex);
 *
 *             if (rc < 0)
 *                     return rc;
 *             rc = resha_condition_wait_for(&s->filled, has_goods, s); // the mutex is free meanwhile
 *             if (rc >= 0)
 *                     printf("bought one, %d left\n", --s->goods);
 *             resha_mutex_unlock(&s->mutex);                           // it is held, whatever rc is
 *             return rc;
 *     }
 *
 *     static int program(void *arg)
 *     {
 *             struct store s = { .goods = 0 };
 *             RESHA_GROUP(g);
 *
 *             (void)arg;
 *             resha_condition_init(&s.filled, &s.mutex);
 *             resha_group_begin(&g, NULL);
 *             resha_spawn(&g, buy, &s);
 *             resha_spawn(&g, buy, &s);
 *             int rc = resha_sleep(RESHA_MS(10));
 *             if (rc >= 0 && (rc = resha_mutex_lock(&s.mutex)) >= 0) {
 *                     s.goods += 2;
 *                     resha_condition_notify(&s.filled, 2);
 *                     resha_mutex_unlock(&s.mutex);
 *             }
 *             return resha_group_end(&g, rc);
 *     }
 *
 *     int main(void)
 *     {
 *             return resha_main(program, NULL);
 *     }
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
