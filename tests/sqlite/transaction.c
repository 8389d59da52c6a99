/* SPDX-License-Identifier: MIT */
/* Transactions: all or nothing, whatever their function does. */

#include "common.h"

#include <pthread.h>

static resha_sqlite *open_with_table(void)
{
        resha_sqlite *db = open_db(NULL);

        run_sql(db, "create table t (id integer primary key, x)");
        return db;
}

static int insert_two(resha_sqlite_tx *tx, void *arg)
{
        int *result = arg;

        for (int i = 1; i <= 2; i++) {
                int rc = resha_sqlite_tx_execute(tx, "insert into t (x) values (?)", RESHA_VALUES(RESHA_INT(i)), NULL);
                if (rc < 0)
                        return rc;
        }
        if (*result < 0)
                return resha_fail(*result, "no more than %d", 2);
        return *result;
}

TASK(good_result_commits)
{
        resha_sqlite *db = open_with_table();
        int result = 7;

        ASSERT_EQ(resha_sqlite_transaction(db, insert_two, &result), 7);
        ASSERT_STR(all(db, "select * from t"), "1,1|2,2");
        resha_sqlite_close(db);
        return 0;
}

TASK(negative_result_rolls_back_and_keeps_its_record)
{
        resha_sqlite *db = open_with_table();
        int result = -ERANGE;

        int rc = resha_sqlite_transaction(db, insert_two, &result);
        ASSERT_EQ(rc, -ERANGE);
        ASSERT_STR(text_of(rc), "no more than 2");
        ASSERT_HAS(resha_error_of(rc)->site, "transaction.c:");
        ASSERT_EQ(one_int(db, "select count(*) from t"), 0);
        resha_sqlite_close(db);
        return 0;
}

/* Reads its own writes, and goes on after a statement that failed. */
static int read_and_go_on(resha_sqlite_tx *tx, void *arg)
{
        resha_rows *rows = NULL;
        int64_t changes = -1;

        (void)arg;
        ASSERT_EQ(resha_sqlite_tx_rowid(tx), 0);
        ASSERT_OK(resha_sqlite_tx_execute(tx, "insert into t values (40, 'a')", NULL, 0, &changes));
        ASSERT_EQ(changes, 1);
        ASSERT_EQ(resha_sqlite_tx_rowid(tx), 40);
        int rc = resha_sqlite_tx_execute(tx, "insert into t values (40, 'b')", NULL, 0, NULL);
        ASSERT_EQ(rc, RESHA_SQLITE_ECONSTRAINT);
        ASSERT_HAS(text_of(rc), "UNIQUE constraint failed: t.id");
        ASSERT_EQ(resha_sqlite_tx_query(tx, "select nothing", NULL, 0, &rows), RESHA_SQLITE_ERROR);
        ASSERT_OK(resha_sqlite_tx_query(tx, "select x from t where id = ?", RESHA_VALUES(RESHA_INT(40)), &rows));
        ASSERT_STR(resha_rows_text(rows, 0, 0), "a");
        resha_rows_free(rows);
        return 0;
}

TASK(transaction_goes_on_after_a_failed_statement)
{
        resha_sqlite *db = open_with_table();

        run_sql(db, "insert into t values (3, 'old')");
        ASSERT_OK(resha_sqlite_transaction(db, read_and_go_on, NULL));
        ASSERT_STR(all(db, "select * from t"), "3,old|40,a");
        resha_sqlite_close(db);
        return 0;
}

static int batches(resha_sqlite_tx *tx, void *arg)
{
        const resha_value rows[] = { RESHA_INT(1), RESHA_INT(2), RESHA_INT(3), RESHA_INT(2) };
        int64_t changes = -1;

        (void)arg;
        ASSERT_OK(resha_sqlite_tx_batch(tx, "insert into t (id) values (?)", rows, 1, 2, &changes));
        ASSERT_EQ(changes, 2);
        int rc = resha_sqlite_tx_batch(tx, "insert into t (id) values (?)", rows + 2, 1, 2, &changes);
        ASSERT_EQ(rc, RESHA_SQLITE_ECONSTRAINT);
        ASSERT_HAS(text_of(rc), "(row 2 of 2)");
        return resha_sqlite_tx_execute(tx, "insert into t (id) values (9)", NULL, 0, NULL);
}

TASK(failed_batch_takes_back_its_own_rows_only)
{
        resha_sqlite *db = open_with_table();

        ASSERT_OK(resha_sqlite_transaction(db, batches, NULL));
        ASSERT_STR(all(db, "select id from t"), "1|2|9");
        resha_sqlite_close(db);
        return 0;
}

/* Fills the database until it is full; then each call says so, although it does not look. */
static int fill(resha_sqlite_tx *tx, void *arg)
{
        int *rcs = arg, rc = 0;

        for (int i = 0; i < 1000 && rc >= 0; i++)
                rc = resha_sqlite_tx_execute(tx, "insert into t (x) values (zeroblob(5000))", NULL, 0, NULL);
        rcs[0] = rc;
        rcs[1] = resha_sqlite_tx_execute(tx, "insert into t (x) values (1)", NULL, 0, NULL);
        return 0;
}

TASK(what_sqlite_rolled_back_stays_so)
{
        resha_sqlite *db = open_with_table();
        int rcs[2] = { 0, 0 };

        run_sql(db, "insert into t values (1, 'old')");
        run_sql(db, "pragma max_page_count = 50");
        int rc = resha_sqlite_transaction(db, fill, rcs);
        ASSERT_EQ(rc, RESHA_SQLITE_EFULL);
        ASSERT_HAS(text_of(rc),
                   "database or disk is full; make room and try again; SQL: insert into t (x) values (zero");
        ASSERT_EQ(rcs[0], RESHA_SQLITE_EFULL);
        ASSERT_EQ(rcs[1], RESHA_SQLITE_EFULL);
        ASSERT_STR(all(db, "select * from t"), "1,old");
        run_sql(db, "insert into t values (2, 'new')");
        resha_sqlite_close(db);
        return 0;
}

/* A clause of the schema's may end the transaction as well. */
static int roll_back_inside(resha_sqlite_tx *tx, void *arg)
{
        (void)arg;
        ASSERT_OK(resha_sqlite_tx_execute(tx, "insert into t values (5, 'x')", NULL, 0, NULL));
        ASSERT_EQ(resha_sqlite_tx_execute(tx, "insert or rollback into t values (5, 'y')", NULL, 0, NULL),
                  RESHA_SQLITE_ECONSTRAINT);
        ASSERT_EQ(resha_sqlite_tx_execute(tx, "insert into t values (6, 'z')", NULL, 0, NULL),
                  RESHA_SQLITE_ECONSTRAINT);
        return 3;
}

static int end_inside(resha_sqlite_tx *tx, void *arg)
{
        (void)arg;
        ASSERT_OK(resha_sqlite_tx_execute(tx, "insert into t values (5, 'x')", NULL, 0, NULL));
        ASSERT_EQ(resha_sqlite_tx_execute(tx, "commit", NULL, 0, NULL), RESHA_SQLITE_ETRANSACTION);
        return resha_sqlite_tx_execute(tx, "savepoint mine", NULL, 0, NULL);
}

TASK(sql_does_not_end_the_transaction)
{
        resha_sqlite *db = open_with_table();

        ASSERT_EQ(resha_sqlite_transaction(db, roll_back_inside, NULL), RESHA_SQLITE_ECONSTRAINT);
        ASSERT_EQ(one_int(db, "select count(*) from t"), 0);
        ASSERT_OK(resha_sqlite_transaction(db, end_inside, NULL));
        ASSERT_STR(all(db, "select * from t"), "5,x");
        resha_sqlite_close(db);
        return 0;
}

/* A commit that fails: a foreign key that is checked at the end. */
static int orphan(resha_sqlite_tx *tx, void *arg)
{
        (void)arg;
        return resha_sqlite_tx_execute(tx, "insert into child values (77)", NULL, 0, NULL);
}

TASK(failed_commit_rolls_back)
{
        resha_sqlite *db = open_with_table();

        run_sql(db, "create table child (t references t deferrable initially deferred)");
        int rc = resha_sqlite_transaction(db, orphan, NULL);
        ASSERT_EQ(rc, RESHA_SQLITE_ECONSTRAINT);
        ASSERT_HAS(text_of(rc), "FOREIGN KEY constraint failed");
        ASSERT_EQ(one_int(db, "select count(*) from child"), 0);
        resha_sqlite_close(db);
        return 0;
}

struct inside {
        resha_sqlite *db;
        resha_sqlite_tx *tx;
        int nested, slept;
};

static int call_inside(resha_sqlite_tx *tx, void *arg)
{
        struct inside *in = arg;

        in->tx = tx;
        in->nested = resha_sqlite_execute(in->db, "insert into t values (1, 1)", NULL, 0, NULL);
        in->slept = resha_sleep(RESHA_MS(1));
        return resha_sqlite_tx_execute(tx, "insert into t values (2, 2)", NULL, 0, NULL);
}

/* Waiting for its own turn would be for ever. */
TASK(task_calls_inside_are_refused)
{
        resha_sqlite *db = open_with_table();
        struct inside in = { .db = db };

        ASSERT_OK(resha_sqlite_transaction(db, call_inside, &in));
        ASSERT_EQ(in.nested, -EPERM);
        ASSERT_TRUE(in.slept < 0);
        ASSERT_STR(all(db, "select * from t"), "2,2");
        resha_sqlite_close(db);
        return 0;
}

/* A savepoint around a query that writes: one that is too large has stored nothing. */
static int too_large_inside(resha_sqlite_tx *tx, void *arg)
{
        resha_rows *rows = NULL;

        (void)arg;
        ASSERT_OK(resha_sqlite_tx_execute(tx, "insert into t values (1, 'a')", NULL, 0, NULL));
        ASSERT_EQ(resha_sqlite_tx_query(tx, "insert into t (x) values (zeroblob(9000)) returning x", NULL, 0, &rows),
                  RESHA_SQLITE_ERESULT_SIZE);
        ASSERT_OK(resha_sqlite_tx_query(tx, "insert into t (x) values (zeroblob(9000)) returning id", NULL, 0, &rows));
        ASSERT_EQ(resha_rows_int(rows, 0, 0), 2);
        resha_rows_free(rows);
        return 0;
}

TASK(result_over_the_cap_stores_nothing)
{
        resha_sqlite *db = NULL;
        resha_rows *rows = NULL;

        ASSERT_OK(resha_sqlite_open(":memory:", &(resha_sqlite_opts){ .max_result_bytes = 8192 }, &db));
        run_sql(db, "create table t (id integer primary key, x)");
        ASSERT_OK(resha_sqlite_transaction(db, too_large_inside, NULL));
        ASSERT_STR(all(db, "select id, length(x) from t"), "1,1|2,9000");
        ASSERT_EQ(resha_sqlite_query(db, "update t set x = zeroblob(9001) returning x", NULL, 0, &rows),
                  RESHA_SQLITE_ERESULT_SIZE);
        ASSERT_STR(all(db, "select id, length(x) from t"), "1,1|2,9000");
        ASSERT_TRUE(rows == NULL);
        resha_sqlite_close(db);
        return 0;
}

/* What SQLite skips before the first word is skipped by our look at it, too. */
static int commit_in_disguise(resha_sqlite_tx *tx, void *arg)
{
        (void)!resha_sqlite_tx_execute(tx, "insert into t (x) values (1)", NULL, 0, NULL);
        return resha_sqlite_tx_execute(tx, arg, NULL, 0, NULL);
}

TASK(a_disguised_commit_is_refused)
{
        static char *const texts[] = { "\xef\xbb\xbf"
                                       "commit",
                                       " \v"
                                       "commit",
                                       "/**/-- x\n;commit" };
        resha_sqlite *db = open_with_table();

        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
                ASSERT_EQ(resha_sqlite_transaction(db, commit_in_disguise, texts[i]), RESHA_SQLITE_ETRANSACTION);
                ASSERT_EQ(one_int(db, "select count(*) from t"), 0);
        }
        resha_sqlite_close(db);
        return 0;
}
