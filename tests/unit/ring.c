/* SPDX-License-Identifier: MIT */
/* Rings as their readers see them, who are slower than the writer. */

#include "core/ring.h"

#include "job.h"

enum { EVENTS = 64, WRITTEN = 200 };

/* As if so many had been written: the body of each is its number. */
static struct rs_ring *ring_of(uint64_t n)
{
        struct rs_ring *r = rs_ring_new(EVENTS);

        ASSERT_TRUE(r);
        for (uint64_t i = 0; i < n; i++)
                r->events[i % EVENTS] = (struct rs_event){ rs_event_head(RS_EVENT_WAKE, 0, 0, 1), i };
        r->at = n * sizeof r->events[0];
        return r;
}

TEST(ring_gives_what_is_whole)
{
        struct rs_ring *r = ring_of(WRITTEN);
        struct rs_ring_reader reader = { .ring = r };
        struct rs_event events[EVENTS];
        bool gap;

        size_t n = rs_ring_read(&reader, events, EVENTS, &gap);
        ASSERT_EQ(EVENTS - 1, n); /* where the oldest one lay the next may be half written */
        ASSERT_TRUE(gap);
        ASSERT_EQ(WRITTEN - (EVENTS - 1), reader.lost);
        for (size_t i = 0; i < n; i++)
                ASSERT_EQ(WRITTEN - (EVENTS - 1) + i, events[i].body);
        ASSERT_EQ(0, rs_ring_read(&reader, events, EVENTS, &gap));
        ASSERT_FALSE(gap);
        rs_ring_unref(r);
}

TEST(ring_that_is_not_full_loses_nothing)
{
        struct rs_ring *r = ring_of(EVENTS - 1);
        struct rs_ring_reader reader = { .ring = r };
        struct rs_event events[EVENTS];
        size_t seen = 0;
        bool gap;

        for (size_t n; (n = rs_ring_read(&reader, events, 10, &gap)); seen += n) {
                ASSERT_FALSE(gap);
                ASSERT_EQ(seen, events[0].body);
        }
        ASSERT_EQ(EVENTS - 1, seen);
        ASSERT_EQ(0, reader.lost);
        rs_ring_unref(r);
}
