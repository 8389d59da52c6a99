/* SPDX-License-Identifier: MIT */
/* What stands for a thread's delay in the simulated world: a virtual one from the world's luck. A cancel during it is
 * one before the job has started. */

#include "os/delay.h"

#include "core/core.h"

static const uint64_t DELAY_MAX_NS = 1000000;
static const int64_t ROUND_NS = 100000;

struct delay {
        struct rs_wait wait;
        struct rs_timer timer;
};

static void delay_over(struct rs_timer *timer)
{
        rs_wake(&RS_CONTAINER(timer, struct delay, timer)->wait, 0);
}

static void delay_cancel(struct rs_wait *w)
{
        rs_timer_clear(rs_loop_current, &RS_CONTAINER(w, struct delay, wait)->timer);
        rs_wake(w, -ECANCELED);
}

int rs_delay(struct rs_loop *l, const char *what)
{
        struct delay d = { .wait = { .cancel = delay_cancel, .what = what }, .timer = { .fire = delay_over } };

        if (!l->shuffle) {
                rs_yield(l);
        } else {
                uint64_t luck = l->backend->ops->random(l->backend);
                int64_t end = rs_time_add(rs_now(l), (int64_t)(luck % DELAY_MAX_NS));
                if (luck >> 63)
                        end -= end % ROUND_NS; /* a round instant, as timeouts end at: things happen at the same time */
                rs_timer_set(l, &d.timer, end);
                int rc = (int)rs_wait(l, &d.wait);
                if (rc < 0)
                        return rc;
        }
        return rs_enter(&l); /* it may have been cancelled when it was ready already */
}
