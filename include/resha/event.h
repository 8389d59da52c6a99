/* SPDX-License-Identifier: MIT */
#ifndef RESHA_EVENT_H
#define RESHA_EVENT_H

/* A flag that tasks of one loop wait for. */

#include <resha/base.h>

RESHA_BEGIN_DECLS

typedef struct resha_event {
        uint64_t _[3]; /* private; all zero is not set; nothing to release */
} resha_event;

/* Sets it and wakes all who wait now, even if it is cleared before they run. [loop] */
RESHA_API void resha_event_set(resha_event *e);

/* [loop] */
RESHA_API void resha_event_clear(resha_event *e);

/* [loop] */
RESHA_API bool resha_event_is_set(const resha_event *e);

/* Waits until it is set. 0 or -ECANCELED. [task] cancellation point */
RESHA_API RESHA_MUST int resha_event_wait(resha_event *e);

RESHA_END_DECLS
#endif
