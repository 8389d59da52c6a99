/* SPDX-License-Identifier: MIT */
#ifndef SCENARIO_H
#define SCENARIO_H

/* Scenarios: tests of the library by its own test module (resha/test.h), with the assertions of test.h inside. */

#include <resha/resha.h>
#include <resha/test.h>

#include "test.h"

static inline void run_scenario(const char *name, resha_fn *fn, const resha_test_opts *opts)
{
        resha_test_opts o = *opts;
        static resha_test_result result;

        if (!o.ret_result)
                o.ret_result = &result;
        if (resha_test_run_at(fn, &o, name) != 0)
                FAIL("%s", o.ret_result->text);
        printf("%llu trials\n", (unsigned long long)o.ret_result->trials);
}

/* SCENARIO(name, main task, options of resha_test_opts...) */
#define SCENARIO(name, fn, ...) \
        TEST(name) \
        { \
                static const resha_test_opts opts = { __VA_ARGS__ }; \
                run_scenario(#name, fn, &opts); \
        }

#endif
