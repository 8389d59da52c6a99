/* SPDX-License-Identifier: MIT */
#ifndef RS_CORE_TASK_H
#define RS_CORE_TASK_H

/* What tasks are made of: waits, records of errors, scopes, groups and the task itself. Functions: core.h. The script
 * for gdb and the snapshots of other threads read these structs, too. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <resha/resha.h>

#include "base/heap.h"
#include "base/list.h"
#include "sys/stack.h"

struct resha_doing;
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
        /* The same for who looks from outside, at copies and in core files: no code of ours runs there. */
        uint8_t form;     /* rs_whom_form */
        uint16_t at;      /* offset in wait->object of the pointer to the one task */
        uint16_t mark_at; /* and of that task's mark, should it have ended meanwhile; 0: it cannot have */
        uint16_t n_at;    /* MANY: offset from the wait of the number (size_t) of handles at wait->object */
};

enum rs_whom_form { RS_WHOM_CHILDREN, RS_WHOM_ONE, RS_WHOM_MANY };

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
        /* In five cache lines. Two: what a timer that fires and a switch look at. The third: what calls, scopes and
         * deep calls look at. A task that reads and writes needs no others. The timer of its sleep is not cleared at
         * spawn. */
        _Alignas(64) struct rs_timer sleep;
        struct rs_task *ready_next;
        void *sp; /* while it does not run; NULL before its first run */
        union {
                struct rs_wait sleeping; /* stands in no line; where others have their node in one: */
                struct {
                        int64_t since;                   /* the loop's time when its latest wait began; 0: none has */
                        const struct resha_doing *doing; /* what it says that it does; NULL: nothing */
                };
        };

        struct rs_wait *wait;   /* while parked and not yet woken */
        uint8_t attention;      /* rs_attention: looked at by every call that may wait */
        bool cancel_requested;  /* by resha_task_cancel(), or Ctrl-C on the main task */
        bool named;             /* name is a copy of its own */
        bool owns_arg;          /* arg is a copy */
        bool circle;            /* its wait has closed a circle, which the loop has not reported yet */
        uint8_t cause;          /* rs_cause: of cancel_requested */
        uint16_t told;          /* the generation of the event ring that has its name; 0: none */
        uint32_t searched;      /* number of the last search for a circle that came by */
        uint32_t ignored;       /* waits that said -ECANCELED since it was last not cancelled */
        uintptr_t frame_low;    /* address of the innermost own scope if on its stack, else UINTPTR_MAX */
        struct rs_stack *stack; /* NULL before its first run */
        union {
                uint64_t mark; /* of this task among all of the process: tells it from others in the same place */
                uint32_t id;   /* from 1, in order of spawn */
        };
        struct rs_scope *scope;     /* innermost: its own, else the group's; NULL for the main task outside any */
        struct rs_scope *outermost; /* of its own scopes; NULL: none */
        struct rs_record *escaped;  /* failure that a group or scope met while its block was left by return */
        resha_fn *fn;
        void *arg;
        struct rs_group *group; /* NULL: main task */
        struct rs_node sibling;
        resha_task *handle; /* the caller's, or NULL */
        const char *name, *site;
        int64_t started; /* the loop's time at spawn */
        struct rs_records records;
        const struct rs_whom *whom; /* while it waits for tasks that can be named */
        union {
                struct rs_task *cancel_next; /* work list of a cancel */
                /* of a search for a circle: where it came from, then where the circle goes on */
                struct rs_task *link;
        };
        struct rs_reason reason; /* of cancel_requested */
        struct rs_local *locals; /* its task-locals; shared with others */
        uint32_t item, items;    /* gather, race */
};

_Static_assert(offsetof(struct rs_task, attention) % 64 == 0 && offsetof(struct rs_task, fn) % 64 == 0,
               "what the third line has is in it");
_Static_assert(offsetof(struct rs_task, doing) + sizeof(void *) <= offsetof(struct rs_task, sleeping.task),
               "a wait that writes its task leaves them alone");

#endif
