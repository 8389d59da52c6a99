/* SPDX-License-Identifier: MIT */
/* The event: a flag and those who wait for it. */

#include "sync/event.h"
#include "sync/line.h"
#include "sync/waited.h"

struct event {
        struct rs_list waiters; /* of rs_wait.node; empty while set */
        bool set;
};

_Static_assert(sizeof(struct event) <= sizeof(resha_event), "resha_event is too small");

int rs_line_refuse(const char *what)
{
        return rs_misuse(-EPERM,
                         "tasks of another loop wait at this %s: it is for one loop's tasks; between loops there are "
                         "channels (resha/channel.h)",
                         what);
}

static struct event *event_of(resha_event *e)
{
        return (struct event *)(void *)e;
}

struct rs_list *rs_event_line(resha_event *e)
{
        return &event_of(e)->waiters;
}

static void event_cancel(struct rs_wait *w)
{
        rs_list_remove(&event_of((resha_event *)(uintptr_t)w->object)->waiters, &w->node);
        rs_wake(w, -ECANCELED);
}

void resha_event_set(resha_event *event)
{
        struct event *e = event_of(event);
        struct rs_node *n;

        rs_wake_check(&e->waiters);
        e->set = true;
        while ((n = rs_list_pop(&e->waiters)))
                rs_wake(RS_CONTAINER(n, struct rs_wait, node), 0);
}

void resha_event_clear(resha_event *e)
{
        event_of(e)->set = false;
}

bool resha_event_is_set(const resha_event *e)
{
        return ((const struct event *)(const void *)e)->set;
}

int resha_event_wait(resha_event *event)
{
        struct event *e = event_of(event);
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (rc < 0)
                return rc;
        if (e->set)
                return rs_complete(l, 0);
        if (rs_line_elsewhere(l, &e->waiters))
                return rs_line_refuse("event");
        struct rs_wait w = { .cancel = event_cancel, .what = "event", .object = e };
        rs_list_push(&e->waiters, &w.node);
        return (int)rs_wait(l, &w);
}

/* ---- for who looks from outside ---- */

static void event_see(const struct rs_reader *r, const struct rs_wait *at, const struct rs_wait *w,
                      struct rs_waited *ret)
{
        struct event e;

        (void)at;
        if (!r->read(&e, w->object, sizeof e))
                return;
        ret->kind = "event";
        ret->waiting = rs_waited_count(r, w, &e.waiters);
}

const struct rs_waits rs_event_waits = { .cancel = event_cancel, .see = event_see };
