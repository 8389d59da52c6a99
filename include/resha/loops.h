/* SPDX-License-Identifier: MIT */
#ifndef RESHA_LOOPS_H
#define RESHA_LOOPS_H

/* Several loops at once, each on a thread of its own: a program on every core.
 *
 *     static int serve(void *arg) // on each loop
 *     {
 *             RESHA_CLEANUP(resha_listener_closep) resha_listener *l = NULL;
 *             int rc = resha_listen(arg, &(resha_listen_opts){ .shared = true }, &l);
 *
 *             return rc < 0 ? rc : resha_serve(l, echo, NULL, NULL);
 *     }
 *
 *     int main(void)
 *     {
 *             resha_addr at;
 *
 *             if (resha_addr_parse("0.0.0.0", 8017, &at) < 0)
 *                     return 1;
 *             return resha_main_loops(serve, &at, 0, 0);
 *     }
 *
 * Tasks, and what they share by mutex, queue or stream, belong to one loop. Loops reach each other by what other
 * threads use, too: channels (channel.h), portals (portal.h), resha_loop_post(). */

#include <resha/base.h>
#include <resha/run.h>

RESHA_BEGIN_DECLS

/* Runs fn() as the main task of n loops, each on a thread of its own but for one, which has the caller's, and returns
 * when all have ended: loop i gets the address of item i, `size` bytes each (size 0: all get `items`). n 0: a loop for
 * each processor that this process may use. The first failure cancels the other loops' main tasks, as
 * resha_loop_cancel() does, and they must end within their grace. Result: 0; or that failure, its record naming the
 * loop (resha_error.item of .items) in opts->ret_error; -ECANCELED only if no loop failed otherwise: after Ctrl-C or
 * SIGTERM, which cancel them all, unless tasks of one of them wait for the signal (signal.h): then it is theirs;
 * -EINVAL, -EBUSY as resha_run(); -EAGAIN, -ENOMEM if a thread cannot be started: those that run are cancelled.
 *
 * A loop in which all tasks wait for nobody stands still: another one may yet fail, and end it. Once all that are left
 * stand still, one of them is in a deadlock (-EDEADLK), and that ends all. What may be woken from outside does not
 * stand still: a task that waits for a descriptor, a timer, a channel or a job, and a loop to which somebody has a
 * reference (resha_loop_ref(), a portal). So two loops that wait for each other's posts or channels for ever are not
 * seen.
 *
 * The options hold for each loop. The report sink may be called by several threads at once. Threads are not bound to
 * processors. In the simulated world there is one loop, on which fn() runs as n tasks of a group: the order is the
 * seed's. [any-thread], not inside a loop */
#define resha_run_loops(...) resha_run_loops_at(RESHA_SITE, __VA_ARGS__)
RESHA_API int resha_run_loops_at(const char *site, resha_fn *fn, void *items, size_t n, size_t size,
                                 const resha_run_opts *opts);

/* The same for main(), as resha_main() is to resha_run(): prints failures and reports. Result, an exit status: 0 good,
 * 1 failed, 130 interrupted by Ctrl-C, 143 by SIGTERM. [any-thread], not inside a loop */
#define resha_main_loops(...) resha_main_loops_at(RESHA_SITE, __VA_ARGS__)
RESHA_API int resha_main_loops_at(const char *site, resha_fn *fn, void *items, size_t n, size_t size);

/* Processors that this process may use: at least 1. [any-thread] */
RESHA_API unsigned resha_processors(void);

RESHA_END_DECLS
#endif
