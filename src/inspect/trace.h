/* SPDX-License-Identifier: MIT */
#ifndef RS_INSPECT_TRACE_H
#define RS_INSPECT_TRACE_H

/* Traces: what the tasks of a loop do, in the Trace Event Format (its array form), which Perfetto and Chrome open. A
 * loop is a process there, a task a thread, and the loop itself one more.
 *
 * Who asks from another thread, while the loop runs:
 *
 *     struct rs_trace_out out;
 *     rs_trace_open(&out, write, arg, 0);
 *     struct rs_trace *t = rs_trace_new(&out, 1, "fetch", RS_TRACE_EVENTS);    any thread, one at a time
 *     on the loop's thread (a post):    rs_trace_begin(t, l);
 *                                       while (rs_trace_tell(t, l)) let the loop go on: post again
 *     every 10 ms or so:                rs_trace_drain(t);
 *     on the loop's thread (a post):    rs_trace_end(t, l);
 *     rs_trace_free(t);                 drains what is left, and says what was lost
 *     rs_trace_close(&out);
 *
 * Nothing is allocated on the loop's thread, and it never waits: what is not drained in time is lost, counted, and
 * said. A loop may end before rs_trace_end(), which must not be called then. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rs_loop;
struct rs_trace;

/* Events that wait to be drained (16 bytes each, a change of a task takes two to four); tasks that are followed at a
 * time, 130 bytes each; and that have a track, in all; bytes of a file of RESHA_TRACE, if RESHA_TRACE_LIMIT (MiB) does
 * not say otherwise. */
enum { RS_TRACE_EVENTS = 1 << 16, RS_TRACE_TASKS = 1 << 15, RS_TRACE_TRACKS = 50000, RS_TRACE_LIMIT = 256 << 20 };

/* Where traces go, of several loops one after the other or in turns; the caller's, who keeps threads apart. */
struct rs_trace_out {
        int (*write)(void *arg, const char *text, size_t n); /* 0; negative: nothing more is taken */
        void *arg;
        uint64_t limit, bytes; /* limit 0: none */
        uint64_t dropped;      /* events, for the limit */
        unsigned traces;       /* that have been written to it, or will be: each has its last words */
        int failed;            /* what write said */
        size_t used;
        char text[8192];
};

void rs_trace_open(struct rs_trace_out *out, int (*write)(void *arg, const char *text, size_t n), void *arg,
                   uint64_t limit);
int rs_trace_close(struct rs_trace_out *out); /* 0, or what write said */

/* Of loop number `loop` (from 1). NULL: no memory. */
struct rs_trace *rs_trace_new(struct rs_trace_out *out, unsigned loop, const char *program, size_t events);
/* A loop that has a ring already (another trace, RESHA_TIMELINE) writes to that one, and t reads it. */
void rs_trace_begin(struct rs_trace *t, struct rs_loop *l);
/* Some of the tasks that were there before, at most 256: true if there are more. */
bool rs_trace_tell(struct rs_trace *t, struct rs_loop *l);
void rs_trace_end(struct rs_trace *t, struct rs_loop *l);
int rs_trace_drain(struct rs_trace *t); /* 0, or what write said */
void rs_trace_free(struct rs_trace *t);

/* In place of all that, for a loop that did not come to begin: a track that has nothing on it but a note, whose key is
 * this one, so that readers find it. what: the loop is, as "blocked". Frees t. */
#define RS_TRACE_LEFT_OUT "left_out"
void rs_trace_left_out(struct rs_trace *t, const char *what, const char *why);

/* In place of rs_trace_begin(), for a loop that has not begun: all is written, on the loop's thread as it goes, and
 * nothing is lost. before() and after() stand around each writing. */
void rs_trace_whole(struct rs_trace *t, struct rs_loop *l, void (*before)(void *arg), void (*after)(void *arg),
                    void *arg);

#endif
