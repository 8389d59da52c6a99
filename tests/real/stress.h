/* SPDX-License-Identifier: MIT */
#ifndef STRESS_H
#define STRESS_H

/* What the parts of the stress share: rounds, their loops, their luck.
 *
 * A round is one program that does everything at once and ends at a random moment. Loops have clients: tasks that do
 * one thing after another (struct stress_op). Threads post, call through portals and cancel meanwhile. Each part keeps
 * books, which are closed when the round is over and nothing runs any more. */

#include "common.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
        STRESS_LOOPS = 3,    /* at most, in a round */
        STRESS_THREADS = 8,  /* of the program's own */
        STRESS_CLIENTS = 10, /* tasks of each loop */
        STRESS_OPS = 24,     /* of each client, at most */
};

struct luck {
        uint64_t state;
};
struct luck luck_of(unsigned seed, unsigned actor);
unsigned roll(struct luck *l, unsigned below); /* 0 .. below - 1 */

enum stress_end {
        STRESS_DONE,      /* the clients have done all they had to */
        STRESS_FAILS,     /* one of them fails */
        STRESS_LATE,      /* a deadline passes */
        STRESS_CANCELLED, /* a thread cancels a loop */
        STRESS_CTRL_C,
        STRESS_ENDS,
};

/* Bugs that are planted in the library or in the stress, to see that they are found. */
enum stress_plant {
        PLANT_NONE,
        PLANT_POST_LOST,      /* a post is taken, and does not run */
        PLANT_CANCEL_LIES,    /* a job that was begun is said to have been taken out of the queue */
        PLANT_RESULT_SWAPPED, /* a job ends with the result of another */
        PLANT_ITEM_LOST,      /* an item is not counted where it runs */
        PLANT_SEND_LIES,      /* an item that was not sent is said to be */
        PLANT_RECV_LOSES,     /* an item is received, and nobody gets it */
        PLANT_DROP_LOST,      /* an abandoned argument is not released */
        PLANT_MAP_SKIPS,      /* an item of a map over threads is said to have run */
        PLANT_FD,             /* left open */
        PLANT_THREAD,         /* left running */
        PLANT_MEMORY,         /* left allocated */
        PLANT_PROCESS,        /* left as a zombie */
        PLANTS,
};
extern enum stress_plant stress_plant;

struct stress_round;

struct stress_loop {
        struct stress_round *round;
        unsigned index;
        struct luck luck;                 /* of its main task */
        resha_loop *refs[STRESS_THREADS]; /* one for each thread, written before `begun` counts it */
        resha_loop *killers;              /* one more */
        resha_portal *portal;
        unsigned posts[STRESS_THREADS]; /* that ran; the loop's */
        unsigned client;                /* numbers them */
        int result;                     /* of its main task */
        pthread_t thread;
};

struct stress_round {
        unsigned seed, count; /* of loops */
        enum stress_end end;
        unsigned chosen; /* the loop that fails, or raises SIGINT, if the round ends so */
        bool together;   /* resha_run_loops(), instead of a run for each */
        struct stress_loop loops[STRESS_LOOPS];
        atomic_uint begun; /* loops */
        atomic_bool over;  /* the runs have ended */
        atomic_uint kinds; /* bits: what happened at all (enum stress_seen) */
};

enum stress_seen {
        SEEN_JOB_RAN,
        SEEN_JOB_CANCELLED,
        SEEN_JOB_FAILED,
        SEEN_JOB_INTERRUPTED,
        SEEN_POOL_CLOSED,
        SEEN_POST_REFUSED,
        SEEN_CALL_RAN,
        SEEN_CALL_CANCELLED,
        SEEN_CALL_REFUSED,
        SEEN_ITEM_RAN,
        SEEN_ITEM_DIED,
        SEEN_ITEM_CANCELLED,
        SEEN_ITEM_LATE,
        SEEN_SENT,
        SEEN_NOT_SENT,
        SEEN_CHANNEL_DROP,
        SEEN_JOB_SIGNALLED,
        SEEN_DROP_LATE,
        SEEN_DROP_EARLY,
        SEEN_MAP_RAN,
        SEEN_MAP_CANCELLED,
        SEEN_SHOT,
        SEEN_MISSED, /* may never be */
        SEEN_COUNT,
};
void stress_saw(enum stress_seen what);

/* One thing that a client does. 0; -ECANCELED: cancelled from outside. */
struct stress_op {
        const char *name;
        int (*fn)(struct stress_loop *l, struct luck *luck);
        unsigned weight;
};

/* A random time, mostly short: microseconds. */
resha_duration stress_moment(struct luck *l);

/* ---- stress_jobs.c: thread jobs ---- */

int stress_job(struct stress_loop *l, struct luck *luck);      /* on the default pool */
int stress_own_pool(struct stress_loop *l, struct luck *luck); /* on one that is freed meanwhile */
void stress_jobs_begin(void);
void stress_jobs_check(void); /* and frees the books */

/* ---- stress_owned.c: jobs that are abandoned, maps over threads ---- */

int stress_owned(struct stress_loop *l, struct luck *luck);
int stress_pool_map(struct stress_loop *l, struct luck *luck);
void stress_owned_begin(void);
void stress_owned_check(void);

/* ---- stress_channel.c: one channel between all ---- */

int stress_channel_use(struct stress_loop *l, struct luck *luck);
void stress_channel_thread(struct luck *luck); /* the same for a thread */
void stress_channel_begin(const struct stress_round *r);
void stress_channel_check(void);

/* ---- stress_workers.c: processes ---- */

int stress_workers_map(struct stress_loop *l, struct luck *luck);
void stress_workers_begin(const struct stress_round *r); /* while there is one thread */
void stress_workers_end(void);

/* ---- stress_threads.c: the program's own threads ---- */

void stress_threads_begin(struct stress_round *r);
void stress_threads_join(struct stress_round *r);
void stress_threads_check(struct stress_round *r);
int stress_called(void *kind); /* what is called through portals: *(unsigned *)kind is 0..3 */

#endif
