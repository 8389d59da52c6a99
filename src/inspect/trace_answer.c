/* SPDX-License-Identifier: MIT */
/* The answer to `trace MS`: a trace of all loops (trace.c), written to the client as it grows.
 *
 * A loop begins it and ends it on its own thread, by questions; in between, this thread empties the rings. A loop that
 * does not come to the first question is left out, which a note in its place says. One that does not come to the last
 * is waited for: it still writes into its ring. One trace at a time: what it costs a program is bounded. */

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "inspect/answer.h"
#include "inspect/snapshot.h"
#include "inspect/trace.h"
#include "sys/sys.h"

enum { LOOPS = 64, DRAIN_NS = 10000000 };

struct traced {
        uint32_t loop;
        struct rs_trace *trace;
        bool more; /* tasks that are to be told of */
};

struct traces {
        struct rs_trace_out out;
        size_t n;
        struct traced traced[LOOPS];
};

static bool tracing; /* atomic */

void rs_answer_trace_forked(void)
{
        tracing = false;
}

static int send_text(void *arg, const char *text, size_t n)
{
        return rs_answer_send(arg, text, n) ? 0 : -ECANCELED;
}

/* ---- on the loop's thread ---- */

static void tell(struct rs_loop *l, void *arg)
{
        struct traced *x = arg;

        x->more = rs_trace_tell(x->trace, l);
}

static void begin(struct rs_loop *l, void *arg)
{
        rs_trace_begin(((struct traced *)arg)->trace, l);
        tell(l, arg);
}

static void end(struct rs_loop *l, void *arg)
{
        rs_trace_end(((struct traced *)arg)->trace, l);
}

/* ---- on ours ---- */

static void leave_out(struct rs_trace *trace, unsigned loop)
{
        char why[160];

        snprintf(why, sizeof why, "loop %u is blocked: nothing of it is in the trace; resha stack %d shows where", loop,
                 (int)rs_sys_pid());
        rs_trace_left_out(trace, "blocked", why);
}

static void begin_all(struct traces *t)
{
        struct rs_view v = { 0 };
        int rc;

        while (t->n < LOOPS && rs_view_next(v.number, &v)) {
                struct traced *x = &t->traced[t->n];
                *x = (struct traced){ .loop = v.number };
                x->trace = rs_trace_new(&t->out, v.number, program_invocation_short_name, RS_TRACE_EVENTS);
                rc = x->trace ? rs_view_ask(v.number, begin, x) : -ENOMEM;
                if (rc == 1)
                        t->n++;
                else if (rc == 0)
                        leave_out(x->trace, v.number);
                else
                        rs_trace_free(x->trace);
        }
}

static bool drain_all(struct traces *t)
{
        bool good = true;

        for (size_t i = 0; i < t->n; i++) {
                struct traced *x = &t->traced[i];
                if (x->more && rs_view_ask(x->loop, tell, x) != 1)
                        x->more = false;
                good = rs_trace_drain(x->trace) == 0 && good;
        }
        return good;
}

static void end_all(struct traces *t)
{
        for (size_t i = 0; i < t->n; i++) {
                while (rs_view_ask(t->traced[i].loop, end, &t->traced[i]) == 0)
                        (void)rs_trace_drain(t->traced[i].trace);
                rs_trace_free(t->traced[i].trace);
        }
}

void rs_answer_trace(struct rs_answer *a, const struct rs_request *r)
{
        struct traces *t = resha_calloc(1, sizeof *t);
        int64_t now = rs_sys_now(), over = now + (int64_t)r->ms * 1000000;

        if (!t || __atomic_exchange_n(&tracing, true, __ATOMIC_SEQ_CST)) {
                rs_snapshot_error(&a->json, t ? "somebody else traces this process already" : "no memory for a trace");
                resha_free(t);
                return;
        }
        rs_trace_open(&t->out, send_text, a, 0);
        begin_all(t);
        while (now < over && rs_answer_pause(a, now + DRAIN_NS < over ? now + DRAIN_NS : over)) {
                now = rs_sys_now();
                if (now < over && !drain_all(t))
                        break;
        }
        end_all(t);
        (void)rs_trace_close(&t->out); /* who would not take it does not read any more */
        __atomic_store_n(&tracing, false, __ATOMIC_SEQ_CST);
        resha_free(t);
}
