/* SPDX-License-Identifier: MIT */
#ifndef CLI_TREE_H
#define CLI_TREE_H

/* Trees of tasks, for who looks at one of them. */

#include "view.h"

/* Draws the group of that row of the snapshot, and what is in it. 0, -ENOMEM. */
int tree_add_group(const struct view *v, int32_t row, struct text *t);

#endif
