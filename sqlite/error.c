/* SPDX-License-Identifier: MIT */
/* Codes and texts. A record reads
 *
 *     PATH: SQLITE'S OWN TEXT (row 3 of 10): WHAT TO DO; SQL: THE START OF THE STATEMENT
 *
 * with the parts that there are. The path is cut at its front, the SQL at its end and put on one line, so that
 * SQLite's text always fits. Called on the worker, where the pool lets records travel to the task that waits. */

#include "internal.h"

#include <string.h>

enum { SQL_SHOWN = 64 };

struct excerpt {
        char text[SQL_SHOWN + 16];
};

/* "; SQL: insert into ..." with white space squeezed; "" without SQL. */
static struct excerpt excerpt_of(const char *sql)
{
        struct excerpt e = { "" };
        size_t n = 0;

        if (!sql)
                return e;
        memcpy(e.text, "; SQL: ", 7);
        n = 7;
        for (sql = rs_sqlite_skip_blank(sql); *sql && n < SQL_SHOWN; sql++) {
                bool blank = strchr(" \t\r\n\f", *sql) != NULL;
                if (!blank)
                        e.text[n++] = *sql;
                else if (e.text[n - 1] != ' ')
                        e.text[n++] = ' ';
        }
        if (*sql)
                memcpy(e.text + n, "...", 4);
        return e;
}

static const char *advice(int code)
{
        switch (code) {
        case RESHA_SQLITE_EBUSY: return " by another connection for longer than busy_timeout";
        case RESHA_SQLITE_EFULL: return "; make room and try again";
        case RESHA_SQLITE_EREADONLY: return "; check the permissions of file and folder";
        case RESHA_SQLITE_ENOTADB: return "; it is left as it is";
        default: return "";
        }
}

/* The system's reason, where SQLite kept it. */
static int system_error(sqlite3 *handle, int primary)
{
        if (!handle || (primary != SQLITE_IOERR && primary != SQLITE_CANTOPEN))
                return 0;
        return sqlite3_system_errno(handle);
}

/* A file that may not be created looks absent: SQLite tries to read it at last, and keeps that error. */
static const char *reason_of(const struct rs_sqlite_conn *conn, int primary, int system)
{
        const resha_sqlite_opts *o = &conn->db->opts;

        if (primary == SQLITE_CANTOPEN && system == ENOENT && !o->must_exist && !o->read_only)
                return "no such folder, or no permission to create the file";
        return resha_strerror(-system);
}

static int code_of(int primary, int system)
{
        if (primary == SQLITE_NOMEM)
                return -ENOMEM;
        if (system == ENOSPC || system == EDQUOT) /* SQLite says so for the database file only, not for -shm */
                return RESHA_SQLITE_EFULL;
        return RESHA_SQLITE_EBASE - primary;
}

int rs_sqlite_error(struct rs_sqlite_conn *conn, int result, const char *sql, const char *where)
{
        int primary = result & 0xff;
        int stop = rs_sqlite_stopped(conn);

        if (stop && (primary == SQLITE_INTERRUPT || primary == SQLITE_BUSY))
                return rs_sqlite_refuse(conn->db, stop, sql,
                                        stop == -ECANCELED ? "cancelled" : "the database is being closed");
        const char *text = conn->handle ? sqlite3_errmsg(conn->handle) : sqlite3_errstr(result);
        if (primary == SQLITE_TOOBIG)
                text = sqlite3_errstr(result); /* also when it is our own check */
        int system = system_error(conn->handle, primary);
        const char *reason = system ? reason_of(conn, primary, system) : "";
        int code = code_of(primary, system);
        struct excerpt e = excerpt_of(sql);
        return resha_fail_at(code, NULL, "%s: %s%s%s%s%s%s%s", conn->db->shown, text, where, system ? " (" : "", reason,
                             system ? ")" : "", advice(code), e.text);
}

int rs_sqlite_refuse(const resha_sqlite *db, int code, const char *sql, const char *why)
{
        struct excerpt e = excerpt_of(sql);

        return resha_fail_at(code, NULL, "%s: %s%s", db->shown, why, e.text);
}
