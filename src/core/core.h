/* SPDX-License-Identifier: MIT */
#ifndef RS_CORE_H
#define RS_CORE_H

/* Tasks, scopes, groups and the loop, as the layers above see them: what is done with the structs of task.h and loop.h.
 *
 * How a call waits, in every layer above:
 *
 *     struct rs_loop *l;
 *     int rc = rs_enter(&l);              1. in a task? cancelled? no-suspend? frame check. No side effect before this.
 *     if (rc < 0) return rc;
 *     if (can be done at once)
 *             return rs_complete(l, ...); 2. counts against the budget of immediate completions; may yield
 *     struct rs_wait w = { .cancel = ..., .what = "mutex" };
 *     put &w where the waker finds it
 *     return rs_wait(l, &w);              3. parks; the result is what rs_wake() was given
 *
 * A waker takes the wait out of its object and calls rs_wake(): from then on the operation is completed, and a cancel
 * that comes before the task runs changes nothing ("a completed operation wins"). rs_wait.cancel is called at most
 * once, when a scope around the wait is cancelled: it undoes the wait and calls rs_wake(w, -ECANCELED), or asks the
 * backend to let go and leaves the wake-up to the completion. cancel == NULL: not a cancellation point. */

#include <stdbool.h>
#include <stdint.h>

#include <resha/resha.h>

#include "core/loop.h"
#include "core/task.h"

int rs_enter_slow(struct rs_loop *l);
int rs_outside(void) __attribute__((cold)); /* -EPERM, and a record that says what is missing */
void rs_frame_abort(struct rs_loop *l) __attribute__((noreturn, cold));
void rs_budget_yield(struct rs_loop *l);

/* The start of every call that may suspend. 0 and the loop, or -EPERM, -ECANCELED (has yielded), -EDEADLK. */
static inline __attribute__((always_inline)) int rs_enter(struct rs_loop **ret_loop)
{
        struct rs_loop *l = rs_loop_current;

        if (RS_UNLIKELY(!l || !l->current)) {
                (void)rs_outside();
                return -EPERM; /* so that compilers see that it is not 0 */
        }
#ifndef RS_NO_FRAME_CHECK
        /* A scope below the caller's frame belongs to a function that has returned: memory is already wrong. The
         * canonical frame address is where the caller's frame ends, on every architecture. */
        if (RS_UNLIKELY((uintptr_t)__builtin_dwarf_cfa() > l->current->frame_low))
                rs_frame_abort(l);
#endif
        *ret_loop = l;
        if (RS_UNLIKELY(l->current->attention))
                return rs_enter_slow(l);
        return 0;
}

/* As rs_enter(), for calls that are not cancellation points but may suspend. 0, -EPERM, -EDEADLK. */
int rs_enter_shielded(struct rs_loop **ret_loop);

/* For tests: fn(l, arg) is called at each checkpoint of the current task (if any) and of all tasks made from now on,
 * before the call there looks whether it is cancelled. fn may cancel tasks; it must not suspend. NULL ends it. */
void rs_watch_checkpoints(struct rs_loop *l, void (*fn)(struct rs_loop *l, void *arg), void *arg);

/* The end of a call that did not have to wait. */
static inline int rs_complete(struct rs_loop *l, int result)
{
        if (RS_UNLIKELY(--l->budget == 0))
                rs_budget_yield(l);
        return result;
}

/* Parks the current task until rs_wake(w). w->cancel and w->what are set by the caller, task and result here. */
intptr_t rs_wait(struct rs_loop *l, struct rs_wait *w);
void rs_wake(struct rs_wait *w, intptr_t result);

/* For calls that are made outside of tasks too, before they wake who is first in line: aborts where this thread does
 * not run the loop of that task. Nothing that tasks share has a lock: it is not whole any more. */
void rs_wake_check(const struct rs_list *line);

/* A task begins, and ends, to wait for tasks that can be named: around its wait, or also around one before it. */
static inline void rs_whom_set(struct rs_loop *l, struct rs_task *t, const struct rs_whom *whom)
{
        t->whom = whom;
        l->bound += !whom->children;
}

static inline void rs_whom_clear(struct rs_loop *l, struct rs_task *t)
{
        l->bound -= !t->whom->children;
        t->whom = NULL;
}

void rs_circle_check(struct rs_loop *l, struct rs_task *t, struct rs_wait *w);

/* rs_wait() for tasks that can be named. If that closes a circle it is reported, and waits all the same. */
static inline __attribute__((always_inline)) intptr_t rs_wait_for(struct rs_loop *l, struct rs_wait *w,
                                                                  const struct rs_whom *whom)
{
        struct rs_task *t = l->current;

        t->whom = whom;
        l->bound += !whom->children;
        if (RS_UNLIKELY(l->bound))
                rs_circle_check(l, t, w);
        intptr_t result = rs_wait(l, w);
        l->bound -= !whom->children;
        t->whom = NULL;
        return result;
}

/* Waits for an operation that was submitted and is not done. */
ssize_t rs_operation_wait(struct rs_loop *l, struct rs_op *op, const char *what);

/* Runs an operation to its end, and cancels it when cancelled. Result: op->result. The caller has entered. */
static inline __attribute__((always_inline)) ssize_t rs_operation(struct rs_loop *l, struct rs_op *op, const char *what)
{
        if (RS_UNLIKELY(!l->backend->ops->submit(l->backend, op)))
                return rs_operation_wait(l, op, what);
        if (RS_UNLIKELY(--l->budget == 0))
                rs_budget_yield(l);
        return op->result;
}

/* Gives up an operation that another task waits for (close): it returns with `code`, once the backend has let go. */
void rs_operation_abort(struct rs_loop *l, struct rs_op *op, int code);

void rs_cleanup_add(struct rs_loop *l, struct rs_cleanup *c);
void rs_cleanup_remove(struct rs_loop *l, struct rs_cleanup *c);

/* A thread that runs a job for a task has no loop; resha_fail() and resha_error_of() use these records while set. */
void rs_thread_records_set(struct rs_records *records);

/* A mistake of the program: `code` with its record, and in a strict run an abort that says the same. */
int rs_misuse(int code, const char *format, ...) RESHA_PRINTF(2, 3) __attribute__((cold, noinline));

/* Error records. give: a copy of e to the current task, job or thread; silently not, where there is no memory. */
void rs_error_give(struct rs_loop *l, const resha_error *e);
void rs_records_free(struct rs_loop *l, struct rs_records *records);
const resha_error *rs_records_find(const struct rs_records *records, int code);
const resha_error *rs_task_record(const struct rs_task *t, int code); /* those outside of its shields too */
void rs_records_shield(struct rs_task *t, struct rs_scope *s);
void rs_records_unshield(struct rs_loop *l, struct rs_task *t, struct rs_scope *s);

/* Tells the sink, if there is one, and counts. The sink runs outside of tasks, whoever reports. */
void rs_report(struct rs_loop *l, enum resha_report_kind kind, int code, const struct rs_task *t, const char *format,
               ...) RESHA_PRINTF(5, 6);

/* Task-locals. hold: NULL too. drop: l NULL, of a loop that has ended. job: what a thread job sees, if one begins. */
struct rs_local *rs_local_hold(struct rs_local *v);
void rs_local_drop(struct rs_loop *l, struct rs_local *v);
void rs_local_job(bool begins, const struct rs_local *values);

/* Return addresses of the task's stack from the call that waits outwards, at most max: their number. 0: it has not
 * started, or runs with too little room left on its stack. */
size_t rs_task_stack(struct rs_loop *l, const struct rs_task *t, const void **ret_addresses, size_t max);

/* Of a mark, the upper bits tell the loop, the others the task: more than any run starts. */
enum { RS_MARK_RUN = 44 };

/* Whether the task with this mark is, or was, one of this loop. */
static inline bool rs_task_is_here(const struct rs_loop *l, uint64_t mark)
{
        return mark >> RS_MARK_RUN == l->last_mark >> RS_MARK_RUN;
}

/* Whether the scope is open, and a task of this thread's loop has opened it. */
static inline bool rs_scope_is_here(const struct rs_scope *s)
{
        return rs_loop_current && s->task && rs_task_is_here(rs_loop_current, s->task->mark);
}

/* Whether what was task t with this mark has not ended. t need not be of this loop, or be there at all. */
static inline bool rs_task_alive(const struct rs_loop *l, const struct rs_task *t, uint64_t mark)
{
        return t && rs_task_is_here(l, mark) && t->mark == mark && t->fn;
}

/* Timers outside of scopes: fire() runs on the loop, outside of tasks; it may wake. */
static inline void rs_timer_set(struct rs_loop *l, struct rs_timer *t, int64_t deadline)
{
        t->deadline = deadline;
        rs_heap_insert(&l->timers, t);
}

static inline void rs_timer_clear(struct rs_loop *l, struct rs_timer *t)
{
        if (rs_timer_active(t))
                rs_heap_remove(&l->timers, t);
}

static inline int64_t rs_now(struct rs_loop *l)
{
        return l->backend->ops->now(l->backend);
}

/* a + b, at most INT64_MAX. */
static inline int64_t rs_time_add(int64_t a, int64_t b)
{
        int64_t r;

        return __builtin_add_overflow(a, b, &r) ? (b > 0 ? INT64_MAX : INT64_MIN) : r;
}

/* The loop: made, run and ended by src/run. */
int rs_loop_init(struct rs_loop *l, const resha_run_opts *opts, struct rs_backend *backend);
int rs_loop_begin(struct rs_loop *l, resha_fn *fn, void *arg); /* fn(arg) as the main task; 0, -ENOMEM, -EAGAIN */
void rs_loop_finish(struct rs_loop *l);                        /* runs until that has ended, or was given up */
int rs_loop_result(struct rs_loop *l);                         /* of it, or why it was given up */
void rs_loop_done(struct rs_loop *l);

/* Runs what can be run without waiting, until nobody is ready or, in between tasks, `until` has passed. False: the main
 * task has ended or was given up. True: the next step is due when the backend's descriptor is readable, or at *ret_due
 * (INT64_MIN: now). Simulated, the clock moves by it, to what is next; it may take some milliseconds then. */
bool rs_loop_step(struct rs_loop *l, int64_t until, int64_t *ret_due);

/* In a forked child, on its only thread, which is outside of every loop from now on. A task that it still runs must not
 * return: that would be into the parent's loop, and aborts. */
void rs_loop_forked(void);
extern unsigned rs_forks; /* how often that has happened on the way to this process */

void rs_task_cancel(struct rs_loop *l, struct rs_task *t, enum rs_cause cause, const char *site);

/* For those who wait by something else than resha_task_wait(): 0 if the task has ended, -EAGAIN if not, -EINVAL,
 * -EDEADLK, -EPERM for one of another loop; and the line of rs_wait.node where each is woken when it ends, with what
 * rs_status_told() reads. */
int rs_task_ended(const struct rs_loop *l, const resha_task *h);
struct rs_list *rs_task_line(resha_task *h);
static inline intptr_t rs_status_tell(int status) /* never negative: those say why a wait has ended otherwise */
{
        return (intptr_t)(uint32_t)status;
}
static inline int rs_status_told(intptr_t result)
{
        return (int)(uint32_t)result;
}
_Static_assert(sizeof(intptr_t) > sizeof(int), "a status and a sign");

/* ---- between the files of core ---- */

/* Tasks in the ready queue or waiting are `alive`; freed ones are in the loop's list, with fn NULL. */
static inline void rs_ready(struct rs_loop *l, struct rs_task *t) /* at the end of the queue */
{
        t->ready_next = NULL;
        if (l->ready_first)
                l->ready_last->ready_next = t;
        else
                l->ready_first = t;
        l->ready_last = t;
}
void rs_yield(struct rs_loop *l);     /* to the end of the queue; returns when its turn comes */
void rs_run_ready(struct rs_loop *l); /* the loop gives the thread to tasks until it is time to poll */
void rs_task_abort(const struct rs_task *t, const char *format, ...) RESHA_PRINTF(2, 3) __attribute__((noreturn, cold));

void rs_slab_each(struct rs_loop *l, struct rs_node *slab, void (*fn)(struct rs_loop *l, struct rs_task *t, void *arg),
                  void *arg); /* alive ones */
void rs_slabs_free(struct rs_loop *l);
void *rs_task_entry(void);                                            /* the first function on every task's stack */
struct rs_task *rs_circle_find(struct rs_loop *l, struct rs_task *t); /* the next of t in it; then by `link` */
void rs_report_circles(struct rs_loop *l);
void rs_report_lost(struct rs_loop *l, const struct rs_task *t, const resha_error *e, const char *remedy);
void rs_report_slow_step(struct rs_loop *l);
void rs_report_deadlock(struct rs_loop *l);
void rs_report_stuck(struct rs_loop *l);
void rs_loop_start_grace(struct rs_loop *l);
void rs_loop_cancel(struct rs_loop *l, enum rs_cause cause, const char *site); /* main, and it must end within it */
enum rs_handle_state { RS_HANDLE_NEW, RS_HANDLE_RUNNING, RS_HANDLE_ENDED };    /* resha_task._state */
void rs_task_watch(struct rs_loop *l, struct rs_task *t);
void rs_watch_ended(struct rs_loop *l, const resha_task *h);
void rs_watch_spawned(struct rs_loop *l, const resha_task *h);
struct rs_task *rs_task_new(struct rs_loop *l, resha_fn *fn, void *arg);
void rs_task_end(struct rs_loop *l, struct rs_task *t, int rc); /* frees it */
int rs_spawn(struct rs_loop *l, struct rs_group *g, resha_fn *fn, void *arg, const char *name, const char *site,
             struct rs_task **ret_task);
/* What gather and race run: n calls of their own, or one function over n items. */
struct rs_batch {
        const resha_call *calls; /* or NULL */
        resha_fn *fn;
        char *items;
        size_t n, size;
        const char *name, *site;
};
static inline resha_call rs_batch_call(const struct rs_batch *b, size_t index)
{
        return b->calls ? b->calls[index] : (resha_call){ b->fn, b->items + index * b->size, b->name };
}
int rs_spawn_item(struct rs_group *g, const struct rs_batch *b, size_t index); /* waits for a place, spawns, numbers */
void rs_gather_not_started(const resha_gather_opts *o, size_t from, size_t n); /* what those items say */
bool rs_reserved_zero(const uint64_t words[4]);
/* Whether what surrounds the task's own scopes is cancelled. */
static inline bool rs_task_base_cancelled(const struct rs_task *t)
{
        return t->cancel_requested || (t->group && t->group->scope.effective);
}

void rs_scope_open(struct rs_loop *l, struct rs_scope *s);
bool rs_scope_open_twice(struct rs_loop *l, struct rs_scope *s); /* a begin found s->task set; false: that is none */
int rs_scope_refused(const struct rs_scope *s); /* its code, with a record, if begin failed or it is not open here */
void rs_scope_close(struct rs_loop *l, struct rs_scope *s); /* inner ones first */
void rs_scope_close_inner(struct rs_loop *l, struct rs_scope *s);
/* What a boundary sees outside of it. */
static inline bool rs_scope_outside_cancelled(const struct rs_scope *s)
{
        const struct rs_scope *parent = s->parent;

        if (s->shield)
                return false;
        return parent && parent->task == s->task ? parent->effective : rs_task_base_cancelled(s->task);
}
void rs_scope_request(struct rs_loop *l, struct rs_scope *s, enum rs_cause cause, const char *site);
struct rs_reason rs_reason_new(const struct rs_loop *l, enum rs_cause cause, const char *site);
void rs_reason_describe(const struct rs_task *t, resha_error *e); /* text and site; nothing if none is known */
void rs_task_attend(struct rs_task *t);                           /* attention and frame_low from its innermost scope */
int rs_attribute(struct rs_loop *l, struct rs_task *t, int rc, bool cancelled_outside);
void rs_escape(struct rs_loop *l, struct rs_task *t, struct rs_record *r);

void rs_group_open(struct rs_loop *l, struct rs_group *g, const resha_group_opts *opts);
int rs_group_close(struct rs_loop *l, struct rs_group *g, int rc);
void rs_group_fail(struct rs_loop *l, struct rs_group *g, int code, const resha_error *e, enum rs_cause cause);
void rs_group_place_free(struct rs_group *g);
void rs_group_child_ended(struct rs_loop *l, struct rs_group *g, struct rs_task *t, int rc, bool cancelled);
/* child_done of groups that the library makes for itself: of what fails beyond the first the program is not told. */
void rs_group_passes_over(struct rs_group *g, struct rs_task *t, int rc, const resha_error *e);

void rs_records_init(struct rs_loop *l);
struct rs_record *rs_record_new(struct rs_loop *l, const resha_error *e);
void rs_record_free(struct rs_loop *l, struct rs_record *r);
void rs_error_describe(struct rs_loop *l, const struct rs_task *t, int code, resha_error *ret_error);

/* fn(arg) on the thread's own stack: at once, where that is the one it runs on. It neither suspends nor calls what is
 * not ours. */
int rs_deep(struct rs_loop *l, resha_fn *fn, void *arg);

#endif
