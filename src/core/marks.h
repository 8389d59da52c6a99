/* SPDX-License-Identifier: MIT */
#ifndef RS_MARKS_H
#define RS_MARKS_H

/* High-water marks of stacks, of runs that are debugged: see marks.c. */

#include <stddef.h>
#include <stdint.h>

struct rs_loop;
struct rs_task;
struct rs_stack;

enum { RS_MARKS = 256 };

/* Of the tasks of a place that have ended. */
struct rs_stack_mark {
        const char *site, *name; /* static; name NULL: they had names of their own */
        size_t high;             /* bytes, at most */
        uint64_t tasks;
};

struct rs_stack_marks {
        size_t n;
        struct rs_stack_mark mark[RS_MARKS];
};

/* For this loop, if its options say that it is debugged, and it can be done here. */
void rs_marks_begin(struct rs_loop *l);
void rs_marks_end(struct rs_loop *l);

/* On the stack of a task that has ended, and is about to leave it to the next. */
void rs_marks_ended(struct rs_loop *l, const struct rs_task *t);

/* Bytes that were used of a stack, at most; its memory was zero when its task began. Any thread; 0: it has gone. */
size_t rs_marks_high(const char *bottom, const char *top);

#endif
