/* SPDX-License-Identifier: MIT */
#ifndef RS_CORE_LOOP_H
#define RS_CORE_LOOP_H

/* The loop, one of a thread. */

#include <sys/types.h>

#include "core/inbox.h"
#include "core/ring.h"
#include "core/shown.h"
#include "core/stats.h"
#include "core/task.h"
#include "io/backend.h"

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
        unsigned run_left; /* switches before the loop looks whether it is time to poll, or at something else */
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
        bool debug;         /* more is reported, and stacks are marked: docs/debug-mode.md */
        bool each;          /* each switch is looked at: steps are timed, the ring is on, or the order is shuffled */
        unsigned poll_left; /* then: switches before the loop polls, where that goes by their number */
        bool finished;      /* the main task has ended */
        bool deadlocked;    /* nothing could wake anybody; main was cancelled for that */
        bool abandoned;     /* the grace is over and tasks are left: they are leaked */
        struct rs_timer grace;
        int main_result;
        void (*on_wake)(struct rs_loop *l); /* after rs_inbox_wake(): the signal dispatcher's */
        struct rs_inbox *inbox;             /* what other threads post; counted, outlives the loop */
        resha_run_opts opts;
        uint64_t reports, switches, polls, ignored_cancels;
        struct rs_counters counters;
        struct rs_list shown;      /* of struct rs_shown: what is open */
        struct rs_list shown_past; /* the same, without objects: what those came to that have ended, by kind and name */
        struct rs_shown_walks shown_walks;
        struct rs_context native; /* of the loop itself, for the sanitizers */
        /* Of the layers above, made when first needed; they register a clean-up. programs: of the simulated world. */
        void *exec, *net, *programs;
        size_t loaded;                /* bytes of the small file that was loaded last */
        struct rs_beside *beside;     /* the same for loops that were started together; NULL: it runs alone */
        struct rs_stack_marks *marks; /* of stacks; NULL: not kept */
        pid_t tid;                    /* the thread that it was made on */
        /* of rs_loops: with its lock, any thread. The last one: walks copy what is before */
        struct rs_loop *next_loop;
};

/* All loops of the process, the latest first, with a lock of their own: for a debugger, which knows of none but by
 * this. */
extern struct rs_loop *rs_loops;

/* With that lock: none of them ends meanwhile. fn must not begin or end a run. [any thread] */
void rs_loops_each(void (*fn)(struct rs_loop *l, void *arg), void *arg);

extern _Thread_local struct rs_loop *rs_loop_current __attribute__((tls_model("initial-exec")));

#endif
