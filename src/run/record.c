/* SPDX-License-Identifier: MIT */
/* What a run records where its environment asks for it: RESHA_TIMELINE, a picture at its end, and RESHA_TRACE, a file.
 * Both are read from one event ring: the trace as the run goes, the picture from what is left of it at the end.
 *
 *     RESHA_TIMELINE=1        with a stamp for each event
 *     RESHA_TIMELINE=waits    the same, and beside each lane what it waited for longest
 *     RESHA_TIMELINE=coarse   stamps where the loop looks at its clock anyway: cheap enough to leave on
 *
 * A picture that cannot be had, for want of memory, is left out: it was only to be looked at. A trace is a file that
 * somebody waits for. */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inspect/timeline.h"
#include "inspect/trace.h"
#include "inspect/trace_file.h"
#include "run/run.h"

static bool asked(const char *value, const char *how)
{
        return value && strcmp(value, how) == 0;
}

static void begin_timeline(struct rs_run *r, const char *how)
{
        struct rs_loop *l = &r->loop;
        struct rs_ring *ring = l->ring ? l->ring : rs_ring_new(asked(how, "coarse") ? RS_RING_COARSE : RS_RING_WHOLE);

        if (!ring)
                return;
        r->timeline = true;
        r->waits = asked(how, "waits");
        rs_ring_join(l, ring, !asked(how, "coarse"));
}

int rs_record_begin(struct rs_run *r, const resha_run_opts *opts)
{
        const char *how = getenv("RESHA_TIMELINE"), *path = secure_getenv("RESHA_TRACE");
        bool timeline = how && *how && !asked(how, "0");
        int rc = rs_trace_file_begin(&r->loop, timeline ? RS_RING_WHOLE : RS_TRACE_EVENTS, &r->trace);

        if (rc == -EINVAL)
                return rs_run_refuse(opts, rc, "RESHA_TRACE_LIMIT=%s: MiB of the trace's file, 1 to %d",
                                     getenv("RESHA_TRACE_LIMIT"), 1 << 20);
        if (rc < 0)
                return rs_run_refuse(opts, rc, "RESHA_TRACE=%s: the file cannot be made: %s", path, resha_strerror(rc));
        if (timeline)
                begin_timeline(r, how);
        return 0;
}

void rs_record_end(struct rs_run *r)
{
        const char *path = secure_getenv("RESHA_TRACE");
        struct rs_loop *l = &r->loop;

        if (r->timeline)
                rs_timeline_print(l->ring, r->start, rs_now(l), r->waits, STDERR_FILENO);
        rs_ring_stop(l);
        int rc = r->trace ? rs_trace_file_end(r->trace) : 0;
        if (rc < 0)
                rs_report(l, RESHA_REPORT_SHORTAGE, rc, NULL, "the trace in %s is cut: %s", path ? path : "?",
                          resha_strerror(rc));
        r->trace = NULL;
}
