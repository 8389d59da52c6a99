/* SPDX-License-Identifier: MIT */
#ifndef RS_POOL_H
#define RS_POOL_H

/* Pools as their two files see them: places, and works that need one. */

#include <resha/pool.h>

#include "core/core.h"
#include "sys/workers.h"

/* What cancels and threads tell each other: pool_job.c. */
enum { RS_JOB_STOPPED = 1, RS_JOB_ENDED = 2, RS_JOB_ABANDONED = 4, RS_JOB_OPEN = 8, RS_JOB_NUDGING = 16 };

/* Those of a pool: pool.c says what they are. DONE and LONGEST are kept; the others are made when somebody looks. */
enum {
        RS_POOL_THREADS,
        RS_POOL_BUSY,
        RS_POOL_QUEUED,
        RS_POOL_IN_LINE,
        RS_POOL_DONE,
        RS_POOL_WAITED,
        RS_POOL_LONGEST,
        RS_POOL_FIGURES,
};

struct resha_pool {
        struct rs_workers crew;
        struct rs_loop *loop;
        struct rs_inbox *inbox; /* outlives the loop if a job does */
        struct rs_cleanup cleanup, given_up;
        struct rs_list line; /* of rs_placed.line: who has no place */
        size_t places, taken;
        struct rs_list abandoned; /* jobs without a task, on threads */
        struct rs_wait *closer;   /* waits until no place is taken */
        size_t abandoned_jobs;
        bool tasks_only; /* and these do not count for it */
        bool closing, nudges;
        struct rs_shown shown;
        uint64_t figures[RS_POOL_FIGURES];
};

/* Something that needs a place, and then a thread. */
struct rs_placed {
        struct rs_work work; /* run() is set by whoever makes it, as are post.fn, pool and out */
        struct rs_post post;
        struct rs_node line;
        resha_pool *pool;
        /* On the loop: it is out of the line without coming to a thread. 0: simulated, it has its place; else why not,
         * and it has none. */
        void (*out)(struct rs_placed *p, int rc);
        bool in_line;
};

/* Asks for a place, and goes to a thread with it. 1: it stands in line; 0: it has its place, and has gone to the
 * threads; -EAGAIN: there is no thread, and it has no place. */
int rs_pool_place(struct rs_placed *p);
/* True: it was in line or in the queue, and never runs; it has no place. False: it runs, or is on its way back. */
bool rs_pool_recall(struct rs_placed *p);
void rs_pool_give_place(resha_pool *p);
bool rs_pool_stand(struct rs_placed *p);           /* simulated: as rs_pool_place(); true: it stands in line */
void rs_pool_closer(resha_pool *p);                /* the closer may have waited for this */
int rs_pool_nudges(resha_pool *p);                 /* its threads may be nudged; 0, or negative with a record */
void rs_pool_count(resha_pool *p, int64_t waited); /* ns, from the call to its beginning; on the loop */
void rs_jobs_leave(resha_pool *p);                 /* its abandoned jobs are on their own */
void rs_jobs_forked(void);                         /* in a forked child */

/* Around each call of a job's function on a thread; state: what resha_job_stopped() looks at. */
void rs_job_begin(const uint32_t *state, const struct rs_local *locals, struct rs_records *records);
void rs_job_end(void);

/* What both calls begin with: 0, the loop and the pool; or why not, with its record. */
int rs_pool_enter(resha_pool *p, struct rs_loop **ret_loop, resha_pool **ret_pool);
/* The failure of a call for which there was no thread, or none any more. Does not name the pool: who wakes with it may
 * find that freed. */
int rs_pool_no_thread(int rc);
/* In the simulated world: one job, from its place to its end. *ret_began: whether it has run. */
int rs_pool_inline(struct rs_loop *l, resha_pool *p, resha_fn *fn, void *arg, bool *ret_began);

struct rs_waits;
extern const struct rs_waits rs_job_waits;

#endif
