/* SPDX-License-Identifier: MIT */
/* The rate limiter: the generic cell rate algorithm (ITU-T I.371, annex A), by reservation. `free_at` is the instant
 * from which the next start would be evenly spaced; a start may come up to `slack` before it. Each caller takes the
 * next instant and sleeps once: first come, first served, without a line to keep. */

#include "core/core.h"

struct limiter {
        int64_t interval; /* ns between starts */
        int64_t slack;    /* (burst - 1) intervals */
        int64_t free_at;
        uint64_t turns; /* reservations made: who gives back must be the last */
        int64_t not_before;
};

_Static_assert(sizeof(struct limiter) <= sizeof(resha_limiter), "resha_limiter is too small");

static struct limiter *limiter_of(resha_limiter *l)
{
        return (struct limiter *)(void *)l;
}

int resha_limiter_init(resha_limiter *limiter, unsigned count, resha_duration per, unsigned burst)
{
        const int64_t longest = INT64_C(30) * 24 * 3600 * 1000000000;

        if (!count || count > 1000000 || per.ns < 1000 || per.ns > longest || burst > count)
                return -EINVAL;
        /* Rounded up: count + 1 starts never fit in one window. */
        int64_t interval = (per.ns + count - 1) / count;
        *limiter_of(limiter) = (struct limiter){ .interval = interval,
                                                 .slack = burst > 1 ? (int64_t)(burst - 1) * interval : 0,
                                                 .free_at = INT64_MIN,
                                                 .not_before = INT64_MIN };
        return 0;
}

int resha_limiter_acquire(resha_limiter *limiter)
{
        struct limiter *m = limiter_of(limiter);
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (rc < 0)
                return rc;
        int64_t now = rs_now(l), before = m->free_at;
        int64_t from = before > now ? before : now;
        int64_t start = from - m->slack > now ? from - m->slack : now;
        if (start < m->not_before) {
                start = m->not_before;
                from = from > start ? from : start;
        }
        m->free_at = rs_time_add(from, m->interval);
        uint64_t turn = ++m->turns;
        if (start <= now)
                return rs_complete(l, 0);
        rc = resha_sleep_until((resha_instant){ start });
        if (rc < 0 && m->turns == turn)
                m->free_at = before;
        return rc;
}

void resha_limiter_pause_until(resha_limiter *limiter, resha_instant t)
{
        struct limiter *m = limiter_of(limiter);

        if (t.ns > m->not_before)
                m->not_before = t.ns;
}
