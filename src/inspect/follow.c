/* SPDX-License-Identifier: MIT */
/* Following events: a table of tasks, from their first event to their end, and what each does.
 *
 *     NONE -- SPAWN --> READY -- RUN --> RUN -- PARK --> WAIT -- WAKE --> READY
 *                                        RUN -- somebody else runs, or the loop polls --> READY
 *                                        RUN -- END --> gone
 *
 * The table is open: a place is looked for from that of the id on, and what is taken out is filled up from behind, so
 * that no place is ever a tombstone. It grows to twice as much when it is half full. */

#include "inspect/follow.h"

#include <string.h>

#include "base/alloc.h"

void rs_follow_init(struct rs_follow *f, size_t max, void *arg)
{
        *f = (struct rs_follow){ .max = max, .arg = arg, .polls = INT64_MIN, .loops = INT64_MIN };
}

void rs_follow_done(struct rs_follow *f)
{
        resha_free(f->tracks);
        f->tracks = NULL;
        f->n = f->room = 0;
}

/* ---- the table ---- */

/* Ids come in turn: the lowest bits spread them as well as any. */
static size_t home(const struct rs_follow *f, uint32_t id)
{
        return id & (f->room - 1);
}

/* Where id is, or the free place where it would be. */
static size_t place(const struct rs_follow *f, uint32_t id)
{
        size_t i = home(f, id);

        while (f->tracks[i].id && f->tracks[i].id != id)
                i = (i + 1) & (f->room - 1);
        return i;
}

struct rs_track *rs_follow_find(const struct rs_follow *f, uint32_t id)
{
        struct rs_track *t = f->room ? &f->tracks[place(f, id)] : NULL;

        return t && t->id ? t : NULL;
}

static bool grow(struct rs_follow *f)
{
        struct rs_follow larger = { .room = f->room ? 2 * f->room : 64 };

        larger.tracks = resha_calloc(larger.room, sizeof *larger.tracks);
        if (!larger.tracks)
                return false;
        for (size_t i = 0; i < f->room; i++)
                if (f->tracks[i].id)
                        larger.tracks[place(&larger, f->tracks[i].id)] = f->tracks[i];
        resha_free(f->tracks);
        f->tracks = larger.tracks;
        f->room = larger.room;
        return true;
}

static void take_out(struct rs_follow *f, struct rs_track *t)
{
        size_t mask = f->room - 1, hole = (size_t)(t - f->tracks);

        f->n--;
        for (size_t i = (hole + 1) & mask; f->tracks[i].id; i = (i + 1) & mask) {
                size_t wants = home(f, f->tracks[i].id);
                if (((i - wants) & mask) < ((i - hole) & mask))
                        continue; /* it stands between its home and here already */
                f->tracks[hole] = f->tracks[i];
                hole = i;
        }
        f->tracks[hole].id = 0;
}

/* What it did before its first event that is left. */
static enum rs_span before(enum rs_event_kind kind)
{
        return kind == RS_EVENT_PARK || kind == RS_EVENT_END ? RS_SPAN_RUN : RS_SPAN_READY;
}

/* The task of the event; NULL: it is not followed. */
static struct rs_track *track_of(struct rs_follow *f, const struct rs_event *e)
{
        uint32_t id = rs_event_task(e);
        struct rs_track *t = rs_follow_find(f, id);
        enum rs_event_kind kind = rs_event_kind(e);

        if (t || !id || kind == RS_EVENT_OBJECT || kind == RS_EVENT_WHOM || kind == RS_EVENT_SINCE)
                return t;
        if (f->n >= f->max || (f->n >= f->room / 2 && !grow(f))) {
                f->passed += kind == RS_EVENT_SPAWN;
                return NULL;
        }
        t = &f->tracks[place(f, id)];
        *t = (struct rs_track){ .id = id, .waker = RS_TRACK_NONE, .since = f->now };
        if (f->made && !f->made(f, t, e)) {
                t->id = 0;
                f->passed++;
                return NULL;
        }
        f->n++;
        if (f->guess && kind != RS_EVENT_SPAWN && kind != RS_EVENT_NAME) {
                t->state = before(kind);
                t->since = f->start;
                f->ready += t->state == RS_SPAN_READY;
        }
        return t;
}

/* ---- states ---- */

static void enter(struct rs_follow *f, struct rs_track *t, enum rs_span next)
{
        if (t->state != RS_SPAN_NONE && f->span)
                f->span(f, t);
        f->ready += (size_t)(next == RS_SPAN_READY) - (size_t)(t->state == RS_SPAN_READY);
        t->state = next;
        t->since = f->now;
}

static void made_ready(struct rs_follow *f, struct rs_track *t, uint32_t waker, bool spawned)
{
        enter(f, t, RS_SPAN_READY);
        t->waker = waker;
        t->woken = f->now;
        t->spawned = spawned;
        const struct rs_track *by = waker && waker != RS_TRACK_NONE ? rs_follow_find(f, waker) : NULL;
        t->linked = by ? by->state == RS_SPAN_RUN : waker == 0 && f->loops != INT64_MIN;
}

/* Somebody else runs: who did, and has not been told to do something else, has yielded. The loop is done. */
static void stops(struct rs_follow *f)
{
        struct rs_track *t = f->running ? rs_follow_find(f, f->running) : NULL;

        if (t && t->state == RS_SPAN_RUN)
                made_ready(f, t, RS_TRACK_NONE, false);
        f->running = 0;
        if (f->loops != INT64_MIN && f->loop)
                f->loop(f, f->loops);
        f->loops = INT64_MIN;
}

static void parks(struct rs_follow *f, struct rs_track *t, const struct rs_event *e)
{
        enter(f, t, RS_SPAN_WAIT);
        t->what = (const char *)(uintptr_t)e->body;
        t->object = 0;
        t->whom = 0;
        if (f->running == t->id)
                f->running = 0;
}

static void ends(struct rs_follow *f, struct rs_track *t, int code)
{
        t->over = true;
        t->code = code;
        if (f->ended)
                f->ended(f, t);
        enter(f, t, RS_SPAN_NONE);
        if (f->running == t->id)
                f->running = 0;
        take_out(f, t);
}

/* ---- names ---- */

static void add_text(struct rs_track *t, const char *text, size_t most)
{
        size_t used = strlen(t->name), n = strnlen(text, most);

        if (n > sizeof t->name - 1 - used)
                n = sizeof t->name - 1 - used;
        memcpy(t->name + used, text, n);
        t->name[used + n] = 0;
}

static void named(struct rs_follow *f, struct rs_track *t)
{
        t->named = true;
        if (f->name)
                f->name(f, t);
}

/* A name, or the head of one that comes in parts. */
static void take_name(struct rs_follow *f, struct rs_track *t, const struct rs_event *e)
{
        t->name[0] = 0;
        f->naming = 0;
        if (rs_event_more(e)) {
                f->naming = t->id;
                return;
        }
        add_text(t, (const char *)(uintptr_t)e->body, sizeof t->name);
        named(f, t);
}

static void take_text(struct rs_follow *f, const struct rs_event *e)
{
        struct rs_track *t = f->naming ? rs_follow_find(f, f->naming) : NULL;
        const char *text = (const char *)e + 2;

        if (!t)
                return;
        add_text(t, text, RS_EVENT_CHARS);
        t->named = true;
}

/* A name in parts is whole when something else comes. */
static void name_is_whole(struct rs_follow *f)
{
        struct rs_track *t = rs_follow_find(f, f->naming);

        f->naming = 0;
        if (t)
                named(f, t);
}

/* ---- events ---- */

static void take_poll(struct rs_follow *f, const struct rs_event *e)
{
        if (rs_event_kind(e) == RS_EVENT_POLL) {
                f->polls = f->now;
                f->sleeps = rs_event_code(e) != 0;
        } else if (f->polls != INT64_MIN) {
                if (f->polled)
                        f->polled(f, f->polls, f->sleeps, e->body);
                f->polls = INT64_MIN;
        }
}

static void take_run(struct rs_follow *f, const struct rs_event *e)
{
        stops(f);
        struct rs_track *t = track_of(f, e);
        f->running = t ? t->id : 0;
        if (t)
                enter(f, t, RS_SPAN_RUN);
        else if (!rs_event_task(e))
                f->loops = f->now;
}

static void take_of_task(struct rs_follow *f, const struct rs_event *e)
{
        struct rs_track *t = track_of(f, e);

        if (!t)
                return;
        switch (rs_event_kind(e)) {
        case RS_EVENT_SPAWN: made_ready(f, t, (uint32_t)e->body, true); break;
        case RS_EVENT_NAME: take_name(f, t, e); break;
        case RS_EVENT_SITE: t->site = (const char *)(uintptr_t)e->body; break;
        case RS_EVENT_PARK: parks(f, t, e); break;
        case RS_EVENT_WHOM: t->whom = (uint32_t)e->body; break;
        case RS_EVENT_OBJECT: t->object = e->body; break;
        case RS_EVENT_SINCE: t->since = (int64_t)e->body < t->since ? (int64_t)e->body : t->since; break;
        case RS_EVENT_WAKE: made_ready(f, t, (uint32_t)e->body, false); break;
        case RS_EVENT_CANCEL:
                if (f->cancelled)
                        f->cancelled(f, t, (uint32_t)e->body);
                break;
        case RS_EVENT_END: ends(f, t, rs_event_code(e)); break;
        case RS_EVENT_TIME:
        case RS_EVENT_TEXT:
        case RS_EVENT_RUN:
        case RS_EVENT_POLL:
        case RS_EVENT_POLLED: break;
        }
}

void rs_follow_take(struct rs_follow *f, const struct rs_event *e)
{
        enum rs_event_kind kind = rs_event_kind(e);

        if (kind == RS_EVENT_TEXT) {
                take_text(f, e);
                return;
        }
        if (f->naming)
                name_is_whole(f);
        if (kind == RS_EVENT_TIME) {
                f->now = (int64_t)e->body;
                if (!f->timed)
                        f->start = f->now;
                f->timed = true;
        } else if (f->timed && (kind == RS_EVENT_POLL || kind == RS_EVENT_POLLED)) {
                take_poll(f, e);
        } else if (f->timed && kind == RS_EVENT_RUN) {
                take_run(f, e);
        } else if (f->timed) {
                take_of_task(f, e);
        }
}

void rs_follow_gap(struct rs_follow *f)
{
        if (f->room)
                memset(f->tracks, 0, f->room * sizeof *f->tracks);
        f->n = f->ready = 0;
        f->running = f->naming = 0;
        f->polls = f->loops = INT64_MIN;
        f->timed = false;
}

void rs_follow_end(struct rs_follow *f, int64_t now)
{
        if (f->naming)
                name_is_whole(f);
        f->now = f->timed && f->now > now ? f->now : now;
        if (f->loops != INT64_MIN && f->loop)
                f->loop(f, f->loops);
        for (size_t i = 0; i < f->room; i++)
                if (f->tracks[i].id)
                        enter(f, &f->tracks[i], RS_SPAN_NONE);
}
