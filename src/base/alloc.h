/* SPDX-License-Identifier: MIT */
#ifndef RS_ALLOC_H
#define RS_ALLOC_H

/* Behind resha_malloc(): what a test can watch and make fail. */

#include <stdbool.h>
#include <stdint.h>

#include <resha/alloc.h>

/* Counts allocations from now on; set before the first one. */
void rs_alloc_watch(bool on);

/* Blocks allocated and not freed while watched. */
int64_t rs_alloc_live(void);

/* The n-th allocation from now on fails (1: the next), and those after it too if `forever`; 0: none. Implies watching.
 * */
void rs_alloc_fail_after(int64_t n, bool forever);

/* How many allocations there may still be before the one that fails. */
int64_t rs_alloc_left(void);

/* How many allocations were made to fail. */
int64_t rs_alloc_failed(void);

#endif
