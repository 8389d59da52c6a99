/* SPDX-License-Identifier: MIT */
/* E3: the ids of the top stories, and the fields of the first. SQLite's functions read the JSON.
 * e3 https://hacker-news.firebaseio.com */
#include <stdio.h>

#include <resha/http.h>
#include <resha/resha.h>
#include <resha/sqlite.h>

struct hn {
        const char *base;
        resha_http *session;
        resha_sqlite *json; /* a database in memory */
};

/* GET base/v0/path, an array or object: its keys and values as rows. */
static int get(struct hn *hn, const char *path, resha_rows **ret_rows)
{
        resha_response *r RESHA_CLEANUP(resha_response_freep) = NULL;
        char url[256];
        size_t size;

        snprintf(url, sizeof url, "%s/v0/%s", hn->base, path);
        int rc = resha_http_get(hn->session, url, &r);
        if (rc < 0)
                return rc;
        const char *body = resha_response_body(r, &size);
        return resha_sqlite_query(hn->json, "select key, cast(value as text) from json_each(?)",
                                  RESHA_VALUES(RESHA_TEXT_N(body, size)), ret_rows);
}

static int show(struct hn *hn)
{
        resha_rows *ids RESHA_CLEANUP(resha_rows_freep) = NULL;
        resha_rows *story RESHA_CLEANUP(resha_rows_freep) = NULL;
        char path[64];

        int rc = get(hn, "topstories.json", &ids);
        if (rc < 0)
                return rc;
        printf("%zu ids, the first is %s\n", resha_rows_count(ids), resha_rows_text(ids, 0, 1));
        snprintf(path, sizeof path, "item/%s.json", resha_rows_text(ids, 0, 1));
        rc = get(hn, path, &story);
        if (rc < 0)
                return rc;
        for (size_t i = 0; i < resha_rows_count(story); i++)
                printf("%12s  %s\n", resha_rows_text(story, i, 0), resha_rows_text(story, i, 1));
        return 0;
}

static int program(void *arg)
{
        resha_http *session RESHA_CLEANUP(resha_http_freep) = NULL;
        resha_sqlite *json RESHA_CLEANUP(resha_sqlite_closep) = NULL;

        int rc = resha_http_new(NULL, &session);
        if (rc >= 0)
                rc = resha_sqlite_open(":memory:", NULL, &json);
        return rc < 0 ? rc : show(&(struct hn){ arg, session, json });
}

int main(int argc, char **argv)
{
        return resha_main(program, argc > 1 ? argv[1] : "https://hacker-news.firebaseio.com");
}
