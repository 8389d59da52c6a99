/* SPDX-License-Identifier: MIT */
/* A run: chooses the world, starts the loop, and ends all in order. The composition root: the one place that knows
 * every layer. */

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "core/core.h"
#include "inspect/timeline.h"
#include "net/resolve.h"
#include "os/overflow.h"
#include "os/signals.h"
#include "sys/symbol.h"
#include "sys/sys.h"
#include "sys/thread.h"

/* "epoll", "sim" or "sim:SEED"; NULL: the best. */
static int backend_open(const char *name, struct rs_backend **ret_backend, bool *ret_shuffle)
{
        char *end;

        *ret_shuffle = false;
        if (!name || !*name || strcmp(name, "epoll") == 0)
                return rs_epoll_new(ret_backend);
        if (strncmp(name, "sim", 3) != 0 || (name[3] && name[3] != ':'))
                return -EINVAL;
        if (name[3] && !(name[4] >= '0' && name[4] <= '9')) /* nor a sign, which strtoull() would take */
                return -EINVAL;
        errno = 0;
        uint64_t seed = name[3] ? strtoull(name + 4, &end, 10) : 0;
        if (name[3] && (*end || errno == ERANGE))
                return -EINVAL;
        *ret_shuffle = seed != 0;
        return rs_sim_new(seed, ret_backend);
}

/* Why there is no run, to who asked for its error: no task has a record of it. */
static __attribute__((cold)) int refuse(const resha_run_opts *opts, int code, const char *format, ...)
        RESHA_PRINTF(3, 4);
static int refuse(const resha_run_opts *opts, int code, const char *format, ...)
{
        resha_error e = { .code = code };
        va_list args;

        va_start(args, format);
        vsnprintf(e.text, sizeof e.text, format, args);
        va_end(args);
        if (opts && opts->ret_error)
                *opts->ret_error = e;
        return resha_fail_at(code, NULL, "%s", e.text);
}

static bool env_true(const char *name)
{
        const char *v = getenv(name);

        return v && *v && strcmp(v, "0") != 0;
}

/* The options with their defaults put in. */
static int options(const resha_run_opts *opts, resha_run_opts *ret)
{
        *ret = opts ? *opts : (resha_run_opts){ 0 };
        for (size_t i = 0; i < sizeof ret->_reserved / sizeof ret->_reserved[0]; i++)
                if (ret->_reserved[i])
                        return refuse(opts, -EINVAL, "a reserved word of run options is not zero");
        if (!ret->backend)
                ret->backend = getenv("RESHA_BACKEND");
        if (ret->grace.ns <= 0)
                ret->grace = RESHA_S(10);
        if (env_true("RESHA_STRICT"))
                ret->strict = true;
        if (ret->strict && ret->slow_step.ns == 0)
                ret->slow_step = RESHA_MS(100);
        if (ret->slow_step.ns < 0 || ret->slow_step.ns == INT64_MAX)
                ret->slow_step.ns = 0;
        if (!ret->threads) {
                int n = rs_sys_processors();
                ret->threads = n > 28 ? 32 : (unsigned)n + 4;
        }
        if (ret->threads > 256)
                return refuse(opts, -EINVAL, "%u threads for a run: at most 256", ret->threads);
        if (ret->stack_size && !rs_stack_size_valid(ret->stack_size))
                return refuse(opts, -EINVAL, "stacks of %zu bytes for a run: %zu to 4 GiB", ret->stack_size,
                              (size_t)RS_STACK_MIN);
        return 0;
}

static void interrupted(struct rs_loop *l)
{
        if (l->opts.ret_interrupted)
                *l->opts.ret_interrupted = true;
        rs_loop_start_grace(l);
        if (!l->finished)
                rs_task_cancel(l, l->main_task, RS_CAUSE_INTERRUPT, NULL);
}

static struct rs_ring *ring_new(void)
{
        return env_true("RESHA_TIMELINE") ? resha_calloc(1, sizeof(struct rs_ring)) : NULL;
}

/* Dispositions are the process's: the first of the runs at a time takes SIGPIPE away, the last gives it back. */
static struct {
        struct rs_lock lock;
        unsigned runs;
        struct sigaction before;
        bool watches_forks;
} sigpipe = { .lock = RS_LOCK_INIT };

/* In the child. What the process has beside its loops begins anew; the loops are the parent's, with their descriptors
 * and threads. */
static void forked(void)
{
        sigpipe.lock = (struct rs_lock)RS_LOCK_INIT;
        if (sigpipe.runs)
                rs_sys_signal_put(SIGPIPE, &sigpipe.before);
        sigpipe.runs = 0;
        rs_signals_forked();
        rs_resolve_forked();
        rs_loop_forked();
}

/* Once for the process; without it nothing is run, rather than that a child gets in the way of its parent. */
static int watch_forks(void)
{
        rs_lock(&sigpipe.lock);
        int rc = sigpipe.watches_forks ? 0 : rs_thread_at_fork(forked);
        sigpipe.watches_forks = rc == 0;
        rs_unlock(&sigpipe.lock);
        return rc;
}

static bool sigpipe_ignore(void)
{
        rs_lock(&sigpipe.lock);
        bool ok = sigpipe.runs || rs_sys_signal_catch(SIGPIPE, SIG_IGN, &sigpipe.before) == 0;
        sigpipe.runs += ok;
        rs_unlock(&sigpipe.lock);
        return ok;
}

static void sigpipe_restore(void)
{
        rs_lock(&sigpipe.lock);
        if (--sigpipe.runs == 0)
                rs_sys_signal_put(SIGPIPE, &sigpipe.before);
        rs_unlock(&sigpipe.lock);
}

static int run_loop(struct rs_loop *l, resha_fn *fn, void *arg)
{
        struct rs_overflow overflow = { 0 };
        int64_t start = l->now;

        bool ignores_pipe = sigpipe_ignore();
        rs_loop_current = l;
        if (l->opts.overflow_report)
                (void)rs_overflow_install(&overflow); /* without it the fault only says less */
        int rc = l->simulated || l->opts.keep_sigint ? 0 : rs_signals_sigint_install(l, interrupted);
        if (rc == 0)
                rc = rs_loop_run(l, fn, arg);
        if (l->ring)
                rs_timeline_print(l->ring, start, rs_now(l), STDERR_FILENO);
        rs_signals_end(l);
        rs_loop_done(l);
        rs_loop_current = NULL;
        rs_overflow_remove(&overflow);
        if (ignores_pipe)
                sigpipe_restore();
        return rc;
}

int resha_run(resha_fn *fn, void *arg, const resha_run_opts *opts)
{
        struct rs_backend *backend;
        resha_run_opts o;
        struct rs_loop *l;
        bool shuffle = false;

        if (opts && opts->ret_error)
                *opts->ret_error = (resha_error){ 0 };
        if (opts && opts->ret_interrupted)
                *opts->ret_interrupted = false;
        if (rs_loop_current)
                return refuse(opts, -EBUSY,
                              "a loop runs on this thread already: call the function, or spawn it in a group");
        int rc = options(opts, &o);
        if (rc < 0)
                return rc;
        rc = watch_forks();
        if (rc < 0)
                return refuse(opts, rc, "a run cannot watch for forks: %s", resha_strerror(rc));
        rc = backend_open(o.backend, &backend, &shuffle);
        if (rc == -EINVAL)
                return refuse(opts, rc, "no backend \"%s\": epoll, sim, sim:SEED", o.backend);
        if (rc < 0)
                return refuse(opts, rc, "the backend cannot be opened: %s", resha_strerror(rc));
        l = resha_malloc(sizeof *l);
        rc = l ? rs_loop_init(l, &o, backend) : -ENOMEM;
        if (rc == 0) {
                l->shuffle = shuffle;
                l->ring = ring_new();
                rc = run_loop(l, fn, arg);
                resha_free(l->ring);
        } else {
                refuse(opts, rc, "the loop cannot be made: %s", resha_strerror(rc));
        }
        resha_free(l);
        backend->ops->destroy(backend);
        return rc;
}

const char *resha_backend(void)
{
        return rs_loop_current ? rs_loop_current->backend->ops->name : NULL;
}

/* ---- main() ---- */

enum { PRINT_PARTS = 20, PRINT_FRAMES = 16 };

static void print_stack(const resha_report *r)
{
        char line[256];
        unsigned lines = 0;

        for (size_t i = 0; i < r->depth && lines < PRINT_FRAMES; i++)
                if (rs_symbol_format(r->stack[i], line, sizeof line)) {
                        fprintf(stderr, "    %s\n", line);
                        lines++;
                }
}

static void print_report(const resha_report *r, void *arg)
{
        (void)arg;
        if (r->kind == RESHA_REPORT_FALLBACK)
                return;
        if (r->part > PRINT_PARTS) {
                if (r->part == r->parts)
                        fprintf(stderr, "resha: and so do %u more tasks\n", r->parts - PRINT_PARTS);
                return;
        }
        fprintf(stderr, "resha: ");
        if (r->task)
                fprintf(stderr, "task \"%s\"%s%s: ", r->task, r->spawned_at ? " from " : "",
                        r->spawned_at ? r->spawned_at : "");
        fprintf(stderr, "%s\n", r->text);
        print_stack(r);
}

/* rates.c:13: no rate for XXX (task 3 of 3 from rates.c:22, after 1.0 s; the others had finished) */
static void print_failure(int rc, const resha_error *e)
{
        if (e->site)
                fprintf(stderr, "%s: ", e->site);
        fputs(e->code ? e->text : resha_strerror(rc), stderr);
        if (e->items && e->spawned_at) {
                fprintf(stderr, " (task %u of %u from %s, after %.1f s; ", e->item, e->items, e->spawned_at,
                        (double)e->after.ns / 1e9);
                if (e->cancelled)
                        fprintf(stderr, "%u %s cancelled)", e->cancelled,
                                e->cancelled == 1 ? "other was" : "others were");
                else
                        fputs("the others had finished)", stderr);
        } else if (e->spawned_at) {
                fprintf(stderr, " (task %s from %s, after %.1f s)", e->task ? e->task : "?", e->spawned_at,
                        (double)e->after.ns / 1e9);
        }
        fputc('\n', stderr);
}

int resha_main(resha_fn *fn, void *arg)
{
        resha_error error;
        bool ctrl_c;
        int rc = resha_run(fn, arg,
                           &(resha_run_opts){ .overflow_report = true,
                                              .report = print_report,
                                              .ret_error = &error,
                                              .ret_interrupted = &ctrl_c });

        fflush(stdout);
        if (rc >= 0)
                return 0;
        if (rc == -ECANCELED && (error.code == 0 || error.code == -ECANCELED) && ctrl_c)
                return 130;
        print_failure(rc, &error);
        return 1;
}
