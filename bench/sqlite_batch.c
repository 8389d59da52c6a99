/* SPDX-License-Identifier: MIT */
/* What does resha_sqlite_batch() cost beside the bare loop on SQLite?
 *
 * Both store BATCHES batches of ROWS rows of 10 columns (an item of a news site with its JSON text, some 500 bytes) in
 * a new file with the same settings: begin immediate; bind, step, reset for each row; commit. The bare loop binds from
 * the same array of values, on the thread that calls. They alternate; the ratio is that of the medians of processor
 * time, with the smallest and largest ratio of one round. One line of JSON. */

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <resha/resha.h>
#include <resha/sqlite.h>

enum { ROWS = 10000, COLUMNS = 10, BATCHES = 5, ROUNDS = 11 };

static const char TABLE[] = "create table item (id integer primary key, type, by, time, title, url, score, descendants,"
                            " ratio, json)";
static const char INSERT[] = "insert into item values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
static const char PATH[] = "sqlite-batch.db";

static char json[500];

static void fill_rows(resha_value *values, int64_t first)
{
        for (int64_t r = 0; r < ROWS; r++) {
                const resha_value row[COLUMNS] = {
                        RESHA_INT(first + r),
                        RESHA_TEXT("story"),
                        RESHA_TEXT("somebody"),
                        RESHA_INT(1700000000 + r),
                        RESHA_TEXT("A title as long as titles of stories are, on the average"),
                        RESHA_TEXT("https://example.org/2024/some/path/to/an/article.html"),
                        RESHA_INT(r % 500),
                        RESHA_NULL,
                        RESHA_REAL((double)r / 7),
                        RESHA_TEXT_N(json, sizeof json),
                };
                memcpy(values + r * COLUMNS, row, sizeof row);
        }
}

static void remove_files(void)
{
        static const char *const ends[] = { "", "-wal", "-shm" };
        char path[64];

        for (int i = 0; i < 3; i++) {
                snprintf(path, sizeof path, "%s%s", PATH, ends[i]);
                unlink(path);
        }
}

static double cpu_ms(void)
{
        struct timespec t;

        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void must(int result, int wanted, sqlite3 *db)
{
        if (result != wanted) {
                fprintf(stderr, "bare loop: %s\n", sqlite3_errmsg(db));
                exit(1);
        }
}

static void bare_bind(sqlite3_stmt *s, int i, const resha_value *v)
{
        switch (v->type) {
        case RESHA_VALUE_INT: sqlite3_bind_int64(s, i, v->as.integer); break;
        case RESHA_VALUE_REAL: sqlite3_bind_double(s, i, v->as.real); break;
        case RESHA_VALUE_TEXT:
                sqlite3_bind_text(s, i, v->as.text, v->size == SIZE_MAX ? -1 : (int)v->size, SQLITE_STATIC);
                break;
        default: sqlite3_bind_null(s, i); break;
        }
}

/* Milliseconds of processor time for the inserts. */
static double bare(resha_value *values)
{
        sqlite3 *db;
        sqlite3_stmt *s;

        must(sqlite3_open_v2(PATH, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL),
             SQLITE_OK, db);
        must(sqlite3_exec(db, "pragma journal_mode=wal; pragma synchronous=normal", NULL, NULL, NULL), SQLITE_OK, db);
        must(sqlite3_exec(db, TABLE, NULL, NULL, NULL), SQLITE_OK, db);
        double spent = 0;
        for (int b = 0; b < BATCHES; b++) {
                fill_rows(values, (int64_t)b * ROWS);
                double start = cpu_ms();
                must(sqlite3_exec(db, "begin immediate", NULL, NULL, NULL), SQLITE_OK, db);
                must(sqlite3_prepare_v2(db, INSERT, -1, &s, NULL), SQLITE_OK, db);
                for (size_t r = 0; r < ROWS; r++) {
                        for (int c = 0; c < COLUMNS; c++)
                                bare_bind(s, c + 1, &values[r * COLUMNS + (size_t)c]);
                        must(sqlite3_step(s), SQLITE_DONE, db);
                        sqlite3_reset(s);
                }
                sqlite3_finalize(s);
                must(sqlite3_exec(db, "commit", NULL, NULL, NULL), SQLITE_OK, db);
                spent += cpu_ms() - start;
        }
        sqlite3_close(db);
        remove_files();
        return spent;
}

struct ours {
        resha_value *values;
        double spent;
};

static int ours_task(void *arg)
{
        struct ours *o = arg;
        RESHA_CLEANUP(resha_sqlite_closep) resha_sqlite *db = NULL;
        int rc = resha_sqlite_open(PATH, NULL, &db);
        if (rc >= 0)
                rc = resha_sqlite_execute(db, TABLE, NULL, 0, NULL);
        for (int b = 0; b < BATCHES && rc >= 0; b++) {
                fill_rows(o->values, (int64_t)b * ROWS);
                double start = cpu_ms();
                rc = resha_sqlite_batch(db, INSERT, o->values, COLUMNS, ROWS, NULL);
                o->spent += cpu_ms() - start;
        }
        return rc;
}

static double ours(resha_value *values)
{
        struct ours o = { .values = values };
        resha_error e = { 0 };

        if (resha_run(ours_task, &o, &(resha_run_opts){ .ret_error = &e }) < 0) {
                fprintf(stderr, "%s\n", e.text);
                exit(1);
        }
        remove_files();
        return o.spent;
}

static int by_value(const void *a, const void *b)
{
        const double *x = a, *y = b;

        return (*x > *y) - (*x < *y);
}

static double median(double *values)
{
        qsort(values, ROUNDS, sizeof *values, by_value);
        return values[ROUNDS / 2];
}

int main(void)
{
        double a[ROUNDS], b[ROUNDS], ratio[ROUNDS];
        resha_value *values = resha_malloc(sizeof *values * ROWS * COLUMNS);

        if (!values)
                return 1;
        memset(json, 'x', sizeof json);
        remove_files();
        for (int i = 0; i < ROUNDS; i++) {
                a[i] = bare(values);
                b[i] = ours(values);
                ratio[i] = b[i] / a[i];
        }
        resha_free(values);
        double bare_ms = median(a), ours_ms = median(b);
        qsort(ratio, ROUNDS, sizeof *ratio, by_value);
        printf("{\"bench\": \"sqlite_batch\", \"rows\": %d, \"columns\": %d, \"rounds\": %d, ", ROWS * BATCHES, COLUMNS,
               ROUNDS);
        printf("\"bare_ms\": %.1f, \"ours_ms\": %.1f, ", bare_ms, ours_ms);
        printf("\"ratio\": %.3f, \"ratio_min\": %.3f, \"ratio_max\": %.3f}\n", ours_ms / bare_ms, ratio[0],
               ratio[ROUNDS - 1]);
        return 0;
}
