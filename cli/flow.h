/* SPDX-License-Identifier: MIT */
#ifndef CLI_FLOW_H
#define CLI_FLOW_H

/* The inside of the pipeline, shared by its tasks: feeder, fetchers, waiting room, writer. All run on one loop, so a
 * plain variable is enough wherever nothing suspends in between. */

#include <resha/event.h>
#include <resha/group.h>
#include <resha/queue.h>
#include <resha/task.h>

#include "pipeline.h"

enum {
        FLOW_CHUNK = 64,          /* jobs taken from the plan, and looked up, at a time */
        FLOW_START = 8,           /* requests in flight at the start */
        FLOW_WAITING_MAX = 1024,  /* jobs in the waiting room before the feeder holds back */
        FLOW_GATHER = 256,        /* results that the writer waits for ... */
        FLOW_GATHER_MS = 50,      /* ... for at most so long */
        FLOW_BYTES_MAX = 8 << 20, /* of bodies that wait for the writer */
};

struct pipeline {
        struct pipeline_options o;
        resha_queue *ready;   /* struct job *: to be asked for */
        resha_queue *results; /* struct job *: finished, to be written down */
        resha_group *fetching;
        resha_task feeder;

        /* Jobs that wait for their host or for their next attempt, a heap by due time. */
        struct job **waiting;
        size_t n_waiting, cap_waiting;
        resha_event waiting_changed, waiting_eased;

        unsigned n_fetchers; /* started so far; at most o.concurrency */

        bool exhausted;       /* nothing more comes from the plan */
        bool stopping, ended; /* asked to stop; no job is left before the writer */
        uint64_t open;        /* jobs taken from the plan that the writer does not have yet */
        resha_event stop, end, ids_taken;

        uint64_t result_bytes;  /* in `results` */
        resha_event many, room; /* enough results for a batch; there is room for more bytes */

        struct counts counts;
        uint64_t requests, retries;
        struct rng rng;
        resha_error plan_error; /* code 0: none */
};

/* pipeline.c */
void flow_observe(struct pipeline *p, const struct pipeline_event *event);

/* A job has left the part before the writer: the last one ends it. */
void flow_leave(struct pipeline *p);

/* Gives up a job that will not be finished. */
void flow_drop(struct pipeline *p, struct job *job);

/* Hands a job whose outcome is known to the writer. -ECANCELED: it was dropped. [task] cancellation point */
int flow_finish(struct pipeline *p, struct job *job);

/* feeder.c, waiting.c, fetcher.c, writer.c: the tasks. */
int flow_feed(void *pipeline);
int flow_wait(void *pipeline);
int flow_fetch(void *pipeline);
int flow_write(void *pipeline);

/* Puts a job among those that wait, until job->due. 0 or -ENOMEM. */
int flow_wait_add(struct pipeline *p, struct job *job);

/* Starts one more fetcher if there may be one. */
void flow_add_fetcher(struct pipeline *p);

#endif
