/* SPDX-License-Identifier: MIT */
#ifndef RS_WALK_H
#define RS_WALK_H

/* A walk through all tasks of a loop, a few at a time, by what a reader reads: see walk.c. */

#include "base/reader.h"
#include "core/core.h"
#include "core/slab.h"
#include "core/waited.h"
#include "inspect/stacks.h"

/* Reads memory of the process by copies that the kernel makes, on any thread: while the loop is blocked. */
extern const struct rs_reader rs_reader_copies;

/* What was read so last, to be read once: names, scopes and objects that many tasks have in common. It is used by this
 * thread until it is given NULL, and forgets all when it is given again. */
enum { RS_COPIES = 128, RS_COPY_MAX = 512 };

struct rs_copies {
        struct {
                const void *from;
                size_t size;
                bool text;
                char bytes[RS_COPY_MAX];
        } copy[RS_COPIES];
};
void rs_copies_use(struct rs_copies *c);

enum rs_seen_state { RS_SEEN_NEW, RS_SEEN_READY, RS_SEEN_RUNS, RS_SEEN_WAITS };

/* The kinds of waits that have something to say. */
extern const struct rs_waits *const rs_all_waits[];

enum { RS_SEEN_NAME = 96, RS_SEEN_SITE = 160, RS_SEEN_WHAT = 32, RS_SEEN_DOING = 192, RS_SEEN_HOLDERS = 8 };

/* What there is to say of a task. Times in ns, by the loop's clock; INT64_MIN: unknown, or none. */
struct rs_seen_task {
        const struct rs_task *at;
        uint32_t id;
        enum rs_seen_state state;
        char name[RS_SEEN_NAME]; /* "": none */
        char site[RS_SEEN_SITE];
        int64_t age;
        int64_t since; /* how long it has been in its state */
        /* while it waits */
        char what[RS_SEEN_WHAT];
        const void *object;
        uint32_t holders[RS_SEEN_HOLDERS]; /* tasks that must do something first, but for children */
        size_t holders_n;
        int64_t due;               /* until its sleep is over */
        int64_t deadline;          /* until the first of the deadlines around it that it sees */
        char doing[RS_SEEN_DOING]; /* what it says that it does: "http example.org: connects" */
        const void *group, *scope; /* that it is a child of; the innermost one around it */
        uint32_t item, items;      /* of a gather or race */
        const char *cancelled;     /* by what; NULL: it is not */
        uint32_t ignored;          /* cancels */
        struct rs_stack_use stack; /* all 0: unknown */
};

struct rs_walk {
        const struct rs_reader *reader;
        const struct rs_loop *at;
        struct rs_loop loop; /* what it was at the last begin or resume */
        int64_t now;
        uint32_t number; /* of the loop, in the process */
        const struct rs_task *running;
        size_t slabs;   /* that have been gone through */
        unsigned index; /* in `slab` */
        const struct rs_slab *slab_at;
        bool loaded; /* `slab` is what is at slab_at */
        struct rs_slab slab;
        const struct rs_task *task;   /* of `slab`, that was seen last */
        const struct rs_stack *stack; /* of that: a copy, or NULL */
        struct rs_stack stack_copy;
        struct rs_seen_task seen;
        struct rs_waited waited; /* what its wait says, where it waits: `kind` and what follows is of seen.object */
        bool first;              /* in line at that */
        unsigned scopes;         /* of it, that were seen */
        const struct rs_scope *next_scope;
};

/* begin: at the first task. resume: where it was, but the loop has gone on meanwhile; both give false if the loop
 * cannot be read. running: the task that has the thread, NULL for none. now: by the loop's clock. */
bool rs_walk_begin(struct rs_walk *w, const struct rs_reader *reader, const struct rs_loop *l);
bool rs_walk_resume(struct rs_walk *w, int64_t now, const struct rs_task *running);

/* The next task, in w->seen; false: there is none. back: the next one is the same once more, as it is then, or
 * whoever has its place. */
bool rs_walk_next(struct rs_walk *w);
void rs_walk_back(struct rs_walk *w);

/* Return addresses of that task, as it waits; how many. room: RS_STACKS_ROOM bytes, or NULL on the loop's own
 * thread. */
size_t rs_walk_stack(const struct rs_walk *w, void *room, const void **ret_addresses, size_t max);

/* The next scope of that task, from the outermost inwards. */
struct rs_seen_scope {
        const struct rs_scope *at, *parent;
        const char *kind; /* "group", "scope", "shield", "nosuspend" */
        int64_t left;     /* until its deadline; INT64_MIN: it has none */
        bool cancelled, group;
        size_t running, limit, failures, waiting; /* of a group; limit 0: none; waiting: to spawn */
};
bool rs_walk_scope(struct rs_walk *w, struct rs_seen_scope *ret);

/* The id of a task, if it is alive and has that mark (0: any); else 0. */
uint32_t rs_walk_id(const struct rs_walk *w, const struct rs_task *at, uint64_t mark);

#endif
