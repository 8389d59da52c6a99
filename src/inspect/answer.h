/* SPDX-License-Identifier: MIT */
#ifndef RS_ANSWER_H
#define RS_ANSWER_H

/* Between inspector.c, which has loops and clients, and what answers requests. */

#include "base/json.h"
#include "inspect/inspector.h"
#include "inspect/request.h"
#include "inspect/stacks.h"

enum {
        RS_ANSWER_ROOM = 256 * 1024,      /* bytes of an answer that are made at once */
        RS_ANSWER_PATIENCE_MS = 5 * 1000, /* for a client that does not read */
};

/* How long a client that reads, but slowly, is waited for in all before it loses its place: 10 s, and 1 s more for each
 * MiB that it has taken. A test may change it. */
struct rs_answer_slow {
        int ms, mib_ms;
};
extern struct rs_answer_slow rs_answer_slow;

/* An answer on its way to a client. */
struct rs_answer {
        int fd, stop;   /* stop: readable when the process has no loop any more */
        bool spare;     /* its descriptor is of the reserve (sys/spare.h) */
        bool broken;    /* the client has gone, does not read, or the answer is to stop: nothing is sent any more */
        int64_t waited; /* for the client to read, ns */
        uint64_t taken; /* bytes that it, or its socket, has */
        char *room;
        struct rs_json json;    /* in `room` */
        struct rs_texts *texts; /* for the marks that are in it (snapshot.h); NULL: there are none */
};

/* What is in the room goes out, and the room is empty. False: broken. */
bool rs_answer_flush(struct rs_answer *a);
bool rs_answer_send(struct rs_answer *a, const char *bytes, size_t n);

/* A wait of the inspector's thread; false: the answer is to stop. */
bool rs_answer_pause(struct rs_answer *a, int64_t until);

/* ---- the loops ---- */

/* What can be said of a loop without asking it. */
struct rs_view {
        uint32_t number;
        const struct rs_loop *loop; /* to be read by copies: it may end at any moment */
        pid_t tid;
        bool sleeps;
        int64_t pause, pause_cpu; /* its longest slice, ns, and the most processor time of one */
};

unsigned rs_view_count(bool *ret_debug);                     /* whether one of them is debugged */
bool rs_view_next(uint32_t after, struct rs_view *ret_view); /* that with the next number; false: there is none */

/* The loop does not end until it is let go. False: it has. */
bool rs_view_hold(uint32_t number);
void rs_view_release(uint32_t number);

/* fn(l, arg) on the thread of the loop with that number, outside of tasks. 1; 0: it has not come to it in time, and
 * will not; -ECANCELED: it ends, or has ended. */
int rs_view_ask(uint32_t number, void (*fn)(struct rs_loop *l, void *arg), void *arg);

/* ---- what is asked ---- */

void rs_answer_snapshot(struct rs_answer *a, const struct rs_request *r);
void rs_answer_stats(struct rs_answer *a);
void rs_answer_sample(struct rs_answer *a, const struct rs_request *r); /* sample.c */
void rs_answer_trace(struct rs_answer *a, const struct rs_request *r);  /* trace_answer.c */
void rs_answer_trace_forked(void);                                      /* in a forked child */

#endif
