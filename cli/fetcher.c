/* SPDX-License-Identifier: MIT */

/* A fetcher: takes a job, makes one attempt, and decides what it came to. It holds a place only while the attempt is in
 * flight: a job that may be tried again, or whose host may not be asked yet, goes to the waiting room, and the fetcher
 * takes the next. */

#include "flow.h"

#include <string.h>

#include <resha/alloc.h>
#include <resha/error.h>

#include "status.h"
#include "text.h"

static int request(struct pipeline *p, struct job *job, resha_instant now, resha_response **ret_response)
{
        resha_http_header headers[2];
        size_t n = 0;
        if (job->etag)
                headers[n++] = (resha_http_header){ "If-None-Match", job->etag };
        if (job->last_modified)
                headers[n++] = (resha_http_header){ "If-Modified-Since", job->last_modified };
        int64_t left = p->o.retry.total.ns - resha_between(job->started, now).ns;
        resha_duration total = left < p->o.timeout.ns ? RESHA_NS(left > 0 ? left : 1) : p->o.timeout;
        return resha_http_request(
                p->o.session,
                &(resha_request){ .url = job->url, .headers = headers, .header_count = n, .total = total },
                ret_response);
}

static bool is_null(const resha_response *r)
{
        size_t size;
        const char *body = resha_response_body(r, &size);
        while (size && strchr(" \t\r\n", body[size - 1]))
                size--;
        return size == 4 && memcmp(body, "null", 4) == 0;
}

/* One line that says why: "404 Not Found", or the text of the error without the method and URL in front, which stand
 * beside it anyway. */
static void fail_job(struct job *job, int rc, const struct retry_facts *facts, enum retry_verdict verdict,
                     resha_duration asked)
{
        TEXT(why);
        if (rc < 0)
                status_add_error(&why, rc);
        else
                status_add(&why, job->status);
        if (verdict == RETRY_TOO_LONG) {
                text_puts(&why, "; asks to wait ");
                text_add_duration(&why, asked);
                text_puts(&why, ", longer than --retry-for leaves");
        } else if (job->attempts > 1) {
                text_printf(&why, " (%u attempts in ", job->attempts);
                text_add_duration(&why, facts->spent);
                text_putc(&why, ')');
        }
        job_fail(job, text_string(&why));
}

static int64_t server_time(struct pipeline *p, const resha_response *r)
{
        int64_t ms;
        const char *date = r ? resha_response_header(r, "date") : NULL;
        return date && clock_parse_http_date(date, &ms) == 0 ? ms : clock_ms(p->o.clock, resha_now());
}

/* The job goes to the waiting room, or is given up because of a stop: 1; or it has failed: 0. */
static int try_again(struct pipeline *p, struct job *job, int rc, const resha_response *r)
{
        struct retry_facts facts = {
                .rc = rc,
                .status = job->status,
                .attempts = job->attempts,
                .spent = resha_between(job->started, job->finished),
                .retry_after = r ? resha_response_header(r, "retry-after") : NULL,
        };
        if (facts.retry_after)
                facts.now_ms = server_time(p, r);
        resha_duration delay = RESHA_NS(0);
        enum retry_verdict verdict = retry_decide(&p->o.retry, &facts, &p->rng, &delay);
        if (facts.status == 429 && facts.retry_after && delay.ns > 0)
                hosts_pause(p->o.hosts, job->url, resha_after(delay));
        job->due = resha_after(delay);
        job->waited = true;
        if (verdict == RETRY_AGAIN && p->stopping) {
                flow_drop(p, job);
                return 1;
        }
        if (verdict == RETRY_AGAIN && flow_wait_add(p, job) == 0) {
                p->retries++;
                flow_observe(p, &(struct pipeline_event){ .kind = PIPELINE_RETRY,
                                                          .job = job,
                                                          .rc = rc,
                                                          .status = job->status,
                                                          .delay = delay,
                                                          .asked = facts.retry_after != NULL });
                return 1;
        }
        fail_job(job, rc, &facts, verdict, delay);
        return 0;
}

/* The list of ids has come, or will not come. */
static int take_ids(struct pipeline *p, struct job *job)
{
        size_t size;
        const char *body = job_body(job, &size);
        if (job->outcome == JOB_DONE) {
                int rc = plan_take_ids(p->o.plan, p->o.json, body, size);
                if (rc == -ECANCELED)
                        return rc;
                if (rc < 0) {
                        TEXT(why);
                        text_printf(&why, "no list of ids: %s", resha_error_of(rc)->text);
                        job_fail(job, text_string(&why));
                }
        }
        resha_event_set(&p->ids_taken);
        return 0;
}

/* What the attempt came to. The job is somebody else's afterwards. */
static int settle(struct pipeline *p, struct job *job, int rc, resha_response *response)
{
        int status = job->status;
        if (rc >= 0 && status == 304 && (job->etag || job->last_modified)) {
                job->outcome = JOB_UNCHANGED;
        } else if (rc >= 0 && status >= 200 && status <= 299) {
                bool empty = p->o.null_is_empty && job->kind == JOB_URL && is_null(response);
                job->outcome = empty ? JOB_EMPTY : JOB_DONE;
                job_take_answer(job, response);
                response = NULL;
        } else if (try_again(p, job, rc, response)) {
                resha_response_free(response);
                return 0;
        }
        resha_response_free(response);
        if (job->outcome != JOB_FAILED)
                flow_add_fetcher(p);
        rc = job->kind == JOB_IDS ? take_ids(p, job) : 0;
        if (rc < 0) {
                flow_drop(p, job);
                return rc;
        }
        return flow_finish(p, job);
}

/* One attempt at a job that may go out now. */
static int attempt(struct pipeline *p, struct job *job)
{
        resha_response *response = NULL;
        resha_instant start = resha_now();
        if (job->attempts++ == 0)
                job->started = start;
        p->requests++;
        flow_observe(p, &(struct pipeline_event){ .kind = PIPELINE_STARTED, .job = job });
        int rc = request(p, job, start, &response);
        job->finished = rc < 0 ? resha_now() : (resha_instant){ start.ns + resha_response_timings(response)->total.ns };
        job->status = rc >= 0 ? resha_response_status(response) : 0;
        flow_observe(p, &(struct pipeline_event){ .kind = PIPELINE_ANSWERED,
                                                  .job = job,
                                                  .rc = rc,
                                                  .status = job->status,
                                                  .took = resha_between(start, job->finished) });
        if (rc == -ECANCELED) {
                flow_drop(p, job);
                return p->stopping ? 0 : rc;
        }
        return settle(p, job, rc, response);
}

/* What is to be done with a job from the ready queue. */
static int take(struct pipeline *p, struct job *job)
{
        if (p->stopping) {
                flow_drop(p, job);
                return 0;
        }
        int rc = hosts_ask(p->o.hosts, job->url, job->waited, &job->due);
        if (rc > 0)
                return attempt(p, job);
        job->waited = true;
        if (rc == 0)
                rc = flow_wait_add(p, job);
        if (rc < 0)
                flow_drop(p, job);
        return rc;
}

int flow_fetch(void *arg)
{
        struct pipeline *p = arg;
        struct job *job;
        int rc;
        while ((rc = resha_queue_get(p->ready, &job)) > 0)
                if ((rc = take(p, job)) < 0)
                        break;
        return rc;
}
