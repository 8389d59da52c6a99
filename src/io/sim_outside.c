/* SPDX-License-Identifier: MIT */
/* Real descriptors in the simulated world: a program in it may read its standard input, write to its standard output,
 * and talk through a descriptor that it was given, or gives back. Each such file has one of the kernel backends behind
 * it, that makes the descriptor non-blocking, or opens it anew, as there, and tries the operations; waiting for it is
 * done by poll(2) in wait(), as for the descriptors of other libraries (sim.c).
 *
 * What is left of determinism: what comes from outside, and when, is the outside's affair. Everything else stays as it
 * was: the order of ready tasks, delays, luck of the connections in memory; no fault is rolled for an operation on a
 * real descriptor, which could take luck from them at moments that the outside chooses. So two runs of one seed are
 * equal as long as the outside answers before the program has something else to do, as files and /dev/null do, always
 * at the first try; a pipe or socket that has to be waited for gets real time before each jump of the clock, at most
 * 10 ms, and what it says later is seen at a later virtual time. Only the n-th operation can be made to fail. */

#include <errno.h>

#include <resha/alloc.h>

#include "io/sim_file.h"

static void forget_nothing(struct kn_file *f)
{
        (void)f; /* poll(2) remembers nobody */
}

static struct sim_file *file_around(struct sim *s, struct rs_file *real)
{
        struct sim_file *f = sim_file_new(s, AF_UNSPEC);

        if (!f)
                return NULL;
        f->file.fd = real->fd;
        f->file.kind = real->kind;
        f->state = OUTSIDE;
        f->real = real;
        return f;
}

/* The kernel side of a connection that came through a real listener gets its file here. */
static ssize_t accepted(struct sim_file *l, struct rs_op *op)
{
        struct rs_file *real = op->ret_file;
        struct sim_file *f = file_around(sim_of(l), real);

        if (!f) {
                kn_file_close(real);
                return -ENOMEM;
        }
        op->ret_file = &f->file;
        return 0;
}

bool sim_outside_try(struct rs_op *op)
{
        struct sim_file *f = file_of(op->file);
        ssize_t rc = kn_try(kn_file_of(f->real), op);

        if (rc == -EAGAIN)
                return false;
        op->result = rc == 0 && op->kind == RS_OP_ACCEPT ? accepted(f, op) : rc;
        return true;
}

bool sim_outside_submit(struct sim_file *f, struct rs_op *op)
{
        struct sim *s = sim_of(f);

        if (sim_outside_try(op)) {
                op->state = RS_OP_DONE;
                return true;
        }
        op->state = RS_OP_PENDING;
        s->base.pending++;
        rs_list_push(&s->polls, &op->link);
        return false;
}

void sim_outside_cancel(struct sim_file *f, struct rs_op *op)
{
        rs_list_remove(&sim_of(f)->polls, &op->link);
}

int sim_adopt(struct rs_backend *b, int fd, bool borrowed, struct rs_file **ret_file)
{
        struct sim *s = sim_world(b);
        struct rs_file *real;

        if (sim_nth(s))
                return -EMFILE;
        s->real.base.ops = s->base.ops;
        s->real.forget = forget_nothing;
        int rc = kn_adopt(&s->real.base, fd, borrowed, &real);
        if (rc < 0)
                return rc;
        struct sim_file *f = file_around(s, real);
        if (!f) {
                if (borrowed)
                        kn_file_close(real);
                else
                        (void)kn_release(real); /* it stays the caller's */
                return -ENOMEM;
        }
        *ret_file = &f->file;
        return 0;
}

/* A pipe has lost its descriptor then. */
int sim_outside_shutdown(struct sim_file *f)
{
        int rc = kn_file_shutdown(f->real);

        f->file.fd = f->real->fd;
        return rc;
}

int sim_release(struct rs_file *file)
{
        struct sim_file *f = file_of(file);

        if (f->state != OUTSIDE)
                return -EOPNOTSUPP;
        int fd = kn_release(f->real);
        if (fd >= 0)
                sim_file_free(f);
        return fd;
}

void sim_outside_done(struct sim *s)
{
        resha_free(s->real.spare);
}
