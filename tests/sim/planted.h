/* SPDX-License-Identifier: MIT */
#ifndef PLANTED_H
#define PLANTED_H

/* Bugs that are planted must be found by the trials, and found again by what the failure prints. */

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "scenario.h"

struct planted {
        resha_fn *fn;
        resha_test_opts opts;
};

static inline int run_planted(void *arg)
{
        const struct planted *p = arg;
        resha_test_opts o = p->opts;

        o.seeds = o.seeds ? o.seeds : 5;
        return resha_test_run_at(p->fn, &o, "planted");
}

/* The trial that the text names, as the environment wants it. */
static inline bool trial_in(const char *text, char *ret_trial, size_t size)
{
        const char *from = strstr(text, "RESHA_TEST_TRIAL='"), *to = from ? strchr(from + 18, '\'') : NULL;

        if (!to || (size_t)(to - from) >= size)
                return false;
        snprintf(ret_trial, size, "%.*s", (int)(to - from - 18), from + 18);
        return true;
}

static inline void must_be_found(const struct planted *p, const char *where)
{
        static struct test_child first, again;
        char trial[200];

        test_child(run_planted, (void *)(uintptr_t)p, &first);
        ASSERT_TRUE(!WIFEXITED(first.status) || WEXITSTATUS(first.status) != 0);
        ASSERT_HAS(first.text, where);
        ASSERT_TRUE(trial_in(first.text, trial, sizeof trial));
        setenv("RESHA_TEST_TRIAL", trial, 1);
        test_child(run_planted, (void *)(uintptr_t)p, &again);
        ASSERT_STR(again.text, first.text);
}

#endif
