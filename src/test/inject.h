/* SPDX-License-Identifier: MIT */
#ifndef RS_INJECT_H
#define RS_INJECT_H

/* One trial's disturbance, put into a run: the cancels at their checkpoints, the allocation and the operation that
 * fail. It knows nothing of what is tested. */

#include <resha/test.h>

#include "core/core.h"

struct rs_inject {
        resha_test_trial *trial;  /* what to do; what has happened is written there */
        uint64_t checkpoints_max; /* 0: no limit */
        /* Called instead of the checkpoint that is over the limit, and at each that ignores a cancel for the n-th time
         * when n is a multiple of 1000; NULL: nothing. */
        void (*endless)(struct rs_loop *l, struct rs_inject *i);
        struct rs_task *previous; /* who was at the checkpoint before; its struct is reused, so the id tells */
        uint32_t previous_id;
};

/* From before the run: the allocations of the loop itself count too. The trial's checkpoints and operations go on from
 * what they are. */
void rs_inject_begin(struct rs_inject *i);

/* At the start of a run of the trial, before its main task is made or on it; it holds until the end of the run. */
void rs_inject_attach(struct rs_inject *i, struct rs_loop *l);

/* At the end of that run, while there still is a backend: what the world has counted. */
void rs_inject_detach(struct rs_inject *i, struct rs_loop *l);

/* After the last run: allocations do not fail any more. */
void rs_inject_end(struct rs_inject *i);

/* "cancel of the current task at checkpoint 12" ..., and the same as settings, "seed=7 cancel=12 victim=current". */
void rs_trial_describe(const resha_test_trial *t, char *ret_text, size_t size);
void rs_trial_format(const resha_test_trial *t, char *ret_text, size_t size);

/* Reads settings. False: they are none. */
bool rs_trial_parse(const char *text, resha_test_trial *ret_trial);

/* The trials of one seed after the undisturbed one, which is `quiet`: calls fn for each, as `trial`, until it gives
 * false. */
struct rs_trials {
        resha_test_trial trial;
        resha_test_trial quiet;
        const resha_test_opts *opts;
        bool (*fn)(struct rs_trials *all);
};
bool rs_trials_disturbed(struct rs_trials *all);

#endif
