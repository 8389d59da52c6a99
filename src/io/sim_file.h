/* SPDX-License-Identifier: MIT */
#ifndef RS_SIM_FILE_H
#define RS_SIM_FILE_H

/* A file of the simulated world: what sim_net.c (files, the operations), sim_connect.c, sim_name.c, sim_stream.c,
 * sim_dgram.c, sim_option.c and sim_outside.c share. The essays are there. */

#include <sys/socket.h>

#include "io/sim_world.h"

enum sim_state {
        FRESH, /* a stream socket before connect or listen */
        LISTENER,
        STREAM,  /* an end of a connection, or of a pipe */
        DGRAM,   /* a datagram socket, from its start */
        OUTSIDE, /* a real descriptor */
};

struct sim_side {
        struct rs_op *op;      /* who waits, or NULL */
        struct rs_timer timer; /* when it is served next */
        struct sim_file *file;
};

struct sim_file {
        struct rs_file file;  /* first */
        struct rs_node node;  /* in sim.files */
        struct rs_node named; /* in sim.names, if bound */
        struct rs_node place; /* in *where: a listener's backlog or callers, or those who wait to send to this one */
        struct rs_list *where;
        enum sim_state state;
        int family;                               /* AF_UNSPEC: a pipe, or OUTSIDE */
        bool bound;                               /* local is its own */
        bool reads_not, writes_not;               /* the ends of a pipe */
        unsigned bind_flags;                      /* enum rs_bind */
        int64_t options[RS_OPTION_LISTENING + 1]; /* 1 + what was set; 0: as it is made */
        struct sim_side in, out;
        resha_addr local, remote;
        int64_t give_up;        /* a connect to a silent address; 0: none */
        struct rs_list callers; /* who waits for room here: connecting, or sending datagrams */
        /* NULL once one of the two is closed or reset; DGRAM: to whom a Unix one is connected */
        struct sim_file *peer;
        bool write_shut;       /* this end's writing side */
        bool connected;        /* DGRAM */
        int error;             /* of a reset, or of a datagram, until it is reported; else 0 */
        struct rs_timer reset; /* when a reset, or such an error, arrives */
        /* LISTENER */
        struct rs_list backlog; /* connected, not accepted yet */
        size_t backlog_count, backlog_max;
        /* STREAM */
        char *ring;
        size_t capacity, head, count, visible;
        struct rs_timer arrival; /* when all that is in the ring, and the end, become visible */
        bool fin_sent, fin_seen; /* the peer's end: sent, visible */
        bool dead;               /* reset */
        /* DGRAM; lists of struct sim_message, sim_dgram.c */
        struct rs_list coming, inbox, errors; /* on the way; to be received; kept for file_error() */
        size_t queued, queued_bytes;          /* what counts against the limits */
        size_t queue_max;                     /* Unix: so many and one more */
        int64_t last_arrival;                 /* of what may not be overtaken */
        /* OUTSIDE */
        struct rs_file *real;
};

static inline struct sim *sim_of(const struct sim_file *f)
{
        return sim_world(f->file.backend);
}

static inline struct sim_file *file_of(struct rs_file *file)
{
        return (struct sim_file *)(void *)file;
}

static inline bool sim_is_pipe(const struct sim_file *f)
{
        return f->file.kind == RS_FILE_PIPE;
}

/* The side is served in the next wait(), if somebody waits there. */
static inline void sim_poke(struct sim_file *f, struct sim_side *side)
{
        if (side->op && !rs_timer_active(&side->timer))
                sim_at(sim_of(f), &side->timer, 0);
}

/* A number of at most n, from 1: n, unless the plan has a limit, or a fault of this kind happens. */
static inline size_t sim_shortened(struct sim *s, enum rs_fault_kind kind, size_t n)
{
        if (s->plan.piece_max && n > s->plan.piece_max)
                n = s->plan.piece_max;
        return n > 1 && sim_fires(s, kind) ? 1 + (size_t)sim_roll(s, n - 1) : n;
}

static inline int sim_take_error(struct sim_file *f)
{
        int error = f->error;

        f->error = 0;
        return error;
}

/* sim_net.c */

/* A socket (or pipe, AF_UNSPEC), FRESH; NULL: no memory. */
struct sim_file *sim_file_new(struct sim *s, int family);
void sim_file_free(struct sim_file *f);

void sim_place(struct sim_file *f, struct rs_list *where);
void sim_unplace(struct sim_file *f);
struct sim_file *sim_take_first(struct rs_list *where);
/* Those who wait for room at f try again: all, as the first may be cancelled before its turn; the others queue up
 * again. */
void sim_call_callers(struct sim_file *f);

/* sim_name.c */

/* Gives f the name, or one that is free if there is nothing or no port in it: 0, -EADDRINUSE, -EINVAL. */
int sim_name_take(struct sim_file *f, const resha_addr *addr, unsigned flags);
void sim_name_drop(struct sim_file *f);
/* Whether f, that has a name already, may listen there. */
bool sim_name_free(struct sim_file *f);
/* Whether f, bound, has a connection with `remote` already, by another socket of the same name. */
bool sim_name_connected(struct sim_file *f, const resha_addr *remote);
/* What goes to this address comes to o, ports aside. */
bool sim_name_covers(const struct sim_file *o, const resha_addr *to);
/* The Unix datagram socket there, or why there is none. */
int sim_name_dgram(struct sim *s, const resha_addr *to, struct sim_file **ret_dgram);
/* The listener there, or why there is none: -ECONNREFUSED, -ENOENT, -EPROTOTYPE. */
int sim_name_listener(struct sim *s, const resha_addr *to, struct sim_file **ret_listener);

/* sim_connect.c: true, and op->result, if the operation can be finished now. */
bool sim_connect(struct sim_file *f, struct rs_op *op);
bool sim_accept(struct sim_file *l, struct rs_op *op);
int sim_listen(struct rs_file *file, int backlog);
void sim_stop_listening(struct sim_file *l);
/* Nobody answers there. */
bool sim_is_silent(struct sim *s, const resha_addr *addr);
void sim_connect_done(struct sim *s);

/* sim_stream.c */

/* Makes a FRESH end a STREAM without a peer: 0 or -ENOMEM. */
int sim_stream_init(struct sim_file *f);
/* True, and op->result, if the operation can be finished now. */
bool sim_stream_read(struct sim_file *f, struct rs_op *op);
bool sim_stream_write(struct sim_file *f, struct rs_op *op);
bool sim_stream_write_vec(struct sim_file *f, struct rs_op *op);
bool sim_stream_send_file(struct sim_file *f, struct rs_op *op);
/* No more bytes from here: the peer will see the end. */
int sim_stream_shutdown(struct sim_file *f);
/* Takes leave of the peer: an orderly end, or a reset if asked for, or if bytes were left unread or on their way. */
void sim_stream_hang_up(struct sim_file *f, bool abort);

/* sim_dgram.c: true, and op->result, if the operation can be finished now. */
void sim_dgram_init(struct sim_file *f);
void sim_dgram_join(struct sim_file *f, struct sim_file *to); /* as by a connect, of Unix sockets */
bool sim_dgram_connect(struct sim_file *f, struct rs_op *op);
bool sim_dgram_send(struct sim_file *f, struct rs_op *op);
bool sim_dgram_receive(struct sim_file *f, struct rs_op *op);
bool sim_dgram_write(struct sim_file *f, struct rs_op *op);
bool sim_dgram_read(struct sim_file *f, struct rs_op *op);
int sim_dgram_error(struct rs_file *file, resha_addr *ret_addr);
int sim_dgram_shutdown(struct sim_file *f);
void sim_dgram_close(struct sim_file *f);
void sim_dgram_drop(struct sim_file *f); /* what has not been received */

/* sim_option.c */
int sim_option_value(const struct sim_file *f, enum rs_option which);
int sim_option(struct rs_file *file, enum rs_option which, int *value, bool set);

/* sim_outside.c */

/* As submit() and cancel(). */
bool sim_outside_submit(struct sim_file *f, struct rs_op *op);
void sim_outside_cancel(struct sim_file *f, struct rs_op *op);
/* The descriptor may be ready: true, and op->result, if the operation is finished. */
bool sim_outside_try(struct rs_op *op);
int sim_adopt(struct rs_backend *b, int fd, bool borrowed, struct rs_file **ret_file);
int sim_outside_shutdown(struct sim_file *f);
int sim_release(struct rs_file *file);
void sim_outside_done(struct sim *s);

#endif
