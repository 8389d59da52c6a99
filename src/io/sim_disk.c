/* SPDX-License-Identifier: MIT */
/* Calls about files and names in the simulated world. The file system is the real one: a call is made inline, on the
 * loop's own stack, after a delay of the world's luck, in wait(). Reads and writes may move less than asked for, and
 * the n-th operation fails, as everywhere in this world. */

#include <errno.h>

#include "io/sim_world.h"
#include "sys/disk.h"

static bool moves_bytes(const struct rs_disk *d)
{
        return (d->call == RS_DISK_READ || d->call == RS_DISK_WRITE || d->call == RS_DISK_COPY) && d->size > 1;
}

/* A size for this time. */
static size_t piece(struct sim *s, const struct rs_disk *d)
{
        size_t size = d->size;

        if (sim_fires(s, d->call == RS_DISK_READ ? RS_FAULT_SHORT_READ : RS_FAULT_SHORT_WRITE))
                size = 1 + (size_t)sim_roll(s, size);
        return s->plan.piece_max && size > s->plan.piece_max ? s->plan.piece_max : size;
}

static void on_turn(struct rs_timer *t)
{
        struct rs_disk *d = RS_CONTAINER(t, struct rs_disk, timer);
        struct sim *s = d->crew;
        size_t size = d->size;

        if (moves_bytes(d))
                d->size = piece(s, d);
        ssize_t result = rs_sys_disk_quietly(d);
        d->size = size;
        rs_backend_done(&s->base, d->op, result);
}

bool sim_disk_submit(struct sim *s, struct rs_op *op)
{
        struct rs_disk *d = op->buf;

        d->op = op;
        d->crew = s;
        d->timer = (struct rs_timer){ .fire = on_turn };
        op->state = RS_OP_PENDING;
        s->base.pending++;
        sim_at(s, &d->timer, sim_delay(s, RS_FAULT_STALL));
        return false;
}

void sim_disk_cancel(struct sim *s, struct rs_op *op)
{
        sim_never(s, &((struct rs_disk *)op->buf)->timer);
}

/* It has no memory, no descriptor, a bad disk; but what is closed is closed. */
ssize_t sim_disk_fails(struct rs_op *op)
{
        struct rs_disk *d = op->buf;

        if (d->call == RS_DISK_CLOSE)
                (void)rs_sys_disk(d);
        return d->call == RS_DISK_OPEN ? -EMFILE : -EIO;
}
