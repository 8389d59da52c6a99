/* SPDX-License-Identifier: MIT */
/* What the tests of the SQLite library share. Failures are those of the test that calls. */

#include "common.h"

#include <dirent.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[128];
static pid_t folder_owner;

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
        (void)st, (void)type, (void)ftw;
        return remove(path);
}

static void remove_folder(void)
{
        if (getpid() == folder_owner)
                nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

const char *temp_path(const char *name)
{
        static char paths[4][256];
        static unsigned next;
        char *path = paths[next++ % 4];

        if (folder_owner != getpid()) {
                /* In memory where it can be: hundreds of files are closed, and each close waits for the disk. */
                const char *base = getenv("TMPDIR");
                if (!base)
                        base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
                snprintf(folder, sizeof folder, "%s/resha-sqlite-XXXXXX", base);
                if (!mkdtemp(folder))
                        FAIL("mkdtemp %s: %m", folder);
                folder_owner = getpid();
                atexit(remove_folder);
        }
        snprintf(path, sizeof paths[0], "%s/%s", folder, name);
        return path;
}

resha_sqlite *open_db(const char *path)
{
        resha_sqlite *db = NULL;

        ASSERT_OK(resha_sqlite_open(path ? path : ":memory:", NULL, &db));
        return db;
}

void run_sql(resha_sqlite *db, const char *sql)
{
        ASSERT_OK(resha_sqlite_execute(db, sql, NULL, 0, NULL));
}

int64_t one_int(resha_sqlite *db, const char *sql)
{
        resha_rows *rows = NULL;

        ASSERT_OK(resha_sqlite_query(db, sql, NULL, 0, &rows));
        ASSERT_TRUE(resha_rows_count(rows) >= 1);
        int64_t value = resha_rows_int(rows, 0, 0);
        resha_rows_free(rows);
        return value;
}

static void print_value(FILE *f, resha_value v)
{
        switch (v.type) {
        case RESHA_VALUE_INT: fprintf(f, "%" PRId64, v.as.integer); break;
        case RESHA_VALUE_REAL: fprintf(f, "%g", v.as.real); break;
        case RESHA_VALUE_TEXT: fprintf(f, "%s", v.as.text); break;
        case RESHA_VALUE_BLOB: fprintf(f, "blob(%zu)", v.size); break;
        default: fprintf(f, "NULL"); break;
        }
}

const char *all(resha_sqlite *db, const char *sql)
{
        static char text[8192];
        resha_rows *rows = NULL;
        FILE *f = fmemopen(text, sizeof text, "w");

        text[0] = '\0'; /* not written by fclose() if nothing else is */

        ASSERT_OK(resha_sqlite_query(db, sql, NULL, 0, &rows));
        for (size_t r = 0; r < resha_rows_count(rows); r++)
                for (size_t c = 0; c < resha_rows_columns(rows); c++) {
                        fputs(c > 0 ? "," : r > 0 ? "|" : "", f);
                        print_value(f, resha_rows_value(rows, r, c));
                }
        fclose(f);
        resha_rows_free(rows);
        return text;
}

const char *text_of(int rc)
{
        return resha_error_of(rc)->text;
}

unsigned thread_count(void)
{
        DIR *d = opendir("/proc/self/task");
        unsigned n = 0;

        for (struct dirent *e; (e = readdir(d));)
                n += e->d_name[0] != '.';
        closedir(d);
        return n;
}

void threads_left(unsigned most)
{
        for (int i = 0; i < 60000 && thread_count() > most; i++)
                usleep(1000);
        ASSERT_TRUE(thread_count() <= most);
}
