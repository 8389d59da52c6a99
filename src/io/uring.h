/* SPDX-License-Identifier: MIT */
#ifndef RS_URING_H
#define RS_URING_H

/* Between the files of the io_uring backend: uring.c (operations, waiting), uring_sqe.c (an operation as the kernel
 * reads it), uring_setup.c (a ring that works, or why there is none). */

#include "io/kernel.h"
#include "sys/uring.h"

enum {
        UR_ENTRIES = 256,      /* of the queue to the kernel: what one call submits at most */
        UR_COMPLETIONS = 4096, /* of the queue back; more than that the kernel keeps in memory of its own */
        UR_FOREIGN_BUCKETS = 64,
};

/* Sizes for tests; 0: as above. */
extern struct rs_uring_sizes {
        unsigned entries, completions;
} rs_uring_sizes;

/* See uring.c for the picture. */
enum ur_stage { UR_QUEUED = 1, UR_FLYING, UR_RESTING, UR_CREW };

/* In op->priv[0]. */
struct ur_op {
        uint8_t stage;
        bool polls;      /* waits until its file is ready, and the call is made then; else the kernel makes it */
        bool cancelled;  /* its end was asked for */
        bool in_cancels; /* and the kernel not told yet */
        uint8_t vain;    /* times in a row that its file was ready and the call could not be made */
};

/* Completions that are of no operation: user_data below any address. */
enum { UR_NOBODY = 0, UR_WAKE = 1 };

struct ur {
        struct kn kn; /* first */
        struct io_uring ring;
        bool open;
        bool deferred;          /* the thread must enter the kernel for completions to come */
        bool hints;             /* the kernel takes POLL_FIRST and polls again by itself, and gives SOCK_NONEMPTY */
        bool wake_armed;        /* a poll of wakefd is queued or flying, for once or until further notice */
        bool woken;             /* wait() is to return, also if that was seen in between */
        size_t flying;          /* operations that the kernel has, or has in its queue */
        struct rs_list queued;  /* of rs_op.link: wait for a place in the queue to the kernel */
        struct rs_list cancels; /* of rs_op.link: flying, and to be cancelled */
        struct rs_list resting; /* of rs_op.link: queued again at rest_until */
        int64_t rest_until;
        uint32_t disk; /* calls about files and names that the kernel makes, by enum rs_disk_call */
        struct rs_op *foreign[UR_FOREIGN_BUCKETS]; /* by the last bits of the number; op->priv[1]: the next one */
        struct msghdr messages[UR_ENTRIES];        /* of WRITE_VEC, one for each place in the queue to the kernel */
};

static inline struct ur *ur_of(struct rs_backend *b)
{
        return (struct ur *)(void *)b;
}

/* Counted. */
static inline int ur_enter(struct ur *u, unsigned n, int64_t timeout_ns)
{
        u->kn.base.calls++;
        return rs_uring_enter(&u->ring, n, timeout_ns);
}

static inline struct ur_op *ur_op_of(struct rs_op *op)
{
        _Static_assert(sizeof(struct ur_op) <= sizeof op->priv[0], "room for the state of an operation");
        return (struct ur_op *)(void *)&op->priv[0];
}

/* Whether the kernel makes the call of an operation; else it only says when. */
bool ur_direct(const struct kn_file *f, const struct rs_op *op);

/* The call that a direct operation stands for. */
enum rs_syscall ur_call(const struct rs_op *op);

void ur_fill(struct ur *u, struct io_uring_sqe *sqe, struct rs_op *op);

/* uring_disk.c: RS_OP_DISK. direct: the kernel makes it. refused: the crew has to make it after all. */
struct rs_disk;
void ur_disk_probed(struct ur *u, const struct io_uring_probe *p);
bool ur_disk_direct(const struct ur *u, const struct rs_op *op);
void ur_disk_fill(struct io_uring_sqe *sqe, const struct rs_disk *d);
bool ur_disk_refused(struct ur *u, const struct rs_disk *d, int res);
ssize_t ur_disk_result(const struct rs_disk *d, int res);

/* A ring that has done what we need of one, deferred if it may be; or a negative code, and why in `why`. */
int ur_setup(struct ur *u, bool deferred, char why[static RS_WHY]);

#endif
