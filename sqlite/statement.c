/* SPDX-License-Identifier: MIT */
/* Prepared statements, kept by their text: a hash table, and a list in order of last use whose end is thrown out.
 *
 * A program runs few texts many times, so that the newest is compared first, and a repeated statement costs one
 * comparison of its text. A statement is in use only from its get to its put; both happen within one call on the
 * worker, and nothing in between gets another one of the same connection. So one that is thrown out is never in use.
 *
 * Statements are reset and unbound when put: one that stands in the middle of its rows would hold a read lock, and
 * the values bound to it are the caller's. Files that change their schema need no care: SQLite compiles again by
 * itself.
 *
 * Invariants: every statement is in its bucket and in the list; count <= capacity; buckets >= capacity. Worker only. */

#include "internal.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

#include <resha/alloc.h>

int rs_sqlite_cache_init(struct rs_sqlite_cache *cache, size_t capacity)
{
        size_t buckets = 16;

        while (buckets < capacity)
                buckets *= 2;
        *cache = (struct rs_sqlite_cache){ .mask = buckets - 1, .capacity = capacity };
        cache->buckets = resha_calloc(buckets, sizeof *cache->buckets);
        return cache->buckets ? 0 : -ENOMEM;
}

static void list_add(struct rs_sqlite_cache *cache, struct rs_sqlite_stmt *s)
{
        s->newer = NULL;
        s->older = cache->newest;
        if (cache->newest)
                cache->newest->newer = s;
        else
                cache->oldest = s;
        cache->newest = s;
}

static void list_remove(struct rs_sqlite_cache *cache, struct rs_sqlite_stmt *s)
{
        if (s->newer)
                s->newer->older = s->older;
        else
                cache->newest = s->older;
        if (s->older)
                s->older->newer = s->newer;
        else
                cache->oldest = s->newer;
}

static void discard(struct rs_sqlite_cache *cache, struct rs_sqlite_stmt *s)
{
        struct rs_sqlite_stmt **at = &cache->buckets[s->hash & cache->mask];

        while (*at != s)
                at = &(*at)->chain;
        *at = s->chain;
        list_remove(cache, s);
        cache->count--;
        rs_sqlite_statement_free(s);
}

void rs_sqlite_cache_done(struct rs_sqlite_cache *cache)
{
        while (cache->oldest)
                discard(cache, cache->oldest);
        assert(cache->count == 0);
        resha_free(cache->buckets);
        *cache = (struct rs_sqlite_cache){ 0 };
}

/* FNV-1a. Texts come from the program, not from its input: no need of a keyed hash. */
static uint32_t hash_of(const char *sql, size_t length)
{
        uint32_t h = 2166136261u;

        for (size_t i = 0; i < length; i++)
                h = (h ^ (unsigned char)sql[i]) * 16777619u;
        return h;
}

static bool same(const struct rs_sqlite_stmt *s, const char *sql, size_t length)
{
        return s->length == length && memcmp(s->sql, sql, length) == 0;
}

static struct rs_sqlite_stmt *find(struct rs_sqlite_cache *cache, const char *sql, size_t length, uint32_t *ret_hash)
{
        if (cache->newest && same(cache->newest, sql, length))
                return cache->newest;
        uint32_t hash = *ret_hash = hash_of(sql, length);
        struct rs_sqlite_stmt *s = cache->buckets[hash & cache->mask];
        while (s && !(s->hash == hash && same(s, sql, length)))
                s = s->chain;
        if (s) {
                list_remove(cache, s);
                list_add(cache, s);
        }
        return s;
}

static void keep(struct rs_sqlite_cache *cache, struct rs_sqlite_stmt *s)
{
        if (cache->count == cache->capacity)
                discard(cache, cache->oldest);
        struct rs_sqlite_stmt **bucket = &cache->buckets[s->hash & cache->mask];
        s->chain = *bucket;
        *bucket = s;
        list_add(cache, s);
        cache->count++;
}

/* One statement, without a rest. */
static int compile(struct rs_sqlite_conn *conn, const char *sql, size_t length, sqlite3_stmt **ret_handle)
{
        const char *rest = NULL;
        sqlite3_stmt *handle = NULL;

        if (length >= INT_MAX)
                return rs_sqlite_error(conn, SQLITE_TOOBIG, sql, "");
        int result = sqlite3_prepare_v3(conn->handle, sql, (int)length + 1, SQLITE_PREPARE_PERSISTENT, &handle, &rest);
        if (result != SQLITE_OK)
                return rs_sqlite_error(conn, result, sql, "");
        if (!handle)
                return rs_sqlite_refuse(conn->db, -EINVAL, sql, "there is no statement in the SQL");
        if (*rs_sqlite_skip_blank(rest)) {
                sqlite3_finalize(handle);
                return rs_sqlite_refuse(conn->db, -EINVAL, sql, "more than one statement: use resha_sqlite_script()");
        }
        atomic_fetch_add_explicit(&conn->db->prepared, 1, memory_order_relaxed);
        *ret_handle = handle;
        return 0;
}

int rs_sqlite_statement_make(struct rs_sqlite_conn *conn, const char *sql, size_t length,
                             struct rs_sqlite_stmt **ret_stmt)
{
        sqlite3_stmt *handle = NULL;
        int rc = compile(conn, sql, length, &handle);
        if (rc < 0)
                return rc;
        struct rs_sqlite_stmt *s = resha_malloc(sizeof *s + length + 1);
        if (!s) {
                sqlite3_finalize(handle);
                return -ENOMEM;
        }
        *s = (struct rs_sqlite_stmt){
                .handle = handle,
                .length = length,
                .kind = rs_sqlite_kind_of(sql),
                .parameters = (size_t)sqlite3_bind_parameter_count(handle),
                .columns = sqlite3_column_count(handle),
                .reads = sqlite3_stmt_readonly(handle),
        };
        memcpy(s->sql, sql, length + 1);
        *ret_stmt = s;
        return 0;
}

void rs_sqlite_statement_free(struct rs_sqlite_stmt *s)
{
        if (!s)
                return;
        sqlite3_finalize(s->handle);
        resha_free(s);
}

int rs_sqlite_statement_get(struct rs_sqlite_conn *conn, const char *sql, struct rs_sqlite_stmt **ret_stmt)
{
        size_t length = strlen(sql);
        uint32_t hash = 0;
        struct rs_sqlite_stmt *s = find(&conn->cache, sql, length, &hash);

        if (s) {
                atomic_fetch_add_explicit(&conn->db->reused, 1, memory_order_relaxed);
                *ret_stmt = s;
                return 0;
        }
        int rc = rs_sqlite_statement_make(conn, sql, length, &s);
        if (rc < 0)
                return rc;
        if (s->kind == RS_SQLITE_TRANSACTION) {
                rs_sqlite_statement_free(s);
                return rs_sqlite_refuse(conn->db, RESHA_SQLITE_ETRANSACTION, sql,
                                        "begin and end transactions with resha_sqlite_transaction()");
        }
        s->hash = hash;
        keep(&conn->cache, s);
        atomic_store_explicit(&conn->db->cached, conn->cache.count, memory_order_relaxed);
        *ret_stmt = s;
        return 0;
}

void rs_sqlite_statement_put(struct rs_sqlite_stmt *s)
{
        sqlite3_reset(s->handle);
        if (s->parameters > 0)
                sqlite3_clear_bindings(s->handle);
}

/* Mostly without copies: values stay until the call returns, and the statement is unbound before. */
static int bind_one(sqlite3_stmt *handle, int i, const resha_value *v, sqlite3_destructor_type how)
{
        switch (v->type) {
        case RESHA_VALUE_INT: return sqlite3_bind_int64(handle, i, v->as.integer);
        case RESHA_VALUE_REAL: return sqlite3_bind_double(handle, i, v->as.real);
        case RESHA_VALUE_TEXT:
                if (!v->as.text)
                        return sqlite3_bind_null(handle, i);
                return sqlite3_bind_text64(handle, i, v->as.text, v->size == SIZE_MAX ? strlen(v->as.text) : v->size,
                                           how, SQLITE_UTF8);
        case RESHA_VALUE_BLOB:
                if (!v->as.blob)
                        return sqlite3_bind_null(handle, i);
                return sqlite3_bind_blob64(handle, i, v->as.blob, v->size, how);
        case RESHA_VALUE_NULL: return sqlite3_bind_null(handle, i);
        default: return SQLITE_MISUSE;
        }
}

int rs_sqlite_bind(struct rs_sqlite_conn *conn, struct rs_sqlite_stmt *s, const resha_value *values, size_t n,
                   sqlite3_destructor_type how)
{
        if (n != s->parameters) {
                char why[96];
                sqlite3_snprintf((int)sizeof why, why, "the SQL has %llu parameters, and %llu values are given",
                                 (unsigned long long)s->parameters, (unsigned long long)n);
                return rs_sqlite_refuse(conn->db, -EINVAL, s->sql, why);
        }
        for (size_t i = 0; i < n; i++) {
                int result = bind_one(s->handle, (int)i + 1, &values[i], how);
                if (result == SQLITE_MISUSE)
                        return rs_sqlite_refuse(conn->db, -EINVAL, s->sql, "a value has no type: use RESHA_INT(), ...");
                if (result != SQLITE_OK)
                        return rs_sqlite_error(conn, result, s->sql, "");
        }
        return 0;
}

const char *rs_sqlite_skip_blank(const char *p)
{
        for (;;) {
                p += strspn(p, " \t\r\n\f\v;");
                if (strncmp(p, "\xef\xbb\xbf", 3) == 0) { /* a byte order mark */
                        p += 3;
                } else if (p[0] == '-' && p[1] == '-') {
                        p += strcspn(p, "\n");
                } else if (p[0] == '/' && p[1] == '*') {
                        const char *end = strstr(p + 2, "*/");
                        p = end ? end + 2 : p + strlen(p);
                } else {
                        return p;
                }
        }
}

/* Whether *p begins with `word`; then moves behind it. */
static bool take_word(const char **p, const char *word)
{
        size_t n = strlen(word);
        const char *at = rs_sqlite_skip_blank(*p);

        if (sqlite3_strnicmp(at, word, (int)n) != 0)
                return false;
        unsigned char after = (unsigned char)at[n];
        if (after == '_' || after >= 0x80 || (after >= '0' && after <= '9') ||
            ((after | 0x20) >= 'a' && (after | 0x20) <= 'z'))
                return false;
        *p = at + n;
        return true;
}

enum rs_sqlite_kind rs_sqlite_kind_of(const char *sql)
{
        const char *p = sql;

        if (take_word(&p, "pragma"))
                return RS_SQLITE_PRAGMA;
        if (take_word(&p, "begin") || take_word(&p, "commit") || take_word(&p, "end"))
                return RS_SQLITE_TRANSACTION;
        if (take_word(&p, "rollback")) {
                take_word(&p, "transaction");
                return take_word(&p, "to") ? RS_SQLITE_PLAIN : RS_SQLITE_TRANSACTION; /* to a savepoint is fine */
        }
        return RS_SQLITE_PLAIN;
}
