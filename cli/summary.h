/* SPDX-License-Identifier: MIT */
#ifndef CLI_SUMMARY_H
#define CLI_SUMMARY_H

/* --summary FILE: one JSON object about a run, for scripts. */

#include "pipeline.h"

struct summary;

/* Opens the file, so that a path that cannot be written is found before anything is fetched. 0; negative with a record.
 * [any-thread] */
int summary_open(const char *path, struct summary **ret_summary);

/* Remembers a failed job, of the first hundred. */
void summary_add_failure(struct summary *s, const struct job *job);

struct summary_facts {
        const char *command, *outcome; /* "complete", "interrupted", "failed" */
        char started[CLOCK_TEXT], ended[CLOCK_TEXT];
        resha_duration took;
        int exit_code;
        bool resumed;
};

/* Writes it. 0; negative with a record. */
int summary_write(struct summary *s, const struct summary_facts *facts, const struct pipeline *p);

/* NULL is fine. */
void summary_free(struct summary *s);
void summary_freep(struct summary **s);

#endif
