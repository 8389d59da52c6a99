/* SPDX-License-Identifier: MIT */
/* Large results: whole in one hop, and refused over the cap. */

#include "common.h"

#include <stdlib.h>

enum { ROWS = 100000 };

TASK(a_hundred_thousand_rows_in_one_hop)
{
        resha_sqlite *db = open_db(NULL);
        resha_sqlite_counts before, after;
        resha_rows *rows = NULL;
        int64_t sum = 0;

        resha_sqlite_count(db, &before);
        ASSERT_OK(resha_sqlite_query(db,
                                     "with recursive n (i) as (select 1 union all select i + 1 from n where i < ?)"
                                     " select i, 'row ' || i, i / 2.0 from n",
                                     RESHA_VALUES(RESHA_INT(ROWS)), &rows));
        resha_sqlite_count(db, &after);
        ASSERT_EQ(after.hops - before.hops, 1);
        ASSERT_EQ(resha_rows_count(rows), ROWS);
        for (size_t r = 0; r < ROWS; r++) {
                sum += resha_rows_int(rows, r, 0);
                ASSERT_EQ(strtol(resha_rows_text(rows, r, 1) + 4, NULL, 10), r + 1);
        }
        ASSERT_EQ(sum, (int64_t)ROWS * (ROWS + 1) / 2);
        ASSERT_TRUE(resha_rows_real(rows, ROWS - 1, 2) == 50000.0);
        resha_rows_free(rows);
        resha_sqlite_close(db);
        return 0;
}

TASK(result_over_the_cap_is_refused)
{
        const char *sql = "with recursive n (i) as (select 1 union all select i + 1 from n where i < ?)"
                          " select zeroblob(1000) from n";
        resha_sqlite *db = NULL;
        resha_rows *rows = NULL;

        ASSERT_OK(resha_sqlite_open(":memory:", &(resha_sqlite_opts){ .max_result_bytes = 100000 }, &db));
        ASSERT_OK(resha_sqlite_query(db, sql, RESHA_VALUES(RESHA_INT(90)), &rows));
        ASSERT_EQ(resha_rows_count(rows), 90);
        resha_rows_freep(&rows);
        int rc = resha_sqlite_query(db, sql, RESHA_VALUES(RESHA_INT(1000000000)), &rows);
        ASSERT_EQ(rc, RESHA_SQLITE_ERESULT_SIZE);
        ASSERT_HAS(text_of(rc), "after 97 rows the result is over max_result_bytes, 100000; SQL: with recursive");
        ASSERT_TRUE(rows == NULL);
        /* One value over the cap is not copied first. */
        rc = resha_sqlite_query(db, "select zeroblob(900000000)", NULL, 0, &rows);
        ASSERT_EQ(rc, RESHA_SQLITE_ERESULT_SIZE);
        ASSERT_HAS(text_of(rc), "after 0 rows");
        ASSERT_EQ(one_int(db, "select 1"), 1);
        resha_sqlite_close(db);
        return 0;
}

TASK(empty_results_have_columns)
{
        resha_sqlite *db = open_db(NULL);
        resha_rows *rows = NULL;

        ASSERT_OK(resha_sqlite_query(db, "select 1 as one, 2 as two where 0", NULL, 0, &rows));
        ASSERT_EQ(resha_rows_count(rows), 0);
        ASSERT_EQ(resha_rows_columns(rows), 2);
        ASSERT_STR(resha_rows_name(rows, 1), "two");
        resha_rows_freep(&rows);
        ASSERT_OK(resha_sqlite_query(db, "create table t (a)", NULL, 0, &rows));
        ASSERT_EQ(resha_rows_columns(rows), 0);
        resha_rows_free(rows);
        resha_sqlite_close(db);
        return 0;
}
