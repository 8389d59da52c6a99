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
 * Foreign descriptors (RS_OP_POLL). One-shot: armed by each operation, disarmed by its event, taken out by a cancel. An
 * entry in a table by number holds who waits. The owner may close the descriptor and another may get its number: then
 * MOD says ENOENT and it is added. The registration may even outlive the close, if the file lives on under another
 * number: each arming has a sequence number, and an event of an older one is nobody's.
 *
 * No event is ever stale otherwise: wait() deals with all that it has fetched before it returns, nothing closes a file
 * meanwhile, and a file leaves epoll before it is closed. */

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <string.h>

#include <resha/alloc.h>

#include "base/addr.h"
#include "io/backend.h"
#include "sys/sys.h"

enum {
        READING = 0,
        WRITING = 1,
        EVENTS_MAX = 256,
        ACCEPT_TRIES = 16,
};

static const uint32_t INTEREST = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI | (uint32_t)EPOLLET;
static const uint32_t STICKY = EPOLLRDHUP | EPOLLHUP | EPOLLERR | EPOLLPRI;
static const uint64_t FOREIGN = 1; /* in epoll_data: beside the number of a foreign descriptor; pointers are even */

struct file {
        struct rs_file base;
        struct rs_op *pending[2];
        bool ready[2];
        bool registered;
        bool sticky;  /* a short read says nothing */
        bool started; /* connect was called */
};

struct foreign {
        struct rs_op *op; /* NULL: nobody waits */
        uint32_t seq;     /* of the latest arming */
        bool registered;
};

struct epoll {
        struct rs_backend base;
        int epfd;
        int wakefd;
        atomic_bool woken; /* wakefd is readable, or is about to be */
        uint64_t luck;
        struct file *spare; /* for the next accept, so that one that fails allocates nothing */
        struct foreign *foreign;
        size_t foreign_size;
        struct epoll_event events[EVENTS_MAX];
};

static struct epoll *ep_of(struct rs_backend *b)
{
        return (struct epoll *)(void *)b;
}

static struct file *file_of(struct rs_file *f)
{
        return (struct file *)(void *)f;
}

static int64_t ep_now(struct rs_backend *b)
{
        (void)b;
        return rs_sys_now();
}

/* Marsaglia's xorshift64*. */
static uint64_t ep_random(struct rs_backend *b)
{
        struct epoll *e = ep_of(b);

        e->luck ^= e->luck >> 12;
        e->luck ^= e->luck << 25;
        e->luck ^= e->luck >> 27;
        return e->luck * UINT64_C(0x2545f4914f6cdd1d);
}

/* ---- own files: one try of an operation; -EAGAIN: not now ---- */

static struct file *file_new(struct epoll *e, int fd)
{
        struct file *f = e->spare ? e->spare : resha_calloc(1, sizeof *f);

        if (!f)
                return NULL;
        e->spare = NULL;
        *f = (struct file){ .base = { &e->base, fd }, .ready = { true, true } };
        return f;
}

static ssize_t try_read(struct file *f, const struct rs_op *op)
{
        ssize_t n = rs_sys_recv(f->base.fd, op->buf, op->size);

        if (n == -EAGAIN || (n > 0 && (size_t)n < op->size && !f->sticky))
                f->ready[READING] = false;
        return n;
}

static ssize_t try_write(struct file *f, const struct rs_op *op)
{
        ssize_t n = rs_sys_send(f->base.fd, op->buf, op->size);

        if (n == -EAGAIN || (n > 0 && (size_t)n < op->size))
                f->ready[WRITING] = false;
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

static ssize_t try_accept(struct file *f, struct rs_op *op)
{
        struct epoll *e = ep_of(f->base.backend);
        int fd = -ECONNABORTED;

        if (!e->spare && !(e->spare = resha_calloc(1, sizeof *e->spare)))
                return -ENOMEM; /* nobody has left the queue yet */
        for (int i = 0; i < ACCEPT_TRIES && accept_again(fd); i++)
                fd = rs_sys_accept(f->base.fd);
        if (fd == -EAGAIN)
                f->ready[READING] = false;
        if (fd < 0)
                return fd;
        op->ret_file = &file_new(e, fd)->base;
        return 0;
}

/* A second connect() tells how the first one went: done, still under way, or its error. */
static ssize_t try_connect(struct file *f, const struct rs_op *op)
{
        const struct rs_addr *a = rs_addr_view(op->addr);
        int rc = rs_sys_connect(f->base.fd, (const struct sockaddr *)&a->sockaddr, (socklen_t)a->size);

        if (rc == -EISCONN && f->started)
                rc = 0;
        f->started = true;
        if (rc != -EINPROGRESS && rc != -EALREADY)
                return rc;
        f->ready[WRITING] = false;
        return -EAGAIN;
}

static ssize_t try_operation(struct file *f, struct rs_op *op)
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

static int file_register(struct file *f)
{
        struct epoll_event event = { .events = INTEREST, .data = { .ptr = f } };
        int rc = rs_sys_epoll_ctl(ep_of(f->base.backend)->epfd, EPOLL_CTL_ADD, f->base.fd, &event);

        f->registered = rc == 0;
        return rc;
}

static int direction(const struct rs_op *op)
{
        return op->kind == RS_OP_WRITE || op->kind == RS_OP_CONNECT ? WRITING : READING;
}

/* The pending operation of a direction that an event has made ready. */
static void file_advance(struct file *f, int d)
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

static void file_event(struct file *f, uint32_t events)
{
        if (events & STICKY)
                f->sticky = true;
        if (events & (EPOLLIN | STICKY))
                file_advance(f, READING);
        if (events & (EPOLLOUT | EPOLLERR | EPOLLHUP))
                file_advance(f, WRITING);
}

/* ---- foreign descriptors ---- */

static struct foreign *foreign_entry(struct epoll *e, int fd)
{
        size_t n = e->foreign_size ? e->foreign_size : 64;

        if ((size_t)fd < e->foreign_size)
                return &e->foreign[fd];
        while (n <= (size_t)fd)
                n *= 2;
        struct foreign *grown = resha_realloc(e->foreign, n * sizeof *grown);
        if (!grown)
                return NULL;
        memset(grown + e->foreign_size, 0, (n - e->foreign_size) * sizeof *grown);
        e->foreign = grown;
        e->foreign_size = n;
        return &e->foreign[fd];
}

static int foreign_arm(struct epoll *e, struct foreign *p, int fd, short events)
{
        struct epoll_event event = {
                .events = (uint16_t)events | (uint32_t)EPOLLONESHOT,
                .data = { .u64 = (uint64_t)++p->seq << 32 | (uint64_t)fd << 1 | FOREIGN },
        };
        int rc = rs_sys_epoll_ctl(e->epfd, p->registered ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event);

        if (rc == -ENOENT) /* it was closed, and this is another one */
                rc = rs_sys_epoll_ctl(e->epfd, EPOLL_CTL_ADD, fd, &event);
        else if (rc == -EEXIST) /* it was closed, and is back by dup(2) */
                rc = rs_sys_epoll_ctl(e->epfd, EPOLL_CTL_MOD, fd, &event);
        p->registered = rc == 0;
        return rc;
}

static bool done_at_once(struct rs_op *op, ssize_t result)
{
        op->result = result;
        op->state = RS_OP_DONE;
        return true;
}

static bool pend(struct rs_backend *b, struct rs_op *op)
{
        op->state = RS_OP_PENDING;
        b->pending++;
        return false;
}

static bool foreign_submit(struct epoll *e, struct rs_op *op)
{
        if (op->fd < 0)
                return done_at_once(op, -EBADF);
        struct foreign *p = foreign_entry(e, op->fd);
        if (!p)
                return done_at_once(op, -ENOMEM);
        if (p->op)
                return done_at_once(op, -EBUSY);
        int rc = foreign_arm(e, p, op->fd, op->events);
        if (rc == -EPERM) { /* a regular file: ready as poll(2) has it */
                short always = op->events & (EPOLLIN | EPOLLOUT);
                return done_at_once(op, always ? always : EPOLLIN);
        }
        if (rc < 0)
                return done_at_once(op, rc);
        p->op = op;
        return pend(&e->base, op);
}

static void foreign_cancel(struct epoll *e, struct rs_op *op)
{
        struct foreign *p = &e->foreign[op->fd];

        p->op = NULL;
        p->registered = false;
        (void)rs_sys_epoll_ctl(e->epfd, EPOLL_CTL_DEL, op->fd, NULL);
}

static void foreign_event(struct epoll *e, const struct epoll_event *event)
{
        struct foreign *p = &e->foreign[(uint32_t)event->data.u64 >> 1];
        struct rs_op *op = p->op;

        if (!op || p->seq != event->data.u64 >> 32)
                return;
        p->op = NULL;
        rs_backend_done(&e->base, op, (ssize_t)(event->events & 0x7fff));
}

/* ---- operations ---- */

static bool ep_submit(struct rs_backend *b, struct rs_op *op)
{
        if (op->kind == RS_OP_POLL)
                return foreign_submit(ep_of(b), op);
        struct file *f = file_of(op->file);
        int d = direction(op), rc = 0;
        assert(!f->pending[d]);
        if (f->ready[d]) {
                ssize_t result = try_operation(f, op);
                if (result != -EAGAIN)
                        return done_at_once(op, result);
        }
        if (!f->registered && (rc = file_register(f)) < 0)
                return done_at_once(op, rc);
        f->pending[d] = op;
        return pend(b, op);
}

static bool ep_cancel(struct rs_backend *b, struct rs_op *op)
{
        if (op->state != RS_OP_PENDING)
                return false;
        if (op->kind == RS_OP_POLL)
                foreign_cancel(ep_of(b), op);
        else
                file_of(op->file)->pending[direction(op)] = NULL;
        op->state = RS_OP_IDLE;
        op->result = -ECANCELED;
        b->pending--;
        return true;
}

/* ---- waiting ---- */

/* First read, then take back the mark: a wake() that sees the mark relies on this wait() to return after it. */
static void wake_event(struct epoll *e)
{
        uint64_t count;

        (void)rs_sys_read(e->wakefd, &count, sizeof count);
        atomic_exchange(&e->woken, false);
}

static void ep_wake(struct rs_backend *b)
{
        struct epoll *e = ep_of(b);
        uint64_t one = 1;

        if (!atomic_exchange(&e->woken, true))
                (void)rs_sys_write(e->wakefd, &one, sizeof one);
}

static int64_t timeout_until(const struct epoll *e, int64_t deadline)
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
        struct epoll *e = ep_of(b);
        int n = rs_sys_epoll_wait(e->epfd, e->events, EVENTS_MAX, timeout_until(e, deadline));

        for (int i = 0; i < n; i++) {
                const struct epoll_event *event = &e->events[i];
                if (event->data.u64 & FOREIGN)
                        foreign_event(e, event);
                else if (event->data.ptr)
                        file_event(event->data.ptr, event->events);
                else
                        wake_event(e);
        }
        return n < 0 ? n : 0;
}

/* ---- sockets ---- */

/* Takes fd over, also when it fails. */
static int file_adopt(struct epoll *e, int fd, struct rs_file **ret_file)
{
        struct file *f = file_new(e, fd);

        if (!f) {
                rs_sys_close(fd);
                return -ENOMEM;
        }
        *ret_file = &f->base;
        return 0;
}

static int ep_tcp_socket(struct rs_backend *b, int family, struct rs_file **ret_file)
{
        int fd = rs_sys_socket(family);

        if (fd < 0)
                return fd;
        int rc = rs_sys_setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, 1);
        if (rc < 0) {
                rs_sys_close(fd);
                return rc;
        }
        return file_adopt(ep_of(b), fd, ret_file);
}

/* Accepted sockets inherit TCP_NODELAY. The wildcard of IPv6 takes IPv4 too. */
static int listen_on(int fd, const struct rs_addr *a, int backlog)
{
        int rc = rs_sys_setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, 1);

        if (rc == 0)
                rc = rs_sys_setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, 1);
        if (rc == 0 && a->sockaddr.ss_family == AF_INET6)
                rc = rs_sys_setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
        if (rc == 0)
                rc = rs_sys_bind(fd, (const struct sockaddr *)&a->sockaddr, (socklen_t)a->size);
        if (rc == 0)
                rc = rs_sys_listen(fd, backlog);
        return rc;
}

static int ep_tcp_listen(struct rs_backend *b, const resha_addr *addr, int backlog, struct rs_file **ret_file)
{
        const struct rs_addr *a = rs_addr_view(addr);
        int fd = rs_sys_socket(a->sockaddr.ss_family);

        if (fd < 0)
                return fd;
        int rc = listen_on(fd, a, backlog);
        if (rc < 0) {
                rs_sys_close(fd);
                return rc;
        }
        return file_adopt(ep_of(b), fd, ret_file);
}

/* An IPv4 address in the clothes of IPv6, as a wildcard listener has it, is shown as what it is. */
static void undress(struct rs_addr *a)
{
        struct sockaddr_in6 six;
        struct sockaddr_in four = { .sin_family = AF_INET };

        memcpy(&six, &a->sockaddr, sizeof six);
        if (six.sin6_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&six.sin6_addr))
                return;
        four.sin_port = six.sin6_port;
        memcpy(&four.sin_addr, &six.sin6_addr.s6_addr[12], sizeof four.sin_addr);
        *a = (struct rs_addr){ .size = sizeof four };
        memcpy(&a->sockaddr, &four, sizeof four);
}

static int ep_file_addr(struct rs_file *f, bool peer, resha_addr *ret_addr)
{
        struct rs_addr a = { .size = 0 };
        socklen_t size = sizeof a.sockaddr;
        int rc = rs_sys_sockname(f->fd, peer, (struct sockaddr *)&a.sockaddr, &size);

        if (rc < 0)
                return rc;
        a.size = size;
        undress(&a);
        memcpy(ret_addr, &a, sizeof a);
        return 0;
}

static int ep_file_shutdown(struct rs_file *f)
{
        return rs_sys_shutdown(f->fd, SHUT_WR);
}

/* Out of epoll first: the file may live on in a child process, and would go on to make events. */
static void ep_file_close(struct rs_file *file)
{
        struct file *f = file_of(file);

        assert(!f->pending[READING] && !f->pending[WRITING]);
        if (f->registered)
                (void)rs_sys_epoll_ctl(ep_of(file->backend)->epfd, EPOLL_CTL_DEL, file->fd, NULL);
        rs_sys_close(file->fd);
        resha_free(f);
}

/* ---- the backend ---- */

static void ep_destroy(struct rs_backend *b)
{
        struct epoll *e = ep_of(b);

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

static int ep_open(struct epoll *e)
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
        struct epoll *e = resha_calloc(1, sizeof *e);

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
