/* SPDX-License-Identifier: MIT */
#ifndef CLI_GLIMPSE_H
#define CLI_GLIMPSE_H

/* An act of the demo: who waits for what, as its own inspector tells it. */

#include "stage.h"

struct glimpse {
        struct text tree; /* what was seen; else why nothing was */
        resha_duration after;
};

/* A task: waits until `after` has passed, then looks. */
int glimpse_take(void *glimpse);

/* What was seen. */
void glimpse_show(struct glimpse *g);
void glimpse_done(struct glimpse *g);

#endif
