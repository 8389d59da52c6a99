/* SPDX-License-Identifier: MIT */
/* The event ring: writing, and reading from any thread.
 *
 * The writer never waits and never looks at a reader: it writes an event and then, by release, how far it has come. A
 * reader copies events and then looks how far the writer has come meanwhile: what that may have written over is thrown
 * away and counted as lost. Both words of an event are atomic, so a torn one is only wrong, and is never used.
 *
 * Only who reads on the loop's own thread loses nothing: drain() is called when half of the ring is unread and the loop
 * looks at its clock, and before the ring is full, then from a task, but on the loop's stack. */

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "core/core.h"

enum { RS_EVENT_BYTES = sizeof(struct rs_event), RS_CHECK_EVENTS = 8 };

_Static_assert(RS_EVENT_BYTES == 16, "two words");

/* ---- a ring's life ---- */

struct rs_ring *rs_ring_new(size_t events)
{
        size_t bytes = events * RS_EVENT_BYTES;
        struct rs_ring *r = resha_malloc(sizeof *r + bytes);

        assert((events & (events - 1)) == 0);
        if (r)
                *r = (struct rs_ring){ .mask = bytes - 1, .now = INT64_MIN, .generation = 1, .refs = 1 };
        return r;
}

struct rs_ring *rs_ring_ref(struct rs_ring *r)
{
        __atomic_add_fetch(&r->refs, 1, __ATOMIC_RELAXED);
        return r;
}

void rs_ring_unref(struct rs_ring *r)
{
        if (r && __atomic_sub_fetch(&r->refs, 1, __ATOMIC_ACQ_REL) == 0)
                resha_free(r);
}

/* ---- writing ---- */

static inline void put(struct rs_ring *r, uint64_t head, uint64_t body)
{
        uint64_t at = r->at;
        struct rs_event *e = &r->events[(at & r->mask) / RS_EVENT_BYTES];

        /* Who sees this event sees that those before it are written. (Not by a fence, which TSan does not know.) */
        __atomic_store_n(&e->head, head, __ATOMIC_RELEASE);
        __atomic_store_n(&e->body, body, __ATOMIC_RELEASE);
        __atomic_store_n(&r->at, at + RS_EVENT_BYTES, __ATOMIC_RELEASE);
}

/* From here on every task is named again. */
static void anew(struct rs_ring *r)
{
        if (++r->generation == 0)
                r->generation = 1;
}

static int drain_all(void *arg)
{
        struct rs_ring *r = arg;

        r->drain(r->drain_arg);
        return 0;
}

static void drain(struct rs_loop *l, struct rs_ring *r)
{
        if (r->drains)
                return;
        r->drains = true;
        rs_deep(l, drain_all, r);
        r->drained = r->at;
        r->drains = false;
}

static inline uint64_t unread(const struct rs_ring *r)
{
        return r->at - r->drained;
}

/* A string whose place is not known to stay. */
static void put_text(struct rs_ring *r, uint32_t task, const char *text)
{
        size_t n = strlen(text), parts = (n + RS_EVENT_CHARS - 1) / RS_EVENT_CHARS;

        parts = parts ? parts : 1;
        put(r, rs_event_head(RS_EVENT_NAME, (unsigned)parts, 0, task), 0);
        for (size_t i = 0; i < parts; i++) {
                size_t left = n - i * RS_EVENT_CHARS;
                struct rs_event e = { 0 };
                memcpy((char *)&e + 2, text + i * RS_EVENT_CHARS, left < RS_EVENT_CHARS ? left : RS_EVENT_CHARS);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
                e.head |= RS_EVENT_TEXT;
#else
#error "the kind of an event is its first byte"
#endif
                put(r, e.head, e.body);
        }
}

static __attribute__((noinline)) void put_name(struct rs_ring *r, struct rs_task *t)
{
        t->told = r->generation;
        if (t->named)
                put_text(r, t->id, t->name);
        else
                put(r, rs_event_head(RS_EVENT_NAME, 0, 0, t->id), (uintptr_t)(t->name ? t->name : "task"));
        if (t->site)
                put(r, rs_event_head(RS_EVENT_SITE, 0, 0, t->id), (uintptr_t)t->site);
}

static void stamp_at(struct rs_ring *r, int64_t now)
{
        if (now == r->now)
                return;
        r->now = now;
        put(r, rs_event_head(RS_EVENT_TIME, 0, 0, 0), (uint64_t)now);
}

/* Before an event that does not come from a switch: room for it, and its instant. */
static void stamp(struct rs_loop *l, struct rs_ring *r)
{
        if (RS_UNLIKELY(r->drain && unread(r) > r->mask - RS_EVENT_LONGEST * RS_EVENT_BYTES))
                drain(l, r);
        if (r->fine)
                stamp_at(r, rs_now(l));
}

static uint32_t who_runs(const struct rs_loop *l)
{
        return l->current ? l->current->id : 0;
}

void rs_ring_spawned(struct rs_loop *l, struct rs_task *t)
{
        struct rs_ring *r = l->ring;

        stamp(l, r);
        put(r, rs_event_head(RS_EVENT_SPAWN, 0, 0, t->id), who_runs(l));
        put_name(r, t);
}

void rs_ring_named(struct rs_loop *l, struct rs_task *t)
{
        stamp(l, l->ring);
        put_name(l->ring, t);
}

void rs_ring_woken(struct rs_loop *l, const struct rs_task *t)
{
        stamp(l, l->ring);
        put(l->ring, rs_event_head(RS_EVENT_WAKE, 0, 0, t->id), who_runs(l));
}

void rs_ring_cancelled(struct rs_loop *l, const struct rs_task *t)
{
        stamp(l, l->ring);
        put(l->ring, rs_event_head(RS_EVENT_CANCEL, 0, 0, t->id), who_runs(l));
}

void rs_ring_ended(struct rs_loop *l, const struct rs_task *t, int code)
{
        struct rs_ring *r = l->ring;

        stamp(l, r);
        put(r, rs_event_head(RS_EVENT_END, 0, code > INT16_MAX ? INT16_MAX : code, t->id), 0);
}

static void put_park(struct rs_ring *r, const struct rs_task *t)
{
        const struct rs_wait *w = t->wait;

        put(r, rs_event_head(RS_EVENT_PARK, 0, 0, t->id), (uintptr_t)w->what);
        put(r, rs_event_head(RS_EVENT_OBJECT, 0, 0, t->id), (uintptr_t)w->object);
        if (!t->whom || t->whom->children || !r->fine)
                return;
        const struct rs_task *holder = t->whom->next(w, NULL);
        if (holder)
                put(r, rs_event_head(RS_EVENT_WHOM, 0, 0, t->id), holder->id);
}

void rs_ring_tell(struct rs_loop *l, struct rs_task *t)
{
        struct rs_ring *r = l->ring;

        if (t->told == r->generation)
                return;
        stamp(l, r);
        put_name(r, t);
        if (!t->wait)
                return;
        put_park(r, t);
        put(r, rs_event_head(RS_EVENT_SINCE, 0, 0, t->id), (uint64_t)t->since);
}

/* The current task gives the thread away; next is NULL where the loop takes it. */
void rs_ring_switched(struct rs_loop *l, struct rs_task *next)
{
        struct rs_ring *r = l->ring;
        const struct rs_task *t = l->current;

        if (r->fine)
                stamp_at(r, rs_now(l));
        if (t && t->wait && !r->parked)
                put_park(r, t);
        r->parked = false;
        if (RS_UNLIKELY(__atomic_load_n(&r->missed, __ATOMIC_RELAXED)) &&
            __atomic_exchange_n(&r->missed, false, __ATOMIC_RELAXED))
                anew(r);
        put(r, rs_event_head(RS_EVENT_RUN, 0, 0, next ? next->id : 0), 0);
        if (next && next->told != r->generation)
                put_name(r, next);
}

void rs_ring_name(struct rs_ring *r, struct rs_task *t)
{
        put_name(r, t);
}

/* ---- the loop's visits ---- */

void rs_ring_polls(struct rs_loop *l, bool sleeps)
{
        struct rs_ring *r = l->ring;

        stamp_at(r, l->now);
        put(r, rs_event_head(RS_EVENT_POLL, 0, sleeps, 0), 0);
}

void rs_ring_visited(struct rs_loop *l)
{
        struct rs_ring *r = l->ring;

        stamp_at(r, l->now);
        put(r, rs_event_head(RS_EVENT_POLLED, 0, 0, 0), l->backend->calls);
        if (r->drain && unread(r) > r->mask / 2)
                drain(l, r);
}

/* Where a coarse ring is looked at: a new generation with each half of it, and the next place to look. */
void rs_ring_check(struct rs_ring *r, bool may_skip)
{
        if (r->at >= r->turn) {
                r->turn = r->at + r->mask / 2;
                if (!r->drain)
                        anew(r);
        }
        r->check = r->fine || !may_skip ? 0 : r->at + RS_CHECK_EVENTS * RS_EVENT_BYTES;
}

/* ---- on and off ---- */

uint64_t rs_ring_join(struct rs_loop *l, struct rs_ring *r, bool fine)
{
        uint64_t from = r->at;

        assert(!l->ring || l->ring == r);
        l->ring = r;
        l->each = true; /* from the next switch on, also where a task asks for it */
        l->run_left = 1;
        r->users++;
        r->fine += fine;
        r->check = 0;
        anew(r);
        r->now = INT64_MIN;
        stamp_at(r, rs_now(l));
        put(r, rs_event_head(RS_EVENT_RUN, 0, 0, who_runs(l)), 0);
        if (l->current)
                put_name(r, l->current);
        return from;
}

void rs_ring_leave(struct rs_loop *l, bool fine)
{
        struct rs_ring *r = l->ring;

        stamp_at(r, rs_now(l));
        r->fine -= fine;
        if (--r->users == 0)
                rs_ring_stop(l);
}

void rs_ring_stop(struct rs_loop *l)
{
        struct rs_ring *r = l->ring;

        if (!r)
                return;
        stamp_at(r, rs_now(l));
        if (r->drain)
                drain(l, r);
        r->drain = NULL;
        l->ring = NULL;
        rs_ring_unref(r);
}

/* ---- reading ---- */

size_t rs_ring_read(struct rs_ring_reader *reader, struct rs_event *to, size_t max, bool *ret_gap)
{
        const struct rs_ring *r = reader->ring;
        /* The writer may be in the middle of the event after the last that it has told of: one less is whole. */
        uint64_t size = r->mask + 1 - RS_EVENT_BYTES, end = __atomic_load_n(&r->at, __ATOMIC_ACQUIRE);
        uint64_t from = end - reader->at > size ? end - size : reader->at;
        size_t n = 0;

        for (; n < max && from + n * RS_EVENT_BYTES < end; n++) {
                const struct rs_event *e = &r->events[((from + n * RS_EVENT_BYTES) & r->mask) / RS_EVENT_BYTES];
                /* Both before `at` is looked at again. */
                to[n].head = __atomic_load_n(&e->head, __ATOMIC_ACQUIRE);
                to[n].body = __atomic_load_n(&e->body, __ATOMIC_ACQUIRE);
        }
        uint64_t now = __atomic_load_n(&r->at, __ATOMIC_RELAXED);
        size_t torn = now - from > size ? (size_t)(now - from - size) / RS_EVENT_BYTES : 0;
        torn = torn < n ? torn : n;
        *ret_gap = from - reader->at + torn > 0;
        reader->lost += (from - reader->at) / RS_EVENT_BYTES + torn;
        reader->at = from + n * RS_EVENT_BYTES;
        memmove(to, to + torn, (n - torn) * sizeof *to);
        return n - torn;
}
