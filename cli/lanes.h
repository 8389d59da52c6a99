/* SPDX-License-Identifier: MIT */
#ifndef CLI_LANES_H
#define CLI_LANES_H

/* A picture of requests in time: a lane is a place in flight, a block is a request. Recorded from real events. */

#include "text.h"

enum { LANES_MAX_BLOCKS = 256, LANES_MAX = 64, LANES_LABEL = 8 };

struct block {
        resha_duration start, end; /* since the start of the picture; end below 0: not over */
        unsigned lane;
        bool bad; /* it failed */
        char label[LANES_LABEL];
};

struct lanes {
        resha_instant from;
        struct block blocks[LANES_MAX_BLOCKS];
        size_t n_blocks;
        unsigned n_lanes;
};

struct lanes_style {
        bool ascii, color;
        resha_duration unit; /* so much time ... */
        unsigned columns;    /* ... is so wide */
        unsigned indent;     /* columns before each lane */
        unsigned show;       /* lanes shown; 0: all */
};

void lanes_init(struct lanes *l);

/* A request begins, in the first free lane. Its number, to end it with; -1 if the picture is full. */
int lanes_begin(struct lanes *l, const char *label);

/* The same in the lane of a block that has just ended. */
int lanes_begin_after(struct lanes *l, int block, const char *label);

/* It ends. `mark`: a letter in front of the label, as x for one that failed and is tried again, 0 for none. */
void lanes_end(struct lanes *l, int block, bool bad, char mark);

/* A block that is over, in the first lane that was free when it began. Blocks are added in the order of their
 * starts. */
void lanes_add(struct lanes *l, const char *label, resha_instant start, resha_instant end, bool bad);

/* From the start of the picture to the end of the last block, or to now while one is not over. */
resha_duration lanes_length(const struct lanes *l);

/* Adds the picture, a line for each lane, up to now. Returns the number of lines. */
unsigned lanes_draw(const struct lanes *l, const struct lanes_style *style, struct text *t);

#endif
