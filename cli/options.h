/* SPDX-License-Identifier: MIT */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

/* The options of `resha fetch`, from the command line, from a preset and from --config: one table for all
 * (options.c). */

#include <resha/base.h>
#include <resha/http.h>
#include <resha/time.h>

#include "number.h"
#include "text.h"

enum { MAX_HEADERS = 32, MAX_RATES = 4, MAX_CONCURRENCY = 4096 };

/* Strings are borrowed from argv or from `kept`. */
struct options {
        /* what */
        const char **urls; /* positional arguments; `url` of a preset is one */
        size_t n_urls;
        const char *input, *each, *ids, *base_url;
        uint64_t first; /* 0: all */
        resha_http_header headers[MAX_HEADERS];
        size_t n_headers;
        /* where to */
        const char *db, *table, *key, *columns, *output, *summary;
        /* how hard */
        uint64_t concurrency, retries, max_body;
        struct rate rates[MAX_RATES];
        size_t n_rates;
        resha_duration timeout, connect_timeout, retry_for;
        /* the rest */
        bool quiet, verbose, help, version;
        const char *preset;                       /* its name, if one was asked for */
        const char *closing_line, *closing_query; /* of a preset: what to say at the end */

        uint64_t given; /* bit i: the i-th option of the table was given (by whoever comes first) */
        void *kept;     /* memory of strings that are not argv's */
};

#define OPTIONS(o) struct options o RESHA_CLEANUP(options_done) = { .urls = NULL }

void options_init(struct options *o);
void options_done(struct options *o);

/* Memory of `size` bytes that lives as long as the options; NULL if there is none. */
void *options_keep(struct options *o, size_t size);

/* Reads the command line behind "resha fetch". 0, or -EINVAL with one line in *ret_problem. Values of -H are wiped from
 * argv. */
int options_parse(struct options *o, int argc, char **argv, struct text *ret_problem);

/* Sets one option by its long name, as a line of a preset does; where it was given before, nothing. value NULL: none
 * was written. */
int options_set(struct options *o, const char *name, const char *value, struct text *ret_problem);

/* The long name of the i-th option that people may write, NULL behind the last; and whether there is one of a name. */
const char *options_name(size_t i);
bool options_has(const char *name);

/* Whether they fit together. 0, or -EINVAL with one line. */
int options_check(const struct options *o, struct text *ret_problem);

/* Adds what is fetched and where it goes, without secrets and without how fast: the command as `run.command` keeps
 * it. */
void options_add_command(const struct options *o, struct text *t);

/* A fingerprint of such a text, 16 hexadecimal digits: equal for "the same command again". */
void options_fingerprint(const char *command, char ret_hex[17]);

#endif
