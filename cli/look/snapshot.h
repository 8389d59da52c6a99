/* SPDX-License-Identifier: MIT */
#ifndef CLI_SNAPSHOT_H
#define CLI_SNAPSHOT_H

/* The state of a program, as its inspector told it. What it did not tell is -1 (numbers), 0 (addresses) or "" (texts);
 * texts are kept once each, so that equal ones are equal pointers. Times are in ns. */

#include "door.h"
#include "keep.h"
#include "record.h"

enum { NO_ROW = -1, MAX_HOLDERS = RECORD_LIST };

struct loop_row {
        uint32_t loop;
        int64_t tasks, ready, polls, switches, current, jobs, open, since, pause;
        const char *backend, *state, *mode;
};

struct task_row {
        uint32_t loop;
        uint64_t id, object, group, scope;
        int64_t age, since, due, deadline, item, items, ignored, stack_used, stack_high, stack_size;
        const char *name, *site, *state, *what, *detail, *doing, *cancelled;
        int64_t holders[MAX_HOLDERS];
        unsigned n_holders;
};

struct scope_row {
        uint32_t loop;
        uint64_t at, parent;
        int64_t task, left, running, limit, failures, waiting;
        bool cancelled;
        const char *kind;
};

struct object_row {
        uint32_t loop;
        uint64_t at;
        int64_t owner, held, limit, waiting;
        const char *kind, *name, *detail;
};

struct handle_row {
        uint32_t loop;
        uint64_t at;
        int64_t fd, age, task;
        const char *kind, *opened_at, *name, *detail;
};

struct frame_row {
        uint32_t loop;
        uint64_t task;
        int64_t depth;
        const char *text;
};

struct place_row {
        uint32_t loop;
        int64_t tasks, stack_high, stack_size;
        bool exact;
        const char *site, *name;
};

struct sample_row { /* one for a place; one for its loop with site NULL */
        uint32_t loop;
        int64_t hits, of, sleeps;
        const char *site, *name;
};

#define ROWS(type) \
        struct { \
                struct type *row; \
                size_t n, cap; \
        }

struct snapshot {
        struct keep keep;
        const char *version, *program;
        bool debug;
        int64_t all_loops; /* of the program, also those of which nothing was asked */
        ROWS(loop_row) loops;
        ROWS(task_row) tasks;
        ROWS(scope_row) scopes;
        ROWS(object_row) objects;
        ROWS(handle_row) handles;
        ROWS(frame_row) frames;
        ROWS(place_row) places;
        ROWS(sample_row) samples;
        struct text notes; /* a line each, as they came */
        struct keep_index task_at, scope_at, object_at;
        bool headed, ended;  /* the first and the last line came */
        bool frames_only;    /* of further answers the stacks are added, and nothing else */
        const char *refusal; /* what the last line says where all did not go well; NULL */
};

#define SNAPSHOT_NOTHING \
        { \
                .version = "", .program = "" \
        }
#define SNAPSHOT(s) struct snapshot s RESHA_CLEANUP(snapshot_done) = SNAPSHOT_NOTHING

void snapshot_done(struct snapshot *s);

/* Adds what a line says; unknown types and fields are skipped. 0; -EINVAL: it is no JSON object; -ENOMEM, also beyond
 * 1 GiB. */
int snapshot_add(struct snapshot *s, char *line, size_t size);

/* Asks a process and adds all of its answer. takes: ns in which nothing need come. key: a descriptor that ends it when
 * there is something to read (-EINTR); -1. EXIT_DONE, or how the command ends, with one line in `why`. */
struct wanted {
        const char *command, *request;
        int64_t takes;
        int key;
};
int snapshot_load(struct snapshot *s, const struct process *p, const struct wanted *w, struct text *why);

/* The rows of a loop's task, scope or object; NULL: none came. */
struct task_row *snapshot_task(const struct snapshot *s, uint32_t loop, int64_t id);
struct scope_row *snapshot_scope(const struct snapshot *s, uint32_t loop, uint64_t at);
struct object_row *snapshot_object(const struct snapshot *s, uint32_t loop, uint64_t at);

#endif
