/* SPDX-License-Identifier: MIT */
#ifndef RS_PLACES_H
#define RS_PLACES_H

/* Where tasks were spawned, and what there is of each place: see places.c. */

#include "base/json.h"
#include "inspect/stacks.h"
#include "inspect/walk.h"

enum { RS_PLACES = 256 };

struct rs_place {
        const char *site, *name; /* which tells it from others; name NULL: tasks have names of their own there */
        char site_text[RS_SEEN_SITE], name_text[RS_SEEN_NAME];
        size_t tasks;
        size_t high; /* bytes of stack */
        bool exact;
};

struct rs_places {
        size_t n;
        bool full;                           /* some tasks are of none of them */
        unsigned short table[2 * RS_PLACES]; /* index + 1 */
        struct rs_place place[RS_PLACES];
};

/* Of the task that the walk has seen last. */
struct rs_place *rs_places_of(struct rs_places *p, const struct rs_walk *w);

void rs_places_stack(struct rs_place *p, const struct rs_stack_use *use);

/* What the loop knows of tasks that have ended. */
void rs_places_marks(struct rs_places *p, const struct rs_walk *w);

/* A line for each, from *at on; false: there was no room for number *at. */
bool rs_places_put(const struct rs_places *p, uint32_t loop, struct rs_json *j, size_t *at);

#endif
