/* SPDX-License-Identifier: MIT */
/* The lines of a snapshot. They come from a walk (walk.c) and go where there is room; what does not fit any more is
 * written at the beginning of the next slice. */

#include "inspect/snapshot.h"

#include <stdio.h>
#include <stdlib.h>

#include "sys/sys.h"

enum { LOOK_AT_CLOCK = 32, PROTOCOL = 1 };

void rs_snapshot_head(struct rs_json *j, unsigned loops)
{
        rs_json_begin(j, "resha");
        rs_json_int(j, "protocol", PROTOCOL);
        rs_json_text(j, "version", resha_version());
        rs_json_int(j, "pid", rs_sys_pid());
        rs_json_text(j, "program", program_invocation_short_name);
        rs_json_int(j, "loops", loops);
        rs_json_end(j);
}

void rs_snapshot_note(struct rs_json *j, const char *text)
{
        rs_json_begin(j, "note");
        rs_json_text(j, "text", text);
        rs_json_end(j);
}

static void end(struct rs_json *j, bool ok)
{
        rs_json_begin(j, "end");
        rs_json_bool(j, "ok", ok);
        rs_json_end(j);
}

void rs_snapshot_error(struct rs_json *j, const char *text)
{
        rs_json_begin(j, "error");
        rs_json_text(j, "text", text);
        rs_json_end(j);
        end(j, false);
}

void rs_snapshot_tail(struct rs_json *j)
{
        end(j, true);
}

static void put_time(struct rs_json *j, const char *key, int64_t ns)
{
        if (ns != INT64_MIN)
                rs_json_int(j, key, ns);
}

static void put_some(struct rs_json *j, const char *key, const char *text)
{
        if (text[0])
                rs_json_text(j, key, text);
}

static void put_count(struct rs_json *j, const char *key, uint64_t n)
{
        if (n)
                rs_json_int(j, key, (int64_t)n);
}

/* ---- the loop ---- */

static bool put_loop(struct rs_snapshot *s, struct rs_json *j)
{
        const struct rs_walk *w = &s->walk;
        const struct rs_loop *l = &w->loop;
        struct rs_backend backend;
        struct rs_backend_ops ops;
        struct rs_task current;
        char name[16] = "";

        if (w->reader->read(&backend, l->backend, sizeof backend) && w->reader->read(&ops, backend.ops, sizeof ops))
                (void)w->reader->text(ops.name, name, sizeof name);
        rs_json_begin(j, "loop");
        rs_json_int(j, "loop", w->number);
        put_some(j, "backend", name);
        rs_json_text(j, "state", s->from.sleeps ? "sleeps" : s->from.blocked ? "blocked" : "runs");
        put_time(j, "for", s->from.since);
        rs_json_text(j, "mode", w->reader == &rs_reader_here ? "loop" : "blocked");
        rs_json_int(j, "tasks", (int64_t)l->tasks);
        rs_json_int(j, "polls", (int64_t)l->polls);
        rs_json_int(j, "switches", (int64_t)l->switches);
        if (s->from.current && w->reader->read(&current, s->from.current, sizeof current))
                rs_json_int(j, "current", current.id);
        rs_json_int(j, "jobs", (int64_t)l->jobs);
        rs_json_int(j, "open", (int64_t)l->open);
        rs_json_int(j, "pause", s->from.pause);
        return rs_json_end(j);
}

/* ---- tasks ---- */

static const char *state_name(enum rs_seen_state s)
{
        switch (s) {
        case RS_SEEN_NEW: return "new";
        case RS_SEEN_READY: return "ready";
        case RS_SEEN_RUNS: return "runs";
        case RS_SEEN_WAITS: return "waits";
        }
        return "waits";
}

static bool put_task(const struct rs_snapshot *s, struct rs_json *j)
{
        const struct rs_seen_task *t = &s->walk.seen;

        rs_json_begin(j, "task");
        rs_json_int(j, "loop", s->walk.number);
        rs_json_int(j, "id", t->id);
        put_some(j, "name", t->name);
        put_some(j, "site", t->site);
        put_time(j, "age", t->age);
        rs_json_text(j, "state", state_name(t->state));
        put_time(j, "since", t->since);
        put_some(j, "what", t->what);
        rs_json_at(j, "object", t->object);
        if (t->holders_n)
                rs_json_ints(j, "holders", t->holders, t->holders_n);
        put_some(j, "detail", t->detail);
        put_time(j, "due", t->due);
        put_time(j, "deadline", t->deadline);
        rs_json_at(j, "group", t->group);
        if (t->items) {
                rs_json_int(j, "item", t->item);
                rs_json_int(j, "items", t->items);
        }
        if (t->scope != t->group)
                rs_json_at(j, "scope", t->scope);
        rs_json_text(j, "cancelled", t->cancelled);
        put_count(j, "ignored", t->ignored);
        put_count(j, "stack_used", t->stack_used);
        put_count(j, "stack_size", t->stack_size);
        return rs_json_end(j);
}

static bool is_asked(const struct rs_snapshot *s)
{
        return !s->request->task || s->request->task == s->walk.seen.id;
}

/* True: that was all. */
static bool put_tasks(struct rs_snapshot *s, struct rs_json *j, int64_t until)
{
        for (unsigned n = 0;; n++) {
                if (n % LOOK_AT_CLOCK == LOOK_AT_CLOCK - 1 && rs_sys_now() >= until)
                        return false;
                if (!s->have && !rs_walk_next(&s->walk))
                        return true;
                s->have = true;
                if (is_asked(s) && !put_task(s, j))
                        return false;
                s->have = false;
        }
}

bool rs_snapshot_begin(struct rs_snapshot *s, const struct rs_reader *reader, const struct rs_loop *l,
                       const struct rs_request *request, const struct rs_snapshot_from *from)
{
        s->request = request;
        s->from = *from;
        s->part = RS_SNAPSHOT_LOOP;
        s->have = false;
        return rs_walk_begin(&s->walk, reader, l);
}

bool rs_snapshot_slice(struct rs_snapshot *s, struct rs_json *j, int64_t now, int64_t until)
{
        if (!rs_walk_resume(&s->walk, now, s->from.current))
                return true;
        if (s->part == RS_SNAPSHOT_LOOP) {
                if (!put_loop(s, j))
                        return false;
                s->part = s->request->loops ? RS_SNAPSHOT_END : RS_SNAPSHOT_TASKS;
        }
        if (s->part == RS_SNAPSHOT_TASKS && put_tasks(s, j, until))
                s->part = RS_SNAPSHOT_END;
        return s->part == RS_SNAPSHOT_END;
}
