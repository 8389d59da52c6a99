/* SPDX-License-Identifier: MIT */
/* Time as tasks see it: now, sleep, ticker. A sleep lies in the task, not on its stack: among many sleepers, each
 * change of the heap would visit a dozen stacks, and miss the caches in each. */

#include "core/core.h"
#include "sys/sys.h"

resha_instant resha_now(void)
{
        struct rs_loop *l = rs_loop_current;

        return (resha_instant){ l ? rs_now(l) : rs_sys_now() };
}

resha_instant resha_after(resha_duration d)
{
        return (resha_instant){ d.ns == INT64_MAX ? INT64_MAX : rs_time_add(resha_now().ns, d.ns) };
}

resha_duration resha_between(resha_instant from, resha_instant t)
{
        int64_t r;

        if (__builtin_sub_overflow(t.ns, from.ns, &r))
                r = t.ns > from.ns ? INT64_MAX : INT64_MIN;
        return (resha_duration){ r };
}

static void sleep_over(struct rs_timer *timer)
{
        rs_wake(&RS_CONTAINER(timer, struct rs_task, sleep)->sleeping, 0);
}

static void sleep_cancel(struct rs_wait *w)
{
        rs_timer_clear(rs_loop_current, &w->task->sleep);
        rs_wake(w, -ECANCELED);
}

static int sleep_until(struct rs_loop *l, int64_t deadline)
{
        struct rs_task *t = l->current;

        t->sleeping.cancel = sleep_cancel; /* the rest of it is zero since the spawn, or written by rs_wait() */
        t->sleeping.what = "sleep";
        t->sleep.fire = sleep_over;
        if (deadline < INT64_MAX)
                rs_timer_set(l, &t->sleep, deadline);
        return (int)rs_wait(l, &t->sleeping);
}

int resha_sleep(resha_duration d)
{
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (rc < 0)
                return rc;
        if (d.ns > 0)
                return sleep_until(l, d.ns == INT64_MAX ? INT64_MAX : rs_time_add(rs_now(l), d.ns));
        rs_yield(l);
        return 0;
}

int resha_sleep_until(resha_instant t)
{
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (rc < 0)
                return rc;
        if (t.ns > rs_now(l))
                return sleep_until(l, t.ns);
        rs_yield(l);
        return 0;
}

void resha_ticker_init(resha_ticker *t, resha_duration period)
{
        *t = (resha_ticker){ .next = resha_after(period), .period = period };
}

int resha_ticker_next(resha_ticker *t)
{
        int64_t period = t->period.ns, late = resha_now().ns - t->next.ns;

        if (period <= 0)
                return resha_fail_at(-EINVAL, NULL,
                                     "the ticker has a period of %lld ns: resha_ticker_init() with more than 0",
                                     (long long)period);
        if (late > 0) /* to the first one on the grid that lies ahead */
                t->next.ns = rs_time_add(rs_time_add(t->next.ns, (late - 1) / period * period), period);
        int rc = resha_sleep_until(t->next);
        if (rc < 0)
                return rc;
        t->next.ns = rs_time_add(t->next.ns, period);
        return 1;
}
