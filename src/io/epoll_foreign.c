/* SPDX-License-Identifier: MIT */
/* Foreign descriptors of the epoll backend (RS_OP_POLL).
 *
 * One-shot: armed by each operation, disarmed by its event, taken out by a cancel. An entry in a table by number holds
 * who waits. The owner may close the descriptor and another may get its number: then MOD says ENOENT and it is added.
 * The registration may even outlive the close, if the file lives on under another number: each arming has a sequence
 * number, and an event of an older one is nobody's.
 *
 * A descriptor has one registration only: to wait here for one of our own files would take theirs away, and the task
 * that reads there would sleep for ever. So those are refused. */

#include <errno.h>
#include <string.h>

#include <resha/alloc.h>

#include "io/epoll.h"
#include "sys/sys.h"

/* 0, -EBADF, -ENOMEM. */
static int foreign_entry(struct ep *e, int fd, struct ep_foreign **ret_entry)
{
        size_t n = e->foreign_size ? e->foreign_size : 64;

        if ((size_t)fd >= e->foreign_size) {
                if (rs_sys_file_flags(fd) < 0)
                        return -EBADF; /* no memory for a number that is nobody's */
                while (n <= (size_t)fd)
                        n *= 2;
                struct ep_foreign *grown = resha_realloc(e->foreign, n * sizeof *grown);
                if (!grown)
                        return -ENOMEM;
                memset(grown + e->foreign_size, 0, (n - e->foreign_size) * sizeof *grown);
                e->foreign = grown;
                e->foreign_size = n;
        }
        *ret_entry = &e->foreign[fd];
        return 0;
}

static int foreign_arm(struct ep *e, struct ep_foreign *p, int fd, short events)
{
        struct epoll_event event = {
                .events = (uint16_t)events | (uint32_t)EPOLLONESHOT,
                .data = { .u64 = (uint64_t)++p->seq << 32 | (uint64_t)fd << 1 | EP_FOREIGN },
        };
        int rc = rs_sys_epoll_ctl(e->epfd, p->registered ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event);

        e->kn.base.calls++;
        if (rc == -ENOENT) /* it was closed, and this is another one */
                rc = rs_sys_epoll_ctl(e->epfd, EPOLL_CTL_ADD, fd, &event);
        else if (rc == -EEXIST) /* it was closed, and is back by dup(2) */
                rc = rs_sys_epoll_ctl(e->epfd, EPOLL_CTL_MOD, fd, &event);
        p->registered = rc == 0;
        return rc;
}

bool ep_foreign_submit(struct ep *e, struct rs_op *op)
{
        if (op->fd < 0)
                return kn_done(op, -EBADF);
        struct ep_foreign *p;
        int rc = foreign_entry(e, op->fd, &p);
        if (rc < 0)
                return kn_done(op, rc);
        if (p->op || kn_owns(&e->kn, op->fd))
                return kn_done(op, -EBUSY);
        rc = foreign_arm(e, p, op->fd, op->events);
        if (rc == -EPERM) { /* a regular file: ready as poll(2) has it */
                short always = op->events & (EPOLLIN | EPOLLOUT);
                return kn_done(op, always ? always : EPOLLIN);
        }
        if (rc < 0)
                return kn_done(op, rc);
        p->op = op;
        return kn_pend(&e->kn.base, op);
}

void ep_foreign_cancel(struct ep *e, struct rs_op *op)
{
        struct ep_foreign *p = &e->foreign[op->fd];

        p->op = NULL;
        p->registered = false;
        e->kn.base.calls++;
        (void)rs_sys_epoll_ctl(e->epfd, EPOLL_CTL_DEL, op->fd, NULL);
}

void ep_foreign_event(struct ep *e, const struct epoll_event *event)
{
        struct ep_foreign *p = &e->foreign[(uint32_t)event->data.u64 >> 1];
        struct rs_op *op = p->op;

        if (!op || p->seq != event->data.u64 >> 32)
                return;
        p->op = NULL;
        rs_backend_done(&e->kn.base, op, (ssize_t)(event->events & 0x7fff));
}
