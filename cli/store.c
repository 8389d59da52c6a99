/* SPDX-License-Identifier: MIT */

/* The database. What the functions here run on SQLite's thread is marked [tx]; the loop's thread waits meanwhile, so
 * jobs need no lock.
 *
 * A run that ends well has ended_at; one that was killed has none, and its rows carry its number: that is how the next
 * one knows what is left. The counts of a run are written in the transaction of the rows they count. */

#include "store.h"

#include <string.h>

#include <resha/alloc.h>
#include <resha/error.h>

#include "json.h"

static const char schema[][700] = {
        "create table if not exists run ("
        " id integer primary key,"
        " command text not null,"           /* what was asked for, without secrets */
        " source text not null,"            /* its fingerprint: equal for the same command */
        " started_at text not null,"        /* all times: ISO 8601, UTC */
        " saved_at text not null,"          /* when something was last saved */
        " ended_at text,"                   /* null: still running, or killed */
        " outcome text,"                    /* complete, interrupted; null like ended_at */
        " done integer not null default 0," /* good answers, unchanged ones included */
        " unchanged integer not null default 0,"
        " empty integer not null default 0,"
        " failed integer not null default 0,"
        " bytes integer not null default 0)",
        "create table if not exists fetch ("
        " url text primary key," /* without user name and password */
        " status integer,"       /* of the last answer; null if there was none */
        " content_type text,"    /* these four: of the last good answer */
        " etag text,"
        " last_modified text,"
        " body,"                      /* text; a blob if it is not UTF-8 */
        " error text,"                /* why the last try failed; null if it did not */
        " attempts integer not null," /* of the last try */
        " started_at text not null,"  /* of its first attempt */
        " finished_at text not null," /* of its last one */
        " failed_at text,"            /* null if the last try did not fail */
        " run integer not null)",     /* the run that asked last */
};

enum { FETCH_COLUMNS = 12 };

#define INSERT_FETCH \
        "insert into fetch (url, status, content_type, etag, last_modified, body, error, attempts, started_at," \
        " finished_at, failed_at, run) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"

#define SET_TRY \
        " error = excluded.error, failed_at = excluded.failed_at," \
        " status = case excluded.status when 304 then fetch.status else excluded.status end," \
        " attempts = excluded.attempts, started_at = excluded.started_at, finished_at = excluded.finished_at," \
        " run = excluded.run"

/* A good answer takes the place of what was there. */
static const char save_done[] =
        INSERT_FETCH " on conflict (url) do update set content_type = excluded.content_type, etag = excluded.etag,"
                     " last_modified = excluded.last_modified, body = excluded.body," SET_TRY;

/* A failure leaves the last good answer where it is. */
static const char save_failed[] = INSERT_FETCH " on conflict (url) do update set" SET_TRY;

static const char save_unchanged[] = "update fetch set error = null, failed_at = null, attempts = ?2, started_at = ?3,"
                                     " finished_at = ?4, run = ?5 where url = ?1";

static const char save_run[] = "update run set saved_at = ?2, done = ?3, unchanged = ?4, empty = ?5, failed = ?6,"
                               " bytes = ?7 where id = ?1";

/* What is known about some URLs: ?1 is a JSON array of them, ?2 the run, ?3 whether `null` is empty. */
static const char look_up[] = "select j.key, f.etag, f.last_modified, f.run = ?2 and f.failed_at is null,"
                              " case when ?3 and f.run = ?2 then trim(f.body, char(9, 10, 13, 32)) = 'null' end"
                              " from json_each(?1) j join fetch f on f.url = j.value";

struct store {
        struct store_options o;
        resha_sqlite *db;
        int64_t run;
        bool resumed, had_rows;
        struct counts before; /* what a run that goes on had counted */
        char now[CLOCK_TEXT], horizon[CLOCK_TEXT];
        resha_value values[FETCH_COLUMNS];
};

static void tell_time(struct store *s)
{
        clock_format(s->o.clock, resha_now(), s->now);
}

/* [tx] */
static int check_version(struct store *s, resha_sqlite_tx *tx)
{
        resha_rows *rows RESHA_CLEANUP(resha_rows_freep) = NULL;
        int rc = resha_sqlite_tx_query(tx, "pragma user_version", NULL, 0, &rows);
        if (rc < 0)
                return rc;
        int64_t version = resha_rows_int(rows, 0, 0);
        if (version < 0 || version > STORE_VERSION)
                return resha_fail(
                        -ENOTSUP,
                        "%s: user_version is %lld: made by a newer resha or by another program; take another file",
                        s->o.path, (long long)version);
        for (size_t i = 0; i < sizeof schema / sizeof schema[0] && rc >= 0; i++)
                rc = resha_sqlite_tx_execute(tx, schema[i], NULL, 0, NULL);
        if (rc >= 0 && version < STORE_VERSION)
                rc = resha_sqlite_tx_execute(tx, "pragma user_version = 1", NULL, 0, NULL);
        return rc;
}

/* Tables of these names may be another program's. [tx] */
static int check_tables(struct store *s, resha_sqlite_tx *tx)
{
        static const char sql[] =
                "select (select count(*) from pragma_table_info('fetch') where name in ('url', 'failed_at', 'run'))"
                " + (select count(*) from pragma_table_info('run') where name in ('source', 'saved_at'))";
        resha_rows *rows RESHA_CLEANUP(resha_rows_freep) = NULL;
        int rc = resha_sqlite_tx_query(tx, sql, NULL, 0, &rows);
        if (rc >= 0 && resha_rows_int(rows, 0, 0) != 5)
                return resha_fail(-ENOTSUP, "%s: has a table fetch or run of another program; take another file",
                                  s->o.path);
        return rc;
}

/* Finds the run to go on with: 1, 0, or negative. [tx] */
static int find_cut_short(struct store *s, resha_sqlite_tx *tx)
{
        resha_rows *rows RESHA_CLEANUP(resha_rows_freep) = NULL;
        int rc = resha_sqlite_tx_query(tx,
                                       "select id, ifnull(outcome, '') <> 'complete' and saved_at >= ?2, unchanged,"
                                       " bytes, done, empty from run where source = ?1 order by id desc limit 1",
                                       RESHA_VALUES(RESHA_TEXT(s->o.fingerprint), RESHA_TEXT(s->horizon)), &rows);
        if (rc < 0 || resha_rows_count(rows) == 0 || !resha_rows_int(rows, 0, 1))
                return rc;
        s->run = resha_rows_int(rows, 0, 0);
        s->before.unchanged = (uint64_t)resha_rows_int(rows, 0, 2);
        s->before.bytes = (uint64_t)resha_rows_int(rows, 0, 3);
        s->before.done = (uint64_t)resha_rows_int(rows, 0, 4);
        s->before.empty = (uint64_t)resha_rows_int(rows, 0, 5);
        return 1;
}

/* [tx] */
static int begin_run(resha_sqlite_tx *tx, void *arg)
{
        struct store *s = arg;
        resha_rows *rows RESHA_CLEANUP(resha_rows_freep) = NULL;
        int rc = check_version(s, tx);
        if (rc >= 0)
                rc = check_tables(s, tx);
        if (rc >= 0)
                rc = resha_sqlite_tx_query(tx, "select 1 from fetch limit 1", NULL, 0, &rows);
        s->had_rows = rc >= 0 && resha_rows_count(rows) > 0;
        if (rc >= 0 && s->o.derive)
                rc = derive_create(s->o.derive, tx);
        if (rc >= 0)
                rc = find_cut_short(s, tx);
        if (rc < 0)
                return rc;
        s->resumed = rc > 0;
        if (s->resumed)
                return resha_sqlite_tx_execute(
                        tx, "update run set saved_at = ?2, ended_at = null, outcome = null where id = ?1",
                        RESHA_VALUES(RESHA_INT(s->run), RESHA_TEXT(s->now)), NULL);
        rc = resha_sqlite_tx_execute(
                tx, "insert into run (command, source, started_at, saved_at) values (?1, ?2, ?3, ?3)",
                RESHA_VALUES(RESHA_TEXT(s->o.command), RESHA_TEXT(s->o.fingerprint), RESHA_TEXT(s->now)), NULL);
        s->run = resha_sqlite_tx_rowid(tx);
        return rc;
}

int store_open(const struct store_options *opts, struct store **ret_store)
{
        struct store *s RESHA_CLEANUP(store_closep) = resha_calloc(1, sizeof *s);
        if (!s)
                return -ENOMEM;
        s->o = *opts;
        tell_time(s);
        clock_format(s->o.clock, (resha_instant){ resha_now().ns - RESHA_S(12 * 3600).ns }, s->horizon);
        int rc = resha_sqlite_open(opts->path, NULL, &s->db);
        if (rc >= 0)
                rc = resha_sqlite_transaction(s->db, begin_run, s);
        if (rc < 0)
                return rc;
        *ret_store = s;
        s = NULL;
        return 0;
}

void store_close(struct store *s)
{
        if (!s)
                return;
        resha_sqlite_close(s->db);
        resha_free(s);
}

void store_closep(struct store **s)
{
        store_close(*s);
        *s = NULL;
}

resha_sqlite *store_db(struct store *s)
{
        return s->db;
}

bool store_resumed(const struct store *s)
{
        return s->resumed;
}

int store_look_up(struct store *s, struct job **jobs, size_t n)
{
        if (!s->had_rows)
                return 0;
        TEXT(urls);
        text_putc(&urls, '[');
        for (size_t i = 0; i < n; i++) {
                if (i)
                        text_putc(&urls, ',');
                json_add_string(&urls, jobs[i]->key, strlen(jobs[i]->key));
        }
        text_putc(&urls, ']');
        resha_rows *rows RESHA_CLEANUP(resha_rows_freep) = NULL;
        const resha_value values[] = { RESHA_TEXT_N(urls.data, urls.len), RESHA_INT(s->run),
                                       RESHA_INT(s->o.derive != NULL) };
        int rc = urls.failed ? -ENOMEM : resha_sqlite_query(s->db, look_up, values, 3, &rows);
        for (size_t r = 0; rc >= 0 && r < resha_rows_count(rows); r++) {
                size_t i = (size_t)resha_rows_int(rows, r, 0);
                if (i >= n || jobs[i]->outcome != JOB_OPEN)
                        continue;
                const char *etag = resha_rows_text(rows, r, 1), *modified = resha_rows_text(rows, r, 2);
                if (s->resumed && resha_rows_int(rows, r, 3))
                        jobs[i]->outcome = resha_rows_int(rows, r, 4) ? JOB_EMPTY : JOB_ALREADY;
                jobs[i]->etag = etag ? resha_strdup(etag) : NULL;
                jobs[i]->last_modified = modified ? resha_strdup(modified) : NULL;
        }
        return rc;
}

static resha_value text_or_null(const char *s)
{
        return s ? RESHA_TEXT(s) : RESHA_NULL;
}

static resha_value body_value(const struct job *j)
{
        size_t size;
        const char *body = job_body(j, &size);
        return utf8_valid(body, size) ? RESHA_TEXT_N(body, size) : RESHA_BLOB(body, size);
}

/* The row of a job that is done or has failed. An answer that was good but made no row of the derived table has both:
 * it is kept, and failed. */
static void fill_row(struct store *s, const struct job *j)
{
        bool good = j->outcome != JOB_FAILED;
        bool empty = j->outcome == JOB_EMPTY; /* a 304 could not tell `null` */
        const struct answer *a = &j->answer;
        const resha_value row[FETCH_COLUMNS] = {
                RESHA_TEXT(j->key),
                j->status ? RESHA_INT(j->status) : RESHA_NULL,
                text_or_null(a->content_type),
                text_or_null(empty ? NULL : a->etag),
                text_or_null(empty ? NULL : a->last_modified),
                a->body ? body_value(j) : RESHA_NULL,
                good ? RESHA_NULL : RESHA_TEXT(j->error ? j->error : "failed"),
                RESHA_INT(j->attempts),
                RESHA_TEXT(j->started_text),
                RESHA_TEXT(j->finished_text),
                good ? RESHA_NULL : RESHA_TEXT(j->finished_text),
                RESHA_INT(s->run),
        };
        memcpy(s->values, row, sizeof row);
}

/* Makes the derived row; a body that makes none fails the job and nothing else. [tx] */
static int save_derived(struct store *s, resha_sqlite_tx *tx, struct job *j)
{
        int rc;
        if (!s->o.derive || j->kind != JOB_URL)
                return 0;
        if (j->outcome == JOB_UNCHANGED) {
                rc = derive_stored(s->o.derive, tx, j->key, j->finished_text);
        } else {
                size_t size;
                const char *body = job_body(j, &size);
                rc = utf8_valid(body, size) ? derive_body(s->o.derive, tx, body, size, j->finished_text)
                                            : resha_fail(-EBADMSG, "the answer is not JSON");
        }
        if (rc != -EBADMSG)
                return rc;
        job_fail(j, resha_error_of(rc)->text);
        return 0;
}

/* [tx] */
static int save_job(struct store *s, resha_sqlite_tx *tx, struct job *j)
{
        int rc = 0;
        if (job_is_old(j))
                return 0;
        if (j->outcome == JOB_DONE || j->outcome == JOB_UNCHANGED)
                rc = save_derived(s, tx, j);
        if (rc < 0)
                return rc;
        if (j->outcome == JOB_UNCHANGED)
                return resha_sqlite_tx_execute(tx, save_unchanged,
                                               RESHA_VALUES(RESHA_TEXT(j->key), RESHA_INT(j->attempts),
                                                            RESHA_TEXT(j->started_text), RESHA_TEXT(j->finished_text),
                                                            RESHA_INT(s->run)),
                                               NULL);
        fill_row(s, j);
        return resha_sqlite_tx_execute(tx, j->answer.body ? save_done : save_failed, s->values, FETCH_COLUMNS, NULL);
}

void store_count(struct counts *c, const struct job *j)
{
        size_t size;
        bool done = j->outcome == JOB_DONE || j->outcome == JOB_UNCHANGED || j->outcome == JOB_ALREADY;
        job_body(j, &size);
        c->bytes += size;
        c->failed += j->outcome == JOB_FAILED;
        c->empty += j->outcome == JOB_EMPTY;
        c->unchanged += j->outcome == JOB_UNCHANGED;
        c->already += j->outcome == JOB_ALREADY;
        c->done += done;
        c->rows += done && j->kind == JOB_URL;
}

struct save {
        struct store *store;
        struct job **jobs;
        size_t n;
        struct counts counts;
};

/* [tx] */
static int save_batch(resha_sqlite_tx *tx, void *arg)
{
        struct save *b = arg;
        struct store *s = b->store;
        int rc = 0;
        for (size_t i = 0; i < b->n && rc >= 0; i++) {
                rc = save_job(s, tx, b->jobs[i]);
                store_count(&b->counts, b->jobs[i]);
        }
        const struct counts *c = &b->counts, *was = &s->before;
        if (rc < 0)
                return rc;
        /* A run that goes on counts again what it had done, so the larger number holds. */
        const resha_value values[] = {
                RESHA_INT(s->run),
                RESHA_TEXT(s->now),
                RESHA_INT((int64_t)(c->done > was->done ? c->done : was->done)),
                RESHA_INT((int64_t)(was->unchanged + c->unchanged)),
                RESHA_INT((int64_t)(c->empty > was->empty ? c->empty : was->empty)),
                RESHA_INT((int64_t)c->failed),
                RESHA_INT((int64_t)(was->bytes + c->bytes)),
        };
        return resha_sqlite_tx_execute(tx, save_run, values, sizeof values / sizeof values[0], NULL);
}

int store_save(struct store *s, struct job **jobs, size_t n, struct counts *counts)
{
        struct save b = { .store = s, .jobs = jobs, .n = n, .counts = *counts };
        tell_time(s);
        int rc = resha_sqlite_transaction(s->db, save_batch, &b);
        if (rc >= 0)
                *counts = b.counts;
        return rc;
}

int store_end(struct store *s, const char *outcome)
{
        tell_time(s);
        return resha_sqlite_execute(s->db, "update run set ended_at = ?2, outcome = ?3 where id = ?1",
                                    RESHA_VALUES(RESHA_INT(s->run), RESHA_TEXT(s->now), RESHA_TEXT(outcome)), NULL);
}
