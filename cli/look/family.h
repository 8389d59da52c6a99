/* SPDX-License-Identifier: MIT */
#ifndef CLI_FAMILY_H
#define CLI_FAMILY_H

/* Who belongs to whom in a snapshot, as lists of rows: which scopes a task has open, which scopes lie in those, which
 * tasks run in a group. Rows are indices; NO_ROW: none. */

#include "snapshot.h"

struct family {
        int32_t *scope_first; /* of a task: its outermost scopes */
        int32_t *scope_next;  /* of a scope: the next in its list */
        int32_t *inner_first; /* of a scope: those of the same task that lie in it */
        int32_t *task_first;  /* of a scope: the tasks of the group */
        int32_t *task_next;   /* of a task: the next in its group, or among those without one */
        int32_t root_first;   /* tasks whose group did not come */
};

#define FAMILY(f) struct family f RESHA_CLEANUP(family_done) = { .root_first = NO_ROW }

void family_done(struct family *f);
/* 0, -ENOMEM. */
int family_init(struct family *f, const struct snapshot *s);

#endif
