/* SPDX-License-Identifier: MIT */
#ifndef RS_RUN_H
#define RS_RUN_H

/* Between the files of run: backend.c (which world), run.c (a run that has the thread to itself), embed.c (one that
 * lends it from another loop), main.c (what prints), process.c (what runs change of the process). */

#include "core/core.h"
#include "inspect/dump.h"
#include "inspect/inspector.h"
#include "inspect/watchdog.h"
#include "os/signals.h"

/* A run, from its options to its end. */
struct rs_run {
        struct rs_loop loop;
        int64_t start;                /* the loop's time */
        struct rs_subscriber signals; /* those that interrupt it */
        struct rs_watched watched;
        struct rs_inspected inspected;
        struct rs_dumped dumped;
        struct rs_trace *trace; /* of RESHA_TRACE */
        bool ignores_pipe;
        bool timeline, waits; /* RESHA_TIMELINE; and what each lane waits for */
};

struct rs_world {
        struct rs_backend *backend;
        bool shuffle;     /* ready tasks come in any order */
        int fallback;     /* negative: the best one cannot be had, */
        char why[RS_WHY]; /* and why */
};

/* The world of that name; NULL or "": the best. 0, or why there is none, with a record, also in opts->ret_error. */
int rs_world_open(const resha_run_opts *opts, const char *name, struct rs_world *w);

/* Everything but the main task. 0, or why there is no run, with a record, also in opts->ret_error. */
int rs_run_open(const resha_run_opts *opts, struct rs_run **ret_run);

/* Its loop, on this thread, can be looked at from outside as its options say (watchdog, inspector): from when its main
 * task is there to when all have ended. steps: NULL, or where an embedded run says that a step is under way. */
void rs_run_watch(struct rs_run *r, const bool *steps);
void rs_run_unwatch(struct rs_run *r);

/* All tasks have ended, or were given up. Frees it. */
void rs_run_close(struct rs_run *r);

/* The event ring, where the environment asks for a timeline or a trace. 0, or why there is no run, as rs_run_open().
 * end: it is drawn, and written to its end. */
int rs_record_begin(struct rs_run *r, const resha_run_opts *opts);
void rs_record_end(struct rs_run *r);

/* Why there is no run, to who asked for its error: no task has a record of it. */
int rs_run_refuse(const resha_run_opts *opts, int code, const char *format, ...) RESHA_PRINTF(3, 4)
        __attribute__((cold));

/* The sink that prints to stderr. */
void rs_report_print(const resha_report *r, void *arg);

/* resha_run(), of one of the loops that have `beside` in common. */
int rs_run_beside(resha_fn *fn, void *arg, const resha_run_opts *opts, struct rs_beside *beside);

/* Once for the process; without it nothing is run, rather than that a child gets in the way of its parent. */
int rs_process_watch_forks(void);

/* SIGPIPE is ignored from the first of the runs at a time to the end of the last. False: it cannot be. */
bool rs_process_ignore_sigpipe(void);
void rs_process_restore_sigpipe(void);

#endif
