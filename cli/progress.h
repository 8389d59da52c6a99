/* SPDX-License-Identifier: MIT */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

/* What people see on stderr: one line for each failure, a progress line on a terminal, and a last line. */

#include "pipeline.h"

enum { PROGRESS_SAMPLES = 32 };

struct progress {
        const char *prefix; /* of lines that report failures, "resha fetch" */
        const struct pipeline *pipeline;
        resha_instant started;
        bool quiet, verbose, terminal;
        bool shown; /* a progress line stands on the screen */
        struct {
                resha_instant at;
                uint64_t finished;
        } samples[PROGRESS_SAMPLES]; /* the last seconds, for the rate */
        unsigned n_samples;
};

void progress_init(struct progress *p, const char *prefix, bool quiet, bool verbose);

/* Prints one line, above the progress line. Always, also when quiet. */
void progress_say(struct progress *p, const char *format, ...) RESHA_PRINTF(2, 3);

/* The observer of a pipeline: prints failures, and with -v each request and "saved N". */
void progress_event(void *progress, const struct pipeline_event *event);

/* A task that draws the progress line ten times a second at most; it runs until it is cancelled. */
int progress_draw(void *progress);

/* "21 of 21  0 failed  1.2 s", once, at the end. */
void progress_finish(struct progress *p);

#endif
