/* SPDX-License-Identifier: MIT */
#ifndef CLI_STAGE_H
#define CLI_STAGE_H

/* Where an act of the demo is seen: its title, its length, and the picture of its requests. On a terminal it is redrawn
 * in place while the act runs, at most twenty times a second; elsewhere it is printed once, when the act is over. */

#include <resha/base.h>

#include "lanes.h"
#include "text.h"

struct stage_style {
        bool terminal, ascii, color;
};

struct stage {
        struct stage_style style;
        const char *title;
        unsigned show;    /* lanes; 0: all */
        const char *more; /* said where lanes are left out, with their number */
        struct lanes lanes;
        unsigned drawn; /* lines on the screen */
};

/* How it is with this stdout, locale and environment. */
struct stage_style stage_style_here(void);

/* Runs fn(arg), which begins and ends blocks in `lanes`, and shows the picture. Its result. [task] cancellation point
 */
int stage_play(struct stage *s, resha_fn *fn, void *arg);

/* How lanes are drawn there: 200 ms are three columns, indented by as many. */
struct lanes_style stage_lanes_style(const struct stage_style *style);

/* Writes to stdout at once. */
void stage_put(const struct text *t);

#endif
