/* SPDX-License-Identifier: MIT */

/* The pipeline: who owns what, and how it ends.
 *
 *     plan -> feeder -> [ready] -> fetchers -> [results] -> writer
 *                          ^          |
 *                          +-- waiting room (the host or the next attempt is not due yet)
 *
 * A fetcher is a request in flight: there are `concurrency` of them, so the limit holds by construction, and a job that
 * waits for its host or its next attempt is in the waiting room and holds no place. The writer is in a group of its own
 * around all others, so that it outlives them and writes down what they have finished; if it fails, the group cancels
 * them.
 *
 * `open` counts jobs between plan and writer. Once the plan is used up and `open` is 0 the ready queue is shut down,
 * the fetchers end, the results queue is shut down, and the writer ends with the last of them. A stop is the same with
 * less to do: the feeder is cancelled, the waiting room is emptied, what is in flight gets its grace, and is then
 * cancelled. */

#include "flow.h"

#include <string.h>

#include <resha/alloc.h>
#include <resha/scope.h>

int pipeline_new(const struct pipeline_options *opts, struct pipeline **ret_pipeline)
{
        struct pipeline *p RESHA_CLEANUP(pipeline_freep) = resha_calloc(1, sizeof *p);
        if (!p)
                return -ENOMEM;
        p->o = *opts;
        p->rng.state = opts->seed;
        int rc = resha_queue_new(sizeof(struct job *), FLOW_CHUNK, job_drop, &p->ready);
        if (rc >= 0)
                rc = resha_queue_new(sizeof(struct job *), STORE_BATCH, job_drop, &p->results);
        if (rc < 0)
                return rc;
        *ret_pipeline = p;
        p = NULL;
        return 0;
}

void pipeline_free(struct pipeline *p)
{
        if (!p)
                return;
        for (size_t i = 0; i < p->n_waiting; i++)
                job_free(p->waiting[i]);
        resha_free(p->waiting);
        resha_queue_free(p->ready);
        resha_queue_free(p->results);
        resha_free(p);
}

void pipeline_freep(struct pipeline **p)
{
        pipeline_free(*p);
        *p = NULL;
}

void flow_observe(struct pipeline *p, const struct pipeline_event *event)
{
        if (p->o.observe)
                p->o.observe(p->o.observe_arg, event);
}

static void end_if_done(struct pipeline *p)
{
        if (p->ended || p->open || !(p->exhausted || p->stopping))
                return;
        p->ended = true;
        resha_queue_shutdown(p->ready);
        resha_event_set(&p->waiting_changed);
        resha_event_set(&p->end);
        resha_event_set(&p->stop); /* releases who watches for it */
}

void flow_leave(struct pipeline *p)
{
        p->open--;
        end_if_done(p);
}

void flow_drop(struct pipeline *p, struct job *job)
{
        job_free(job);
        flow_leave(p);
}

int flow_finish(struct pipeline *p, struct job *job)
{
        size_t size;
        int rc = 0;
        job_body(job, &size);
        clock_format(p->o.clock, job->started, job->started_text);
        clock_format(p->o.clock, job->finished, job->finished_text);
        while (rc >= 0 && p->result_bytes && p->result_bytes + size > FLOW_BYTES_MAX) {
                resha_event_clear(&p->room);
                rc = resha_event_wait(&p->room);
        }
        if (rc >= 0)
                rc = resha_queue_put(p->results, &job);
        if (rc <= 0) {
                flow_drop(p, job);
                return rc < 0 ? rc : -ECANCELED;
        }
        p->result_bytes += size;
        if (resha_queue_count(p->results) >= FLOW_GATHER)
                resha_event_set(&p->many);
        flow_leave(p);
        return 0;
}

void flow_add_fetcher(struct pipeline *p)
{
        if (p->n_fetchers == p->o.concurrency || p->ended || p->stopping)
                return;
        p->n_fetchers++;
        resha_spawn(p->fetching, flow_fetch, p);
}

/* Waits for a stop and carries it out; ends with the rest. */
static int watch_stop(void *arg)
{
        struct pipeline *p = arg;
        int rc = resha_event_wait(&p->stop);
        if (rc < 0 || p->ended)
                return rc;
        resha_task_cancel(&p->feeder);
        resha_event_set(&p->waiting_changed);
        resha_event_set(&p->waiting_eased);
        end_if_done(p);
        RESHA_SCOPE(grace);
        resha_timeout_begin(&grace, p->o.grace);
        rc = resha_event_wait(&p->end);
        rc = resha_scope_end(&grace, rc);
        if (rc == -ETIME && resha_scope_expired(&grace)) {
                resha_group_cancel(p->fetching);
                rc = 0;
        }
        return rc;
}

static int fetch_all(struct pipeline *p)
{
        RESHA_GROUP(fetching);
        resha_group_begin(&fetching, NULL);
        p->fetching = &fetching;
        resha_spawn_task(&fetching, flow_feed, p, &p->feeder);
        resha_spawn(&fetching, flow_wait, p);
        resha_spawn(&fetching, watch_stop, p);
        unsigned n = p->o.at_once || p->o.concurrency < FLOW_START ? p->o.concurrency : FLOW_START;
        for (unsigned i = 0; i < n; i++)
                flow_add_fetcher(p);
        int rc = resha_group_end(&fetching, 0);
        p->ended = true;
        return rc;
}

int pipeline_run(struct pipeline *p)
{
        RESHA_GROUP(writing);
        resha_group_begin(&writing, NULL);
        resha_spawn(&writing, flow_write, p);
        int rc = fetch_all(p);
        resha_queue_shutdown(p->results);
        resha_event_set(&p->many);
        rc = resha_group_end(&writing, rc);
        if (rc >= 0 && p->plan_error.code < 0)
                return resha_fail(p->plan_error.code, "%s", p->plan_error.text);
        return rc;
}

void pipeline_stop(struct pipeline *p)
{
        if (p->ended)
                return;
        p->stopping = true;
        resha_event_set(&p->stop);
}

bool pipeline_stopped(const struct pipeline *p)
{
        return p->stopping;
}

const struct counts *pipeline_counts(const struct pipeline *p)
{
        return &p->counts;
}

int64_t pipeline_total(const struct pipeline *p)
{
        int64_t n = plan_total(p->o.plan);
        return n < 0 ? n : n + plan_has_ids_job(p->o.plan);
}

uint64_t pipeline_requests(const struct pipeline *p)
{
        return p->requests;
}

uint64_t pipeline_retries(const struct pipeline *p)
{
        return p->retries;
}

bool pipeline_plan_failed(const struct pipeline *p)
{
        return p->plan_error.code < 0;
}
