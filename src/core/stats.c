/* SPDX-License-Identifier: MIT */
/* Counters of a loop: most are kept anyway, or follow from what is: how many tasks were ever made is in the mark of the
 * latest, and how many have ended is the difference to those that are alive. The rest is counted at a look of the loop
 * at the world, never at a switch. How many are ready is nowhere: it is counted when somebody asks. */

#include "core/stats.h"

#include "core/core.h"

enum { READY_MOST = 10000 };

static uint64_t count_ready(const struct rs_loop *l)
{
        uint64_t n = 0;

        for (const struct rs_task *t = l->ready_first; t && n < READY_MOST; t = t->ready_next)
                n++;
        return n;
}

/* With the sleep that it is in: it has begun at the last visit, which a copy may know and `now` be before. */
static int64_t slept(const struct rs_loop *l, int64_t now)
{
        int64_t ns = l->counters.slept;

        return ns >= 0 ? ns : ns + (now > l->now ? now : l->now);
}

void rs_stats(const struct rs_loop *l, int64_t now, resha_stats *s)
{
        const struct rs_counters *c = &l->counters;
        uint64_t spawned = l->last_mark & ((UINT64_C(1) << RS_MARK_RUN) - 1);

        *s = (resha_stats){
                .age = { now - c->began },
                .slept = { slept(l, now) },
                .polls = l->polls,
                .sleeps = c->sleeps,
                .switches = l->switches,
                .spawned = spawned,
                .ended = spawned > l->tasks ? spawned - l->tasks : 0, /* of a copy they need not fit together */
                .wakes = c->wakes,
                .timers = c->timers,
                .reports = l->reports,
                .ignored = l->ignored_cancels,
                .tasks = l->tasks,
                .jobs = l->jobs,
                .stacks = l->stacks.hot_count,
                .shown = c->shown,
                .descriptors = c->descriptors,
                .lag_sum = { c->lag_sum },
                .lag_most = { c->lag_most },
        };
        for (unsigned i = 0; i < RESHA_LAG_BUCKETS; i++)
                s->lag[i] = c->lag[i];
}

void rs_stats_here(struct rs_loop *l, resha_stats *s)
{
        rs_stats(l, rs_now(l), s);
        s->ready = count_ready(l);
        s->calls = l->backend->calls;
}

int resha_stats_get(resha_stats *ret_stats)
{
        struct rs_loop *l = rs_loop_current;

        if (!l)
                return -EPERM;
        rs_stats_here(l, ret_stats);
        return 0;
}
