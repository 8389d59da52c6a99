/* SPDX-License-Identifier: MIT */
#ifndef RESHA_EMBED_H
#define RESHA_EMBED_H

/* A run inside of another program's loop: that of a toolkit, of libuv, a plain poll(2). The host waits for one
 * descriptor, and whenever it is readable lends its thread for a step.
 *
 *     if (resha_embed_begin(program, NULL, NULL, &e) < 0)
 *             return 1;
 *     struct pollfd p = { .fd = resha_embed_fd(e), .events = POLLIN };
 *     do
 *             poll(&p, 1, -1); // and whatever else the host waits for
 *     while (resha_embed_step(e, RESHA_MS(5)) > 0);
 *     int rc = resha_embed_end(e);
 *
 * The descriptor is readable when there is something to do: input, a timer that is due, a post of another thread, a
 * signal that a task waits for, tasks that a step had no time for. Then only; between steps nothing has to be looked at
 * or computed. It can be watched with any of poll, select, epoll, level-triggered; nobody reads it.
 *
 * A step never waits. Between steps the thread is outside of the loop, as if it had none: [task] and [loop] calls are
 * not for the host (resha_loop_post() is), and other runs are: resha_run(), other embedded ones, as many as you like,
 * whose steps may come in any order. A step may be taken inside a task of another run, too, which stands still
 * meanwhile.
 *
 * The host owns the signals: Ctrl-C does nothing here unless the host calls resha_loop_cancel(), which it may do in its
 * handler. Signals that tasks wait for by resha_signal_wait() are caught; SIGPIPE is ignored from begin to end, as in
 * every run, for a write to a broken pipe is an error, and not the end of the host.
 *
 * Simulated ("sim:SEED") there is nothing to wait for: the descriptor is always readable, and a step moves the clock to
 * what comes next. Where that can only come from outside, from a thread or a foreign descriptor, it takes up to 10 ms.
 *
 * All calls are for the thread that began; in a process forked since then the run is the parent's. Both give -EPERM. */

#include <resha/base.h>
#include <resha/loop.h>
#include <resha/run.h>
#include <resha/time.h>

RESHA_BEGIN_DECLS

typedef struct resha_embed resha_embed;

/* A run of fn(arg) that goes on by steps; nothing of it has run yet. The options are those of resha_run(), but
 * keep_sigint is implied and overflow_report refused: handlers and signal stacks are the host's. What they point to
 * must live until the end. 0, and *ret_embed for resha_embed_end(); what resha_run() gives for a run that cannot begin;
 * -EINVAL for overflow_report; -EMFILE, -ENFILE. [any-thread] */
RESHA_API int resha_embed_begin(resha_fn *fn, void *arg, const resha_run_opts *opts, resha_embed **ret_embed);

/* What the host waits for: readable (POLLIN) when there is something to do. Always the same, the run's own, valid until
 * its end; in another process it means nothing. [any-thread] */
RESHA_API int resha_embed_fd(const resha_embed *e);

/* Runs tasks until none can go on without waiting, or, looked at between tasks, `at_most` has passed; a step takes at
 * least one look at the world, and lets tasks run for some 50 us, also if that is zero. RESHA_FOREVER: until none can
 * go on; tasks that keep waking one another keep the host out then. 1: it goes on; 0: the main task has ended, or was
 * given up, and the descriptor is quiet: end it. -EPERM; -EBUSY inside of a step of the same run. [any-thread] */
RESHA_API RESHA_MUST int resha_embed_step(resha_embed *e, resha_duration at_most);

/* A reference to the loop for this or other threads (loop.h): what the host tells the tasks goes by resha_loop_post(),
 * and resha_loop_cancel() asks the run to end while the host goes on. Whoever will wake tasks so takes it before the
 * first step: without one, tasks that wait with nobody to wake them are a deadlock. NULL where this gives -EPERM.
 * [any-thread] */
RESHA_API resha_loop *resha_embed_loop(resha_embed *e);

/* Ends the run and frees it. If the main task has not ended it is cancelled, and this waits until it has, and what it
 * started, or the grace is over: see run.h for what is left then. Result: that of resha_run(). -EPERM, -EBUSY as above:
 * nothing is ended. NULL is fine: 0. [any-thread] */
RESHA_API int resha_embed_end_at(resha_embed *e, const char *site);
/* resha_embed_end(e) */
#define resha_embed_end(e) resha_embed_end_at((e), RESHA_SITE)

RESHA_END_DECLS
#endif
