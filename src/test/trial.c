/* SPDX-License-Identifier: MIT */
/* Runs the trials of a test and looks at what each leaves behind.
 *
 * A trial fails by what it reports, leaks or gives, or because the program's own expectations do not hold; the first
 * thing that is wrong is kept, and the trial goes on to its end. What cannot go on (a crash, an abort, a program that
 * never ends) takes the process with it, after the line that names the trial. There is one test at a time in a process,
 * so `running` is of the process: a signal handler must find it. */

#include <resha/test.h>

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "core/core.h"
#include "io/sim.h"
#include "sys/sys.h"
#include "test/inject.h"

enum { DEFAULT_SEEDS = 20, DEFAULT_CHECKPOINTS = 1000000, DEADLY = 7, NAME_MAX = 80 };

struct test {
        const char *name;
        resha_fn *fn;
        const resha_test_opts *opts;
        void *state;
        struct rs_inject inject;
        struct rs_trials all;
        uint64_t trials, checkpoints, fired[RESHA_TEST_FAULTS];
        bool started; /* this trial has come to the program */
        bool breaks;  /* luck has made a connection fail */
        bool failed;
        char what[160];    /* is done in this trial */
        char repeat[256];  /* RESHA_TEST_TRIAL='...' */
        char problem[320]; /* the first thing that is wrong */
        struct sigaction before[DEADLY];
};

static struct test *running;

static const int deadly[DEADLY] = { SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGALRM, SIGTERM };

static __attribute__((format(printf, 2, 3))) void wrong(struct test *t, const char *format, ...)
{
        va_list args;

        if (t->failed)
                return;
        t->failed = true;
        va_start(args, format);
        vsnprintf(t->problem, sizeof t->problem, format, args);
        va_end(args);
}

/* ---- what ends the process says so first ---- */

static void say(const char *text)
{
        rs_sys_write(2, text, strlen(text));
}

/* Async-signal-safe. */
static void say_all(const char *problem)
{
        const struct test *t = running;

        say(t->name);
        say(": ");
        say(t->what);
        say(": ");
        say(t->failed ? t->problem : problem);
        say("; again: ");
        say(t->repeat);
        say("\n");
}

static void on_deadly(int sig)
{
        if (running)
                say_all(sig == SIGALRM || sig == SIGTERM ? "it does not end" : "it crashed");
        rs_sys_signal_default(sig);
        rs_sys_raise(sig);
}

static void on_sanitizer(void)
{
        if (running)
                say_all("it crashed");
}

void __sanitizer_set_death_callback(void (*fn)(void)) __attribute__((weak));

static void catch_deadly(struct test *t)
{
        if (__sanitizer_set_death_callback)
                __sanitizer_set_death_callback(on_sanitizer);
        for (size_t i = 0; i < DEADLY; i++)
                if (rs_sys_signal_catch(deadly[i], on_deadly, &t->before[i]) < 0)
                        t->before[i].sa_handler = SIG_DFL;
}

static void put_deadly(struct test *t)
{
        for (size_t i = 0; i < DEADLY; i++)
                rs_sys_signal_put(deadly[i], &t->before[i]);
}

static void endless(struct rs_loop *l, struct rs_inject *i)
{
        struct test *t = RS_CONTAINER(i, struct test, inject);

        if (i->trial->checkpoints <= i->checkpoints_max) {
                wrong(t, "task \"%s\" goes on although %u waits said that it is cancelled", l->current->name,
                      (unsigned)l->current->ignored);
                return;
        }
        wrong(t, "it does not end within %llu checkpoints", (unsigned long long)i->checkpoints_max);
        abort(); /* the handler says so */
}

/* ---- one trial ---- */

static void set_faults(struct test *t, struct rs_sim_plan *plan)
{
        for (unsigned k = 0; k < RESHA_TEST_FAULTS && plan->seed; k++)
                if (t->opts->faults[k])
                        plan->per_mille[k] = t->opts->faults[k];
}

static void count_faults(struct test *t, const struct rs_sim_plan *plan)
{
        for (unsigned k = 0; k < RESHA_TEST_FAULTS; k++)
                t->fired[k] += plan->fired[k];
        t->breaks |= plan->fired[RS_FAULT_RESET] || plan->fired[RS_FAULT_REFUSED] || plan->fired[RS_FAULT_ACCEPT] ||
                     plan->fired[RS_FAULT_LOSS];
}

static int trial_main(void *arg)
{
        struct test *t = arg;
        struct rs_loop *l = rs_loop_current;
        struct rs_sim_plan *plan = rs_sim_plan(l->backend);

        t->started = true;
        rs_inject_attach(&t->inject, l);
        set_faults(t, plan);
        int rc = t->fn(t->state);
        rs_inject_detach(&t->inject, l);
        count_faults(t, plan);
        return rc;
}

static void on_report(const resha_report *r, void *arg)
{
        struct test *t = arg;
        const resha_run_opts *o = t->opts->run;

        if (o && o->report)
                o->report(r, o->report_arg);
        if (r->kind == RESHA_REPORT_FALLBACK || r->kind == RESHA_REPORT_SHORTAGE)
                return; /* it goes on all the same */
        if (t->opts->may_report >> r->kind & 1)
                return;
        wrong(t, "task \"%s\"%s%s: %s", r->task ? r->task : "?", r->spawned_at ? " from " : "",
              r->spawned_at ? r->spawned_at : "", r->text);
}

/* Of the network, or of a process: it was its task that something was done to. */
static bool of_others(int rc)
{
        static const int codes[] = { EIO,   ENFILE,       EMFILE,   ENETUNREACH, ECONNRESET,
                                     EPIPE, ECONNREFUSED, ENOTCONN, ENOBUFS };

        for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
                if (rc == -codes[i])
                        return true;
        return rc == RESHA_EPROCESS;
}

/* Whether what was done may lead to this result. A program's own time limits pass where it waits for a task that was
 * cancelled alone. */
static bool may_end_with(const struct test *test, const resha_test_trial *t, int rc)
{
        for (size_t i = 0; i < sizeof test->opts->may_fail / sizeof test->opts->may_fail[0]; i++)
                if (rc == test->opts->may_fail[i])
                        return true;
        if (rc >= 0)
                return true;
        if (rc == -ECANCELED)
                return t->cancelled;
        if (rc == -ENOMEM || rc == -EAGAIN)
                return t->alloc_failed || t->operation_failed;
        return t->disturbed && (rc == -ETIME || of_others(rc));
}

static int run_once(struct test *t, resha_test_trial *trial, resha_error *ret_error)
{
        resha_run_opts o = t->opts->run ? *t->opts->run : (resha_run_opts){ 0 };
        char backend[32];

        snprintf(backend, sizeof backend, "sim:%llu", (unsigned long long)trial->seed);
        o.backend = backend;
        o.report = on_report;
        o.report_arg = t;
        o.ret_error = ret_error;
        t->inject = (struct rs_inject){ .trial = trial, .endless = endless };
        t->inject.checkpoints_max = t->opts->checkpoints ? t->opts->checkpoints : DEFAULT_CHECKPOINTS;
        rs_inject_begin(&t->inject);
        int rc = resha_run(trial_main, t, &o);
        rs_inject_end(&t->inject);
        return rc;
}

/* Runs the trial that *trial tells. True: nothing is wrong. */
static bool run_trial(struct test *t, resha_test_trial *trial)
{
        char settings[128];
        resha_error error;

        rs_trial_describe(trial, t->what, sizeof t->what);
        rs_trial_format(trial, settings, sizeof settings);
        snprintf(t->repeat, sizeof t->repeat, "RESHA_TEST_TRIAL='%.*s %s'", NAME_MAX, t->name, settings);
        if (t->state)
                memset(t->state, 0, t->opts->state);
        t->trials++;
        t->started = t->breaks = false;
        int64_t live = rs_alloc_live();
        int rc = run_once(t, trial, &error);
        trial->disturbed = trial->cancelled || trial->alloc_failed || trial->operation_failed || t->breaks;
        t->checkpoints += trial->checkpoints;
        if (rs_alloc_live() != live)
                wrong(t, "%lld allocations were not released", (long long)(rs_alloc_live() - live));
        if (!may_end_with(t, trial, rc))
                wrong(t, "it ended with %d: %s%s%s", rc, error.code ? error.text : resha_strerror(rc),
                      error.site ? ", at " : "", error.site ? error.site : "");
        if (t->opts->check && t->started)
                t->opts->check(t->state, rc, trial);
        return !t->failed;
}

/* ---- all of them ---- */

static bool run_disturbed(struct rs_trials *all)
{
        return run_trial(RS_CONTAINER(all, struct test, all), &all->trial);
}

/* A number of the environment, or per cent of `whole` unless that is 0; `otherwise` where there is none. What is none
 * of these is wrong: the test would run something else than was asked for, or nothing, and pass. */
static uint64_t setting(struct test *t, const char *name, uint64_t otherwise, uint64_t whole)
{
        const char *text = getenv(name);
        char *end;

        if (!text || !*text)
                return otherwise;
        uint64_t n = strtoull(text, &end, 10);
        bool percent = whole && strcmp(end, "%") == 0;
        if (*text < '0' || *text > '9' || (*end && !percent))
                wrong(t, "%s='%.40s' is no number", name, text);
        if (n > UINT32_MAX && whole)
                n = UINT32_MAX;
        if (n > UINT64_MAX - UINT32_MAX)
                wrong(t, "%s='%.40s' is too large", name, text); /* the seeds that follow would begin again at 0 */
        return percent ? (whole * n + 99) / 100 : n;
}

static uint64_t seeds_of(struct test *t)
{
        uint64_t seeds = t->opts->seeds ? t->opts->seeds : DEFAULT_SEEDS, n;

        n = setting(t, "RESHA_TEST_SEEDS", seeds, seeds);
        if (n == 0)
                wrong(t, "RESHA_TEST_SEEDS asks for no seed at all");
        return n;
}

static bool run_all(struct test *t)
{
        uint64_t first = setting(t, "RESHA_TEST_FIRST_SEED", 0, 0), n = seeds_of(t);

        if (t->failed)
                return false;
        t->all.opts = t->opts;
        t->all.fn = run_disturbed;
        for (uint64_t seed = first; seed < first + n; seed++) {
                t->all.trial = (resha_test_trial){ .seed = seed };
                if (!run_trial(t, &t->all.trial))
                        return false;
                t->all.quiet = t->all.trial;
                if (!rs_trials_disturbed(&t->all))
                        return false;
        }
        return true;
}

/* What one trial alone asks for must have come to pass: the program may have changed since, or the number is mistyped,
 * and the test would pass without a look at what it is to show. (The second cancel is of what the first one leaves.) */
static void run_one(struct test *t)
{
        const resha_test_trial *one = &t->all.trial;

        if (!run_trial(t, &t->all.trial))
                return;
        if (one->checkpoints < one->cancel)
                wrong(t, "checkpoint %llu was not reached: it ended after %llu", (unsigned long long)one->cancel,
                      (unsigned long long)one->checkpoints);
        else if (one->alloc && !one->alloc_failed)
                wrong(t, "allocation %llu was not reached", (unsigned long long)one->alloc);
        else if (one->operation && !one->operation_failed)
                wrong(t, "operation %llu was not reached", (unsigned long long)one->operation);
}

/* What $RESHA_TEST_TRIAL asks for, "NAME seed=7 ...". */
enum wanted { EVERY_TRIAL, ONE_TRIAL, OF_ANOTHER_TEST };

static enum wanted wanted(struct test *t)
{
        const char *text = getenv("RESHA_TEST_TRIAL");
        size_t n = text ? strcspn(text, " ") : 0;

        if (n == 0) {
                if (t->opts->only)
                        t->all.trial = *t->opts->only;
                return t->opts->only ? ONE_TRIAL : EVERY_TRIAL;
        }
        if (strnlen(t->name, NAME_MAX) != n || memcmp(text, t->name, n) != 0) {
                fprintf(stderr, "%s: skipped: RESHA_TEST_TRIAL names %.*s\n", t->name,
                        (int)(n < NAME_MAX ? n : NAME_MAX), text);
                return OF_ANOTHER_TEST;
        }
        if (rs_trial_parse(text + n, &t->all.trial))
                return ONE_TRIAL;
        wrong(t, "RESHA_TEST_TRIAL='%s' names no trial: write NAME seed=N cancel=N victim=main|current|previous ...",
              text);
        return OF_ANOTHER_TEST;
}

static void run_test(struct test *t)
{
        enum wanted w = wanted(t);

        running = t;
        catch_deadly(t);
        if (w == ONE_TRIAL)
                run_one(t);
        else if (w == EVERY_TRIAL)
                (void)run_all(t);
        put_deadly(t);
        running = NULL;
}

static void tell_result(const struct test *t)
{
        resha_test_result *r = t->opts->ret_result;

        if (t->failed)
                fprintf(stderr, "%s: %s: %s%s%s\n", t->name, t->what, t->problem, *t->repeat ? "; again: " : "",
                        t->repeat);
        if (!r)
                return;
        *r = (resha_test_result){ .trials = t->trials, .checkpoints = t->checkpoints };
        memcpy(r->fired, t->fired, sizeof r->fired);
        if (t->failed) {
                r->failed = t->all.trial;
                snprintf(r->text, sizeof r->text, "%s: %s", t->what, t->problem);
        }
}

int resha_test_run_at(resha_fn *fn, const resha_test_opts *opts, const char *name)
{
        static const resha_test_opts defaults;
        struct test t = { .name = name, .fn = fn, .opts = opts ? opts : &defaults };

        for (size_t i = 0; i < sizeof defaults._reserved / sizeof defaults._reserved[0]; i++)
                if (t.opts->_reserved[i])
                        wrong(&t, "a reserved word of its options is not zero");
        if (running || rs_loop_current)
                wrong(&t, "a test runs already, or a loop on this thread");
        if (!t.failed && t.opts->state && !(t.state = resha_malloc(t.opts->state)))
                wrong(&t, "no memory for its state");
        snprintf(t.what, sizeof t.what, "not started");
        if (!t.failed)
                run_test(&t);
        resha_free(t.state);
        tell_result(&t);
        return t.failed ? 1 : 0;
}

bool resha_test_expect_at(bool ok, const char *text, const char *site)
{
        if (!ok && running)
                wrong(running, "%s: not true: %s", site, text);
        return ok;
}

const char *resha_test_trial_text(void)
{
        return running ? running->repeat : NULL;
}
