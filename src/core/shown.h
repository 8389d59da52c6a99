/* SPDX-License-Identifier: MIT */
#ifndef RS_CORE_SHOWN_H
#define RS_CORE_SHOWN_H

/* What is open: streams, listeners, files, pools, sessions and whatever the program shows, in one list of the loop, in
 * order of their opening; portals while they are served, and maps over processes until they return. It is what
 * resha_shown is inside. */

#include <stdint.h>

#include <resha/shown.h>

#include "base/list.h"

struct rs_loop;

struct rs_shown {
        struct rs_node node;
        const struct resha_shown_kind *kind;
        void *object;
        const char *name;       /* or NULL */
        const uint64_t *values; /* kind->count; NULL: none */
        struct rs_loop *loop;   /* NULL: not in a list */
        const void *opened_by;  /* return address of the call that opened it; NULL: not known */
        const char *task;       /* who did; static; NULL: nobody, or its name was its own */
        const char *site;       /* where that was spawned; static, or NULL */
        int64_t opened;         /* the loop's time */
        int fd;                 /* -1: none */
        bool ours;              /* the program need not end it: the run does */
        bool past;              /* of `shown_past` */
};

_Static_assert(sizeof(struct rs_shown) <= sizeof(resha_shown), "the inside of resha_shown");

static inline struct rs_shown *rs_shown_of(resha_shown *s)
{
        return (struct rs_shown *)(void *)s;
}

/* The object is open from now on, by the current task. s is its memory; fd -1: none. */
void rs_shown_add(struct rs_loop *l, struct rs_shown *s, const struct resha_shown_kind *kind, void *object, int fd);
/* Nothing for one that is in no list. */
void rs_shown_remove(struct rs_shown *s);

/* Its descriptor is closed already. */
void rs_shown_no_fd(struct rs_shown *s);

/* On the way out of a public call that has opened it: the outermost one says where, and by which task. */
void rs_shown_opened(struct rs_shown *s, const void *opened_by);
#define RS_OPENED_HERE(s) rs_shown_opened((s), __builtin_return_address(0))

/* In one line, as the kind describes it: "stream tcp 127.0.0.1:80". On the loop's thread. */
void rs_shown_describe(const struct rs_shown *s, char *buf, size_t size);

/* Walks in pieces, between which the loop goes on. Where each is lies in the loop, and is moved on when what it is at
 * is closed; who looks may go away at any time. Of more than these the oldest is given up. */
enum { RS_SHOWN_WALKS = 8 };

struct rs_shown_walk {
        uint64_t ticket;            /* whose it is; 0: nobody's */
        const struct rs_node *next; /* what it is at; NULL: the end */
};

struct rs_shown_walks {
        uint64_t last; /* ticket */
        struct rs_shown_walk walk[RS_SHOWN_WALKS];
};

/* Begins one, at what was opened first. */
uint64_t rs_shown_walk_begin(struct rs_loop *l);

/* What it is at; NULL: that was all, or it was given up. */
const struct rs_shown *rs_shown_walk_at(const struct rs_shown_walks *w, uint64_t ticket);
void rs_shown_walk_on(struct rs_loop *l, uint64_t ticket);

/* The loop ends: what is left is reported, with its place where the run is one for debugging, and in no list any more.
 * one: of something that the run closes itself, and frees. */
void rs_shown_end(struct rs_loop *l);
void rs_shown_left(struct rs_shown *s);

#endif
