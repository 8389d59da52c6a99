/* SPDX-License-Identifier: MIT */
#ifndef CLI_PIPELINE_H
#define CLI_PIPELINE_H

/* The pipeline: plan -> requests -> writer. It knows no options, no terminal and no signals; tests run it in the
 * simulated world over a mock transport. */

#include <resha/http.h>
#include <resha/sqlite.h>
#include <resha/time.h>

#include "clock.h"
#include "hosts.h"
#include "output.h"
#include "plan.h"
#include "retry.h"
#include "store.h"

enum pipeline_event_kind {
        PIPELINE_STARTED,  /* an attempt goes out */
        PIPELINE_ANSWERED, /* it has ended: rc, and status if rc is 0 */
        PIPELINE_RETRY,    /* and will be made again after `delay`; `asked` if the server asked for that delay */
        PIPELINE_FAILED,   /* a job has failed and that is written down */
        PIPELINE_SAVED,    /* a batch is written down: counts hold */
};

struct pipeline_event {
        enum pipeline_event_kind kind;
        const struct job *job;
        int rc, status;
        resha_duration took;  /* of PIPELINE_ANSWERED */
        resha_duration delay; /* of PIPELINE_RETRY */
        bool asked;
        const struct counts *counts;
};

struct pipeline_options {
        struct plan *plan;
        resha_http *session;
        resha_sqlite *json;    /* reads the JSON of ids; needed if the plan has ids */
        struct store *store;   /* NULL: nothing is stored */
        struct output *output; /* NULL: nothing is printed */
        struct hosts *hosts;
        struct clock *clock;
        unsigned concurrency;   /* requests in flight */
        bool at_once;           /* all of them from the start; else 8, and one more with each success */
        bool null_is_empty;     /* an answer `null` counts as empty */
        resha_duration timeout; /* of one attempt */
        struct retry_policy retry;
        resha_duration grace; /* after pipeline_stop(), for what is in flight */
        uint64_t seed;        /* of jitter */
        /* on the loop's thread, never suspends; NULL: nobody */
        void (*observe)(void *arg, const struct pipeline_event *event);
        void *observe_arg;
};

struct pipeline;

/* 0 or -ENOMEM. Everything is borrowed until pipeline_free(). [loop] */
int pipeline_new(const struct pipeline_options *opts, struct pipeline **ret_pipeline);
void pipeline_free(struct pipeline *p);
void pipeline_freep(struct pipeline **p);

/* Runs it to its end. 0 when the plan is used up or after a stop, whatever became of single URLs; negative with a
 * record if the plan cannot be read or results cannot be written. What was counted is written down in any case. [task]
 * cancellation point */
int pipeline_run(struct pipeline *p);

/* Starts nothing more and gives what is in flight its grace. [loop] */
void pipeline_stop(struct pipeline *p);
bool pipeline_stopped(const struct pipeline *p);

/* What is written down so far. */
const struct counts *pipeline_counts(const struct pipeline *p);

/* How many URLs there are in all, the list of ids included; -1 while that is not known. */
int64_t pipeline_total(const struct pipeline *p);

/* Attempts made so far, and how many of them were not the first. */
uint64_t pipeline_requests(const struct pipeline *p);
uint64_t pipeline_retries(const struct pipeline *p);

/* The error of pipeline_run() came from reading the plan, not from writing results. */
bool pipeline_plan_failed(const struct pipeline *p);

#endif
