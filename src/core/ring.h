/* SPDX-License-Identifier: MIT */
#ifndef RS_RING_H
#define RS_RING_H

/* The event ring of a loop: bounded, the latest state changes of its tasks. One source for the timeline and the trace.
 * The loop's thread writes; any thread may read meanwhile, and sees what it was too late for.
 *
 * An event is two words; some take several, one after the other. Events have no stamp: TIME marks stand between them.
 * Coarse, those are where the loop looks at the clock anyway; fine, before each event that has another instant.
 *
 * A task that yields is told of by the RUN of the next one alone: who ran before, and was not told to wait or to have
 * ended, is ready. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rs_loop;
struct rs_task;

enum rs_event_kind {
        RS_EVENT_TIME = 1, /* body: ns of the loop's clock, for all events from here on */
        /* task made and ready; body: id of who has, 0 being none. NAME, and SITE if it has one, follow */
        RS_EVENT_SPAWN,
        /* of a task; `more` events TEXT with it follow; none: body is the text, static. Again when it changes, and
         * for who has missed it (see `generation`) */
        RS_EVENT_NAME,
        RS_EVENT_TEXT,   /* RS_EVENT_CHARS characters in all that is left of both words; the last ones are 0 */
        RS_EVENT_SITE,   /* of a task: body, static */
        RS_EVENT_RUN,    /* task runs, 0 being the loop; no body */
        RS_EVENT_PARK,   /* task waits; body: what for, static. OBJECT follows */
        RS_EVENT_OBJECT, /* of a PARK: body */
        RS_EVENT_WHOM,   /* of a PARK, where one task holds what it waits for: body is its id */
        RS_EVENT_SINCE,  /* of a PARK that was before the ring was on: body, ns */
        RS_EVENT_WAKE,   /* task is ready again; body: id of who runs, 0 being the loop */
        RS_EVENT_CANCEL, /* task was cancelled (its innermost scope became so); body: as of WAKE */
        RS_EVENT_END,    /* task ended; code */
        RS_EVENT_POLL,   /* the loop asks the backend; code 1: and waits, if need be */
        RS_EVENT_POLLED, /* that is over; code: what it found, at most INT16_MAX; body: system calls so far */
};

enum { RS_EVENT_CHARS = 14, RS_EVENT_LONGEST = 9 /* SPAWN with a name of its own, and a TIME before it */ };

struct rs_event {
        uint64_t head; /* kind in bits 0 to 7, more in 8 to 15, code in 16 to 31, task's id in 32 to 63 */
        uint64_t body;
};

static inline enum rs_event_kind rs_event_kind(const struct rs_event *e)
{
        return (enum rs_event_kind)(e->head & 0xff);
}

static inline unsigned rs_event_more(const struct rs_event *e)
{
        return e->head >> 8 & 0xff;
}

static inline int rs_event_code(const struct rs_event *e)
{
        return (int16_t)(uint16_t)(e->head >> 16);
}

static inline uint32_t rs_event_task(const struct rs_event *e)
{
        return (uint32_t)(e->head >> 32);
}

static inline uint64_t rs_event_head(enum rs_event_kind kind, unsigned more, int code, uint32_t task)
{
        return (uint64_t)task << 32 | (uint64_t)(uint16_t)code << 16 | (uint64_t)more << 8 | (uint64_t)kind;
}

struct rs_ring {
        uint64_t at;         /* bytes ever written: event n is at 16 * n modulo the size; written last, by release */
        uint64_t mask;       /* size in bytes, less one */
        uint64_t check;      /* up to there a switch need not look at anything else; 0: it always must */
        uint64_t turn;       /* where the next generation begins */
        int64_t now;         /* of the latest TIME; INT64_MIN: there is none */
        unsigned users;      /* who have joined */
        unsigned fine;       /* those who want fine stamps */
        bool parked;         /* of the switch that goes on: its PARK is written */
        uint16_t generation; /* a task is named once in each; never 0, which is that of a new task. The next begins for
                              * a new reader, and with each half of the ring: a name that counts is never forgotten */
        bool missed;         /* set by a reader who was too late: the next generation begins */
        bool drains;         /* drain() is under way */
        unsigned refs;
        /* Whoever must not lose any: reads all that there is, on the loop's thread and on its stack. NULL: nobody. */
        void (*drain)(void *arg);
        void *drain_arg;
        uint64_t drained; /* `at` after it */
        struct rs_event events[];
};

enum { RS_RING_COARSE = 1 << 15, RS_RING_WHOLE = 1 << 18 }; /* events; powers of two. The first stays in the cache */

/* Any thread. NULL: no memory. A ring is counted: of its loop, and of who reads it. */
struct rs_ring *rs_ring_new(size_t events);
struct rs_ring *rs_ring_ref(struct rs_ring *r);
void rs_ring_unref(struct rs_ring *r);

/* The loop's thread: a loop writes to one ring, until the last one has left who has joined, or the loop ends (stop).
 * join: r takes the place of none, which takes the caller's reference; or is the one. Returns from where to read. */
uint64_t rs_ring_join(struct rs_loop *l, struct rs_ring *r, bool fine);
void rs_ring_leave(struct rs_loop *l, bool fine);
void rs_ring_stop(struct rs_loop *l);
void rs_ring_tell(struct rs_loop *l, struct rs_task *t); /* what it is, and waits for; nothing if that is told */

/* Any thread. */
struct rs_ring_reader {
        const struct rs_ring *ring;
        uint64_t at;   /* bytes read, or lost */
        uint64_t lost; /* events that were gone before they could be read */
};
/* The next events, at most max: how many. 0: there is none yet. *ret_gap: some before them are lost. */
size_t rs_ring_read(struct rs_ring_reader *r, struct rs_event *to, size_t max, bool *ret_gap);

/* ---- for the files of core: what happens. Called while a ring is on. ---- */

void rs_ring_spawned(struct rs_loop *l, struct rs_task *t);
void rs_ring_named(struct rs_loop *l, struct rs_task *t);
void rs_ring_woken(struct rs_loop *l, const struct rs_task *t);
void rs_ring_cancelled(struct rs_loop *l, const struct rs_task *t);
void rs_ring_ended(struct rs_loop *l, const struct rs_task *t, int code);
void rs_ring_switched(struct rs_loop *l, struct rs_task *next); /* from l->current; NULL: the loop */
void rs_ring_polls(struct rs_loop *l, bool sleeps) __attribute__((cold));
void rs_ring_visited(struct rs_loop *l) __attribute__((cold)); /* l->now is of now */
void rs_ring_name(struct rs_ring *r, struct rs_task *t);
void rs_ring_check(struct rs_ring *r, bool may_skip); /* at looks: whether switches up to `check` need none */

/* RS_NO_RING: what it would be without one, for bench/run ring-cost. */
#ifdef RS_NO_RING
#define RS_EVENT(l, call) ((void)(l))
#define RS_RING_OF(l) ((struct rs_ring *)NULL)
#else
#define RS_RING_OF(l) ((l)->ring)
#define RS_EVENT(l, call) \
        do { \
                if (RS_UNLIKELY((l)->ring != NULL)) \
                        (call); \
        } while (0)
#endif

#endif
