/* SPDX-License-Identifier: MIT */
/* The lines of a snapshot. They come from a walk (walk.c) and go where there is room; what does not fit any more is
 * written at the beginning of the next slice. */

#include "inspect/snapshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sys/sys.h"

enum {
        LOOK_AT_CLOCK = 32,
        LOOK_AT_CLOCK_STACKS = 4,
        READY_MOST = 10000,
        READY_MOST_COPIES = 1000,
        PROTOCOL = 1,
        SHOWN_MAX = 1 << 20
};

void rs_snapshot_head(struct rs_json *j, unsigned loops, bool debug)
{
        rs_json_begin(j, "resha");
        rs_json_int(j, "protocol", PROTOCOL);
        rs_json_text(j, "version", resha_version());
        rs_json_int(j, "pid", rs_sys_pid());
        rs_json_text(j, "program", program_invocation_short_name);
        rs_json_int(j, "loops", loops);
        rs_json_bool(j, "debug", debug);
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

/* In line for the thread. By copies each is a system call. */
static int64_t count_ready(const struct rs_walk *w)
{
        const int64_t most = w->reader == &rs_reader_here ? READY_MOST : READY_MOST_COPIES;
        const struct rs_task *t = w->loop.ready_first;
        int64_t n = 0;

        while (t && n < most && w->reader->read(&t, &t->ready_next, sizeof t))
                n++;
        return n;
}

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
        rs_json_int(j, "ready", count_ready(w));
        rs_json_int(j, "polls", (int64_t)l->polls);
        rs_json_int(j, "sleeps", (int64_t)l->counters.sleeps);
        rs_json_int(j, "timers", (int64_t)l->counters.timers);
        rs_json_int(j, "switches", (int64_t)l->switches);
        if (s->from.current && w->reader->read(&current, s->from.current, sizeof current))
                rs_json_int(j, "current", current.id);
        rs_json_int(j, "jobs", (int64_t)l->jobs);
        rs_json_int(j, "open", (int64_t)l->counters.shown);
        rs_json_int(j, "pause", s->from.pause);
        rs_json_int(j, "pause_cpu", s->from.pause_cpu);
        return rs_json_end(j);
}

/* ---- marks ---- */

static void put_mark(struct rs_json *j, char kind)
{
        char mark[2] = { RS_MARK, kind };

        rs_json_raw(j, mark, sizeof mark);
}

static void put_address(struct rs_json *j, const char *key, const void *address)
{
        if (!address)
                return;
        rs_json_text(j, key, ""); /* then its last quote is written once more */
        j->at -= j->cut ? 0 : 1;
        put_mark(j, 'a');
        rs_json_raw(j, &address, sizeof address);
        rs_json_raw(j, "\"", 1);
}

static bool put_stack(struct rs_json *j, uint32_t loop, uint32_t task, const void *const *addresses, size_t depth)
{
        uint32_t head[3] = { loop, task, (uint32_t)depth };
        char *before = j->at;

        if (!depth)
                return true;
        j->cut = false;
        put_mark(j, 's');
        rs_json_raw(j, head, sizeof head);
        rs_json_raw(j, addresses, depth * sizeof *addresses);
        if (j->cut)
                j->at = before;
        return !j->cut;
}

static size_t text_address(const char *from, struct rs_texts *texts, struct rs_json *j)
{
        char hex[24], *before = j->at;
        const void *address;

        memcpy(&address, from, sizeof address);
        const char *text = texts ? rs_texts_get(texts, address) : NULL;
        if (!text)
                snprintf(hex, sizeof hex, "%p", address);
        j->cut = false;
        rs_json_escaped(j, text ? text : hex);
        if (j->cut)
                j->at = before;
        return j->cut ? 0 : 2 + sizeof address;
}

static size_t text_stack(const char *from, struct rs_texts *texts, struct rs_json *j)
{
        const void *addresses[RS_STACKS_DEPTH];
        const char *frames[RS_STACKS_DEPTH];
        char *before = j->at;
        uint32_t head[3];
        bool room = true;

        memcpy(head, from, sizeof head);
        size_t depth = head[2] < RS_STACKS_DEPTH ? head[2] : RS_STACKS_DEPTH;
        memcpy(addresses, from + sizeof head, depth * sizeof *addresses);
        size_t n = texts ? rs_texts_stack(texts, addresses, depth, frames) : 0;
        for (size_t i = 0; i < n && room; i++) {
                rs_json_begin(j, "frame");
                rs_json_int(j, "loop", head[0]);
                rs_json_int(j, "task", head[1]);
                rs_json_int(j, "depth", (int64_t)i);
                rs_json_text(j, "text", frames[i]);
                room = rs_json_end(j);
        }
        if (!room)
                j->at = before;
        return room ? 2 + sizeof head + depth * sizeof *addresses : 0;
}

size_t rs_snapshot_text(const char *from, struct rs_texts *texts, struct rs_json *j)
{
        return from[1] == 'a' ? text_address(from + 2, texts, j) : text_stack(from + 2, texts, j);
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

static void put_wait(const struct rs_snapshot *s, struct rs_json *j)
{
        const struct rs_seen_task *t = &s->walk.seen;

        put_some(j, "what", t->what);
        rs_json_at(j, "object", t->object);
        if (t->holders_n)
                rs_json_ints(j, "holders", t->holders, t->holders_n);
        put_some(j, "detail", s->walk.waited.detail);
        put_time(j, "due", t->due);
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
        put_wait(s, j);
        put_some(j, "doing", t->doing);
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
        put_count(j, "stack_used", t->stack.used);
        put_count(j, "stack_high", t->stack.high);
        put_count(j, "stack_size", t->stack.size);
        return rs_json_end(j);
}

static bool put_scopes(struct rs_snapshot *s, struct rs_json *j)
{
        struct rs_seen_scope x;
        bool room = true;

        while (room && rs_walk_scope(&s->walk, &x)) {
                rs_json_begin(j, "scope");
                rs_json_int(j, "loop", s->walk.number);
                rs_json_at(j, "at", x.at);
                rs_json_int(j, "task", s->walk.seen.id);
                rs_json_text(j, "kind", x.kind);
                rs_json_at(j, "parent", x.parent);
                put_time(j, "left", x.left);
                if (x.cancelled)
                        rs_json_bool(j, "cancelled", true);
                if (x.group)
                        rs_json_int(j, "running", (int64_t)x.running);
                put_count(j, "limit", x.limit);
                put_count(j, "failures", x.failures);
                put_count(j, "waiting", x.waiting);
                room = rs_json_end(j);
        }
        return room;
}

/* Once, by the first who waits for it. */
static bool put_object(const struct rs_snapshot *s, struct rs_json *j)
{
        const struct rs_waited *x = &s->walk.waited;

        if (!x->kind || !s->walk.first)
                return true;
        uint32_t owner = x->owner ? rs_walk_id(&s->walk, x->owner, x->owner_mark) : 0;
        rs_json_begin(j, "object");
        rs_json_int(j, "loop", s->walk.number);
        rs_json_at(j, "at", s->walk.seen.object);
        rs_json_text(j, "kind", x->kind);
        put_some(j, "detail", x->state);
        put_count(j, "owner", owner);
        if (x->limit)
                rs_json_int(j, "held", (int64_t)x->held);
        put_count(j, "limit", x->limit);
        rs_json_int(j, "waiting", (int64_t)x->waiting);
        return rs_json_end(j);
}

static bool put_frames(struct rs_snapshot *s, struct rs_json *j)
{
        const struct rs_walk *w = &s->walk;
        const void *addresses[RS_STACKS_DEPTH];

        if (!s->request->stacks)
                return true;
        if (w->seen.state == RS_SEEN_RUNS && w->reader != &rs_reader_here) /* on the loop's thread no task runs now */
                return put_stack(j, w->number, w->seen.id, s->from.running, s->from.depth);
        size_t n = rs_walk_stack(w, w->reader == &rs_reader_here ? NULL : s->room, addresses, RS_STACKS_DEPTH);
        return put_stack(j, w->number, w->seen.id, addresses, n);
}

static bool is_asked(const struct rs_snapshot *s)
{
        return !s->request->task || s->request->task == s->walk.seen.id;
}

/* All lines of a task, or none of them. */
static bool put_all_of(struct rs_snapshot *s, struct rs_json *j)
{
        char *before = j->at;

        if (put_task(s, j) && put_scopes(s, j) && put_object(s, j) && put_frames(s, j))
                return true;
        j->at = before;
        return false;
}

/* True: that was all. */
static bool put_tasks(struct rs_snapshot *s, struct rs_json *j, int64_t until)
{
        const unsigned look = s->request->stacks ? LOOK_AT_CLOCK_STACKS : LOOK_AT_CLOCK;

        for (unsigned n = 1; rs_walk_next(&s->walk); n++) {
                if (is_asked(s)) {
                        if (!put_all_of(s, j)) {
                                rs_walk_back(&s->walk);
                                return false;
                        }
                        struct rs_place *place = rs_places_of(&s->places, &s->walk);
                        if (place)
                                rs_places_stack(place, &s->walk.seen.stack);
                }
                if (n % look == 0 && rs_sys_now() >= until)
                        return false;
        }
        rs_places_marks(&s->places, &s->walk);
        return true;
}

/* ---- what is open ---- */

static bool put_handle(const struct rs_snapshot *s, struct rs_json *j, const struct rs_shown *x,
                       const struct rs_shown *at)
{
        const struct rs_reader *r = s->walk.reader;
        char kind[32] = "", name[RS_SEEN_NAME] = "", task[RS_SEEN_NAME] = "", site[RS_SEEN_SITE] = "";
        char detail[RESHA_DESCRIBE_MAX] = "";
        struct resha_shown_kind k;

        if (!r->read(&k, x->kind, sizeof k))
                return true;
        (void)r->text(k.kind, kind, sizeof kind);
        (void)r->text(x->name, name, sizeof name);
        (void)r->text(x->task, task, sizeof task);
        (void)r->text(x->site, site, sizeof site);
        if (r == &rs_reader_here)
                rs_shown_describe(at, detail, sizeof detail);
        rs_json_begin(j, "handle");
        rs_json_int(j, "loop", s->walk.number);
        rs_json_at(j, "at", x->object);
        rs_json_text(j, "kind", kind);
        if (x->fd >= 0)
                rs_json_int(j, "fd", x->fd);
        put_some(j, "name", name);
        put_some(j, "detail", detail);
        put_address(j, "opened_at", x->opened_by);
        put_some(j, "opened_by", task);
        put_some(j, "site", site);
        put_time(j, "age", s->walk.now - x->opened);
        return rs_json_end(j);
}

/* On the loop: it goes on between two slices, and what was open may be gone. */
static bool put_shown_here(struct rs_snapshot *s, struct rs_json *j, int64_t until)
{
        struct rs_loop *l = (struct rs_loop *)(uintptr_t)s->walk.at;
        const struct rs_shown *at;

        if (!s->shown_walk)
                s->shown_walk = rs_shown_walk_begin(l);
        for (size_t n = 1; (at = rs_shown_walk_at(&l->shown_walks, s->shown_walk)); n++) {
                if ((n % LOOK_AT_CLOCK == 0 && rs_sys_now() >= until) || !put_handle(s, j, at, at))
                        return false;
                rs_shown_walk_on(l, s->shown_walk);
        }
        return true;
}

/* By copies: where the loop itself has come to, or from the first one. What does not say that it is this loop's is
 * something else by now. */
static bool put_shown_copies(struct rs_snapshot *s, struct rs_json *j, int64_t until)
{
        const struct rs_shown *at = s->shown_at     ? s->shown_at
                                    : s->shown_walk ? rs_shown_walk_at(&s->walk.loop.shown_walks, s->shown_walk)
                                    : s->walk.loop.shown.first
                                            ? RS_CONTAINER(s->walk.loop.shown.first, struct rs_shown, node)
                                            : NULL;
        struct rs_shown x;

        for (size_t n = 1; at && s->at < SHOWN_MAX; n++, s->at++) {
                if (!s->walk.reader->read(&x, at, sizeof x) || x.loop != s->walk.at)
                        break;
                if ((n % LOOK_AT_CLOCK == 0 && rs_sys_now() >= until) || !put_handle(s, j, &x, at)) {
                        s->shown_at = at;
                        return false;
                }
                at = x.node.next ? RS_CONTAINER(x.node.next, struct rs_shown, node) : NULL;
        }
        s->at = 0;
        return true;
}

static bool put_shown(struct rs_snapshot *s, struct rs_json *j, int64_t until)
{
        return s->walk.reader == &rs_reader_here ? put_shown_here(s, j, until) : put_shown_copies(s, j, until);
}

/* ---- slices ---- */

bool rs_snapshot_begin(struct rs_snapshot *s, const struct rs_reader *reader, const struct rs_loop *l,
                       const struct rs_request *request, const struct rs_snapshot_from *from)
{
        s->request = request;
        s->from = *from;
        s->part = RS_SNAPSHOT_LOOP;
        s->at = 0;
        s->shown_walk = 0;
        s->shown_at = NULL;
        s->places.n = 0;
        s->places.full = false;
        memset(s->places.table, 0, sizeof s->places.table);
        return rs_walk_begin(&s->walk, reader, l);
}

/* The loop is told of with what the walk found at the beginning of the slice. */
static bool put_first(struct rs_snapshot *s, struct rs_json *j)
{
        char *before = j->at;

        if (put_loop(s, j) && (s->from.current || put_stack(j, s->walk.number, 0, s->from.running, s->from.depth)))
                return true;
        j->at = before;
        return false;
}

static bool put_part(struct rs_snapshot *s, struct rs_json *j, int64_t until)
{
        if (s->request->loops && s->part != RS_SNAPSHOT_LOOP)
                return true;
        switch (s->part) {
        case RS_SNAPSHOT_LOOP: return put_first(s, j);
        case RS_SNAPSHOT_TASKS: return put_tasks(s, j, until);
        case RS_SNAPSHOT_SHOWN: return s->request->task || put_shown(s, j, until);
        case RS_SNAPSHOT_PLACES: return s->request->task || rs_places_put(&s->places, s->walk.number, j, &s->at);
        case RS_SNAPSHOT_END: break;
        }
        return true;
}

bool rs_snapshot_slice(struct rs_snapshot *s, struct rs_json *j, int64_t now, int64_t until)
{
        if (!rs_walk_resume(&s->walk, now, s->from.current))
                return true;
        while (s->part != RS_SNAPSHOT_END && put_part(s, j, until))
                s->part++;
        return s->part == RS_SNAPSHOT_END;
}
