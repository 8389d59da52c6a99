/* SPDX-License-Identifier: MIT */
/* What a call says of itself: its statement, in one line, without values. It must be there before anybody looks, who
 * may be another thread, and calls are many where statements are few: so the texts of some statements are kept with the
 * database, each with the part of the SQL that it was made from, and a call compares that.
 *
 * Invariant: a text that calls in flight use stays as it is. */

#include "internal.h"

#include <ctype.h>
#include <string.h>

/* Whether a value begins at *sql: a number, or a text in quotes. before: the last character but for blanks. */
static bool is_value(const char *sql, char before, bool blank_before)
{
        if (*sql == '"') /* a name, but where values stand */
                return strchr("=<>(,", before) != NULL;
        bool in_word = !blank_before && (isalnum((unsigned char)before) || strchr("_$?:@", before));
        return *sql == '\'' || (*sql >= '0' && *sql <= '9' && !in_word);
}

size_t rs_sqlite_shown(const char *sql, char text[static RS_SQLITE_SHOWN])
{
        const char *start = sql;
        char before = '(';
        size_t n = 0;

        for (sql = rs_sqlite_skip_blank(sql); *sql && n < RS_SQLITE_SHOWN - 4; sql++) {
                bool blank = isspace((unsigned char)*sql), value = is_value(sql, before, n && text[n - 1] == ' ');
                if (value && (*sql == '\'' || *sql == '"'))
                        break;
                if (!blank || (n && text[n - 1] != ' '))
                        text[n++] = blank ? ' ' : value ? '?' : *sql;
                while (value && (isalnum((unsigned char)sql[1]) || sql[1] == '.'))
                        sql++;
                before = blank ? before : value ? '?' : *sql;
        }
        memcpy(text + n, *sql ? "..." : "", *sql ? 4 : 1);
        return (size_t)(sql - start) + 1;
}

struct rs_sqlite_text *rs_sqlite_text_take(resha_sqlite *db, const char *sql, char own[static RS_SQLITE_SHOWN])
{
        struct rs_sqlite_text *t = &db->texts[((uintptr_t)sql >> 3) % RS_SQLITE_TEXTS]; /* most are constants */

        if (!t->size || strncmp(t->sql, sql, t->size) != 0) {
                size_t size = rs_sqlite_shown(sql, own);
                if (t->users || size > sizeof t->sql)
                        return NULL;
                memcpy(t->sql, sql, size);
                memcpy(t->text, own, sizeof t->text);
                t->size = size;
        }
        t->users++;
        return t;
}
