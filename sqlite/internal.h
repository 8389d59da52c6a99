/* SPDX-License-Identifier: MIT */
#ifndef RS_SQLITE_INTERNAL_H
#define RS_SQLITE_INTERNAL_H

/* What the files of libresha-sqlite share. Who may touch what:
 *
 * loop's thread   resha_sqlite (its list of calls, closing), rs_sqlite_call.link worker          rs_sqlite_conn and
 * all under it: SQLite's handle, statements, the call that runs both            rs_sqlite_call.stop and the counters,
 * which are atomic
 *
 * The pool's hand-over of a job orders everything else: what a call carries is written before its hop and read after
 * it. */

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>

#include <resha/event.h>
#include <resha/pool.h>
#include <resha/shown.h>
#include <resha/sqlite.h>

struct rs_sqlite_conn;
struct rs_sqlite_call;

/* ---- statement.c: prepared statements, kept by their text -------------------------------------------------------- */

enum rs_sqlite_kind {
        RS_SQLITE_PLAIN,
        RS_SQLITE_PRAGMA,      /* may refuse to run inside a savepoint */
        RS_SQLITE_TRANSACTION, /* begin, commit, end, rollback: not for the caller to run by hand */
};

struct rs_sqlite_stmt {
        sqlite3_stmt *handle;
        struct rs_sqlite_stmt *chain;         /* next in its bucket */
        struct rs_sqlite_stmt *newer, *older; /* order of last use; or in conn->cursors */
        size_t length;                        /* of sql */
        uint32_t hash;
        enum rs_sqlite_kind kind;
        size_t parameters;
        int columns; /* of the rows it gives */
        bool reads;  /* changes nothing, so that it may be interrupted */
        char sql[];
};

struct rs_sqlite_cache {
        struct rs_sqlite_stmt **buckets;
        struct rs_sqlite_stmt *newest, *oldest;
        size_t mask;     /* number of buckets - 1 */
        size_t capacity; /* at least 1 */
        size_t count;
};

int rs_sqlite_cache_init(struct rs_sqlite_cache *cache, size_t capacity);
void rs_sqlite_cache_done(struct rs_sqlite_cache *cache);

/* The statement for `sql`, compiled or from the cache, reset and unbound. It stays valid until the next get. */
int rs_sqlite_statement_get(struct rs_sqlite_conn *conn, const char *sql, struct rs_sqlite_stmt **ret_stmt);

/* Lets go of what it has read and of the values bound to it. */
void rs_sqlite_statement_put(struct rs_sqlite_stmt *stmt);

/* A statement that is the caller's, who gives it to rs_sqlite_statement_free(). */
int rs_sqlite_statement_make(struct rs_sqlite_conn *conn, const char *sql, size_t length,
                             struct rs_sqlite_stmt **ret_stmt);

/* Finalizes it. NULL is fine. */
void rs_sqlite_statement_free(struct rs_sqlite_stmt *stmt);

/* SQLITE_STATIC: the values stay until the statement is put. SQLITE_TRANSIENT: they are copied. */
int rs_sqlite_bind(struct rs_sqlite_conn *conn, struct rs_sqlite_stmt *stmt, const resha_value *values, size_t n,
                   sqlite3_destructor_type how);

/* What the first word of `sql` says it is. */
enum rs_sqlite_kind rs_sqlite_kind_of(const char *sql);

/* The first character that is neither white space nor comment nor semicolon. */
const char *rs_sqlite_skip_blank(const char *sql);

/* ---- connection.c: SQLite's handle on the worker ----------------------------------------------------------------- */

enum rs_sqlite_control {
        RS_SQLITE_BEGIN,
        RS_SQLITE_COMMIT,
        RS_SQLITE_ROLLBACK,
        RS_SQLITE_SAVEPOINT,
        RS_SQLITE_UNDO, /* rolls back to the savepoint */
        RS_SQLITE_RELEASE,
        RS_SQLITE_CONTROLS,
};

struct rs_sqlite_conn {
        sqlite3 *handle; /* NULL before open and after close */
        resha_sqlite *db;
        struct rs_sqlite_call *call; /* the one that runs; NULL between */
        struct rs_sqlite_cache cache;
        struct rs_sqlite_stmt *cursors;            /* statements of cursors that are not over, by their list links */
        sqlite3_stmt *control[RS_SQLITE_CONTROLS]; /* compiled at first use */
        int64_t waited_ms;                         /* for the lock that is waited for now */
};

/* For reading only, the handle may be on a file in use by a writer of the same process. */
int rs_sqlite_conn_open(struct rs_sqlite_conn *conn, bool read_only);
void rs_sqlite_conn_close(struct rs_sqlite_conn *conn);

/* Runs begin, commit, ...: 0 or the error. From the start of a commit on, nothing stops the call. */
int rs_sqlite_control(struct rs_sqlite_conn *conn, enum rs_sqlite_control which);

bool rs_sqlite_in_transaction(const struct rs_sqlite_conn *conn);
void rs_sqlite_rollback(struct rs_sqlite_conn *conn);

/* Takes back what has happened since the savepoint; if that fails, the whole transaction. */
void rs_sqlite_undo(struct rs_sqlite_conn *conn);

/* While on, a stop of the running call interrupts SQLite. */
void rs_sqlite_watch(struct rs_sqlite_conn *conn, bool on);

/* ---- call.c: one call of a task, from the loop to the worker and back -------------------------------------------- */

struct rs_sqlite_call {
        struct rs_sqlite_call *previous, *next; /* in db->calls, while the task waits */
        int (*run)(struct rs_sqlite_conn *conn, struct rs_sqlite_call *call);
        struct rs_sqlite_conn *conn;
        atomic_int stop; /* 0, or why it should end: -ECANCELED, RESHA_SQLITE_ECLOSED */
        const char *sql; /* what is shown of it; NULL: nothing in particular */
        bool finish;     /* has stored something, or commits: it goes on to its end, whatever stop says */
};

enum { RS_SQLITE_CALLS, RS_SQLITE_RUNNING, RS_SQLITE_PREPARED, RS_SQLITE_REUSED, RS_SQLITE_CACHED, RS_SQLITE_FIGURES };

/* ---- shown.c: what a call says of itself ------------------------------------------------------------------------- */

enum { RS_SQLITE_SHOWN = 64, RS_SQLITE_TEXTS = 8 };

/* What is shown of a statement, kept for its next call. */
struct rs_sqlite_text {
        unsigned users; /* calls that show it */
        size_t size;    /* of sql; 0: nothing is kept */
        char sql[160];  /* the beginning that the text was made from */
        char text[RS_SQLITE_SHOWN];
};

/* Of a statement what tells it from others, in one line. Values may be secrets: it ends where a text begins, and a
 * number is "?". The number of bytes of `sql` that it depends on. */
size_t rs_sqlite_shown(const char *sql, char text[static RS_SQLITE_SHOWN]);

/* The same, kept: the caller takes one of its users away when it is no longer shown. NULL if there is no room; then it
 * is in `own`. Loop's thread. */
struct rs_sqlite_text *rs_sqlite_text_take(resha_sqlite *db, const char *sql, char own[static RS_SQLITE_SHOWN]);

/* ---- the database ------------------------------------------------------------------------------------------------ */

struct resha_sqlite {
        resha_pool *pool;              /* one thread: the worker */
        char *path;                    /* as SQLite is given it */
        const char *shown;             /* its end, for error texts */
        pthread_t owner;               /* the loop's thread */
        struct resha_sqlite_opts opts; /* defaults filled in */
        struct rs_sqlite_call *calls;  /* of tasks that wait */
        bool closing;
        unsigned closers; /* tasks in close; the last one releases */
        resha_event left; /* closing, and no call is left */
        resha_event closed;
        resha_sqlite_cursor *cursors; /* that are open */
        struct rs_sqlite_conn writer;
        struct rs_sqlite_conn reader; /* of cursors; opened by the first one */
        atomic_uint_fast64_t hops, prepared, reused, cached;
        struct rs_sqlite_text texts[RS_SQLITE_TEXTS];
        resha_shown listed;
        uint64_t figures[RS_SQLITE_FIGURES]; /* as they were when somebody looked */
};

/* Takes the call to the worker, to run on that connection, waits, and gives its result. `call` lies on the task's
 * stack. */
int rs_sqlite_hop(struct rs_sqlite_conn *conn, struct rs_sqlite_call *call);

/* Why the running call should end now; 0 if it should go on. */
int rs_sqlite_stopped(const struct rs_sqlite_conn *conn);

/* ---- execute.c: running statements, on the worker ---------------------------------------------------------------- */

int rs_sqlite_run(struct rs_sqlite_conn *conn, const char *sql, const resha_value *values, size_t n,
                  int64_t *ret_changes);
int rs_sqlite_read(struct rs_sqlite_conn *conn, const char *sql, const resha_value *values, size_t n,
                   resha_rows **ret_rows);
int rs_sqlite_rows_run(struct rs_sqlite_conn *conn, const char *sql, const resha_value *values, size_t columns,
                       size_t rows, int64_t *ret_changes);

/* -EINVAL for a NULL that cannot be. */
int rs_sqlite_check(const resha_sqlite *db, const char *sql, const resha_value *values, size_t n);

/* ---- cursor.c ---------------------------------------------------------------------------------------------------- */

/* Finalizes what is left of cursors on that connection. On the worker. */
void rs_sqlite_cursors_finish(struct rs_sqlite_conn *conn);

/* The database closes: cursors stay with their owners, but are over. Loop's thread, when no call is left. */
void rs_sqlite_cursors_detach(resha_sqlite *db);

/* ---- rows.c: results --------------------------------------------------------------------------------------------- */

/* An empty result with the column names of `stmt`. */
int rs_sqlite_rows_new(sqlite3_stmt *stmt, size_t max_bytes, resha_rows **ret_rows);

/* Memory that its rows and names take. */
size_t rs_sqlite_rows_bytes(const resha_rows *rows);

/* Adds the row on which `stmt` stands. 0, -ENOMEM, RESHA_SQLITE_ERESULT_SIZE, without a record. */
int rs_sqlite_rows_add(resha_rows *rows, sqlite3_stmt *stmt);

/* ---- error.c: codes and texts ------------------------------------------------------------------------------------ */

/* The code for a result of SQLite, with a record: its text, the path, the SQL, and what to do. `where`: " (row 3 of
 * 10)" or "". */
int rs_sqlite_error(struct rs_sqlite_conn *conn, int result, const char *sql, const char *where);

/* The same for what SQLite has no code for. */
int rs_sqlite_refuse(const resha_sqlite *db, int code, const char *sql, const char *why);

#endif
