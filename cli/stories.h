/* SPDX-License-Identifier: MIT */
#ifndef CLI_STORIES_H
#define CLI_STORIES_H

/* Made-up stories in the shape of the Hacker News API: the same ones on every run. */

#include "text.h"

enum { STORIES_FIRST_ID = 1001 }; /* of rank 1 */

/* `[1001,1002,...]`, n ids. */
void stories_add_ids(struct text *t, uint64_t n);

/* The story of a rank, from 1, as JSON of about `size` bytes: filled up with a field "text" if it is shorter; 0: as it
 * is. */
void stories_add(struct text *t, uint64_t rank, size_t size);

#endif
