/* SPDX-License-Identifier: MIT */
/* Cursors: a large result in chunks, one hop for each.
 *
 * A cursor has a statement of its own, which stands in the middle of its rows between two hops. On the writer's
 * connection that would stretch one read transaction over the calls of everybody else. So the cursors of a file share
 * a second connection, opened when the first one comes. A database in memory has one connection only.
 *
 *     open ──next: 1──> open ──next: 0 or failed──> over ──close──> released
 *
 * The statement is finalized on the worker: when the cursor is over, or else by its close, or else with the connection
 * when the database closes.
 *
 * Invariants: a cursor is in db->cursors from open to close, or until the database closes, which takes db and stmt
 * from it. Its statement is in conn->cursors until it is finalized, even where the cursor has gone before. `failed`
 * is the code that every further call gives. */

#include "internal.h"

#include <assert.h>
#include <string.h>

#include <resha/alloc.h>
#include <resha/scope.h>

enum { CHUNK_ROWS = 256, CHUNK_BYTES = 64 << 10 };

struct resha_sqlite_cursor {
        resha_sqlite_cursor *previous, *next; /* in db->cursors */
        resha_sqlite *db;                     /* NULL: the database is closed */
        struct rs_sqlite_stmt *stmt;          /* NULL: over */
        resha_rows *rows;                     /* of the latest next */
        int failed;
        char sql[];
};

struct cursor_call {
        struct rs_sqlite_call call;
        resha_sqlite_cursor *cursor;
        const resha_value *values;
        size_t n;
        resha_rows *rows;
};

static struct rs_sqlite_conn *conn_of(resha_sqlite *db)
{
        return strcmp(db->path, ":memory:") == 0 ? &db->writer : &db->reader;
}

static void hold(struct rs_sqlite_conn *conn, struct rs_sqlite_stmt *s)
{
        s->newer = NULL;
        s->older = conn->cursors;
        if (s->older)
                s->older->newer = s;
        conn->cursors = s;
}

static void let_go(struct rs_sqlite_conn *conn, struct rs_sqlite_stmt *s)
{
        if (s->newer)
                s->newer->older = s->older;
        else
                conn->cursors = s->older;
        if (s->older)
                s->older->newer = s->newer;
        rs_sqlite_statement_free(s);
}

void rs_sqlite_cursors_finish(struct rs_sqlite_conn *conn)
{
        while (conn->cursors)
                let_go(conn, conn->cursors);
}

static int run_open(struct rs_sqlite_conn *conn, struct rs_sqlite_call *call)
{
        struct cursor_call *c = (struct cursor_call *)call;
        resha_sqlite_cursor *cursor = c->cursor;
        struct rs_sqlite_stmt *s = NULL;
        int rc = conn->handle ? 0 : rs_sqlite_conn_open(conn, true);
        if (rc >= 0)
                rc = rs_sqlite_statement_make(conn, cursor->sql, strlen(cursor->sql), &s);
        if (rc < 0)
                return rc;
        if (s->reads && s->columns > 0)
                rc = rs_sqlite_bind(conn, s, c->values, c->n, SQLITE_TRANSIENT);
        else
                rc = rs_sqlite_refuse(conn->db, -EINVAL, cursor->sql, "a cursor is for SQL that reads rows");
        if (rc < 0) {
                rs_sqlite_statement_free(s);
                return rc;
        }
        hold(conn, s);
        cursor->stmt = s;
        return 0;
}

static void add(resha_sqlite *db, resha_sqlite_cursor *cursor)
{
        cursor->next = db->cursors;
        if (db->cursors)
                db->cursors->previous = cursor;
        db->cursors = cursor;
}

static void take_out(resha_sqlite_cursor *cursor)
{
        if (cursor->previous)
                cursor->previous->next = cursor->next;
        else
                cursor->db->cursors = cursor->next;
        if (cursor->next)
                cursor->next->previous = cursor->previous;
        cursor->previous = cursor->next = NULL;
}

int resha_sqlite_cursor_open(resha_sqlite *db, const char *sql, const resha_value *values, size_t n,
                             resha_sqlite_cursor **ret_cursor)
{
        int rc = rs_sqlite_check(db, sql, values, n);
        if (rc < 0)
                return rc;
        size_t size = strlen(sql) + 1;
        resha_sqlite_cursor *cursor = resha_malloc(sizeof *cursor + size);
        if (!cursor)
                return -ENOMEM;
        *cursor = (resha_sqlite_cursor){ .db = db };
        memcpy(cursor->sql, sql, size);
        struct cursor_call c = {
                .call.run = run_open, .call.sql = cursor->sql, .cursor = cursor, .values = values, .n = n
        };
        rc = rs_sqlite_hop(conn_of(db), &c.call);
        if (rc < 0) {
                resha_free(cursor);
                return rc;
        }
        add(db, cursor);
        *ret_cursor = cursor;
        return 0;
}

static void finish(struct rs_sqlite_conn *conn, resha_sqlite_cursor *cursor)
{
        let_go(conn, cursor->stmt);
        cursor->stmt = NULL;
}

/* Reads until the chunk is full. 1: there may be more; 0: this was the last. */
static int fill(struct rs_sqlite_conn *conn, resha_sqlite_cursor *cursor, resha_rows *rows)
{
        while (resha_rows_count(rows) < CHUNK_ROWS && rs_sqlite_rows_bytes(rows) < CHUNK_BYTES) {
                int result = sqlite3_step(cursor->stmt->handle);
                if (result == SQLITE_DONE)
                        return 0;
                if (result != SQLITE_ROW)
                        return rs_sqlite_error(conn, result, cursor->sql, "");
                int rc = rs_sqlite_rows_add(rows, cursor->stmt->handle);
                if (rc == RESHA_SQLITE_ERESULT_SIZE)
                        return rs_sqlite_refuse(conn->db, rc, cursor->sql, "a row is over max_result_bytes");
                if (rc < 0)
                        return rc;
        }
        return 1;
}

static int run_next(struct rs_sqlite_conn *conn, struct rs_sqlite_call *call)
{
        struct cursor_call *c = (struct cursor_call *)call;
        resha_sqlite_cursor *cursor = c->cursor;
        int rc = rs_sqlite_rows_new(cursor->stmt->handle, conn->db->opts.max_result_bytes, &c->rows);
        if (rc >= 0) {
                rs_sqlite_watch(conn, true);
                rc = fill(conn, cursor, c->rows);
                rs_sqlite_watch(conn, false);
        }
        cursor->failed = rc < 0 ? rc : 0;
        if (rc <= 0)
                finish(conn, cursor);
        return rc < 0 ? rc : resha_rows_count(c->rows) > 0;
}

int resha_sqlite_cursor_next(resha_sqlite_cursor *cursor, const resha_rows **ret_rows)
{
        resha_rows_freep(&cursor->rows);
        if (!cursor->db)
                return resha_fail_at(RESHA_SQLITE_ECLOSED, NULL, "the database of the cursor is closed");
        if (cursor->failed < 0)
                return rs_sqlite_refuse(cursor->db, cursor->failed, cursor->sql, "the cursor has failed before");
        if (!cursor->stmt)
                return 0;
        struct cursor_call c = { .call.run = run_next, .call.sql = cursor->sql, .cursor = cursor };
        int rc = rs_sqlite_hop(conn_of(cursor->db), &c.call);
        if (rc > 0)
                *ret_rows = cursor->rows = c.rows;
        else
                resha_rows_free(c.rows);
        return rc;
}

static int run_finish(struct rs_sqlite_conn *conn, struct rs_sqlite_call *call)
{
        finish(conn, ((struct cursor_call *)call)->cursor);
        return 0;
}

/* Where the hop cannot be made, the statement stays for the close of the database. */
static void finish_there(resha_sqlite_cursor *cursor)
{
        struct cursor_call c = { .call.run = run_finish, .cursor = cursor };
        RESHA_SCOPE(shield);

        resha_shield_begin(&shield, RESHA_FOREVER);
        (void)!resha_scope_end(&shield, rs_sqlite_hop(conn_of(cursor->db), &c.call));
}

void resha_sqlite_cursor_close(resha_sqlite_cursor *cursor)
{
        if (!cursor)
                return;
        if (cursor->db && cursor->stmt)
                finish_there(cursor);
        if (cursor->db)
                take_out(cursor);
        resha_rows_free(cursor->rows);
        resha_free(cursor);
}

void resha_sqlite_cursor_closep(resha_sqlite_cursor **at)
{
        resha_sqlite_cursor *cursor = *at;

        *at = NULL;
        resha_sqlite_cursor_close(cursor);
}

void rs_sqlite_cursors_detach(resha_sqlite *db)
{
        while (db->cursors) {
                resha_sqlite_cursor *cursor = db->cursors;
                take_out(cursor);
                cursor->db = NULL;
                cursor->stmt = NULL;
        }
}
