/* SPDX-License-Identifier: MIT */
#ifndef CLI_IDS_H
#define CLI_IDS_H

/* The ids that fill the {} of a URL: from lines, from JSON, from a query. */

#include <resha/base.h>
#include <resha/sqlite.h>

#include "text.h"

struct ids {
        struct text bytes; /* each id with a 0 behind it */
        size_t next;
        uint64_t count;
};

#define IDS(i) struct ids i RESHA_CLEANUP(ids_done) = { .next = 0 }

void ids_done(struct ids *ids);

/* Adds the ids in a JSON text: the elements of the array at `path`, or with [*] in it what it names in each element, as
 * "$.items[*].id"; NULL: "$". Numbers and texts are ids. SQLite reads the JSON, on db's thread. 0; -EINVAL with a
 * record. [task] cancellation point */
int ids_add_json(struct ids *ids, resha_sqlite *db, const char *json, size_t size, const char *path);

/* Adds those of a file or stdin ("-"): JSON if it begins with [ or {, else one a line. [task] cancellation point */
int ids_add_file(struct ids *ids, resha_sqlite *db, const char *file, const char *path);

/* Adds the first column of a query. [task] cancellation point */
int ids_add_query(struct ids *ids, resha_sqlite *db, const char *sql);

/* The next one: 1, or 0 at the end. */
int ids_next(struct ids *ids, const char **ret_id, size_t *ret_size);

#endif
