/* SPDX-License-Identifier: MIT */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

/* A table that fits its terminal: columns as wide as they need to be, the last one as wide as is left. A column of
 * which all cells are empty is left out. */

#include "screen.h"

enum { TABLE_COLUMNS = 10 };

struct table {
        const char *heads[TABLE_COLUMNS]; /* "-FOR": to the right */
        unsigned n_columns;
        size_t n_cells, cap;
        size_t *ends;      /* of each cell in `cells` */
        struct text cells; /* one behind the other */
        bool failed;
};

#define TABLE(t) struct table t RESHA_CLEANUP(table_done) = { .n_columns = 0 }

void table_done(struct table *t);

void table_init(struct table *t, const char *const *heads, unsigned n);

/* Adds a cell: what the caller has added to `t->cells` since the last one. */
void table_cell(struct table *t);

/* Adds the table, indented by two. Safe cells are the caller's matter: screen_add(). */
void table_add(const struct table *t, const struct screen *screen, struct text *to);

#endif
