/* SPDX-License-Identifier: MIT */
/* F1: create a table; again is no error.   f1 stories.db */
#include <stdio.h>

#include <resha/resha.h>
#include <resha/sqlite.h>

static int create(const char *path)
{
        resha_sqlite *db RESHA_CLEANUP(resha_sqlite_closep) = NULL;

        int rc = resha_sqlite_open(path, NULL, &db);
        if (rc < 0)
                return rc;
        return resha_sqlite_script(db, "create table if not exists stories ("
                                       "  id integer primary key,"
                                       "  title text not null,"
                                       "  url text,"
                                       "  score integer,"
                                       "  fetched_at text default current_timestamp)");
}

static int program(void *arg)
{
        for (int i = 1; i <= 2; i++) {
                int rc = create(arg);
                if (rc < 0)
                        return rc;
                printf("%s: table stories is there\n", i == 1 ? "first" : "again");
        }
        return 0;
}

int main(int argc, char **argv)
{
        return resha_main(program, argc > 1 ? argv[1] : "stories.db");
}
