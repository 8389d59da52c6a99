/* SPDX-License-Identifier: MIT */

/* The ids that fill the {}. JSON is read by SQLite's own functions: a path with [*] becomes a join of json_each()
 * calls, one for each star, with the pieces of the path as parameters, so that nothing of it is taken for SQL. */

#include "ids.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <resha/error.h>
#include <resha/fd.h>

#include "list.h"

enum { MAX_STARS = 8 };

void ids_done(struct ids *ids)
{
        text_done(&ids->bytes);
}

static int add(struct ids *ids, const char *id, size_t size)
{
        text_add(&ids->bytes, id, size);
        text_putc(&ids->bytes, '\0');
        ids->count++;
        return ids->bytes.failed ? -ENOMEM : 0;
}

int ids_next(struct ids *ids, const char **ret_id, size_t *ret_size)
{
        if (ids->next >= ids->bytes.len)
                return 0;
        *ret_id = ids->bytes.data + ids->next;
        *ret_size = strlen(*ret_id);
        ids->next += *ret_size + 1;
        return 1;
}

/* The first column of each row; what is NULL or a blob is no id. */
static int add_rows(struct ids *ids, const resha_rows *rows)
{
        int rc = 0;
        for (size_t r = 0; r < resha_rows_count(rows) && rc >= 0; r++) {
                resha_value v = resha_rows_value(rows, r, 0);
                TEXT(number);
                if (v.type == RESHA_VALUE_INT)
                        text_printf(&number, "%lld", (long long)v.as.integer);
                else if (v.type == RESHA_VALUE_REAL)
                        text_printf(&number, "%.17g", v.as.real);
                if (number.len)
                        rc = add(ids, number.data, number.len);
                else if (v.type == RESHA_VALUE_TEXT)
                        rc = add(ids, v.as.text, strlen(v.as.text));
        }
        return rc;
}

/* The query for a path with `stars` [*] in it; the JSON is ?1, the pieces of the path are ?2, ?3, ... */
static void add_query(struct text *sql, unsigned stars, bool last_is_empty)
{
        unsigned each = stars ? stars : 1;
        bool extract = stars && !last_is_empty;
        text_puts(sql, "select ");
        if (extract)
                text_printf(sql, "case when e%u.type in ('object', 'array') then json_extract(e%u.value, ?%u) end",
                            each, each, each + 2);
        else
                text_printf(sql, "case when e%u.type not in ('object', 'array', 'null') then e%u.value end", each,
                            each);
        text_puts(sql, " from json_each(?1, ?2) e1");
        for (unsigned i = 2; i <= each; i++)
                text_printf(
                        sql,
                        ", json_each(case when e%u.type in ('object', 'array') then e%u.value else '[]' end, ?%u) e%u",
                        i - 1, i - 1, i + 1, i);
}

/* Cuts "$.items[*].id" at its stars: "$.items" and "$.id", each bound as a value. Returns the number of stars, or
 * -EINVAL. */
static int cut_path(const char *path, struct text pieces[MAX_STARS + 1])
{
        int stars = 0;
        if (path[0] != '$')
                return resha_fail(-EINVAL, "--ids %s: must begin with $", path);
        for (const char *start = path, *star;; path = star + 3, stars++) {
                star = strstr(path, "[*]");
                size_t size = star ? (size_t)(star - path) : strlen(path);
                if (stars == MAX_STARS + 1)
                        return resha_fail(-EINVAL, "--ids %s: more than %d [*]", start, MAX_STARS);
                if (path[0] != '$')
                        text_putc(&pieces[stars], '$');
                text_add(&pieces[stars], path, size);
                if (!star)
                        return stars;
        }
}

/* No ids is fine if there is an empty array where they should be. */
static int explain_none(resha_sqlite *db, const resha_value *json_and_path, const char *path, size_t found)
{
        resha_rows *rows RESHA_CLEANUP(resha_rows_freep) = NULL;
        int rc = resha_sqlite_query(db, "select json_type(?1, ?2)", json_and_path, 2, &rows);
        if (rc >= 0 && resha_rows_is_null(rows, 0, 0))
                return resha_fail(-EINVAL, "there is nothing at %s", path);
        if (rc >= 0 && found)
                return resha_fail(-EINVAL, "no numbers or texts at %s; --ids '$[*].id' would name a field of each",
                                  path);
        return rc;
}

/* SQLite's own text would show a statement that is ours. */
static int explain_failure(resha_sqlite *db, const resha_value *json, int error)
{
        resha_rows *rows RESHA_CLEANUP(resha_rows_freep) = NULL;
        int rc = resha_sqlite_query(db, "select json_valid(?1)", json, 1, &rows);
        return rc >= 0 && !resha_rows_int(rows, 0, 0) ? resha_fail(-EBADMSG, "malformed JSON") : error;
}

int ids_add_json(struct ids *ids, resha_sqlite *db, const char *json, size_t size, const char *path)
{
        struct text pieces[MAX_STARS + 1] = { { .len = 0 } };
        resha_value values[MAX_STARS + 2] = { RESHA_TEXT_N(json, size) };
        resha_rows *rows RESHA_CLEANUP(resha_rows_freep) = NULL;
        TEXT(sql);
        uint64_t before = ids->count;
        int stars = cut_path(path ? path : "$", pieces);
        int rc = stars < 0 ? stars : 0;
        if (rc == 0) {
                size_t last = (size_t)stars;
                bool last_is_empty = stars && pieces[last].len == 1;
                size_t n = stars ? last + !last_is_empty : 1;
                for (size_t i = 0; i < n; i++)
                        values[i + 1] = RESHA_TEXT(text_string(&pieces[i]));
                add_query(&sql, (unsigned)stars, last_is_empty);
                rc = sql.failed ? -ENOMEM : resha_sqlite_query(db, sql.data, values, n + 1, &rows);
                if (rc < 0 && rc != -ECANCELED)
                        rc = explain_failure(db, values, rc);
        }
        if (rc >= 0)
                rc = add_rows(ids, rows);
        if (rc >= 0 && ids->count == before)
                rc = explain_none(db, values, path ? path : "$", resha_rows_count(rows));
        for (int i = 0; i <= MAX_STARS; i++)
                text_done(&pieces[i]);
        return rc;
}

/* The whole of a file or of stdin. */
static int read_all(const char *file, struct text *ret)
{
        bool is_stdin = strcmp(file, "-") == 0;
        int fd = is_stdin ? STDIN_FILENO : open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        int rc = 0;
        ssize_t n = 0;
        char buf[16384];
        if (fd < 0)
                return resha_fail(-errno, "%s: %s", file, strerror(errno));
        do {
                rc = resha_fd_wait(fd, POLLIN);
                n = rc < 0 ? 0 : read(fd, buf, sizeof buf);
                if (n > 0)
                        text_add(ret, buf, (size_t)n);
        } while (n > 0 || (n < 0 && errno == EINTR));
        if (n < 0)
                rc = resha_fail(-errno, "%s: %s", is_stdin ? "stdin" : file, strerror(errno));
        if (!is_stdin)
                close(fd);
        return rc < 0 ? rc : ret->failed ? -ENOMEM : 0;
}

static int name_file(const char *file, int rc)
{
        if (rc >= 0 || rc == -ECANCELED || rc == -ENOMEM)
                return rc;
        TEXT(why);
        text_puts(&why, resha_error_of(rc)->text);
        return resha_fail(rc, "%s: %s", file, text_string(&why));
}

int ids_add_file(struct ids *ids, resha_sqlite *db, const char *file, const char *path)
{
        TEXT(all);
        int rc = read_all(file, &all);
        if (rc < 0)
                return rc;
        char *p = all.data;
        if (!p)
                return 0;
        char *end = p + all.len;
        if (all.len >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0)
                p += 3;
        size_t blank = strspn(p, " \t\r\n");
        if (p[blank] == '[' || p[blank] == '{')
                return name_file(file, ids_add_json(ids, db, p, (size_t)(end - p), path));
        if (memchr(p, '\0', (size_t)(end - p)))
                return name_file(file, resha_fail(-EINVAL, "has a 0 byte in it; save it as UTF-8"));
        while (p < end && rc >= 0) {
                char *nl = memchr(p, '\n', (size_t)(end - p));
                char *line = p;
                size_t size = (size_t)((nl ? nl : end) - p);
                if (list_clean(&line, &size))
                        rc = add(ids, line, size);
                p = nl ? nl + 1 : end;
        }
        return rc;
}

/* By a cursor, which refuses what would change the database: a list of ids is no place for that. */
int ids_add_query(struct ids *ids, resha_sqlite *db, const char *sql)
{
        resha_sqlite_cursor *cursor RESHA_CLEANUP(resha_sqlite_cursor_closep) = NULL;
        const resha_rows *rows;
        int rc = resha_sqlite_cursor_open(db, sql, NULL, 0, &cursor);
        while (rc >= 0 && (rc = resha_sqlite_cursor_next(cursor, &rows)) > 0)
                rc = add_rows(ids, rows);
        return rc;
}
