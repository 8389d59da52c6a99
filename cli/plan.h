/* SPDX-License-Identifier: MIT */
#ifndef CLI_PLAN_H
#define CLI_PLAN_H

/* What to fetch, in order, made as it is needed: arguments, then a list, or a template with ids. */

#include "ids.h"
#include "job.h"
#include "list.h"

struct plan_options {
        const char *const *urls;
        size_t n_urls;
        struct list *list;    /* taken over; or NULL */
        const char *each;     /* where the ids come from; then urls[0] is the template */
        const char *ids_path; /* or NULL */
        const char *base_url; /* or NULL */
        uint64_t first;       /* at most so many URLs; 0: all */
};

struct plan;

/* Strings are borrowed. 0 or -ENOMEM. */
int plan_new(const struct plan_options *opts, struct plan **ret_plan);
void plan_free(struct plan *p);
void plan_freep(struct plan **p);

/* The request whose answer is the list of ids: 1 and a job that the caller owns; 0 if there is none. Negative with a
 * record. Once. */
int plan_ids_job(struct plan *p, struct job **ret_job);

/* That answer. db reads the JSON. 0 or negative with a record. [task] cancellation point */
int plan_take_ids(struct plan *p, resha_sqlite *db, const char *json, size_t size);

/* Reads ids that come from a file or a query; nothing if they do not. [task] cancellation point */
int plan_load_ids(struct plan *p, resha_sqlite *db);

/* The next one: 1 and a job that the caller owns (JOB_FAILED already if it is no URL); 0 at the end; -EAGAIN without
 * `wait` where it would have to wait; other negative codes with a record. [task] cancellation point if `wait` */
int plan_next(struct plan *p, bool wait, struct job **ret_job);

/* How many there will be, the list of ids not counted; -1 while that is not known. */
int64_t plan_total(const struct plan *p);

/* Whether the list of ids is fetched, not read. */
bool plan_has_ids_job(const struct plan *p);

/* Whether the JSON of ids must be read, for which a database is needed. */
bool plan_has_ids(const struct plan *p);

#endif
