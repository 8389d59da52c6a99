/* SPDX-License-Identifier: MIT */
/* The audit's runner: one test as many trials, in one process.
 *
 * The test's function is called again and again; before each time the program's own data is put back to what it was at
 * the start, so that no trial sees anything of another. The books and the trial itself lie outside of that.
 *
 * Undisturbed, with seed 0, the test must pass. Where something was done to it, its assertions need not hold: at the
 * first one that does not, the task that asserts is ended where it stands (leave.c), as if it had thrown there, and the
 * trial goes on to its end. What must hold then is what the books say, and that everything ends. */

#include "books.h"

#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"

enum { SEEDS_FEW = 3, SPIN = 20000, CANCELS = 2 };

struct audit *audit;

/* Across the processes of all tests. */
struct totals {
        uint64_t trials, tests, seeds, shortened, abandoned;
        uint64_t listed; /* not run: see `skipped` */
};
static struct totals *totals;

static void *take(size_t size)
{
        void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        if (p == MAP_FAILED)
                test_fail(TEST_AT, "no memory for the audit");
        return p;
}

/* ---- what is wrong ---- */

static const char *context(void)
{
        char settings[128];

        rs_trial_format(&audit->trial, settings, sizeof settings);
        snprintf(audit->context, sizeof audit->context, "%s", settings);
        return audit->context;
}

static const char *test_name = "?";

void audit_wrong(const char *format, ...)
{
        va_list ap;

        fflush(stdout);
        fprintf(stderr, "%s: ", test_name);
        va_start(ap, format);
        vfprintf(stderr, format, ap);
        va_end(ap);
        fprintf(stderr, "; again: RESHA_TEST_TRIAL='%s %s'\n", test_name, context());
        fflush(stderr);
        _exit(1);
}

static void on_deadly(int sig)
{
        static const char crashed[] = ": it crashed, or does not end; again: RESHA_TEST_TRIAL='";

        context();
        (void)!write(2, test_name, strlen(test_name));
        (void)!write(2, crashed, sizeof crashed - 1);
        (void)!write(2, test_name, strlen(test_name));
        (void)!write(2, " ", 1);
        (void)!write(2, audit->context, strlen(audit->context));
        (void)!write(2, "'\n", 2);
        signal(sig, SIG_DFL);
        raise(sig);
}

bool audit_disturbed(void)
{
        return audit->disturbed || audit->endless || audit->trial.cancelled || rs_alloc_failed() > 0;
}

/* ---- what the tests' library asks ---- */

void audit_failed(void)
{
        if (audit && audit->number && audit_disturbed())
                audit_leave();
}

void audit_cannot(const char *what)
{
        if (getenv("AUDIT_LISTED"))
                audit_wrong("%s, which no trial can do: name it in tests/audit/skipped", what);
        printf("%s: %s, which no trial can do: not run, and not yet named in tests/audit/skipped\n", test_name, what);
        totals->tests--;
        totals->listed++;
        audit->number = 0; /* not in a trial any more: it ends here */
        test_skip(what);
}

const char *audit_backend(void)
{
        static char text[32];

        if (!audit || !audit->number)
                return NULL;
        snprintf(text, sizeof text, "sim:%llu", (unsigned long long)audit->trial.seed);
        return text;
}

/* ---- a run ---- */

struct run {
        resha_fn *fn;
        void *arg;
        resha_report_fn *report;
        void *report_arg;
};

/* What goes on without end: first the main task is cancelled, then each task is ended where it looks. */
static void endless(struct rs_loop *l, struct rs_inject *i)
{
        if (!audit_disturbed() && i->trial->checkpoints <= i->checkpoints_max)
                return; /* it ignores a cancel of its own */
        if (i->trial->checkpoints > i->checkpoints_max && !audit->endless) {
                audit->endless = true;
                i->checkpoints_max += SPIN;
                rs_task_cancel(l, l->main_task, RS_CAUSE_CALL, NULL);
                return;
        }
        audit_leave();
}

static int main_of_run(void *arg)
{
        struct run *r = arg;

        rs_inject_attach(&audit->inject, rs_loop_current);
        return leave_main(rs_loop_current, r->fn, r->arg);
}

static void on_report(const resha_report *report, void *arg)
{
        struct run *r = arg;

        audit->lost += report->kind == RESHA_REPORT_LOST_ERROR;
        audit->stuck += report->kind == RESHA_REPORT_STUCK;
        if (report->kind == RESHA_REPORT_STUCK && !audit->may_get_stuck && audit->trial.seed + audit->trial.cancel)
                audit_wrong("task \"%s\": %s", report->task ? report->task : "?", report->text);
        if (report->kind == RESHA_REPORT_DEADLOCK && !audit->deadlocks++)
                books_check_waiters(rs_loop_current);
        if (r->report)
                r->report(report, r->report_arg);
}

/* A test's own seed, if it has one, and the trial's. */
static const char *backend_of(const char *asked, char *text, size_t size)
{
        bool own = asked && strncmp(asked, "sim:", 4) == 0;
        char *end;
        unsigned long long seed = own ? strtoull(asked + 4, &end, 10) : 0;

        if (asked && strcmp(asked, "epoll") == 0)
                audit_cannot("it asks for a real backend");
        if (own ? *end || end == asked + 4 : asked && strcmp(asked, "sim") != 0)
                return asked; /* refused, on purpose */
        if (audit->trial.seed)
                seed = seed % 1000 + 1000 * audit->trial.seed;
        snprintf(text, size, "sim:%llu", seed);
        return text;
}

int audit_run(resha_fn *fn, void *arg, const resha_run_opts *opts)
{
        resha_run_opts o = opts ? *opts : (resha_run_opts){ 0 };
        struct run r = { .fn = fn, .arg = arg, .report = o.report, .report_arg = o.report_arg };

        if (!audit || !audit->number || rs_loop_current)
                return resha_run(fn, arg, opts);
        char backend[40];
        o.backend = backend_of(o.backend, backend, sizeof backend);
        o.report = on_report;
        o.report_arg = &r;
        return resha_run(main_of_run, &r, &o);
}

int audit_tcp_listen(const char *host, uint16_t port, resha_listener **ret_listener)
{
        if (audit)
                audit->has_streams = true;
        return resha_tcp_listen(host, port, ret_listener);
}

int audit_dgram_open(const resha_dgram_opts *opts, resha_dgram **ret_dgram)
{
        if (audit)
                audit->has_streams = true;
        return resha_dgram_open(opts, ret_dgram);
}

int audit_listen(const resha_addr *addr, const resha_listen_opts *opts, resha_listener **ret_listener)
{
        if (audit)
                audit->has_streams = true;
        return resha_listen(addr, opts, ret_listener);
}

int audit_unix_listen(const char *path, const resha_listen_opts *opts, resha_listener **ret_listener)
{
        if (audit)
                audit->has_streams = true;
        return resha_unix_listen(path, opts, ret_listener);
}

int audit_stream_new(const resha_stream_ops *ops, void *impl, resha_stream **ret_stream)
{
        if (audit)
                audit->has_streams = true;
        return resha_stream_new(ops, impl, ret_stream);
}

int audit_stream_pair(resha_stream *ret_pair[2])
{
        if (audit)
                audit->has_streams = true;
        return resha_stream_pair(ret_pair);
}

int audit_pipe(resha_stream **ret_read, resha_stream **ret_write)
{
        if (audit)
                audit->has_streams = true;
        return resha_pipe(ret_read, ret_write);
}

__typeof__(rs_loop_done) __real_rs_loop_done, __wrap_rs_loop_done; /* of its type, or this does not compile */

void __wrap_rs_loop_done(struct rs_loop *l)
{
        size_t spare = 0;

        if (!audit || !audit->number) {
                __real_rs_loop_done(l);
                return;
        }
        rs_inject_detach(&audit->inject, l);
        for (const struct rs_record *r = l->record_spare; r; r = r->next)
                spare++;
        if (l->tasks == 0 && spare != RS_RECORDS_SPARE)
                audit_wrong("%u records of errors are held by nobody", (unsigned)(RS_RECORDS_SPARE - spare));
        rs_timer_clear(l, &l->grace);
        if (l->tasks == 0 && rs_heap_first(&l->timers))
                audit_wrong("a timer is left at the end of the run");
        __real_rs_loop_done(l);
}

/* ---- the program's data ---- */

extern char __data_start[], _end[];

static char *data_at_start;

static void data_keep(void)
{
        size_t size = (size_t)(_end - __data_start);

        data_at_start = take(size);
        memcpy(data_at_start, __data_start, size);
}

static void data_put_back(void)
{
        memcpy(__data_start, data_at_start, (size_t)(_end - __data_start));
}

/* ---- trials ---- */

static void (*test_fn)(void);

static int call_test(void *arg)
{
        (void)arg;
        test_fn();
        return 0;
}

static void trial(resha_test_trial t)
{
        uint64_t number = audit->number + 1;
        bool may_get_stuck = audit->may_get_stuck;
        int rc;

        data_put_back();
        *audit = (struct audit){
                .trial = t, .number = number, .may_get_stuck = may_get_stuck, .disturbed = t.seed != 0
        };
        audit->inject = (struct rs_inject){ .trial = &audit->trial, .endless = endless };
        audit->inject.checkpoints_max = 200000;
        rs_alloc_watch(true);
        int64_t live = rs_alloc_live();
        rs_inject_begin(&audit->inject);
        bool left = audit_enter(call_test, NULL, &rc);
        rs_inject_end(&audit->inject);
        totals->trials++;
        totals->abandoned += audit->abandoned > 0;
        if (audit->stuck)
                return;
        if (audit->begun != audit->ended)
                audit_wrong("%llu tasks were begun, %llu ended", (unsigned long long)audit->begun,
                            (unsigned long long)audit->ended);
        int64_t leaked = rs_alloc_live() - live;
        if (leaked > 0 && audit->abandoned + left) /* what the test would have released behind the assertion */
                leaked = audit->has_streams ? 0 : leaked - (int64_t)books_held();
        if (leaked > 0 || (leaked < 0 && !audit->abandoned && !left))
                audit_wrong("%lld allocations were not released", (long long)leaked);
}

static double seconds(void)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

struct spread {
        uint64_t step, first, n;
};

static struct spread spread(uint64_t n, uint64_t most, uint64_t seed)
{
        uint64_t step = n > most ? (n + most - 1) / most : 1;

        return (struct spread){ .step = step, .first = 1 + seed % step, .n = n };
}

/* Of one seed: at each checkpoint a cancel of one of the three, another one for each seed, once and twice; each
 * allocation. */
static void trials(uint64_t seed, uint64_t most, double at_most)
{
        double begun = seconds();

        trial((resha_test_trial){ .seed = seed });
        double affordable = at_most / (seconds() - begun + 1e-6) / 3;
        if (affordable < (double)most)
                most = affordable < 1 ? 1 : (uint64_t)affordable;
        uint64_t checkpoints = audit->trial.checkpoints, allocs = audit->trial.allocs;
        if (seed == 0)
                audit->may_get_stuck = audit->stuck > 0;
        struct spread s = spread(checkpoints, most, seed);
        for (uint64_t k = s.first; k <= s.n; k += s.step)
                for (uint64_t twice = 0; twice < CANCELS; twice++) {
                        resha_test_trial t = { .seed = seed, .cancel = k, .again = twice ? 1 + seed % 4 : 0 };
                        t.victim = (enum resha_test_victim)((k + seed) % RESHA_TEST_VICTIMS);
                        trial(t);
                }
        s = spread(allocs, most, seed);
        for (uint64_t n = s.first; n <= s.n; n += s.step)
                trial((resha_test_trial){ .seed = seed, .alloc = n });
}

static uint64_t number_of(const char *name, uint64_t otherwise)
{
        const char *text = getenv(name);

        return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

/* A test whose trials take long gets fewer of each seed, but all seeds. */
static void all_trials(void)
{
        uint64_t seeds = number_of("AUDIT_SEEDS", SEEDS_FEW), most = number_of("AUDIT_MOST", 40);
        uint64_t first = number_of("RESHA_TEST_FIRST_SEED", 0);
        double share = (double)number_of("AUDIT_MS", 2000) / 1e3, begun = seconds();

        totals->tests++;
        totals->seeds = seeds;
        for (uint64_t n = 0; n < seeds; n++) {
                double left = (share - (seconds() - begun)) / (double)(seeds - n);
                uint64_t seed = first + n;
                if (n == seeds - 1)
                        totals->shortened += left < 0;
                trials(seed, most, left);
        }
}

static bool skip_listed(const struct test *t)
{
        char line[256], name[128];
        const char *source = getenv("RESHA_SOURCE");
        bool found = false;

        snprintf(line, sizeof line, "%s/tests/audit/skipped", source ? source : ".");
        FILE *f = fopen(line, "r");
        if (!f)
                test_fail(TEST_AT, "%s: %m; set RESHA_SOURCE", line);
        while (!found && fgets(line, sizeof line, f))
                found = sscanf(line, "%127s", name) == 1 && strcmp(name, t->name) == 0;
        fclose(f);
        return found;
}

/* In place of t->fn(), in the process of the test. */
void audit_test(const struct test *t)
{
        static const int deadly[] = { SIGSEGV, SIGBUS, SIGABRT, SIGALRM, SIGFPE, SIGILL };
        const char *one = getenv("RESHA_TEST_TRIAL");
        size_t n = strlen(t->name);
        resha_test_trial only;

        if (skip_listed(t)) {
                totals->listed++;
                test_skip("listed in tests/audit/skipped");
        }
        for (size_t i = 0; i < sizeof deadly / sizeof deadly[0]; i++)
                signal(deadly[i], on_deadly);
        test_name = t->name;
        test_fn = t->fn;
        audit = take(sizeof *audit);
        leave_setup(take);
        ledger_setup(take);
        data_keep();
        if (!one || strncmp(one, t->name, n) != 0 || one[n] != ' ')
                all_trials();
        else if (rs_trial_parse(one + n, &only))
                trial(only);
        data_put_back();
        audit->number = 0;
}

void audit_setup(void)
{
        totals = mmap(NULL, sizeof *totals, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (totals == MAP_FAILED)
                test_fail(TEST_AT, "no memory for the audit");
}

void audit_summary(void)
{
        printf("audit: %llu tests under %llu seeds each, %llu trials, %llu of them with a task ended at an assertion; "
               "%llu tests with fewer trials for each seed, as they take long; %llu not run (tests/audit/skipped)\n",
               (unsigned long long)totals->tests, (unsigned long long)totals->seeds, (unsigned long long)totals->trials,
               (unsigned long long)totals->abandoned, (unsigned long long)totals->shortened,
               (unsigned long long)totals->listed);
}
