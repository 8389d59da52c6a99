/* SPDX-License-Identifier: MIT */
/* Statements, one at a time and in batches: results, error texts, the cache. */

#include "common.h"
#include "internal.h"

#include <stdlib.h>
#include <string.h>

/* The text of what execute says of `sql`. */
static const char *refused(resha_sqlite *db, const char *sql, int code)
{
        int rc = resha_sqlite_execute(db, sql, NULL, 0, NULL);

        ASSERT_EQ(rc, code);
        return text_of(rc);
}

TASK(errors_carry_sqlites_text)
{
        resha_sqlite *db = open_db(NULL);

        run_sql(db, "create table t (a integer primary key, b not null, c unique, check (b <> 'bad'))");
        run_sql(db, "insert into t values (1, 'one', 'x')");
        ASSERT_STR(refused(db, "insert into t values (1, 'two', 'y')", RESHA_SQLITE_ECONSTRAINT),
                   "in-memory database: UNIQUE constraint failed: t.a; SQL: insert into t values (1, 'two', 'y')");
        ASSERT_HAS(refused(db, "insert into t values (2, null, 'y')", RESHA_SQLITE_ECONSTRAINT),
                   "NOT NULL constraint failed: t.b");
        ASSERT_HAS(refused(db, "insert into t values (2, 'bad', 'y')", RESHA_SQLITE_ECONSTRAINT),
                   "CHECK constraint failed: b <> 'bad'");
        ASSERT_STR(refused(db, "selct 1", RESHA_SQLITE_ERROR),
                   "in-memory database: near \"selct\": syntax error; SQL: selct 1");
        ASSERT_HAS(refused(db, "select * from nowhere", RESHA_SQLITE_ERROR), "no such table: nowhere");
        ASSERT_HAS(refused(db, "insert into t values (1, 2)", RESHA_SQLITE_ERROR),
                   "table t has 3 columns but 2 values");
        ASSERT_STR(all(db, "select * from t"), "1,one,x");
        resha_sqlite_close(db);
        return 0;
}

TASK(long_sql_is_cut_in_the_text)
{
        resha_sqlite *db = open_db(NULL);

        ASSERT_STR(
                refused(db,
                        "/* why */ select\n\t aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb, c",
                        RESHA_SQLITE_ERROR),
                "in-memory database: no such column: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; "
                "SQL: select aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, bbbbbbbbbbbbbbbbbb...");
        resha_sqlite_close(db);
        return 0;
}

TASK(one_statement_with_its_parameters)
{
        resha_sqlite *db = open_db(NULL);

        ASSERT_HAS(refused(db, "select ?1, ?2", -EINVAL), "the SQL has 2 parameters, and 0 values are given");
        ASSERT_HAS(refused(db, "select 1; select 2", -EINVAL), "more than one statement: use resha_sqlite_script()");
        ASSERT_HAS(refused(db, " -- nothing\n /* at all */ ;", -EINVAL), "there is no statement");
        ASSERT_HAS(refused(db, "", -EINVAL), "there is no statement");
        run_sql(db, "select 1; -- and a remark /* with ; in it");
        run_sql(db, "select 1;; /* open");
        int rc = resha_sqlite_execute(db, "select ?", RESHA_VALUES(RESHA_INT(1), RESHA_INT(2)), NULL);
        ASSERT_EQ(rc, -EINVAL);
        ASSERT_HAS(text_of(rc), "the SQL has 1 parameters, and 2 values are given");
        resha_sqlite_close(db);
        return 0;
}

TASK(null_sql_is_refused)
{
        resha_sqlite *db = open_db(NULL);
        resha_rows *rows = NULL;

        ASSERT_EQ(resha_sqlite_execute(db, NULL, NULL, 0, NULL), -EINVAL);
        ASSERT_EQ(resha_sqlite_query(db, NULL, NULL, 0, &rows), -EINVAL);
        ASSERT_EQ(resha_sqlite_script(db, NULL), -EINVAL);
        ASSERT_EQ(resha_sqlite_batch(db, NULL, NULL, 0, 1, NULL), -EINVAL);
        ASSERT_EQ(resha_sqlite_execute(db, "select ?", NULL, 1, NULL), -EINVAL);
        resha_sqlite_close(db);
        return 0;
}

TASK(transactions_by_hand_are_refused)
{
        static const char *const texts[] = { "begin",    "BEGIN immediate", "/* x */ commit", "end transaction",
                                             "ROLLBACK", "; ; begin",       "-- x\nbegin" };
        resha_sqlite *db = open_db(NULL);

        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
                ASSERT_HAS(refused(db, texts[i], RESHA_SQLITE_ETRANSACTION), "resha_sqlite_transaction()");
        /* A savepoint outside a transaction begins one. */
        ASSERT_HAS(refused(db, "savepoint x", RESHA_SQLITE_ETRANSACTION), "left a transaction open");
        run_sql(db, "create table t (a)"); /* and it was rolled back: this is stored by itself */
        ASSERT_HAS(refused(db, "rollback to x", RESHA_SQLITE_ERROR), "no such savepoint");
        ASSERT_EQ(one_int(db, "select count(*) from sqlite_schema"), 1);
        resha_sqlite_close(db);
        return 0;
}

TASK(changes_are_those_of_the_statement)
{
        resha_sqlite *db = open_db(NULL);
        int64_t changes = -1;

        ASSERT_OK(resha_sqlite_script(db,
                                      "create table t (a); create table log (a);"
                                      "create trigger x after insert on t begin insert into log values (new.a); end"));
        ASSERT_OK(resha_sqlite_execute(db, "insert into t values (1), (2), (3)", NULL, 0, &changes));
        ASSERT_EQ(changes, 3);
        ASSERT_EQ(one_int(db, "select count(*) from log"), 3);
        ASSERT_OK(resha_sqlite_execute(db, "update t set a = a + 1 where a > 1", NULL, 0, &changes));
        ASSERT_EQ(changes, 2);
        ASSERT_OK(resha_sqlite_execute(db, "create table other (a)", NULL, 0, &changes));
        ASSERT_EQ(changes, 0);
        ASSERT_OK(resha_sqlite_execute(db, "select * from t", NULL, 0, &changes));
        ASSERT_EQ(changes, 0);
        ASSERT_OK(resha_sqlite_execute(db, "delete from t where a = 77", NULL, 0, &changes));
        ASSERT_EQ(changes, 0);
        resha_sqlite_close(db);
        return 0;
}

TASK(script_runs_until_one_fails)
{
        resha_sqlite *db = open_db(NULL);

        ASSERT_OK(resha_sqlite_script(db, "-- two tables\ncreate table a (x); create table b (x)\n;\n /* end */ ;; "));
        ASSERT_OK(resha_sqlite_script(db, ""));
        int rc =
                resha_sqlite_script(db, "insert into a values (1); insert into c values (2); insert into b values (3)");
        ASSERT_EQ(rc, RESHA_SQLITE_ERROR);
        ASSERT_HAS(text_of(rc), "no such table: c; SQL: insert into c values (2)");
        ASSERT_STR(all(db, "select (select count(*) from a), (select count(*) from b)"), "1,0");
        resha_sqlite_close(db);
        return 0;
}

TASK(script_may_hold_a_transaction)
{
        resha_sqlite *db = open_db(NULL);

        run_sql(db, "create table a (x unique)");
        ASSERT_OK(resha_sqlite_script(db, "begin; insert into a values (1); insert into a values (2); commit"));
        ASSERT_EQ(resha_sqlite_script(db, "begin; insert into a values (3); insert into a values (1); commit"),
                  RESHA_SQLITE_ECONSTRAINT);
        ASSERT_EQ(resha_sqlite_script(db, "begin; insert into a values (4)"), RESHA_SQLITE_ETRANSACTION);
        ASSERT_STR(all(db, "select x from a order by x"), "1|2");
        resha_sqlite_close(db);
        return 0;
}

TASK(batch_is_all_or_none)
{
        const resha_value rows[] = { RESHA_INT(1),    RESHA_TEXT("a"), RESHA_INT(2),
                                     RESHA_TEXT("b"), RESHA_INT(1),    RESHA_NULL };
        resha_sqlite *db = open_db(NULL);
        int64_t changes = -1;

        run_sql(db, "create table t (id integer primary key, x)");
        ASSERT_OK(resha_sqlite_batch(db, "insert into t values (?, ?)", rows, 2, 2, &changes));
        ASSERT_EQ(changes, 2);
        run_sql(db, "delete from t where id = 1");
        int rc = resha_sqlite_batch(db, "insert into t values (?, ?)", rows, 2, 3, &changes);
        ASSERT_EQ(rc, RESHA_SQLITE_ECONSTRAINT);
        ASSERT_HAS(text_of(rc), "UNIQUE constraint failed: t.id (row 2 of 3)");
        ASSERT_EQ(changes, 2);
        ASSERT_STR(all(db, "select * from t"), "2,b");
        ASSERT_OK(resha_sqlite_batch(db, "insert or ignore into t values (?, ?)", rows, 2, 3, &changes));
        ASSERT_EQ(changes, 1);
        ASSERT_OK(resha_sqlite_batch(db, "insert into t values (?, ?)", NULL, 2, 0, &changes));
        ASSERT_EQ(changes, 0);
        ASSERT_EQ(resha_sqlite_batch(db, "insert into t values (?, ?)", rows, 3, 2, NULL), -EINVAL);
        ASSERT_EQ(resha_sqlite_batch(db, "insert or rollback into t values (?, ?)", rows, 2, 3, NULL),
                  RESHA_SQLITE_ECONSTRAINT);
        ASSERT_STR(all(db, "select * from t order by id"), "1,a|2,b");
        resha_sqlite_close(db);
        return 0;
}

TASK(returning_gives_rows)
{
        resha_sqlite *db = open_db(NULL);

        run_sql(db, "create table t (id integer primary key, x)");
        ASSERT_STR(all(db, "insert into t (x) values ('a'), ('b') returning id, x"), "1,a|2,b");
        ASSERT_STR(all(db, "update t set x = x || '!' where id = 2 returning x"), "b!");
        ASSERT_STR(all(db, "select * from t"), "1,a|2,b!");
        ASSERT_STR(all(db, "pragma user_version = 7"), "");
        ASSERT_EQ(one_int(db, "pragma user_version"), 7);
        resha_sqlite_close(db);
        return 0;
}

static resha_sqlite_counts counts(resha_sqlite *db)
{
        resha_sqlite_counts c;

        resha_sqlite_count(db, &c);
        return c;
}

TASK(statements_are_compiled_once)
{
        resha_sqlite *db = open_db(NULL);

        run_sql(db, "create table t (a)");
        resha_sqlite_counts before = counts(db);
        for (int i = 0; i < 100; i++) {
                char sql[] = "insert into t values (?)"; /* the text counts, not its address */
                ASSERT_OK(resha_sqlite_execute(db, sql, RESHA_VALUES(RESHA_INT(i)), NULL));
                ASSERT_EQ(one_int(db, "select max(a) from t"), i);
        }
        resha_sqlite_counts after = counts(db);
        ASSERT_EQ(after.prepared - before.prepared, 2);
        ASSERT_EQ(after.reused - before.reused, 198);
        ASSERT_EQ(after.hops - before.hops, 200);
        ASSERT_EQ(after.cached, 3);
        resha_sqlite_close(db);
        return 0;
}

TASK(the_least_recently_used_statement_goes)
{
        resha_sqlite *db = NULL;

        ASSERT_OK(resha_sqlite_open(":memory:", &(resha_sqlite_opts){ .statements = 3 }, &db));
        run_sql(db, "select 1");
        run_sql(db, "select 2");
        run_sql(db, "select 3");
        run_sql(db, "select 1"); /* now 2 is the oldest */
        run_sql(db, "select 4"); /* 2 goes */
        ASSERT_EQ(counts(db).cached, 3);
        uint64_t prepared = counts(db).prepared;
        run_sql(db, "select 1");
        run_sql(db, "select 3");
        run_sql(db, "select 4");
        ASSERT_EQ(counts(db).prepared, prepared);
        run_sql(db, "select 2");
        ASSERT_EQ(counts(db).prepared, prepared + 1);
        for (int i = 0; i < 1000; i++) {
                char sql[32];
                snprintf(sql, sizeof sql, "select %d", i);
                ASSERT_EQ(one_int(db, sql), i);
        }
        ASSERT_EQ(counts(db).cached, 3);
        resha_sqlite_close(db);
        return 0;
}

/* A statement that is not reset would hold a read lock, one that is not unbound would show the last call's values. */
TASK(statements_are_reset_after_a_failure)
{
        resha_sqlite *db = open_db(NULL);

        run_sql(db, "create table t (a unique)");
        for (int i = 0; i < 3; i++)
                (void)!resha_sqlite_execute(db, "insert into t values (?)", RESHA_VALUES(RESHA_INT(1)), NULL);
        run_sql(db, "alter table t add column b");
        ASSERT_EQ(resha_sqlite_execute(db, "insert into t values (?)", RESHA_VALUES(RESHA_INT(2)), NULL),
                  RESHA_SQLITE_ERROR); /* two columns now: compiled again by SQLite */
        run_sql(db, "drop table t");
        ASSERT_EQ(one_int(db, "select count(*) from sqlite_schema"), 0);
        resha_sqlite_close(db);
        return 0;
}

TASK(codes_have_names_and_texts)
{
        ASSERT_STR(resha_strerror(RESHA_SQLITE_ECLOSED), "database is closed");
        ASSERT_STR(resha_errname(RESHA_SQLITE_ERESULT_SIZE), "RESHA_SQLITE_ERESULT_SIZE");
        ASSERT_STR(resha_strerror(RESHA_SQLITE_EFULL), "database or disk is full");
        return 0;
}

TEST(what_is_shown_of_a_statement_has_no_values)
{
        static const char *const texts[][2] = {
                { " -- who\n select a1,\n\t b from t2 where c=?1 and d = :x2",
                  "select a1, b from t2 where c=?1 and d = :x2" },
                { "select * from t where pin = 1234 and x>-1.5e7 limit 10",
                  "select * from t where pin = ? and x>-? limit ?" },
                { "insert into t values (0x1f, 'secret')", "insert into t values (?, ..." },
                { "update \"t\" set \"a\"=\"secret\"", "update \"t\" set \"a\"=..." },
                { "insert into t values(\"secret\", 2)", "insert into t values(..." },
                { "select x'00'", "select x..." },
                { "", "" },
        };
        char text[RS_SQLITE_SHOWN], sql[200];

        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
                rs_sqlite_shown(texts[i][0], text);
                ASSERT_STR(text, texts[i][1]);
        }
        memset(sql, 'a', sizeof sql - 1);
        sql[sizeof sql - 1] = '\0';
        ASSERT_EQ(rs_sqlite_shown(sql, text), RS_SQLITE_SHOWN - 4 + 1);
        ASSERT_EQ(strlen(text), RS_SQLITE_SHOWN - 1);
}

TEST(what_is_shown_of_a_statement_is_kept_for_the_next_call)
{
        static resha_sqlite db; /* its texts are all that is asked for */
        static char one[400] = "select 1 from t", long_one[400];
        char own[RS_SQLITE_SHOWN];
        struct rs_sqlite_text *t = rs_sqlite_text_take(&db, one, own);
        ASSERT_STR(t->text, "select ? from t");
        ASSERT_TRUE(rs_sqlite_text_take(&db, one, own) == t);
        ASSERT_EQ(t->users, 2);

        /* another text at the same place: what is in use stays as it is */
        memcpy(one, "select 1 from tt", sizeof "select 1 from tt");
        ASSERT_TRUE(rs_sqlite_text_take(&db, one, own) == NULL);
        ASSERT_STR(own, "select ? from tt");
        ASSERT_STR(t->text, "select ? from t");
        t->users = 0;
        ASSERT_TRUE(rs_sqlite_text_take(&db, one, own) == t);
        ASSERT_STR(t->text, "select ? from tt");
        ASSERT_EQ(t->users, 1);
        t->users = 0;

        /* shorter, and a value that the last one did not have */
        memcpy(one, "select 1 from t", sizeof "select 1 from t");
        ASSERT_STR(rs_sqlite_text_take(&db, one, own)->text, "select ? from t");
        t->users = 0;
        memcpy(one, "select 12 from t", sizeof "select 12 from t");
        ASSERT_STR(rs_sqlite_text_take(&db, one, own)->text, "select ? from t");
        t->users = 0;
        memcpy(one, "select 'a' from t", sizeof "select 'a' from t");
        ASSERT_STR(rs_sqlite_text_take(&db, one, own)->text, "select ...");
        t->users = 0;

        /* what it is made from is too much to keep */
        memset(long_one, ' ', sizeof long_one - 1);
        memcpy(long_one + 300, "select 1", sizeof "select 1");
        ASSERT_TRUE(rs_sqlite_text_take(&db, long_one, own) == NULL);
        ASSERT_STR(own, "select ?");
}
