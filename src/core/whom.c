/* SPDX-License-Identifier: MIT */
/* Waits for tasks that can be named, and circles of them.
 *
 * Each such wait, when it begins, looks whether it waits for itself by way of others: a walk from task to task along
 * what each waits for, for as long as each does. Where the owner of a contended mutex runs, or waits for the world, it
 * ends at the first step. A task that has children branches; they wait for what they like. Children alone make no
 * circle, so a group that is joined looks only if somebody waits for something else than children.
 *
 * A circle is told of by the loop at its next visit, if it is there still: then the sink does not run on the small
 * stack of a task, and a circle that a cancel breaks at once is none. */

#include "core/core.h"

enum { RS_CIRCLE_STEPS = 1000 }; /* at most, beside the children of the one who asks */

static bool waits_for_tasks(const struct rs_task *t)
{
        return t->wait && t->whom;
}

/* The way that the search has come by, turned round: from t to each one's next, and back to t. */
static struct rs_task *turn_round(struct rs_task *last, struct rs_task *t)
{
        struct rs_task *next = t;

        for (struct rs_task *p = last, *before; p != t; p = before) {
                before = p->link;
                p->link = next;
                next = p;
        }
        t->link = next;
        return next;
}

/* Depth first; each task is visited once, and knows by `link` from where. */
struct rs_task *rs_circle_find(struct rs_loop *l, struct rs_task *t)
{
        struct rs_task *at = t;
        const struct rs_task *after = NULL;
        uint32_t number = ++l->searches;
        unsigned steps = 0;

        while (steps < RS_CIRCLE_STEPS) {
                struct rs_task *next = at->whom->next(at->wait, after);

                steps += at != t;
                if (next == t)
                        return turn_round(at, t);
                if (next && waits_for_tasks(next) && next->searched != number) {
                        next->searched = number;
                        next->link = at;
                        at = next;
                        after = NULL;
                } else if (next) {
                        after = next;
                } else if (at != t) {
                        after = at;
                        at = at->link;
                } else {
                        break;
                }
        }
        return NULL;
}

void rs_circle_check(struct rs_loop *l, struct rs_task *t, struct rs_wait *w)
{
        w->task = t;
        t->wait = w;
        if (RS_UNLIKELY(rs_circle_find(l, t) != NULL))
                t->circle = l->circles = true;
}
