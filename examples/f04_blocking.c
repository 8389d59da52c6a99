/* SPDX-License-Identifier: MIT */
/* F4: a blocking database driver inside a task stops everybody; resha's SQLite works on a thread of its own. */
#include <sqlite3.h>
#include <stdio.h>

#include <resha/resha.h>
#include <resha/sqlite.h>

/* A query that takes a while. */
#define COUNTING \
        "with recursive n(i) as (select 1 union all select i + 1 from n where i < 3000000) select count(*) from n"

static int tick(void *arg)
{
        int *ticks = arg, rc;

        while ((rc = resha_sleep(RESHA_MS(10))) >= 0)
                ++*ticks;
        return rc;
}

static int with_the_driver(void)
{
        sqlite3 *db = NULL;
        int code = sqlite3_open(":memory:", &db);

        if (code == SQLITE_OK)
                code = sqlite3_exec(db, COUNTING, NULL, NULL, NULL); /* the loop stands still */
        sqlite3_close(db);
        return code == SQLITE_OK ? 0 : resha_fail(-EIO, "%s", sqlite3_errstr(code));
}

static int with_resha(void)
{
        resha_sqlite *db RESHA_CLEANUP(resha_sqlite_closep) = NULL;
        resha_rows *rows RESHA_CLEANUP(resha_rows_freep) = NULL;

        int rc = resha_sqlite_open(":memory:", NULL, &db);
        return rc < 0 ? rc : resha_sqlite_query(db, COUNTING, NULL, 0, &rows); /* only this task waits */
}

static int count_ticks(const char *what, int (*work)(void))
{
        int ticks = 0;

        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        resha_spawn(&g, tick, &ticks);
        int rc = resha_yield();
        if (rc >= 0)
                rc = work();
        printf("%s: another task ran %d times meanwhile\n", what, ticks);
        return resha_group_end(&g, rc);
}

static int program(void *arg)
{
        int rc = count_ticks("blocking driver", with_the_driver);

        (void)arg;
        return rc < 0 ? rc : count_ticks("resha's module ", with_resha);
}

int main(void)
{
        return resha_main(program, NULL);
}
