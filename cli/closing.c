/* SPDX-License-Identifier: MIT */

/* What a preset says at the end: "Saved {} stories. Top 5 by score:" and the rows of a query. */

#include "closing.h"

#include <stdio.h>
#include <string.h>

#include <resha/error.h>

void closing_add(struct text *t, resha_sqlite *db, const char *line, const char *query, uint64_t n)
{
        const char *hole = strstr(line, "{}");
        text_add(t, line, hole ? (size_t)(hole - line) : strlen(line));
        if (hole) {
                text_add_grouped(t, n);
                text_puts(t, hole + 2);
        }
        text_putc(t, '\n');
        resha_rows *rows RESHA_CLEANUP(resha_rows_freep) = NULL;
        if (!query || resha_sqlite_query(db, query, NULL, 0, &rows) < 0)
                return;
        for (size_t r = 0; r < resha_rows_count(rows); r++) {
                const char *text = resha_rows_text(rows, r, 0);
                text_printf(t, "%s\n", text ? text : "");
        }
}

int closing_print(resha_sqlite *db, const char *line, const char *query, uint64_t n)
{
        TEXT(t);
        closing_add(&t, db, line, query, n);
        bool written = fputs(text_string(&t), stdout) >= 0 && fflush(stdout) == 0;
        return written ? 0 : resha_fail(-EIO, "stdout: %s", strerror(errno));
}
