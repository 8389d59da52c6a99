/* SPDX-License-Identifier: MIT */
#ifndef RS_SNAPSHOT_H
#define RS_SNAPSHOT_H

/* A snapshot of a loop, in lines of JSON: see snapshot.c and docs/design/0090-inspector.md. */

#include "base/json.h"
#include "inspect/places.h"
#include "inspect/request.h"
#include "inspect/stacks.h"
#include "inspect/walk.h"

/* What is known of the loop from outside, before it is disturbed. */
struct rs_snapshot_from {
        bool sleeps, blocked;
        const struct rs_task *current;
        int64_t since;                        /* for how long, ns; INT64_MIN: unknown */
        int64_t pause, pause_cpu;             /* its longest slice so far, ns, and the most processor time of one */
        const void *running[RS_STACKS_DEPTH]; /* blocked: the stack of its thread, */
        size_t depth;                         /* as far as it is known */
};

struct rs_snapshot {
        struct rs_walk walk;
        const struct rs_request *request;
        struct rs_snapshot_from from;
        enum { RS_SNAPSHOT_LOOP, RS_SNAPSHOT_TASKS, RS_SNAPSHOT_SHOWN, RS_SNAPSHOT_PLACES, RS_SNAPSHOT_END } part;
        size_t at;            /* how many of the part are done */
        uint64_t shown_walk;  /* through what is open; 0: not begun */
        const void *shown_at; /* by copies: what comes next; NULL: not begun */
        struct rs_places places;
        char room[RS_STACKS_ROOM] __attribute__((aligned(16))); /* for copies of stacks */
};

/* In place of texts that take long to find there are marks in the lines, which rs_snapshot_text() replaces: RS_MARK,
 * then 'a' and an address, or 's', three words (loop, task, depth) and so many addresses, for lines of their own. */
enum { RS_MARK = 1 };

bool rs_snapshot_begin(struct rs_snapshot *s, const struct rs_reader *reader, const struct rs_loop *l,
                       const struct rs_request *request, const struct rs_snapshot_from *from);

/* More lines, until there is no room, or the system's clock has come to `until`. now: the time of the loop's clock.
 * True: that was all. */
bool rs_snapshot_slice(struct rs_snapshot *s, struct rs_json *j, int64_t now, int64_t until);

/* What the mark at `from` stands for is put into j: how many bytes it took; 0: there was no room. Not on a loop's
 * thread. */
size_t rs_snapshot_text(const char *from, struct rs_texts *texts, struct rs_json *j);

/* Lines about the whole of an answer. */
void rs_snapshot_head(struct rs_json *j, unsigned loops, bool debug);
void rs_snapshot_note(struct rs_json *j, const char *text);
void rs_snapshot_error(struct rs_json *j, const char *text); /* and the end */
void rs_snapshot_tail(struct rs_json *j);

#endif
