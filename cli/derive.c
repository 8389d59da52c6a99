/* SPDX-License-Identifier: MIT */

/* A table of rows made from JSON. Each column is a path; the whole row is one statement: insert ... select
 * json_extract(b, path), ... on conflict(key) do update. The statement only takes objects, so that its count of changes
 * says whether there was a row; why there was none is looked into afterwards, in the rare case. json_extract() rather
 * than ->>, which SQLite has only since 3.38. */

#include "derive.h"

#include <string.h>

static void add_quoted(struct text *t, const char *s, size_t size, char quote)
{
        text_putc(t, quote);
        for (size_t i = 0; i < size; i++) {
                if (s[i] == quote)
                        text_putc(t, quote);
                text_putc(t, s[i]);
        }
        text_putc(t, quote);
}

/* "user.tags[0]" as the path '$."user"."tags"[0]', quoted for SQL. False if it is none. */
static bool add_path(struct text *t, const char *path, size_t size)
{
        TEXT(json);
        text_putc(&json, '$');
        for (size_t i = 0; i < size;) {
                size_t n = 0;
                while (i + n < size && path[i + n] != '.' && path[i + n] != '[')
                        n++;
                if (n == 0 || memchr(path + i, '"', n))
                        return false;
                text_puts(&json, ".\"");
                text_add(&json, path + i, n);
                text_putc(&json, '"');
                i += n;
                while (i < size && path[i] == '[') {
                        size_t digits = strspn(path + i + 1, "0123456789");
                        if (digits == 0 || i + 1 + digits >= size || path[i + 1 + digits] != ']')
                                return false;
                        text_add(&json, path + i, digits + 2);
                        i += digits + 2;
                }
                if (i < size && (path[i] != '.' || i + 1 == size))
                        return false;
                i += i < size;
        }
        add_quoted(t, text_string(&json), json.len, '\'');
        return true;
}

/* The pieces of SQL that grow column by column. */
struct parts {
        struct text columns, values, updates, key_value;
};

static void parts_done(struct parts *p)
{
        text_done(&p->columns);
        text_done(&p->values);
        text_done(&p->updates);
        text_done(&p->key_value);
}

/* One item of --columns: NAME, a.b (named a_b), or NAME=a.b. */
static bool add_column(struct derive *d, struct parts *p, const char *item, size_t size)
{
        const char *equals = memchr(item, '=', size);
        const char *path = equals ? equals + 1 : item;
        size_t name_size = equals ? (size_t)(equals - item) : size, path_size = (size_t)(item + size - path);
        size_t at = d->names.len;
        TEXT(value);
        text_puts(&value, "json_extract(b, ");
        if (name_size == 0 || path_size == 0 || !add_path(&value, path, path_size))
                return false;
        text_putc(&value, ')');
        for (size_t i = 0; i < name_size; i++)
                text_putc(&d->names, !equals && strchr(".[]", item[i]) ? '_' : item[i]);
        text_putc(&d->names, '\0');
        if (d->names.failed)
                return true; /* seen later */
        const char *name = d->names.data + at, *separator = at ? ", " : "";
        text_puts(&p->columns, separator);
        add_quoted(&p->columns, name, name_size, '"');
        text_printf(&p->values, "%s%s", separator, text_string(&value));
        text_puts(&p->updates, separator);
        add_quoted(&p->updates, name, name_size, '"');
        text_puts(&p->updates, " = excluded.");
        add_quoted(&p->updates, name, name_size, '"');
        if (strcasecmp(name, d->key) == 0)
                text_puts(&p->key_value, text_string(&value));
        return true;
}

static bool has_name(const struct derive *d, const char *name)
{
        for (const char *p = d->names.data; p && p < d->names.data + d->names.len; p += strlen(p) + 1)
                if (strcasecmp(p, name) == 0)
                        return true;
        return false;
}

/* Upper and lower case are the same to SQLite. */
static const char *named_twice(const struct derive *d)
{
        const char *end = d->names.data + d->names.len;
        for (const char *p = d->names.data; p && p < end; p += strlen(p) + 1)
                for (const char *q = p + strlen(p) + 1; q < end; q += strlen(q) + 1)
                        if (strcasecmp(p, q) == 0)
                                return q;
        return NULL;
}

static void write_create(struct derive *d)
{
        text_puts(&d->create, "create table if not exists ");
        add_quoted(&d->create, d->table, strlen(d->table), '"');
        text_puts(&d->create, " (");
        add_quoted(&d->create, d->key, strlen(d->key), '"');
        text_puts(&d->create, " primary key not null");
        for (const char *p = d->names.data; p < d->names.data + d->names.len; p += strlen(p) + 1) {
                if (strcasecmp(p, d->key) == 0)
                        continue;
                text_puts(&d->create, ", ");
                add_quoted(&d->create, p, strlen(p), '"');
        }
        if (d->own_time)
                text_puts(&d->create, ", fetched_at text default (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))");
        text_putc(&d->create, ')');
}

/* The statement that makes a row of `b`, a column of `source`. The limit keeps SQLite from taking `source` apart: with
 * `b` a constant, all that is made of it would be evaluated before the condition is, and fail for what is not JSON. */
static void write_insert(struct derive *d, const struct parts *p, const char *source, struct text *t)
{
        text_puts(t, "insert into ");
        add_quoted(t, d->table, strlen(d->table), '"');
        text_printf(t, " (%s%s) select %s%s from (%s limit 1) where", text_string(&p->columns),
                    d->own_time ? ", fetched_at" : "", text_string(&p->values), d->own_time ? ", ?2" : "", source);
        text_printf(t, " case when json_valid(b) then json_type(b) = 'object' and %s is not null end",
                    text_string(&p->key_value));
        text_puts(t, " on conflict (");
        add_quoted(t, d->key, strlen(d->key), '"');
        text_printf(t, ") do update set %s%s", text_string(&p->updates),
                    d->own_time ? ", fetched_at = excluded.fetched_at" : "");
}

static int init(struct derive *d, struct parts *p, const char *columns, struct text *problem)
{
        if (strcasecmp(d->table, "fetch") == 0 || strcasecmp(d->table, "run") == 0 ||
            strncasecmp(d->table, "sqlite_", 7) == 0) {
                text_printf(problem, "--table %s: this name is taken", d->table);
                return -EINVAL;
        }
        for (const char *item = columns; item;) {
                size_t size = strcspn(item, ",");
                if (!add_column(d, p, item, size)) {
                        text_printf(problem, "--columns: '%.*s' is not NAME, a.b.c or NAME=a.b[0].c", (int)size, item);
                        return -EINVAL;
                }
                item = item[size] ? item + size + 1 : NULL;
        }
        const char *twice = named_twice(d);
        if (twice) {
                text_printf(problem, "--columns: two columns are named '%s'; NAME=a.b gives another name", twice);
                return -EINVAL;
        }
        if (!has_name(d, d->key)) {
                text_printf(problem, "--key %s: is not one of --columns%s", d->key,
                            strcmp(d->key, "id") == 0 ? " (id is the key unless --key says another)" : "");
                return -EINVAL;
        }
        d->own_time = !has_name(d, "fetched_at");
        write_create(d);
        write_insert(d, p, "select null as b where ?1 is null", &d->check);
        write_insert(d, p, "select ?1 as b", &d->from_body);
        write_insert(d, p, "select body as b from fetch where url = ?1", &d->from_stored);
        bool failed = d->names.failed || p->columns.failed || p->values.failed || p->updates.failed ||
                      p->key_value.failed || d->create.failed || d->check.failed || d->from_body.failed ||
                      d->from_stored.failed;
        return failed ? -ENOMEM : 0;
}

int derive_init(struct derive *d, const char *table, const char *key, const char *columns, struct text *ret_problem)
{
        struct parts p RESHA_CLEANUP(parts_done) = { .columns = { .len = 0 } };
        *d = (struct derive){ .table = table, .key = key };
        return init(d, &p, columns, ret_problem);
}

void derive_done(struct derive *d)
{
        text_done(&d->names);
        text_done(&d->create);
        text_done(&d->check);
        text_done(&d->from_body);
        text_done(&d->from_stored);
}

static int add_missing_column(const struct derive *d, resha_sqlite_tx *tx, const char *name)
{
        resha_rows *rows RESHA_CLEANUP(resha_rows_freep) = NULL;
        int rc = resha_sqlite_tx_query(tx, "select 1 from pragma_table_info(?1) where name = ?2 collate nocase",
                                       RESHA_VALUES(RESHA_TEXT(d->table), RESHA_TEXT(name)), &rows);
        if (rc < 0 || resha_rows_count(rows))
                return rc;
        TEXT(sql);
        text_puts(&sql, "alter table ");
        add_quoted(&sql, d->table, strlen(d->table), '"');
        text_puts(&sql, " add column ");
        add_quoted(&sql, name, strlen(name), '"');
        return sql.failed ? -ENOMEM : resha_sqlite_tx_execute(tx, text_string(&sql), NULL, 0, NULL);
}

/* Runs one of the inserts; *ret_rows: how many it made, 0 or 1. */
static int insert(const struct derive *d, resha_sqlite_tx *tx, const struct text *sql, resha_value source,
                  const char *now, int64_t *ret_rows)
{
        const resha_value values[] = { source, RESHA_TEXT(now) };
        int rc = resha_sqlite_tx_execute(tx, text_string(sql), values, d->own_time ? 2 : 1, ret_rows);
        if (rc == RESHA_SQLITE_ECONSTRAINT)
                return resha_fail(-EBADMSG, "table %s does not take the row: %s", d->table, resha_error_of(rc)->text);
        return rc;
}

int derive_create(const struct derive *d, resha_sqlite_tx *tx)
{
        int64_t rows;
        int rc = resha_sqlite_tx_execute(tx, text_string(&d->create), NULL, 0, NULL);
        for (const char *p = d->names.data; rc >= 0 && p < d->names.data + d->names.len; p += strlen(p) + 1)
                rc = add_missing_column(d, tx, p);
        if (rc >= 0 && d->own_time)
                rc = add_missing_column(d, tx, "fetched_at");
        return rc < 0 ? rc : insert(d, tx, &d->check, RESHA_NULL, "", &rows);
}

/* Why a body gave no row. */
static int explain(const struct derive *d, resha_sqlite_tx *tx, resha_value body)
{
        resha_rows *rows RESHA_CLEANUP(resha_rows_freep) = NULL;
        int rc = resha_sqlite_tx_query(tx, "select case when json_valid(?1) then json_type(?1) end", &body, 1, &rows);
        if (rc < 0)
                return rc;
        const char *type = resha_rows_text(rows, 0, 0);
        if (!type)
                return resha_fail(-EBADMSG, "the answer is not JSON");
        if (strcmp(type, "object") != 0)
                return resha_fail(-EBADMSG, "the answer is no JSON object that could be a row, but: %s", type);
        return resha_fail(-EBADMSG, "the answer has no value for the key '%s'", d->key);
}

int derive_body(const struct derive *d, resha_sqlite_tx *tx, const char *body, size_t size, const char *now)
{
        int64_t rows = 0;
        int rc = insert(d, tx, &d->from_body, RESHA_TEXT_N(body, size), now, &rows);
        return rc < 0 || rows ? rc : explain(d, tx, RESHA_TEXT_N(body, size));
}

int derive_stored(const struct derive *d, resha_sqlite_tx *tx, const char *url, const char *now)
{
        int64_t rows = 0;
        int rc = insert(d, tx, &d->from_stored, RESHA_TEXT(url), now, &rows);
        return rc < 0 || rows ? rc : resha_fail(-EBADMSG, "the stored answer makes no row of table %s", d->table);
}
