/* SPDX-License-Identifier: MIT */
#ifndef RS_OVERFLOW_H
#define RS_OVERFLOW_H

/* The overflow report, for src/run; all on the loop's thread. */

#include <signal.h>

struct rs_overflow {
        stack_t old_stack;
        void *stack; /* NULL: not installed */
};

/* 0, -ENOMEM, or negative of a system call; then nothing is installed. */
int rs_overflow_install(struct rs_overflow *o);
void rs_overflow_remove(struct rs_overflow *o);

/* In a forked child: SIGSEGV is handled as before the parent's runs. */
void rs_overflow_forked(void);

#endif
