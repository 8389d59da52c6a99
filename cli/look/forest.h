/* SPDX-License-Identifier: MIT */
#ifndef CLI_FOREST_H
#define CLI_FOREST_H

/* A tree of tasks and scopes for each loop, and which branches of it are alike. */

#include "view.h"

struct node {
        int32_t row;                 /* of a task, or of a scope */
        int32_t parent, first, next; /* nodes; NO_ROW */
        bool is_scope;
        bool alone;     /* it is not to be left out, nor is what is above it */
        uint32_t tasks; /* in the whole branch */
        uint64_t shape; /* equal for branches that are alike */
        uint64_t kind;  /* equal for those that are roughly alike */
};

struct forest {
        struct node *node; /* parents before their children */
        size_t n;
        int32_t *roots; /* for each loop of the snapshot, the first node; the others by `next` */
};

#define FOREST(f) struct forest f RESHA_CLEANUP(forest_done) = { .n = 0 }

void forest_done(struct forest *f);
/* 0, -ENOMEM. */
int forest_init(struct forest *f, const struct view *v);

#endif
