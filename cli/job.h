/* SPDX-License-Identifier: MIT */
#ifndef CLI_JOB_H
#define CLI_JOB_H

/* One URL on its way through the pipeline: from the plan, through attempts, to the writer. Owned by one of them at a
 * time. */

#include <resha/base.h>
#include <resha/http.h>
#include <resha/time.h>

#include "clock.h"

enum job_kind {
        JOB_URL,
        JOB_IDS, /* the list that --each names: its answer makes the rest of the plan */
};

enum job_outcome {
        JOB_OPEN,
        JOB_DONE,      /* a good answer */
        JOB_UNCHANGED, /* 304: what is stored still holds */
        JOB_EMPTY,     /* the answer is `null`: there is nothing to store */
        JOB_FAILED,    /* `error` says why */
        JOB_ALREADY,   /* fetched by this run before it was cut short */
};

enum { JOB_ROOM = 1000 }; /* bytes of an answer that lie in the job itself */

/* What is kept of an answer: for most it is copied into the job, and the response is free for the next one while it is
 * in the caches. A batch of jobs is then some hundred blocks of memory that another thread reads, not two thousand. */
struct answer {
        const char *content_type, *etag, *last_modified; /* NULL: it says none */
        const char *body;                                /* NULL: there is no answer */
        size_t size;
        resha_response *whole; /* what all of that lies in, if it is too large for the room; owned */
};

struct job {
        struct job *next; /* in whatever list it is */
        uint64_t number;  /* in the plan, from 1; the list of ids is 0 */
        enum job_kind kind;
        const char *url;            /* to ask for */
        const char *key;            /* without user information: shown and stored */
        char *etag, *last_modified; /* of what is stored, or NULL */
        unsigned attempts;
        resha_instant started, finished; /* first attempt's start, last one's end */
        bool waited;                     /* it has had to wait before: its host's turn is its own */
        resha_instant due;               /* while it waits for its next attempt */
        enum job_outcome outcome;
        int status;           /* of the last answer, 0 if there was none */
        struct answer answer; /* of JOB_DONE and JOB_EMPTY */
        char *error;          /* of JOB_FAILED: one line */
        char started_text[CLOCK_TEXT], finished_text[CLOCK_TEXT];
        char *room;  /* of JOB_ROOM bytes */
        char data[]; /* url, key and room */
};

/* A job for url; key is made from it. NULL if there is no memory. */
struct job *job_new(enum job_kind kind, uint64_t number, const char *url, size_t size);
void job_free(struct job *j);
void job_freep(struct job **j);

/* The drop function of queues of struct job *. */
void job_drop(void *item);

/* Its answer, which is the job's from now on. */
void job_take_answer(struct job *j, resha_response *response);

/* Ends it as failed with a copy of `text`. */
void job_fail(struct job *j, const char *text);

/* Whether this run had saved it before it was cut short, so that it was not asked for again. */
bool job_is_old(const struct job *j);

/* The body of its answer; "" and 0 if there is none. */
const char *job_body(const struct job *j, size_t *ret_size);

#endif
