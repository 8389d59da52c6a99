/* SPDX-License-Identifier: MIT */
#ifndef RESHA_EVENT_H
#define RESHA_EVENT_H

/* A flag that tasks of one loop wait for. A thread job must not set it: it returns, and its task sets it.
 *
 *     #include <stdio.h>
 *     #include <resha/resha.h>
 *
 *     static resha_event ready;
 *
 *     static int serve(void *name)
 *     {
 *             int rc = resha_event_wait(&ready);
 *
 *             if (rc >= 0)
 *                     printf("%s\n", (const char *)name);
 *             return rc;
 *     }
 *
 *     static int program(void *arg)
 *     {
 *             RESHA_GROUP(g);
 *
 *             (void)arg;
 *             resha_group_begin(&g, NULL);
 *             resha_spawn(&g, serve, "first");
 *             resha_spawn(&g, serve, "second");
 *             int rc = resha_sleep(RESHA_MS(10)); // what both need is made ready
 *             resha_event_set(&ready);
 *             return resha_group_end(&g, rc);
 *     }
 *
 *     int main(void)
 *     {
 *             return resha_main(program, NULL);
 *     }
 */

#include <resha/base.h>

RESHA_BEGIN_DECLS

typedef struct resha_event {
        uint64_t _[3]; /* private; all zero is not set; nothing to release */
} resha_event;

/* Sets it and wakes all who wait now, even if it is cleared before they run. [loop] */
RESHA_API void resha_event_set(resha_event *e);

/* Whoever waits from now on waits for the next resha_event_set(). [loop] */
RESHA_API void resha_event_clear(resha_event *e);

/* Whether it is set. [loop] */
RESHA_API bool resha_event_is_set(const resha_event *e);

/* Waits until it is set. 0 or -ECANCELED. [task] cancellation point */
RESHA_API RESHA_MUST int resha_event_wait(resha_event *e);

RESHA_END_DECLS
#endif
