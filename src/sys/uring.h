/* SPDX-License-Identifier: MIT */
#ifndef RS_URING_SYS_H
#define RS_URING_SYS_H

/* The calls of liburing that enter the kernel, with negative errno as all of sys, each behind rs_fault_syscall(). The
 * queues in shared memory are liburing's own inline functions, called where they are used. */

#include <liburing.h>
#include <stdbool.h>

#include "sys/sys.h"

int rs_uring_setup(unsigned entries, struct io_uring_params *params, struct io_uring *ring);
int rs_uring_probe(struct io_uring *ring, struct io_uring_probe *probe, unsigned ops);
int rs_uring_dontfork(struct io_uring *ring); /* a forked child that touches the queues faults */
void rs_uring_exit(struct io_uring *ring);

/* Submits what is queued, and waits for `n` completions or timeout_ns (negative: without limit). 0 completions: does
 * not wait. 0 also when the time is over or a signal came; negative: what is queued may not have been taken. */
int rs_uring_enter(struct io_uring *ring, unsigned n, int64_t timeout_ns);

/* Waits for a completion and submits nothing. No test makes it fail: it is how a failure to submit is waited out. */
int rs_uring_wait(struct io_uring *ring, int64_t timeout_ns);

/* For an operation that goes through the ring instead of making `call`: what a test makes of it; else 0. */
static inline int rs_uring_fault(enum rs_syscall call)
{
        int rc;

        do
                rc = rs_fault_syscall(call);
        while (RS_UNLIKELY(rc == -EINTR));
        return rc;
}

#endif
