/* SPDX-License-Identifier: MIT */
#ifndef CLI_COMPUTING_H
#define CLI_COMPUTING_H

/* An act of the demo: work that computes. */

#include <resha/resha.h>

#include "stage.h"

enum { COMPUTING_JOBS = 4 };

struct computing {
        resha_workers *workers; /* NULL: why_not */
        resha_error why_not;
        resha_error errors[COMPUTING_JOBS]; /* of the jobs in processes */
};

/* Starts processes. In main(), before there are threads and runs. */
void computing_init(struct computing *c);
void computing_done(struct computing *c);

/* Four jobs: as tasks, on threads, in processes, on loops. [task] cancellation point */
int computing_play(struct computing *c, const struct stage_style *style);

#endif
