/* SPDX-License-Identifier: MIT */

/* Tables. Cells lie one behind the other in one text, row by row, with the end of each in an array: no cell costs an
 * allocation of its own. */

#include "table.h"

#include <string.h>

#include <resha/alloc.h>

enum { GAP = 2, LEAST = 24 /* of the last column, if the others can be cut for it */, SHRUNK = 10 };

void table_done(struct table *t)
{
        resha_free(t->ends);
        text_done(&t->cells);
        *t = (struct table){ .n_columns = 0 };
}

void table_init(struct table *t, const char *const *heads, unsigned n)
{
        table_done(t);
        t->n_columns = n;
        for (unsigned i = 0; i < n; i++)
                t->heads[i] = heads[i];
}

void table_cell(struct table *t)
{
        if (t->n_cells == t->cap) {
                size_t cap = t->cap ? 2 * t->cap : 64;
                size_t *ends = resha_realloc(t->ends, cap * sizeof *ends);
                if (!ends) {
                        t->failed = true;
                        return;
                }
                t->ends = ends;
                t->cap = cap;
        }
        t->ends[t->n_cells++] = t->cells.len;
}

static const char *cell(const struct table *t, size_t i, size_t *ret_size)
{
        size_t start = i ? t->ends[i - 1] : 0;
        *ret_size = t->ends[i] - start;
        return text_string(&t->cells) + start;
}

/* What each column needs; 0: it is empty. */
static void measure(const struct table *t, size_t *widths)
{
        size_t size;
        for (unsigned c = 0; c < t->n_columns; c++)
                widths[c] = 0;
        for (size_t i = 0; i < t->n_cells; i++) {
                const char *text = cell(t, i, &size);
                size_t n = screen_columns(text, size), *w = &widths[i % t->n_columns];
                if (n > *w)
                        *w = n;
        }
        for (unsigned c = 0; c < t->n_columns; c++) {
                const char *head = t->heads[c] + (t->heads[c][0] == '-');
                if (widths[c] && widths[c] < strlen(head))
                        widths[c] = strlen(head);
        }
}

/* The widest columns give way until the last one has room. */
static void fit(const struct table *t, size_t *widths, size_t room)
{
        unsigned last = t->n_columns - 1;
        for (;;) {
                size_t used = GAP, widest = SHRUNK;
                unsigned at = last;
                for (unsigned c = 0; c < last; c++) {
                        used += widths[c] ? widths[c] + GAP : 0;
                        if (widths[c] > widest && t->heads[c][0] != '-') {
                                widest = widths[c];
                                at = c;
                        }
                }
                size_t least = widths[last] < LEAST ? widths[last] : LEAST;
                if (used + widths[last] <= room)
                        return;
                if (used + least <= room || at == last) {
                        widths[last] = room > used + least ? room - used : least;
                        return;
                }
                widths[at]--;
        }
}

static void add_cell(const struct table *t, const struct screen *screen, struct text *line, unsigned column,
                     const char *s, size_t size, size_t width)
{
        TEXT(shown);
        if (!width)
                return;
        screen_add_cut(screen, &shown, s, size, width);
        size_t pad = width - screen_columns(text_string(&shown), shown.len);
        bool right = t->heads[column][0] == '-';
        text_puts(line, line->len ? "  " : "");
        text_printf(line, "%*s", right ? (int)pad : 0, "");
        text_add(line, text_string(&shown), shown.len);
        text_printf(line, "%*s", right || column + 1 == t->n_columns ? 0 : (int)pad, "");
}

static void add_line(const struct screen *screen, struct text *to, struct text *line)
{
        struct screen rest = *screen;
        rest.width = screen->width > 2 * GAP ? screen->width - GAP : screen->width;
        text_puts(to, "  ");
        screen_add_line(&rest, to, text_string(line), line->len);
        to->failed |= line->failed;
        text_clear(line);
}

void table_add(const struct table *t, const struct screen *screen, struct text *to)
{
        size_t widths[TABLE_COLUMNS], size;
        TEXT(line);
        if (t->failed || t->cells.failed)
                to->failed = true;
        if (to->failed || !t->n_cells)
                return;
        measure(t, widths);
        if (screen->width)
                fit(t, widths, screen->width);
        for (unsigned c = 0; c < t->n_columns; c++) {
                const char *head = t->heads[c] + (t->heads[c][0] == '-');
                add_cell(t, screen, &line, c, head, strlen(head), widths[c]);
        }
        for (size_t i = 0; i < t->n_cells; i++) {
                unsigned c = (unsigned)(i % t->n_columns);
                if (c == 0)
                        add_line(screen, to, &line);
                const char *s = cell(t, i, &size);
                add_cell(t, screen, &line, c, s, size, widths[c]);
        }
        add_line(screen, to, &line);
}
