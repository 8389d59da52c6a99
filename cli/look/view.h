/* SPDX-License-Identifier: MIT */
#ifndef CLI_VIEW_H
#define CLI_VIEW_H

/* What is made of a snapshot for people: who belongs to whom, what is wrong at first sight, and the lines above all
 * else. */

#include "answer.h"
#include "asked.h"
#include "cycles.h"
#include "screen.h"

struct view {
        struct snapshot snapshot;
        const struct snapshot *s; /* that */
        struct process process;
        struct screen screen;
        struct family family;
        struct cycles cycles;
};

#define VIEW(v) struct view v RESHA_CLEANUP(view_done) = { .snapshot = SNAPSHOT_NOTHING }

void view_done(struct view *v);

/* Finds the process, or says that there is none. The exit code. */
int view_find(struct process *p, const struct asked *a);

/* Asks the process, with the stacks of tasks that block their loops. EXIT_DONE, or how the command ends, which is
 * said. */
int view_load(struct view *v, const struct asked *a, const char *request);

/* The answer as it comes, to a descriptor; process and command of the question are filled in. The same. */
int view_pass(const struct asked *a, struct question *q, int fd);

/* What view_load() does once the snapshot is there. 0, -ENOMEM. */
int view_init(struct view *v);

bool view_is_blocked(const struct loop_row *l);

/* "fetch (pid 4711), resha 0.2.0: 1 loop, 103 tasks". */
void view_add_head(const struct view *v, struct text *t);

/* "loop 1 (uring): sleeps, 103 tasks, 3 ready, ..." */
void view_add_loop(const struct view *v, const struct loop_row *l, struct text *t);

/* Lines that begin with "!": circles, blocked loops, ignored cancels, stacks that are nearly full, what is used up; and
 * the notes of the inspector. */
void view_add_findings(const struct view *v, struct text *t);

/* The stack of a task, a line for each frame, as far as it came. */
void view_add_frames(const struct view *v, uint32_t loop, uint64_t task, const char *indent, struct text *t);

#endif
