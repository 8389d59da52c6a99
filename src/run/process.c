/* SPDX-License-Identifier: MIT */
/* What runs change of the process: how it takes SIGPIPE, and what becomes of a child that is forked. */

#include "run/run.h"

#include <signal.h>

#include "core/core.h"
#include "exec/pool.h"
#include "inspect/dump.h"
#include "inspect/inspector.h"
#include "inspect/trace_file.h"
#include "net/resolve.h"
#include "net/share.h"
#include "os/overflow.h"
#include "os/signals.h"
#include "sys/nudge.h"
#include "sys/observe.h"
#include "sys/print.h"
#include "sys/spare.h"
#include "sys/sys.h"
#include "sys/thread.h"
#include "workers/workers.h"

/* Dispositions are the process's: the first of the runs at a time takes SIGPIPE away, the last gives it back. */
static struct {
        struct rs_lock lock;
        unsigned runs;
        struct sigaction before;
        bool watches_forks;
} sigpipe = { .lock = RS_LOCK_INIT };

/* In the child. What the process has beside its loops begins anew; the loops are the parent's, with their descriptors
 * and threads. */
static void forked(void)
{
        sigpipe.lock = (struct rs_lock)RS_LOCK_INIT;
        if (sigpipe.runs)
                rs_sys_signal_put(SIGPIPE, &sigpipe.before);
        sigpipe.runs = 0;
        rs_thread_forked();
        rs_signals_forked();
        rs_nudge_forked();
        rs_overflow_forked();
        rs_resolve_forked();
        rs_share_forked();
        rs_jobs_forked();
        rs_lane_forked();
        rs_observe_forked();
        rs_watchdog_forked();
        rs_dumper_forked();
        rs_inspector_forked();
        rs_spare_forked();
        rs_print_forked();
        rs_trace_file_forked();
        rs_loop_forked();
}

/* Once for the process; without it nothing is run, rather than that a child gets in the way of its parent. */
int rs_process_watch_forks(void)
{
        rs_lock(&sigpipe.lock);
        int rc = sigpipe.watches_forks ? 0 : rs_thread_at_fork(rs_resolve_before_fork, rs_resolve_after_fork, forked);
        sigpipe.watches_forks = rc == 0;
        rs_unlock(&sigpipe.lock);
        return rc;
}

bool rs_process_ignore_sigpipe(void)
{
        rs_lock(&sigpipe.lock);
        bool ok = sigpipe.runs || rs_sys_signal_catch(SIGPIPE, SIG_IGN, &sigpipe.before) == 0;
        sigpipe.runs += ok;
        rs_unlock(&sigpipe.lock);
        return ok;
}

void rs_process_restore_sigpipe(void)
{
        rs_lock(&sigpipe.lock);
        if (--sigpipe.runs == 0)
                rs_sys_signal_put(SIGPIPE, &sigpipe.before);
        rs_unlock(&sigpipe.lock);
}
