/* SPDX-License-Identifier: MIT */
/* F2: insert or replace with bound parameters: quotes need no care.   f2 stories.db */
#include <stdio.h>

#include <resha/resha.h>
#include <resha/sqlite.h>

static int store(resha_sqlite *db, int64_t id, const char *title, int64_t score)
{
        int rc = resha_sqlite_execute(db, "insert or replace into stories (id, title, score) values (?, ?, ?)",
                                      RESHA_VALUES(RESHA_INT(id), RESHA_TEXT(title), RESHA_INT(score)), NULL);
        return rc; /* committed */
}

static int program(void *arg)
{
        resha_sqlite *db RESHA_CLEANUP(resha_sqlite_closep) = NULL;
        resha_rows *rows RESHA_CLEANUP(resha_rows_freep) = NULL;

        int rc = resha_sqlite_open(arg, NULL, &db);
        if (rc >= 0)
                rc = resha_sqlite_script(db,
                                         "create table if not exists stories (id integer primary key, title, score)");
        if (rc >= 0)
                rc = store(db, 1, "It's a \"quoted\" title; drop table stories --", 10);
        if (rc >= 0)
                rc = store(db, 2, "Another", 20);
        if (rc >= 0)
                rc = store(db, 1, "It's a \"quoted\" title; drop table stories --", 11); /* the same row */
        if (rc >= 0)
                rc = resha_sqlite_query(db, "select id, title, score from stories order by id", NULL, 0, &rows);
        for (size_t i = 0; rc >= 0 && i < resha_rows_count(rows); i++)
                printf("%lld  %s  [%lld]\n", (long long)resha_rows_int(rows, i, 0), resha_rows_text(rows, i, 1),
                       (long long)resha_rows_int(rows, i, 2));
        return rc;
}

int main(int argc, char **argv)
{
        return resha_main(program, argc > 1 ? argv[1] : "stories.db");
}
