/* SPDX-License-Identifier: MIT */
#ifndef RS_RING_H
#define RS_RING_H

/* The event ring of a loop: bounded, the latest RS_RING_EVENTS state changes of its tasks. One source for the timeline,
 * later for the tree, the report and the trace. */

#include <stdint.h>

struct rs_task;

enum rs_event_kind {
        RS_EVENT_SPAWN = 1, /* task made; name and site valid */
        RS_EVENT_RUN,       /* task runs */
        RS_EVENT_PARK,      /* task waits; what valid */
        RS_EVENT_CANCEL,    /* task was cancelled (its innermost scope became so) */
        RS_EVENT_END,       /* task ended; code valid */
        RS_EVENT_NAME,      /* task was renamed; name copied */
};

struct rs_event {
        int64_t at;    /* ns of the loop's clock */
        uint32_t task; /* id */
        uint16_t kind;
        int16_t code;
        uint32_t parent;         /* SPAWN: the spawner's id */
        const char *name, *site; /* SPAWN, NAME: static; PARK: name is what it waits for */
        char label[24];          /* SPAWN: see ring.c; NAME: the new name, cut */
};

enum { RS_RING_EVENTS = 1 << 16 };

struct rs_ring {
        uint64_t count; /* ever written; the last RS_RING_EVENTS are there, event n at n % RS_RING_EVENTS */
        struct rs_event events[RS_RING_EVENTS];
};

#endif
