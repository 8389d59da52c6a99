/* SPDX-License-Identifier: MIT */
/* SQLite's handle on the worker: opening with the settings we promise, closing, transaction control, and how a call
 * is stopped.
 *
 * A stop comes from the loop's thread as a word in the call (rs_sqlite_call.stop), never as sqlite3_interrupt(): that
 * could hit the statement of the next call. The worker looks at the word in two places: a progress handler, on only
 * while a statement runs that changes nothing, and the busy handler, which waits for another connection's lock in
 * short sleeps. A statement that writes has no progress handler: it is not stopped, and it costs nothing.
 *
 * The handle is opened without SQLite's own mutex: one thread uses it at a time, and the pool orders one thread after
 * another. */

#include "internal.h"

#include <assert.h>

enum { PROGRESS_OPS = 2000 }; /* steps of SQLite's machine between two looks at the stop word: some 20 us */

static int on_progress(void *arg)
{
        return rs_sqlite_stopped(arg) != 0;
}

void rs_sqlite_watch(struct rs_sqlite_conn *conn, bool on)
{
        sqlite3_progress_handler(conn->handle, on ? PROGRESS_OPS : 0, on ? on_progress : NULL, conn);
}

/* Called by SQLite while another connection holds the lock: `tries` counts from 0. True: try again. */
static int on_busy(void *arg, int tries)
{
        static const int delays[] = { 1, 2, 5, 10, 15, 20, 25 }; /* ms; short, so that a stop is seen soon */
        const int count = (int)(sizeof delays / sizeof *delays);
        struct rs_sqlite_conn *conn = arg;

        if (tries == 0)
                conn->waited_ms = 0;
        if (rs_sqlite_stopped(conn) || conn->waited_ms >= conn->db->opts.busy_timeout.ns / 1000000)
                return 0;
        int delay = delays[tries < count ? tries : count - 1];
        sqlite3_sleep(delay);
        conn->waited_ms += delay;
        return 1;
}

static int command(struct rs_sqlite_conn *conn, const char *sql)
{
        int result = sqlite3_exec(conn->handle, sql, NULL, NULL, NULL);

        return result == SQLITE_OK ? 0 : rs_sqlite_error(conn, result, sql, "");
}

static int on_mode(void *arg, int columns, char **values, char **names)
{
        bool *ret_wal = arg;

        (void)names;
        *ret_wal = columns == 1 && values[0] && sqlite3_stricmp(values[0], "wal") == 0;
        return 0;
}

/* Reads the header of the file at last, so that what is not a database fails here. */
static int settings(struct rs_sqlite_conn *conn, bool read_only)
{
        bool wal = false;

        if (!read_only) {
                const char *sql = "pragma journal_mode=wal";
                int result = sqlite3_exec(conn->handle, sql, on_mode, &wal, NULL);
                if (result != SQLITE_OK)
                        return rs_sqlite_error(conn, result, sql, "");
        }
        /* On file systems without shared memory the journal stays as it was: NORMAL would be weaker than we say. */
        bool full = conn->db->opts.sync_full || !wal;
        int rc = command(conn, full ? "pragma synchronous=full" : "pragma synchronous=normal");
        if (rc >= 0)
                rc = command(conn, "pragma foreign_keys=on");
        if (rc >= 0)
                rc = command(conn, "select count(*) from sqlite_schema where rowid = 0");
        return rc;
}

static int flags_of(const resha_sqlite *db, bool read_only)
{
        int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;

        if (read_only)
                return flags | SQLITE_OPEN_READONLY;
        return flags | SQLITE_OPEN_READWRITE | (db->opts.must_exist ? 0 : SQLITE_OPEN_CREATE);
}

static const char *const control_texts[RS_SQLITE_CONTROLS] = {
        [RS_SQLITE_BEGIN] = "begin immediate",  [RS_SQLITE_COMMIT] = "commit",
        [RS_SQLITE_ROLLBACK] = "rollback",      [RS_SQLITE_SAVEPOINT] = "savepoint resha",
        [RS_SQLITE_UNDO] = "rollback to resha", [RS_SQLITE_RELEASE] = "release resha",
};

static int control_get(struct rs_sqlite_conn *conn, enum rs_sqlite_control which)
{
        sqlite3_stmt **stmt = &conn->control[which];

        if (*stmt)
                return SQLITE_OK;
        return sqlite3_prepare_v3(conn->handle, control_texts[which], -1, SQLITE_PREPARE_PERSISTENT, stmt, NULL);
}

int rs_sqlite_conn_open(struct rs_sqlite_conn *conn, bool read_only)
{
        int rc = rs_sqlite_cache_init(&conn->cache, conn->db->opts.statements);
        if (rc < 0)
                return rc;
        int result = sqlite3_open_v2(conn->db->path, &conn->handle, flags_of(conn->db, read_only), NULL);
        if (result != SQLITE_OK) {
                rc = rs_sqlite_error(conn, result, NULL, "");
                goto failed;
        }
        sqlite3_busy_handler(conn->handle, on_busy, conn);
        /* SQLite falls back to reading by itself; what is to be written must be writable now, not later. */
        if (!read_only && sqlite3_db_readonly(conn->handle, "main") == 1) {
                rc = rs_sqlite_refuse(conn->db, RESHA_SQLITE_EREADONLY, NULL,
                                      "the database file is not writable: check its permissions, or open it read_only");
                goto failed;
        }
        rc = settings(conn, read_only);
        if (rc < 0)
                goto failed;
        result = control_get(conn, RS_SQLITE_ROLLBACK);
        if (result == SQLITE_OK)
                return 0;
        rc = rs_sqlite_error(conn, result, NULL, "");
failed:
        rs_sqlite_conn_close(conn);
        return rc;
}

void rs_sqlite_conn_close(struct rs_sqlite_conn *conn)
{
        for (int i = 0; i < RS_SQLITE_CONTROLS; i++) {
                sqlite3_finalize(conn->control[i]);
                conn->control[i] = NULL;
        }
        rs_sqlite_cache_done(&conn->cache);
        /* Not whatever sqlite3_next_stmt() finds: some are a virtual table's own, as of full-text search. */
        rs_sqlite_cursors_finish(conn);
        int result = sqlite3_close(conn->handle);
        assert(result == SQLITE_OK); /* else a statement was left: a bug of ours */
        (void)result;
        conn->handle = NULL;
}

int rs_sqlite_control(struct rs_sqlite_conn *conn, enum rs_sqlite_control which)
{
        if (which == RS_SQLITE_COMMIT)
                conn->call->finish = true;
        int result = control_get(conn, which);
        if (result == SQLITE_OK)
                result = sqlite3_step(conn->control[which]);
        int rc = result == SQLITE_DONE ? 0 : rs_sqlite_error(conn, result, control_texts[which], "");
        sqlite3_reset(conn->control[which]);
        return rc;
}

bool rs_sqlite_in_transaction(const struct rs_sqlite_conn *conn)
{
        return !sqlite3_get_autocommit(conn->handle);
}

/* Without a compile, which may fail: the statement is there since open. */
void rs_sqlite_rollback(struct rs_sqlite_conn *conn)
{
        sqlite3_stmt *rollback = conn->control[RS_SQLITE_ROLLBACK];

        if (!rs_sqlite_in_transaction(conn))
                return;
        sqlite3_step(rollback);
        sqlite3_reset(rollback);
}

void rs_sqlite_undo(struct rs_sqlite_conn *conn)
{
        if (rs_sqlite_in_transaction(conn) && rs_sqlite_control(conn, RS_SQLITE_UNDO) < 0)
                rs_sqlite_rollback(conn);
}
