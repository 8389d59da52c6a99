/* SPDX-License-Identifier: MIT */
/* The scheduler: who runs, and how the thread goes from one to the next.
 *
 * Ready tasks stand in one queue, first in, first out. A task that parks gives the thread directly to the next one; the
 * loop itself runs only when nobody is ready, or when some 50 us have passed and it must look at clock and backend;
 * 200 us, where its last look has woken a crowd (RS_CROWD). That check costs a counter on each switch and a time stamp
 * on every RS_POLL_SWITCHES-th.
 *
 * A task has no stack before its first run. If a task has ended and the next one has not started, the stack goes from
 * one to the other without a switch: a batch of tasks that never wait runs on one warm stack.
 *
 * In the simulated world a seed other than 0 picks any of the ready ones. */

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/core.h"
#include "core/marks.h"
#include "core/probe.h"
#include "sys/sanitize.h"
#include "sys/switch.h"
#include "sys/sys.h"
#include "sys/ticks.h"

enum {
        RS_POLL_SWITCHES = 8,
        RS_SHUFFLE_DEPTH = 16,
        RS_IGNORED_REPORT = 1000,
        RS_IGNORED_DEBUG = 10,
};

_Thread_local struct rs_loop *rs_loop_current __attribute__((tls_model("initial-exec")));

/* To the front again. */
static void put_back(struct rs_loop *l, struct rs_task *t)
{
        t->ready_next = l->ready_first;
        if (!l->ready_first)
                l->ready_last = t;
        l->ready_first = t;
}

/* Moves one of the first few to the front: the seeded order of the simulated world. */
static void shuffle(struct rs_loop *l)
{
        struct rs_task *before = NULL, *t = l->ready_first;
        uint64_t skip = l->backend->ops->random(l->backend) % RS_SHUFFLE_DEPTH;

        for (; skip && t->ready_next; skip--) {
                before = t;
                t = t->ready_next;
        }
        if (!before)
                return;
        before->ready_next = t->ready_next;
        if (l->ready_last == t)
                l->ready_last = before;
        t->ready_next = l->ready_first;
        l->ready_first = t;
}

/* Where steps are timed: the current one is over. Of a task that has ended, the place is still there, but no name that
 * was its own. */
static void step_over(struct rs_loop *l)
{
        const struct rs_task *t = l->current;
        int64_t now = rs_sys_now(), took = now - l->step.began;

        l->step.began = now;
        if (RS_UNLIKELY(l->marks != NULL) && t && !t->fn)
                rs_marks_ended(l, t);
        if (!t || took < l->step.limit || l->step.took)
                return;
        l->step.took = took;
        l->step.task = t;
        l->step.mark = t->mark;
        l->step.name = t->named ? NULL : t->name;
        l->step.site = t->site;
}

/* A switch that is looked at, to another task: the first in the queue when it returns. False: it is to be the loop.
 * Simulated, when that polls goes by the number of switches, whoever looks at them. */
static bool look(struct rs_loop *l)
{
        struct rs_ring *r = RS_RING_OF(l);

        l->run_left = 1;
        if (RS_UNLIKELY(l->step.limit))
                step_over(l);
        bool due = l->simulated ? --l->poll_left == 0 : rs_ticks() >= l->poll_ticks;
        if (!due && l->shuffle)
                shuffle(l);
        if (r) {
                rs_ring_switched(l, due ? NULL : l->ready_first);
                rs_ring_check(r, !l->simulated && !l->step.limit && !l->shuffle);
        }
        return !due;
}

static inline __attribute__((always_inline)) void tell_run(struct rs_ring *r, struct rs_task *t)
{
        uint64_t at = r->at;

        __atomic_store_n(&r->events[(at & r->mask) / sizeof r->events[0]].head,
                         rs_event_head(RS_EVENT_RUN, 0, 0, t->id), __ATOMIC_RELEASE); /* as in ring.c */
        __atomic_store_n(&r->at, at + sizeof r->events[0], __ATOMIC_RELEASE);
        if (RS_UNLIKELY(t->told != r->generation))
                rs_ring_name(r, t);
}

/* Short where nothing is to be looked at but a yield, by a coarse ring: that is to be cheap. */
static __attribute__((noinline)) bool look_quickly(struct rs_loop *l)
{
        struct rs_ring *r = RS_RING_OF(l);
        const struct rs_task *t = l->current;

        if (!r || r->at >= r->check || !t || t->wait)
                return look(l);
        l->run_left = 1;
        tell_run(r, l->ready_first);
        return true;
}

/* The first in the queue is next, or another that is put there. False: the loop, it is time to poll. */
static inline bool run_on(struct rs_loop *l)
{
        if (RS_UNLIKELY(l->each))
                return look_quickly(l);
        l->run_left = RS_POLL_SWITCHES;
        return !l->simulated && rs_ticks() < l->poll_ticks;
}

/* Nobody is ready, and the loop is next. */
static __attribute__((noinline)) void look_last(struct rs_loop *l)
{
        if (l->step.limit)
                step_over(l);
        if (RS_RING_OF(l))
                rs_ring_switched(l, NULL);
}

/* While one task runs, the stack of the next is on its way into the cache, and so is the struct of the one after it:
 * among many tasks that wake together, each step would otherwise wait for memory. (One line of the stack: the page is
 * what takes long. Fetching more of it was slower.) */
static inline void prefetch(const struct rs_task *t)
{
        if (!t)
                return;
        __builtin_prefetch(t->ready_next);
        __builtin_prefetch(t->sp);
}

/* The next to run, taken out of the queue; NULL: the loop's turn. */
static inline struct rs_task *take_next(struct rs_loop *l)
{
        struct rs_task *t = l->ready_first;

        if (RS_UNLIKELY(!t)) {
                if (RS_UNLIKELY(l->each))
                        look_last(l);
                return NULL;
        }
        if (RS_UNLIKELY(--l->run_left == 0)) {
                if (!run_on(l))
                        return NULL;
                t = l->ready_first;
        }
        l->ready_first = t->ready_next;
        prefetch(t->ready_next);
        return t;
}

#ifdef RS_TSAN
/* It returns on another fiber than the one it was called on. clang's no_sanitize still tells of its entry and exit. */
#if defined(__has_attribute) && __has_attribute(disable_sanitizer_instrumentation)
#define RS_NO_TSAN __attribute__((disable_sanitizer_instrumentation))
#else
#define RS_NO_TSAN __attribute__((no_sanitize("thread")))
#endif
#else
#define RS_NO_TSAN
#endif

void *rs_task_entry(void) RS_NO_TSAN;

/* A stack for a task that has none yet. False: it could not be had, and the task has ended with -ENOMEM. */
static bool bind_stack(struct rs_loop *l, struct rs_task *t)
{
        if (RS_LIKELY(!t->stack))
                t->stack = rs_stack_take(&l->stacks);
        if (RS_LIKELY(t->stack != NULL))
                return true;
        if (RS_RING_OF(l))
                RS_RING_OF(l)->parked = true; /* another one is told to run in its place */
        rs_task_end(l, t, -ENOMEM);
        return false;
}

/* The next one that can be switched to. */
static inline struct rs_task *take_runnable(struct rs_loop *l)
{
        struct rs_task *t;

        do
                t = take_next(l);
        while (t && !t->sp && !bind_stack(l, t));
        return t;
}

static inline __attribute__((always_inline)) void set_current(struct rs_loop *l, struct rs_task *t)
{
        RS_PROBE_SWITCH(l, t);
        l->current = t;
        l->budget = RS_BUDGET;
}

/* Tells the sanitizers that the thread leaves this stack for that of `to`. */
static inline __attribute__((always_inline)) void tell_leave(struct rs_loop *l, void **fake, struct rs_task *to)
{
#if defined(RS_ASAN) || defined(RS_TSAN)
        struct rs_context c = l->native;

        if (to) {
                c.bottom = to->stack->base + l->stacks.guard;
                c.size = (size_t)(to->stack->top - (const char *)c.bottom);
                c.tsan_fiber = to->stack->tsan_fiber;
        }
        rs_asan_leave(fake, c.bottom, c.size);
        RS_TSAN_SWITCH(c.tsan_fiber);
#else
        (void)l, (void)fake, (void)to;
#endif
}

/* Leaves the running context, saved in *save, for `to`, NULL being the loop. Returns when somebody switches back. */
static inline __attribute__((always_inline)) void transfer(struct rs_loop *l, void **save, struct rs_task *to)
{
        void *fake = NULL;

        set_current(l, to);
        tell_leave(l, &fake, to);
        if (RS_UNLIKELY(!to)) {
                rs_switch(save, l->sp);
        } else if (RS_LIKELY(to->sp != NULL)) {
                rs_switch(save, to->sp);
        } else {
                to->sp = to->stack->top; /* started */
                rs_switch_new(save, to->stack->top, rs_task_entry, l->control);
        }
        rs_asan_arrive(fake);
}

/* Runs on every task's stack: the task, and then those that take the stack over. Returns where the thread goes when
 * none is left for it. Thread-local reads stay valid: tasks never migrate. */
void *rs_task_entry(void)
{
        struct rs_loop *l = rs_loop_current;
        struct rs_stack *k = l->current->stack;

        rs_asan_arrive(NULL);
        for (;;) {
                struct rs_task *t = l->current;

                errno = 0;
                int rc = t->fn(t->arg);
                rs_task_end(l, t, rc);
                l->switches++;
                t = take_next(l);
                if (t && !t->sp && !t->stack && !k->class) {
                        /* Takes over this stack: the promise of another goes back. */
                        rs_stack_unreserve(&l->stacks);
                        t->stack = k;
                        t->sp = k->top; /* started */
                        rs_switch_control_set(l->control);
                        set_current(l, t);
                        continue;
                }
                if (RS_UNLIKELY(t && !t->sp)) {
                        /* One that needs another stack: the loop starts it. */
                        put_back(l, t);
                        t = NULL;
                }
                rs_stack_give(&l->stacks, k);
                set_current(l, t);
                tell_leave(l, NULL, t);
                return t ? t->sp : l->sp;
        }
}

/* Gives the thread away; the caller has seen to it that somebody makes the current task ready. */
static inline void park(struct rs_loop *l)
{
        struct rs_task *t = l->current, *next = take_runnable(l);
        int saved = errno;

        l->switches++;
        if (RS_LIKELY(next != t))
                transfer(l, &t->sp, next);
        else
                set_current(l, t);
        errno = saved;
}

intptr_t rs_wait(struct rs_loop *l, struct rs_wait *w)
{
        struct rs_task *t = l->current;

        w->task = t;
        t->wait = w;
        t->since = l->now;
        RS_PROBE_PARK(t, w);
        park(l);
        return w->result;
}

/* One of several; never a wait that was woken before. */
static __attribute__((noinline)) void wake_choice(struct rs_wait *w, intptr_t result)
{
        struct rs_wait *waits = w->task->wait;

        assert(waits && w->object == waits);
        struct rs_choice *c = RS_CONTAINER(waits, struct rs_choice, wait);
        rs_wake(waits, c->chosen(c, w, result));
}

void rs_wake(struct rs_wait *w, intptr_t result)
{
        struct rs_task *t = w->task;

        if (RS_UNLIKELY(t->wait != w)) {
                wake_choice(w, result);
                return;
        }
        w->result = result;
        t->wait = NULL;
        struct rs_loop *l = rs_loop_current;
        rs_ready(l, t);
        RS_EVENT(l, rs_ring_woken(l, t));
        RS_PROBE_WAKE(l, t);
}

void rs_wake_check(const struct rs_list *line)
{
        const struct rs_task *t = line->first ? RS_CONTAINER(line->first, struct rs_wait, node)->task : NULL;

        if (t && (!rs_loop_current || !rs_task_is_here(rs_loop_current, t->mark)))
                rs_task_abort(t,
                              "is woken by a thread that does not run its loop; what tasks share is for that loop's "
                              "thread alone: let the thread job return, and its task do the rest; between loops there "
                              "are channels and posts");
}

void rs_yield(struct rs_loop *l)
{
        rs_ready(l, l->current);
        park(l);
}

void rs_budget_yield(struct rs_loop *l)
{
        if (l->current->attention & RS_NOSUSPEND)
                l->budget = RS_BUDGET;
        else
                rs_yield(l);
}

void rs_task_abort(const struct rs_task *t, const char *format, ...)
{
        va_list args;

        fprintf(stderr, "resha: task \"%s\" spawned at %s: ", t && t->name ? t->name : "?",
                t && t->site ? t->site : "?");
        va_start(args, format);
        vfprintf(stderr, format, args);
        va_end(args);
        fputc('\n', stderr);
        abort();
}

void rs_frame_abort(struct rs_loop *l)
{
        if (rs_loop_current != l)
                rs_task_abort(l->current,
                              "a forked child returns into its parent's loop: end it with _exit() or exec()");
        rs_task_abort(
                l->current,
                "a function returned with its scope or group still open; declare it with RESHA_SCOPE or RESHA_GROUP");
}

static int refuse_suspend(struct rs_loop *l)
{
        const struct rs_scope *s = l->current->scope;

        while (s && !s->why)
                s = s->parent;
        return rs_misuse(-EDEADLK, "suspends inside a no-suspend region (%s)",
                         l->deep ? "deep call"
                         : s     ? s->why
                                 : "?");
}

static inline uint32_t ignored_most(const struct rs_loop *l)
{
        return l->debug ? RS_IGNORED_DEBUG : RS_IGNORED_REPORT;
}

/* Not cold: its call would stand in a part of rs_enter_slow() that stacks (trace.c) do not know it by. */
static __attribute__((noinline)) void report_ignored(struct rs_loop *l, struct rs_task *t)
{
        resha_error e = { .text = "cancelled" };

        rs_reason_describe(t, &e);
        rs_report(l, RESHA_REPORT_IGNORED_CANCEL, -ECANCELED, t, "goes on although %d waits said that it is %s%s%s",
                  (int)ignored_most(l), e.text, e.site ? " at " : "", e.site ? e.site : "");
}

int rs_enter_slow(struct rs_loop *l)
{
        struct rs_task *t = l->current;

        if (t->attention & RS_NOSUSPEND)
                return refuse_suspend(l);
        if (t->attention & RS_WATCHED && l->watch)
                l->watch(l, l->watch_arg);
        if (!(t->attention & RS_CANCELLED)) {
                if (t->escaped)
                        t->escaped->passed = true;
                t->attention &= (uint8_t)~RS_ESCAPED;
                return 0;
        }
        l->ignored_cancels++;
        if (++t->ignored == ignored_most(l))
                report_ignored(l, t);
        rs_yield(l);
        return -ECANCELED;
}

void rs_task_watch(struct rs_loop *l, struct rs_task *t)
{
        t->attention |= RS_WATCHED;
        if (l->watch_new)
                l->watch_new(l, t);
}

void rs_watch_checkpoints(struct rs_loop *l, void (*fn)(struct rs_loop *l, void *arg), void *arg)
{
        l->watch = fn;
        l->watch_arg = arg;
        if (l->current)
                l->current->attention |= RS_WATCHED;
}

int rs_outside(void)
{
        return resha_fail_at(
                -EPERM, NULL,
                "called outside of a task, and without a loop nobody can wait: resha_main() and resha_run() "
                "start both");
}

int rs_enter_shielded(struct rs_loop **ret_loop)
{
        struct rs_loop *l = rs_loop_current;

        if (!l || !l->current)
                return rs_outside();
        *ret_loop = l;
        return l->current->attention & RS_NOSUSPEND ? refuse_suspend(l) : 0;
}

void rs_run_ready(struct rs_loop *l)
{
        l->each = l->step.limit || RS_RING_OF(l) || l->shuffle;
        l->run_left = l->poll_left = RS_POLL_SWITCHES;
        if (RS_UNLIKELY(l->each))
                l->run_left = 1;
        l->poll_ticks = l->simulated ? UINT64_MAX : rs_ticks() + (l->crowd ? 4 : 1) * rs_ticks_poll();
        struct rs_task *t = take_runnable(l);
        if (t)
                transfer(l, &l->sp, t);
}

/* ---- the public calls that only schedule ---- */

int resha_yield(void)
{
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (rc == 0)
                rs_yield(l);
        return rc;
}

int resha_checkpoint(void)
{
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (rc < 0)
                return rc;
        /* A time stamp is cheap beside the work between two checkpoints, so a long step is seen at once: the loop
         * polls. */
        bool late = rs_ticks() >= l->poll_ticks;
        if (late) {
                l->run_left = 1;
                if (RS_UNLIKELY(RS_RING_OF(l) != NULL))
                        RS_RING_OF(l)->check = 0;
        }
        if (late || --l->budget == 0)
                rs_yield(l);
        return 0;
}

bool resha_cancelled(void)
{
        struct rs_loop *l = rs_loop_current;

        return l && l->current && (l->current->attention & RS_CANCELLED);
}

bool resha_in_task(void)
{
        return rs_loop_current && rs_loop_current->current;
}
