/* SPDX-License-Identifier: MIT */
#ifndef CLI_STORE_H
#define CLI_STORE_H

/* The database of --db: tables `fetch` (a row for each URL) and `run` (a row for each run), and the table that
 * --columns makes. Their shape is a published interface (docs/fetch.md) with PRAGMA user_version. */

#include <resha/sqlite.h>

#include "clock.h"
#include "derive.h"
#include "job.h"

enum { STORE_VERSION = 1, STORE_BATCH = 512 };

/* Counts of a run, as they stand after what is saved. */
struct counts {
        uint64_t done;      /* good answers, the next two included */
        uint64_t unchanged; /* of these: answered 304 */
        uint64_t already;   /* of these: saved before this run was cut short */
        /* done, the list of ids left out: what table fetch, and the derived one, hold of this run */
        uint64_t rows;
        uint64_t empty; /* answered null: neither stored nor failed */
        uint64_t failed;
        uint64_t bytes; /* of bodies */
};

/* Counts one finished job: what store_save() does for those it saves. */
void store_count(struct counts *c, const struct job *j);

struct store_options {
        const char *path;
        const char *command, *fingerprint; /* of what is fetched, see options.h */
        const struct derive *derive;       /* NULL: none */
        struct clock *clock;
};

struct store;

/* Opens the database, makes the tables, and takes up the last run of the same command if it was cut short within 12
 * hours; else a new run begins. Strings are borrowed. 0; negative with a record. [task] cancellation point */
int store_open(const struct store_options *opts, struct store **ret_store);
void store_close(struct store *s);
void store_closep(struct store **s);

/* The database, for queries. */
resha_sqlite *store_db(struct store *s);

/* Whether a run that was cut short goes on. */
bool store_resumed(const struct store *s);

/* Fills in what is known about the URLs of these jobs: validators, and JOB_ALREADY for those this run has saved. One
 * hop for all; none while the table was empty at the start. [task] cancellation point */
int store_look_up(struct store *s, struct job **jobs, size_t n);

/* Saves finished jobs and the counts that then hold, in one transaction; n up to STORE_BATCH. A body that makes no row
 * turns its job into JOB_FAILED. 0; negative with a record, and nothing is saved. [task] cancellation point */
int store_save(struct store *s, struct job **jobs, size_t n, struct counts *counts);

/* Writes down that the run has ended: "complete" or "interrupted". [task] cancellation point */
int store_end(struct store *s, const char *outcome);

#endif
