/* SPDX-License-Identifier: MIT */
#ifndef RS_WORKERS_INSIDE_H
#define RS_WORKERS_INSIDE_H

/* What the program, the template and the workers share, and the inside of resha_workers. */

#include <errno.h>

#include <resha/workers.h>

#include "core/core.h"
#include "sys/thread.h"

enum { RS_CELLS = 256, RS_SEATS = 256, RS_DESK_BIG = 1024 * 1024, RS_DESK_ORDERS = 64 * 1024 /* whole pages */ };

enum { RS_DIED_SLOWLY = -1 }; /* workers were killed as their init took too long */

/* Of one item at a desk; every change of the state is a compare-and-swap, so that of those who want it one wins:
 *
 *     FREE -> WAITING            the program puts it there
 *     WAITING -> RUNNING         the worker, which runs it
 *     WAITING -> TAKEN           the program takes it back: for another worker, or because it is over
 *     WAITING, RUNNING -> DIED   the template: the worker has ended, or none can be forked
 *     RUNNING -> DONE            the worker
 *     RUNNING -> KILLED          the program, which has the worker killed: too long, or cancelled
 *     KILLED -> DIED             the template: that worker has ended */
enum rs_cell_state {
        RS_CELL_FREE,
        RS_CELL_WAITING,
        RS_CELL_RUNNING,
        RS_CELL_TAKEN,
        RS_CELL_DONE,
        RS_CELL_DIED,
        RS_CELL_KILLED,
};

struct rs_cell {
        uint32_t state; /* rs_cell_state */
        int32_t result; /* DONE */
        /* DIED: as in siginfo_t, with the status; 0: no worker, and why as an errno; or RS_DIED_SLOWLY */
        int32_t code;
        int32_t status;
        uint32_t generation;       /* RUNNING: of which worker */
        uint64_t at, size;         /* of the item or argument, in the area for them */
        uint64_t ret_at, ret_size; /* of the result, in the other area */
};

/* The exit status of a worker that has no memory left, between two items: nothing is held against the next one. */
enum { RS_WORKER_FULL = 77 };

/* What resha_fail() has said in a worker. */
struct rs_said {
        char text[224];
        char site[96]; /* "" for none */
};

/* Where a worker works: shared memory. The program trusts nothing in it but what the worker cannot write: one that has
 * gone wild may have written all over the rest, and neither hangs the map by that nor takes the next worker with it. */
struct rs_desk {
        union {
                struct {                     /* the worker may only read here */
                        uint32_t generation; /* of its worker: how many have ended there */
                        uint32_t kill;       /* the worker of this generation is to be killed; counts from 1 */
                        uint32_t count;      /* cells in use */
                        uint32_t early;      /* workers that have ended, one after the other, without an item */
                        resha_fn *fn;        /* of the items; NULL: bytes */
                        resha_bytes_fn *bytes;
                };
                char orders[RS_DESK_ORDERS];
        };
        uint32_t want_room; /* the worker waits until the results that are done have been fetched */
        uint32_t init;      /* of its worker, as the state of a cell: FREE, RUNNING, DONE or KILLED */
        int64_t began;      /* the item or the init that runs, CLOCK_MONOTONIC */
        uint64_t ret_used;  /* bytes of results */
        struct rs_cell cells[RS_CELLS];
        struct rs_said said[RS_CELLS];
};

struct rs_seat {
        struct rs_node node; /* in `idle` */
        struct rs_desk *desk;
        int fd;              /* ours: a byte comes when there is something to see; -1: simulated */
        int theirs;          /* until the template is there */
        bool big;            /* much of its memory has been touched */
        bool dying;          /* its worker was to be killed: wait until desk->generation is another */
        uint32_t generation; /* that of desk->generation then */
};

struct resha_workers {
        struct rs_lock lock; /* of idle, line, closing, refs */
        struct rs_list idle; /* of rs_seat.node */
        struct rs_list line; /* of rs_wait.node: tasks that want a seat */
        unsigned refs;       /* its owner, and maps under way */
        bool closing;
        bool simulated; /* started inside a simulated run: there are no processes */
        int pid;        /* of the process that has started them */
        int template;   /* its number */
        int control;    /* a byte there: look whom to kill; its end: that of all */
        unsigned processes, chunk;
        size_t memory, largest, area, desk_size;
        int64_t time; /* ns; 0: without limit */
        resha_fn *init;
        void *arg;
        char name[16];
        struct rs_seat seats[];
};

/* The areas of a desk, behind its cells. */
#define RS_DESK_HEAD ((sizeof(struct rs_desk) + 4095) & ~(size_t)4095)

static inline char *rs_desk_items(struct rs_desk *d)
{
        return (char *)d + RS_DESK_HEAD;
}

static inline char *rs_desk_results(const resha_workers *w, struct rs_desk *d)
{
        return rs_desk_items(d) + w->area;
}

static inline bool rs_state_move(uint32_t *state, uint32_t from, uint32_t to)
{
        return __atomic_compare_exchange_n(state, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static inline bool rs_cell_move(struct rs_cell *c, uint32_t from, uint32_t to)
{
        return rs_state_move(&c->state, from, to);
}

static inline uint32_t rs_cell_state(const struct rs_cell *c)
{
        return __atomic_load_n(&c->state, __ATOMIC_ACQUIRE);
}

extern int64_t rs_workers_starved_ns; /* no worker could be forked for so long: items fail. For tests */

/* The lives of the other processes. */
void rs_template_main(resha_workers *w, int control) __attribute__((noreturn));
void rs_worker_main(resha_workers *w, struct rs_seat *s) __attribute__((noreturn));

/* A seat for the task: one that is idle, or waits for one. 0, -ECANCELED, -EBADF. leave: to the next in line. The
 * caller has entered. */
int rs_seat_take(struct rs_loop *l, resha_workers *w, struct rs_seat **ret_seat);
void rs_seat_leave(resha_workers *w, struct rs_seat *s);
bool rs_seat_wanted(resha_workers *w); /* others stand in line */
void rs_seat_kill(resha_workers *w, struct rs_seat *s, uint32_t generation);

void rs_workers_unref(resha_workers *w);

/* Why the seat's descriptor is at its end, as a code with its record. */
int rs_workers_lost(resha_workers *w);

/* ---- maps ---- */

enum { RS_MAP_LEFT, RS_MAP_DONE, RS_MAP_FAILED, RS_MAP_FIGURES }; /* the first is made when somebody looks */

struct rs_map {
        resha_workers *w;
        resha_fn *fn;
        resha_bytes_fn *bytes; /* or this one, with items that are resha_bytes */
        char *items;
        size_t n, size;
        const resha_gather_opts *opts;
        size_t next; /* item that nobody has yet */
        unsigned lanes;
        struct rs_list working; /* of rs_lane.node: those with a desk */
        struct rs_shown shown;
        uint64_t figures[RS_MAP_FIGURES]; /* items */
};

/* Items of no size may be nowhere. */
static inline char *rs_map_item(const struct rs_map *m, size_t i)
{
        return m->size ? m->items + i * m->size : m->items;
}

/* A worker's share of a map. */
struct rs_lane {
        struct rs_node node;
        struct rs_map *map;
        struct rs_seat *seat;
        unsigned count, open; /* cells; those that are not settled */
        uint32_t generation;  /* of the worker that was there at the last look */
        int64_t room;         /* when its results were last given room: for which an item that has run had to wait */
        size_t item[RS_CELLS];
        bool settled[RS_CELLS];
};

/* Fills the lane's desk with what nobody has, or what waits at another's. 1; 0: there is nothing; negative: a failure
 * that ends the map. */
int rs_lane_fill(struct rs_lane *lane);
/* Settles what is done or has died. 0, or the first failure if that ends the map. */
int rs_lane_collect(struct rs_lane *lane);
/* When the item that runs will have taken too long; INT64_MAX: none runs, or that may take for ever. */
int64_t rs_lane_deadline(const struct rs_lane *lane);
/* One that has taken too long is taken from its worker, which is killed; as above. */
int rs_lane_overrun(struct rs_lane *lane);
/* Takes all back; what runs is killed. */
void rs_lane_drop(struct rs_lane *lane);
/* In a forked child. */
void rs_lane_forked(void);
/* An item has failed, with the record of the task for rc. 0, or rc if that ends the map. */
int rs_map_failed(struct rs_map *m, size_t item, int rc);
void rs_map_succeeded(struct rs_map *m, size_t item, int rc);

#endif
