/* SPDX-License-Identifier: MIT */

/* Edit distance with neighbours swapped (optimal string alignment), on the three rows that it needs. */

#include "nearest.h"

#include <string.h>

enum { LONGEST = 40 };

void nearest_init(struct nearest *n, const char *word, size_t size)
{
        /* Near is: at most a third of the letters wrong, and one for short words. */
        unsigned allowed = size < 4 ? 1 : (unsigned)size / 3;
        *n = (struct nearest){ .word = word, .size = size, .distance = allowed + 1 };
}

static unsigned least(unsigned a, unsigned b)
{
        return a < b ? a : b;
}

static unsigned distance(const char *a, size_t la, const char *b, size_t lb)
{
        unsigned rows[3][LONGEST + 1];
        for (unsigned j = 0; j <= lb; j++)
                rows[0][j] = j;
        for (unsigned i = 1; i <= la; i++) {
                unsigned *row = rows[i % 3], *up = rows[(i - 1) % 3], *up2 = rows[(i + 1) % 3];
                row[0] = i;
                for (unsigned j = 1; j <= lb; j++) {
                        unsigned change = up[j - 1] + (a[i - 1] != b[j - 1]);
                        row[j] = least(change, least(up[j], row[j - 1]) + 1);
                        if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                                row[j] = least(row[j], up2[j - 2] + 1);
                }
        }
        return rows[la % 3][lb];
}

void nearest_try(struct nearest *n, const char *candidate)
{
        size_t size = strlen(candidate);
        if (size > LONGEST || n->size > LONGEST)
                return;
        unsigned d = distance(n->word, n->size, candidate, size);
        if (d < n->distance) {
                n->distance = d;
                n->best = candidate;
        }
}
