/* SPDX-License-Identifier: MIT */
/* What is done to a run: cancels at checkpoints, an allocation that fails, an operation that fails.
 *
 * It rests on three hooks of the layers below, which cost nothing while nobody uses them: watched checkpoints (core),
 * counted allocations (base), the fault plan of the simulated world (io). */

#include "test/inject.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "io/sim.h"

enum { IGNORED_OFTEN = 1000 };

static void cancel_previous(struct rs_loop *l, struct rs_inject *i)
{
        struct rs_task *t = i->previous;

        if (!t || !t->fn || t->id != i->previous_id)
                return; /* it has ended */
        rs_task_cancel(l, t, RS_CAUSE_CALL, NULL);
        i->trial->cancelled = true;
}

static void cancel_victim(struct rs_loop *l, struct rs_inject *i, bool first)
{
        resha_test_trial *t = i->trial;

        if (t->victim == RESHA_TEST_PREVIOUS) {
                cancel_previous(l, i);
                return;
        }
        /* Cancelling the main task again would be nothing: the first one is another's. */
        bool current = t->victim == RESHA_TEST_CURRENT || (first && t->again);
        rs_task_cancel(l, current ? l->current : l->main_task, RS_CAUSE_CALL, NULL);
        t->cancelled = true;
}

static void on_checkpoint(struct rs_loop *l, void *arg)
{
        struct rs_inject *i = arg;
        resha_test_trial *t = i->trial;
        uint64_t k = ++t->checkpoints, ignored = l->current->ignored;

        if (t->cancel && k == t->cancel)
                cancel_victim(l, i, true);
        else if (t->cancel && t->again && k == t->cancel + t->again)
                cancel_victim(l, i, false);
        i->previous = l->current;
        i->previous_id = l->current->id;
        bool often = ignored && ignored % IGNORED_OFTEN == 0;
        if (i->endless && (often || (i->checkpoints_max && k > i->checkpoints_max)))
                i->endless(l, i);
}

void rs_inject_begin(struct rs_inject *i)
{
        i->previous = NULL;
        rs_alloc_fail_after(i->trial->alloc ? (int64_t)i->trial->alloc : INT64_MAX, false);
}

void rs_inject_attach(struct rs_inject *i, struct rs_loop *l)
{
        struct rs_sim_plan *plan = rs_sim_plan(l->backend);

        i->previous = NULL;
        rs_watch_checkpoints(l, on_checkpoint, i);
        if (plan && i->trial->operation > i->trial->operations)
                plan->fail_operation = i->trial->operation - i->trial->operations;
}

void rs_inject_detach(struct rs_inject *i, struct rs_loop *l)
{
        const struct rs_sim_plan *plan = rs_sim_plan(l->backend);
        resha_test_trial *t = i->trial;

        rs_watch_checkpoints(l, NULL, NULL);
        if (plan) {
                t->operations += plan->operations;
                t->operation_failed |= plan->fired[RS_FAULT_NTH] > 0;
        }
}

void rs_inject_end(struct rs_inject *i)
{
        i->trial->alloc_failed = rs_alloc_failed() > 0;
        if (!i->trial->alloc)
                i->trial->allocs = (uint64_t)(INT64_MAX - rs_alloc_left());
        rs_alloc_fail_after(0, false);
}

/* ---- as text ---- */

static const char *const victims[RESHA_TEST_VICTIMS] = {
        [RESHA_TEST_MAIN] = "main",
        [RESHA_TEST_CURRENT] = "current",
        [RESHA_TEST_PREVIOUS] = "previous",
};

void rs_trial_describe(const resha_test_trial *t, char *text, size_t size)
{
        unsigned long long k = t->cancel, again = t->again;
        const char *who = victims[t->victim];

        if (t->cancel && t->again && t->victim == RESHA_TEST_MAIN)
                snprintf(text, size, "cancel of the current task at checkpoint %llu, of the main task %llu later", k,
                         again);
        else if (t->cancel && t->again)
                snprintf(text, size, "cancel of the %s task at checkpoint %llu, and again %llu later", who, k, again);
        else if (t->cancel)
                snprintf(text, size, "cancel of the %s task at checkpoint %llu", who, k);
        else if (t->alloc)
                snprintf(text, size, "allocation %llu fails", (unsigned long long)t->alloc);
        else if (t->operation)
                snprintf(text, size, "operation %llu of the backend fails", (unsigned long long)t->operation);
        else
                snprintf(text, size, "undisturbed");
}

void rs_trial_format(const resha_test_trial *t, char *text, size_t size)
{
        const struct {
                const char *name;
                uint64_t value;
        } parts[] = {
                { " cancel", t->cancel }, { " again", t->again }, { " alloc", t->alloc }, { " operation", t->operation }
        };
        int n = snprintf(text, size, "seed=%llu", (unsigned long long)t->seed);

        for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
                if (parts[i].value && n > 0 && (size_t)n < size)
                        n += snprintf(text + n, size - (size_t)n, "%s=%llu", parts[i].name,
                                      (unsigned long long)parts[i].value);
        if (t->cancel && n > 0 && (size_t)n < size)
                snprintf(text + n, size - (size_t)n, " victim=%s", victims[t->victim]);
}

static bool parse_victim(const char *word, size_t n, resha_test_trial *t)
{
        for (unsigned v = 0; v < RESHA_TEST_VICTIMS; v++)
                if (strlen(victims[v]) == n && memcmp(victims[v], word, n) == 0) {
                        t->victim = (enum resha_test_victim)v;
                        return true;
                }
        return false;
}

/* NAME=VALUE */
static bool parse_part(const char *word, size_t n, resha_test_trial *t)
{
        const struct {
                const char *name;
                uint64_t *value;
        } parts[] = { { "seed=", &t->seed },
                      { "cancel=", &t->cancel },
                      { "again=", &t->again },
                      { "alloc=", &t->alloc },
                      { "operation=", &t->operation } };
        char *end;

        if (n > 7 && memcmp(word, "victim=", 7) == 0)
                return parse_victim(word + 7, n - 7, t);
        for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
                size_t name = strlen(parts[i].name);
                if (n > name && memcmp(word, parts[i].name, name) == 0) {
                        *parts[i].value = strtoull(word + name, &end, 10);
                        return word[name] >= '0' && word[name] <= '9' && end == word + n;
                }
        }
        return false;
}

bool rs_trial_parse(const char *text, resha_test_trial *t)
{
        *t = (resha_test_trial){ 0 };
        for (;;) {
                text += strspn(text, " ");
                size_t n = strcspn(text, " ");
                if (n == 0)
                        return true;
                if (!parse_part(text, n, t))
                        return false;
                text += n;
        }
}

/* ---- all of one seed ---- */

/* Numbers of 1 .. n, at most `most` of them, spread evenly; where they begin differs from seed to seed, so that all of
 * them come up in time. */
struct spread {
        uint64_t next, step, n;
};

static struct spread spread(uint64_t n, uint64_t most, uint64_t seed)
{
        uint64_t step = most && n > most ? (n + most - 1) / most : 1;

        return (struct spread){ .next = 1 + seed % step, .step = step, .n = n };
}

static bool next(struct spread *s, uint64_t *ret_k)
{
        if (s->next > s->n)
                return false;
        *ret_k = s->next;
        s->next += s->step;
        return true;
}

static bool run(struct rs_trials *all, resha_test_trial t)
{
        all->trial = t;
        return all->fn(all);
}

/* Once, everywhere; then twice. */
static bool cancels(struct rs_trials *all, uint64_t most)
{
        uint64_t once = all->quiet.checkpoints * RESHA_TEST_VICTIMS, seed = all->quiet.seed, k;
        struct spread s = spread(2 * once, most, seed);

        while (next(&s, &k)) {
                uint64_t at = (k - 1) % once;
                resha_test_trial t = { .seed = seed, .cancel = at / RESHA_TEST_VICTIMS + 1 };
                t.victim = (enum resha_test_victim)(at % RESHA_TEST_VICTIMS);
                t.again = k > once ? 1 + seed % 4 : 0;
                if (!run(all, t))
                        return false;
        }
        return true;
}

static bool allocs(struct rs_trials *all, uint64_t most)
{
        struct spread s = spread(all->quiet.allocs, most, all->quiet.seed);
        resha_test_trial t = { .seed = all->quiet.seed };

        while (next(&s, &t.alloc))
                if (!run(all, t))
                        return false;
        return true;
}

static bool operations(struct rs_trials *all, uint64_t most)
{
        struct spread s = spread(all->quiet.operations, most, all->quiet.seed);
        resha_test_trial t = { .seed = all->quiet.seed };

        while (next(&s, &t.operation))
                if (!run(all, t))
                        return false;
        return true;
}

bool rs_trials_disturbed(struct rs_trials *all)
{
        const resha_test_opts *o = all->opts;

        return (o->no_cancels || cancels(all, o->most)) && (o->no_allocs || allocs(all, o->most)) &&
               (o->no_operations || operations(all, o->most));
}
