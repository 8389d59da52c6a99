/* SPDX-License-Identifier: MIT */
#ifndef RS_SIM_H
#define RS_SIM_H

/* The simulated world, as tests steer it: what may go wrong, how often, and how often it did. Everything else about it
 * is behind backend.h. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <resha/addr.h>

struct rs_backend;

enum rs_fault_kind {
        RS_FAULT_LATENCY, /* bytes, ends, resets and connects travel for up to latency_max */
        RS_FAULT_STALL,   /* an operation is looked at only after up to latency_max, though it could be done at once */
        RS_FAULT_SHORT_READ,   /* fewer bytes than are there: any number from 1 */
        RS_FAULT_SHORT_WRITE,  /* fewer bytes than there is room for: any number from 1 */
        RS_FAULT_SMALL_BUFFER, /* a connection takes 1 .. 4096 bytes instead of 64 KiB before its writer has to wait */
        RS_FAULT_RESET,        /* the connection breaks at a read or write: -ECONNRESET at both ends */
        RS_FAULT_REFUSED,      /* a connect is refused though somebody listens */
        RS_FAULT_ACCEPT,    /* an accept fails for lack of descriptors: -EMFILE; the connection stays in the backlog */
        RS_FAULT_LOSS,      /* a UDP datagram gets lost */
        RS_FAULT_DUPLICATE, /* it comes twice */
        RS_FAULT_REORDER,   /* it comes later than those behind it */
        RS_FAULT_NTH,       /* the operation that fail_operation names; see there */
        RS_FAULT_KINDS
};

struct rs_sim_plan {
        uint64_t seed;                      /* of the world; only read */
        unsigned per_mille[RS_FAULT_KINDS]; /* how often each kind happens when it could; NTH: unused */
        int64_t latency_max;                /* ns */
        uint64_t
                fail_operation; /* the one with this number fails: with -EIO, or what its kind of call gives; 0: none */
        size_t piece_max;       /* reads and writes move at most so many bytes, but for small writes to pipes; 0: any */
        uint64_t operations;    /* counted so far: each submit, socket and bind; what would be a system call */
        uint64_t fired[RS_FAULT_KINDS];
};

/* The plan of a world, to be read and changed at any time; NULL if `b` is not a simulated one. A world starts with all
 * zero for seed 0; with latency, stalls, short reads and writes and small buffers for others: what every correct
 * program must bear. */
struct rs_sim_plan *rs_sim_plan(struct rs_backend *b);

/* Counts an operation that a layer above simulates by itself, of a simulated world; true if it has to fail. */
bool rs_sim_operation(struct rs_backend *b);

/* From now on nobody answers at this address, of a simulated world: a connect waits until it gives up, 127 s later, and
 * datagrams are lost. Port 0: at no port of the host. 0 or -ENOMEM. */
int rs_sim_silent(struct rs_backend *b, const resha_addr *addr);

/* Short name of a kind, for reports of tests; static. */
const char *rs_fault_name(enum rs_fault_kind kind);

#endif
