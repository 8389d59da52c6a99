/* SPDX-License-Identifier: MIT */
/* Values: what is bound comes back as it was, and what is read is typed. */

#include "common.h"

#include <math.h>
#include <string.h>

/* select ?: the value as SQLite took it. */
static resha_rows *echo(resha_sqlite *db, resha_value v)
{
        resha_rows *rows = NULL;

        ASSERT_OK(resha_sqlite_query(db, "select ?", &v, 1, &rows));
        ASSERT_EQ(resha_rows_count(rows), 1);
        return rows;
}

TASK(quotes_are_stored_as_they_are)
{
        resha_sqlite *db = open_db(NULL);
        const char *title = "It's \"quoted\"; drop table story; -- \xe0\xa4\xb0";
        resha_rows *rows = NULL;

        run_sql(db, "create table story (id integer primary key, title text)");
        ASSERT_OK(resha_sqlite_execute(db, "insert into story values (?, ?)",
                                       RESHA_VALUES(RESHA_INT(1), RESHA_TEXT(title)), NULL));
        ASSERT_OK(resha_sqlite_query(db, "select title from story where title = ?", RESHA_VALUES(RESHA_TEXT(title)),
                                     &rows));
        ASSERT_EQ(resha_rows_count(rows), 1);
        ASSERT_STR(resha_rows_text(rows, 0, 0), title);
        resha_rows_free(rows);
        resha_sqlite_close(db);
        return 0;
}

TASK(integers_round_trip)
{
        static const int64_t samples[] = { 0, 1, -1, INT64_MAX, INT64_MIN, INT64_C(1) << 53 };
        resha_sqlite *db = open_db(NULL);

        for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
                resha_rows *rows = echo(db, RESHA_INT(samples[i]));
                ASSERT_EQ(resha_rows_value(rows, 0, 0).type, RESHA_VALUE_INT);
                ASSERT_EQ(resha_rows_int(rows, 0, 0), samples[i]);
                ASSERT_TRUE(resha_rows_real(rows, 0, 0) == (double)samples[i]);
                ASSERT_TRUE(resha_rows_text(rows, 0, 0) == NULL);
                resha_rows_free(rows);
        }
        resha_sqlite_close(db);
        return 0;
}

TASK(reals_round_trip)
{
        static const struct {
                double real;
                int64_t cut;
        } samples[] = {
                { 0.1, 0 },           { -2.9, -2 },
                { 1e300, INT64_MAX }, { -1e300, INT64_MIN },
                { 5e-324, 0 },        { 9223372036854775808.0, INT64_MAX },
        };
        resha_sqlite *db = open_db(NULL);

        for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
                resha_rows *rows = echo(db, RESHA_REAL(samples[i].real));
                ASSERT_EQ(resha_rows_value(rows, 0, 0).type, RESHA_VALUE_REAL);
                ASSERT_TRUE(resha_rows_real(rows, 0, 0) == samples[i].real);
                ASSERT_EQ(resha_rows_int(rows, 0, 0), samples[i].cut);
                resha_rows_free(rows);
        }
        resha_rows *rows = echo(db, RESHA_REAL(NAN));
        ASSERT_TRUE(resha_rows_is_null(rows, 0, 0));
        resha_rows_free(rows);
        resha_sqlite_close(db);
        return 0;
}

TASK(text_with_zero_bytes_round_trips)
{
        resha_sqlite *db = open_db(NULL);
        resha_rows *rows = echo(db, RESHA_TEXT_N("a\0b", 3));
        size_t size = 0;

        ASSERT_EQ(resha_rows_value(rows, 0, 0).type, RESHA_VALUE_TEXT);
        ASSERT_EQ(resha_rows_value(rows, 0, 0).size, 3);
        ASSERT_EQ(memcmp(resha_rows_blob(rows, 0, 0, &size), "a\0b", 4), 0);
        ASSERT_EQ(size, 3);
        resha_rows_free(rows);

        rows = echo(db, RESHA_TEXT_N("story, and more", 5));
        ASSERT_STR(resha_rows_text(rows, 0, 0), "story");
        resha_rows_free(rows);
        resha_sqlite_close(db);
        return 0;
}

TASK(blobs_round_trip)
{
        unsigned char bytes[256];
        resha_sqlite *db = open_db(NULL);
        size_t size = 1;

        for (size_t i = 0; i < sizeof bytes; i++)
                bytes[i] = (unsigned char)i;
        resha_rows *rows = echo(db, RESHA_BLOB(bytes, sizeof bytes));
        ASSERT_EQ(resha_rows_value(rows, 0, 0).type, RESHA_VALUE_BLOB);
        ASSERT_EQ(memcmp(resha_rows_blob(rows, 0, 0, &size), bytes, sizeof bytes), 0);
        ASSERT_EQ(size, sizeof bytes);
        ASSERT_EQ(resha_rows_int(rows, 0, 0), 0);
        resha_rows_free(rows);

        rows = echo(db, RESHA_BLOB(bytes, 0)); /* empty, not NULL */
        ASSERT_FALSE(resha_rows_is_null(rows, 0, 0));
        ASSERT_TRUE(resha_rows_blob(rows, 0, 0, &size) != NULL);
        ASSERT_EQ(size, 0);
        resha_rows_free(rows);
        resha_sqlite_close(db);
        return 0;
}

TASK(null_pointers_are_null)
{
        const resha_value nulls[] = { RESHA_NULL, RESHA_TEXT(NULL), RESHA_TEXT_N(NULL, 0), RESHA_BLOB(NULL, 0), { 0 } };
        resha_sqlite *db = open_db(NULL);

        for (size_t i = 0; i < sizeof nulls / sizeof *nulls; i++) {
                resha_rows *rows = echo(db, nulls[i]);
                ASSERT_TRUE(resha_rows_is_null(rows, 0, 0));
                ASSERT_TRUE(resha_rows_text(rows, 0, 0) == NULL);
                ASSERT_TRUE(resha_rows_blob(rows, 0, 0, NULL) == NULL);
                resha_rows_free(rows);
        }
        resha_sqlite_close(db);
        return 0;
}

TASK(a_value_without_a_type_is_refused)
{
        resha_sqlite *db = open_db(NULL);
        resha_value v = { .type = (enum resha_value_type)17 };
        resha_rows *rows = NULL;

        int rc = resha_sqlite_query(db, "select ?", &v, 1, &rows);
        ASSERT_EQ(rc, -EINVAL);
        ASSERT_HAS(text_of(rc), "a value has no type");
        ASSERT_TRUE(rows == NULL);
        resha_sqlite_close(db);
        return 0;
}

TASK(what_does_not_exist_reads_as_null)
{
        resha_sqlite *db = open_db(NULL);
        resha_rows *rows = NULL;

        ASSERT_OK(resha_sqlite_query(db, "select 7 as Seven, 'x', 7 as seven", NULL, 0, &rows));
        ASSERT_EQ(resha_rows_columns(rows), 3);
        ASSERT_EQ(resha_rows_int(rows, 1, 0), 0);
        ASSERT_TRUE(resha_rows_is_null(rows, 0, 3));
        ASSERT_EQ(resha_rows_value(rows, 0, SIZE_MAX).type, RESHA_VALUE_NULL);
        ASSERT_STR(resha_rows_name(rows, 0), "Seven");
        ASSERT_STR(resha_rows_name(rows, 1), "'x'");
        ASSERT_TRUE(resha_rows_name(rows, 3) == NULL);
        ASSERT_EQ(resha_rows_column(rows, "SEVEN"), 0);
        ASSERT_EQ(resha_rows_column(rows, "eight"), -ENOENT);
        resha_rows_freep(&rows);
        ASSERT_TRUE(rows == NULL);
        resha_rows_free(NULL);
        resha_sqlite_close(db);
        return 0;
}

/* Cells and bytes share blocks of 4 KiB and more: values around those sizes, each with its neighbours intact. */
TASK(values_of_all_sizes_keep_their_neighbours)
{
        static char big[3 << 20];
        static const size_t sizes[] = { 0, 1, 1023, 1024, 4095, 4096, 4097, 70000, 1 << 20, sizeof big };
        enum { N = sizeof sizes / sizeof *sizes };
        resha_sqlite *db = open_db(NULL);
        resha_rows *rows = NULL;

        memset(big, 'x', sizeof big);
        run_sql(db, "create table t (i, size, bytes)");
        for (int i = 0; i < 3 * N; i++)
                ASSERT_OK(resha_sqlite_execute(db, "insert into t values (?1, ?2, ?3)",
                                               RESHA_VALUES(RESHA_INT(i), RESHA_INT((int64_t)sizes[i * 7 % N]),
                                                            RESHA_TEXT_N(big, sizes[i * 7 % N])),
                                               NULL));
        ASSERT_OK(resha_sqlite_query(db, "select bytes, size, i from t order by i", NULL, 0, &rows));
        for (size_t i = 0; i < 3 * N; i++) {
                ASSERT_EQ(resha_rows_int(rows, i, 2), i);
                ASSERT_EQ(resha_rows_int(rows, i, 1), resha_rows_value(rows, i, 0).size);
                ASSERT_EQ(strspn(resha_rows_text(rows, i, 0), "x"), resha_rows_value(rows, i, 0).size);
        }
        resha_rows_free(rows);
        resha_sqlite_close(db);
        return 0;
}

/* What was read does not need the database any more. */
TASK(rows_outlive_the_database)
{
        resha_sqlite *db = open_db(NULL);
        resha_rows *rows = echo(db, RESHA_TEXT("still here"));

        resha_sqlite_close(db);
        ASSERT_STR(resha_rows_text(rows, 0, 0), "still here");
        ASSERT_STR(resha_rows_name(rows, 0), "?");
        resha_rows_free(rows);
        return 0;
}
