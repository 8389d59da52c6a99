/* SPDX-License-Identifier: MIT */

/* The writer: takes what is finished in batches and writes it down, to the database first. Only then is it counted,
 * told, and forgotten. Under load a batch is what has gathered during the one before; when little comes in, it waits a
 * moment for company. */

#include "flow.h"

#include <resha/scope.h>

struct batch {
        struct job *jobs[STORE_BATCH];
        size_t n;
};

static void batch_done(struct batch *b)
{
        while (b->n)
                job_free(b->jobs[--b->n]);
}

/* Gives more results a moment to come. */
static int gather(struct pipeline *p)
{
        if (resha_queue_count(p->results) >= FLOW_GATHER || p->ended)
                return 0;
        RESHA_SCOPE(moment);
        resha_event_clear(&p->many);
        resha_timeout_begin(&moment, RESHA_MS(FLOW_GATHER_MS));
        int rc = resha_event_wait(&p->many);
        rc = resha_scope_end(&moment, rc);
        return rc == -ETIME && resha_scope_expired(&moment) ? 0 : rc;
}

/* The next batch: 1, or 0 when nothing more will come. */
static int take_batch(struct pipeline *p, struct batch *b)
{
        int rc = resha_queue_get(p->results, &b->jobs[0]);
        if (rc <= 0)
                return rc;
        b->n = 1;
        rc = gather(p);
        while (b->n < STORE_BATCH && resha_queue_try_get(p->results, &b->jobs[b->n]) > 0)
                b->n++;
        return rc < 0 ? rc : 1;
}

static void forget_bytes(struct pipeline *p, const struct batch *b)
{
        for (size_t i = 0; i < b->n; i++) {
                size_t size;
                job_body(b->jobs[i], &size);
                p->result_bytes -= size;
        }
        resha_event_set(&p->room);
}

static int save(struct pipeline *p, struct batch *b)
{
        int rc = 0;
        if (p->o.store)
                rc = store_save(p->o.store, b->jobs, b->n, &p->counts);
        else
                for (size_t i = 0; i < b->n; i++)
                        store_count(&p->counts, b->jobs[i]);
        if (rc >= 0 && p->o.output)
                rc = output_write(p->o.output, b->jobs, b->n);
        if (rc < 0)
                return rc;
        for (size_t i = 0; i < b->n; i++)
                if (b->jobs[i]->outcome == JOB_FAILED)
                        flow_observe(p, &(struct pipeline_event){ .kind = PIPELINE_FAILED, .job = b->jobs[i] });
        flow_observe(p, &(struct pipeline_event){ .kind = PIPELINE_SAVED, .counts = &p->counts });
        return 0;
}

int flow_write(void *arg)
{
        struct pipeline *p = arg;
        struct batch b RESHA_CLEANUP(batch_done) = { .n = 0 };
        int rc;
        while ((rc = take_batch(p, &b)) > 0) {
                rc = save(p, &b);
                forget_bytes(p, &b);
                batch_done(&b);
                if (rc < 0)
                        break;
        }
        return rc;
}
