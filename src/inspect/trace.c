/* SPDX-License-Identifier: MIT */
/* A trace of one loop in the Trace Event Format, out of its event ring.
 *
 *     process     the loop
 *     thread      a task, called by its name; and LOOP_TRACK, the loop, with all that runs in its turn
 *     X           a span: "runs", "ready", or what it waits for, with who holds it; on the loop's track what runs, the
 *                 loop's own visits, and in them "polls" and "sleeps"
 *     s, f        a wake-up, or a spawn: from the span in which it happened to the one that it led to
 *     i           a cancel; and, as the last event of a loop, what is missing
 *     C           how many tasks there are and are ready; system calls so far
 *     M           names, and their order
 *
 * A span is written when it is over, so each is whole, and nothing is ever left open; viewers sort. A flow is written
 * behind the two spans that it ties: they are there when it is read, even if all three are of the same instant.
 *
 * Time is that of the loop's clock in microseconds, with three digits behind the point: to the nanosecond. */

#include "inspect/trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "core/core.h"
#include "inspect/follow.h"
#include "inspect/trace_line.h"
#include "sys/sys.h"

enum { LOOP_TRACK = 2000000000, TELL_SLABS = 4, BATCH = 128, LAST_WORDS = 1024, FLOW_BYTES = 512 };

struct rs_trace {
        struct rs_trace_out *out;
        struct rs_ring *ring; /* its own, or that which the loop has already */
        struct rs_ring_reader reader;
        struct rs_follow follow;
        unsigned loop;
        bool begun, named;
        bool addresses;         /* are shown: simulated, they would differ from run to run */
        struct rs_node *slab;   /* the next to be told of; NULL: none */
        int64_t start;          /* of what it shows */
        uint64_t flows, tracks; /* so far */
        uint64_t gaps;
        uint64_t calls; /* what the counters show */
        size_t tasks, ready;
        const char *backend;
        void (*before)(void *arg), (*after)(void *arg); /* around what its loop writes */
        void *around_arg;
        char program[32];
};

/* ---- out ---- */

void rs_trace_open(struct rs_trace_out *out, int (*write)(void *arg, const char *text, size_t n), void *arg,
                   uint64_t limit)
{
        out->write = write;
        out->arg = arg;
        out->limit = limit;
        out->bytes = out->dropped = 0;
        out->traces = 0;
        out->failed = 0;
        out->used = 0;
}

static void out_flush(struct rs_trace_out *out)
{
        if (out->used && !out->failed) {
                int rc = out->write(out->arg, out->text, out->used);
                out->failed = rc < 0 ? rc : 0;
        }
        out->used = 0;
}

static void out_text(struct rs_trace_out *out, const char *text, size_t n)
{
        if (out->used + n > sizeof out->text)
                out_flush(out);
        memcpy(out->text + out->used, text, n);
        out->used += n;
        out->bytes += n;
}

int rs_trace_close(struct rs_trace_out *out)
{
        out_text(out, out->bytes ? "\n]\n" : "[\n]\n", out->bytes ? 3 : 4);
        out_flush(out);
        return out->failed;
}

/* ---- one event ---- */

/* For n bytes, and last words behind them. */
static bool room(const struct rs_trace_out *out, size_t n)
{
        return !out->limit || out->bytes + n + LAST_WORDS * (uint64_t)out->traces <= out->limit;
}

/* last: it is written although there is no room left. From the first that is not on, none is. */
static void finish(struct rs_trace *t, struct rs_line *line, bool last)
{
        struct rs_trace_out *out = t->out;

        rs_line_add(line, line->args ? "}}" : "}");
        if (!last && (out->dropped || !room(out, line->n))) {
                out->dropped++;
                return;
        }
        out_text(out, out->bytes ? ",\n" : "[\n", 2);
        out_text(out, line->text, line->n);
}

/* ---- names ---- */

static void metadata(struct rs_trace *t, uint32_t track, const char *what, const char *name, int64_t order)
{
        struct rs_line line;

        rs_line_begin(&line, t->loop, "M", track, 0);
        rs_line_name(&line, "__metadata", what);
        if (name)
                rs_line_arg_string(&line, "name", name);
        else
                rs_line_arg_number(&line, "sort_index", order);
        finish(t, &line, false);
}

static void name_loop(struct rs_trace *t, const char *what)
{
        char text[96];

        snprintf(text, sizeof text, "%s: loop %u (%s)", t->program, t->loop, what);
        metadata(t, LOOP_TRACK, "process_name", text, 0);
        metadata(t, LOOP_TRACK, "process_sort_index", NULL, t->loop);
        metadata(t, LOOP_TRACK, "thread_name", "loop", 0);
        metadata(t, LOOP_TRACK, "thread_sort_index", NULL, -1);
}

static void name_task(struct rs_follow *f, struct rs_track *k)
{
        struct rs_trace *t = f->arg;

        metadata(t, k->id, "thread_name", k->name, 0);
        metadata(t, k->id, "thread_sort_index", NULL, k->id);
}

static bool task_made(struct rs_follow *f, struct rs_track *k, const struct rs_event *e)
{
        struct rs_trace *t = f->arg;

        (void)e;
        snprintf(k->name, sizeof k->name, "task %" PRIu32, k->id);
        return t->tracks < RS_TRACE_TRACKS && ++t->tracks;
}

/* ---- spans ---- */

static void begin_span(struct rs_line *line, struct rs_trace *t, uint32_t track, int64_t from, int64_t to)
{
        from = from < t->start ? t->start : from;
        rs_line_begin(line, t->loop, "X", track, from);
        rs_line_add(line, ",\"dur\":");
        rs_line_time(line, to > from ? to - from : 0);
}

static uint32_t track_number(uint32_t task)
{
        return task ? task : LOOP_TRACK;
}

static void tie(struct rs_trace *t, const char *ph, uint32_t track, int64_t ts, const char *name)
{
        struct rs_line line;

        rs_line_begin(&line, t->loop, ph, track, ts);
        rs_line_name(&line, "wake", name);
        rs_line_add(&line, ",\"id\":");
        rs_line_number(&line, (int64_t)((uint64_t)t->loop << 40 | t->flows));
        if (*ph == 'f')
                rs_line_add(&line, ",\"bp\":\"e\"");
        finish(t, &line, false);
}

/* From who has made it ready to its run. */
static void flow(struct rs_trace *t, struct rs_track *k)
{
        const char *name = k->spawned ? "spawn" : "wake";

        if (!k->linked)
                return;
        k->linked = false;
        if (!room(t->out, FLOW_BYTES) || t->out->dropped) {
                t->out->dropped++;
                return;
        }
        t->flows++;
        tie(t, "s", track_number(k->waker), k->woken, name);
        tie(t, "f", k->id, k->since, name);
}

static void span_run(struct rs_trace *t, struct rs_track *k, int64_t to)
{
        struct rs_line line;

        begin_span(&line, t, k->id, k->since, to);
        rs_line_name(&line, "run", "runs");
        if (k->waker == 0)
                rs_line_arg_string(&line, k->spawned ? "spawned_by" : "woken_by", "loop");
        else if (k->waker != RS_TRACK_NONE)
                rs_line_arg_number(&line, k->spawned ? "spawned_by" : "woken_by", k->waker);
        if (k->spawned && k->site)
                rs_line_arg_string(&line, "spawned_at", k->site);
        if (k->over)
                rs_line_arg_number(&line, "result", k->code);
        finish(t, &line, false);
        begin_span(&line, t, LOOP_TRACK, k->since, to);
        rs_line_name(&line, "run", k->name);
        rs_line_arg_number(&line, "task", k->id);
        finish(t, &line, false);
        flow(t, k);
        k->spawned = false;
}

static void span_wait(struct rs_trace *t, struct rs_track *k, int64_t to)
{
        struct rs_line line;

        begin_span(&line, t, k->id, k->since, to);
        rs_line_name(&line, "wait", k->what ? k->what : "?");
        if (k->whom)
                rs_line_arg_number(&line, "held_by", k->whom);
        if (k->object && t->addresses) {
                rs_line_arg(&line, "object");
                rs_line_add(&line, "\"0x");
                rs_line_hex(&line, k->object, 12);
                rs_line_add(&line, "\"");
        }
        if (k->since < t->start)
                rs_line_arg_number(&line, "before_ns", t->start - k->since);
        finish(t, &line, false);
}

static void span_ready(struct rs_trace *t, struct rs_track *k, int64_t to)
{
        struct rs_line line;

        if (to <= k->since)
                return;
        begin_span(&line, t, k->id, k->since, to);
        rs_line_name(&line, "ready", "ready");
        finish(t, &line, false);
}

static void span(struct rs_follow *f, struct rs_track *k)
{
        struct rs_trace *t = f->arg;

        if (!k->named && k->state != RS_SPAN_NONE)
                name_task(f, k); /* it was passed over when its name was told */
        k->named = true;
        switch (k->state) {
        case RS_SPAN_NONE: break;
        case RS_SPAN_RUN: span_run(t, k, f->now); break;
        case RS_SPAN_WAIT: span_wait(t, k, f->now); break;
        case RS_SPAN_READY: span_ready(t, k, f->now); break;
        }
}

static void span_loop(struct rs_trace *t, int64_t from, int64_t to, const char *name)
{
        struct rs_line line;

        begin_span(&line, t, LOOP_TRACK, from, to);
        rs_line_name(&line, "loop", name);
        finish(t, &line, false);
}

/* ---- what is no span ---- */

static void cancelled(struct rs_follow *f, struct rs_track *k, uint32_t by)
{
        struct rs_trace *t = f->arg;
        struct rs_line line;

        rs_line_begin(&line, t->loop, "i", k->id, f->now);
        rs_line_name(&line, "cancel", "cancelled");
        rs_line_add(&line, ",\"s\":\"t\"");
        if (by)
                rs_line_arg_number(&line, "by", by);
        else
                rs_line_arg_string(&line, "by", "loop");
        finish(t, &line, false);
}

static void counters(struct rs_trace *t)
{
        const struct rs_follow *f = &t->follow;
        struct rs_line line;

        if (f->n == t->tasks && f->ready == t->ready)
                return;
        t->tasks = f->n;
        t->ready = f->ready;
        rs_line_begin(&line, t->loop, "C", LOOP_TRACK, f->now);
        rs_line_name(&line, "count", "tasks");
        rs_line_arg_number(&line, "ready", (int64_t)f->ready);
        rs_line_arg_number(&line, "not ready", (int64_t)(f->n - f->ready));
        finish(t, &line, false);
}

static void count_calls(struct rs_trace *t, uint64_t calls)
{
        struct rs_line line;

        if (calls == t->calls)
                return;
        t->calls = calls;
        rs_line_begin(&line, t->loop, "C", LOOP_TRACK, t->follow.now);
        rs_line_name(&line, "count", "system calls");
        rs_line_arg_number(&line, "so far", (int64_t)calls);
        finish(t, &line, false);
}

static void loop_ran(struct rs_follow *f, int64_t from)
{
        struct rs_trace *t = f->arg;

        span_loop(t, from, f->now, "loop");
        counters(t);
}

static void polled(struct rs_follow *f, int64_t from, bool slept, uint64_t calls)
{
        struct rs_trace *t = f->arg;

        span_loop(t, from, f->now, slept ? "sleeps" : "polls");
        count_calls(t, calls);
}

/* ---- reading ---- */

static void drain(struct rs_trace *t)
{
        struct rs_event events[BATCH];
        bool gap;
        size_t n;

        if (!t->named)
                name_loop(t, t->backend);
        t->named = true;
        /* What is there now: a loop that does nothing else may write faster than this reads. */
        uint64_t end = __atomic_load_n(&t->reader.ring->at, __ATOMIC_ACQUIRE);
        while (t->reader.at < end && ((n = rs_ring_read(&t->reader, events, BATCH, &gap)) || gap)) {
                if (gap) {
                        rs_follow_end(&t->follow, t->follow.now);
                        rs_follow_gap(&t->follow);
                        t->gaps++;
                        __atomic_store_n(&((struct rs_ring *)(uintptr_t)t->reader.ring)->missed, true,
                                         __ATOMIC_RELAXED);
                }
                for (size_t i = 0; i < n && !t->out->failed; i++)
                        rs_follow_take(&t->follow, &events[i]);
        }
}

int rs_trace_drain(struct rs_trace *t)
{
        if (!__atomic_load_n(&t->begun, __ATOMIC_ACQUIRE))
                return 0;
        drain(t);
        out_flush(t->out);
        return t->out->failed;
}

/* ---- a trace's life ---- */

struct rs_trace *rs_trace_new(struct rs_trace_out *out, unsigned loop, const char *program, size_t events)
{
        struct rs_trace *t = resha_calloc(1, sizeof *t);
        struct rs_ring *r = t ? rs_ring_new(events) : NULL;

        if (!r) {
                resha_free(t);
                return NULL;
        }
        t->out = out;
        out->traces++;
        t->loop = loop;
        t->ring = r;
        snprintf(t->program, sizeof t->program, "%s", program);
        rs_follow_init(&t->follow, RS_TRACE_TASKS, t);
        t->follow.made = task_made;
        t->follow.name = name_task;
        t->follow.span = span;
        t->follow.cancelled = cancelled;
        t->follow.polled = polled;
        t->follow.loop = loop_ran;
        t->tasks = t->ready = SIZE_MAX;
        return t;
}

/* What is known of the loop is kept here until something is read, and then written by who reads. */
static void begin_at(struct rs_trace *t, struct rs_loop *l, uint64_t at)
{
        t->addresses = !l->simulated;
        t->backend = l->backend->ops->name;
        t->start = rs_now(l);
        t->slab = l->slabs.first;
        t->reader = (struct rs_ring_reader){ .ring = t->ring, .at = at };
        __atomic_store_n(&t->begun, true, __ATOMIC_RELEASE);
}

void rs_trace_begin(struct rs_trace *t, struct rs_loop *l)
{
        if (l->ring) {
                rs_ring_unref(t->ring);
                t->ring = l->ring;
        }
        rs_ring_ref(t->ring); /* the loop's, or ours */
        begin_at(t, l, rs_ring_join(l, t->ring, true));
}

static void tell(struct rs_loop *l, struct rs_task *k, void *arg)
{
        (void)arg;
        rs_ring_tell(l, k);
}

bool rs_trace_tell(struct rs_trace *t, struct rs_loop *l)
{
        for (int i = 0; i < TELL_SLABS && t->slab && l->ring == t->ring; i++) {
                rs_slab_each(l, t->slab, tell, NULL);
                t->slab = t->slab->next;
        }
        return t->slab && l->ring == t->ring;
}

void rs_trace_end(struct rs_trace *t, struct rs_loop *l)
{
        if (l->ring == t->ring)
                rs_ring_leave(l, true);
}

static void drain_own(void *arg)
{
        struct rs_trace *t = arg;

        t->before(t->around_arg);
        drain(t);
        out_flush(t->out);
        t->after(t->around_arg);
}

void rs_trace_whole(struct rs_trace *t, struct rs_loop *l, void (*before)(void *arg), void (*after)(void *arg),
                    void *arg)
{
        t->before = before;
        t->after = after;
        t->around_arg = arg;
        rs_trace_begin(t, l);
        t->ring->drain = drain_own;
        t->ring->drain_arg = t;
        t->ring->drained = t->ring->at;
        t->slab = NULL;
}

/* On the loop's track. */
static void note(struct rs_trace *t, const char *key, const char *text)
{
        struct rs_line line;

        rs_line_begin(&line, t->loop, "i", LOOP_TRACK, t->follow.now);
        rs_line_name(&line, "note", "note");
        rs_line_add(&line, ",\"s\":\"p\"");
        rs_line_arg(&line, key);
        rs_line_string(&line, text);
        finish(t, &line, true);
}

/* What a trace does not show, at its end. */
static void last_words(struct rs_trace *t)
{
        char text[400] = "the trace ends here";
        size_t n = strlen(text);

        if (t->out->dropped)
                n += (size_t)snprintf(text + n, sizeof text - n,
                                      ": it is as large as it may be, %" PRIu64 " MiB (RESHA_TRACE_LIMIT)",
                                      t->out->limit >> 20);
        if (t->reader.lost)
                n += (size_t)snprintf(text + n, sizeof text - n,
                                      "; %" PRIu64 " events were lost, in %" PRIu64 " places: they came faster than "
                                      "they could be written",
                                      t->reader.lost, t->gaps);
        if (t->follow.passed)
                snprintf(text + n, sizeof text - n,
                         "; %" PRIu64
                         " tasks have no track from their beginning on: %d are followed at a time, %d in all",
                         t->follow.passed, RS_TRACE_TASKS, RS_TRACE_TRACKS);
        note(t, "text", text);
}

void rs_trace_left_out(struct rs_trace *t, const char *what, const char *why)
{
        t->follow.now = rs_sys_now();
        name_loop(t, what);
        note(t, RS_TRACE_LEFT_OUT, why);
        out_flush(t->out);
        rs_trace_free(t);
}

void rs_trace_free(struct rs_trace *t)
{
        if (!t)
                return;
        if (__atomic_load_n(&t->begun, __ATOMIC_ACQUIRE)) {
                drain(t);
                rs_follow_end(&t->follow, t->follow.now);
                last_words(t);
                out_flush(t->out);
        }
        rs_follow_done(&t->follow);
        rs_ring_unref(t->ring);
        resha_free(t);
}
