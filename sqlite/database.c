/* SPDX-License-Identifier: MIT */
/* The handle: open, close, counters.
 *
 *     opening ──open──> open ──first close──> closing ──calls have left──> closed ──last closer──> released
 *
 * Closing waits for every task that is inside a call, and those may need the thread to learn that they are refused;
 * so the order is: refuse new calls, stop those that are there, wait until they have left, close SQLite's handle on
 * the worker (it may copy the whole WAL into the file), end and join the thread. All of it inside a shield: a
 * cancelled task closes as any other does. */

#include "internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <resha/alloc.h>
#include <resha/scope.h>
#include <resha/task.h>

enum { SHOWN = 64, STATEMENTS = 64, STATEMENTS_MOST = 4096, CALLS_COUNTED = 10000 };

static int options(const resha_sqlite_opts *given, resha_sqlite_opts *ret_opts)
{
        resha_sqlite_opts o = given ? *given : (resha_sqlite_opts){ 0 };

        for (size_t i = 0; i < sizeof o._reserved / sizeof *o._reserved; i++)
                if (o._reserved[i] != 0)
                        return resha_fail_at(-EINVAL, NULL, "a reserved word of resha_sqlite_opts is not zero");
        if (o.busy_timeout.ns < 0)
                return resha_fail_at(-EINVAL, NULL, "busy_timeout is negative");
        if (o.statements > STATEMENTS_MOST)
                return resha_fail_at(-EINVAL, NULL, "statements is over %d", STATEMENTS_MOST);
        if (o.busy_timeout.ns == 0)
                o.busy_timeout = RESHA_S(5);
        if (o.statements == 0)
                o.statements = STATEMENTS;
        if (o.max_result_bytes == 0)
                o.max_result_bytes = (size_t)64 << 20;
        *ret_opts = o;
        return 0;
}

/* "file:x" means an URI to SQLite where it is built so; we take paths only. */
static char *path_of(const char *path)
{
        size_t n = strlen(path);
        bool uri = strncmp(path, "file:", 5) == 0;
        char *copy = resha_malloc(n + 3);

        if (!copy)
                return NULL;
        if (uri)
                memcpy(copy, "./", 2);
        memcpy(copy + (uri ? 2 : 0), path, n + 1);
        return copy;
}

static int new_handle(const char *path, const resha_sqlite_opts *opts, resha_sqlite **ret_db)
{
        resha_sqlite *db = resha_calloc(1, sizeof *db);
        if (!db)
                return -ENOMEM;
        db->opts = *opts;
        db->owner = pthread_self();
        db->writer.db = db->reader.db = db;
        db->path = path_of(path);
        if (!db->path) {
                resha_free(db);
                return -ENOMEM;
        }
        size_t n = strlen(db->path);
        db->shown = n > SHOWN ? db->path + n - SHOWN : strcmp(path, ":memory:") == 0 ? "in-memory database" : db->path;
        int rc = resha_pool_new(&(resha_pool_opts){ .threads = 1, .name = "resha-sqlite" }, &db->pool);
        if (rc < 0) {
                resha_free(db->path);
                resha_free(db);
                return rc;
        }
        *ret_db = db;
        return 0;
}

static void release(resha_sqlite *db)
{
        resha_free(db->path);
        resha_free(db);
}

/* ---- what is shown ---- */

static uint64_t calls_of(const resha_sqlite *db)
{
        uint64_t n = 0;

        for (const struct rs_sqlite_call *c = db->calls; c && n < CALLS_COUNTED; c = c->next)
                n++;
        return n;
}

static void refresh(void *object)
{
        resha_sqlite *db = object;
        resha_sqlite_counts c;

        resha_sqlite_count(db, &c);
        db->figures[RS_SQLITE_CALLS] = c.hops;
        db->figures[RS_SQLITE_RUNNING] = calls_of(db);
        db->figures[RS_SQLITE_PREPARED] = c.prepared;
        db->figures[RS_SQLITE_REUSED] = c.reused;
        db->figures[RS_SQLITE_CACHED] = c.cached;
}

static void describe(const void *object, char *text, size_t size)
{
        const resha_sqlite *db = object;

        snprintf(text, size, "%" PRIu64 " calls run or wait%s", calls_of(db), db->closing ? "; is being closed" : "");
}

static const resha_figure figures[RS_SQLITE_FIGURES] = {
        { "resha_sqlite_calls_total", "Calls that the database's thread has begun.", RESHA_FIGURE_COUNTER, false },
        { "resha_sqlite_calls", "Calls that run or wait, counted to 10,000.", RESHA_FIGURE_GAUGE, false },
        { "resha_sqlite_prepared_total", "Statements that were compiled.", RESHA_FIGURE_COUNTER, false },
        { "resha_sqlite_reused_total", "Statements that were compiled already.", RESHA_FIGURE_COUNTER, false },
        { "resha_sqlite_cached", "Compiled statements that are kept.", RESHA_FIGURE_GAUGE, false },
};

static const resha_shown_kind kind = { .kind = "database",
                                       .figures = figures,
                                       .count = RS_SQLITE_FIGURES,
                                       .label = "database",
                                       .describe = describe,
                                       .refresh = refresh };

static int run_open(struct rs_sqlite_conn *conn, struct rs_sqlite_call *call)
{
        (void)call;
        return rs_sqlite_conn_open(conn, conn->db->opts.read_only);
}

int resha_sqlite_open(const char *path, const resha_sqlite_opts *given, resha_sqlite **ret_db)
{
        struct rs_sqlite_call call = { .run = run_open };
        resha_sqlite_opts opts;
        resha_sqlite *db = NULL;

        if (!path || !*path) /* SQLite takes "" for a temporary file */
                return resha_fail_at(-EINVAL, NULL, "the path of the database is empty");
        if (!sqlite3_threadsafe())
                return resha_fail_at(-ENOTSUP, NULL, "SQLite is built without threads (SQLITE_THREADSAFE=0)");
        int rc = options(given, &opts);
        if (rc < 0)
                return rc;
        rc = new_handle(path, &opts, &db);
        if (rc < 0)
                return rc;
        rc = rs_sqlite_hop(&db->writer, &call);
        if (rc < 0) {
                resha_sqlite_close(db);
                return rc;
        }
        (void)resha_shown_begin(&db->listed, &kind, db, db->shown, db->figures, __builtin_return_address(0));
        *ret_db = db;
        return 0;
}

/* -ECANCELED only reaches what has not started; what runs, looks at the word. */
static void stop_calls(resha_sqlite *db)
{
        for (struct rs_sqlite_call *c = db->calls; c; c = c->next) {
                int none = 0;
                atomic_compare_exchange_strong(&c->stop, &none, RESHA_SQLITE_ECLOSED);
        }
}

static int run_close(void *arg)
{
        resha_sqlite *db = arg;

        rs_sqlite_conn_close(&db->reader); /* first: the last one to close folds the WAL into the file */
        rs_sqlite_conn_close(&db->writer);
        return 0;
}

static void close_first(resha_sqlite *db)
{
        db->closing = true;
        stop_calls(db);
        while (db->calls && resha_event_wait(&db->left) >= 0)
                ;
        if (db->calls) { /* cannot wait here (a no-suspend region): it stays, for a close that can */
                db->closing = false;
                return;
        }
        rs_sqlite_cursors_detach(db);
        /* Without a thread, as when none can be started, it closes here: late is worse than slow. */
        if (db->writer.handle && resha_pool_run(db->pool, run_close, db, NULL) < 0)
                (void)run_close(db);
        resha_pool_free(db->pool);
        db->pool = NULL;
        resha_shown_end(&db->listed);
        resha_event_set(&db->closed);
}

void resha_sqlite_close(resha_sqlite *db)
{
        RESHA_SCOPE(shield);

        if (!db)
                return;
        db->closers++;
        resha_shield_begin(&shield, RESHA_FOREVER);
        if (!db->closing)
                close_first(db);
        else
                while (!resha_event_is_set(&db->closed) && resha_event_wait(&db->closed) >= 0)
                        ;
        (void)!resha_scope_end(&shield, 0);
        if (--db->closers == 0 && resha_event_is_set(&db->closed))
                release(db);
}

void resha_sqlite_closep(resha_sqlite **at)
{
        resha_sqlite *db = *at;

        *at = NULL;
        resha_sqlite_close(db);
}

void resha_sqlite_count(const resha_sqlite *db, resha_sqlite_counts *ret_counts)
{
        *ret_counts = (resha_sqlite_counts){
                .hops = atomic_load_explicit(&db->hops, memory_order_relaxed),
                .prepared = atomic_load_explicit(&db->prepared, memory_order_relaxed),
                .reused = atomic_load_explicit(&db->reused, memory_order_relaxed),
                .cached = atomic_load_explicit(&db->cached, memory_order_relaxed),
        };
}
