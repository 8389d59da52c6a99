/* SPDX-License-Identifier: MIT */
#ifndef RESHA_RUN_H
#define RESHA_RUN_H

/* Running a program on a loop. A loop belongs to the thread that runs it.
 *
 * Order at the end of a run, also after a failure: the main task returns; background jobs, pools and look-ups of the
 * loop are given up or waited for; the loop is closed; signal dispositions are restored. Tasks cannot be left over:
 * groups own them. */

#include <resha/base.h>
#include <resha/time.h>

RESHA_BEGIN_DECLS

/* What nobody else can see is reported, never printed. */
enum resha_report_kind {
        RESHA_REPORT_LOST_ERROR = 1, /* a child failed and the block that owned it was left with success */
        RESHA_REPORT_IGNORED_CANCEL, /* a task went on for long although each of its waits said -ECANCELED */
        /* the run is over but this task or job cannot be ended: its memory is leaked on purpose */
        RESHA_REPORT_STUCK,
        RESHA_REPORT_DEADLOCK, /* all tasks wait and nothing can wake them */
        RESHA_REPORT_FALLBACK, /* a backend or kernel feature is missing and another way is taken */
        /* items of a queue without a drop function went with it; results of threads came when the run had ended */
        RESHA_REPORT_DROPPED,
        /* tasks wait for one another in a circle: of each the report. The waits go on: a deadline or a cancel may still
         * end one. Part 1 is the one that closed the circle, and its text has all of it */
        RESHA_REPORT_CYCLE,
        RESHA_REPORT_TASK, /* resha_report_tasks() */
        /* a server has run out of descriptors, memory or stacks: it pauses, and goes on when there is room. Once for
         * each shortage, at most once a second. Or all threads for look-ups hang, and a look-up was given up before it
         * began. Or there is no room for the rest of the file of RESHA_TRACE */
        RESHA_REPORT_SHORTAGE,
        RESHA_REPORT_SLOW, /* a task ran for longer than slow_step from one wait to the next */
        /* streams, listeners, datagram sockets, files or subscriptions to signals were not closed at its end */
        RESHA_REPORT_LEFT_OPEN,
        RESHA_REPORT_INSECURE, /* a check that keeps others out has been switched off */
        /* the loop is blocked: a task has run for longer than `blocked` and runs on; `stack` is where it is now, if
         * that can be seen. Again whenever the time has doubled, and once it is over. Told by a thread of its own, as
         * the loop's is blocked (the last one, if the run ends, by that): the sink must not begin or end a run, nor
         * wait for the loop */
        RESHA_REPORT_BLOCKED,
        RESHA_REPORT_INSPECT, /* the inspector that was asked for cannot be had; `text` says why */
};

/* What many tasks take part in is reported once for each of them: part 1 to `parts`, one right after the other.
 *
 * What a task waits for is in `text`, with the tasks it waits for and where those were spawned, where they are known:
 * the holder of a mutex, the task of a handle, the children of a group. Where it waits is in `stack`. */
typedef struct resha_report {
        enum resha_report_kind kind;
        int code;                 /* the error, or 0 */
        const char *task;         /* or NULL */
        const char *spawned_at;   /* or NULL */
        const char *text;         /* one line; valid during the call */
        const void *const *stack; /* the task's: return addresses, innermost first, valid during the call; or NULL */
        size_t depth;             /* how many */
        unsigned part, parts;     /* which of how many; 1 and 1 for a report on its own */
        uint64_t _reserved[2];
} resha_report;

/* The sink. It runs on the loop's thread outside of tasks: what may wait gives -EPERM, and what would be reported while
 * it runs is counted only. Errors it makes are nobody's: the run goes on. */
typedef void resha_report_fn(const resha_report *report, void *arg);

/* One address of a report's stack, or of resha_task_stack(), as resha_main() prints it: "parse+0x37 (demo.c:88)"; the
 * name of the file in place of the line where it was built without -g, of addresses that nothing is known of the
 * number. False, and ret_text is as it was: it lies inside of this library, which is of no use to a reader.
 * [any-thread], blocks it (reads files)
 *
 *     for (size_t i = 0; i < report->depth; i++)
 *             if (resha_frame_format(report->stack[i], line, sizeof line))
 *                     fprintf(log, "    %s\n", line); */
RESHA_API bool resha_frame_format(const void *return_address, char *ret_text, size_t size);

typedef struct resha_run_opts {
        const char *backend; /* "uring", "epoll", "sim:SEED" [NULL: $RESHA_BACKEND, else the best that works] */
        /* how long tasks and jobs may take to end once Ctrl-C, SIGTERM or a deadlock has cancelled the main task [10
         * s] */
        resha_duration grace;
        size_t stack_size; /* bytes of address space for each task's stack, guard included [256 KiB] */
        /* leave SIGINT alone [false: first Ctrl-C cancels the main task, second ends the process] */
        bool keep_sigint;
        bool strict;          /* misuse aborts with its reason [false; also $RESHA_STRICT=1] */
        bool overflow_report; /* catch SIGSEGV to name the task whose stack overflowed, then hand on [false] */
        /* SIGTERM cancels the main task, too, unless tasks of the run ask for it (signal.h); further ones do nothing
         * more [false] */
        bool terminate;
        unsigned threads;        /* most of the loop's default pool, to 256 [number of processors + 4, at most 32];
                                  * and most of those that wait for files [32] */
        resha_report_fn *report; /* [NULL: reports are dropped, but counted] */
        void *report_arg;
        struct resha_error *ret_error; /* the error record of fn, code 0 if it succeeded [NULL]; written always */
        /* whether Ctrl-C or SIGTERM has cancelled the main task, whatever became of it [NULL]; written always */
        bool *ret_interrupted;
        /* a task that runs for longer than this from one wait to the next is reported, with its stack, once it waits:
         * nobody else could run meanwhile. Costs a look at the clock at each switch; not in the simulated world
         * [0: 100 ms if strict, else none; RESHA_FOREVER: none] */
        resha_duration slow_step;
        /* a loop that is blocked for longer than this is reported while it is, by a watchdog thread of the process:
         * RESHA_REPORT_BLOCKED. Costs the loop nothing but a look each time it wakes. Of an embedded run only steps are
         * watched. Not in the simulated world, under Valgrind or TSan. Less than 4 ms is taken for 4 ms [0: none, but
         * 250 ms with resha_main(); RESHA_FOREVER: none; $RESHA_BLOCKED, in ms, in place of either, 0: none] */
        resha_duration blocked;
        int *ret_signal; /* the first of those: SIGINT or SIGTERM, 0 for none [NULL]; written always */
        /* the inspector: a thread of the process and a socket, private to the user, by which `resha ps` and its kin
         * look at all loops for which this is set (inspect.h). Not in the simulated world
         * [false; $RESHA_INSPECT in place of either: 1, or 0 for none] */
        bool inspect;
        /* looks for mistakes at some cost: steps from 50 ms on are reported, cancels that are ignored after 10 waits,
         * failures of tasks that nobody looks at, and what is left open each with its place; exact stack marks. Where
         * the run has no sink, reports are printed on stderr (docs/debug-mode.md) [false; also $RESHA_DEBUG=1] */
        bool debug;
        /* on this signal all tasks are written to stderr, as resha_dump() does, also of a loop that is blocked (not in
         * the simulated world) [0: none; $RESHA_DUMP in place of it: USR1, USR2, QUIT, or a number] */
        int dump_signal;
        uint64_t _reserved[3];
} resha_run_opts;

/* Runs fn(arg) as the main task of a new loop on this thread, until it and all it started have ended. Prints nothing.
 * Result: fn's; -ECANCELED after Ctrl-C or SIGTERM that fn passed on; -EBUSY inside a running loop; -EINVAL for
 * options; -ENOMEM; -EDEADLK if all tasks wait and nothing can wake them. [any-thread]
 *
 * A process that is forked inside a run, and does not exec, is outside of it: calls of tasks give -EPERM there, and it
 * may have a run of its own. It must end by _exit(), exit() or exec(); where it returns from a task or a thread job it
 * aborts. More in docs/signals.md.
 *
 * The backend is io_uring where it works, else epoll, which is reported as RESHA_REPORT_FALLBACK with the reason: many
 * containers and systems forbid io_uring. One that is asked for by name and cannot be had is an error, with the reason
 * in its record.
 *
 * SIGPIPE is ignored while it runs. If the grace passes and a task or thread job still does not end, it is reported as
 * stuck, its memory is leaked on purpose, and the call returns all the same: what such a task borrows must then not be
 * on the caller's stack. */
RESHA_API int resha_run(resha_fn *fn, void *arg, const resha_run_opts *opts);

/* The same for main(): prints a failure as one line on stderr, and reports but those of a fallback: programs run as
 * well on the other backend. (RESHA_BACKEND=uring fails with the reason.) Where nobody reads stderr, that waits for 2 s
 * and is then dropped, as is all that comes until somebody reads, who sees how many texts they were. Result, an exit
 * status: 0 good, 1 failed, 130 interrupted by Ctrl-C, 143 by SIGTERM, which does the same (`terminate`), so that
 * services and containers end in order; where fn gives 0 or more all the same, 0. [any-thread] */
RESHA_API int resha_main(resha_fn *fn, void *arg);

/* Reports each task of the running loop that has not ended to the sink, with what it waits for, and its stack: what a
 * program does to see why it hangs. 0, or -EPERM outside a loop. [loop] */
RESHA_API int resha_report_tasks(void);

/* Tells the sink of the running loop, as the current task if there is one: for libraries on top of this one. `format`
 * is printf's; of the text 511 bytes count. 0, or -EPERM outside a loop. [loop] */
RESHA_API int resha_report_text(enum resha_report_kind kind, int code, const char *format, ...) RESHA_PRINTF(3, 4);

/* Name of the running loop's backend, "uring", "epoll" or "sim"; NULL outside a loop. [any-thread] */
RESHA_API const char *resha_backend(void);

RESHA_END_DECLS
#endif
