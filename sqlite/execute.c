/* SPDX-License-Identifier: MIT */
/* Running statements on the worker, and the calls that do so: execute, script, query, batch.
 *
 * Each call comes as a struct that begins with rs_sqlite_call and carries its arguments; run_* unpacks them on the
 * worker. What runs a statement (rs_sqlite_run, _read, _rows_run) serves transactions too.
 *
 * A query may write (`returning`). SQLite then changes everything before it gives the first row, and keeps it if the
 * reading stops. So such a query has a savepoint around it, and one that fails because of its size has stored
 * nothing. */

#include "internal.h"

/* ---- Inside ------------------------------------------------------------------------------------------------------ */

/* Rows that the latest step has changed. sqlite3_changes() alone keeps its value through statements that change
 * nothing. */
struct change_count {
        sqlite3_int64 total, sum;
};

static struct change_count count_begin(const struct rs_sqlite_conn *conn)
{
        return (struct change_count){ .total = sqlite3_total_changes64(conn->handle) };
}

static void count_step(struct change_count *count, const struct rs_sqlite_conn *conn)
{
        sqlite3_int64 total = sqlite3_total_changes64(conn->handle);

        if (total != count->total)
                count->sum += sqlite3_changes64(conn->handle);
        count->total = total;
}

/* Steps to the end; rows are added to `rows`, or dropped if that is NULL. SQLITE_DONE, SQLite's error, or a negative
 * code. */
static int steps(sqlite3_stmt *handle, resha_rows *rows)
{
        int result;

        while ((result = sqlite3_step(handle)) == SQLITE_ROW) {
                int rc = rows ? rs_sqlite_rows_add(rows, handle) : 0;
                if (rc < 0)
                        return rc;
        }
        return result;
}

static int too_large(const struct rs_sqlite_conn *conn, const char *sql, const resha_rows *rows)
{
        char why[128];

        sqlite3_snprintf((int)sizeof why, why, "after %llu rows the result is over max_result_bytes, %llu",
                         (unsigned long long)resha_rows_count(rows),
                         (unsigned long long)conn->db->opts.max_result_bytes);
        return rs_sqlite_refuse(conn->db, RESHA_SQLITE_ERESULT_SIZE, sql, why);
}

static int run_statement(struct rs_sqlite_conn *conn, struct rs_sqlite_stmt *s, resha_rows *rows)
{
        if (s->reads)
                rs_sqlite_watch(conn, true);
        int result = steps(s->handle, rows);
        if (s->reads)
                rs_sqlite_watch(conn, false);
        if (result == RESHA_SQLITE_ERESULT_SIZE)
                return too_large(conn, s->sql, rows);
        if (result < 0)
                return result;
        return result == SQLITE_DONE ? 0 : rs_sqlite_error(conn, result, s->sql, "");
}

int rs_sqlite_run(struct rs_sqlite_conn *conn, const char *sql, const resha_value *values, size_t n,
                  int64_t *ret_changes)
{
        struct rs_sqlite_stmt *s = NULL;
        int rc = rs_sqlite_statement_get(conn, sql, &s);
        if (rc < 0)
                return rc;
        struct change_count count = count_begin(conn);
        rc = rs_sqlite_bind(conn, s, values, n, SQLITE_STATIC);
        if (rc >= 0)
                rc = run_statement(conn, s, NULL);
        rs_sqlite_statement_put(s);
        if (rc < 0)
                return rc;
        count_step(&count, conn);
        if (ret_changes)
                *ret_changes = count.sum;
        return 0;
}

/* All rows of a statement that is bound. */
static int collect(struct rs_sqlite_conn *conn, struct rs_sqlite_stmt *s, resha_rows **ret_rows)
{
        resha_rows *rows = NULL;
        int rc = rs_sqlite_rows_new(s->handle, conn->db->opts.max_result_bytes, &rows);
        if (rc < 0)
                return rc;
        rc = run_statement(conn, s, rows);
        if (rc < 0) {
                resha_rows_free(rows);
                return rc;
        }
        *ret_rows = rows;
        return 0;
}

/* Inside a savepoint, begun before the statement is. */
static int collect_or_undo(struct rs_sqlite_conn *conn, struct rs_sqlite_stmt *s, resha_rows **ret_rows)
{
        int rc = rs_sqlite_control(conn, RS_SQLITE_SAVEPOINT);
        if (rc < 0)
                return rc;
        rc = collect(conn, s, ret_rows);
        sqlite3_reset(s->handle);
        if (rc < 0)
                rs_sqlite_undo(conn);
        int released = rs_sqlite_in_transaction(conn) ? rs_sqlite_control(conn, RS_SQLITE_RELEASE) : 0;
        if (rc < 0 || released >= 0)
                return rc;
        resha_rows_freep(ret_rows);
        return released;
}

int rs_sqlite_read(struct rs_sqlite_conn *conn, const char *sql, const resha_value *values, size_t n,
                   resha_rows **ret_rows)
{
        struct rs_sqlite_stmt *s = NULL;
        int rc = rs_sqlite_statement_get(conn, sql, &s);
        if (rc < 0)
                return rc;
        bool undo = !s->reads && s->columns > 0 && s->kind != RS_SQLITE_PRAGMA;
        rc = rs_sqlite_bind(conn, s, values, n, SQLITE_STATIC);
        if (rc >= 0)
                rc = undo ? collect_or_undo(conn, s, ret_rows) : collect(conn, s, ret_rows);
        rs_sqlite_statement_put(s);
        return rc;
}

/* One row of a batch; `row` counts from 1. */
static int run_row(struct rs_sqlite_conn *conn, struct rs_sqlite_stmt *s, size_t row, size_t rows)
{
        int result = steps(s->handle, NULL);
        if (result == SQLITE_DONE) {
                sqlite3_reset(s->handle);
                return 0;
        }
        char where[64];
        sqlite3_snprintf((int)sizeof where, where, " (row %llu of %llu)", (unsigned long long)row,
                         (unsigned long long)rows);
        return rs_sqlite_error(conn, result, s->sql, where);
}

int rs_sqlite_rows_run(struct rs_sqlite_conn *conn, const char *sql, const resha_value *values, size_t columns,
                       size_t rows, int64_t *ret_changes)
{
        struct rs_sqlite_stmt *s = NULL;
        int rc = rs_sqlite_statement_get(conn, sql, &s);
        if (rc < 0)
                return rc;
        struct change_count count = count_begin(conn);
        for (size_t r = 0; r < rows && rc >= 0; r++) {
                rc = rs_sqlite_bind(conn, s, values + r * columns, columns, SQLITE_STATIC);
                if (rc >= 0)
                        rc = run_row(conn, s, r + 1, rows);
                count_step(&count, conn);
        }
        rs_sqlite_statement_put(s);
        if (rc >= 0 && ret_changes)
                *ret_changes = count.sum;
        return rc;
}

/* ---- The calls --------------------------------------------------------------------------------------------------- */

struct statement_call {
        struct rs_sqlite_call call;
        const char *sql;
        const resha_value *values;
        size_t columns, rows; /* more than one row: a batch */
        int64_t changes;
        resha_rows *result;
};

int rs_sqlite_check(const resha_sqlite *db, const char *sql, const resha_value *values, size_t n)
{
        if (!sql)
                return rs_sqlite_refuse(db, -EINVAL, NULL, "the SQL is NULL");
        if (!values && n > 0)
                return rs_sqlite_refuse(db, -EINVAL, sql, "the values are NULL");
        return 0;
}

/* Takes it to the worker, if its arguments are good. */
static int hop(resha_sqlite *db, struct statement_call *c)
{
        int rc = rs_sqlite_check(db, c->sql, c->values, c->columns * c->rows);

        c->call.sql = c->sql;
        return rc < 0 ? rc : rs_sqlite_hop(&db->writer, &c->call);
}

static int run_execute(struct rs_sqlite_conn *conn, struct rs_sqlite_call *call)
{
        struct statement_call *c = (struct statement_call *)call;

        return rs_sqlite_run(conn, c->sql, c->values, c->columns, &c->changes);
}

int resha_sqlite_execute(resha_sqlite *db, const char *sql, const resha_value *values, size_t n, int64_t *ret_changes)
{
        struct statement_call c = { .call.run = run_execute, .sql = sql, .values = values, .columns = n, .rows = 1 };
        int rc = hop(db, &c);

        if (rc >= 0 && ret_changes)
                *ret_changes = c.changes;
        return rc;
}

static int run_query(struct rs_sqlite_conn *conn, struct rs_sqlite_call *call)
{
        struct statement_call *c = (struct statement_call *)call;

        return rs_sqlite_read(conn, c->sql, c->values, c->columns, &c->result);
}

int resha_sqlite_query(resha_sqlite *db, const char *sql, const resha_value *values, size_t n, resha_rows **ret_rows)
{
        struct statement_call c = { .call.run = run_query, .sql = sql, .values = values, .columns = n, .rows = 1 };
        int rc = hop(db, &c);

        if (rc >= 0)
                *ret_rows = c.result;
        else
                resha_rows_free(c.result); /* the statement was good, but what came after it was not */
        return rc;
}

static int run_batch(struct rs_sqlite_conn *conn, struct rs_sqlite_call *call)
{
        struct statement_call *c = (struct statement_call *)call;
        int rc = rs_sqlite_control(conn, RS_SQLITE_BEGIN);
        if (rc < 0)
                return rc;
        rc = rs_sqlite_rows_run(conn, c->sql, c->values, c->columns, c->rows, &c->changes);
        return rc < 0 ? rc : rs_sqlite_control(conn, RS_SQLITE_COMMIT);
}

int resha_sqlite_batch(resha_sqlite *db, const char *sql, const resha_value *values, size_t columns, size_t rows,
                       int64_t *ret_changes)
{
        struct statement_call c = {
                .call.run = run_batch, .sql = sql, .values = values, .columns = columns, .rows = rows
        };
        int rc = hop(db, &c);

        if (rc >= 0 && ret_changes)
                *ret_changes = c.changes;
        return rc;
}

/* One statement of a script, not kept. *at moves behind it. */
static int script_step(struct rs_sqlite_conn *conn, const char **at)
{
        sqlite3_stmt *handle = NULL;
        const char *sql = *at;
        int result = sqlite3_prepare_v2(conn->handle, sql, -1, &handle, at);

        if (result != SQLITE_OK)
                return rs_sqlite_error(conn, result, sql, "");
        if (!handle) /* a comment */
                return 0;
        bool reads = sqlite3_stmt_readonly(handle);
        if (reads)
                rs_sqlite_watch(conn, true);
        result = steps(handle, NULL);
        if (reads)
                rs_sqlite_watch(conn, false);
        int rc = result == SQLITE_DONE ? 0 : rs_sqlite_error(conn, result, sql, "");
        sqlite3_finalize(handle);
        conn->call->finish = true; /* a cancel would have to mean that nothing was stored */
        return rc;
}

static int run_script(struct rs_sqlite_conn *conn, struct rs_sqlite_call *call)
{
        struct statement_call *c = (struct statement_call *)call;
        const char *at = c->sql;
        int rc = 0;

        while (rc >= 0 && *(at = rs_sqlite_skip_blank(at)))
                rc = script_step(conn, &at);
        return rc;
}

int resha_sqlite_script(resha_sqlite *db, const char *sql)
{
        struct statement_call c = { .call.run = run_script, .sql = sql };

        return hop(db, &c);
}
