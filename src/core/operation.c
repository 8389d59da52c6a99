/* SPDX-License-Identifier: MIT */
/* A task's operation of the backend: submitted, waited for, cancelled. The op and this wait lie on the task's stack
 * until the backend has let go of them. One that is done at once has no wait, and costs little more than its system
 * call. */

#include <poll.h>
#include <stdio.h>

#include "core/disk.h"
#include "core/waited.h"
#include "sys/disk.h"
#include "sys/observe.h"
#include "sys/ready.h"

struct op_wait {
        struct rs_wait wait;
        struct rs_op *op;
        int abort_code; /* instead of -ECANCELED, if somebody gave the operation up */
};

static void op_cancel(struct rs_wait *w)
{
        struct rs_op *op = RS_CONTAINER(w, struct op_wait, wait)->op;
        struct rs_backend *b = rs_loop_current->backend;

        if (b->ops->cancel(b, op))
                rs_wake(w, -ECANCELED);
}

ssize_t rs_operation_wait(struct rs_loop *l, struct rs_op *op, const char *what)
{
        struct op_wait w = { .wait = { .cancel = op_cancel, .what = what, .object = op->file }, .op = op };

        op->owner = &w;
        ssize_t result = rs_wait(l, &w.wait);
        return RS_UNLIKELY(w.abort_code && result == -ECANCELED) ? w.abort_code : result;
}

ssize_t rs_operation_disk(struct rs_loop *l, struct rs_disk *d, const char *what)
{
        struct rs_op op;

        rs_op_bytes(&op, RS_OP_DISK, NULL, d, sizeof *d);
        return rs_operation(l, &op, what);
}

ssize_t rs_operation_disk_surely(struct rs_loop *l, struct rs_disk *d, const char *what)
{
        struct rs_op op;
        struct op_wait w = { .wait = { .what = what }, .op = &op };

        rs_op_bytes(&op, RS_OP_DISK, NULL, d, sizeof *d);
        op.owner = &w;
        return l->backend->ops->submit(l->backend, &op) ? op.result : rs_wait(l, &w.wait);
}

void rs_operation_abort(struct rs_loop *l, struct rs_op *op, int code)
{
        struct op_wait *w = op->owner;

        if (op->state != RS_OP_PENDING)
                return;
        if (!w->abort_code) /* the first says why: an abort, and the close right behind it */
                w->abort_code = code;
        w->wait.cancel = NULL;
        if (l->backend->ops->cancel(l->backend, op))
                rs_wake(&w->wait, -ECANCELED);
}

/* ---- for who looks from outside ---- */

static const char *readiness(short events)
{
        bool in = events & POLLIN, out = events & POLLOUT;

        return in && out ? " to be readable or writable" : in ? " to be readable" : out ? " to be writable" : "";
}

/* The descriptor is another library's. Where that has closed it, nothing comes any more. */
static void see_foreign(const struct rs_op *op, struct rs_waited *ret)
{
        struct pollfd now = { .fd = op->fd, .events = op->events };
        bool closed = rs_ready_wait(&now, 1, 0) > 0 && now.revents & POLLNVAL;

        snprintf(ret->detail, sizeof ret->detail, "descriptor %d%s%s", op->fd, readiness(op->events),
                 closed ? ", which is closed" : "");
}

static void see_disk(const struct rs_reader *r, const struct rs_op *op, struct rs_waited *ret)
{
        struct rs_disk d;

        /* A thread of the crew may be writing to it. */
        if (rs_observe_read(&d, op->buf, sizeof d) && d.call != RS_DISK_RUN && d.path &&
            !r->text(d.path, ret->detail, RS_WAITED_TEXT))
                ret->detail[0] = '\0';
}

static void see_file(const struct rs_reader *r, const struct rs_op *op, struct rs_waited *ret)
{
        char text[RESHA_ADDR_TEXT_MAX] = "";
        struct rs_file f;
        resha_addr to;

        if (!r->read(&f, op->file, sizeof f) || f.fd < 0)
                f.fd = -1;
        if (op->kind == RS_OP_CONNECT && op->addr && r->read(&to, op->addr, sizeof to))
                resha_addr_format(&to, text, sizeof text);
        if (f.fd >= 0)
                snprintf(ret->detail, sizeof ret->detail, "descriptor %d%s%.100s", f.fd, *text ? " to " : "", text);
        else
                snprintf(ret->detail, sizeof ret->detail, "%s%.100s", *text ? "to " : "", text);
}

static void operation_see(const struct rs_reader *r, const struct rs_wait *at, const struct rs_wait *w,
                          struct rs_waited *ret)
{
        struct op_wait o;
        struct rs_op op;

        (void)w;
        if (!r->read(&o, at, sizeof o) || !r->read(&op, o.op, sizeof op))
                return;
        if (op.kind == RS_OP_DISK)
                see_disk(r, &op, ret);
        else if (op.kind == RS_OP_POLL && op.buf)
                (void)r->text(op.buf, ret->detail, sizeof ret->detail);
        else if (op.kind == RS_OP_POLL)
                see_foreign(&op, ret);
        else
                see_file(r, &op, ret);
}

const struct rs_waits rs_operation_waits = { .cancel = op_cancel, .see = operation_see };
