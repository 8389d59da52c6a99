/* SPDX-License-Identifier: MIT */
#ifndef CLI_PICTURES_H
#define CLI_PICTURES_H

/* What resha ps, tree and stack print of a snapshot. 0, -ENOMEM. */

#include "view.h"

int ps_add(const struct view *v, const struct asked *a, struct text *t);
int tree_add(const struct view *v, bool all, struct text *t);
int stack_add(const struct view *v, bool all, struct text *t);

#endif
