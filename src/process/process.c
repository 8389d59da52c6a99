/* SPDX-License-Identifier: MIT */
/* Processes: waiting for them, and their end. What is the same for a child of this process (child.c) and for a program
 * of the simulated world; how one is started is in spawn.c.
 *
 * Waiting. Any number of tasks may wait, and a descriptor is polled by one: the first that comes polls, the others
 * stand in line. When it sees the end, everybody is woken; when it is cancelled, the first in line polls from then on.
 * A process without a descriptor is told of (rs_process_told()), and all stand in line.
 *
 *     RUNS --look--> ENDED      the status was fetched, once, and is kept for all who ask later
 *     RUNS --look--> LOST       somebody else has fetched it: every wait says -ECHILD
 *
 * The end (resha_process_close()): those who wait are sent away, the standard input is closed; SIGTERM, the grace,
 * SIGKILL, each under a shield, so that a cancel does not keep the owner from it; then our ends of the pipes. Reading
 * the pipes to their end is no part of it: a process that the process has started may hold them open for ever.
 *
 * Invariants
 *  1. A process that was started is in the loop's list of clean-ups until its owner ends it: it cannot outlive the run.
 *  2. Nothing is signalled that has been reaped: ops->signal is not called any more once it has ended, but for a group,
 *     whose first process is reaped by ops->done. */

#include "process/process.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <resha/alloc.h>

#include "core/waited.h"

enum { GRACE_DEFAULT_S = 3, HELD_DEFAULT_S = 1 };

/* ---- the beginning ---- */

static void left_over(struct rs_cleanup *c);
static void give_up(struct rs_cleanup *c);

resha_process *rs_process_new(struct rs_loop *l, const resha_process_opts *opts)
{
        resha_process *p = resha_calloc(1, sizeof *p);
        size_t size = strlen(opts->argv[0]);

        if (!p)
                return NULL;
        p->loop = l;
        p->fd = -1;
        p->group = opts->group || opts->session;
        p->grace = opts->grace.ns ? opts->grace.ns : RESHA_S(GRACE_DEFAULT_S).ns;
        p->held = opts->held.ns ? opts->held.ns : RESHA_S(HELD_DEFAULT_S).ns;
        p->cleanup.fn = left_over;
        p->given_up.fn = give_up;
        snprintf(p->name, sizeof p->name, "%s",
                 opts->argv[0] + (size < sizeof p->name ? 0 : size + 1 - sizeof p->name));
        return p;
}

static void describe(const void *object, char *text, size_t size)
{
        const resha_process *p = object;

        if (p->state == RS_PROCESS_LOST)
                snprintf(text, size, "pid %d, its status is lost", p->pid);
        else if (p->state == RS_PROCESS_RUNS)
                snprintf(text, size, "pid %d%s", p->pid, p->closing ? ", is being ended" : "");
        else
                snprintf(text, size, "pid %d, has ended with %s %d", p->pid, p->exit.signalled ? "signal" : "status",
                         p->exit.code);
}

void rs_process_begin(resha_process *p)
{
        static const resha_shown_kind kind = { .kind = "process", .describe = describe };

        rs_shown_add(p->loop, &p->shown, &kind, p, p->fd);
        p->shown.name = p->name;
        rs_cleanup_add(p->loop, &p->cleanup);
        rs_list_push(&p->loop->given_up, &p->given_up.node);
}

static void close_pipe(resha_process *p, int which)
{
        resha_stream *s = p->pipes[which];

        p->pipes[which] = NULL;
        resha_stream_close(s);
}

void rs_process_drop(resha_process *p)
{
        for (int i = 0; i < 3; i++)
                close_pipe(p, i);
        rs_shown_remove(&p->shown);
        resha_free(p);
}

/* ---- waiting ---- */

static void wake_one(resha_process *p)
{
        struct rs_node *n = rs_list_pop(&p->waiters);

        if (n)
                rs_wake(RS_CONTAINER(n, struct rs_wait, node), 0);
}

static void wake_all(resha_process *p, int result)
{
        for (struct rs_node *n; (n = rs_list_pop(&p->waiters));)
                rs_wake(RS_CONTAINER(n, struct rs_wait, node), result);
}

/* Whether there is nothing more to wait for. */
static bool has_ended(resha_process *p)
{
        if (p->state != RS_PROCESS_RUNS)
                return true;
        int rc = p->ops->look(p, &p->exit);
        if (rc == 0)
                return false;
        p->state = rc > 0 ? RS_PROCESS_ENDED : RS_PROCESS_LOST;
        p->lost = rc > 0 ? 0 : rc;
        wake_all(p, 0);
        return true;
}

void rs_process_told(resha_process *p)
{
        (void)has_ended(p);
}

static void wait_cancel(struct rs_wait *w)
{
        resha_process *p = (resha_process *)(uintptr_t)w->object;

        rs_list_remove(&p->waiters, &w->node);
        rs_wake(w, -ECANCELED);
}

static int stand_in_line(resha_process *p)
{
        struct rs_wait w = { .cancel = wait_cancel, .what = "process", .object = p };

        rs_list_push(&p->waiters, &w.node);
        return (int)rs_wait(p->loop, &w);
}

static int poll_end(resha_process *p)
{
        char about[sizeof p->name + 16];
        struct rs_op op = { .kind = RS_OP_POLL, .fd = p->fd, .events = POLLIN, .buf = about };

        snprintf(about, sizeof about, "%d %s", p->pid, p->name);
        p->op = &op;
        int rc = (int)rs_operation(p->loop, &op, "process");
        p->op = NULL;
        return rc;
}

/* What each call of others than the owner's end of it looks at. */
static int refuse(const resha_process *p)
{
        if (p->loop != rs_loop_current)
                return resha_fail_at(-EPERM, NULL, "process %s belongs to another loop", p->name);
        return p->closing ? resha_fail_at(-EBADF, NULL, "process %s is being closed", p->name) : 0;
}

/* Between two steps of a wait: the task may have stood still, in no wait that an end could have ended. */
static int go_on(const resha_process *p, bool owner)
{
        struct rs_loop *l;
        int rc = rs_enter(&l);

        return rc == 0 && !owner ? refuse(p) : rc;
}

int rs_process_enter(resha_process *p)
{
        int rc = go_on(p, false);

        if (rc == 0)
                p->inside++;
        return rc;
}

void rs_process_leave(resha_process *p)
{
        struct rs_wait *w = p->closer;

        if (--p->inside || !w)
                return;
        p->closer = NULL;
        rs_wake(w, 0);
}

/* Until it has ended: 0 or negative. */
static __attribute__((noinline)) int await(resha_process *p, bool owner)
{
        int rc = go_on(p, owner);

        if (rc < 0)
                return rc;
        if (has_ended(p))
                return rs_complete(p->loop, 0);
        p->inside++;
        do
                rc = p->fd < 0 || p->op ? stand_in_line(p) : poll_end(p);
        while (rc >= 0 && !has_ended(p) && (rc = go_on(p, owner)) == 0);
        if (!p->op && p->state == RS_PROCESS_RUNS)
                wake_one(p); /* who polls from now on */
        rs_process_leave(p);
        return rc < 0 ? rc : 0;
}

int resha_process_wait(resha_process *p, resha_exit *ret_exit)
{
        int rc = await(p, false);

        if (rc < 0)
                return rc;
        if (p->state == RS_PROCESS_LOST)
                return rs_child_lost(p->name, p->lost);
        if (ret_exit)
                *ret_exit = p->exit;
        return 0;
}

int resha_process_check(resha_process *p)
{
        resha_exit e;
        int rc = resha_process_wait(p, &e);

        if (rc < 0 || (!e.signalled && e.code == 0))
                return rc;
        if (!e.signalled)
                return resha_fail_at(RESHA_EPROCESS, NULL, "%s: exit status %d", p->name, e.code);
        const char *name = sigabbrev_np(e.code);
        return resha_fail_at(RESHA_EPROCESS, NULL, "%s: killed by signal %d (%s%s)%s", p->name, e.code,
                             name ? "SIG" : "a real-time signal", name ? name : "", e.core ? ", core dumped" : "");
}

/* ---- about it ---- */

static resha_stream *pipe_of(const resha_process *p, int which)
{
        return p->loop == rs_loop_current ? p->pipes[which] : NULL;
}

resha_stream *resha_process_stdin(resha_process *p)
{
        return pipe_of(p, 0);
}

resha_stream *resha_process_stdout(resha_process *p)
{
        return pipe_of(p, 1);
}

resha_stream *resha_process_stderr(resha_process *p)
{
        return pipe_of(p, 2);
}

void resha_process_close_stdin(resha_process *p)
{
        struct rs_loop *l;

        if (p->loop == rs_loop_current && rs_enter_shielded(&l) == 0)
                close_pipe(p, 0);
}

int resha_process_pid(const resha_process *p)
{
        return p->pid;
}

int resha_process_signal(resha_process *p, int sig)
{
        int rc = refuse(p);

        if (rc < 0)
                return rc;
        if (p->state == RS_PROCESS_LOST || (p->state == RS_PROCESS_ENDED && !p->group))
                return resha_fail_at(-ESRCH, NULL, "signal %d to process %s: it has ended", sig, p->name);
        rc = p->ops->signal(p, sig);
        return rc < 0 ? resha_fail_at(rc, NULL, "signal %d to process %s (%d): %s", sig, p->name, p->pid,
                                      resha_strerror(rc))
                      : 0;
}

/* ---- the end ---- */

/* In a frame of its own, because it opens a scope: await() looks at frames. True: it has ended. */
static __attribute__((noinline)) bool await_shielded(resha_process *p, int64_t ns)
{
        RESHA_SCOPE(s);

        resha_shield_begin(&s, RESHA_NS(ns));
        int rc = resha_scope_end(&s, await(p, true));
        if (rc < 0 && rc != -ETIME && p->fd >= 0) /* no memory to wait for it */
                p->ops->stand_still(p, ns);
        return has_ended(p);
}

static bool await_end(resha_process *p, int64_t ns)
{
        if (!p->loop->simulated || p->fd < 0)
                return await_shielded(p, ns);
        p->ops->stand_still(p, ns); /* its time is not the world's */
        return has_ended(p);
}

/* False: it may not be signalled. */
static bool terminate(resha_process *p)
{
        if (p->grace > 0 && p->ops->signal(p, SIGTERM) == 0) {
                (void)p->ops->signal(p, SIGCONT);
                if (await_end(p, p->grace))
                        return true;
        }
        int rc = p->ops->signal(p, SIGKILL);
        if (rc < 0 && rc != -ESRCH && !has_ended(p)) {
                rs_report(p->loop, RESHA_REPORT_STUCK, rc, NULL, "process %s (%d) cannot be ended, and is left: %s",
                          p->name, p->pid, resha_strerror(rc));
                return false;
        }
        while (!await_end(p, INT64_MAX))
                ;
        return true;
}

static void send_away(resha_process *p)
{
        if (p->op)
                rs_operation_abort(p->loop, p->op, -EBADF);
        wake_all(p, -EBADF);
        if (p->talk)
                resha_group_cancel(p->talk);
        while (p->inside) {
                struct rs_wait w = { .what = "close", .object = p };
                p->closer = &w;
                rs_wait(p->loop, &w);
        }
}

static void end(resha_process *p)
{
        p->closing = true;
        send_away(p);
        close_pipe(p, 0);
        bool left = !has_ended(p) && !terminate(p);
        rs_list_remove(&p->loop->given_up, &p->given_up.node);
        p->ops->done(p, left);
        rs_process_drop(p);
}

void resha_process_close(resha_process *p)
{
        struct rs_loop *l;

        if (!p || p->closing)
                return;
        int rc = rs_enter_shielded(&l);
        if (rc < 0 || p->loop != l)
                return; /* nobody can wait here: the end of the run ends it */
        rs_cleanup_remove(l, &p->cleanup);
        end(p);
}

void resha_process_closep(resha_process **p)
{
        resha_process_close(*p);
        *p = NULL;
}

static void left_over(struct rs_cleanup *c)
{
        resha_process *p = RS_CONTAINER(c, struct resha_process, cleanup);

        rs_report(p->loop, RESHA_REPORT_LEFT_OPEN, 0, NULL,
                  "process %s (%d) was not closed before the run ended; it is ended now", p->name, p->pid);
        end(p);
}

/* Tasks that cannot be ended are left with their stacks, and p may be among what they use: it stays. */
static void give_up(struct rs_cleanup *c)
{
        resha_process *p = RS_CONTAINER(c, struct resha_process, given_up);

        if (p->state == RS_PROCESS_RUNS || (p->state == RS_PROCESS_ENDED && p->group))
                p->ops->give_up(p);
}

/* ---- for who looks from outside ---- */

static void see_process(const struct rs_reader *r, const void *process, struct rs_waited *ret)
{
        resha_process p;

        if (r->read(&p, process, sizeof p))
                snprintf(ret->detail, sizeof ret->detail, "%d %.*s", p.pid, (int)sizeof p.name - 1, p.name);
}

static void process_see(const struct rs_reader *r, const struct rs_wait *at, const struct rs_wait *w,
                        struct rs_waited *ret)
{
        (void)at;
        see_process(r, w->object, ret);
}

const struct rs_waits rs_process_waits = { .cancel = wait_cancel, .see = process_see };
