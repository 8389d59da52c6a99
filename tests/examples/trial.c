/* SPDX-License-Identifier: MIT */
/* One example again, under many seeds, with a cancel at each of its checkpoints and each allocation and operation
 * failing: what people copy must bear that. EXAMPLE is its file, MAY_FAIL a code that it may end with by itself; its
 * output does not matter here. A cancelled program may leave jobs in a queue, which is reported. */
#include <stdio.h>

#include <resha/test.h>

#define main example_main
#include EXAMPLE
#undef main

int main(void)
{
        if (!freopen("/dev/null", "w", stdout))
                return 1;
        return resha_test_run(program, &(resha_test_opts){ .seeds = 10,
                                                           .most = 30,
                                                           .may_fail = { MAY_FAIL },
                                                           .may_report = 1u << RESHA_REPORT_DROPPED });
}
