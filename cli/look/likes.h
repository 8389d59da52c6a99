/* SPDX-License-Identifier: MIT */
#ifndef CLI_LIKES_H
#define CLI_LIKES_H

/* Which tasks are alike: ten thousand that wait for the same are one fact. */

#include "cycles.h"

/* Equal for tasks that are told of in the same words, but for their number and times. */
uint64_t likes_key(const struct task_row *task);

/* Equal for tasks of the same name and place that wait for the same kind of thing, whichever. */
uint64_t likes_kind(const struct task_row *task);

/* Whether a task is to be seen by itself: it is in a circle, runs, or ignores a cancel. */
bool likes_none(const struct task_row *task, uint32_t circle);

struct like {
        uint64_t key;
        int32_t first; /* the row of the one that has waited longest */
        uint32_t n;
        uint32_t order; /* in which keys came */
};

/* Those of the rows that are alike, in the order in which they came. */
struct likes {
        struct like *like;
        size_t n, cap;
        struct keep_index at;
};

#define LIKES(l) struct likes l RESHA_CLEANUP(likes_done) = { .n = 0 }

void likes_done(struct likes *l);
/* 0, -ENOMEM. */
int likes_add(struct likes *l, const struct snapshot *s, uint64_t key, int32_t row);

#endif
