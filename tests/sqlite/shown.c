/* SPDX-License-Identifier: MIT */
/* What a database and its calls say of themselves. */

#include "common.h"
#include "internal.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <resha/alloc.h>
#include <resha/inspect.h>
#include <resha/stats.h>

static void text_free(char **text)
{
        resha_free(*text);
}

TASK(figures_of_a_database)
{
        char *text RESHA_CLEANUP(text_free) = NULL;
        resha_sqlite *db = open_db(NULL);
        run_sql(db, "create table t (x)");
        for (int i = 0; i < 3; i++)
                ASSERT_OK(resha_sqlite_execute(db, "insert into t values (?)", RESHA_VALUES(RESHA_INT(i)), NULL));
        ASSERT_OK(resha_stats_text(&text, NULL));
        ASSERT_HAS(text, "# TYPE resha_sqlite_calls_total counter\nresha_sqlite_calls_total{loop=\"");
        ASSERT_HAS(text, "\",database=\"in-memory database\"} 5\n"); /* its opening, too */
        ASSERT_HAS(text, "# TYPE resha_sqlite_reused_total counter\nresha_sqlite_reused_total{loop=\"");
        ASSERT_HAS(text, "\",database=\"in-memory database\"} 2\n");
        resha_sqlite_close(db);
        char *later RESHA_CLEANUP(text_free) = NULL;
        ASSERT_OK(resha_stats_text(&later, NULL));
        ASSERT_PTR(strstr(later, "\nresha_sqlite_calls{"), NULL); /* but what was counted stays */
        ASSERT_HAS(later, "\",database=\"in-memory database\"} 5\n");
        return 0;
}

static const char ENDLESS[] = "/* a comment */ with recursive\n\tn (i) as (select 1 union all select i + 1 from n) "
                              "select count(*) from n where i <> 'a secret'";

static int counts(void *arg)
{
        int rc = resha_sqlite_execute(arg, ENDLESS, NULL, 0, NULL);
        return rc == -ECANCELED ? 0 : rc;
}

static int counts_two(void *arg)
{
        int rc = resha_sqlite_execute(arg, "update t set name = 'a secret'", NULL, 0, NULL);
        return rc == -ECANCELED ? 0 : rc;
}

static void dump(char *text, size_t size)
{
        const char *path = temp_path("dump");
        int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        ASSERT_TRUE(fd >= 0);
        ASSERT_OK(resha_dump(fd));
        ssize_t n = pread(fd, text, size - 1, 0);
        close(fd);
        ASSERT_TRUE(n > 0);
        text[n] = '\0';
}

TASK(doing_is_the_beginning_of_the_statement_without_its_texts)
{
        static char text[64 * 1024];
        if (test_is_sim())
                test_skip("calls run inline");
        resha_sqlite *db = open_db(NULL);
        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        resha_spawn(&g, counts, db);
        resha_spawn(&g, counts_two, db);
        ASSERT_OK(resha_sleep(RESHA_MS(5)));
        dump(text, sizeof text);
        ASSERT_HAS(text, "sqlite with recursive n (i) as (select ? union all select i + ? fro...");
        ASSERT_HAS(text, "sqlite update t set name = ...");
        ASSERT_PTR(strstr(text, "secret"), NULL);
        ASSERT_OK(resha_group_end(&g, 0));
        resha_sqlite_close(db);
        return 0;
}
