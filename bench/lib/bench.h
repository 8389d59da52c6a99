/* SPDX-License-Identifier: MIT */
#ifndef BENCH_H
#define BENCH_H

/* What the programs of bench/core share: numbers from the command line, and the time of a stretch of work. */

#include <stdint.h>

struct bench_span {
        int64_t cpu_ns; /* of the whole process, user and kernel */
        int64_t wall_ns;
};

/* The argument at `index` (from 1), or `otherwise` where there is none. Ends the program if it is not a positive
 * number. */
uint64_t bench_argument(int argc, char **argv, int index, uint64_t otherwise);

void bench_start(struct bench_span *s);

/* Ends the stretch and prints, as one line of JSON, what each of its operations took. */
void bench_print(const struct bench_span *s, uint64_t operations);

/* The same numbers in each run and in each peer: xorshift64*, from 1. */
uint64_t bench_random(uint64_t *state);

#endif
