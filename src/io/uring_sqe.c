/* SPDX-License-Identifier: MIT */
/* An operation as the kernel reads it.
 *
 * The kernel makes the call where it can wait by itself: bytes and connections of sockets. Elsewhere it is asked when
 * the file is ready, and the call is made here: pipes and terminals, whose O_NONBLOCK older kernels take for "do not
 * wait"; whole batches of datagrams; files that are sent by sendfile(2). Plain files are always ready, and the ring is
 * not asked: it reads and writes "where the file is" without the lock of read(2) and write(2), so that what others
 * write by the same description (a shell's `(a & b) > log`) was lost; and after a write of which the disk has taken a
 * part it left the file where it was, so that the next one overwrote that part.
 *
 * What an SQE points to must stay: bytes until the operation is done, and they are the caller's, who waits; the rest
 * until the kernel has taken the SQE (SUBMIT_STABLE). */

#include <poll.h>
#include <sys/epoll.h>

#include "base/addr.h"
#include "io/uring.h"

enum { MOST = 0x7ffff000 }; /* bytes that one call moves */

bool ur_direct(const struct kn_file *f, const struct rs_op *op)
{
        switch (op->kind) {
        case RS_OP_READ:
        case RS_OP_WRITE:
        case RS_OP_WRITE_VEC: return f->base.kind == RS_FILE_SOCKET;
        case RS_OP_ACCEPT: return !f->base.shared; /* one that is cancelled must not have been told in vain */
        case RS_OP_CONNECT: return !f->started;    /* one that was called tells what became of it when called again */
        case RS_OP_SEND_FILE:
        case RS_OP_RECEIVE:
        case RS_OP_SEND:
        case RS_OP_DISK:
        case RS_OP_POLL: break;
        }
        return false;
}

enum rs_syscall ur_call(const struct rs_op *op)
{
        switch (op->kind) {
        case RS_OP_READ: return RS_SYS_RECV;
        case RS_OP_ACCEPT: return RS_SYS_ACCEPT;
        case RS_OP_CONNECT: return RS_SYS_CONNECT;
        default: return RS_SYS_SEND;
        }
}

/* Errors and hang-ups are told always. */
static void fill_poll(struct io_uring_sqe *sqe, const struct rs_op *op)
{
        if (op->kind == RS_OP_POLL)
                io_uring_prep_poll_add(sqe, op->fd, (unsigned short)op->events);
        else if (op->file->shared)
                io_uring_prep_poll_add(sqe, op->file->fd, (unsigned)POLLIN | (unsigned)EPOLLEXCLUSIVE);
        else
                io_uring_prep_poll_add(sqe, op->file->fd, kn_direction(op) == KN_READING ? POLLIN : POLLOUT);
}

static void fill_bytes(const struct ur *u, struct io_uring_sqe *sqe, const struct rs_op *op)
{
        unsigned size = op->size < MOST ? (unsigned)op->size : MOST;

        if (op->kind != RS_OP_READ) {
                io_uring_prep_send(sqe, op->file->fd, op->buf, size, MSG_NOSIGNAL);
                return;
        }
        io_uring_prep_recv(sqe, op->file->fd, op->buf, size, 0);
        if (!kn_file_of(op->file)->ready[KN_READING] && u->hints)
                sqe->ioprio = IORING_RECVSEND_POLL_FIRST;
}

static void fill_parts(struct ur *u, struct io_uring_sqe *sqe, const struct rs_op *op)
{
        struct msghdr *m = &u->messages[sqe - u->ring.sq.sqes];

        *m = (struct msghdr){ .msg_iov = op->buf, .msg_iovlen = op->size };
        io_uring_prep_sendmsg(sqe, op->file->fd, m, MSG_NOSIGNAL);
}

void ur_fill(struct ur *u, struct io_uring_sqe *sqe, struct rs_op *op)
{
        const struct rs_addr *a;

        if (op->kind == RS_OP_DISK) {
                ur_disk_fill(sqe, op->buf);
        } else if (ur_op_of(op)->polls) {
                fill_poll(sqe, op);
        } else if (op->kind == RS_OP_WRITE_VEC) {
                fill_parts(u, sqe, op);
        } else if (op->kind == RS_OP_ACCEPT) {
                io_uring_prep_accept(sqe, op->file->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        } else if (op->kind == RS_OP_CONNECT) {
                a = rs_addr_view(op->addr);
                io_uring_prep_connect(sqe, op->file->fd, (const struct sockaddr *)&a->sockaddr, (socklen_t)a->size);
                kn_file_of(op->file)->started = true;
        } else {
                fill_bytes(u, sqe, op);
        }
        sqe->user_data = (uint64_t)(uintptr_t)op;
}
