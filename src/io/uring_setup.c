/* SPDX-License-Identifier: MIT */
/* A ring that works, or why there is none. Found out by trying, never by the kernel's version: containers and system
 * administrators forbid io_uring where the kernel has it, and distributions add to old kernels.
 *
 *     io_uring_setup  with the best flags; EINVAL: the next rung of the ladder; ENOMEM: a ring of half the size
 *     features        what the ring must be able to do
 *     probe           the operations that we use
 *     no-op           one, there and back, under a time limit
 *
 * The rungs. Deferred: what completes is dealt with when we enter the kernel, by the one thread that may do so: best in
 * batches, and the cheapest. Cooperative: at the next entry, whichever. Plain: the thread is interrupted for it. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <resha/error.h>

#include "io/uring.h"
#include "sys/sanitize.h"

struct rs_uring_sizes rs_uring_sizes;

enum { LEAST_ENTRIES = 16, PROBED = IORING_OP_LAST };

static const unsigned SIZES = IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP;

static const struct rung {
        unsigned flags;
        bool hints; /* kernels that know these flags know POLL_FIRST and SOCK_NONEMPTY too */
} LADDER[] = {
        { IORING_SETUP_SUBMIT_ALL | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG,
          true },
        { IORING_SETUP_SUBMIT_ALL | IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG, true },
        { 0, false },
};

enum { RUNGS = sizeof LADDER / sizeof LADDER[0] };

/* What is told on: the step, its error, and what may be done about it. */
static int refused(char why[static RS_WHY], const char *step, int code)
{
        const char *advice = "";

        if (code == -EPERM || code == -EACCES)
                advice = " (seccomp or kernel.io_uring_disabled?)";
        else if (code == -ENOSYS)
                advice = " (no io_uring in this kernel, or seccomp)";
        else if (code == -ENOMEM)
                advice = " (ulimit -l?)";
        snprintf(why, RS_WHY, "%s: %s%s", step, strerror(-code), advice);
        return code;
}

/* One rung, with as large a ring as there is memory for. */
static int try_rung(struct ur *u, const struct rung *r)
{
        unsigned entries = rs_uring_sizes.entries ? rs_uring_sizes.entries : UR_ENTRIES;
        unsigned completions = rs_uring_sizes.completions ? rs_uring_sizes.completions : UR_COMPLETIONS;

        for (;;) {
                struct io_uring_params p = { .flags = r->flags | SIZES, .cq_entries = completions };
                int rc = rs_uring_setup(entries, &p, &u->ring);
                if (rc != -ENOMEM || entries <= LEAST_ENTRIES)
                        return rc;
                entries /= 2;
                completions /= 2;
        }
}

static int climb_down(struct ur *u, int first, char why[static RS_WHY])
{
        int rc = -EINVAL;

        for (int i = first; i < RUNGS && rc == -EINVAL; i++) {
                rc = try_rung(u, &LADDER[i]);
                u->hints = LADDER[i].hints;
                u->deferred = i == 0;
        }
        u->open = rc == 0;
        return rc < 0 ? refused(why, "io_uring_setup", rc) : 0;
}

static int check_features(const struct ur *u, char why[static RS_WHY])
{
        static const struct {
                unsigned bit;
                const char *name;
        } needed[] = {
                { IORING_FEAT_NODROP, "NODROP" },         { IORING_FEAT_SUBMIT_STABLE, "SUBMIT_STABLE" },
                { IORING_FEAT_RW_CUR_POS, "RW_CUR_POS" }, { IORING_FEAT_FAST_POLL, "FAST_POLL" },
                { IORING_FEAT_EXT_ARG, "EXT_ARG" },
        };

        for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
                if (!(u->ring.features & needed[i].bit)) {
                        snprintf(why, RS_WHY, "io_uring of this kernel has no %s", needed[i].name);
                        return -EOPNOTSUPP;
                }
        return 0;
}

static int check_operations(struct ur *u, char why[static RS_WHY])
{
        static const uint8_t needed[] = { IORING_OP_NOP,      IORING_OP_READ,        IORING_OP_WRITE,
                                          IORING_OP_WRITEV,   IORING_OP_RECV,        IORING_OP_SEND,
                                          IORING_OP_ACCEPT,   IORING_OP_SENDMSG,     IORING_OP_CONNECT,
                                          IORING_OP_POLL_ADD, IORING_OP_ASYNC_CANCEL };
        uint64_t room[(sizeof(struct io_uring_probe) + PROBED * sizeof(struct io_uring_probe_op)) / 8 + 1] = { 0 };
        struct io_uring_probe *p = (struct io_uring_probe *)(void *)room;
        int rc = rs_uring_probe(&u->ring, p, PROBED);

        if (rc < 0)
                return refused(why, "io_uring_register", rc);
        for (size_t i = 0; i < sizeof needed; i++)
                if (needed[i] >= p->ops_len || !(p->ops[needed[i]].flags & IO_URING_OP_SUPPORTED)) {
                        snprintf(why, RS_WHY, "io_uring of this kernel has no operation %u", needed[i]);
                        return -EOPNOTSUPP;
                }
        ur_disk_probed(u, p);
        return 0;
}

static int check_round_trip(struct ur *u, char why[static RS_WHY])
{
        const uint64_t mark = 0x7265736861;
        struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);
        struct io_uring_cqe *cqe = NULL;
        int rc = -ETIME;

        io_uring_prep_nop(sqe);
        sqe->user_data = mark;
        for (int i = 0; i < 10 && !cqe; i++) { /* signals may come in between */
                rc = rs_uring_enter(&u->ring, 1, 1000000000);
                if (rc < 0)
                        return refused(why, "io_uring_enter", rc);
                if (io_uring_peek_cqe(&u->ring, &cqe) < 0)
                        cqe = NULL;
        }
        if (!cqe || cqe->user_data != mark || cqe->res < 0)
                return refused(why, "a no-op through the ring", cqe && cqe->res < 0 ? cqe->res : -ETIME);
        io_uring_cqe_seen(&u->ring, cqe);
        return 0;
}

int ur_setup(struct ur *u, bool deferred, char why[static RS_WHY])
{
        if (RUNNING_ON_VALGRIND) { /* and jobs of threads, which would end the wait, never run */
                snprintf(why, RS_WHY, "Valgrind stops all threads while one waits in a ring");
                return -EOPNOTSUPP;
        }
        int rc = climb_down(u, deferred ? 0 : 1, why);
        if (rc == 0)
                rc = check_features(u, why);
        if (rc == 0)
                rc = check_operations(u, why);
        if (rc == 0)
                rc = check_round_trip(u, why);
        if (rc < 0)
                return rc;
        rc = rs_uring_dontfork(&u->ring);
        return rc < 0 ? refused(why, "madvise of the ring", rc) : 0;
}
