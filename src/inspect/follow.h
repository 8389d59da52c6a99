/* SPDX-License-Identifier: MIT */
#ifndef RS_FOLLOW_H
#define RS_FOLLOW_H

/* Events of a ring, followed: what each task does at each instant, as spans of time. Belongs to one thread, any. */

#include <stddef.h>

#include "core/ring.h"

enum rs_span { RS_SPAN_NONE, RS_SPAN_READY, RS_SPAN_RUN, RS_SPAN_WAIT };

enum { RS_TRACK_NAME = 48, RS_TRACK_NONE = UINT32_MAX };

/* A task that lives, as far as has been told. */
struct rs_track {
        uint32_t id;    /* 0: this place is free */
        uint32_t waker; /* READY, RUN: who has made it ready; 0: the loop; RS_TRACK_NONE: nobody, it has yielded */
        uint32_t lane;  /* the reader's */
        enum rs_span state;
        bool spawned; /* its waker is who spawned it */
        bool linked;  /* its waker was seen to run when it woke it */
        bool over;    /* it has ended, with `code`: its last span follows */
        int code;
        bool named;       /* the name is told */
        int64_t since;    /* of `state` */
        int64_t woken;    /* when it was made ready */
        const char *what; /* WAIT: for what */
        uint64_t object;  /* and at which */
        uint32_t whom;    /* and who holds that; 0: not told */
        const char *site; /* or NULL */
        char name[RS_TRACK_NAME];
};

struct rs_follow {
        int64_t now;
        bool timed; /* `now` is known */
        bool guess; /* what a task did before its first event, since `start`, is told by that event */
        int64_t start;
        uint32_t running; /* id; 0: none */
        uint32_t naming;  /* whose TEXT comes next */
        size_t max;       /* tasks that are followed at a time */
        uint64_t passed;  /* tasks that were not: too many, or no memory */
        size_t n, room;
        struct rs_track *tracks; /* a hash table of `room` places */

        /* What the reader wants to know; any may be NULL. now: when. made: a task is seen for the first time; false: it
         * is not to be followed. span: its state is over, which began at t->since. polled: `from` the loop has asked
         * the backend. */
        void *arg;
        bool (*made)(struct rs_follow *f, struct rs_track *t, const struct rs_event *e);
        void (*name)(struct rs_follow *f, struct rs_track *t);
        void (*span)(struct rs_follow *f, struct rs_track *t);
        void (*cancelled)(struct rs_follow *f, struct rs_track *t, uint32_t by);
        void (*ended)(struct rs_follow *f, struct rs_track *t);
        void (*polled)(struct rs_follow *f, int64_t from, bool slept, uint64_t calls);
        void (*loop)(struct rs_follow *f, int64_t from); /* the loop itself has run since then */
        int64_t loops;                                   /* since when it does; INT64_MIN: it does not */
        int64_t polls;                                   /* the same, of asking the backend */
        bool sleeps;
        size_t ready; /* tasks that are ready, of those that are followed */
};

void rs_follow_init(struct rs_follow *f, size_t max, void *arg);
void rs_follow_take(struct rs_follow *f, const struct rs_event *e);
void rs_follow_gap(struct rs_follow *f);              /* events are missing here: nothing is known any more */
void rs_follow_end(struct rs_follow *f, int64_t now); /* all spans end */
void rs_follow_done(struct rs_follow *f);
struct rs_track *rs_follow_find(const struct rs_follow *f, uint32_t id); /* NULL: not followed */

#endif
