/* SPDX-License-Identifier: MIT */
/* The rate limiter: a line, and for each rate what is known of the starts so far.
 *
 * A start may be made when every rate allows it. A rate of `count` in each `per` with bursts of b allows it by either
 * of two rules, which look at all starts, whichever rule allowed those:
 *
 *   burst  the generic cell rate algorithm (ITU-T I.371, annex A), as a leaky bucket: each start adds one, one leaks
 *          away each `leak` = per / (count - b + 1), and a start finds fewer than b inside. After `per` without a start
 *          the bucket is empty.
 *   even   `even` = per / count after the start before, and `per` after the last early one, which is a start that came
 *          less than `even` after the one before it.
 *
 * Why no window [x, x + per) holds more than count: take the last start in it, s.
 *   By "even": within `per` before s none was early, so the n in the window are `even` apart: (n - 1) even < per, and
 *   n <= count.
 *   By "burst": all n lie within less than `per`, so the bucket was not emptied between them, and with tolerance
 *   (b - 1) leak: (n - 1) leak <= s - x + (b - 1) leak < per + (b - 1) leak = count * leak. n <= count.
 * So a bucket over count + 1 says nothing more, and is not filled further; no figure can overflow. Rounding: `leak` is
 * rounded up, `per` is what that makes of it, `even` is rounded up.
 *
 * A start is entered at the time when its call returns, not when its turn came: a busy loop makes it later, and the
 * next turn is computed from what was. So one caller at a time is on its way out (`starting`), and lets the next one
 * go.
 *
 * Invariants
 *  1. The timer is set for the turn of the first in line, and only while nobody is on the way out.
 *  2. Nothing is reserved: who leaves the line has changed nothing for those before, and let those behind move up. */

#include <stdio.h>

#include "sync/line.h"
#include "sync/waited.h"

struct rate {
        int64_t per, even, leak; /* ns */
        int64_t early;           /* time of the last early start; INT64_MIN: none */
        int64_t leaked;          /* when the level fell to what it is */
        uint32_t count, burst;
        uint32_t level; /* 0..count + 1 */
};

struct limiter {
        struct rs_list line;  /* of limiter_wait.wait.node */
        struct rs_timer turn; /* of the first */
        int64_t last;         /* start; INT64_MIN: none */
        int64_t not_before;   /* pause */
        uint32_t waiting;     /* how many are in the line */
        uint8_t n;            /* rates; 0: not initialised */
        bool starting;        /* one was woken and has not run yet */
        struct rate rate[RESHA_RATES_MAX];
};

struct limiter_wait {
        struct rs_wait wait;
        struct rs_timer deadline; /* of resha_limiter_acquire_by() */
};

_Static_assert(sizeof(struct limiter) <= sizeof(resha_limiter), "resha_limiter is too small");

static struct limiter *limiter_of(resha_limiter *l)
{
        return (struct limiter *)(void *)l;
}

static int64_t earlier(int64_t a, int64_t b)
{
        return a < b ? a : b;
}

static int64_t later(int64_t a, int64_t b)
{
        return a > b ? a : b;
}

static int64_t divide_up(int64_t a, int64_t b)
{
        return (a + b - 1) / b;
}

/* ---- rates ---- */

/* False: a figure is out of range. */
static bool rate_init(struct rate *r, const resha_rate *given)
{
        const int64_t longest = INT64_C(30) * 24 * 3600 * 1000000000;
        uint32_t count = given->count, burst = given->burst ? given->burst : 1;

        if (!count || count > 1000000 || given->per.ns < 1000 || given->per.ns > longest || burst > count)
                return false;
        int64_t leak = divide_up(given->per.ns, count - burst + 1), per = leak * (count - burst + 1);
        *r = (struct rate){ .per = per,
                            .even = divide_up(per, count),
                            .leak = leak,
                            .early = INT64_MIN,
                            .leaked = INT64_MIN,
                            .count = count,
                            .burst = burst };
        return true;
}

/* When it allows the next start. */
static int64_t rate_next(const struct rate *r, int64_t last)
{
        int64_t even = later(rs_time_add(last, r->even), rs_time_add(r->early, r->per));

        if (r->level < r->burst)
                return INT64_MIN;
        int64_t burst = rs_time_add(r->leaked, (int64_t)(r->level - r->burst + 1) * r->leak);
        return earlier(even, earlier(burst, rs_time_add(last, r->per)));
}

static void rate_leak(struct rate *r, int64_t last, int64_t t)
{
        int64_t n = t >= rs_time_add(last, r->per) ? r->level : (t - r->leaked) / r->leak;

        if (n >= r->level) {
                r->level = 0;
                r->leaked = t;
        } else {
                r->level -= (uint32_t)n;
                r->leaked += n * r->leak;
        }
}

static void rate_start(struct rate *r, int64_t last, int64_t t)
{
        if (t < rs_time_add(last, r->even))
                r->early = t;
        rate_leak(r, last, t);
        if (r->level <= r->count)
                r->level++;
}

/* ---- all of them ---- */

int resha_limiter_init_rates(resha_limiter *limiter, const resha_rate *rates, size_t n)
{
        struct limiter m = { .last = INT64_MIN, .not_before = INT64_MIN, .n = (uint8_t)n };

        if (!n || n > RESHA_RATES_MAX)
                return resha_fail_at(-EINVAL, NULL, "a limiter of %zu rates: 1 to %d are possible", n, RESHA_RATES_MAX);
        for (size_t i = 0; i < n; i++) {
                if (!rate_init(&m.rate[i], &rates[i]))
                        return resha_fail_at(-EINVAL, NULL,
                                             "rate %zu of a limiter: count is 1 to 1000000, per 1 us to 30 days, burst "
                                             "at most count",
                                             i);
        }
        *limiter_of(limiter) = m;
        return 0;
}

int resha_limiter_init(resha_limiter *l, unsigned count, resha_duration per, unsigned burst)
{
        return resha_limiter_init_rates(l, &(resha_rate){ .count = count, .per = per, .burst = burst }, 1);
}

/* When the next start may be made, as far as is known. */
static int64_t next_turn(const struct limiter *m)
{
        int64_t t = m->not_before;

        for (uint32_t i = 0; i < m->n; i++)
                t = later(t, rate_next(&m->rate[i], m->last));
        return t;
}

static void enter_start(struct limiter *m, int64_t t)
{
        for (uint32_t i = 0; i < m->n; i++)
                rate_start(&m->rate[i], m->last, t);
        m->last = t;
}

/* The turn of one that comes now, if all before it stay; some time after `by` if it would be later than that. */
static int64_t turn_at_the_end(const struct limiter *m, int64_t now, int64_t by)
{
        struct limiter ahead = *m;

        if (ahead.starting)
                enter_start(&ahead, now);
        int64_t t = later(now, next_turn(&ahead));
        for (uint32_t n = m->waiting; n > 0 && t <= by; n--) {
                enter_start(&ahead, t);
                t = later(t, next_turn(&ahead));
        }
        return t;
}

/* ---- the line ---- */

static void let_first_go(struct rs_loop *l, struct limiter *m)
{
        struct rs_wait *w = RS_CONTAINER(rs_list_pop(&m->line), struct rs_wait, node);

        rs_timer_clear(l, &RS_CONTAINER(w, struct limiter_wait, wait)->deadline);
        m->waiting--;
        m->starting = true;
        rs_wake(w, 0);
}

static void turn_came(struct rs_timer *timer)
{
        let_first_go(rs_loop_current, RS_CONTAINER(timer, struct limiter, turn));
}

/* Nobody is on the way out. */
static void set_timer(struct rs_loop *l, struct limiter *m)
{
        rs_timer_clear(l, &m->turn);
        if (rs_list_empty(&m->line))
                return;
        int64_t t = next_turn(m);
        if (t == INT64_MAX)
                return;
        m->turn.fire = turn_came;
        rs_timer_set(l, &m->turn, t);
}

static void leave_line(struct rs_wait *w, int code)
{
        struct limiter *m = limiter_of((resha_limiter *)(uintptr_t)w->object);
        struct rs_loop *l = rs_loop_current;

        rs_timer_clear(l, &RS_CONTAINER(w, struct limiter_wait, wait)->deadline);
        rs_list_remove(&m->line, &w->node);
        m->waiting--;
        if (rs_list_empty(&m->line)) /* else the turn is the next one's */
                rs_timer_clear(l, &m->turn);
        rs_wake(w, code);
}

static void limiter_cancel(struct rs_wait *w)
{
        leave_line(w, -ECANCELED);
}

static void deadline_passed(struct rs_timer *timer)
{
        leave_line(&RS_CONTAINER(timer, struct limiter_wait, deadline)->wait, -ETIME);
}

/* The caller returns now. */
static void start(struct rs_loop *l, struct limiter *m)
{
        int64_t now = rs_now(l);

        m->starting = false;
        enter_start(m, now);
        if (!rs_list_empty(&m->line) && next_turn(m) <= now)
                let_first_go(l, m);
        else
                set_timer(l, m);
}

static int wait_in_line(struct rs_loop *l, struct limiter *m, int64_t by)
{
        if (rs_line_elsewhere(l, &m->line))
                return rs_line_refuse("limiter");
        struct limiter_wait w = { .wait = { .cancel = limiter_cancel, .what = "limiter", .object = m },
                                  .deadline = { .fire = deadline_passed } };

        rs_list_push(&m->line, &w.wait.node);
        m->waiting++;
        if (m->line.first == &w.wait.node && !m->starting)
                set_timer(l, m);
        if (by < INT64_MAX) /* a turn at that very time is in time */
                rs_timer_set(l, &w.deadline, by + 1);
        int rc = (int)rs_wait(l, &w.wait);
        if (rc < 0)
                return rc;
        start(l, m);
        return 0;
}

/* ---- calls ---- */

static int no_rate(void)
{
        return rs_misuse(-EINVAL, "the limiter has no rate: call resha_limiter_init() first");
}

/* Whether a start may be made, and nobody has to be let go before. */
static bool is_free(const struct limiter *m, int64_t now)
{
        return rs_list_empty(&m->line) && !m->starting && next_turn(m) <= now;
}

/* The last call of a budget goes through the line, and so round the loop: to yield here would be to return later than
 * the start that was entered. */
static int acquire(struct rs_loop *l, struct limiter *m, int64_t now, int64_t by)
{
        if (l->budget <= 1 || !is_free(m, now))
                return wait_in_line(l, m, by);
        l->budget--;
        enter_start(m, now);
        return 0;
}

int resha_limiter_acquire(resha_limiter *limiter)
{
        struct limiter *m = limiter_of(limiter);
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (rc < 0)
                return rc;
        return m->n ? acquire(l, m, rs_now(l), INT64_MAX) : no_rate();
}

int resha_limiter_acquire_by(resha_limiter *limiter, resha_instant by)
{
        struct limiter *m = limiter_of(limiter);
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (rc < 0)
                return rc;
        if (!m->n)
                return no_rate();
        int64_t now = rs_now(l);
        if (turn_at_the_end(m, now, by.ns) > by.ns)
                return rs_complete(
                        l, resha_fail_at(-ETIME, NULL, "the limiter's next turn would come after the deadline"));
        rc = acquire(l, m, now, by.ns);
        return rc == -ETIME ? resha_fail_at(rc, NULL, "the limiter put its turn off until after the deadline") : rc;
}

int resha_limiter_try_acquire(resha_limiter *limiter)
{
        struct limiter *m = limiter_of(limiter);
        struct rs_loop *l = rs_loop_current;

        if (!l)
                return rs_outside();
        if (!m->n)
                return no_rate();
        int64_t now = rs_now(l);
        if (!is_free(m, now))
                return -EAGAIN;
        enter_start(m, now);
        return 0;
}

void resha_limiter_pause_until(resha_limiter *limiter, resha_instant t)
{
        struct limiter *m = limiter_of(limiter);

        if (t.ns <= m->not_before)
                return;
        rs_wake_check(&m->line);
        m->not_before = t.ns;
        if (!rs_list_empty(&m->line) && !m->starting)
                set_timer(rs_loop_current, m);
}

/* ---- for who looks from outside ---- */

static void limiter_see(const struct rs_reader *r, const struct rs_wait *at, const struct rs_wait *w,
                        struct rs_waited *ret)
{
        struct limiter m;
        struct limiter_wait x;

        if (!r->read(&m, w->object, sizeof m) || !r->read(&x, at, sizeof x))
                return;
        ret->kind = "limiter";
        ret->waiting = m.waiting;
        if (rs_timer_active(&x.deadline))
                ret->due = x.deadline.deadline;
        if (m.n)
                snprintf(ret->state, sizeof ret->state, "%u in each %.3f s", m.rate[0].count,
                         (double)m.rate[0].per / 1e9);
}

const struct rs_waits rs_limiter_waits = { .cancel = limiter_cancel, .see = limiter_see };
