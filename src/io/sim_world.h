/* SPDX-License-Identifier: MIT */
#ifndef RS_SIM_WORLD_H
#define RS_SIM_WORLD_H

/* What sim.c (clock, dice, waiting, foreign descriptors) and sim_net.c (files) share. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/heap.h"
#include "base/list.h"
#include "io/kernel.h"
#include "io/sim.h"

struct sim {
        struct rs_backend base; /* first */
        int64_t now;
        struct rs_heap events; /* what will happen, by virtual time, then in the order of its making */
        atomic_bool woken;
        uint64_t dice[4];   /* the world's own decisions */
        uint64_t handed[4]; /* what random() gives: apart, so that a program's use of it does not change the world */
        struct rs_sim_plan plan;
        struct rs_list polls;  /* pending operations on real descriptors */
        struct rs_list files;  /* all, of sim_file.node */
        struct rs_list names;  /* the bound ones, of sim_file.named */
        struct rs_list hosts;  /* of struct sim_host, sim_hosts.c */
        struct rs_list silent; /* of struct sim_silent, sim_connect.c */
        uint16_t next_port, next_client_port;
        unsigned next_name; /* of Unix sockets that ask for any */
        struct kn real;     /* whose the adopted descriptors are: a backend that never waits by itself */
};

static inline struct sim *sim_world(struct rs_backend *b)
{
        return (struct sim *)(void *)b;
}

/* 0 .. below - 1, by the world's dice. */
uint64_t sim_roll(struct sim *s, uint64_t below);
/* Whether this fault happens here; counts it. Rolls only if the kind has a chance at all. */
bool sim_fires(struct sim *s, enum rs_fault_kind kind);
/* 0, or 1 .. latency_max if a fault of this kind (LATENCY, STALL) happens. */
int64_t sim_delay(struct sim *s, enum rs_fault_kind kind);
/* Counts an operation; true if it is the one that has to fail. */
bool sim_nth(struct sim *s);

static inline void sim_at(struct sim *s, struct rs_timer *t, int64_t delay)
{
        t->deadline = s->now + delay;
        rs_heap_insert(&s->events, t);
}

static inline void sim_never(struct sim *s, struct rs_timer *t)
{
        if (rs_timer_active(t))
                rs_heap_remove(&s->events, t);
}

/* sim_disk.c: calls about files and names. */
bool sim_disk_submit(struct sim *s, struct rs_op *op);
void sim_disk_cancel(struct sim *s, struct rs_op *op);
ssize_t sim_disk_fails(struct rs_op *op); /* the result of the one that has to */

/* sim_net.c: the operations on files. */
bool sim_net_submit(struct sim *s, struct rs_op *op);
void sim_net_cancel(struct sim *s, struct rs_op *op);
int sim_socket(struct rs_backend *b, int family, int type, struct rs_file **ret_file);
int sim_bind(struct rs_file *file, const resha_addr *addr, unsigned flags);
int sim_pair(struct rs_backend *b, int type, struct rs_file *ret_pair[2]);
int sim_pipe(struct rs_backend *b, struct rs_file *ret_ends[2]);
int sim_file_addr(struct rs_file *file, bool peer, resha_addr *ret_addr);
int sim_file_shutdown(struct rs_file *file);
void sim_file_close(struct rs_file *file);
/* The rest of the table is in sim_file.h. Frees what is still open, telling nobody. */
void sim_net_done(struct sim *s);

#endif
