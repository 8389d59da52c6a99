/* SPDX-License-Identifier: MIT */
/* No memory: the n-th allocation fails, for every n, once ours and once SQLite's. Each run ends with -ENOMEM or well,
 * leaves nothing behind, and the file holds all of what was said to be stored. */

#include "common.h"

#include <sqlite3.h>
#include <string.h>

#include "base/alloc.h"

static int insert_two(resha_sqlite_tx *tx, void *arg)
{
        resha_rows *rows = NULL;
        int rc = resha_sqlite_tx_execute(tx, "insert into t values (7, 'tx')", NULL, 0, NULL);

        (void)arg;
        if (rc >= 0)
                rc = resha_sqlite_tx_query(tx, "select count(*) from t", NULL, 0, &rows);
        resha_rows_free(rows);
        return rc;
}

static int read_cursor(resha_sqlite *db)
{
        RESHA_CLEANUP(resha_sqlite_cursor_closep) resha_sqlite_cursor *cursor = NULL;
        const resha_rows *rows;
        int rc = resha_sqlite_cursor_open(db, "select * from t where a > ?", RESHA_VALUES(RESHA_INT(0)), &cursor);

        while (rc >= 0 && (rc = resha_sqlite_cursor_next(cursor, &rows)) > 0)
                ;
        return rc;
}

static int stored; /* rows that were said to be stored */

static int scenario(void *arg)
{
        static const resha_value rows[] = { RESHA_INT(1), RESHA_TEXT("a"), RESHA_INT(2), RESHA_TEXT("b") };
        RESHA_CLEANUP(resha_sqlite_closep) resha_sqlite *db = NULL;
        RESHA_CLEANUP(resha_rows_freep) resha_rows *read = NULL;
        resha_rows *none = NULL;
        int64_t n = 0;

        int rc = resha_sqlite_open(arg, &(resha_sqlite_opts){ .max_result_bytes = 30000 }, &db);
        if (rc >= 0)
                rc = resha_sqlite_script(db, "create table if not exists t (a, b); delete from t");
        stored = rc >= 0 ? 0 : -1;
        if (rc >= 0)
                rc = resha_sqlite_batch(db, "insert into t values (?, ?)", rows, 2, 2, &n);
        stored += rc >= 0 ? 2 : 0;
        if (rc >= 0)
                rc = resha_sqlite_transaction(db, insert_two, NULL);
        stored += rc >= 0 ? 1 : 0;
        if (rc >= 0)
                rc = resha_sqlite_query(db, "insert into t values (3, zeroblob(5000)) returning b", NULL, 0, &read);
        stored += rc >= 0 ? 1 : 0;
        if (rc >= 0) { /* too large: not stored, also if there is no memory to take it back in the usual way */
                rc = resha_sqlite_query(db, "insert into t values (4, zeroblob(40000)) returning b", NULL, 0, &none);
                rc = rc == RESHA_SQLITE_ERESULT_SIZE ? 0 : rc;
        }
        if (rc >= 0)
                rc = read_cursor(db);
        return rc;
}

static int count_rows(void *arg)
{
        resha_sqlite *db = open_db(arg);
        int n = one_int(db, "select count(*) from sqlite_schema") > 0 ? (int)one_int(db, "select count(*) from t") : 0;

        resha_sqlite_close(db);
        return n;
}

static void check(const char *path, int rc, int64_t n)
{
        if (rc < 0 && rc != -ENOMEM)
                FAIL("allocation %lld: %s", (long long)n, resha_strerror(rc));
        if (stored >= 0)
                ASSERT_EQ(test_run_opts(count_rows, (void *)(intptr_t)path, NULL), stored);
}

TEST(our_memory_runs_out)
{
        const char *path = temp_path("ours.db");
        int64_t n = 1, failed = 1;

        SIM_ONLY();
        for (; failed > 0 && n < 10000; n++) {
                rs_alloc_fail_after(n, false);
                int rc = test_run_opts(scenario, (void *)(intptr_t)path, NULL);
                failed = rs_alloc_failed();
                rs_alloc_fail_after(0, false);
                check(path, rc, n);
        }
        ASSERT_TRUE(n > 15 && n < 10000);
}

/* ---- SQLite's memory ---- */

static sqlite3_mem_methods real;
static int64_t fail_in, live, failures; /* in this many allocations; 0: never */

static bool fails(void)
{
        if (fail_in > 0 && --fail_in == 0) {
                failures++;
                return true;
        }
        return false;
}

static void *take(int size)
{
        void *p = fails() ? NULL : real.xMalloc(size);

        live += p != NULL;
        return p;
}

static void *resize(void *p, int size)
{
        return fails() ? NULL : real.xRealloc(p, size);
}

static void give(void *p)
{
        live -= p != NULL;
        real.xFree(p);
}

TEST(sqlites_memory_runs_out)
{
        const char *path = temp_path("sqlites.db");
        sqlite3_mem_methods ours;

        SIM_ONLY();
        ASSERT_EQ(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real), SQLITE_OK);
        ours = real;
        ours.xMalloc = take;
        ours.xRealloc = resize;
        ours.xFree = give;
        ASSERT_EQ(sqlite3_config(SQLITE_CONFIG_MALLOC, &ours), SQLITE_OK);
        ASSERT_OK(test_run_opts(scenario, (void *)(intptr_t)path, NULL)); /* what SQLite keeps for ever is there now */
        int64_t before = live, n = 1;
        for (failures = 1; failures > 0 && n < 10000; n++) {
                failures = 0;
                fail_in = n;
                int rc = test_run_opts(scenario, (void *)(intptr_t)path, NULL);
                fail_in = 0;
                check(path, rc, n);
                ASSERT_EQ(live, before);
        }
        ASSERT_TRUE(n > 300 && n < 10000);
}
