/* SPDX-License-Identifier: MIT */
/* The kernel behind epoll.
 *
 * An operation is tried first (kernel_try.c); only what the kernel says EAGAIN to is pending. At its first EAGAIN a
 * file is registered, once, for both directions, edge-triggered; it stays so until it is closed. Two bits say whether a
 * try is worth while:
 *
 *     ready ----- EAGAIN, or fewer bytes than asked for -----> not ready
 *     not ready ------------ an event of epoll -------------> ready: the pending operation is tried again
 *
 * Every arrival makes a new event, so nothing is lost between a try and the next wait. A short read says that the
 * buffer is empty and saves the read that would only say EAGAIN; but not once the peer has ended or broken the
 * connection, and not where urgent data have made a mark that every read stops at: those are seen as RDHUP, HUP, ERR
 * and PRI, and last. ERR and HUP wake both directions. What an event means the system call says, never the mask.
 *
 * A listener that other loops accept from, too, is registered in another way (rs_file.shared): exclusively, so that one
 * of those that sleep is told of a connection, and for as long as an accept waits.
 *
 * No event is stale: wait() deals with all that it has fetched before it returns, nothing closes a file meanwhile, and
 * a file leaves epoll before it is closed. One whose descriptor the program has closed behind our back cannot leave:
 * its memory is kept to the end of the run. Descriptors of others are another matter: epoll_foreign.c. */

#include <assert.h>
#include <errno.h>

#include <resha/alloc.h>

#include "base/addr.h"
#include "io/epoll.h"
#include "sys/sys.h"

static const uint32_t INTEREST = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI | (uint32_t)EPOLLET;
static const uint32_t SHARED = EPOLLIN | (uint32_t)EPOLLET | (uint32_t)EPOLLEXCLUSIVE;
static const uint32_t STICKY = EPOLLRDHUP | EPOLLHUP | EPOLLERR | EPOLLPRI;

/* One that was adopted may be known already, from a wait for it when it was somebody else's (epoll_foreign.c). */
static int file_register(struct kn_file *f)
{
        struct epoll_event event = { .events = f->base.shared ? SHARED : INTEREST, .data = { .ptr = f } };
        int epfd = ep_of(f->base.backend)->epfd;
        int rc = rs_sys_epoll_ctl(epfd, EPOLL_CTL_ADD, f->base.fd, &event);

        f->base.backend->calls++;
        if (rc == -EEXIST)
                rc = rs_sys_epoll_ctl(epfd, EPOLL_CTL_MOD, f->base.fd, &event);
        f->registered = rc == 0;
        return rc;
}

/* Should epoll not find it, somebody else has closed the descriptor, and the registration goes on if the file does. */
static void ep_forget(struct kn_file *f)
{
        if (f->registered && rs_sys_epoll_ctl(ep_of(f->base.backend)->epfd, EPOLL_CTL_DEL, f->base.fd, NULL) < 0)
                f->stray = true;
        f->registered = false;
}

/* The pending operation of a direction is no more. A shared listener is registered while a task waits for it only: who
 * is told must be able to look. */
static void not_pending(struct kn_file *f, int d)
{
        f->pending[d] = NULL;
        if (RS_UNLIKELY(f->base.shared))
                ep_forget(f);
}

/* The pending operation of a direction that an event has made ready. */
static void file_advance(struct kn_file *f, int d)
{
        struct rs_op *op = f->pending[d];

        f->ready[d] = true;
        if (!op)
                return;
        ssize_t result = kn_try(f, op);
        if (result == -EAGAIN)
                return;
        not_pending(f, d);
        rs_backend_done(f->base.backend, op, result);
}

static void file_event(struct kn_file *f, uint32_t events)
{
        if (events & STICKY)
                f->hasty = false;
        if (events & (EPOLLIN | STICKY))
                file_advance(f, KN_READING);
        if (events & (EPOLLOUT | EPOLLERR | EPOLLHUP))
                file_advance(f, KN_WRITING);
}

/* ---- operations ---- */

static bool ep_submit(struct rs_backend *b, struct rs_op *op)
{
        if (op->kind == RS_OP_POLL)
                return ep_foreign_submit(ep_of(b), op);
        if (op->kind == RS_OP_DISK)
                return kn_disk_submit(&ep_of(b)->kn, op);
        struct kn_file *f = kn_file_of(op->file);
        int d = kn_direction(op), rc = 0;
        assert(!f->pending[d]);
        if (f->ready[d]) {
                ssize_t result = kn_try(f, op);
                if (result != -EAGAIN)
                        return kn_done(op, result);
        }
        if (!f->registered && (rc = file_register(f)) < 0)
                return kn_done(op, rc);
        f->pending[d] = op;
        return kn_pend(b, op);
}

static bool ep_cancel(struct rs_backend *b, struct rs_op *op)
{
        if (op->state != RS_OP_PENDING)
                return false;
        if (op->kind == RS_OP_DISK && !kn_disk_cancel(&ep_of(b)->kn, op))
                return false;
        if (op->kind == RS_OP_POLL)
                ep_foreign_cancel(ep_of(b), op);
        else if (op->kind != RS_OP_DISK)
                not_pending(kn_file_of(op->file), kn_direction(op));
        op->state = RS_OP_IDLE;
        op->result = -ECANCELED;
        b->pending--;
        return true;
}

/* ---- waiting ---- */

static int ep_wait(struct rs_backend *b, int64_t deadline)
{
        struct ep *e = ep_of(b);

        kn_go(&e->kn);
        b->calls++;
        int n = rs_sys_epoll_wait(e->epfd, e->events, EP_EVENTS_MAX, kn_timeout(&e->kn, deadline));

        for (int i = 0; i < n; i++) {
                const struct epoll_event *event = &e->events[i];
                if (event->data.u64 & EP_FOREIGN)
                        ep_foreign_event(e, event);
                else if (event->data.ptr)
                        file_event(event->data.ptr, event->events);
                else
                        kn_woken(&e->kn, true);
        }
        kn_take(&e->kn);
        return n < 0 ? n : 0;
}

/* ---- the backend ---- */

static void ep_destroy(struct rs_backend *b)
{
        struct ep *e = ep_of(b);

        kn_end(&e->kn);
        if (e->epfd >= 0)
                rs_sys_close(e->epfd);
        resha_free(e->foreign);
        resha_free(e);
}

/* Nothing is held back here, but for what has come back from the crew meanwhile. */
static int ep_descriptor(struct rs_backend *b)
{
        kn_go(kn_of(b));
        return rs_list_empty(&b->done) && kn_will_tell(kn_of(b)) ? ep_of(b)->epfd : -EAGAIN;
}

static const struct rs_backend_ops ep_ops = {
        .name = "epoll",
        .submit = ep_submit,
        .cancel = ep_cancel,
        .wait = ep_wait,
        .descriptor = ep_descriptor,
        .destroy = ep_destroy,
        KN_FILE_OPS,
};

static int ep_open(struct ep *e)
{
        struct epoll_event event = { .events = EPOLLIN | (uint32_t)EPOLLET }; /* every write is told, none is read */
        int rc = kn_init(&e->kn);

        if (rc < 0)
                return rc;
        if ((e->epfd = rs_sys_epoll_create()) < 0)
                return e->epfd;
        return rs_sys_epoll_ctl(e->epfd, EPOLL_CTL_ADD, e->kn.wakefd, &event);
}

int rs_epoll_new(struct rs_backend **ret_backend)
{
        struct ep *e = resha_calloc(1, sizeof *e);

        if (!e)
                return -ENOMEM;
        e->kn.base.ops = &ep_ops;
        e->kn.forget = ep_forget;
        e->epfd = -1;
        int rc = ep_open(e);
        if (rc < 0) {
                ep_destroy(&e->kn.base);
                return rc;
        }
        *ret_backend = &e->kn.base;
        return 0;
}
