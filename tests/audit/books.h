/* SPDX-License-Identifier: MIT */
#ifndef BOOKS_H
#define BOOKS_H

/* What the files of the audit share: the trial that runs, and the books. The books lie outside of the program's data,
 * which is put back between two trials. */

#define AUDIT_INSIDE
#include "audit.h"

#include <resha/test.h>

#include "core/core.h"
#include "hooks.h"
#include "test.h"
#include "test/inject.h"

/* ---- the trial ---- */

struct audit {
        resha_test_trial trial;
        struct rs_inject inject;
        uint64_t number;    /* of the trial, from 1 */
        bool disturbed;     /* by its seed; else see audit_disturbed() */
        unsigned abandoned; /* tasks, or the test itself, that were ended at an assertion */
        unsigned stuck, deadlocks;
        unsigned lost;         /* errors reported as lost */
        uint64_t begun, ended; /* tasks */
        bool may_get_stuck;    /* it does undisturbed, on purpose */
        bool has_streams;      /* or others like them, which the test releases, unless it is ended before */
        bool endless;          /* it was cancelled for having no end */
        int last_child_rc;     /* what the group was told of the task that ended last */
        char context[256];
};
extern struct audit *audit;

/* Whether something was done to this trial: then its assertions need not hold. */
bool audit_disturbed(void);

/* The books do not agree: prints what, and the trial, and ends the process. */
void audit_wrong(const char *format, ...) RESHA_PRINTF(1, 2) __attribute__((noreturn));

/* ---- leaving (leave.c) ---- */

/* Runs fn(arg); audit_leave() inside of it, at any depth, runs the clean-ups of all frames in between and makes this
 * return true. *ret_rc is fn's result otherwise. */
bool audit_enter(resha_fn *fn, void *arg, int *ret_rc);

/* Ends the task that runs, or outside of any the test. Never returns to its caller. */
void audit_leave(void) __attribute__((noreturn));

/* Runs fn(arg) as the main task, which is the current one, and sees to it that it and its children can be left. */
int leave_main(struct rs_loop *l, resha_fn *fn, void *arg);

void leave_setup(void *(*take)(size_t size)); /* take: memory that no trial puts back */

/* ---- books of objects (ledger.c) ---- */

void ledger_setup(void *(*take)(size_t size));

enum kind { SEMAPHORE = 1, MUTEX, CONDITION, QUEUE, EVENT, BARRIER, LIMITER, GROUP, CHANNEL };
enum { STARTS = 64 };

struct entry {
        const void *at;
        enum kind kind;
        uint64_t trial;        /* of another one: free */
        int64_t all;           /* permits, parties, rates, references */
        int64_t in, out, gone; /* put or given; taken or delivered; dropped */
        size_t takers, givers; /* tasks inside of a call that may take, or give */
        uint64_t sum;          /* of the items put, less those taken and dropped */
        uint32_t owner;        /* of a mutex: the task's number; 0: nobody */
        bool loose;            /* not all that happened was seen */
        bool freed;            /* a queue or channel */
        size_t item_size;
        resha_drop_fn *drop;
        struct waiting *waiting; /* at an event */
        int64_t starts[STARTS];  /* the last ones; a barrier: how often each place was given */
        uint64_t started;
        resha_rate rates[RESHA_RATES_MAX]; /* of a limiter, `all` of them */
};

struct entry *books_find(const void *at, enum kind kind);  /* NULL: not in the books of this trial */
struct entry *books_entry(const void *at, enum kind kind); /* made where there is none */
struct entry *books_fresh(const void *at, enum kind kind); /* made anew */

/* Items of queues and channels (queues.c). dropping: whose items are being dropped. check: returns rc. */
extern struct entry *items_dropping;
void items_drop(void *item);
uint64_t items_sum(const struct entry *e, const void *item);
void items_put(struct entry *e, uint64_t sum);
void items_got(struct entry *e, const void *item);
int items_check(const struct entry *e, int rc);
void items_inside_end(size_t **count);

/* Of channels (channels.c). */
int64_t channel_inside(const struct entry *e);
void channel_check_waiter(const struct rs_wait *w, const char *task);

/* The current task is about to be left: gives back the locks that it holds. */
void books_release(const struct rs_task *t);

/* At most so many allocations belong to objects that the test has not released. */
size_t books_held(void);

/* Nobody can go on: nobody must wait for what is there. */
void books_check_waiters(struct rs_loop *l);

#endif
