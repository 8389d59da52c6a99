/* SPDX-License-Identifier: MIT */
/* Runs trials and looks at what they leave behind. The hooks that it uses are the library's own: watched checkpoints,
 * counted allocations, the fault plan of the simulated world. */

#include "trial.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "core/core.h"

static char context[256];

static void die_with_context(int sig)
{
        (void)!write(2, context, strlen(context));
        (void)!write(2, "\n", 1);
        signal(sig, SIG_DFL);
        raise(sig);
}

static void print_context(void)
{
        (void)!write(2, context, strlen(context));
        (void)!write(2, "\n", 1);
}

void __sanitizer_set_death_callback(void (*fn)(void)) __attribute__((weak));

static void install_handlers(void)
{
        static const int deadly[] = { SIGSEGV, SIGBUS, SIGABRT, SIGALRM, SIGFPE, SIGILL };

        if (__sanitizer_set_death_callback)
                __sanitizer_set_death_callback(print_context);
        for (size_t i = 0; i < sizeof deadly / sizeof deadly[0]; i++)
                signal(deadly[i], die_with_context);
}

/* ---- one trial ---- */

static uint64_t fired[RS_FAULT_KINDS];

uint64_t trial_fired(enum rs_fault_kind kind)
{
        return fired[kind];
}

struct run {
        const struct scenario *s;
        struct trial *t;
        void *state;
        struct rs_task *previous; /* who was at the checkpoint before; its struct is reused, so the id tells */
        uint32_t previous_id;
        unsigned stuck, deadlocks, lost;
        char report[256];
};

static void cancel_victim(struct rs_loop *l, struct run *r)
{
        switch (r->t->victim) {
        case VICTIM_ALL: rs_task_cancel(l, l->main_task); break;
        case VICTIM_CURRENT: rs_task_cancel(l, l->current); break;
        case VICTIM_PREVIOUS:
                if (!r->previous || !r->previous->fn || r->previous->id != r->previous_id)
                        return; /* it has ended */
                rs_task_cancel(l, r->previous);
                break;
        case VICTIMS: break;
        }
        r->t->cancelled = true;
}

static void on_checkpoint(struct rs_loop *l, void *arg)
{
        struct run *r = arg;
        struct trial *t = r->t;
        uint64_t k = ++t->checkpoints;

        if (t->cancel && (k == t->cancel || (t->again && k == t->cancel + t->again)))
                cancel_victim(l, r);
        r->previous = l->current;
        r->previous_id = l->current->id;
}

static int trial_main(void *arg)
{
        struct run *r = arg;
        struct rs_loop *l = rs_loop_current;
        struct rs_sim_plan *plan = rs_sim_plan(l->backend);

        rs_watch_checkpoints(l, on_checkpoint, r);
        plan->fail_operation = r->t->operation;
        if (r->s->plan && r->t->seed)
                r->s->plan(plan);
        int rc = r->s->fn(r->state);
        rs_watch_checkpoints(l, NULL, NULL);
        r->t->operations = plan->operations;
        r->t->operation_failed = plan->fired[RS_FAULT_NTH] > 0;
        for (unsigned k = 0; k < RS_FAULT_KINDS; k++)
                fired[k] += plan->fired[k];
        return rc;
}

static void on_report(const resha_report *report, void *arg)
{
        struct run *r = arg;

        if (report->kind == RESHA_REPORT_STUCK)
                r->stuck++;
        else if (report->kind == RESHA_REPORT_DEADLOCK)
                r->deadlocks++;
        else
                return;
        snprintf(r->report, sizeof r->report, "task \"%s\": %s", report->task ? report->task : "?", report->text);
}

/* The codes that what was done to it may give. */
static bool may_end_with(const struct scenario *s, const struct trial *t, int rc)
{
        if (rc >= 0 || (s->may_fail && rc == s->may_fail))
                return true;
        if (rc == -ECANCELED)
                return t->cancelled;
        if (rc == -ETIME) /* a scenario's own time limit, for those who wait for a task that was cancelled alone */
                return !trial_quiet(t) || s->plan;
        if (rc == -ENOMEM || rc == -EAGAIN)
                return t->alloc_failed || t->operation_failed;
        if (t->operation_failed || (s->network && !trial_quiet(t)) || (s->plan && t->seed))
                return rc == -EIO || rc == -ENFILE || rc == -EMFILE || rc == -ENETUNREACH || rc == -ECONNRESET ||
                       rc == -EPIPE || rc == -ECONNREFUSED || rc == -ENOTCONN;
        return false;
}

static void describe(const struct trial *t)
{
        snprintf(context, sizeof context,
                 " (SIM_TRIAL='seed=%llu cancel=%llu victim=%u again=%llu alloc=%llu operation=%llu')",
                 (unsigned long long)t->seed, (unsigned long long)t->cancel, (unsigned)t->victim,
                 (unsigned long long)t->again, (unsigned long long)t->alloc, (unsigned long long)t->operation);
        test_context(context);
}

static void run_trial(const struct scenario *s, struct trial *t, void *state)
{
        struct run r = { .s = s, .t = t, .state = state };
        char backend[32];

        describe(t);
        memset(state, 0, s->size);
        snprintf(backend, sizeof backend, "sim:%llu", (unsigned long long)t->seed);
        int64_t live = rs_alloc_live();
        resha_run_opts opts = { .backend = backend, .report = on_report, .report_arg = &r };
        rs_alloc_fail_after((int64_t)t->alloc, false);
        int rc = resha_run(trial_main, &r, &opts);
        t->alloc_failed = rs_alloc_failed() > 0;
        rs_alloc_fail_after(0, false);
        if (r.stuck + r.deadlocks > 0)
                FAIL("%u tasks stuck, %u in a deadlock: %s", r.stuck, r.deadlocks, r.report);
        ASSERT_EQ(rs_alloc_live() - live, 0);
        if (!may_end_with(s, t, rc))
                FAIL("the run ended with %d (%s)", rc, resha_strerror(rc));
        s->check(state, rc, t);
}

/* ---- all of them ---- */

static uint64_t trials;

static void run_new(const struct scenario *s, struct trial *t, void *state)
{
        trials++;
        t->checkpoints = t->operations = 0;
        t->cancelled = t->alloc_failed = t->operation_failed = false;
        run_trial(s, t, state);
}

static void all_of_seed(const struct scenario *s, uint64_t seed, void *state)
{
        struct trial t = { .seed = seed };

        run_new(s, &t, state);
        if (!s->plan)
                ASSERT_TRUE(trial_quiet(&t));
        if (s->quiet)
                return;
        uint64_t checkpoints = t.checkpoints, operations = t.operations;
        for (uint64_t k = 1; k <= checkpoints; k++)
                for (unsigned v = 0; v < VICTIMS; v++)
                        for (uint64_t again = 0; again <= 3; again += 3) {
                                t = (struct trial){ .seed = seed, .cancel = k, .victim = v, .again = again };
                                run_new(s, &t, state);
                        }
        uint64_t n = 1;
        do {
                t = (struct trial){ .seed = seed, .alloc = n++ };
                run_new(s, &t, state);
        } while (t.alloc_failed);
        for (n = 1; n <= operations; n++) {
                t = (struct trial){ .seed = seed, .operation = n };
                run_new(s, &t, state);
        }
}

/* $SIM_TRIAL: one trial. */
static bool one_trial(const char *text, struct trial *t)
{
        unsigned long long seed, cancel, again, alloc, operation;
        unsigned victim;

        if (sscanf(text, "seed=%llu cancel=%llu victim=%u again=%llu alloc=%llu operation=%llu", &seed, &cancel,
                   &victim, &again, &alloc, &operation) != 6)
                return false;
        *t = (struct trial){ .seed = seed, .cancel = cancel, .again = again, .alloc = alloc, .operation = operation };
        t->victim = (enum victim)victim;
        return true;
}

void trial_seeds(const struct scenario *s, uint64_t n)
{
        const char *one = getenv("SIM_TRIAL"), *percent = getenv("SIM_SEEDS_PERCENT");
        void *state = resha_malloc(s->size);
        struct trial t;

        install_handlers();
        if (one) {
                ASSERT_TRUE(one_trial(one, &t));
                run_new(s, &t, state);
        }
        if (percent)
                n = (n * strtoull(percent, NULL, 10) + 99) / 100;
        for (uint64_t seed = 0; !one && seed < n; seed++)
                all_of_seed(s, seed, state);
        test_context("");
        resha_free(state);
        printf("%llu trials\n", (unsigned long long)trials);
}
