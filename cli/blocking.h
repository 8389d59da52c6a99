/* SPDX-License-Identifier: MIT */
#ifndef CLI_BLOCKING_H
#define CLI_BLOCKING_H

/* An act of the demo: work that blocks. */

#include <stdatomic.h>

#include <resha/resha.h>

#include "stage.h"

struct blocking {
        atomic_int seen; /* an enum of blocking.c: whether `text` is to be written, or may be read */
        char text[512];
};

/* The sink of the run's reports, with a struct blocking. */
void blocking_report(const resha_report *report, void *blocking);

/* Fifteen stories from that server, one of which is parsed by a call that blocks: in its task, then on a thread. [task]
 * cancellation point */
int blocking_play(struct blocking *b, const struct stage_style *style, const char *url);

#endif
