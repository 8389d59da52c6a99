/* SPDX-License-Identifier: MIT */
#ifndef CLI_SCREEN_H
#define CLI_SCREEN_H

/* What a terminal gets to see. Names come from other programs, and may hold what moves a cursor. */

#include "text.h"

struct screen {
        bool terminal; /* stdout is one */
        bool ascii;    /* plain letters only */
        bool color;
        size_t width; /* columns; 0: as many as it takes */
};

struct screen screen_here(void);

/* Adds s: control characters, marks that turn the direction of text, and bytes that are not UTF-8 become "?". */
void screen_add(const struct screen *screen, struct text *t, const char *s);

/* The same for an answer that is passed through: newlines and tabs stay. JSON: the others become \u00XX, else "?". */
void screen_add_raw(struct text *t, const char *data, size_t size, bool json);

/* How many columns it takes if each character takes one. */
size_t screen_columns(const char *s, size_t size);

/* Adds at most `columns` of s, the last of them an ellipsis where it is cut. 0: all of it. */
void screen_add_cut(const struct screen *screen, struct text *t, const char *s, size_t size, size_t columns);

/* One line, cut to the width of the terminal, and its newline. */
void screen_add_line(const struct screen *screen, struct text *t, const char *line, size_t size);

/* "0.04 ms", "0.21 s", "8 m 21 s"; "" where it is unknown (below 0). */
void screen_add_time(struct text *t, int64_t ns);

#endif
