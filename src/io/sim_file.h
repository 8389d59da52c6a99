/* SPDX-License-Identifier: MIT */
#ifndef RS_SIM_FILE_H
#define RS_SIM_FILE_H

/* An end of a simulated connection, or a listener: what sim_net.c (connecting, the operations) and sim_stream.c (bytes)
 * share. The essays are there. */

#include "io/sim_world.h"

enum sim_state { FRESH, LISTENER, STREAM };

struct sim_side {
        struct rs_op *op;      /* who waits, or NULL */
        struct rs_timer timer; /* when it is served next */
        struct sim_file *file;
};

struct sim_file {
        struct rs_file file;  /* first */
        struct rs_node node;  /* in sim.files */
        struct rs_node place; /* in *where: sim.listeners, or a listener's backlog or callers */
        struct rs_list *where;
        enum sim_state state;
        int family;
        bool bound; /* local is its own */
        struct sim_side in, out;
        resha_addr local, remote;
        /* LISTENER */
        struct rs_list backlog; /* connected, not accepted yet */
        struct rs_list callers; /* connecting, while the backlog is full */
        size_t backlog_count, backlog_max;
        /* STREAM */
        struct sim_file *peer; /* NULL once one of the two is closed or reset */
        char *ring;
        size_t capacity, head, count, visible;
        struct rs_timer arrival; /* when all that is in the ring, and the end, become visible */
        struct rs_timer reset;   /* when a reset arrives */
        bool fin_sent, fin_seen; /* the peer's end: sent, visible */
        bool write_shut;         /* this end's */
        bool dead;               /* reset */
        int error;               /* of the reset, until it is reported; else 0 */
};

static inline struct sim *sim_of(const struct sim_file *f)
{
        return (struct sim *)(void *)f->file.backend;
}

static inline struct sim_file *file_of(struct rs_file *file)
{
        return (struct sim_file *)(void *)file;
}

/* The side is served in the next wait(), if somebody waits there. */
static inline void sim_poke(struct sim_file *f, struct sim_side *side)
{
        if (side->op && !rs_timer_active(&side->timer))
                sim_at(sim_of(f), &side->timer, 0);
}

/* sim_stream.c */

/* Makes a FRESH end a STREAM without a peer: 0 or -ENOMEM. */
int sim_stream_init(struct sim_file *f);
/* True, and op->result, if the operation can be finished now. */
bool sim_stream_read(struct sim_file *f, struct rs_op *op);
bool sim_stream_write(struct sim_file *f, struct rs_op *op);
/* No more bytes from here: the peer will see the end. */
int sim_stream_shutdown(struct sim_file *f);
/* Takes leave of the peer: an orderly end, or a reset if asked for, or if bytes were left unread or on their way. */
void sim_stream_hang_up(struct sim_file *f, bool abort);

#endif
