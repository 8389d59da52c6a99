/* SPDX-License-Identifier: MIT */

/* The feeder: takes jobs from the plan in chunks, has each chunk looked up in the database in one hop, and hands them
 * on as fast as fetchers take them. It is cancelled by a stop, so whatever it holds then is given up here. */

#include "flow.h"

#include <resha/error.h>

struct chunk {
        struct job *jobs[FLOW_CHUNK];
        size_t n, next;
};

static void chunk_done(struct chunk *c)
{
        for (; c->next < c->n; c->next++)
                job_free(c->jobs[c->next]);
}

/* As many jobs as there are without waiting, and at least one: 1, or 0 at the end of the plan. What fails behind the
 * first one fails again, and is told, when the next chunk is taken. */
static int take_chunk(struct pipeline *p, struct chunk *c)
{
        int rc = 1;
        c->n = c->next = 0;
        while (c->n < FLOW_CHUNK && (rc = plan_next(p->o.plan, c->n == 0, &c->jobs[c->n])) > 0)
                c->n++;
        return c->n ? 1 : rc;
}

static int hand_over(struct pipeline *p, struct job *job)
{
        int rc = 0;
        p->open++;
        if (job->outcome != JOB_OPEN) { /* no URL, or saved before: nothing to ask for */
                job->started = job->finished = resha_now();
                return flow_finish(p, job);
        }
        while (rc >= 0 && p->n_waiting >= FLOW_WAITING_MAX) {
                resha_event_clear(&p->waiting_eased);
                rc = resha_event_wait(&p->waiting_eased);
        }
        if (rc >= 0)
                rc = resha_queue_put(p->ready, &job);
        if (rc <= 0)
                flow_drop(p, job);
        return rc < 0 ? rc : rc == 0 ? -ECANCELED : 0;
}

/* Looks up and hands over one chunk. */
static int feed_chunk(struct pipeline *p, struct chunk *c)
{
        int rc = p->o.store ? store_look_up(p->o.store, c->jobs, c->n) : 0;
        while (rc >= 0 && c->next < c->n)
                rc = hand_over(p, c->jobs[c->next++]);
        return rc;
}

/* The list of ids first: nothing else can be asked for before it is there. */
static int feed_ids(struct pipeline *p)
{
        struct job *job;
        int rc = plan_ids_job(p->o.plan, &job);
        if (rc > 0)
                rc = hand_over(p, job);
        else
                return rc;
        return rc < 0 ? rc : resha_event_wait(&p->ids_taken);
}

int flow_feed(void *arg)
{
        struct pipeline *p = arg;
        struct chunk c RESHA_CLEANUP(chunk_done) = { .n = 0 };
        int rc = feed_ids(p);
        while (rc >= 0 && !p->stopping && (rc = take_chunk(p, &c)) > 0)
                rc = feed_chunk(p, &c);
        if (p->stopping)
                return 0;
        if (rc < 0 && rc != -ECANCELED) { /* what was asked for before still gets its answer */
                p->plan_error = *resha_error_of(rc);
                rc = 0;
        }
        p->exhausted = true;
        p->open++; /* leave once, for the case that nothing is open any more */
        flow_leave(p);
        return rc;
}
