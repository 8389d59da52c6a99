/* SPDX-License-Identifier: MIT */
/* Transactions: a function of the caller's that runs on the worker between begin and commit.
 *
 *     begin immediate ──> open ──fn >= 0──> commit ──> done
 *                          │ fn < 0, or dead
 *                          └──────────────> rollback ─> done
 *
 * `dead` is the code that made the transaction end before its function: SQLite rolled it back by itself (disk full,
 * input or output error, no memory), or it was cancelled. From then on every call gives that code. Without it,
 * statements after such an error would be stored one by one, each as a transaction of its own. */

#include "internal.h"

struct resha_sqlite_tx {
        struct rs_sqlite_call call;
        struct rs_sqlite_conn *conn; /* set while fn runs */
        pthread_t thread;            /* which runs it */
        resha_sqlite_tx_fn *fn;
        void *arg;
        int dead;
};

static const char STOPPED[] = "the transaction is cancelled and will be rolled back";

/* Whether a call on `tx` may run. The record of a dead one's code is the first failure's: same thread, same code. */
static int enter(resha_sqlite_tx *tx, const char *sql, const resha_value *values, size_t n)
{
        if (!tx->conn || !pthread_equal(tx->thread, pthread_self()))
                return resha_fail_at(-EPERM, NULL, "a transaction is for its own function, on the thread that runs it");
        if (tx->dead)
                return tx->dead;
        int stop = rs_sqlite_stopped(tx->conn);
        if (!stop)
                return rs_sqlite_check(tx->conn->db, sql, values, n);
        tx->dead = rs_sqlite_refuse(tx->conn->db, stop, NULL, STOPPED);
        return tx->dead;
}

static int leave(resha_sqlite_tx *tx, int rc)
{
        if (rc == -ECANCELED || rc == RESHA_SQLITE_ECLOSED) /* a read was interrupted */
                tx->dead = rc;
        else if (!rs_sqlite_in_transaction(tx->conn))
                tx->dead = rc < 0 ? rc
                                  : rs_sqlite_refuse(tx->conn->db, RESHA_SQLITE_ETRANSACTION, NULL,
                                                     "the SQL ended the transaction");
        return tx->dead ? tx->dead : rc;
}

int resha_sqlite_tx_execute(resha_sqlite_tx *tx, const char *sql, const resha_value *values, size_t n,
                            int64_t *ret_changes)
{
        int rc = enter(tx, sql, values, n);

        return rc < 0 ? rc : leave(tx, rs_sqlite_run(tx->conn, sql, values, n, ret_changes));
}

int resha_sqlite_tx_query(resha_sqlite_tx *tx, const char *sql, const resha_value *values, size_t n,
                          resha_rows **ret_rows)
{
        resha_rows *rows = NULL;
        int rc = enter(tx, sql, values, n);

        if (rc >= 0)
                rc = leave(tx, rs_sqlite_read(tx->conn, sql, values, n, &rows));
        if (rc >= 0)
                *ret_rows = rows;
        else
                resha_rows_free(rows);
        return rc;
}

/* In a savepoint: a row that fails takes back those before it, and not the transaction. */
static int batch(struct rs_sqlite_conn *conn, const char *sql, const resha_value *values, size_t columns, size_t rows,
                 int64_t *ret_changes)
{
        int rc = rs_sqlite_control(conn, RS_SQLITE_SAVEPOINT);
        if (rc < 0)
                return rc;
        rc = rs_sqlite_rows_run(conn, sql, values, columns, rows, ret_changes);
        if (rc < 0)
                rs_sqlite_undo(conn);
        int released = rs_sqlite_in_transaction(conn) ? rs_sqlite_control(conn, RS_SQLITE_RELEASE) : 0;
        return rc < 0 ? rc : released;
}

int resha_sqlite_tx_batch(resha_sqlite_tx *tx, const char *sql, const resha_value *values, size_t columns, size_t rows,
                          int64_t *ret_changes)
{
        int rc = enter(tx, sql, values, columns * rows);

        return rc < 0 ? rc : leave(tx, batch(tx->conn, sql, values, columns, rows, ret_changes));
}

int64_t resha_sqlite_tx_rowid(const resha_sqlite_tx *tx)
{
        return tx->conn ? sqlite3_last_insert_rowid(tx->conn->handle) : 0;
}

static int run_transaction(struct rs_sqlite_conn *conn, struct rs_sqlite_call *call)
{
        resha_sqlite_tx *tx = (resha_sqlite_tx *)call;
        int rc = rs_sqlite_control(conn, RS_SQLITE_BEGIN);
        if (rc < 0)
                return rc;
        sqlite3_set_last_insert_rowid(conn->handle, 0);
        tx->conn = conn;
        tx->thread = pthread_self();
        rc = tx->fn(tx, tx->arg);
        tx->conn = NULL;
        int ended = rc < 0 ? rc : tx->dead, stop = rs_sqlite_stopped(conn);
        if (ended >= 0 && stop) /* since its last call */
                ended = rs_sqlite_refuse(conn->db, stop, NULL, STOPPED);
        if (ended >= 0)
                ended = rs_sqlite_control(conn, RS_SQLITE_COMMIT);
        if (ended < 0)
                rs_sqlite_rollback(conn);
        return ended < 0 ? ended : rc;
}

int resha_sqlite_transaction(resha_sqlite *db, resha_sqlite_tx_fn *fn, void *arg)
{
        resha_sqlite_tx tx = { .call.run = run_transaction, .call.sql = "a transaction", .fn = fn, .arg = arg };

        return rs_sqlite_hop(&db->writer, &tx.call);
}
