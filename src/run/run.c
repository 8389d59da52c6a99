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
#include "os/overflow.h"
#include "run/run.h"
#include "sys/sys.h"

static void no_signal_yet(const resha_run_opts *opts)
{
        if (opts && opts->ret_interrupted)
                *opts->ret_interrupted = false;
        if (opts && opts->ret_signal)
                *opts->ret_signal = 0;
}

int rs_run_refuse(const resha_run_opts *opts, int code, const char *format, ...)
{
        resha_error e = { .code = code };
        va_list args;

        va_start(args, format);
        vsnprintf(e.text, sizeof e.text, format, args);
        va_end(args);
        if (opts && opts->ret_error)
                *opts->ret_error = e;
        no_signal_yet(opts);
        return resha_fail_at(code, NULL, "%s", e.text);
}

/* Threads for calls about files: they wait for disks, not for processors, and start when they are needed. */
enum { CREW_DEFAULT = 32 };

/* The threshold of the watchdog: 0 is none. False: what the environment says is no number of milliseconds. */
static bool find_blocked_limit(resha_duration given, int64_t *ret)
{
        const char *ms = getenv("RESHA_BLOCKED");
        char *end = NULL;

        *ret = given.ns < 0 || given.ns == INT64_MAX ? 0 : given.ns;
        if (!ms || !*ms)
                return true;
        long long n = strtoll(ms, &end, 10);
        if (*ms < '0' || *ms > '9' || *end)
                return false;
        if (given.ns != INT64_MAX)
                *ret = n > INT64_MAX / 1000000 ? 0 : n * 1000000;
        return true;
}

static bool env_true(const char *name)
{
        const char *v = getenv(name);

        return v && *v && strcmp(v, "0") != 0;
}

/* Reports go to stderr where nobody else gets them. */
static void debug_options(resha_run_opts *o)
{
        if (!o->report)
                o->report = rs_report_print;
        if (o->slow_step.ns == 0)
                o->slow_step = RESHA_MS(50);
        if (o->blocked.ns == 0)
                o->blocked = RESHA_MS(250);
}

/* The options with their defaults put in. */
static int options(const resha_run_opts *opts, resha_run_opts *ret)
{
        *ret = opts ? *opts : (resha_run_opts){ 0 };
        for (size_t i = 0; i < sizeof ret->_reserved / sizeof ret->_reserved[0]; i++)
                if (ret->_reserved[i])
                        return rs_run_refuse(opts, -EINVAL, "a reserved word of run options is not zero");
        if (!ret->backend)
                ret->backend = getenv("RESHA_BACKEND");
        if (ret->grace.ns <= 0)
                ret->grace = RESHA_S(10);
        if (env_true("RESHA_STRICT"))
                ret->strict = true;
        if (env_true("RESHA_DEBUG"))
                ret->debug = true;
        if (ret->debug)
                debug_options(ret);
        if (ret->strict && ret->slow_step.ns == 0)
                ret->slow_step = RESHA_MS(100);
        if (ret->slow_step.ns < 0 || ret->slow_step.ns == INT64_MAX)
                ret->slow_step.ns = 0;
        const char *inspect = getenv("RESHA_INSPECT");
        if (inspect && *inspect)
                ret->inspect = strcmp(inspect, "0") != 0;
        const char *dump = getenv("RESHA_DUMP");
        if (dump && *dump)
                ret->dump_signal = strcmp(dump, "0") == 0 ? 0 : rs_dumper_signal(dump);
        if (ret->dump_signal < 0)
                return rs_run_refuse(opts, -EINVAL, "%s%s: USR1, USR2, QUIT, or the number of a signal; 0 for none",
                                     dump && *dump ? "RESHA_DUMP=" : "dump_signal", dump && *dump ? dump : "");
        if (!find_blocked_limit(ret->blocked, &ret->blocked.ns))
                return rs_run_refuse(opts, -EINVAL, "RESHA_BLOCKED=%s: milliseconds, or 0 for no watchdog",
                                     getenv("RESHA_BLOCKED"));
        if (!ret->threads) {
                int n = rs_sys_processors();
                ret->threads = n > 28 ? 32 : (unsigned)n + 4;
        }
        if (ret->threads > 256)
                return rs_run_refuse(opts, -EINVAL, "%u threads for a run: at most 256", ret->threads);
        if (ret->stack_size && !rs_stack_size_valid(ret->stack_size))
                return rs_run_refuse(opts, -EINVAL, "stacks of %zu bytes for a run: %zu to 4 GiB", ret->stack_size,
                                     (size_t)RS_STACK_MIN);
        return 0;
}

static void interrupted(struct rs_loop *l, int sig)
{
        if (l->opts.ret_signal && !*l->opts.ret_signal)
                *l->opts.ret_signal = sig;
        if (l->opts.ret_interrupted)
                *l->opts.ret_interrupted = true;
        rs_loop_cancel(l, sig == SIGTERM ? RS_CAUSE_TERMINATE : RS_CAUSE_INTERRUPT, NULL);
}

int rs_run_open(const resha_run_opts *opts, struct rs_run **ret_run)
{
        struct rs_world world;
        resha_run_opts o;

        if (opts && opts->ret_error)
                *opts->ret_error = (resha_error){ 0 };
        no_signal_yet(opts);
        int rc = options(opts, &o);
        if (rc < 0)
                return rc;
        rc = rs_process_watch_forks();
        if (rc < 0)
                return rs_run_refuse(opts, rc, "a run cannot watch for forks: %s", resha_strerror(rc));
        rc = rs_world_open(opts, o.backend, &world);
        if (rc < 0)
                return rc;
        world.backend->threads = opts && opts->threads ? opts->threads : CREW_DEFAULT;
        struct rs_run *r = resha_calloc(1, sizeof *r);
        rc = r ? rs_loop_init(&r->loop, &o, world.backend) : -ENOMEM;
        if (rc < 0) {
                resha_free(r);
                world.backend->ops->destroy(world.backend);
                return rs_run_refuse(opts, rc, "the loop cannot be made: %s", resha_strerror(rc));
        }
        r->loop.shuffle = world.shuffle;
        r->start = r->loop.now;
        r->ignores_pipe = rs_process_ignore_sigpipe();
        if (world.fallback < 0)
                rs_report(&r->loop, RESHA_REPORT_FALLBACK, world.fallback, NULL, "epoll in place of io_uring: %s",
                          world.why);
        rc = rs_record_begin(r, opts);
        if (rc < 0)
                rs_run_close(r);
        else
                *ret_run = r;
        return rc;
}

void rs_run_watch(struct rs_run *r, const bool *steps)
{
        struct rs_loop *l = &r->loop;
        char why[256];

        rs_watchdog_add(&r->watched, l, l->opts.blocked.ns, steps);
        int rc = l->opts.inspect ? rs_inspector_add(&r->inspected, l, steps, why, sizeof why) : 0;
        if (rc < 0)
                rs_report(l, RESHA_REPORT_INSPECT, rc, NULL, "this process cannot be looked at: %s", why);
        rc = rs_dumper_add(&r->dumped, l, l->opts.dump_signal, why, sizeof why);
        if (rc < 0)
                rs_report(l, RESHA_REPORT_INSPECT, rc, NULL, "no tasks are written on a signal: %s", why);
}

void rs_run_unwatch(struct rs_run *r)
{
        rs_dumper_remove(&r->dumped);
        rs_inspector_remove(&r->inspected);
        rs_watchdog_remove(&r->watched);
}

void rs_run_close(struct rs_run *r)
{
        struct rs_loop *l = &r->loop, *around = rs_loop_current;
        struct rs_backend *backend = l->backend;

        rs_loop_current = l;
        rs_record_end(r);
        rs_signals_end(l);
        rs_loop_done(l);
        rs_loop_current = around;
        if (r->ignores_pipe)
                rs_process_restore_sigpipe();
        resha_free(r);
        backend->ops->destroy(backend);
}

int rs_run_beside(resha_fn *fn, void *arg, const resha_run_opts *opts, struct rs_beside *beside)
{
        struct rs_overflow overflow = { 0 };
        struct rs_run *r;

        if (rs_loop_current)
                return rs_run_refuse(opts, -EBUSY,
                                     "a loop runs on this thread already: call the function, or spawn it in a group");
        int rc = rs_run_open(opts, &r);
        if (rc < 0)
                return rc;
        struct rs_loop *l = rs_loop_current = &r->loop;
        l->beside = beside;
        if (l->opts.overflow_report)
                (void)rs_overflow_install(&overflow); /* without it the fault only says less */
        rc = rs_signals_interrupts(l, &r->signals, interrupted, l->opts.terminate);
        if (rc == 0)
                rc = rs_loop_begin(l, fn, arg);
        bool begun = rc == 0;
        if (begun) {
                rs_run_watch(r, NULL);
                rs_loop_finish(l);
                rs_run_unwatch(r);
                rc = rs_loop_result(l);
        }
        rs_run_close(r);
        rs_loop_current = NULL;
        rs_overflow_remove(&overflow);
        return begun ? rc : rs_run_refuse(opts, rc, "the run cannot begin: %s", resha_strerror(rc));
}

int resha_run(resha_fn *fn, void *arg, const resha_run_opts *opts)
{
        return rs_run_beside(fn, arg, opts, NULL);
}

const char *resha_backend(void)
{
        return rs_loop_current ? rs_loop_current->backend->ops->name : NULL;
}
