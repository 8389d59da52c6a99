/* SPDX-License-Identifier: MIT */
#ifndef RESHA_SQLITE_H
#define RESHA_SQLITE_H

/* SQLite for tasks: a database handle owns a thread on which SQLite runs, and a task that calls it waits while the
 * loop goes on. One call is one hop to that thread and back, whatever the number of rows: statements, whole results,
 * batches and whole transactions. Link: resha-sqlite.
 *
 *     #include <stdio.h>
 *     #include <resha/resha.h>
 *     #include <resha/sqlite.h>
 *
 *     static int program(void *arg)
 *     {
 *             const char *path = arg;
 *             RESHA_CLEANUP(resha_sqlite_closep) resha_sqlite *db = NULL;
 *             RESHA_CLEANUP(resha_rows_freep) resha_rows *rows = NULL;
 *             int rc = resha_sqlite_open(path, NULL, &db);
 *             if (rc >= 0)
 *                     rc = resha_sqlite_script(db, "create table if not exists story (id integer primary key, title)");
 *             if (rc >= 0)
 *                     rc = resha_sqlite_execute(db, "insert or replace into story values (?, ?)",
 *                                               RESHA_VALUES(RESHA_INT(1), RESHA_TEXT("It's \"quoted\"")), NULL);
 *             if (rc >= 0)
 *                     rc = resha_sqlite_query(db, "select id, title from story", NULL, 0, &rows);
 *             if (rc < 0)
 *                     return rc;
 *             for (size_t r = 0; r < resha_rows_count(rows); r++)
 *                     printf("%lld %s\n", (long long)resha_rows_int(rows, r, 0), resha_rows_text(rows, r, 1));
 *             return 0;
 *     }
 *
 *     int main(void) { return resha_main(program, ":memory:"); }
 *
 * Order      Calls on one handle run one after another, first come first served; each sees what those before it have
 *            stored.
 * Atomic     execute, query, script, batch and transaction leave no transaction open: what failed is rolled back.
 * Cancel     A call that has not started never runs. One that only reads is interrupted. One that waits for another
 *            process's lock gives up. execute, script and batch that have begun to write, and every commit, run to
 *            their end, and their result is the result: -ECANCELED always means that nothing was stored. A
 *            transaction that has not begun to commit is rolled back (see there). The call returns only after the
 *            thread has let go of its arguments, so they may lie on the caller's stack.
 * Errors     -ENOMEM, -EINVAL, -EPERM (outside a task, another loop's handle), -EAGAIN (no thread can be started),
 *            and SQLite's: -3700 minus its primary result code (the enum below). The record has SQLite's own text,
 *            the path of the database and the start of the SQL. */

#include <resha/base.h>
#include <resha/error.h>
#include <resha/time.h>

RESHA_BEGIN_DECLS

enum {
        RESHA_SQLITE_ERROR = RESHA_SQLITE_EBASE - 1,         /* wrong SQL, no such table, ...: see the text */
        RESHA_SQLITE_EBUSY = RESHA_SQLITE_EBASE - 5,         /* another connection kept its lock past busy_timeout */
        RESHA_SQLITE_ELOCKED = RESHA_SQLITE_EBASE - 6,       /* an open cursor of this handle is in the way */
        RESHA_SQLITE_EREADONLY = RESHA_SQLITE_EBASE - 8,     /* the file or the handle is read-only */
        RESHA_SQLITE_EIO = RESHA_SQLITE_EBASE - 10,          /* the disk failed */
        RESHA_SQLITE_ECORRUPT = RESHA_SQLITE_EBASE - 11,     /* the file is damaged */
        RESHA_SQLITE_EFULL = RESHA_SQLITE_EBASE - 13,        /* no space left */
        RESHA_SQLITE_ECANTOPEN = RESHA_SQLITE_EBASE - 14,    /* no such file, a directory, no permission */
        RESHA_SQLITE_ETOOBIG = RESHA_SQLITE_EBASE - 18,      /* a value over SQLite's limit of 1,000,000,000 bytes */
        RESHA_SQLITE_ECONSTRAINT = RESHA_SQLITE_EBASE - 19,  /* unique, not null, check, foreign key */
        RESHA_SQLITE_ENOTADB = RESHA_SQLITE_EBASE - 26,      /* the file is not a database */
        RESHA_SQLITE_ERESULT_SIZE = RESHA_SQLITE_EBASE - 97, /* the result is larger than max_result_bytes */
        RESHA_SQLITE_ETRANSACTION = RESHA_SQLITE_EBASE - 98, /* SQL begins or ends a transaction on its own */
        RESHA_SQLITE_ECLOSED = RESHA_SQLITE_EBASE - 99,      /* the handle is being closed */
};

/* ---- Values ------------------------------------------------------------------------------------------------------ */

enum resha_value_type {
        RESHA_VALUE_NULL = 0,
        RESHA_VALUE_INT,
        RESHA_VALUE_REAL,
        RESHA_VALUE_TEXT,
        RESHA_VALUE_BLOB,
};

/* One value, to bind or as read. All zero is NULL. Text and blobs are borrowed: they must stay until the call they
 * are given to has returned. */
typedef struct resha_value {
        enum resha_value_type type;
        size_t size; /* of text and blob, bytes without terminator; to bind, SIZE_MAX: up to '\0' */
        union {
                int64_t integer;
                double real;      /* NaN is stored as NULL */
                const char *text; /* UTF-8, not checked; may hold '\0'; NULL is stored as NULL. As read: terminated */
                const void *blob; /* NULL is stored as NULL */
        } as;
} resha_value;

#define RESHA_NULL (RESHA_LITERAL(resha_value){ RESHA_VALUE_NULL, 0, { 0 } })
#define RESHA_INT(x) (RESHA_LITERAL(resha_value){ RESHA_VALUE_INT, 0, { .integer = (x) } })
#define RESHA_REAL(x) (RESHA_LITERAL(resha_value){ RESHA_VALUE_REAL, 0, { .real = (x) } })
#define RESHA_TEXT(s) (RESHA_LITERAL(resha_value){ RESHA_VALUE_TEXT, SIZE_MAX, { .text = (s) } })
#define RESHA_TEXT_N(p, n) (RESHA_LITERAL(resha_value){ RESHA_VALUE_TEXT, (n), { .text = (p) } })
#define RESHA_BLOB(p, n) (RESHA_LITERAL(resha_value){ RESHA_VALUE_BLOB, (n), { .blob = (p) } })

/* RESHA_VALUES(RESHA_INT(1), ...): the two arguments `values, n` of the calls below. C only. */
#define RESHA_VALUES(...) \
        (const resha_value[]){ __VA_ARGS__ }, (sizeof((const resha_value[]){ __VA_ARGS__ }) / sizeof(resha_value))

/* ---- Results ----------------------------------------------------------------------------------------------------- */

/* Rows that were read, in memory of their own: they outlive the database. Rows and columns count from 0; one that
 * does not exist reads as NULL. They do not change, so several threads may read them. */
typedef struct resha_rows resha_rows;

/* Releases them; NULL is fine. [any-thread] */
RESHA_API void resha_rows_free(resha_rows *rows);
RESHA_API void resha_rows_freep(resha_rows **rows);

/* [any-thread] */
RESHA_API size_t resha_rows_count(const resha_rows *rows);
RESHA_API size_t resha_rows_columns(const resha_rows *rows);

/* The name of a column: its alias, or what SQLite makes of it; NULL if there is none. Owned by `rows`. [any-thread] */
RESHA_API const char *resha_rows_name(const resha_rows *rows, size_t column);

/* The column of that name, compared without regard to case as SQL does; the first of several; -ENOENT. [any-thread] */
RESHA_API int resha_rows_column(const resha_rows *rows, const char *name);

/* One value, as stored. What it points to is owned by `rows`. [any-thread] */
RESHA_API resha_value resha_rows_value(const resha_rows *rows, size_t row, size_t column);

/* Typed. An INTEGER is read as a REAL and the other way (cut towards zero, limited to the range); nothing else is
 * converted: a value of another type reads as 0, 0.0 or NULL; use `cast(x as text)` in the SQL. Text is terminated; a
 * blob can be read as text, and text as a blob. ret_size may be NULL. [any-thread] */
RESHA_API int64_t resha_rows_int(const resha_rows *rows, size_t row, size_t column);
RESHA_API double resha_rows_real(const resha_rows *rows, size_t row, size_t column);
RESHA_API const char *resha_rows_text(const resha_rows *rows, size_t row, size_t column);
RESHA_API const void *resha_rows_blob(const resha_rows *rows, size_t row, size_t column, size_t *ret_size);
RESHA_API bool resha_rows_is_null(const resha_rows *rows, size_t row, size_t column);

/* ---- The database ------------------------------------------------------------------------------------------------ */

/* An open database: of the loop it was opened on, for all of its tasks. */
typedef struct resha_sqlite resha_sqlite;

typedef struct resha_sqlite_opts {
        bool read_only;              /* nothing can be written; the file must exist [false] */
        bool must_exist;             /* a file that is not there is an error, not created [false] */
        bool sync_full;              /* synchronous=FULL: each commit survives loss of power [false: NORMAL: in WAL mode
                                        each survives a kill of the process; loss of power takes the latest] */
        resha_duration busy_timeout; /* how long to wait for another connection's lock; 1 ns: not at all [5 s] */
        size_t statements;           /* prepared statements kept; the least recently used goes; at most 4096 [64] */
        size_t max_result_bytes;     /* most memory of one result [64 MiB] */
        uint64_t _reserved[8];
} resha_sqlite_opts;

/* Opens the database file at `path`, or ":memory:" (a path that begins with "file:" is a path, too). Sets
 * journal_mode=WAL unless read-only, synchronous as above, foreign_keys=on; reads the file's header, so that what is
 * not a database fails here. Whose database it is (application_id, user_version) is for the caller to check. 0;
 * -EINVAL, -ENOMEM, -EAGAIN; RESHA_SQLITE_ECANTOPEN, _EREADONLY (not writable, and not opened read_only), _ENOTADB,
 * _EBUSY, ...; -ECANCELED. [task] cancellation point */
RESHA_API RESHA_MUST int resha_sqlite_open(const char *path, const resha_sqlite_opts *opts, resha_sqlite **ret_db);

/* Closes it: new calls and those that have not started give RESHA_SQLITE_ECLOSED, a read is interrupted, a write is
 * waited for, a transaction that has not begun to commit is rolled back; then folds the WAL into the file, ends and
 * joins the thread, and releases the handle once the tasks that waited have left it. NULL is fine; two tasks may
 * close at the same time: both return when it is closed. Must come before the run ends. [task] not a cancellation
 * point */
RESHA_API void resha_sqlite_close(resha_sqlite *db);

/* Takes the handle out of *db (leaving NULL) and closes it; so a second call does nothing. [task] not a cancellation
 * point */
RESHA_API void resha_sqlite_closep(resha_sqlite **db);

/* Runs one statement with `n` values for its parameters (?1 is the first; the number must match: -EINVAL); rows it
 * gives are dropped. *ret_changes (may be NULL): rows inserted, updated or deleted by the statement itself, without
 * triggers. 0. [task] cancellation point */
RESHA_API RESHA_MUST int resha_sqlite_execute(resha_sqlite *db, const char *sql, const resha_value *values, size_t n,
                                              int64_t *ret_changes);

/* Runs statements separated by semicolons, without parameters, until one fails. Not one transaction unless it says so
 * with begin and commit. The error names the statement. 0. [task] cancellation point */
RESHA_API RESHA_MUST int resha_sqlite_script(resha_sqlite *db, const char *sql);

/* Runs one statement and keeps all rows it gives; one with `returning` may write. 0; RESHA_SQLITE_ERESULT_SIZE: see
 * max_result_bytes. [task] cancellation point */
RESHA_API RESHA_MUST int resha_sqlite_query(resha_sqlite *db, const char *sql, const resha_value *values, size_t n,
                                            resha_rows **ret_rows);

/* Runs one statement for each of `rows` rows of `columns` values, which lie one after another in `values`, in one
 * transaction: all or none. The error names the row, from 1. *ret_changes (may be NULL): the sum over the rows. 0.
 * [task] cancellation point */
RESHA_API RESHA_MUST int resha_sqlite_batch(resha_sqlite *db, const char *sql, const resha_value *values,
                                            size_t columns, size_t rows, int64_t *ret_changes);

/* ---- Transactions ------------------------------------------------------------------------------------------------ */

/* A transaction that is open: valid inside its function only. */
typedef struct resha_sqlite_tx resha_sqlite_tx;

/* The body of a transaction. It runs on the database's thread: [task] calls give -EPERM there, resha_fail() works,
 * and what it shares with the loop's thread is only what `arg` points to (the caller waits). It should do little
 * beside its statements: everybody else waits. */
typedef int resha_sqlite_tx_fn(resha_sqlite_tx *tx, void *arg);

/* begin immediate; fn(tx, arg); commit: one hop for the whole. A negative result of fn rolls back and is the result,
 * with its error record; so does a commit that fails; else the result is fn's. A cancel makes the next call on `tx`
 * fail with -ECANCELED, and a read in it too; the transaction is rolled back whatever fn returns then.
 * resha_shielded() around the call lets it run to its end. [task] cancellation point */
RESHA_API RESHA_MUST int resha_sqlite_transaction(resha_sqlite *db, resha_sqlite_tx_fn *fn, void *arg);

/* As the calls without tx_, inside fn and on its thread only. A failure leaves the transaction open with what was
 * done before the statement, unless SQLite has rolled back all of it (disk full, ...): then every further call gives
 * that error again. Repeated statements cost a look-up, not a parse. ret_changes may be NULL. Tag of these calls:
 * [tx] */
RESHA_API RESHA_MUST int resha_sqlite_tx_execute(resha_sqlite_tx *tx, const char *sql, const resha_value *values,
                                                 size_t n, int64_t *ret_changes);
RESHA_API RESHA_MUST int resha_sqlite_tx_query(resha_sqlite_tx *tx, const char *sql, const resha_value *values,
                                               size_t n, resha_rows **ret_rows);
RESHA_API RESHA_MUST int resha_sqlite_tx_batch(resha_sqlite_tx *tx, const char *sql, const resha_value *values,
                                               size_t columns, size_t rows, int64_t *ret_changes);

/* The rowid of the latest row inserted in this transaction; 0 if there is none. [tx] */
RESHA_API int64_t resha_sqlite_tx_rowid(const resha_sqlite_tx *tx);

/* ---- Cursors ----------------------------------------------------------------------------------------------------- */

/* A result that is read in chunks, for those that are too large to keep. Of one task at a time. */
typedef struct resha_sqlite_cursor resha_sqlite_cursor;

/* Begins to read the rows of one statement that changes nothing (-EINVAL otherwise); the values are copied. It reads
 * the file as it was at its first next, or at that of a cursor before it which is not over yet, whatever is written
 * meanwhile; temporary and attached tables are not seen. In a database in memory what is written meanwhile may show,
 * and changes of the schema give RESHA_SQLITE_ELOCKED. While it is open the WAL file cannot shrink. 0. [task]
 * cancellation point
 *
 *     RESHA_CLEANUP(resha_sqlite_cursor_closep) resha_sqlite_cursor *cursor = NULL;
 *     const resha_rows *rows;
 *     int rc = resha_sqlite_cursor_open(db, "select url, body from fetch", NULL, 0, &cursor);
 *     while (rc >= 0 && (rc = resha_sqlite_cursor_next(cursor, &rows)) > 0)
 *             for (size_t r = 0; r < resha_rows_count(rows) && rc >= 0; r++)
 *                     rc = consume(resha_rows_text(rows, r, 0), resha_rows_text(rows, r, 1)); */
RESHA_API RESHA_MUST int resha_sqlite_cursor_open(resha_sqlite *db, const char *sql, const resha_value *values,
                                                  size_t n, resha_sqlite_cursor **ret_cursor);

/* The next rows, as many as take some 64 KiB, at most 256, in one hop. They are the cursor's, until its next call. 1;
 * 0 when there are no more; a cursor that has failed or was interrupted stays so. [task] cancellation point */
RESHA_API RESHA_MUST int resha_sqlite_cursor_next(resha_sqlite_cursor *cursor, const resha_rows **ret_rows);

/* Ends it; NULL is fine. Also after the close of its database, which ends it. [task] not a cancellation point */
RESHA_API void resha_sqlite_cursor_close(resha_sqlite_cursor *cursor);
RESHA_API void resha_sqlite_cursor_closep(resha_sqlite_cursor **cursor);

/* ---- Counters ---------------------------------------------------------------------------------------------------- */

typedef struct resha_sqlite_counts {
        uint64_t hops;     /* calls that went to the thread */
        uint64_t prepared; /* statements compiled */
        uint64_t reused;   /* statements taken from the cache instead */
        uint64_t cached;   /* statements in the cache now */
        uint64_t _reserved[4];
} resha_sqlite_counts;

/* What the handle has done so far. [loop] */
RESHA_API void resha_sqlite_count(const resha_sqlite *db, resha_sqlite_counts *ret_counts);

RESHA_END_DECLS
#endif
