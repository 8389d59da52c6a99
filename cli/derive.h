/* SPDX-License-Identifier: MIT */
#ifndef CLI_DERIVE_H
#define CLI_DERIVE_H

/* A table of rows made from JSON answers, by SQLite's own JSON functions inside the writer's transaction. */

#include <resha/sqlite.h>

#include "text.h"

struct derive {
        const char *table, *key; /* borrowed */
        struct text names;       /* of the columns, each with a 0 behind it */
        bool own_time;           /* fetched_at is ours: no column of --columns has that name */
        struct text create, check, from_body, from_stored; /* statements */
};

/* What --table, --key and --columns ask for, as SQL; table and key are borrowed. 0; -EINVAL with one line in
 * *ret_problem; -ENOMEM. */
int derive_init(struct derive *d, const char *table, const char *key, const char *columns, struct text *ret_problem);
void derive_done(struct derive *d);

/* Makes the table, adds columns that it lacks, and sees whether rows can be put into it. [tx] */
int derive_create(const struct derive *d, resha_sqlite_tx *tx);

/* Puts the row of a JSON object into the table: 0; -EBADMSG with a record if the body holds no such row; other codes if
 * the database fails. `now` is the time for fetched_at. [tx] */
int derive_body(const struct derive *d, resha_sqlite_tx *tx, const char *body, size_t size, const char *now);

/* The same from what table fetch holds for a URL. [tx] */
int derive_stored(const struct derive *d, resha_sqlite_tx *tx, const char *url, const char *now);

#endif
