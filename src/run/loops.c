/* SPDX-License-Identifier: MIT */
/* Several runs at once, which end together.
 *
 * Each is an ordinary run on a thread; here is only what they have in common: the first failure, and where each can be
 * reached while it runs (its inbox). Both stand under one lock. Who fails first cancels those that can be reached, and
 * who comes to be reached later sees that somebody has failed: so nobody is missed. A cancel that comes when a run has
 * just ended finds its inbox closed, and does nothing.
 *
 * A run that fails with -ECANCELED has been cancelled, from here or by a signal: it is the result only if there is no
 * other.
 *
 * A loop in which all tasks wait for nobody stands still, and sleeps: another may yet fail, and end it. The last one
 * that comes to stand, or the first when the last one that ran has ended, sees that all stand, and is in a deadlock.
 * What comes from one of them to another it has posted before it stands itself, so nothing is on the way then. */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <resha/loops.h>

#include "base/alloc.h"
#include "run/run.h"
#include "sys/sys.h"
#include "sys/thread.h"

enum { LOOPS_MAX = 4096 };

struct crew;

struct side {
        struct crew *crew;
        void *item;
        size_t number;
        struct rs_thread thread;
        struct rs_inbox *inbox; /* while its main task runs */
        struct rs_loop *loop;   /* while it stands */
        bool stands, ended;
        resha_error error;
        int rc, signal;
        bool interrupted;
};

struct crew {
        struct rs_beside beside; /* first */
        struct rs_lock lock;
        resha_fn *fn;
        const resha_run_opts *opts;
        const char *site;
        size_t n, started;
        struct side *sides;
        struct side *first; /* the first that failed; NULL: none has */
};

/* Records outlive the crew. */
static const char *because(const struct side *s)
{
        static const char *const failed[] = { "loop 1 failed",  "loop 2 failed",  "loop 3 failed",  "loop 4 failed",
                                              "loop 5 failed",  "loop 6 failed",  "loop 7 failed",  "loop 8 failed",
                                              "loop 9 failed",  "loop 10 failed", "loop 11 failed", "loop 12 failed",
                                              "loop 13 failed", "loop 14 failed", "loop 15 failed", "loop 16 failed" };

        if (s->rc == -ECANCELED)
                return "another loop was cancelled";
        return s->number < sizeof failed / sizeof failed[0] ? failed[s->number] : "another loop failed";
}

static bool cancelled(int rc)
{
        return rc == -ECANCELED;
}

/* With the lock. */
static void cancel_all(struct crew *c)
{
        for (size_t i = 0; i < c->n; i++)
                if (c->sides[i].inbox)
                        rs_inbox_cancel(c->sides[i].inbox, c->site);
}

static void failed(struct side *s)
{
        struct crew *c = s->crew;

        rs_lock(&c->lock);
        bool others_go_on = !c->first;
        if (!c->first || (cancelled(c->first->rc) && !cancelled(s->rc)))
                c->first = s;
        if (others_go_on) {
                __atomic_store_n(&c->beside.because, because(s), __ATOMIC_SEQ_CST);
                cancel_all(c);
        }
        rs_unlock(&c->lock);
}

static void reachable(struct side *s)
{
        struct crew *c = s->crew;

        rs_lock(&c->lock);
        s->inbox = rs_inbox_ref(rs_loop_current->inbox);
        if (c->first)
                rs_inbox_cancel(s->inbox, c->site);
        rs_unlock(&c->lock);
}

static void out_of_reach(struct side *s)
{
        struct crew *c = s->crew;

        rs_lock(&c->lock);
        if (s->inbox)
                rs_inbox_unref(s->inbox);
        s->inbox = NULL;
        rs_unlock(&c->lock);
}

/* ---- standing still ---- */

/* Whose loop this thread runs. */
static _Thread_local struct side *this_side;

/* With the lock: whether nothing will ever happen in those that have not ended. */
static bool all_stand(const struct crew *c)
{
        for (size_t i = 0; i < c->n; i++)
                if (!c->sides[i].ended && !(c->sides[i].stands && rs_inbox_still(c->sides[i].loop->inbox)))
                        return false;
        return true;
}

static struct crew *crew_of(struct rs_beside *b)
{
        return (struct crew *)(void *)b;
}

static bool stands(struct rs_beside *b, struct rs_loop *l)
{
        struct crew *c = crew_of(b);

        rs_lock(&c->lock);
        this_side->loop = l;
        this_side->stands = true;
        bool all = all_stand(c);
        rs_unlock(&c->lock);
        return !all;
}

static void goes(struct rs_beside *b)
{
        struct crew *c = crew_of(b);

        rs_lock(&c->lock);
        this_side->stands = false;
        rs_unlock(&c->lock);
}

/* Should all that are left stand, one of them must see it: it wakes, and comes to stand again. */
static void ended(struct side *s)
{
        struct crew *c = s->crew;
        size_t i = 0;

        rs_lock(&c->lock);
        s->ended = true;
        while (i < c->n && !c->sides[i].stands)
                i++;
        if (i < c->n && all_stand(c))
                rs_inbox_wake(c->sides[i].loop->inbox);
        rs_unlock(&c->lock);
}

/* ---- a loop of them ---- */

static int side_main(void *arg)
{
        struct side *s = arg;

        reachable(s);
        int rc = s->crew->fn(s->item);
        out_of_reach(s);
        return rc;
}

static void *side_run(void *arg)
{
        struct side *s = arg;
        resha_run_opts o = s->crew->opts ? *s->crew->opts : (resha_run_opts){ 0 };

        o.ret_error = &s->error;
        o.ret_signal = &s->signal;
        o.ret_interrupted = &s->interrupted;
        this_side = s;
        s->rc = rs_run_beside(side_main, s, &o, &s->crew->beside);
        out_of_reach(s); /* a run that was given up has left its main task behind */
        if (s->rc < 0)
                failed(s);
        ended(s);
        return NULL;
}

/* The thread runs the program's code: its faults must reach its handlers, which one that is blocked would not. */
static void *thread_run(void *arg)
{
        static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS };

        for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
                (void)rs_sys_signal_block(faults[i], false);
        return side_run(arg);
}

static void cannot_start(struct side *s, int rc)
{
        s->rc = s->error.code = rc;
        snprintf(s->error.text, sizeof s->error.text,
                 "no thread can be started for loop %zu of %zu: %s; allow more processes and memory (ulimit -u, "
                 "ulimit -v, pids.max of the control group)",
                 s->number + 1, s->crew->n, resha_strerror(rc));
        failed(s);
        for (size_t i = s->number; i < s->crew->n; i++) /* those behind it are not begun, nor the caller's own */
                ended(&s->crew->sides[i]);
        ended(&s->crew->sides[0]);
}

/* The loops from the second on have threads of their own. */
static int start(struct crew *c)
{
        char name[32]; /* LOOPS_MAX has four digits */
        int rc = 0;

        for (size_t i = 1; i < c->n && rc == 0; i++) {
                snprintf(name, sizeof name, "loop-%zu", i);
                rc = rs_thread_start(&c->sides[i].thread, name, thread_run, &c->sides[i]);
                if (rc < 0)
                        cannot_start(&c->sides[i], rc);
                c->started += rc == 0;
        }
        return rc;
}

/* What becomes of all of them, to who asked for it. */
static int result(struct crew *c)
{
        const resha_run_opts *o = c->opts;
        const struct side *s = c->first;
        resha_error e = s ? s->error : (resha_error){ 0 };

        if (s && !e.items) {
                e.item = (uint32_t)(s->number + 1);
                e.items = (uint32_t)c->n;
                e.spawned_at = e.spawned_at ? e.spawned_at : c->site;
        }
        if (o && o->ret_error)
                *o->ret_error = e;
        for (size_t i = 0; o && i < c->n; i++) {
                if (o->ret_interrupted)
                        *o->ret_interrupted |= c->sides[i].interrupted;
                if (o->ret_signal && !*o->ret_signal)
                        *o->ret_signal = c->sides[i].signal;
        }
        if (s && e.code)
                rs_error_give(NULL, &e);
        return s ? s->rc : 0;
}

static int run_sides(struct crew *c)
{
        if (start(c) == 0)
                side_run(&c->sides[0]);
        for (size_t i = 1; i <= c->started; i++)
                rs_thread_join(c->sides[i].thread);
        return result(c);
}

/* ---- the simulated world ---- */

static bool is_simulated(const resha_run_opts *opts)
{
        const char *backend = opts ? opts->backend : NULL;

        if (!backend)
                backend = getenv("RESHA_BACKEND");
        return backend && strncmp(backend, "sim", 3) == 0;
}

/* As of a loop: who fails cancels the others, and they must end within their grace. */
static int task(void *arg)
{
        struct side *s = arg;

        s->rc = s->crew->fn(s->item);
        if (s->rc < 0 && !s->crew->first) {
                const resha_error *e = resha_error_of(s->rc);
                s->crew->first = s;
                s->error = e ? *e : (resha_error){ .code = s->rc };
                rs_loop_start_grace(rs_loop_current);
        }
        return s->rc;
}

static int one_loop(void *arg)
{
        struct crew *c = arg;

        return resha_gather_at(task, c->sides, c->n, sizeof c->sides[0], NULL, "loop", c->site);
}

static int run_simulated(struct crew *c)
{
        int rc = resha_run(one_loop, c, c->opts);

        return rc == -ECANCELED && c->first && !cancelled(c->first->rc) ? result(c) : rc; /* some were given up */
}

/* ---- all ---- */

int resha_run_loops_at(const char *site, resha_fn *fn, void *items, size_t n, size_t size, const resha_run_opts *opts)
{
        struct crew c = { .beside = { .stands = stands, .goes = goes },
                          .lock = RS_LOCK_INIT,
                          .fn = fn,
                          .opts = opts,
                          .site = site,
                          .n = n ? n : resha_processors() };

        if (rs_loop_current)
                return rs_run_refuse(opts, -EBUSY, "loops cannot be started inside of one: start them in main()");
        if (c.n > LOOPS_MAX)
                return rs_run_refuse(opts, -EINVAL, "%zu loops: at most %d", c.n, LOOPS_MAX);
        c.sides = resha_calloc(c.n, sizeof c.sides[0]);
        if (!c.sides)
                return rs_run_refuse(opts, -ENOMEM, "no memory for %zu loops", c.n);
        for (size_t i = 0; i < c.n; i++)
                c.sides[i] = (struct side){ .crew = &c,
                                            .number = i,
                                            .item = items && size ? (char *)items + i * size : items };
        if (opts && opts->ret_interrupted)
                *opts->ret_interrupted = false;
        if (opts && opts->ret_signal)
                *opts->ret_signal = 0;
        int rc = is_simulated(opts) ? run_simulated(&c) : run_sides(&c);
        resha_free(c.sides);
        return rc;
}

unsigned resha_processors(void)
{
        return (unsigned)rs_sys_processors();
}
