/* SPDX-License-Identifier: MIT */
/* Cursors: large results in chunks, beside other calls. */

#include "common.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char NUMBERS[] = "with recursive n (i) as (select 1 union all select i + 1 from n where i < ?)"
                              " select i, 'row ' || i as text from n";

static uint64_t hops(resha_sqlite *db)
{
        resha_sqlite_counts c;

        resha_sqlite_count(db, &c);
        return c.hops;
}

/* Reads to the end; the number of rows, whose first column must count from 1. */
static int64_t read_all(resha_sqlite_cursor *cursor)
{
        const resha_rows *rows = NULL;
        int64_t n = 0;
        int rc;

        while ((rc = resha_sqlite_cursor_next(cursor, &rows)) > 0)
                for (size_t r = 0; r < resha_rows_count(rows); r++)
                        ASSERT_EQ(resha_rows_int(rows, r, 0), ++n);
        ASSERT_EQ(rc, 0);
        ASSERT_EQ(resha_sqlite_cursor_next(cursor, &rows), 0);
        return n;
}

static void count_up_to(resha_sqlite *db, int64_t n, uint64_t most_hops)
{
        RESHA_CLEANUP(resha_sqlite_cursor_closep) resha_sqlite_cursor *cursor = NULL;
        uint64_t before = hops(db);

        ASSERT_OK(resha_sqlite_cursor_open(db, NUMBERS, RESHA_VALUES(RESHA_INT(n)), &cursor));
        ASSERT_EQ(read_all(cursor), n);
        ASSERT_TRUE(hops(db) - before <= most_hops);
}

TASK(a_hop_for_each_chunk)
{
        resha_sqlite *db = open_db(NULL), *file = open_db(temp_path("chunks.db"));

        count_up_to(db, 1, 2);
        count_up_to(db, 256, 3);
        count_up_to(db, 257, 3);
        count_up_to(db, 100000, 2 + 100000 / 256);
        count_up_to(file, 100000, 2 + 100000 / 256);
        resha_sqlite_close(file);
        resha_sqlite_close(db);
        return 0;
}

TASK(large_rows_make_small_chunks)
{
        resha_sqlite *db = open_db(NULL);
        resha_sqlite_cursor *cursor = NULL;
        const resha_rows *rows = NULL;
        size_t n = 0;

        ASSERT_OK(
                resha_sqlite_cursor_open(db,
                                         "with recursive n (i) as (select 1 union all select i + 1 from n where i < 9)"
                                         " select zeroblob(30000) from n",
                                         NULL, 0, &cursor));
        while (resha_sqlite_cursor_next(cursor, &rows) > 0) {
                ASSERT_EQ(resha_rows_count(rows), 3);
                n += resha_rows_count(rows);
        }
        ASSERT_EQ(n, 9);
        resha_sqlite_cursor_close(cursor);
        resha_sqlite_close(db);
        return 0;
}

TASK(values_are_copied)
{
        resha_sqlite *db = open_db(NULL);
        resha_sqlite_cursor *cursor = NULL;
        const resha_rows *rows = NULL;
        char text[] = "before";

        ASSERT_OK(resha_sqlite_cursor_open(db, "select ? as x", RESHA_VALUES(RESHA_TEXT(text)), &cursor));
        memcpy(text, "after!", sizeof text);
        ASSERT_EQ(resha_sqlite_cursor_next(cursor, &rows), 1);
        ASSERT_STR(resha_rows_text(rows, 0, 0), "before");
        ASSERT_STR(resha_rows_name(rows, 0), "x");
        resha_sqlite_cursor_closep(&cursor);
        ASSERT_TRUE(cursor == NULL);
        resha_sqlite_cursor_closep(&cursor);
        resha_sqlite_close(db);
        return 0;
}

/* Others write, also what is not a read, while a cursor of a file is open; it sees the file as it was. */
TASK(a_cursor_sees_the_file_as_it_was)
{
        resha_sqlite *db = open_db(temp_path("snapshot.db"));
        resha_sqlite_cursor *cursor = NULL;
        const resha_rows *rows = NULL;
        int64_t n = 0;

        run_sql(db, "create table t (a)");
        ASSERT_OK(resha_sqlite_execute(db,
                                       "insert into t with recursive n (i) as (select 1 union all select i + 1 from n"
                                       " where i < 1000) select i from n",
                                       NULL, 0, NULL));
        ASSERT_OK(resha_sqlite_cursor_open(db, "select a from t order by a", NULL, 0, &cursor));
        while (resha_sqlite_cursor_next(cursor, &rows) > 0) {
                for (size_t r = 0; r < resha_rows_count(rows); r++)
                        ASSERT_EQ(resha_rows_int(rows, r, 0), ++n);
                run_sql(db, "delete from t where a > 500");
                run_sql(db, "alter table t add column b");
                run_sql(db, "alter table t drop column b");
        }
        ASSERT_EQ(n, 1000);
        resha_sqlite_cursor_close(cursor);
        ASSERT_EQ(one_int(db, "select count(*) from t"), 500);
        resha_sqlite_close(db);
        return 0;
}

TASK(in_memory_the_schema_is_locked)
{
        resha_sqlite *db = open_db(NULL);
        resha_sqlite_cursor *cursor = NULL;
        const resha_rows *rows = NULL;

        run_sql(db, "create table t (a)");
        ASSERT_OK(resha_sqlite_execute(db,
                                       "insert into t with recursive n (i) as (select 1 union all select i + 1 from n"
                                       " where i < 1000) select i from n",
                                       NULL, 0, NULL));
        ASSERT_OK(resha_sqlite_cursor_open(db, "select a from t", NULL, 0, &cursor));
        ASSERT_EQ(resha_sqlite_cursor_next(cursor, &rows), 1);
        int rc = resha_sqlite_execute(db, "drop table t", NULL, 0, NULL);
        ASSERT_EQ(rc, RESHA_SQLITE_ELOCKED);
        ASSERT_HAS(text_of(rc), "database table is locked");
        resha_sqlite_cursor_close(cursor);
        run_sql(db, "drop table t");
        resha_sqlite_close(db);
        return 0;
}

TASK(only_what_reads_rows)
{
        static const char *const texts[] = { "create table t (a)", "begin", "insert into u values (1) returning a",
                                             "commit" };
        resha_sqlite *db = open_db(temp_path("refused.db"));
        resha_sqlite_cursor *cursor = NULL;

        run_sql(db, "create table u (a)");
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
                int rc = resha_sqlite_cursor_open(db, texts[i], NULL, 0, &cursor);
                ASSERT_EQ(rc, -EINVAL);
                ASSERT_HAS(text_of(rc), "a cursor is for SQL that reads rows");
        }
        ASSERT_EQ(resha_sqlite_cursor_open(db, "select * from v", NULL, 0, &cursor), RESHA_SQLITE_ERROR);
        ASSERT_EQ(resha_sqlite_cursor_open(db, "select ?", NULL, 0, &cursor), -EINVAL);
        ASSERT_EQ(resha_sqlite_cursor_open(db, NULL, NULL, 0, &cursor), -EINVAL);
        ASSERT_TRUE(cursor == NULL);
        resha_sqlite_close(db);
        return 0;
}

TASK(a_cursor_that_failed_stays_so)
{
        resha_sqlite *db = NULL;
        resha_sqlite_cursor *cursor = NULL;
        const resha_rows *rows = NULL;

        ASSERT_OK(resha_sqlite_open(":memory:", &(resha_sqlite_opts){ .max_result_bytes = 1000 }, &db));
        ASSERT_OK(resha_sqlite_cursor_open(db, "select zeroblob(2000)", NULL, 0, &cursor));
        for (int i = 0; i < 2; i++) {
                int rc = resha_sqlite_cursor_next(cursor, &rows);
                ASSERT_EQ(rc, RESHA_SQLITE_ERESULT_SIZE);
                ASSERT_HAS(text_of(rc), i == 0 ? "a row is over max_result_bytes" : "the cursor has failed before");
        }
        resha_sqlite_cursor_close(cursor);
        resha_sqlite_close(db);
        return 0;
}

/* Either may be closed first. */
TASK(the_database_closes_first)
{
        const char *path = temp_path("first.db"), *wal = temp_path("first.db-wal");
        resha_sqlite *db = open_db(path);
        resha_sqlite_cursor *unread = NULL, *begun = NULL, *closed = NULL;
        const resha_rows *rows = NULL;

        ASSERT_OK(resha_sqlite_cursor_open(db, NUMBERS, RESHA_VALUES(RESHA_INT(1000)), &closed));
        ASSERT_OK(resha_sqlite_cursor_open(db, NUMBERS, RESHA_VALUES(RESHA_INT(1000)), &begun));
        ASSERT_OK(resha_sqlite_cursor_open(db, NUMBERS, RESHA_VALUES(RESHA_INT(1000)), &unread));
        ASSERT_EQ(resha_sqlite_cursor_next(begun, &rows), 1);
        resha_sqlite_cursor_close(closed);
        run_sql(db, "create table t (a)");
        resha_sqlite_close(db);
        ASSERT_EQ(resha_rows_count(rows), 256); /* still the cursor's */
        ASSERT_EQ(resha_sqlite_cursor_next(begun, &rows), RESHA_SQLITE_ECLOSED);
        resha_sqlite_cursor_close(begun);
        resha_sqlite_cursor_close(unread);
        ASSERT_EQ(access(path, F_OK), 0);
        ASSERT_EQ(access(wal, F_OK), -1);
        return 0;
}

TASK(a_cursor_is_interrupted)
{
        resha_sqlite *db = open_db(temp_path("interrupted.db"));
        resha_sqlite_cursor *cursor = NULL;
        const resha_rows *rows = NULL;

        if (test_is_sim())
                test_skip("calls run inline");
        ASSERT_OK(resha_sqlite_cursor_open(db,
                                           "with recursive n (i) as (select 1 union all select i + 1 from n)"
                                           " select count(*) from n",
                                           NULL, 0, &cursor));
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, RESHA_MS(30));
        ASSERT_EQ(resha_sqlite_cursor_next(cursor, &rows), -ECANCELED);
        resha_sqlite_cursor_close(cursor);
        ASSERT_EQ(resha_scope_end(&s, -ECANCELED), -ETIME);
        ASSERT_EQ(one_int(db, "select 1"), 1);
        resha_sqlite_close(db);
        return 0;
}

/* Virtual tables keep statements of their own on the handle: closing must leave those to them. */
TASK(a_database_with_full_text_search_closes)
{
        if (!sqlite3_compileoption_used("ENABLE_FTS5"))
                return 0;
        resha_sqlite *db = open_db(temp_path("fts.db"));
        resha_sqlite_cursor *cursor = NULL;
        const resha_rows *rows = NULL;

        run_sql(db, "create virtual table doc using fts5 (body)");
        run_sql(db, "insert into doc values ('one resha'), ('two')");
        ASSERT_EQ(one_int(db, "select count(*) from doc where doc match 'resha'"), 1);
        ASSERT_OK(
                resha_sqlite_cursor_open(db, "select body from doc where doc match 'resha OR two'", NULL, 0, &cursor));
        ASSERT_EQ(resha_sqlite_cursor_next(cursor, &rows), 1);
        resha_sqlite_close(db);
        resha_sqlite_cursor_close(cursor);
        return 0;
}
