/* SPDX-License-Identifier: MIT */
/* The kernel behind epoll.
 *
 * Own descriptors (sockets). An operation is tried first; only what the kernel says EAGAIN to is pending. At its first
 * EAGAIN a file is registered, once, for both directions, edge-triggered; it stays so until it is closed. Two bits say
 * whether a try is worth while:
 *
 *     ready ----- EAGAIN, or fewer bytes than asked for -----> not ready
 *     not ready ------------ an event of epoll -------------> ready: the pending operation is tried again
 *
 * Every arrival makes a new event, so nothing is lost between a try and the next wait. A short read says that the
 * buffer is empty and saves the read that would only say EAGAIN; but not once the peer has ended or broken the
 * connection, and not where urgent data have made a mark that every read stops at: those are seen as RDHUP, HUP, ERR
 * and PRI, and stick. ERR and HUP wake both directions. What an event means the system call says, never the mask.
 *
 * No event is stale: wait() deals with all that it has fetched before it returns, nothing closes a file meanwhile, and
 * a file leaves epoll before it is closed. Descriptors of others are another matter: epoll_foreign.c. */

#include <assert.h>
#include <errno.h>

#include <resha/alloc.h>

#include "base/addr.h"
#include "io/epoll.h"
#include "sys/sys.h"

enum { ACCEPT_TRIES = 16 };

static const uint32_t INTEREST = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI | (uint32_t)EPOLLET;
static const uint32_t STICKY = EPOLLRDHUP | EPOLLHUP | EPOLLERR | EPOLLPRI;

static int64_t ep_now(struct rs_backend *b)
{
        (void)b;
        return rs_sys_now();
}

/* Marsaglia's xorshift64*. */
static uint64_t ep_random(struct rs_backend *b)
{
        struct ep *e = ep_of(b);

        e->luck ^= e->luck >> 12;
        e->luck ^= e->luck << 25;
        e->luck ^= e->luck >> 27;
        return e->luck * UINT64_C(0x2545f4914f6cdd1d);
}

/* ---- files: one try of an operation; -EAGAIN: not now ---- */

static ssize_t try_read(struct ep_file *f, const struct rs_op *op)
{
        ssize_t n = rs_sys_recv(f->base.fd, op->buf, op->size);

        if (n == -EAGAIN || (n > 0 && (size_t)n < op->size && !f->sticky))
                f->ready[EP_READING] = false;
        return n;
}

static ssize_t try_write(struct ep_file *f, const struct rs_op *op)
{
        ssize_t n = rs_sys_send(f->base.fd, op->buf, op->size);

        if (n == -EAGAIN || (n > 0 && (size_t)n < op->size))
                f->ready[EP_WRITING] = false;
        return n;
}

/* accept(2) passes on what has happened to a connection that was still in the queue: its loss, not the listener's. */
static bool accept_again(int rc)
{
        switch (rc) {
        case -ECONNABORTED:
        case -EPROTO:
        case -ENOPROTOOPT:
        case -ENETDOWN:
        case -ENETUNREACH:
        case -EHOSTDOWN:
        case -EHOSTUNREACH:
        case -ENONET: return true;
        default: return false;
        }
}

static ssize_t try_accept(struct ep_file *f, struct rs_op *op)
{
        struct ep *e = ep_of(f->base.backend);
        int fd = -ECONNABORTED;

        if (!e->spare && !(e->spare = resha_calloc(1, sizeof *e->spare)))
                return -ENOMEM; /* nobody has left the queue yet */
        for (int i = 0; i < ACCEPT_TRIES && accept_again(fd); i++)
                fd = rs_sys_accept(f->base.fd);
        if (fd == -EAGAIN)
                f->ready[EP_READING] = false;
        if (fd < 0)
                return fd;
        op->ret_file = &ep_file_new(e, fd)->base;
        return 0;
}

/* A second connect() tells how the first one went: done, still under way, or its error. */
static ssize_t try_connect(struct ep_file *f, const struct rs_op *op)
{
        const struct rs_addr *a = rs_addr_view(op->addr);
        int rc = rs_sys_connect(f->base.fd, (const struct sockaddr *)&a->sockaddr, (socklen_t)a->size);

        if (rc == -EISCONN && f->started)
                rc = 0;
        f->started = true;
        if (rc != -EINPROGRESS && rc != -EALREADY)
                return rc;
        f->ready[EP_WRITING] = false;
        return -EAGAIN;
}

static ssize_t try_operation(struct ep_file *f, struct rs_op *op)
{
        switch (op->kind) {
        case RS_OP_READ: return try_read(f, op);
        case RS_OP_WRITE: return try_write(f, op);
        case RS_OP_ACCEPT: return try_accept(f, op);
        case RS_OP_CONNECT: return try_connect(f, op);
        case RS_OP_POLL: break;
        }
        return -EINVAL;
}

static int file_register(struct ep_file *f)
{
        struct epoll_event event = { .events = INTEREST, .data = { .ptr = f } };
        int rc = rs_sys_epoll_ctl(ep_of(f->base.backend)->epfd, EPOLL_CTL_ADD, f->base.fd, &event);

        f->registered = rc == 0;
        return rc;
}

static int direction(const struct rs_op *op)
{
        return op->kind == RS_OP_WRITE || op->kind == RS_OP_CONNECT ? EP_WRITING : EP_READING;
}

/* The pending operation of a direction that an event has made ready. */
static void file_advance(struct ep_file *f, int d)
{
        struct rs_op *op = f->pending[d];

        f->ready[d] = true;
        if (!op)
                return;
        ssize_t result = try_operation(f, op);
        if (result == -EAGAIN)
                return;
        f->pending[d] = NULL;
        rs_backend_done(f->base.backend, op, result);
}

static void file_event(struct ep_file *f, uint32_t events)
{
        if (events & STICKY)
                f->sticky = true;
        if (events & (EPOLLIN | STICKY))
                file_advance(f, EP_READING);
        if (events & (EPOLLOUT | EPOLLERR | EPOLLHUP))
                file_advance(f, EP_WRITING);
}

/* ---- operations ---- */

static bool ep_submit(struct rs_backend *b, struct rs_op *op)
{
        if (op->kind == RS_OP_POLL)
                return ep_foreign_submit(ep_of(b), op);
        struct ep_file *f = ep_file_of(op->file);
        int d = direction(op), rc = 0;
        assert(!f->pending[d]);
        if (f->ready[d]) {
                ssize_t result = try_operation(f, op);
                if (result != -EAGAIN)
                        return ep_done(op, result);
        }
        if (!f->registered && (rc = file_register(f)) < 0)
                return ep_done(op, rc);
        f->pending[d] = op;
        return ep_pend(b, op);
}

static bool ep_cancel(struct rs_backend *b, struct rs_op *op)
{
        if (op->state != RS_OP_PENDING)
                return false;
        if (op->kind == RS_OP_POLL)
                ep_foreign_cancel(ep_of(b), op);
        else
                ep_file_of(op->file)->pending[direction(op)] = NULL;
        op->state = RS_OP_IDLE;
        op->result = -ECANCELED;
        b->pending--;
        return true;
}

/* ---- waiting ---- */

/* First read, then take back the mark: a wake() that sees the mark relies on this wait() to return after it. */
static void wake_event(struct ep *e)
{
        rs_sys_eventfd_clear(e->wakefd);
        atomic_exchange(&e->woken, false);
}

static void ep_wake(struct rs_backend *b)
{
        struct ep *e = ep_of(b);

        if (!atomic_exchange(&e->woken, true))
                rs_sys_eventfd_set(e->wakefd);
}

static int64_t timeout_until(const struct ep *e, int64_t deadline)
{
        if (deadline <= 0 || !rs_list_empty(&e->base.done))
                return 0;
        if (deadline == INT64_MAX)
                return -1;
        int64_t now = rs_sys_now();
        return deadline > now ? deadline - now : 0;
}

static int ep_wait(struct rs_backend *b, int64_t deadline)
{
        struct ep *e = ep_of(b);
        int n = rs_sys_epoll_wait(e->epfd, e->events, EP_EVENTS_MAX, timeout_until(e, deadline));

        for (int i = 0; i < n; i++) {
                const struct epoll_event *event = &e->events[i];
                if (event->data.u64 & EP_FOREIGN)
                        ep_foreign_event(e, event);
                else if (event->data.ptr)
                        file_event(event->data.ptr, event->events);
                else
                        wake_event(e);
        }
        return n < 0 ? n : 0;
}

/* ---- the backend ---- */

static void ep_destroy(struct rs_backend *b)
{
        struct ep *e = ep_of(b);

        if (e->wakefd >= 0)
                rs_sys_close(e->wakefd);
        if (e->epfd >= 0)
                rs_sys_close(e->epfd);
        resha_free(e->spare);
        resha_free(e->foreign);
        resha_free(e);
}

static const struct rs_backend_ops ep_ops = {
        .name = "epoll",
        .now = ep_now,
        .random = ep_random,
        .submit = ep_submit,
        .cancel = ep_cancel,
        .wait = ep_wait,
        .wake = ep_wake,
        .tcp_socket = ep_tcp_socket,
        .tcp_listen = ep_tcp_listen,
        .file_addr = ep_file_addr,
        .file_shutdown = ep_file_shutdown,
        .file_close = ep_file_close,
        .destroy = ep_destroy,
};

static int ep_open(struct ep *e)
{
        struct epoll_event event = { .events = EPOLLIN }; /* level-triggered: every wake() is seen */
        int rc = rs_sys_random(&e->luck);

        if (rc < 0)
                return rc;
        if (!e->luck)
                e->luck = 1; /* the one state that xorshift cannot leave */
        if ((e->epfd = rs_sys_epoll_create()) < 0)
                return e->epfd;
        if ((e->wakefd = rs_sys_eventfd()) < 0)
                return e->wakefd;
        return rs_sys_epoll_ctl(e->epfd, EPOLL_CTL_ADD, e->wakefd, &event);
}

int rs_epoll_new(struct rs_backend **ret_backend)
{
        struct ep *e = resha_calloc(1, sizeof *e);

        if (!e)
                return -ENOMEM;
        e->base.ops = &ep_ops;
        e->epfd = e->wakefd = -1;
        int rc = ep_open(e);
        if (rc < 0) {
                ep_destroy(&e->base);
                return rc;
        }
        *ret_backend = &e->base;
        return 0;
}
