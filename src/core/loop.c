/* SPDX-License-Identifier: MIT */
/* The loop: one visit looks at inbox, clock and backend and makes tasks ready; then tasks run until nobody is ready or
 * it is time to look again.
 *
 *     visit:  inbox -> timers -> wait(deadline) -> completions -> timers -> inbox
 *
 * A loop that has the thread to itself goes on so until the main task has ended. One that is embedded in another goes a
 * step at a time: as many visits as its tasks are ready for, none of which waits. Between steps it counts as asleep,
 * so that what comes to the inbox wakes the backend, and who steps it knows by rs_loop_step() when the next timer is
 * due.
 *
 * Nothing in here calls upwards: a completion wakes the wait that lies behind its op, a timer its own function. */

#include "base/alloc.h"
#include "core/core.h"
#include "core/marks.h"
#include "sys/observe.h"
#include "sys/sanitize.h"
#include "sys/switch.h"
#include "sys/sys.h"
#include "sys/thread.h"

/* ---- a visit ---- */

static void fire_timers(struct rs_loop *l)
{
        struct rs_timer *t;

        while ((t = rs_heap_first(&l->timers)) && t->deadline <= l->now) {
                rs_heap_remove(&l->timers, t);
                l->counters.timers++;
                t->fire(t);
        }
}

struct op_owner {
        struct rs_wait wait;
};

static void take_completions(struct rs_loop *l)
{
        struct rs_node *n;
        unsigned count = 0;

        while ((n = rs_list_pop(&l->backend->done))) {
                struct rs_op *op = RS_CONTAINER(n, struct rs_op, link);
                rs_wake(&((struct op_owner *)op->owner)->wait, op->result);
                count++;
        }
        l->counters.wakes += count;
        l->crowd = count >= RS_CROWD;
}

static void grace_over(struct rs_timer *timer)
{
        RS_CONTAINER(timer, struct rs_loop, grace)->abandoned = true;
}

/* From now on the run must end within the grace. */
void rs_loop_start_grace(struct rs_loop *l)
{
        if (rs_timer_active(&l->grace) || l->opts.grace.ns == INT64_MAX)
                return;
        l->grace.fire = grace_over;
        rs_timer_set(l, &l->grace, rs_time_add(rs_now(l), l->opts.grace.ns));
}

void rs_loop_cancel(struct rs_loop *l, enum rs_cause cause, const char *site)
{
        rs_loop_start_grace(l);
        if (!l->finished)
                rs_task_cancel(l, l->main_task, cause, site);
}

/* Nobody is ready, no timer runs, nothing is under way outside: without help nobody will ever run again. The main task
 * is cancelled; should that not help either, or not within the grace, what is left is abandoned. */
static void deadlock(struct rs_loop *l)
{
        if (l->deadlocked) {
                l->abandoned = true;
                return;
        }
        l->deadlocked = true;
        rs_report_deadlock(l);
        rs_loop_cancel(l, RS_CAUSE_DEADLOCK, NULL);
}

/* What comes of a wait of the backend. */
static inline void waited(struct rs_loop *l, int rc)
{
        l->polls++;
        if (rc == -EDEADLK) {
                deadlock(l);
        } else if (rc < 0) {
                rs_report(l, RESHA_REPORT_FALLBACK, rc, NULL, "the %s backend failed: %s", l->backend->ops->name,
                          resha_strerror(rc));
                rs_loop_cancel(l, RS_CAUSE_BACKEND, NULL);
        }
        take_completions(l);
}

/* Nothing that this loop knows can wake anybody. Others that run beside it may still fail, and end it: only when all of
 * them have come to that, it is a deadlock, of the last. */
static __attribute__((noinline)) void stand_still(struct rs_loop *l)
{
        struct rs_beside *b = l->beside;

        if (!b || l->deadlocked) {
                deadlock(l);
        } else if (rs_inbox_sleep(l->inbox)) {
                bool others = b->stands(b, l);
                RS_EVENT(l, rs_ring_polls(l, true));
                int rc = others ? l->backend->ops->wait(l->backend, INT64_MAX) : 0;
                rs_inbox_awake(l->inbox);
                b->goes(b);
                if (others)
                        waited(l, rc);
                else
                        deadlock(l);
        }
}

/* Until when it has slept; INT64_MIN: it has not. `waits` is known where it is called: the loop that has the thread to
 * itself does not pay for the other. */
static inline __attribute__((always_inline)) int64_t wait_for_world(struct rs_loop *l, bool waits)
{
        const struct rs_timer *first = rs_heap_first(&l->timers);
        int64_t deadline = l->ready_first ? INT64_MIN : first ? first->deadline : INT64_MAX;
        bool outside = l->backend->pending || l->jobs;

        if (deadline == INT64_MAX && !outside) {
                l->counters.slept -= l->now;
                stand_still(l);
                return INT64_MAX;
        }
        if (l->ready_first && !outside && !l->simulated)
                return INT64_MIN;
        bool sleeps = waits && deadline > l->now && rs_inbox_sleep(l->inbox);
        if (sleeps)
                l->counters.slept -= l->now;
        l->backend->outside = l->jobs;
        RS_EVENT(l, rs_ring_polls(l, sleeps));
        int rc = l->backend->ops->wait(l->backend, sleeps ? deadline : INT64_MIN);
        if (sleeps)
                rs_inbox_awake(l->inbox);
        waited(l, rc);
        return sleeps ? deadline : INT64_MIN;
}

/* A timer for which it slept may come late: its task has waited for the loop. */
static inline void slept(struct rs_loop *l, int64_t due)
{
        l->counters.sleeps++;
        l->counters.slept += l->now;
        if (due <= l->now)
                rs_lag(&l->counters, l->now - due);
}

static inline __attribute__((always_inline)) void visit(struct rs_loop *l, bool waits)
{
        if (RS_UNLIKELY(l->circles))
                rs_report_circles(l);
        if (RS_UNLIKELY(l->step.took))
                rs_report_slow_step(l);
        rs_inbox_drain(l);
        int64_t looked = l->now;
        l->now = rs_now(l);
        if (waits)
                rs_lag(&l->counters, l->now - looked);
        fire_timers(l);
        int64_t due = wait_for_world(l, waits);
        l->now = rs_now(l);
        if (due != INT64_MIN)
                slept(l, due);
        RS_EVENT(l, rs_ring_visited(l));
        fire_timers(l);
        rs_inbox_drain(l);
        if (RS_UNLIKELY(l->stacks.doomed != NULL))
                rs_stacks_bury(&l->stacks);
}

/* ---- all loops ---- */

struct rs_loop *rs_loops;
static struct rs_lock loops_lock = RS_LOCK_INIT;

static void loops_add(struct rs_loop *l)
{
        l->tid = rs_observe_self();
        rs_lock(&loops_lock);
        l->next_loop = rs_loops;
        rs_loops = l;
        rs_unlock(&loops_lock);
}

void rs_loops_each(void (*fn)(struct rs_loop *l, void *arg), void *arg)
{
        rs_lock(&loops_lock);
        for (struct rs_loop *l = rs_loops; l; l = l->next_loop)
                fn(l, arg);
        rs_unlock(&loops_lock);
}

/* One of a forked child's parent is in no list. */
static void loops_remove(struct rs_loop *l)
{
        rs_lock(&loops_lock);
        struct rs_loop **at = &rs_loops;
        while (*at && *at != l)
                at = &(*at)->next_loop;
        if (*at)
                *at = l->next_loop;
        rs_unlock(&loops_lock);
}

/* ---- the main task ---- */

static int cleanups(void *arg)
{
        struct rs_loop *l = arg;

        while (l->cleanups.last) {
                struct rs_cleanup *c = RS_CONTAINER(l->cleanups.last, struct rs_cleanup, node);
                rs_list_remove(&l->cleanups, &c->node);
                c->fn(c);
        }
        return 0;
}

/* Stands around whatever runs in a forked child; see rs_task_end(). */
static struct rs_scope forked_around = { .is_group = true };

unsigned rs_forks;

void rs_loop_forked(void)
{
        struct rs_task *t = rs_loop_current ? rs_loop_current->current : NULL;

        loops_lock = (struct rs_lock)RS_LOCK_INIT;
        rs_loops = rs_loop_current = NULL;
        rs_forks++;
        if (t)
                t->scope = t->outermost = &forked_around;
}

static int main_task(void *arg)
{
        struct rs_loop *l = arg;
        int rc = l->main_fn(l->main_arg);
        if (rs_loop_current != l)
                rs_frame_abort(l);
        int ended = resha_shielded(RESHA_FOREVER, cleanups, l);

        return rc < 0 ? rc : ended < 0 ? ended : rc;
}

void rs_cleanup_add(struct rs_loop *l, struct rs_cleanup *c)
{
        rs_list_push(&l->cleanups, &c->node);
}

void rs_cleanup_remove(struct rs_loop *l, struct rs_cleanup *c)
{
        rs_list_remove(&l->cleanups, &c->node);
}

/* ---- its beginning and end ---- */

/* Loops ever made: marks tell tasks of one from those of another. */
static uint32_t runs;

int rs_loop_init(struct rs_loop *l, const resha_run_opts *opts, struct rs_backend *backend)
{
        *l = (struct rs_loop){ .backend = backend, .opts = *opts, .strict = opts->strict, .debug = opts->debug };
        l->simulated = backend->ops->simulated;
        l->last_mark = (uint64_t)__atomic_add_fetch(&runs, 1, __ATOMIC_RELAXED) << RS_MARK_RUN;
        rs_records_init(l);
        l->inbox = rs_inbox_new(backend);
        if (!l->inbox)
                return -ENOMEM;
        int rc = rs_stacks_init(&l->stacks, opts->stack_size);
        if (rc < 0) {
                rs_inbox_unref(l->inbox);
                return rc;
        }
        rs_thread_stack(&l->native.bottom, &l->native.size);
        l->native.tsan_fiber = rs_tsan_current();
        l->control = rs_switch_control();
        l->step.limit = l->simulated ? 0 : opts->slow_step.ns;
        l->now = l->counters.began = rs_now(l);
        rs_marks_begin(l);
        loops_add(l);
        return 0;
}

int rs_loop_begin(struct rs_loop *l, resha_fn *fn, void *arg)
{
        int rc = rs_stack_reserve(&l->stacks);

        if (rc < 0)
                return rc;
        l->main_fn = fn;
        l->main_arg = arg;
        l->main_task = rs_task_new(l, main_task, l);
        if (!l->main_task)
                return -ENOMEM;
        l->main_task->name = "main";
        RS_EVENT(l, rs_ring_spawned(l, l->main_task));
        rs_ready(l, l->main_task);
        return 0;
}

void rs_loop_finish(struct rs_loop *l)
{
        for (;;) {
                rs_run_ready(l);
                if (l->finished || l->abandoned)
                        break;
                visit(l, true);
        }
}

/* When the next step is due, as far as that is known now. Should nothing be able to wake anybody, at once: the next
 * visit sees the deadlock. */
static int64_t next_due(const struct rs_loop *l)
{
        const struct rs_timer *first = rs_heap_first(&l->timers);

        if (l->ready_first || l->simulated || !rs_list_empty(&l->backend->done))
                return INT64_MIN;
        if (first)
                return first->deadline;
        return l->backend->pending || l->jobs ? INT64_MAX : INT64_MIN;
}

bool rs_loop_step(struct rs_loop *l, int64_t until, int64_t *ret_due)
{
        rs_inbox_awake(l->inbox);
        do {
                if (l->simulated)
                        visit(l, true); /* only there does the clock move */
                else
                        visit(l, false);
                rs_run_ready(l);
                if (l->finished || l->abandoned)
                        return false;
        } while (l->ready_first && rs_sys_now() < until);
        if (!l->simulated && l->backend->ops->descriptor(l->backend) < 0)
                *ret_due = INT64_MIN; /* the next visit meets the fault, and says so */
        else
                *ret_due = next_due(l);
        if (!rs_inbox_sleep(l->inbox))
                *ret_due = INT64_MIN;
        return true;
}

int rs_loop_result(struct rs_loop *l)
{
        if (l->deadlocked) {
                if (l->opts.ret_error)
                        *l->opts.ret_error =
                                (resha_error){ .code = -EDEADLK, .text = "all tasks wait and nothing can wake them" };
                return -EDEADLK;
        }
        return l->finished ? l->main_result : -ECANCELED;
}

void rs_loop_done(struct rs_loop *l)
{
        bool leak = l->tasks > 0;

        if (leak)
                rs_report_stuck(l);
        for (struct rs_node *n; (n = rs_list_pop(&l->given_up));) {
                struct rs_cleanup *c = RS_CONTAINER(n, struct rs_cleanup, node);
                c->fn(c);
        }
        rs_timer_clear(l, &l->grace);
        loops_remove(l);
        rs_marks_end(l);
        size_t posts = rs_inbox_close(l->inbox);
        if (posts)
                rs_report(l, RESHA_REPORT_DROPPED, 0, NULL,
                          "%zu results of thread jobs or look-ups were dropped: the run had ended before", posts);
        if (l->open)
                rs_report(l, RESHA_REPORT_LEFT_OPEN, 0, NULL, "%zu %s not closed before the run ended", l->open,
                          l->open == 1 ? "stream, listener, datagram socket or file was"
                                       : "streams, listeners, datagram sockets or files were");
        rs_shown_end(l);
        rs_stacks_done(&l->stacks, leak);
        while (l->record_free) {
                struct rs_record *r = l->record_free;
                l->record_free = r->next;
                resha_free(r);
        }
        if (!leak)
                rs_slabs_free(l);
}
