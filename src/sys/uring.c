/* SPDX-License-Identifier: MIT */
/* What of liburing enters the kernel; see sys.c for what holds for all system calls. */

#include "sys/uring.h"

#include "sys/call.h"
#include "sys/sanitize.h"

static char ring_memory; /* for TSan: that of one ring may be that of a later one, on another thread */

static struct __kernel_timespec timespec_of(int64_t ns)
{
        return (struct __kernel_timespec){ .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };
}

/* The time is over, or a signal came. */
static int nothing_wrong(int rc)
{
        return rc > 0 || rc == -ETIME || rc == -EINTR ? 0 : rc;
}

int rs_uring_setup(unsigned entries, struct io_uring_params *params, struct io_uring *ring)
{
        int rc = rs_uring_fault(RS_SYS_URING_SETUP);

        if (rc == 0)
                rc = io_uring_queue_init_params(entries, ring, params);
        rs_tsan_take(&ring_memory); /* by now whoever had it has given it */
        if (rc == 0)
                ring->ring_fd = ring->enter_ring_fd = rs_sys_move_up(ring->ring_fd);
        return rc;
}

int rs_uring_probe(struct io_uring *ring, struct io_uring_probe *probe, unsigned ops)
{
        int rc = rs_uring_fault(RS_SYS_URING_REGISTER);

        return rc < 0 ? rc : io_uring_register_probe(ring, probe, ops);
}

int rs_uring_dontfork(struct io_uring *ring)
{
        return io_uring_ring_dontfork(ring);
}

void rs_uring_exit(struct io_uring *ring)
{
        rs_tsan_give(&ring_memory);
        io_uring_queue_exit(ring);
}

int rs_uring_enter(struct io_uring *ring, unsigned n, int64_t timeout_ns)
{
        struct __kernel_timespec limit = timespec_of(timeout_ns);
        struct io_uring_cqe *first;
        int rc = rs_fault_syscall(RS_SYS_URING_ENTER);

        if (RS_LIKELY(rc == 0))
                rc = n == 0 ? io_uring_submit_and_get_events(ring)
                            : io_uring_submit_and_wait_timeout(ring, &first, n, timeout_ns < 0 ? NULL : &limit, NULL);
        return nothing_wrong(rc);
}

int rs_uring_wait(struct io_uring *ring, int64_t timeout_ns)
{
        struct __kernel_timespec limit = timespec_of(timeout_ns);
        struct io_uring_cqe *first;

        return nothing_wrong(io_uring_wait_cqe_timeout(ring, &first, &limit));
}
