/* SPDX-License-Identifier: MIT */

/* A picture of requests in time. Edges are rounded to columns, each by itself, so that errors do not add up along a
 * lane; a block is never narrower than its edge and one letter. */

#include "lanes.h"

#include <stdio.h>
#include <string.h>

enum { WIDEST = 160 };

void lanes_init(struct lanes *l)
{
        *l = (struct lanes){ .from = resha_now() };
}

static bool is_free(const struct lanes *l, unsigned lane, resha_duration at)
{
        for (size_t i = l->n_blocks; i-- > 0;)
                if (l->blocks[i].lane == lane)
                        return l->blocks[i].end.ns >= 0 && l->blocks[i].end.ns <= at.ns;
        return true;
}

static unsigned free_lane(const struct lanes *l, resha_duration at)
{
        unsigned lane = 0;
        while (lane < LANES_MAX && !is_free(l, lane, at))
                lane++;
        return lane;
}

static int begin(struct lanes *l, unsigned lane, const char *label, resha_duration start)
{
        if (lane == LANES_MAX || l->n_blocks == LANES_MAX_BLOCKS)
                return -1;
        if (lane == l->n_lanes)
                l->n_lanes++;
        struct block *b = &l->blocks[l->n_blocks];
        *b = (struct block){ .start = start, .end = RESHA_NS(-1), .lane = lane };
        snprintf(b->label, sizeof b->label, "%s", label);
        return (int)l->n_blocks++;
}

int lanes_begin(struct lanes *l, const char *label)
{
        resha_duration now = resha_between(l->from, resha_now());
        return begin(l, free_lane(l, now), label, now);
}

int lanes_begin_after(struct lanes *l, int block, const char *label)
{
        return block < 0 ? -1 : begin(l, l->blocks[block].lane, label, resha_between(l->from, resha_now()));
}

void lanes_add(struct lanes *l, const char *label, resha_instant start, resha_instant end, bool bad)
{
        resha_duration at = resha_between(l->from, start);
        int block = begin(l, free_lane(l, at), label, at);
        if (block < 0)
                return;
        l->blocks[block].end = resha_between(l->from, end);
        l->blocks[block].bad = bad;
}

void lanes_end(struct lanes *l, int block, bool bad, char mark)
{
        if (block < 0)
                return;
        struct block *b = &l->blocks[block];
        b->end = resha_between(l->from, resha_now());
        b->bad = bad;
        if (mark) { /* "07" becomes "x7" */
                size_t zeros = strspn(b->label, "0");
                memmove(b->label + 1, b->label + zeros, strlen(b->label + zeros) + 1);
                b->label[0] = mark;
        }
}

resha_duration lanes_length(const struct lanes *l)
{
        resha_duration length = RESHA_NS(0);
        for (size_t i = 0; i < l->n_blocks; i++) {
                if (l->blocks[i].end.ns < 0)
                        return resha_between(l->from, resha_now());
                if (l->blocks[i].end.ns > length.ns)
                        length = l->blocks[i].end;
        }
        return length;
}

static unsigned column_of(const struct lanes_style *s, resha_duration t)
{
        int64_t column = (t.ns * s->columns + s->unit.ns / 2) / s->unit.ns;
        return column < WIDEST ? (unsigned)(column < 0 ? 0 : column) : WIDEST;
}

enum { EDGE = 1 };

struct cell {
        char c; /* 0: nothing, EDGE, or a letter */
        bool bad;
};

static void paint(struct cell *cells, const struct lanes_style *s, const struct block *b, resha_duration now,
                  unsigned *width)
{
        unsigned from = column_of(s, b->start), to = column_of(s, b->end.ns < 0 ? now : b->end);
        size_t label = strlen(b->label);
        if (b->end.ns >= 0 && to < from + 2)
                to = from + 2;
        for (unsigned c = from; c < to && c < WIDEST; c++)
                cells[c] = (struct cell){ c == from           ? EDGE
                                          : c - from <= label ? b->label[c - from - 1]
                                                              : '.',
                                          b->bad && c > from };
        if (from < WIDEST && to == from)
                cells[from].c = EDGE;
        if (b->end.ns >= 0 && to < WIDEST)
                cells[to] = (struct cell){ EDGE, false };
        unsigned end = to < WIDEST ? to + 1 : WIDEST;
        if (end > *width)
                *width = end;
}

static void add_cells(struct text *t, const struct lanes_style *s, const struct cell *cells, unsigned width)
{
        bool bad = false;
        for (unsigned c = 0; c < width; c++) {
                if (s->color && cells[c].bad != bad)
                        text_puts(t, cells[c].bad ? "\033[31m" : "\033[m");
                bad = cells[c].bad;
                if (cells[c].c == EDGE)
                        text_puts(t, s->ascii ? "|" : "\u258c");
                else
                        text_putc(t, cells[c].c ? cells[c].c : ' ');
        }
        if (s->color && bad)
                text_puts(t, "\033[m");
}

unsigned lanes_draw(const struct lanes *l, const struct lanes_style *style, struct text *t)
{
        unsigned shown = style->show && style->show < l->n_lanes ? style->show : l->n_lanes;
        resha_duration now = resha_between(l->from, resha_now());
        for (unsigned lane = 0; lane < shown; lane++) {
                struct cell cells[WIDEST + 1] = { { 0, false } };
                unsigned width = 0;
                for (size_t i = 0; i < l->n_blocks; i++)
                        if (l->blocks[i].lane == lane)
                                paint(cells, style, &l->blocks[i], now, &width);
                text_printf(t, "%*s", (int)style->indent, "");
                add_cells(t, style, cells, width);
                while (t->len && t->data[t->len - 1] == ' ')
                        t->data[--t->len] = '\0';
                text_putc(t, '\n');
        }
        return shown;
}
