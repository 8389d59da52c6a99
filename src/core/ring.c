/* SPDX-License-Identifier: MIT */
/* Writing to the event ring. Strings that are not static are copied, cut, since a task is gone when the ring is read.
 * */

#include <stdio.h>
#include <string.h>

#include "core/core.h"

void rs_ring_write(struct rs_loop *l, enum rs_event_kind kind, const struct rs_task *t, const char *name, int code)
{
        struct rs_event *e = &l->ring->events[l->ring->count++ % RS_RING_EVENTS];

        *e = (struct rs_event){ .at = rs_now(l), .task = t->id, .kind = (uint16_t)kind, .code = (int16_t)code };
        if (kind == RS_EVENT_SPAWN) {
                e->name = t->name;
                e->site = t->site;
                e->parent = l->current ? l->current->id : 0;
        } else if (kind == RS_EVENT_NAME) {
                snprintf(e->label, sizeof e->label, "%s", name);
        } else {
                e->name = name;
        }
}
