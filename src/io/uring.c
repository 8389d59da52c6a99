/* SPDX-License-Identifier: MIT */
/* The kernel behind io_uring.
 *
 *     submit --> QUEUED --give--> FLYING --its completion--> done
 *                  |  ^              |  |
 *         cancel --+  |              |  +-- cancel: the kernel is asked; the one completion still comes
 *     (taken back)    +--- again ----+  +-- ready and yet not, twice: RESTING, and QUEUED again
 *
 * Nothing enters the kernel but wait(): it gives what is queued, all in one call, which waits too. An operation and its
 * buffer lie on the stack of its task. The kernel has them from give() to the completion, and the task sleeps until
 * then, also when it is cancelled: what the completion says, done or not, is the result, so nothing that came is lost.
 *
 * Most operations are made by the kernel (uring_sqe.c); those that `poll` wait for their file to be ready and are tried
 * then, as on epoll. That is also the way out where a kernel says EAGAIN to an operation that should have waited.
 *
 * Invariants
 * - Each operation has at most one entry in flight, so a completion is never stale. A cancel names an operation by its
 *   address: one that is not yet in the kernel's queue when its operation is done is dropped, and in the queue it comes
 *   before whatever lies at that address next.
 * - Nobody sleeps while something is queued that the kernel could take: if it has no room or no memory, what has come
 *   back is dealt with first, and if nothing has, it is tried again after a pause.
 * - wakefd is polled whenever wait() sleeps.
 * - A file is closed by close(2): nothing is in flight on it then. */

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include <resha/alloc.h>

#include "io/uring.h"
#include "sys/disk.h"
#include "sys/sanitize.h"

static const int64_t PAUSE = 1000000;             /* ns: when the kernel has no memory, or a file is ready in vain */
static const int64_t LAST_WAIT = 100 * 1000000LL; /* ns: for what is in flight at the end */

/* ---- operations ---- */

static void queue(struct ur *u, struct rs_op *op)
{
        ur_op_of(op)->stage = UR_QUEUED;
        rs_list_push(&u->queued, &op->link);
}

/* An accept has a file for its connection from the start, so that one that the kernel has made always finds one. */
static int reserve(struct ur *u, struct rs_op *op)
{
        int rc = kn_accept_room(&u->kn);

        op->priv[1] = (uint64_t)(uintptr_t)u->kn.spare;
        u->kn.spare = NULL;
        return rc;
}

static void unreserve(struct ur *u, struct rs_op *op)
{
        struct kn_file *f = (struct kn_file *)(uintptr_t)op->priv[1];

        if (u->kn.spare)
                resha_free(f);
        else
                u->kn.spare = f;
        op->priv[1] = 0;
}

/* What a test puts in the place of the call. */
static int fault(const struct rs_op *op)
{
        int rc = rs_uring_fault(ur_call(op));

        while (RS_UNLIKELY(rc < 0) && op->kind == RS_OP_ACCEPT && kn_accept_again(rc))
                rc = rs_uring_fault(RS_SYS_ACCEPT);
        return rc;
}

static bool submit_direct(struct ur *u, struct kn_file *f, struct rs_op *op)
{
        if (kn_take_the_rest(f, op))
                return true;
        int rc = fault(op);
        if (rc == 0 && op->kind == RS_OP_ACCEPT)
                rc = reserve(u, op);
        if (rc < 0)
                return kn_done(op, rc);
        queue(u, op);
        return false;
}

static bool submit_polling(struct ur *u, struct kn_file *f, struct rs_op *op)
{
        if (f->ready[kn_direction(op)]) {
                ssize_t result = kn_try(f, op);
                if (result != -EAGAIN)
                        return kn_done(op, result);
        }
        ur_op_of(op)->polls = true;
        queue(u, op);
        return false;
}

static struct rs_op **foreign_place(struct ur *u, int fd)
{
        struct rs_op **p = &u->foreign[(unsigned)fd % UR_FOREIGN_BUCKETS];

        while (*p && (*p)->fd != fd)
                p = (struct rs_op **)(void *)&(*p)->priv[1]; /* as let_go() reads it */
        return p;
}

static bool submit_foreign(struct ur *u, struct rs_op *op)
{
        if (op->fd < 0)
                return kn_done(op, -EBADF);
        struct rs_op **place = foreign_place(u, op->fd);
        if (*place || kn_owns(&u->kn, op->fd))
                return kn_done(op, -EBUSY);
        *place = op;
        ur_op_of(op)->polls = true;
        queue(u, op);
        return false;
}

/* A close always happens, whatever is to be said about it. */
static bool submit_disk(struct ur *u, struct rs_op *op)
{
        struct rs_disk *d = op->buf;

        op->priv[0] = op->priv[1] = 0;
        if (!ur_disk_direct(u, op)) {
                ur_op_of(op)->stage = UR_CREW;
                return kn_disk_submit(&u->kn, op);
        }
        int rc = rs_sys_disk_fault(d->call);
        if (rc < 0 && d->call == RS_DISK_CLOSE)
                rs_sys_close(d->fd);
        if (rc < 0)
                return kn_done(op, rc);
        queue(u, op);
        return kn_pend(&u->kn.base, op);
}

/* It is neither queued nor flying any more. */
static void let_go(struct ur *u, struct rs_op *op)
{
        if (op->kind == RS_OP_DISK)
                return;
        if (op->kind == RS_OP_POLL)
                *foreign_place(u, op->fd) = (struct rs_op *)(uintptr_t)op->priv[1];
        else
                kn_file_of(op->file)->pending[kn_direction(op)] = NULL;
        if (op->kind == RS_OP_ACCEPT && op->priv[1])
                unreserve(u, op);
}

static bool ur_submit(struct rs_backend *b, struct rs_op *op)
{
        struct ur *u = ur_of(b);

        if (op->kind == RS_OP_DISK)
                return submit_disk(u, op);
        struct kn_file *f = op->kind == RS_OP_POLL ? NULL : kn_file_of(op->file);

        op->priv[0] = op->priv[1] = 0;
        assert(!f || !f->pending[kn_direction(op)]);
        if (!f ? submit_foreign(u, op) : ur_direct(f, op) ? submit_direct(u, f, op) : submit_polling(u, f, op))
                return true;
        if (f)
                f->pending[kn_direction(op)] = op;
        return kn_pend(b, op);
}

static bool taken_back(struct rs_backend *b, struct rs_op *op)
{
        op->state = RS_OP_IDLE;
        op->result = -ECANCELED;
        b->pending--;
        return true;
}

static bool ur_cancel(struct rs_backend *b, struct rs_op *op)
{
        struct ur *u = ur_of(b);
        struct ur_op *o = ur_op_of(op);

        if (op->state != RS_OP_PENDING)
                return false;
        if (o->stage == UR_CREW)
                return kn_disk_cancel(&u->kn, op) && taken_back(b, op);
        if (o->cancelled)
                return false;
        if (o->stage == UR_FLYING) {
                o->cancelled = o->in_cancels = true;
                rs_list_push(&u->cancels, &op->link);
                return false;
        }
        rs_list_remove(o->stage == UR_QUEUED ? &u->queued : &u->resting, &op->link);
        let_go(u, op);
        return taken_back(b, op);
}

/* ---- completions ---- */

static void done(struct ur *u, struct rs_op *op, ssize_t result)
{
        let_go(u, op);
        rs_backend_done(&u->kn.base, op, result);
}

/* To be waited for again, by polling if the kernel did not wait; later, if that has been in vain before. */
static void again(struct ur *u, struct rs_op *op)
{
        struct ur_op *o = ur_op_of(op);

        if (o->cancelled) {
                done(u, op, -ECANCELED);
        } else if (o->vain < 2) {
                queue(u, op);
        } else {
                if (rs_list_empty(&u->resting))
                        u->rest_until = rs_sys_now() + PAUSE;
                o->stage = UR_RESTING;
                rs_list_push(&u->resting, &op->link);
        }
}

/* A regular file is always ready, as poll(2) has it. */
static void foreign_done(struct ur *u, struct rs_op *op, int res)
{
        short always = op->events & (POLLIN | POLLOUT);

        if (res == -EINVAL)
                res = always ? always : POLLIN;
        done(u, op, res);
}

/* Its file is ready. */
static void try(struct ur *u, struct kn_file *f, struct rs_op *op)
{
        f->ready[kn_direction(op)] = true;
        ssize_t result = kn_try(f, op);
        if (result != -EAGAIN) {
                done(u, op, result);
                return;
        }
        if (ur_op_of(op)->vain < 2 && !f->base.shared) /* others may have been faster */
                ur_op_of(op)->vain++;
        again(u, op);
}

static void read_done(struct kn_file *f, const struct rs_op *op, int n, unsigned flags)
{
        bool more = flags & IORING_CQE_F_SOCK_NONEMPTY;

        f->ready[KN_READING] = more || (!f->hasty && (size_t)n == op->size);
        rs_memory_written(op->buf, (size_t)n);
}

/* The kernel has made the call, or tried to. */
static void direct_done(struct ur *u, struct kn_file *f, struct rs_op *op, int res, unsigned flags)
{
        if (op->kind == RS_OP_CONNECT && (res == -EINPROGRESS || res == -EALREADY))
                res = -EAGAIN;
        else if (op->kind == RS_OP_CONNECT && res == -EAGAIN)
                res = -ENOBUFS; /* see kernel_try.c */
        if (res == -EAGAIN) {
                ur_op_of(op)->polls = true;
                f->ready[kn_direction(op)] = false;
                again(u, op);
                return;
        }
        if (op->kind == RS_OP_ACCEPT && kn_accept_again(res)) {
                again(u, op);
                return;
        }
        if (op->kind == RS_OP_READ && res >= 0)
                read_done(f, op, res, flags);
        if (op->kind == RS_OP_ACCEPT && res >= 0) {
                unreserve(u, op);
                kn_accepted(f, op, res);
                res = 0;
        }
        done(u, op, res);
}

/* -ECANCELED that nobody asked for says that the file behind the descriptor is gone. */
static void interrupted(struct ur *u, struct rs_op *op, int res)
{
        struct ur_op *o = ur_op_of(op);

        if (!o->cancelled && res == -ECANCELED) {
                done(u, op, -EIO);
                return;
        }
        if (op->kind == RS_OP_CONNECT)
                o->polls = true;
        again(u, op);
}

/* Of a cancel that came in time, or what the call has come to; or the crew makes it. */
static void disk_completed(struct ur *u, struct rs_op *op, int res)
{
        struct ur_op *o = ur_op_of(op);
        const struct rs_disk *d = op->buf;
        int rc = 0;

        if (res == -ECANCELED && !o->cancelled)
                res = -EINTR;
        if (ur_disk_refused(u, d, res)) {
                o->stage = UR_CREW;
                rc = kn_disk_add(&u->kn, op);
                if (rc == 0)
                        return;
        }
        done(u, op, rc < 0 ? rc : ur_disk_result(d, res));
}

static void op_completed(struct ur *u, struct rs_op *op, int res, unsigned flags)
{
        struct ur_op *o = ur_op_of(op);

        u->flying--;
        if (o->in_cancels)
                rs_list_remove(&u->cancels, &op->link);
        o->in_cancels = false;
        if (op->kind == RS_OP_DISK)
                disk_completed(u, op, res);
        else if (res == -ECANCELED || res == -EINTR)
                interrupted(u, op, res);
        else if (op->kind == RS_OP_POLL)
                foreign_done(u, op, res);
        else if (!o->polls)
                direct_done(u, kn_file_of(op->file), op, res, flags);
        else if (res < 0 && res != -EINVAL) /* of a poll: what cannot be waited for is ready */
                done(u, op, res);
        else
                try(u, kn_file_of(op->file), op);
}

/* All that has come back. What the kernel has kept because there was no room for it follows as soon as there is. */
static unsigned reap(struct ur *u)
{
        unsigned total = 0;

        for (;;) {
                struct io_uring_cqe *cqe;
                unsigned head, n = 0;
                io_uring_for_each_cqe(&u->ring, head, cqe)
                {
                        n++;
                        if (cqe->user_data > UR_WAKE) {
                                op_completed(u, (struct rs_op *)(uintptr_t)cqe->user_data, cqe->res, cqe->flags);
                        } else if (cqe->user_data == UR_WAKE) {
                                u->wake_armed = (cqe->flags & IORING_CQE_F_MORE) != 0;
                                u->woken = true;
                                kn_woken(&u->kn, u->wake_armed);
                        }
                }
                io_uring_cq_advance(&u->ring, n);
                total += n;
                if (!io_uring_cq_has_overflow(&u->ring) || rs_uring_enter(&u->ring, 0, 0) < 0)
                        return total;
        }
}

/* ---- waiting ---- */

/* A place in the queue to the kernel; NULL: it does not take what is in there. */
static struct io_uring_sqe *place(struct ur *u)
{
        struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);

        if (RS_LIKELY(sqe != NULL))
                return sqe;
        (void)ur_enter(u, 0, 0); /* should it fail, there is no place */
        reap(u);
        return io_uring_get_sqe(&u->ring);
}

static bool give_wake(struct ur *u)
{
        struct io_uring_sqe *sqe = place(u);

        if (!sqe)
                return false;
        if (u->hints)
                io_uring_prep_poll_multishot(sqe, u->kn.wakefd, POLLIN);
        else
                io_uring_prep_poll_add(sqe, u->kn.wakefd, POLLIN);
        sqe->user_data = UR_WAKE;
        u->wake_armed = true;
        return true;
}

static bool give_cancels(struct ur *u)
{
        while (!rs_list_empty(&u->cancels)) {
                struct io_uring_sqe *sqe = place(u);
                if (!sqe)
                        return false;
                struct rs_node *n = rs_list_pop(&u->cancels);
                if (n) {
                        struct rs_op *op = RS_CONTAINER(n, struct rs_op, link);
                        ur_op_of(op)->in_cancels = false;
                        io_uring_prep_cancel64(sqe, (uint64_t)(uintptr_t)op, 0);
                } else { /* done meanwhile */
                        io_uring_prep_nop(sqe);
                }
                sqe->user_data = UR_NOBODY;
        }
        return true;
}

/* Whether all that is to be given is in the queue to the kernel. */
static bool give(struct ur *u)
{
        if ((!u->wake_armed && !give_wake(u)) || !give_cancels(u))
                return false;
        while (!rs_list_empty(&u->queued)) {
                struct io_uring_sqe *sqe = place(u);
                if (!sqe)
                        return false;
                struct rs_op *op = RS_CONTAINER(rs_list_pop(&u->queued), struct rs_op, link);
                ur_fill(u, sqe, op);
                ur_op_of(op)->stage = UR_FLYING;
                u->flying++;
        }
        return true;
}

/* Those that have rested for long enough are queued. */
static void end_rests(struct ur *u)
{
        struct rs_node *n;

        if (RS_LIKELY(rs_list_empty(&u->resting)) || rs_sys_now() < u->rest_until)
                return;
        while ((n = rs_list_pop(&u->resting)))
                queue(u, RS_CONTAINER(n, struct rs_op, link));
}

/* Whether the kernel has something to do for us: to take, to complete, or to hand over for want of room. */
static bool has_work(struct ur *u)
{
        return io_uring_sq_ready(&u->ring) > 0 ||
               IO_URING_READ_ONCE(*u->ring.sq.kflags) & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW);
}

static int64_t at_most(int64_t timeout, int64_t most)
{
        return timeout < 0 || timeout > most ? most : timeout;
}

static int wait_once(struct ur *u, int64_t deadline)
{
        int rc = -EAGAIN;

        kn_go(&u->kn);
        end_rests(u);
        bool given = give(u);
        int64_t timeout = kn_timeout(&u->kn, deadline);
        if (RS_UNLIKELY(u->woken)) /* when place() has looked at what came back */
                timeout = 0;
        if (RS_UNLIKELY(!rs_list_empty(&u->resting)))
                timeout = at_most(timeout, PAUSE);
        if (RS_LIKELY(given))
                rc = timeout != 0 ? ur_enter(u, 1, timeout) : has_work(u) ? ur_enter(u, 0, 0) : 0;
        unsigned n = reap(u);
        if (RS_LIKELY(rc != -EAGAIN && rc != -EBUSY))
                return rc;
        if (n == 0 && timeout != 0) { /* no memory for it in the kernel: not at once again */
                rc = rs_uring_wait(&u->ring, at_most(timeout, PAUSE));
                reap(u);
        }
        return rc == -EAGAIN || rc == -EBUSY ? 0 : rc;
}

static int ur_wait(struct rs_backend *b, int64_t deadline)
{
        int rc = wait_once(ur_of(b), deadline);

        ur_of(b)->woken = false;
        kn_take(kn_of(b));
        return rc;
}

/* ---- inside another loop ---- */

/* Who polls a ring whose completions are deferred until its thread enters the kernel is not woken for them, and an
 * eventfd that the kernel would signal instead is not for what an eventfd has completed. A cooperative ring wakes. */
static int make_pollable(struct ur *u)
{
        char why[RS_WHY];

        if (!u->deferred)
                return 0;
        if (u->flying || u->wake_armed)
                return -EBUSY; /* core asks before it submits anything */
        rs_uring_exit(&u->ring);
        u->open = false;
        return ur_setup(u, false, why);
}

static int ur_descriptor(struct rs_backend *b)
{
        struct ur *u = ur_of(b);
        int rc = make_pollable(u);

        kn_go(&u->kn);

        if (rc == 0)
                rc = give(u) ? 0 : -EAGAIN;
        if (rc == 0 && io_uring_sq_ready(&u->ring) > 0)
                rc = ur_enter(u, 0, 0);
        bool left = rc == 0 && io_uring_sq_ready(&u->ring) > 0; /* the kernel took a part of what was given */
        if (rc == 0 &&
            (left || !rs_list_empty(&b->done) || !rs_list_empty(&u->resting) || u->woken || !kn_will_tell(&u->kn)))
                rc = -EAGAIN; /* nothing would say so: there is a next step at once */
        return rc < 0 ? rc : u->ring.ring_fd;
}

/* ---- the backend ---- */

/* Operations of tasks that could not be ended: they, and what they write to, are leaked. They are cancelled all the
 * same, for a while, so that no connection of a run that is over takes bytes. */
static void last_wait(struct ur *u)
{
        int64_t end = rs_sys_now() + LAST_WAIT, left;
        struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);
        struct io_uring_cqe *cqe;

        if (!sqe)
                return;
        io_uring_prep_cancel64(sqe, 0, IORING_ASYNC_CANCEL_ANY | IORING_ASYNC_CANCEL_ALL);
        sqe->user_data = UR_NOBODY;
        while (u->flying && (left = end - rs_sys_now()) > 0) {
                unsigned head, n = 0;
                if (rs_uring_enter(&u->ring, 1, left) < 0)
                        return;
                io_uring_for_each_cqe(&u->ring, head, cqe)
                {
                        n++;
                        u->flying -= cqe->user_data > UR_WAKE;
                }
                io_uring_cq_advance(&u->ring, n);
        }
}

static void ur_destroy(struct rs_backend *b)
{
        struct ur *u = ur_of(b);

        if (u->open && u->flying)
                last_wait(u);
        if (u->open)
                rs_uring_exit(&u->ring);
        kn_end(&u->kn);
        resha_free(u);
}

static void ur_forget(struct kn_file *f)
{
        (void)f; /* nothing is kept for it */
}

static const struct rs_backend_ops ur_ops = {
        .name = "uring",
        .submit = ur_submit,
        .cancel = ur_cancel,
        .wait = ur_wait,
        .descriptor = ur_descriptor,
        .destroy = ur_destroy,
        KN_FILE_OPS,
};

int rs_uring_new(struct rs_backend **ret_backend, char why[static RS_WHY])
{
        struct ur *u = resha_calloc(1, sizeof *u);
        int rc = u ? kn_init(&u->kn) : -ENOMEM;

        if (rc < 0)
                snprintf(why, RS_WHY, "%s", strerror(-rc));
        else
                rc = ur_setup(u, true, why);
        if (rc < 0) {
                if (u)
                        ur_destroy(&u->kn.base);
                return rc;
        }
        u->kn.base.ops = &ur_ops;
        u->kn.forget = ur_forget;
        *ret_backend = &u->kn.base;
        return 0;
}
