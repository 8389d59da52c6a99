/* SPDX-License-Identifier: MIT */
#ifndef CLI_NEAREST_H
#define CLI_NEAREST_H

/* The name that somebody may have meant. */

#include <stddef.h>

struct nearest {
        const char *word;
        size_t size;
        unsigned distance;
        const char *best; /* NULL: nothing is near enough */
};

void nearest_init(struct nearest *n, const char *word, size_t size);
void nearest_try(struct nearest *n, const char *candidate);

#endif
