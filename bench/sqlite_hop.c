/* SPDX-License-Identifier: MIT */
/* What does a hop to the database's thread cost, with one call in flight and with many?
 *
 * Tasks read one row by its key from a table in memory, again and again, 1, 8 and 64 of them at once; beside it the
 * same statement on the calling thread, prepared once. Wall-clock microseconds for each call, median of the rounds. One
 * line of JSON. */

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include <resha/resha.h>
#include <resha/sqlite.h>

enum { ROUNDS = 9, CALLS = 12800, MOST = 64 };

static const char READ[] = "select b from t where a = ?";
static const char FILL[] =
        "create table t (a integer primary key, b);"
        "insert into t with recursive n (i) as (select 1 union all select i + 1 from n where i < 1000)"
        " select i, 'row ' || i from n";

struct reader {
        resha_sqlite *db;
        int calls;
};

static int read_rows(void *arg)
{
        struct reader *r = arg;

        for (int i = 0; i < r->calls; i++) {
                resha_rows *rows = NULL;
                int rc = resha_sqlite_query(r->db, READ, RESHA_VALUES(RESHA_INT(i % 1000)), &rows);
                if (rc < 0)
                        return rc;
                resha_rows_free(rows);
        }
        return 0;
}

static double us_since(resha_instant start)
{
        return (double)resha_between(start, resha_now()).ns / 1e3;
}

static int by_value(const void *a, const void *b)
{
        const double *x = a, *y = b;

        return (*x > *y) - (*x < *y);
}

static int in_flight(resha_sqlite *db, int n, double *ret_us)
{
        struct reader readers[MOST];
        double us[ROUNDS];

        for (int i = 0; i < ROUNDS; i++) {
                for (int k = 0; k < n; k++)
                        readers[k] = (struct reader){ db, CALLS / n };
                resha_instant start = resha_now();
                int rc = resha_gather(read_rows, readers, (size_t)n, sizeof *readers, NULL);
                if (rc < 0)
                        return rc;
                us[i] = us_since(start) / CALLS;
        }
        qsort(us, ROUNDS, sizeof *us, by_value);
        *ret_us = us[ROUNDS / 2];
        return 0;
}

static double direct(void)
{
        sqlite3 *db;
        sqlite3_stmt *s;
        double us[ROUNDS];

        if (sqlite3_open_v2(":memory:", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK ||
            sqlite3_exec(db, FILL, NULL, NULL, NULL) != SQLITE_OK ||
            sqlite3_prepare_v2(db, READ, -1, &s, NULL) != SQLITE_OK)
                exit(1);
        for (int i = 0; i < ROUNDS; i++) {
                resha_instant start = resha_now();
                for (int k = 0; k < CALLS; k++) {
                        sqlite3_bind_int64(s, 1, k % 1000);
                        while (sqlite3_step(s) == SQLITE_ROW)
                                (void)sqlite3_column_text(s, 0);
                        sqlite3_reset(s);
                }
                us[i] = us_since(start) / CALLS;
        }
        sqlite3_finalize(s);
        sqlite3_close(db);
        qsort(us, ROUNDS, sizeof *us, by_value);
        return us[ROUNDS / 2];
}

static int program(void *arg)
{
        static const int tasks[] = { 1, 8, 64 };
        RESHA_CLEANUP(resha_sqlite_closep) resha_sqlite *db = NULL;
        double us[3] = { 0 };

        (void)arg;
        int rc = resha_sqlite_open(":memory:", NULL, &db);
        if (rc >= 0)
                rc = resha_sqlite_script(db, FILL);
        for (int i = 0; i < 3 && rc >= 0; i++)
                rc = in_flight(db, tasks[i], &us[i]);
        if (rc < 0)
                return rc;
        printf("{\"bench\": \"sqlite_hop\", \"direct_us\": %.2f, \"us_1_in_flight\": %.2f, ", direct(), us[0]);
        printf("\"us_8_in_flight\": %.2f, \"us_64_in_flight\": %.2f}\n", us[1], us[2]);
        return 0;
}

int main(void)
{
        return resha_main(program, NULL);
}
