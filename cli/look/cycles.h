/* SPDX-License-Identifier: MIT */
#ifndef CLI_CYCLES_H
#define CLI_CYCLES_H

/* Tasks that wait for each other in a circle: nothing in it goes on unless something outside cancels it. */

#include "family.h"

struct cycles {
        uint32_t *of;   /* of each task: the number of its circle, from 1; 0: it is in none */
        int32_t *next;  /* of a task in a circle: the one that it waits for */
        int32_t *first; /* of each circle, from number 1 on at [0] */
        size_t n, cap;
};

#define CYCLES(c) struct cycles c RESHA_CLEANUP(cycles_done) = { .n = 0 }

void cycles_done(struct cycles *c);

/* Finds at least one circle in each knot of them; a task is in one circle at most. 0, -ENOMEM. */
int cycles_init(struct cycles *c, const struct snapshot *s, const struct family *f);

#endif
