/* SPDX-License-Identifier: MIT */
#ifndef RS_SYNC_WAITED_H
#define RS_SYNC_WAITED_H

/* The waits of this folder, for who looks at tasks from outside. */

#include "core/waited.h"

extern const struct rs_waits rs_mutex_waits, rs_condition_waits, rs_event_waits, rs_semaphore_waits, rs_barrier_waits,
        rs_limiter_waits, rs_queue_waits, rs_channel_waits, rs_select_waits;

#endif
