/* SPDX-License-Identifier: MIT */
/* The ring of events: what is written, by whom, and what a reader gets. */

#include <string.h>

#include "core/core.h"
#include "test.h"

enum { EVENTS = 256, MOST = 4096 };

static struct rs_event read_events[MOST];

/* All that there is. */
static size_t read_all(struct rs_ring_reader *r, bool *ret_gap)
{
        size_t n = 0, part;
        bool gap;

        *ret_gap = false;
        while ((part = rs_ring_read(r, read_events + n, 16, &gap)) || gap) {
                n += part;
                *ret_gap |= gap;
        }
        return n;
}

/* The place of the next event of that kind and task from i on; n: there is none. */
static size_t find(size_t i, size_t n, enum rs_event_kind kind, uint32_t task)
{
        while (i < n && (rs_event_kind(&read_events[i]) != kind || rs_event_task(&read_events[i]) != task))
                i++;
        return i;
}

static void ring_unrefp(struct rs_ring **ring)
{
        rs_ring_unref(*ring);
}

/* The loop's ring, until it is left, or else until the test ends. */
static void leave(struct rs_loop **l)
{
        rs_ring_stop(*l);
}

static int waits(void *arg)
{
        return resha_event_wait(arg);
}

TASK(ring_tells_who_is_spawned_runs_waits_is_woken_and_ends)
{
        struct rs_ring *ring RESHA_CLEANUP(ring_unrefp) = rs_ring_new(EVENTS);
        struct rs_loop *l RESHA_CLEANUP(leave) = rs_loop_current;
        struct rs_ring_reader reader = { .ring = ring };
        resha_event e = { 0 };
        bool gap;

        ASSERT_TRUE(ring);
        reader.at = rs_ring_join(l, rs_ring_ref(ring), true);
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, waits, &e);
        ASSERT_OK(resha_yield());
        resha_event_set(&e);
        ASSERT_OK(resha_group_end(&g, 0));
        rs_ring_leave(l, true);
        ASSERT_PTR(l->ring, NULL);

        size_t n = read_all(&reader, &gap), at;
        uint32_t me = l->current->id, child = me + 1;
        ASSERT_FALSE(gap);
        ASSERT_EQ(rs_event_kind(&read_events[0]), RS_EVENT_TIME);
        at = find(0, n, RS_EVENT_SPAWN, child);
        ASSERT_EQ(read_events[at].body, me);
        at = find(at, n, RS_EVENT_NAME, child);
        ASSERT_STR((const char *)(uintptr_t)read_events[at].body, "waits");
        at = find(at, n, RS_EVENT_RUN, child);
        at = find(at, n, RS_EVENT_PARK, child);
        ASSERT_STR((const char *)(uintptr_t)read_events[at].body, "event");
        at = find(at, n, RS_EVENT_OBJECT, child);
        ASSERT_EQ(read_events[at].body, (uintptr_t)&e);
        at = find(at, n, RS_EVENT_WAKE, child);
        ASSERT_EQ(read_events[at].body, me);
        at = find(at, n, RS_EVENT_PARK, me);
        at = find(at, n, RS_EVENT_RUN, child);
        at = find(at, n, RS_EVENT_END, child);
        at = find(at, n, RS_EVENT_RUN, me);
        ASSERT_TRUE(at < n);
        return 0;
}

TASK(ring_forgets_the_oldest_and_a_reader_is_told)
{
        struct rs_ring *ring RESHA_CLEANUP(ring_unrefp) = rs_ring_new(EVENTS);
        struct rs_loop *l RESHA_CLEANUP(leave) = rs_loop_current;
        struct rs_ring_reader reader = { .ring = ring };
        bool gap;

        ASSERT_TRUE(ring);
        rs_ring_join(l, rs_ring_ref(ring), false);
        for (int i = 0; i < 3 * EVENTS; i++)
                ASSERT_OK(resha_yield());
        rs_ring_leave(l, false);
        size_t n = read_all(&reader, &gap);
        ASSERT_TRUE(gap);
        ASSERT_EQ(n, EVENTS - 1);
        ASSERT_EQ(reader.lost + n, ring->at / sizeof(struct rs_event));
        /* Its name is among what is left, whatever was forgotten. */
        ASSERT_TRUE(find(0, n, RS_EVENT_NAME, l->current->id) < n);
        ASSERT_EQ(read_all(&reader, &gap), 0);
        return 0;
}

static uint64_t drained;
static struct rs_ring_reader own;

static void drain(void *arg)
{
        struct rs_event e[8];
        bool gap;
        size_t n;

        (void)arg;
        while ((n = rs_ring_read(&own, e, 8, &gap)))
                drained += n;
}

static int nothing(void *arg)
{
        (void)arg;
        return 0;
}

TASK(ring_that_is_drained_by_its_loop_loses_nothing_in_one_step)
{
        struct rs_ring *ring RESHA_CLEANUP(ring_unrefp) = rs_ring_new(EVENTS);
        struct rs_loop *l RESHA_CLEANUP(leave) = rs_loop_current;

        ASSERT_TRUE(ring);
        own = (struct rs_ring_reader){ .ring = ring };
        own.at = rs_ring_join(l, rs_ring_ref(ring), true);
        ring->drain = drain;
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (int i = 0; i < 10 * EVENTS; i++) /* each takes three */
                resha_spawn(&g, nothing, NULL);
        ASSERT_OK(resha_group_end(&g, 0));
        rs_ring_leave(l, true);
        ASSERT_EQ(own.lost, 0);
        ASSERT_EQ(drained, ring->at / sizeof(struct rs_event));
        return 0;
}

TASK(since_says_when_a_wait_began)
{
        struct rs_loop *l = rs_loop_current;

        ASSERT_OK(resha_sleep(RESHA_MS(5)));
        int64_t began = l->now;
        ASSERT_OK(resha_sleep(RESHA_MS(5)));
        ASSERT_TRUE(l->current->since >= began - 5000000 && l->current->since <= l->now);
        ASSERT_EQ(sizeof(struct rs_task) % 64, 0);
        return 0;
}
