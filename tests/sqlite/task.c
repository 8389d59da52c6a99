/* SPDX-License-Identifier: MIT */
/* Many tasks on one database: order, cancel, close. Where a call must run while others wait, the test needs the real
 * clock: in the simulated world a call is over before the next task runs. */

#include "common.h"

#include <sqlite3.h>
#include <unistd.h>

static const char ENDLESS[] = "with recursive n (i) as (select 1 union all select i + 1 from n) select count(*) from n";

static void needs_threads(void)
{
        if (test_is_sim())
                test_skip("calls run inline");
}

/* ---- order ---- */

struct in_order {
        resha_sqlite *db;
        int64_t came;
};

static int64_t next_in_order;

static int insert_in_order(void *arg)
{
        struct in_order *w = arg;

        w->came = ++next_in_order;
        return resha_sqlite_execute(w->db, "insert into t (came) values (?)", RESHA_VALUES(RESHA_INT(w->came)), NULL);
}

static int writers(void *arg)
{
        enum { N = 100 };
        struct in_order w[N];
        resha_sqlite *db = open_db(NULL);

        (void)arg;
        next_in_order = 0;
        run_sql(db, "create table t (id integer primary key, came)");
        for (int i = 0; i < N; i++)
                w[i].db = db;
        ASSERT_OK(resha_gather(insert_in_order, w, N, sizeof *w, NULL));
        ASSERT_EQ(one_int(db, "select count(*) from t where id = came"), N);
        resha_sqlite_close(db);
        return 0;
}

TEST(first_come_first_served)
{
        RUN_SEEDS(writers, NULL, 20);
}

/* ---- cancel ---- */

TASK(cancelled_before_it_starts)
{
        resha_sqlite *db = open_db(NULL);
        resha_rows *rows = NULL;
        resha_sqlite_counts before, after;

        run_sql(db, "create table t (a)");
        resha_sqlite_count(db, &before);
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, RESHA_S(0));
        ASSERT_EQ(resha_sqlite_execute(db, "insert into t values (1)", NULL, 0, NULL), -ECANCELED);
        ASSERT_EQ(resha_sqlite_query(db, "insert into t values (1) returning a", NULL, 0, &rows), -ECANCELED);
        ASSERT_EQ(resha_sqlite_script(db, "insert into t values (1)"), -ECANCELED);
        ASSERT_EQ(resha_sqlite_batch(db, "insert into t values (1)", NULL, 0, 1, NULL), -ECANCELED);
        ASSERT_EQ(resha_scope_end(&s, -ECANCELED), -ETIME);
        resha_sqlite_count(db, &after);
        ASSERT_EQ(after.hops, before.hops);
        ASSERT_EQ(one_int(db, "select count(*) from t"), 0);
        resha_sqlite_close(db);
        return 0;
}

/* execute(sql) within `ms`. */
static int execute_within(resha_sqlite *db, const char *sql, int ms)
{
        RESHA_SCOPE(s);

        resha_timeout_begin(&s, RESHA_MS(ms));
        return resha_scope_end(&s, resha_sqlite_execute(db, sql, NULL, 0, NULL));
}

TASK(a_running_read_is_interrupted)
{
        needs_threads();
        resha_sqlite *db = open_db(NULL);
        resha_instant start = resha_now();
        resha_rows *rows = NULL;

        ASSERT_EQ(execute_within(db, ENDLESS, 50), -ETIME);
        ASSERT_TRUE(test_ms_since(start) < 30000);
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, RESHA_MS(50));
        ASSERT_EQ(resha_sqlite_query(db, ENDLESS, NULL, 0, &rows), -ECANCELED);
        ASSERT_EQ(resha_scope_end(&s, -ECANCELED), -ETIME);
        ASSERT_EQ(one_int(db, "select 1"), 1); /* the next one is not hit */
        resha_sqlite_close(db);
        return 0;
}

static int read_for_ever(void *arg)
{
        return resha_sqlite_execute(arg, ENDLESS, NULL, 0, NULL);
}

TASK(a_queued_call_never_runs)
{
        needs_threads();
        resha_sqlite *db = open_db(NULL);

        run_sql(db, "create table t (a)");
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, read_for_ever, db);
        ASSERT_OK(resha_yield());
        ASSERT_EQ(execute_within(db, "insert into t values (1)", 30), -ETIME);
        resha_group_cancel(&g);
        ASSERT_EQ(resha_group_end(&g, 0), 0);
        ASSERT_EQ(one_int(db, "select count(*) from t"), 0);
        resha_sqlite_close(db);
        return 0;
}

/* One that writes is not stopped in its middle, and says that it is done. */
TASK(a_running_write_goes_on_to_its_end)
{
        needs_threads();
        resha_sqlite *db = open_db(NULL);

        run_sql(db, "create table t (a)");
        ASSERT_EQ(execute_within(db,
                                 "insert into t with recursive n (i) as (select 1 union all select i + 1 from n"
                                 " where i < 1000000) select i from n",
                                 20),
                  0);
        ASSERT_EQ(one_int(db, "select count(*) from t"), 1000000);
        resha_sqlite_close(db);
        return 0;
}

/* After the first statement a script has stored something: the reading in its middle ends by itself. */
TASK(a_script_that_has_begun_goes_on_to_its_end)
{
        needs_threads();
        resha_sqlite *db = open_db(NULL);

        RESHA_SCOPE(s);
        resha_timeout_begin(&s, RESHA_MS(20));
        ASSERT_OK(resha_sqlite_script(db,
                                      "create table t (a); with recursive n (i) as (select 1 union all select i + 1"
                                      " from n where i < 2000000) select count(*) from n; insert into t values (1)"));
        ASSERT_OK(resha_scope_end(&s, 0));
        ASSERT_EQ(one_int(db, "select count(*) from t"), 1);
        resha_sqlite_close(db);
        return 0;
}

static int insert_until_stopped(resha_sqlite_tx *tx, void *arg)
{
        int *result = arg, rc = 0;

        while (rc >= 0)
                rc = resha_sqlite_tx_execute(tx, "insert into t values (1)", NULL, 0, NULL);
        return *result < 0 ? rc : *result; /* may also pretend that all is well */
}

static int write_then_read(resha_sqlite_tx *tx, void *arg)
{
        (void)arg;
        ASSERT_OK(resha_sqlite_tx_execute(tx, "insert into t values (2)", NULL, 0, NULL));
        return resha_sqlite_tx_execute(tx, ENDLESS, NULL, 0, NULL);
}

static int transaction_within(resha_sqlite *db, resha_sqlite_tx_fn *fn, void *arg, int ms)
{
        RESHA_SCOPE(s);

        resha_timeout_begin(&s, RESHA_MS(ms));
        return resha_scope_end(&s, resha_sqlite_transaction(db, fn, arg));
}

TASK(a_cancelled_transaction_is_rolled_back)
{
        needs_threads();
        resha_sqlite *db = open_db(NULL);
        int honest = -1, dishonest = 0;

        run_sql(db, "create table t (a)");
        ASSERT_EQ(transaction_within(db, insert_until_stopped, &honest, 30), -ETIME);
        ASSERT_EQ(transaction_within(db, insert_until_stopped, &dishonest, 30), -ETIME);
        ASSERT_EQ(transaction_within(db, write_then_read, NULL, 30), -ETIME);
        ASSERT_EQ(one_int(db, "select count(*) from t"), 0);
        run_sql(db, "insert into t values (3)");
        resha_sqlite_close(db);
        return 0;
}

/* Makes no call after the cancel that could tell it. */
static int insert_then_work(resha_sqlite_tx *tx, void *arg)
{
        int rc = resha_sqlite_tx_execute(tx, "insert into t values (1)", NULL, 0, NULL);

        (void)arg;
        usleep(100000);
        return rc;
}

TASK(a_cancel_after_the_last_call_rolls_back_too)
{
        needs_threads();
        resha_sqlite *db = open_db(NULL);

        run_sql(db, "create table t (a)");
        ASSERT_EQ(transaction_within(db, insert_then_work, NULL, 30), -ETIME);
        ASSERT_EQ(one_int(db, "select count(*) from t"), 0);
        resha_sqlite_close(db);
        return 0;
}

static int slow_insert(resha_sqlite_tx *tx, void *arg)
{
        (void)arg;
        for (int i = 0; i < 20; i++) {
                usleep(5000);
                int rc = resha_sqlite_tx_execute(tx, "insert into t values (1)", NULL, 0, NULL);
                if (rc < 0)
                        return rc;
        }
        return 0;
}

static int slow_transaction(void *arg)
{
        return resha_sqlite_transaction(arg, slow_insert, NULL);
}

TASK(a_shielded_transaction_goes_on_to_its_end)
{
        needs_threads();
        resha_sqlite *db = open_db(NULL);

        run_sql(db, "create table t (a)");
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, RESHA_MS(20));
        ASSERT_OK(resha_shielded(RESHA_S(60), slow_transaction, db));
        ASSERT_EQ(resha_sqlite_transaction(db, slow_insert, NULL), -ECANCELED);
        ASSERT_EQ(resha_scope_end(&s, -ECANCELED), -ETIME);
        ASSERT_EQ(one_int(db, "select count(*) from t"), 20);
        resha_sqlite_close(db);
        return 0;
}

/* Waiting for another process's lock is given up. */
TASK(a_wait_for_a_lock_is_given_up)
{
        needs_threads();
        const char *path = temp_path("lock.db");
        resha_sqlite *db = open_db(path);
        resha_instant start = resha_now();
        sqlite3 *raw = NULL;

        run_sql(db, "create table t (a)");
        ASSERT_EQ(sqlite3_open(path, &raw), SQLITE_OK);
        ASSERT_EQ(sqlite3_exec(raw, "begin immediate", NULL, NULL, NULL), SQLITE_OK);
        ASSERT_EQ(execute_within(db, "insert into t values (1)", 50), -ETIME);
        ASSERT_EQ(transaction_within(db, slow_insert, NULL, 50), -ETIME);
        ASSERT_TRUE(test_ms_since(start) < 5000); /* busy_timeout */
        sqlite3_close(raw);
        ASSERT_EQ(one_int(db, "select count(*) from t"), 0);
        resha_sqlite_close(db);
        return 0;
}

static int let_go(void *arg)
{
        int rc = resha_sleep(RESHA_MS(100));

        sqlite3_close(arg);
        return rc;
}

static int insert_one(resha_sqlite_tx *tx, void *arg)
{
        (void)arg;
        return resha_sqlite_tx_execute(tx, "insert into t values (1)", NULL, 0, NULL);
}

/* Without WAL a commit waits for readers. It is not given up, and it counts. */
TASK(a_commit_goes_on_to_its_end)
{
        needs_threads();
        const char *path = temp_path("commit.db");
        resha_sqlite *db = open_db(path);
        sqlite3 *raw = NULL;

        run_sql(db, "create table t (a)");
        run_sql(db, "pragma journal_mode = delete");
        ASSERT_EQ(sqlite3_open(path, &raw), SQLITE_OK);
        ASSERT_EQ(sqlite3_exec(raw, "begin; select * from t", NULL, NULL, NULL), SQLITE_OK);
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, let_go, raw);
        ASSERT_EQ(transaction_within(db, insert_one, NULL, 30), 0);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(one_int(db, "select count(*) from t"), 1);
        resha_sqlite_close(db);
        return 0;
}

/* ---- the loop goes on ---- */

/* Gives the reader up after ten turns of the loop: which there are only while it goes on. */
static int ten_ticks(void *arg)
{
        for (int i = 0; i < 10; i++)
                ASSERT_OK(resha_sleep(RESHA_MS(5)));
        resha_scope_cancel(arg);
        return 0;
}

TASK(a_long_read_does_not_stop_the_loop)
{
        needs_threads();
        resha_sqlite *db = open_db(NULL);

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, RESHA_S(60));
        resha_spawn(&g, ten_ticks, &s);
        ASSERT_OK(resha_scope_end(&s, resha_sqlite_execute(db, ENDLESS, NULL, 0, NULL)));
        ASSERT_OK(resha_group_end(&g, 0));
        resha_sqlite_close(db);
        return 0;
}

static int execute_on_a_thread(void *arg)
{
        return resha_sqlite_execute(arg, "select 1", NULL, 0, NULL);
}

TASK(other_threads_are_refused)
{
        needs_threads();
        resha_sqlite *db = open_db(NULL);

        ASSERT_EQ(resha_pool_run(NULL, execute_on_a_thread, db, NULL), -EPERM);
        resha_sqlite_close(db);
        return 0;
}

/* ---- close ---- */

struct waiter {
        resha_sqlite *db;
        const char *sql;
        int rc;
};

static int call_it(void *arg)
{
        struct waiter *w = arg;

        w->rc = resha_sqlite_execute(w->db, w->sql, NULL, 0, NULL);
        return 0;
}

static int close_it(void *arg)
{
        resha_sqlite_close(arg);
        return 0;
}

TASK(close_while_others_wait)
{
        needs_threads();
        const char *path = temp_path("close.db");
        resha_sqlite *db = open_db(path);
        struct waiter w[] = {
                { db, ENDLESS, 1 },
                { db, "insert into t values (1)", 1 },
                { db, "select 1", 1 },
                { db, "create table u (a)", 1 },
        };
        unsigned threads = thread_count();

        run_sql(db, "create table t (a)");
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (size_t i = 0; i < 4; i++)
                resha_spawn(&g, call_it, &w[i]);
        ASSERT_OK(resha_sleep(RESHA_MS(30)));
        resha_spawn(&g, close_it, db);
        resha_spawn(&g, close_it, db); /* twice */
        ASSERT_OK(resha_yield());
        ASSERT_EQ(resha_sqlite_execute(db, "select 1", NULL, 0, NULL), RESHA_SQLITE_ECLOSED);
        ASSERT_OK(resha_group_end(&g, 0));
        for (size_t i = 0; i < 4; i++)
                ASSERT_EQ(w[i].rc, RESHA_SQLITE_ECLOSED);
        threads_left(threads - 1);
        db = open_db(path);
        ASSERT_STR(all(db, "select name from sqlite_schema"), "t");
        ASSERT_EQ(one_int(db, "select count(*) from t"), 0);
        resha_sqlite_close(db);
        return 0;
}

static int run_transaction(void *arg)
{
        struct waiter *w = arg;
        int result = -1;

        w->rc = resha_sqlite_transaction(w->db, insert_until_stopped, &result);
        return 0;
}

TASK(close_rolls_a_transaction_back)
{
        needs_threads();
        const char *path = temp_path("rollback.db");
        resha_sqlite *db = open_db(path);
        struct waiter w = { db, NULL, 1 };

        run_sql(db, "create table t (a)");
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, run_transaction, &w);
        ASSERT_OK(resha_sleep(RESHA_MS(30)));
        resha_sqlite_close(db);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(w.rc, RESHA_SQLITE_ECLOSED);
        db = open_db(path);
        ASSERT_EQ(one_int(db, "select count(*) from t"), 0);
        resha_sqlite_close(db);
        return 0;
}

/* Threads without a database. ThreadSanitizer has one of its own as soon as another thread was started. */
static unsigned baseline(void)
{
        resha_sqlite_close(open_db(NULL));
        return thread_count();
}

/* A task that is cancelled closes as any other does. */
TASK(close_under_a_cancel)
{
        unsigned threads = baseline();
        const char *path = temp_path("cancelled.db"), *wal = temp_path("cancelled.db-wal");
        resha_sqlite *db = open_db(path);

        run_sql(db, "create table t (a)");
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, RESHA_S(0));
        resha_sqlite_closep(&db);
        ASSERT_EQ(resha_scope_end(&s, resha_checkpoint()), -ETIME);
        threads_left(threads);
        ASSERT_EQ(access(wal, F_OK), -1);
        return 0;
}

TASK(close_under_a_cancel_waits_for_others)
{
        needs_threads();
        unsigned threads = baseline();
        resha_sqlite *db = open_db(NULL);
        struct waiter w = { db, ENDLESS, 1 };

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, call_it, &w);
        ASSERT_OK(resha_sleep(RESHA_MS(20)));
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, RESHA_S(0));
        resha_sqlite_closep(&db);
        threads_left(threads);
        ASSERT_EQ(w.rc, RESHA_SQLITE_ECLOSED);
        ASSERT_EQ(resha_scope_end(&s, resha_checkpoint()), -ETIME);
        ASSERT_OK(resha_group_end(&g, 0));
        return 0;
}

/* Opening, failing and closing again and again leaves no thread; the tests' library looks at descriptors. */
TASK(no_thread_is_left)
{
        unsigned threads = baseline();
        const char *path = temp_path("threads.db");
        resha_sqlite *db = NULL;

        for (int i = 0; i < 20; i++) {
                ASSERT_EQ(resha_sqlite_open("/nowhere/at/all", NULL, &db), RESHA_SQLITE_ECANTOPEN);
                threads_left(threads);
                db = open_db(path);
                run_sql(db, "create table if not exists t (a)");
                resha_sqlite_closep(&db);
                threads_left(threads);
        }
        return 0;
}
