/* SPDX-License-Identifier: MIT */
#ifndef BENCH_H
#define BENCH_H

/* What the programs of bench/core share: numbers from the command line, and the time that work takes. */

#include <stdint.h>

/* The argument at `index` (from 1), or `otherwise` where there is none. Ends the program if it is not a positive
 * number. */
uint64_t bench_argument(int argc, char **argv, int index, uint64_t otherwise);

/* `n` operations; 0 or negative. */
typedef int bench_work(void *arg, uint64_t n);

/* Does a tenth of n operations to warm up, then n, and prints what each of these took, as one line of JSON; with the
 * processor time of child processes, if there were any. 0, or what work returned. */
int bench_measure(bench_work *work, void *arg, uint64_t n);

/* The same numbers in each run and in each peer: xorshift64*, from 1. */
uint64_t bench_random(uint64_t *state);

#endif
