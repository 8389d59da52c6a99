/* SPDX-License-Identifier: MIT */
/* F3: the whole pipeline: the top stories, twenty of them, five at a time, into SQLite; the best five by score.
 * f3 https://hacker-news.firebaseio.com stories.db */
#include <stdio.h>

#include <resha/http.h>
#include <resha/resha.h>
#include <resha/sqlite.h>

enum { STORIES = 20, AT_ONCE = 5 };

struct pipeline {
        const char *base, *path;
        resha_http *session;
        resha_sqlite *db;
};

struct story {
        struct pipeline *p;
        int64_t id;
};

static int get(struct pipeline *p, const char *path, resha_response **ret_response)
{
        char url[256];

        snprintf(url, sizeof url, "%s/v0/%s", p->base, path);
        return resha_http_get(p->session, url, ret_response);
}

/* SQLite takes the JSON apart. */
static int fetch_and_store(void *arg)
{
        struct story *s = arg;
        resha_response *r RESHA_CLEANUP(resha_response_freep) = NULL;
        char path[64];
        size_t size;

        snprintf(path, sizeof path, "item/%lld.json", (long long)s->id);
        int rc = get(s->p, path, &r);
        if (rc < 0)
                return rc;
        const char *body = resha_response_body(r, &size);
        return resha_sqlite_execute(s->p->db,
                                    "insert or replace into stories (id, title, url, score)"
                                    " select value ->> 'id', value ->> 'title', value ->> 'url', value ->> 'score'"
                                    " from (select ? as value)",
                                    RESHA_VALUES(RESHA_TEXT_N(body, size)), NULL);
}

static int top_ids(struct pipeline *p, resha_rows **ret_rows)
{
        resha_response *r RESHA_CLEANUP(resha_response_freep) = NULL;
        size_t size;

        int rc = get(p, "topstories.json", &r);
        if (rc < 0)
                return rc;
        const char *body = resha_response_body(r, &size);
        return resha_sqlite_query(p->db, "select value from json_each(?) limit ?",
                                  RESHA_VALUES(RESHA_TEXT_N(body, size), RESHA_INT(STORIES)), ret_rows);
}

static int print_best(resha_sqlite *db)
{
        resha_rows *rows RESHA_CLEANUP(resha_rows_freep) = NULL;

        int rc = resha_sqlite_query(db, "select score, title from stories order by score desc, id limit 5", NULL, 0,
                                    &rows);
        for (size_t i = 0; rc >= 0 && i < resha_rows_count(rows); i++)
                printf("  [%lld] %s\n", (long long)resha_rows_int(rows, i, 0), resha_rows_text(rows, i, 1));
        return rc;
}

static int run(struct pipeline *p)
{
        resha_rows *ids RESHA_CLEANUP(resha_rows_freep) = NULL;
        struct story stories[STORIES];

        int rc = resha_sqlite_script(p->db, "create table if not exists stories (id integer primary key, title text,"
                                            " url text, score integer, fetched_at text default current_timestamp)");
        if (rc >= 0)
                rc = top_ids(p, &ids);
        if (rc < 0)
                return rc;
        size_t n = resha_rows_count(ids);
        for (size_t i = 0; i < n; i++)
                stories[i] = (struct story){ .p = p, .id = resha_rows_int(ids, i, 0) };
        rc = resha_gather(fetch_and_store, stories, n, sizeof stories[0], &(resha_gather_opts){ .limit = AT_ONCE });
        if (rc < 0)
                return rc;
        printf("Saved %zu stories. Top 5 by score:\n", n);
        return print_best(p->db);
}

static int program(void *arg)
{
        struct pipeline *p = arg;
        resha_http *session RESHA_CLEANUP(resha_http_freep) = NULL;
        resha_sqlite *db RESHA_CLEANUP(resha_sqlite_closep) = NULL;

        int rc = resha_http_new(NULL, &session);
        if (rc >= 0)
                rc = resha_sqlite_open(p->path, NULL, &db);
        if (rc < 0)
                return rc;
        p->session = session;
        p->db = db;
        return run(p);
}

int main(int argc, char **argv)
{
        return resha_main(program,
                          &(struct pipeline){ .base = argc > 1 ? argv[1] : "https://hacker-news.firebaseio.com",
                                              .path = argc > 2 ? argv[2] : "stories.db" });
}
