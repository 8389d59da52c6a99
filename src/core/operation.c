/* SPDX-License-Identifier: MIT */
/* A task's operation of the backend: submitted, waited for, cancelled. The op and this wait lie on the task's stack
 * until the backend has let go of them. One that is done at once has no wait, and costs little more than its system
 * call. */

#include "core/disk.h"

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
        w->abort_code = code;
        w->wait.cancel = NULL;
        if (l->backend->ops->cancel(l->backend, op))
                rs_wake(&w->wait, -ECANCELED);
}
