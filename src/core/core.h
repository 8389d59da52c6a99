/* SPDX-License-Identifier: MIT */
#ifndef RS_CORE_H
#define RS_CORE_H

/* Tasks, scopes, groups and the loop, as the layers above see them.
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

#include "base/heap.h"
#include "base/list.h"
#include "core/inbox.h"
#include "core/ring.h"
#include "io/backend.h"
#include "sys/stack.h"

struct rs_task;
struct rs_group;
struct rs_local;
struct rs_loop;

/* ---- waiting ---- */

struct rs_wait {
        struct rs_node node; /* for the object's list of waiters; free to use by whoever made the wait */
        struct rs_task *task;
        void (*cancel)(struct rs_wait *w);
        const char *what; /* "sleep", "mutex", "read", ...; static: shown by reports and the inspector */
        const void *object;
        intptr_t result;
};

/* The wait of a task that waits for the first of several (select). Each of these has a rs_wait of its own in the line
 * of its object, with `task` set, `object` this one's wait, and no cancel: rs_wake() of one of them calls chosen(),
 * which takes the others out of their lines and returns the result of the whole. */
struct rs_choice {
        struct rs_wait wait;
        intptr_t (*chosen)(struct rs_choice *c, struct rs_wait *w, intptr_t result);
};

/* Whom a wait waits for, where tasks can be named: the owner of a mutex, the task of a handle, the children of a group.
 * next() goes through them: the one after `after`, NULL being before the first; NULL: no more. ALL of them must do
 * something (end, let go) before the wait goes on, so that a circle of such waits can only be broken from outside. A
 * wait that any one of several can end is none of these, unless it waits for a single one; it waits by rs_wait(), and
 * the report of a deadlock still tells of it. */
struct rs_whom {
        struct rs_task *(*next)(const struct rs_wait *w, const struct rs_task *after);
        const char *says;   /* what reports say before the first one's name: "a mutex held by " */
        const char *nobody; /* what they say where there is none (any more) */
        bool children;      /* tasks that the waiter has started: a circle needs a wait of another kind, too */
};

/* ---- error records ---- */

struct rs_record {
        struct rs_record *next; /* of the same owner, latest first */
        bool passed;            /* of one that escaped: the task has gone on to another wait, which was not cancelled */
        resha_error error;
};

struct rs_records {
        struct rs_record *first; /* at most RS_RECORDS_MAX, one for each code */
};

enum { RS_RECORDS_MAX = 4, RS_RECORDS_SPARE = 4 };

/* ---- why something was cancelled ---- */

enum rs_cause {
        RS_CAUSE_NONE,
        RS_CAUSE_CALL,    /* resha_task_cancel() and its kin */
        RS_CAUSE_THREAD,  /* the same from a thread without a loop */
        RS_CAUSE_FAILURE, /* of a child; the group has its record */
        RS_CAUSE_BODY_FAILED,
        RS_CAUSE_BODY_ENDED,
        RS_CAUSE_LEFT,
        RS_CAUSE_DEADLINE,
        RS_CAUSE_GRACE,
        RS_CAUSE_RACE,
        RS_CAUSE_INTERRUPT,
        RS_CAUSE_TERMINATE,
        RS_CAUSE_DEADLOCK,
        RS_CAUSE_BACKEND,
        RS_CAUSE_BESIDE, /* of a loop that runs beside this one */
};

/* Of a scope or task that was cancelled when nothing around it was; beside it lies the cause. */
struct rs_reason {
        const char *site; /* of the call, or NULL; static */
        const char *who;  /* the task that called, or what a loop beside did, or NULL; static */
};

/* ---- scopes and groups: the inside of resha_scope, resha_group ---- */

struct rs_scope {
        struct rs_scope *parent;   /* the next one out: of the same task, or its group's; NULL: the run */
        struct rs_scope *inner;    /* the next one in, of the same task */
        struct rs_task *task;      /* whose frame it lies in; NULL: not begun, or ended */
        struct rs_timer timer;     /* active while a deadline is set */
        struct rs_record *before;  /* a failure that escaped before this was begun: given back at its end */
        struct rs_records records; /* shield: those of the task from before it, which it leaves alone */
        const char *why;           /* no-suspend regions */
        int begin_code;            /* what begin could not do */
        bool requested; /* cancelled here: by call, deadline, failure of a child or end of a background group */
        bool effective; /* requested, or something outside that is visible is */
        bool shield;
        bool expired;       /* the deadline passed while it was open */
        bool ended_expired; /* its end gave -ETIME on its own account */
        bool is_group, nosuspend;
        bool used, twice, dirty; /* begun; and again, while it was open; begin found it neither zero nor open */
        uint8_t cause;           /* rs_cause */
        struct rs_reason reason;
};

struct rs_group {
        struct rs_scope scope;   /* first: a group is a scope */
        struct rs_list children; /* of rs_task.sibling */
        struct rs_list spawners; /* of rs_wait.node: waiting for the limit */
        struct rs_wait *joiner;  /* the body, in end or drain */
        size_t running;          /* children that have not ended */
        size_t limit;            /* SIZE_MAX: none */
        size_t failures, cancelled;
        struct rs_record *failure; /* the first; code in failure_code also if there was no memory for it */
        resha_error *errors;
        size_t max_errors;
        /* gather, race, completions; e: NULL also for a cancelled child: to say why is a walk through all around it */
        void (*child_done)(struct rs_group *g, struct rs_task *t, int rc, const resha_error *e);
        void *child_done_arg;
        int failure_code;
        bool keep_going, background, collected; /* collected: the failures of children are child_done's alone */
};

static inline struct rs_scope *rs_scope_of(resha_scope *s)
{
        return (struct rs_scope *)(void *)s;
}

static inline struct rs_group *rs_group_of(resha_group *g)
{
        return (struct rs_group *)(void *)g;
}

/* ---- tasks ---- */

enum rs_attention {
        RS_CANCELLED = 1,
        RS_NOSUSPEND = 2,
        RS_WATCHED = 4,
        RS_ESCAPED = 8, /* the failure in `escaped` has not been passed by */
};

struct rs_task {
        /* In five cache lines. Two: what a timer that fires and a switch look at. The timer of its sleep is not cleared
         * at spawn. */
        _Alignas(64) struct rs_timer sleep;
        struct rs_task *ready_next;
        void *sp; /* while it does not run; NULL before its first run */
        struct rs_wait sleeping;

        struct rs_wait *wait;   /* while parked and not yet woken */
        uint8_t attention;      /* rs_attention: looked at by every call that may wait */
        bool cancel_requested;  /* by resha_task_cancel(), or Ctrl-C on the main task */
        bool named;             /* name is a copy of its own */
        bool owns_arg;          /* arg is a copy */
        bool circle;            /* its wait has closed a circle, which the loop has not reported yet */
        uint8_t cause;          /* rs_cause: of cancel_requested */
        uint32_t searched;      /* number of the last search for a circle that came by */
        uint32_t ignored;       /* waits that said -ECANCELED since it was last not cancelled */
        uintptr_t frame_low;    /* address of the innermost own scope if on its stack, else UINTPTR_MAX */
        struct rs_stack *stack; /* NULL before its first run */
        union {
                uint64_t mark; /* of this task among all of the process: tells it from others in the same place */
                uint32_t id;   /* from 1, in order of spawn */
        };
        const struct rs_whom *whom; /* while it waits for tasks that can be named */
        resha_fn *fn;
        void *arg;
        struct rs_scope *scope;     /* innermost: its own, else the group's; NULL for the main task outside any */
        struct rs_scope *outermost; /* of its own scopes; NULL: none */
        struct rs_group *group;     /* NULL: main task */
        struct rs_node sibling;
        resha_task *handle; /* the caller's, or NULL */
        const char *name, *site;
        int64_t started; /* the loop's time at spawn */
        struct rs_records records;
        struct rs_record *escaped; /* failure that a group or scope met while its block was left by return */
        union {
                struct rs_task *cancel_next; /* work list of a cancel */
                /* of a search for a circle: where it came from, then where the circle goes on */
                struct rs_task *link;
        };
        struct rs_reason reason; /* of cancel_requested */
        struct rs_local *locals; /* its task-locals; shared with others */
        uint32_t item, items;    /* gather, race */
};

/* ---- the loop ---- */

struct rs_context {
        const void *bottom; /* of the thread's own stack */
        size_t size;
        void *tsan_fiber;
};

enum { RS_BUDGET = 64, RS_CROWD = 32 }; /* immediate completions before a call yields; polls and crowds: sched.c */

/* Work at the end of a run, last in first out: fn runs on the main task, shielded, and may wait. */
struct rs_cleanup {
        struct rs_node node;
        void (*fn)(struct rs_cleanup *c);
};

struct rs_loop {
        struct rs_task *current; /* NULL while the loop itself runs */
        struct rs_task *ready_first, *ready_last;
        unsigned budget;   /* of the current task */
        unsigned run_left; /* switches before the loop looks whether it is time to poll */
        uint64_t poll_ticks;
        struct rs_ring *ring; /* events; NULL: off */
        void *sp;             /* the loop's own context while a task runs */
        uint64_t control;     /* floating-point control words of the thread: those that tasks begin with */
        struct rs_heap timers;
        int64_t now; /* of the last visit */
        struct rs_backend *backend;
        struct rs_stacks stacks;
        struct rs_task *task_free; /* slab */
        struct rs_list slabs;
        struct rs_record *record_free;
        struct rs_record *record_spare; /* of spares: for failures that must not be lost when there is no memory */
        struct rs_record spares[RS_RECORDS_SPARE];
        struct rs_list cleanups;
        struct rs_list given_up; /* of rs_cleanup.node: called, outside of tasks, if the run ends with tasks left */
        struct rs_list watchers; /* of rs_wait.node: who waits for several tasks */
        struct rs_task *main_task;
        resha_fn *main_fn; /* its function */
        void *main_arg;
        size_t tasks;               /* alive */
        size_t locals;              /* values of task-locals that are held */
        const struct rs_task *told; /* whose task-locals count while the report sink is called; NULL: it is not */
        size_t jobs;                /* thread jobs and look-ups under way: something outside can wake us */
        bool held;                  /* among them, by references of the program */
        size_t open;                /* streams and listeners that nobody has closed */
        uint64_t last_mark;
        size_t bound;                   /* tasks that wait by rs_wait_for() for others than children */
        uint32_t searches;              /* for circles */
        bool circles;                   /* some are to be reported */
        bool reporting;                 /* the report sink runs */
        const struct rs_task *reporter; /* on whose stack it does; NULL: the loop's */

        /* Steps, from one wait to the next: the limit, 0 being none; when the current one began; the latest that took
         * longer, to be reported at the next visit. */
        struct {
                int64_t limit, began, took; /* ns; took 0: none */
                const struct rs_task *task;
                uint64_t mark;
                const char *name, *site; /* if they are static */
        } step;
        void (*watch)(struct rs_loop *l, void *arg); /* see rs_watch_checkpoints(); NULL: nobody watches */
        void *watch_arg;
        void (*watch_new)(struct rs_loop *l, struct rs_task *t); /* for tests, while `watch` is set: a task was made */
        bool deep, crowd; /* the task is in resha_deep_call(); the last poll has woken RS_CROWD tasks or more */
        bool simulated, strict, shuffle;
        bool finished;   /* the main task has ended */
        bool deadlocked; /* nothing could wake anybody; main was cancelled for that */
        bool abandoned;  /* the grace is over and tasks are left: they are leaked */
        struct rs_timer grace;
        int main_result;
        void (*on_wake)(struct rs_loop *l); /* after rs_inbox_wake(): the signal dispatcher's */
        struct rs_inbox *inbox;             /* what other threads post; counted, outlives the loop */
        resha_run_opts opts;
        uint64_t reports, switches, polls, ignored_cancels;
        struct rs_context native; /* of the loop itself, for the sanitizers */
        /* Of the layers above, made when first needed; they register a clean-up. programs: of the simulated world. */
        void *exec, *net, *programs;
        size_t loaded;            /* bytes of the small file that was loaded last */
        struct rs_beside *beside; /* the same for loops that were started together; NULL: it runs alone */
};

extern _Thread_local struct rs_loop *rs_loop_current __attribute__((tls_model("initial-exec")));

int rs_enter_slow(struct rs_loop *l);
void rs_frame_abort(struct rs_loop *l) __attribute__((noreturn, cold));
void rs_budget_yield(struct rs_loop *l);

/* The start of every call that may suspend. 0 and the loop, or -EPERM, -ECANCELED (has yielded), -EDEADLK. */
static inline __attribute__((always_inline)) int rs_enter(struct rs_loop **ret_loop)
{
        struct rs_loop *l = rs_loop_current;

        if (RS_UNLIKELY(!l || !l->current))
                return -EPERM;
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

void rs_records_init(struct rs_loop *l);
struct rs_record *rs_record_new(struct rs_loop *l, const resha_error *e);
void rs_record_free(struct rs_loop *l, struct rs_record *r);
void rs_error_describe(struct rs_loop *l, const struct rs_task *t, int code, resha_error *ret_error);

void rs_ring_write(struct rs_loop *l, enum rs_event_kind kind, const struct rs_task *t, const char *name, int code);
#define RS_EVENT(l, kind, t, name, code) \
        do { \
                if (RS_UNLIKELY((l)->ring)) \
                        rs_ring_write((l), (kind), (t), (name), (code)); \
        } while (0)

#endif
