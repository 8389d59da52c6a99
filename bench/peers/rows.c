/* SPDX-License-Identifier: MIT */
/* Rows of the table `fetch`, by one prepared statement. Texts are bound without a copy. */

#include "rows.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

static const char TABLE[] =
        "create table if not exists fetch (url text primary key, status integer, content_type text, etag text,"
        " last_modified text, body, error text, attempts integer not null, started_at text not null,"
        " finished_at text not null, failed_at text, run integer not null)";

static const char INSERT[] =
        "insert into fetch (url, status, content_type, etag, last_modified, body, error, attempts, started_at,"
        " finished_at, failed_at, run) values (?, ?, ?, ?, ?, ?, ?, 1, ?, ?, ?, 1) on conflict (url) do update set"
        " content_type = excluded.content_type, etag = excluded.etag, last_modified = excluded.last_modified,"
        " body = excluded.body, error = excluded.error, failed_at = excluded.failed_at, status = excluded.status,"
        " attempts = excluded.attempts, started_at = excluded.started_at, finished_at = excluded.finished_at,"
        " run = excluded.run";

static sqlite3 *db;
static sqlite3_stmt *insert, *begin, *commit;

static void must(int result, int wanted)
{
        if (result != wanted) {
                fprintf(stderr, "rows: %s\n", sqlite3_errmsg(db));
                exit(1);
        }
}

void rows_open(const char *path)
{
        must(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL),
             SQLITE_OK);
        must(sqlite3_exec(db, "pragma journal_mode=wal; pragma synchronous=normal", NULL, NULL, NULL), SQLITE_OK);
        must(sqlite3_exec(db, TABLE, NULL, NULL, NULL), SQLITE_OK);
        must(sqlite3_prepare_v3(db, INSERT, -1, SQLITE_PREPARE_PERSISTENT, &insert, NULL), SQLITE_OK);
        must(sqlite3_prepare_v3(db, "begin immediate", -1, SQLITE_PREPARE_PERSISTENT, &begin, NULL), SQLITE_OK);
        must(sqlite3_prepare_v3(db, "commit", -1, SQLITE_PREPARE_PERSISTENT, &commit, NULL), SQLITE_OK);
}

static void run(sqlite3_stmt *s)
{
        must(sqlite3_step(s), SQLITE_DONE);
        must(sqlite3_reset(s), SQLITE_OK);
}

void rows_begin(void)
{
        run(begin);
}

void rows_commit(void)
{
        run(commit);
}

static void bind_text(int column, const char *text)
{
        must(sqlite3_bind_text(insert, column, text, -1, SQLITE_STATIC), SQLITE_OK);
}

void rows_add(const struct answer *a)
{
        bind_text(1, a->url);
        must(a->status ? sqlite3_bind_int64(insert, 2, a->status) : sqlite3_bind_null(insert, 2), SQLITE_OK);
        bind_text(3, a->content_type);
        bind_text(4, a->etag);
        bind_text(5, a->last_modified);
        must(a->error ? sqlite3_bind_null(insert, 6)
                      : sqlite3_bind_text(insert, 6, a->body ? a->body : "", (int)a->size, SQLITE_STATIC),
             SQLITE_OK);
        bind_text(7, a->error);
        bind_text(8, a->started_at);
        bind_text(9, a->finished_at);
        bind_text(10, a->error ? a->finished_at : NULL);
        run(insert);
}

void rows_close(void)
{
        sqlite3_finalize(insert);
        sqlite3_finalize(begin);
        sqlite3_finalize(commit);
        must(sqlite3_close(db), SQLITE_OK);
}
