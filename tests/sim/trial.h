/* SPDX-License-Identifier: MIT */
#ifndef TRIAL_H
#define TRIAL_H

/* Trials: the same scenario under many seeds, and under each of them again and again with one thing going wrong: a
 * cancel at its k-th checkpoint, for every k, once and twice; its n-th allocation failing, for every n; its n-th
 * operation of the backend failing, for every n. After each trial nothing may be left over, and the scenario checks its
 * own promises.
 *
 * A failure names its trial; SIM_TRIAL='seed=7 cancel=12 ...' runs that one alone. */

#include <stddef.h>
#include <stdint.h>

#include <resha/resha.h>

#include "io/sim.h"
#include "test.h"

enum victim {
        VICTIM_ALL,      /* the main task, and so everything */
        VICTIM_CURRENT,  /* the task that is at the checkpoint */
        VICTIM_PREVIOUS, /* the task that was at the checkpoint before: it waits by now, or is about to go on */
        VICTIMS
};

struct trial {
        uint64_t seed;
        uint64_t cancel; /* at which checkpoint, from 1; 0: none */
        uint64_t again;  /* and once more, so many checkpoints later; 0: no */
        enum victim victim;
        uint64_t alloc;     /* which allocation fails, from 1; 0: none */
        uint64_t operation; /* which operation of the backend fails, from 1; 0: none */
        /* What happened. */
        uint64_t checkpoints, operations;
        bool cancelled, alloc_failed, operation_failed;
};

struct scenario {
        size_t size;  /* bytes of its state: zeroed before each trial */
        resha_fn *fn; /* the main task; its argument is the state */
        /* Its promises, after the run; rc is the result. Codes of what went wrong have been checked. */
        void (*check)(void *state, int rc, const struct trial *t);
        bool quiet;   /* nothing is done to it: only the luck of the seeds */
        int may_fail; /* a code that it may end with by itself, or 0 */
        bool network; /* a task that is cancelled alone may break connections of others */
        /* More faults than the world has by itself, or NULL; then fn may fail with network errors. */
        void (*plan)(struct rs_sim_plan *plan);
};

/* Whether nothing was done to it: then it must succeed. */
static inline bool trial_quiet(const struct trial *t)
{
        return !t->cancelled && !t->alloc_failed && !t->operation_failed;
}

/* All trials of the seeds 0 .. n-1; of $SIM_SEEDS_PERCENT of them, if set, more than 100 too. */
void trial_seeds(const struct scenario *s, uint64_t n);

/* How often the worlds of this test's trials had that fault so far. */
uint64_t trial_fired(enum rs_fault_kind kind);

#define SCENARIO(name, seeds, ...) \
        TEST(name) \
        { \
                static const struct scenario scenario = { __VA_ARGS__ }; \
                trial_seeds(&scenario, seeds); \
        }

#endif
