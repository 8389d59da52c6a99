/* SPDX-License-Identifier: MIT */
/* All kinds of waits that have something to say to who looks from outside: of each layer its own. */

#include "exec/pool.h"
#include "inspect/walk.h"
#include "net/lookup.h"
#include "process/process.h"
#include "sync/waited.h"

const struct rs_waits *const rs_all_waits[] = {
        &rs_operation_waits,
        &rs_queue_waits,
        &rs_mutex_waits,
        &rs_join_waits,
        &rs_drain_waits,
        &rs_handle_waits,
        &rs_handles_waits,
        &rs_place_waits,
        &rs_event_waits,
        &rs_condition_waits,
        &rs_semaphore_waits,
        &rs_barrier_waits,
        &rs_limiter_waits,
        &rs_channel_waits,
        &rs_select_waits,
        &rs_job_waits,
        &rs_question_waits,
        &rs_process_waits,
        NULL,
};
