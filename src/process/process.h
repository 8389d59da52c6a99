/* SPDX-License-Identifier: MIT */
#ifndef RS_PROCESS_H
#define RS_PROCESS_H

/* The inside of processes, for the files of this folder. */

#include <errno.h>

#include <resha/process.h>

#include "core/core.h"

/* What a process is made of: a child of this one, or a program of the simulated world. Each behaves as process.c needs
 * it; impl is that of the process. */
struct rs_process_ops {
        /* Whether it has ended: 1 and *ret_exit, once only; 0: no; negative: nobody will ever know. */
        int (*look)(resha_process *p, resha_exit *ret_exit);
        /* 0 or negative; also asked when it has ended, if it is a group. */
        int (*signal)(resha_process *p, int sig);
        /* The thread stands still until it has ended, for at most `ns` (INT64_MAX: without limit): where tasks cannot
         * wait for its fd. */
        void (*stand_still)(resha_process *p, int64_t ns);
        /* It has ended, or is `left` behind: what is left of its group is killed, it is reaped, impl is released. */
        void (*done)(resha_process *p, bool left);
        /* The run was given up after its grace. Outside of tasks: nothing may wait. */
        void (*give_up)(resha_process *p);
};

enum rs_process_state {
        RS_PROCESS_RUNS,
        RS_PROCESS_ENDED,
        RS_PROCESS_LOST, /* has ended, and its status is somebody else's */
};

struct resha_process {
        const struct rs_process_ops *ops;
        void *impl; /* of ops */
        struct rs_loop *loop;
        struct rs_cleanup cleanup;  /* at the end of the run */
        struct rs_cleanup given_up; /* if that is given up */
        struct rs_list waiters;     /* of rs_wait.node: those that do not poll */
        struct rs_op *op;           /* of the waiter that polls; NULL: nobody does */
        struct rs_wait *closer;     /* waits until nobody is inside */
        size_t inside;              /* tasks in a call that waits */
        resha_group *talk;          /* of resha_process_communicate(), while a task is in there */
        resha_stream *pipes[3];     /* our ends; NULL: none, or closed */
        size_t fed;                 /* of the input of resha_process_communicate(); SIZE_MAX: no more is to come */
        enum rs_process_state state;
        int lost;        /* the code of RS_PROCESS_LOST */
        int fd;          /* readable once it has ended; -1: rs_process_told() says so */
        int pid;         /* 0: a simulated one */
        bool group;      /* signals are for a group, which is there until `done` */
        bool closing;    /* its owner ends it */
        int64_t grace;   /* ns; negative: none */
        int64_t held;    /* the same */
        resha_exit exit; /* of RS_PROCESS_ENDED */
        struct rs_shown shown;
        char name[64]; /* what it was started as, the end of it if that is longer; for messages */
};

/* A new one that does not run yet: options that hold for every kind are taken from opts. NULL: no memory. */
resha_process *rs_process_new(struct rs_loop *l, const resha_process_opts *opts);

/* It runs, with ops and impl set: from now on it belongs to the run, until its owner closes it. */
void rs_process_begin(resha_process *p);

/* It does not run: its pipes are closed, and it is freed. [task] not a cancellation point */
void rs_process_drop(resha_process *p);

/* On the loop: it has ended, and everybody who waits is to look. */
void rs_process_told(resha_process *p);

/* Around a call that waits: in a task, not cancelled, not closing; a close waits until it has left. */
int rs_process_enter(resha_process *p);
void rs_process_leave(resha_process *p);

/* ---- children of this process ---- */

/* The program of the options, as p, which is new. 0 or negative; then p is as it was but for pipes. */
int rs_child_spawn(resha_process *p, const resha_process_opts *opts);

/* What runs as `pid` from now on is p. 0; negative: it was killed and reaped. */
int rs_child_begin(resha_process *p, int pid);

/* The program's environment. *ret_made: what is to be freed when it has it; NULL: nothing. */
int rs_process_environment(const resha_process_opts *opts, const char *const **ret_env, const char ***ret_made);

/* Why a program could not be started, as a code with its record. */
int rs_child_failed(const resha_process_opts *opts, int code);

/* A record for -ECHILD. */
int rs_child_lost(const char *name, int code);

struct rs_waits;
extern const struct rs_waits rs_process_waits; /* for who looks from outside */

#endif
