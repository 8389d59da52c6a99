/* SPDX-License-Identifier: MIT */
/* The law of cancel, held against chance: a call that says it is done has stored everything, one that says anything
 * else has stored nothing, whatever was cancelled and closed meanwhile.
 *
 * Tasks make one call each, with a deadline that may pass before, while and after it runs, and in half of the rounds
 * another task closes the database among them. What each said is compared with what the file holds afterwards. Seeds of
 * the simulated world vary order and delays; on epoll the thread does. */

#include "common.h"

#include <string.h>

enum { TASKS = 60, ROWS = 3, KINDS = 6 };

struct round {
        const char *path;
        resha_sqlite *db;
        uint32_t luck;
        bool close;
};

struct item {
        resha_sqlite *db;
        int64_t id; /* rows id, id + 1, id + 2 */
        int kind, rc;
        resha_duration start, limit;
};

static uint32_t next(struct round *r, uint32_t below)
{
        r->luck = r->luck * 1664525u + 1013904223u;
        return (r->luck >> 16) % below;
}

static int insert_each(resha_sqlite_tx *tx, void *arg)
{
        const struct item *it = arg;
        int rc = 0;

        for (int i = 0; i < ROWS && rc >= 0; i++)
                rc = resha_sqlite_tx_execute(tx, "insert into t values (?)", RESHA_VALUES(RESHA_INT(it->id + i)), NULL);
        if (rc >= 0 && it->kind == 3)
                return resha_fail(-ERANGE, "not this one");
        return rc;
}

static int make_call(struct item *it)
{
        const resha_value ids[ROWS] = { RESHA_INT(it->id), RESHA_INT(it->id + 1), RESHA_INT(it->id + 2) };
        resha_rows *rows = NULL;
        char sql[128];
        int rc;

        switch (it->kind) {
        case 0: return resha_sqlite_execute(it->db, "insert into t values (?), (?), (?)", ids, ROWS, NULL);
        case 1: return resha_sqlite_batch(it->db, "insert into t values (?)", ids, 1, ROWS, NULL);
        case 2:
        case 3: /* fails of itself */ return resha_sqlite_transaction(it->db, insert_each, it);
        case 4:
                rc = resha_sqlite_query(it->db, "insert into t values (?), (?), (?) returning id", ids, ROWS, &rows);
                if (rc >= 0)
                        ASSERT_EQ(resha_rows_count(rows), ROWS);
                resha_rows_free(rows);
                return rc;
        default:
                snprintf(sql, sizeof sql, "insert into t values (%lld), (%lld), (%lld); select 1", (long long)it->id,
                         (long long)it->id + 1, (long long)it->id + 2);
                return resha_sqlite_script(it->db, sql);
        }
}

static int one_call(void *arg)
{
        struct item *it = arg;
        int rc = resha_sleep(it->start);
        if (rc < 0)
                return rc;
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, it->limit);
        it->rc = make_call(it);
        (void)!resha_scope_end(&s, it->rc);
        return 0;
}

/* Calls of the simulated world take milliseconds, those of the real one microseconds. */
static uint32_t scale(void)
{
        return test_is_sim() ? 40 : 1;
}

static int close_among(void *arg)
{
        struct round *r = arg;
        int rc = resha_sleep(RESHA_US(300 * scale()));

        resha_sqlite_closep(&r->db);
        return rc;
}

static void check(const struct round *r, const struct item *items, int seen[3])
{
        resha_sqlite *db = open_db(r->path);
        int64_t stored = 0;

        for (int i = 0; i < TASKS; i++) {
                char sql[96];
                snprintf(sql, sizeof sql, "select count(*) from t where id between %lld and %lld",
                         (long long)items[i].id, (long long)items[i].id + ROWS - 1);
                int rc = items[i].rc;
                ASSERT_EQ(one_int(db, sql), rc >= 0 ? ROWS : 0);
                stored += rc >= 0 ? ROWS : 0;
                if (rc < 0 && rc != -ECANCELED && rc != RESHA_SQLITE_ECLOSED)
                        ASSERT_TRUE(rc == -ERANGE && items[i].kind == 3);
                seen[0] += rc >= 0;
                seen[1] += rc == -ECANCELED;
                seen[2] += rc == RESHA_SQLITE_ECLOSED;
        }
        ASSERT_EQ(one_int(db, "select count(*) from t"), stored);
        run_sql(db, "drop table t");
        resha_sqlite_close(db);
}

static int seen[3]; /* done, cancelled, closed */

static int play(void *arg)
{
        struct round *r = arg;
        struct item items[TASKS];

        r->db = open_db(r->path);
        run_sql(r->db, "create table t (id integer primary key)");
        for (int i = 0; i < TASKS; i++)
                items[i] = (struct item){
                        .db = r->db,
                        .id = 1 + (int64_t)i * ROWS,
                        .kind = (int)next(r, KINDS),
                        .rc = 1,
                        .start = RESHA_US(r->close ? 0 : next(r, 500)), /* no call may begin after a close */
                        .limit = RESHA_US(next(r, 4) == 0 ? 0 : scale() * next(r, 3000)),
                };
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (int i = 0; i < TASKS; i++)
                resha_spawn(&g, one_call, &items[i]);
        if (r->close)
                resha_spawn(&g, close_among, r);
        ASSERT_OK(resha_group_end(&g, 0));
        resha_sqlite_closep(&r->db);
        check(r, items, seen);
        return 0;
}

TEST(done_is_stored_and_anything_else_is_not)
{
        const char *path = temp_path("law.db");

        for (uint32_t i = 0; i < 100 || (i < 2000 && (seen[0] < 100 || seen[1] < 100 || seen[2] < 100)); i++) {
                struct round r = { .path = path, .luck = i, .close = i % 2 == 1 };
                char backend[32];

                snprintf(backend, sizeof backend, test_is_sim() ? "sim:%u" : "epoll", i);
                resha_error e = { 0 };
                if (resha_run(play, &r, &(resha_run_opts){ .backend = backend, .ret_error = &e }) < 0)
                        FAIL("round %u: %s", i, e.text);
        }
        if (seen[0] < 100 || seen[1] < 100 || seen[2] < 100)
                FAIL("done %d, cancelled %d, closed %d: each must happen 100 times", seen[0], seen[1], seen[2]);
}
