/* SPDX-License-Identifier: MIT */
/* One try of an operation. It never blocks: sockets are asked not to in each call that can say so, and everything else
 * that can be waited for has a description that is non-blocking. Plain files have no "not now".
 *
 * A try that took less than there was room for marks its direction as not ready, where that is certain: bytes that TCP
 * has for a reader come as far as there is room for them, so that a short read has left nothing; after two full ones
 * the next asks the kernel whether it has (a message that is as long as the buffer, again and again). Not so with Unix
 * sockets, whose reads end where another writer begins, with terminals, whose reads end with a line, and with what has
 * been ended by its peer: there the end, or the error, is what the next read gives. */

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>

#include <linux/errqueue.h> /* of struct timespec */

#include <resha/alloc.h>

#include "base/addr.h"
#include "io/kernel.h"
#include "sys/sys.h"

enum { ACCEPT_TRIES = 16 };

static ssize_t read_file(struct kn_file *f, const struct rs_op *op, bool *ret_left)
{
        int fd = f->base.fd;

        if (f->base.kind != RS_FILE_SOCKET)
                return rs_sys_read(fd, op->buf, op->size);
        if (RS_LIKELY(f->full < 2 || !f->hasty))
                return rs_sys_recv(fd, op->buf, op->size);
        if (!f->tells && rs_sys_setsockopt(fd, IPPROTO_TCP, TCP_INQ, 1) == 0)
                f->tells = true;
        return f->tells ? rs_sys_recv_left(fd, op->buf, op->size, ret_left) : rs_sys_recv(fd, op->buf, op->size);
}

static ssize_t try_read(struct kn_file *f, const struct rs_op *op)
{
        bool left = true;
        ssize_t n = read_file(f, op, &left);

        if (n > 0)
                f->full = (size_t)n < op->size ? 0 : f->full ? 2 : 1;
        if (n == -EAGAIN || (n > 0 && f->hasty && (!f->full || !left)))
                f->ready[KN_READING] = false;
        return n;
}

static ssize_t try_write(struct kn_file *f, const struct rs_op *op)
{
        bool socket = f->base.kind == RS_FILE_SOCKET;
        ssize_t n = socket ? rs_sys_send(f->base.fd, op->buf, op->size) : rs_sys_write(f->base.fd, op->buf, op->size);

        if (n == -EAGAIN || (n > 0 && (size_t)n < op->size && socket))
                f->ready[KN_WRITING] = false;
        return n;
}

static ssize_t try_write_vec(struct kn_file *f, const struct rs_op *op)
{
        struct msghdr m = { .msg_iov = op->buf, .msg_iovlen = op->size };
        ssize_t n = f->base.kind == RS_FILE_SOCKET ? rs_sys_sendmsg(f->base.fd, &m)
                                                   : rs_sys_writev(f->base.fd, op->buf, (int)op->size);

        if (n == -EAGAIN)
                f->ready[KN_WRITING] = false;
        return n;
}

static ssize_t try_send_file(struct kn_file *f, const struct rs_op *op)
{
        if (!f->nonblocking && f->base.kind != RS_FILE_PLAIN)
                return -EOPNOTSUPP; /* it would block */
        ssize_t n = rs_sys_sendfile(f->base.fd, op->fd, op->offset, op->size);
        if (n == -EAGAIN)
                f->ready[KN_WRITING] = false;
        return n;
}

/* ---- datagrams ---- */

struct batch {
        struct mmsghdr headers[RS_DATAGRAMS_MAX];
        struct iovec parts[RS_DATAGRAMS_MAX];
};

static unsigned batch_init(struct batch *t, struct rs_datagram *d, size_t n, bool receive)
{
        if (n > RS_DATAGRAMS_MAX)
                n = RS_DATAGRAMS_MAX;
        for (size_t i = 0; i < n; i++) {
                struct rs_addr *a = rs_addr_of(&d[i].addr);
                t->parts[i] = (struct iovec){ d[i].data, d[i].size };
                t->headers[i].msg_len = 0;
                t->headers[i].msg_hdr = (struct msghdr){ .msg_iov = &t->parts[i], .msg_iovlen = 1 };
                if (receive || a->size) {
                        t->headers[i].msg_hdr.msg_name = &a->sockaddr;
                        t->headers[i].msg_hdr.msg_namelen = receive ? sizeof a->sockaddr : (socklen_t)a->size;
                }
        }
        return (unsigned)n;
}

static ssize_t try_receive(struct kn_file *f, const struct rs_op *op)
{
        struct rs_datagram *d = op->buf;
        struct batch t;
        int n = rs_sys_recvmmsg(f->base.fd, t.headers, batch_init(&t, d, op->size, true));

        if (n == -EAGAIN)
                f->ready[KN_READING] = false;
        for (int i = 0; i < n; i++) {
                d[i].whole = t.headers[i].msg_len;
                d[i].truncated = d[i].whole > d[i].size;
                d[i].length = d[i].truncated ? d[i].size : d[i].whole;
                kn_addr_told(&d[i].addr, t.headers[i].msg_hdr.msg_namelen);
        }
        return n;
}

/* EAGAIN to a datagram that names its receiver, a Unix socket, is the receiver's: it has no room, and this socket is as
 * writable as ever. Only one that is connected is told when there is room. */
static ssize_t try_send(struct kn_file *f, const struct rs_op *op)
{
        const struct rs_datagram *first = op->buf;
        struct batch t;
        int n = rs_sys_sendmmsg(f->base.fd, t.headers, batch_init(&t, op->buf, op->size, false));

        if (n == -EAGAIN && rs_addr_view(&first->addr)->sockaddr.ss_family == AF_UNIX)
                return -ENOBUFS;
        if (n == -EAGAIN)
                f->ready[KN_WRITING] = false;
        return n;
}

/* What was wrong, and not just here: those that this machine found by itself are in the queue too, but they were the
 * result of the call. 0: nothing of that kind. */
static int error_in(struct msghdr *m)
{
        struct sock_extended_err e;

        for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
                if (!(c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR) &&
                    !(c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR))
                        continue;
                memcpy(&e, CMSG_DATA(c), sizeof e);
                if (e.ee_origin == SO_EE_ORIGIN_ICMP || e.ee_origin == SO_EE_ORIGIN_ICMP6)
                        return -(int)e.ee_errno;
        }
        return 0;
}

int kn_file_error(struct rs_file *f, resha_addr *ret_addr)
{
        _Alignas(struct cmsghdr) char control[512];
        int rc = 0, code = 0;

        while (rc >= 0 && code == 0) {
                resha_addr a = { { 0 } };
                struct msghdr m = { .msg_name = &rs_addr_of(&a)->sockaddr,
                                    .msg_namelen = sizeof rs_addr_of(&a)->sockaddr,
                                    .msg_control = control,
                                    .msg_controllen = sizeof control };
                rc = (int)rs_sys_recv_error(f->fd, &m);
                code = rc < 0 ? 0 : error_in(&m);
                kn_addr_told(&a, m.msg_namelen);
                if (code < 0)
                        *ret_addr = a;
        }
        return rc == -EAGAIN ? 0 : rc < 0 ? rc : code;
}

/* ---- connections ---- */

/* accept(2) passes on what has happened to a connection that was still in the queue: its loss, not the listener's. */
bool kn_accept_again(int rc)
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

int kn_accept_room(struct kn *k)
{
        if (!k->spare)
                k->spare = resha_calloc(1, sizeof *k->spare);
        return k->spare ? 0 : -ENOMEM;
}

void kn_accepted(struct kn_file *listener, struct rs_op *op, int fd)
{
        struct kn_file *f = kn_file_new(kn_of(listener->base.backend), rs_sys_move_up(fd), RS_FILE_SOCKET);

        f->hasty = listener->hasty;
        f->nonblocking = true;
        op->ret_file = &f->base;
}

static ssize_t try_accept(struct kn_file *f, struct rs_op *op)
{
        int fd = -ECONNABORTED;

        if (kn_accept_room(kn_of(f->base.backend)) < 0)
                return -ENOMEM; /* nobody has left the queue yet */
        for (int i = 0; i < ACCEPT_TRIES && kn_accept_again(fd); i++)
                fd = rs_sys_accept(f->base.fd);
        if (fd == -EAGAIN)
                f->ready[KN_READING] = false;
        if (fd < 0)
                return fd;
        kn_accepted(f, op, fd);
        return 0;
}

/* A second connect() tells how the first one went: done, still under way, or its error. A Unix socket whose listener
 * has no room says EAGAIN and has begun nothing; nothing tells when there is room. */
static ssize_t try_connect(struct kn_file *f, const struct rs_op *op)
{
        const struct rs_addr *a = rs_addr_view(op->addr);
        int rc = rs_sys_connect(f->base.fd, (const struct sockaddr *)&a->sockaddr, (socklen_t)a->size);

        if (rc == -EISCONN && f->started)
                rc = 0;
        if (rc == -EAGAIN)
                return -ENOBUFS;
        f->started = true;
        if (rc != -EINPROGRESS && rc != -EALREADY)
                return rc;
        f->ready[KN_WRITING] = false;
        return -EAGAIN;
}

ssize_t kn_try(struct kn_file *f, struct rs_op *op)
{
        f->base.backend->calls++;
        switch (op->kind) {
        case RS_OP_READ: return try_read(f, op);
        case RS_OP_WRITE: return try_write(f, op);
        case RS_OP_WRITE_VEC: return try_write_vec(f, op);
        case RS_OP_SEND_FILE: return try_send_file(f, op);
        case RS_OP_RECEIVE: return try_receive(f, op);
        case RS_OP_SEND: return try_send(f, op);
        case RS_OP_ACCEPT: return try_accept(f, op);
        case RS_OP_CONNECT: return try_connect(f, op);
        case RS_OP_DISK:
        case RS_OP_POLL: break;
        }
        return -EINVAL;
}

bool kn_take_the_rest(struct kn_file *f, struct rs_op *op)
{
        if (op->kind != RS_OP_READ || !f->hasty || !f->ready[KN_READING])
                return false;
        ssize_t n = kn_try(f, op);
        return n != -EAGAIN && kn_done(op, n);
}
