/* SPDX-License-Identifier: MIT */
/* The answers to `snapshot` and `stats`: of each loop the lines that it makes of itself, slice by slice; of one that is
 * blocked, or becomes so, what can be read of it from here. */

#include "inspect/answer.h"

#include <errno.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "inspect/metrics.h"
#include "inspect/snapshot.h"
#include "sys/observe.h"
#include "sys/spare.h"
#include "sys/sys.h"

enum { SLICE_NS = 2000000, COPIES_NS = 10000000 };

struct job {
        struct rs_answer *answer;
        const struct rs_request *request;
        struct rs_snapshot_from from;
        bool begun, over;
        struct rs_snapshot snapshot;
        struct rs_copies copies;
};

/* On the loop's thread, or on this one, by another reader. */
static void slice(struct job *job, const struct rs_loop *l, const struct rs_reader *reader, int64_t now)
{
        if (!job->begun && !rs_snapshot_begin(&job->snapshot, reader, l, job->request, &job->from)) {
                job->over = true;
                return;
        }
        job->begun = true;
        int64_t until = rs_sys_now() + (reader == &rs_reader_here ? SLICE_NS : COPIES_NS);
        job->over = rs_snapshot_slice(&job->snapshot, &job->answer->json, now, until);
}

static void slice_on_loop(struct rs_loop *l, void *arg)
{
        slice(arg, l, &rs_reader_here, rs_now(l));
}

/* While it is asleep or runs, the time of its last visit tells since when. */
static void look(struct job *job, const struct rs_view *v)
{
        int64_t visited;

        job->from = (struct rs_snapshot_from){
                .sleeps = v->sleeps, .since = INT64_MIN, .pause = v->pause, .pause_cpu = v->pause_cpu
        };
        if (!rs_observe_read(&job->from.current, &v->loop->current, sizeof job->from.current))
                job->from.current = NULL;
        if (rs_observe_read(&visited, &v->loop->now, sizeof visited))
                job->from.since = rs_sys_now() - visited;
}

/* Where its thread is: from what it runs outwards. */
static void look_at_stack(struct job *job, const struct rs_view *v)
{
        struct rs_snapshot_from *f = &job->from;

        f->depth = 0;
        if (f->sleeps || !rs_view_hold(v->number))
                return;
        f->depth = rs_stacks_running(v->tid, v->loop, f->current, f->running, RS_STACKS_DEPTH);
        rs_view_release(v->number);
}

/* It has not answered. What it is in the middle of goes on from here. */
static void read_blocked(struct job *job, const struct rs_view *v)
{
        look(job, v);
        job->from.blocked = true;
        if (job->request->stacks)
                look_at_stack(job, v);
        job->snapshot.from = job->from;
        job->snapshot.walk.reader = &rs_reader_copies;
        do {
                if (!rs_view_hold(v->number)) { /* what has gone would be read as what has its memory now */
                        rs_snapshot_note(&job->answer->json, "a loop has ended meanwhile");
                        break;
                }
                rs_copies_use(&job->copies);
                slice(job, v->loop, &rs_reader_copies, rs_sys_now());
                rs_view_release(v->number);
        } while (rs_answer_flush(job->answer) && !job->over);
        rs_copies_use(NULL);
}

static void one_loop(struct job *job, const struct rs_view *v)
{
        struct rs_json *j = &job->answer->json;
        int rc;

        job->begun = job->over = false;
        look(job, v);
        do
                rc = rs_view_ask(v->number, slice_on_loop, job);
        while (rc == 1 && rs_answer_flush(job->answer) && !job->over);
        if (rc == 0)
                read_blocked(job, v);
        else if (rc < 0)
                rs_snapshot_note(j, "a loop has ended meanwhile");
        if (job->begun && job->snapshot.places.full)
                rs_snapshot_note(j, "there are more than 256 places of spawn: not all are told of");
}

void rs_answer_snapshot(struct rs_answer *a, const struct rs_request *r)
{
        struct job *job = resha_malloc(sizeof *job);
        struct rs_view v = { 0 };
        bool debug;

        if (!job) {
                rs_snapshot_error(&a->json, "no memory for a snapshot");
                return;
        }
        a->texts = rs_texts_new();
        job->answer = a;
        job->request = r;
        unsigned loops = rs_view_count(&debug);
        rs_snapshot_head(&a->json, loops, debug);
        if (a->spare)
                rs_snapshot_note(&a->json,
                                 "the program has no file descriptor left: this was answered by one in reserve");
        while (!a->broken && rs_view_next(v.number, &v))
                if (!r->loop || r->loop == v.number)
                        one_loop(job, &v);
        rs_answer_flush(a); /* with the texts of all addresses */
        if (rs_spare_missed())
                rs_snapshot_note(&a->json, RS_SPARE_MISSED);
        resha_free(job);
        rs_snapshot_tail(&a->json);
        rs_answer_flush(a);
        rs_texts_free(a->texts);
        a->texts = NULL;
}

/* ---- figures ---- */

struct figures {
        struct rs_metrics *metrics;
        bool over;
};

static void figures_on_loop(struct rs_loop *l, void *arg)
{
        struct figures *f = arg;

        f->over = rs_metrics_add(f->metrics, l, true, rs_sys_now() + SLICE_NS);
}

static void figures_of(struct rs_metrics *m, const struct rs_view *v)
{
        struct figures f = { .metrics = m };
        int rc;

        do
                rc = rs_view_ask(v->number, figures_on_loop, &f);
        while (rc == 1 && !f.over);
        if (rc == 0 && rs_view_hold(v->number)) {
                (void)rs_metrics_add(m, (struct rs_loop *)(uintptr_t)v->loop, false, 0);
                rs_view_release(v->number);
        }
}

void rs_answer_stats(struct rs_answer *a)
{
        struct rs_metrics *m = rs_metrics_new();
        struct rs_view v = { 0 };
        char *text = NULL;
        size_t size;

        while (m && !a->broken && rs_view_next(v.number, &v))
                figures_of(m, &v);
        if (m && rs_metrics_text(m, &text, &size) == 0)
                rs_answer_send(a, text, size);
        else
                rs_snapshot_error(&a->json, "no memory for statistics");
        resha_free(text);
        rs_metrics_free(m);
}
