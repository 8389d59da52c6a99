/* SPDX-License-Identifier: MIT */
/* Opening, and what may be wrong with a file: one clear line each, and nothing changed. */

#include "common.h"

#include <dirent.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static void write_file(const char *path, const char *text)
{
        FILE *f = fopen(path, "w");

        if (!f || fputs(text, f) < 0 || fclose(f) != 0)
                FAIL("cannot write %s: %m", path);
}

/* The text of why it does not open. */
static const char *not_opened(const char *path, const resha_sqlite_opts *opts, int code)
{
        resha_sqlite *db = NULL;
        int rc = resha_sqlite_open(path, opts, &db);

        ASSERT_EQ(rc, code);
        ASSERT_TRUE(db == NULL);
        return text_of(rc);
}

TASK(settings_are_as_stated)
{
        const char *path = temp_path("new.db");
        resha_sqlite *db = open_db(path);

        ASSERT_STR(all(db, "pragma journal_mode"), "wal");
        ASSERT_STR(all(db, "pragma synchronous"), "1");
        ASSERT_STR(all(db, "pragma foreign_keys"), "1");
        resha_sqlite_close(db);
        ASSERT_OK(resha_sqlite_open(path, &(resha_sqlite_opts){ .sync_full = true }, &db));
        ASSERT_STR(all(db, "pragma synchronous"), "2");
        resha_sqlite_closep(&db);
        ASSERT_TRUE(db == NULL);
        resha_sqlite_closep(&db);
        resha_sqlite_close(NULL);
        return 0;
}

TASK(what_was_stored_is_there_again)
{
        const char *path = temp_path("again.db"), *wal = temp_path("again.db-wal");
        resha_sqlite *db = open_db(path);

        run_sql(db, "create table t (a)");
        run_sql(db, "insert into t values (42)");
        ASSERT_EQ(access(wal, F_OK), 0);
        resha_sqlite_close(db);
        ASSERT_EQ(access(wal, F_OK), -1); /* folded into the file */
        db = open_db(path);
        ASSERT_EQ(one_int(db, "select a from t"), 42);
        resha_sqlite_close(db);
        return 0;
}

TASK(directories_and_missing_folders)
{
        const char *folder = temp_path("folder"), *inside = temp_path("nowhere/x.db");

        mkdir(folder, 0700);
        ASSERT_HAS(not_opened(folder, NULL, RESHA_SQLITE_ECANTOPEN),
                   "/folder: unable to open database file (Is a directory)");
        ASSERT_HAS(not_opened(inside, NULL, RESHA_SQLITE_ECANTOPEN),
                   "x.db: unable to open database file (no such folder, or");
        ASSERT_EQ(access(inside, F_OK), -1);
        return 0;
}

TASK(must_exist_creates_nothing)
{
        const char *path = temp_path("absent.db");

        ASSERT_HAS(not_opened(path, &(resha_sqlite_opts){ .must_exist = true }, RESHA_SQLITE_ECANTOPEN),
                   "(No such file or directory)");
        not_opened(path, &(resha_sqlite_opts){ .read_only = true }, RESHA_SQLITE_ECANTOPEN);
        ASSERT_EQ(access(path, F_OK), -1);
        return 0;
}

TASK(bad_arguments)
{
        resha_sqlite_opts reserved = { 0 };

        reserved._reserved[7] = 1;
        ASSERT_HAS(not_opened("", NULL, -EINVAL), "path");
        ASSERT_HAS(not_opened(NULL, NULL, -EINVAL), "path");
        ASSERT_HAS(not_opened(":memory:", &reserved, -EINVAL), "reserved word");
        ASSERT_HAS(not_opened(":memory:", &(resha_sqlite_opts){ .busy_timeout = RESHA_NS(-1) }, -EINVAL),
                   "busy_timeout");
        ASSERT_HAS(not_opened(":memory:", &(resha_sqlite_opts){ .statements = 4097 }, -EINVAL), "statements");
        return 0;
}

TASK(what_is_not_a_database_is_left_alone)
{
        const char *path = temp_path("notes.txt");
        struct stat before, after;

        write_file(path, "These are my notes, which are long enough to look like something, if not like a database.\n");
        stat(path, &before);
        ASSERT_HAS(not_opened(path, NULL, RESHA_SQLITE_ENOTADB),
                   "notes.txt: file is not a database; it is left as it is");
        ASSERT_HAS(not_opened(path, &(resha_sqlite_opts){ .read_only = true }, RESHA_SQLITE_ENOTADB), "not a database");
        stat(path, &after);
        ASSERT_EQ(before.st_size, after.st_size);
        ASSERT_EQ(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
        return 0;
}

TASK(read_only)
{
        const char *path = temp_path("ro.db");
        resha_sqlite *db = open_db(path);

        run_sql(db, "create table t (a)");
        resha_sqlite_close(db);
        ASSERT_OK(resha_sqlite_open(path, &(resha_sqlite_opts){ .read_only = true }, &db));
        ASSERT_EQ(one_int(db, "select count(*) from t"), 0);
        int rc = resha_sqlite_execute(db, "insert into t values (1)", NULL, 0, NULL);
        ASSERT_EQ(rc, RESHA_SQLITE_EREADONLY);
        ASSERT_HAS(text_of(rc), "attempt to write a readonly database");
        resha_sqlite_close(db);
        return 0;
}

/* "file:" would be an URI to SQLite; here it is the name of a file. */
TASK(a_path_is_a_path)
{
        char cwd[4096];

        ASSERT_TRUE(getcwd(cwd, sizeof cwd) != NULL);
        const char *inside = temp_path("file:x.db?mode=memory");
        char *folder = resha_strdup(inside);
        *strrchr(folder, '/') = '\0';
        ASSERT_EQ(chdir(folder), 0);
        resha_sqlite *db = open_db("file:x.db?mode=memory");
        run_sql(db, "create table t (a)");
        resha_sqlite_close(db);
        ASSERT_EQ(chdir(cwd), 0);
        ASSERT_EQ(access(inside, F_OK), 0);
        resha_free(folder);
        return 0;
}

static char file_path[256], folder_path[256];

static int open_unwritable(void *arg)
{
        (void)arg;
        ASSERT_HAS(not_opened(file_path, NULL, RESHA_SQLITE_EREADONLY),
                   "kept.db: the database file is not writable: check its permissions, or open it read_only");
        const char *text = not_opened(folder_path, NULL, RESHA_SQLITE_ECANTOPEN);
        ASSERT_HAS(text, "new.db: unable to open database file (no such folder, or no permission to create the file)");
        return 0;
}

/* Permission bits do not bind root: as somebody else, in a process of its own. */
static int as_nobody(void *arg)
{
        if (geteuid() == 0 && (setegid(65534) < 0 || seteuid(65534) < 0))
                return 1;
        return resha_run(open_unwritable, arg, &(resha_run_opts){ .backend = test_backend() }) < 0;
}

TEST(not_writable)
{
        struct test_child child;
        const char *folder = temp_path("locked");

        mkdir(folder, 0755);
        snprintf(file_path, sizeof file_path, "%s/kept.db", folder);
        snprintf(folder_path, sizeof folder_path, "%s/new.db", folder);
        sqlite3 *raw = NULL;
        ASSERT_EQ(sqlite3_open(file_path, &raw), SQLITE_OK);
        ASSERT_EQ(sqlite3_exec(raw, "create table t (a)", NULL, NULL, NULL), SQLITE_OK);
        sqlite3_close(raw);
        chmod(file_path, 0444);
        chmod(folder, 0555);
        char *up = resha_strdup(folder);
        *strrchr(up, '/') = '\0';
        chmod(up, 0755);
        test_child(as_nobody, NULL, &child);
        chmod(folder, 0755);
        resha_free(up);
        if (child.status != 0)
                FAIL("status %x: %s", (unsigned)child.status, child.text);
}

TASK(page_limit_is_disk_full)
{
        const char *path = temp_path("limit.db");
        resha_sqlite *db = open_db(path);

        run_sql(db, "create table t (a)");
        run_sql(db, "pragma max_page_count = 20");
        int rc = resha_sqlite_execute(db, "insert into t values (zeroblob(200000))", NULL, 0, NULL);
        ASSERT_EQ(rc, RESHA_SQLITE_EFULL);
        ASSERT_HAS(text_of(rc), "limit.db: database or disk is full; make room and try again; SQL: insert into t");
        run_sql(db, "insert into t values ('small')");
        ASSERT_EQ(one_int(db, "select count(*) from t"), 1);
        resha_sqlite_close(db);
        return 0;
}

static int fill_disk(void *arg)
{
        resha_sqlite *db = open_db(arg);
        int rc = 0;

        run_sql(db, "create table t (a)");
        for (int i = 0; i < 1000 && rc >= 0; i++)
                rc = resha_sqlite_execute(db, "insert into t values (randomblob(5000))", NULL, 0, NULL);
        ASSERT_EQ(rc, RESHA_SQLITE_EFULL);
        ASSERT_HAS(text_of(rc), "database or disk is full");
        ASSERT_TRUE(one_int(db, "select count(*) from t") > 3); /* what was stored before is there */
        resha_sqlite_close(db);
        return 0;
}

static int no_room_at_all(void *arg)
{
        ASSERT_HAS(not_opened(arg, NULL, RESHA_SQLITE_EFULL), "(No space left on device); make room and try again");
        return 0;
}

/* The real thing, on a file system of 300 KB. */
TEST(disk_full)
{
        const char *folder = temp_path("disk");

        mkdir(folder, 0700);
        if (mount("tmpfs", folder, "tmpfs", 0, "size=300k") < 0)
                test_skip("cannot mount a small file system");
        RUN(fill_disk, (void *)(intptr_t)temp_path("disk/full.db"));
        umount2(folder, MNT_DETACH);
        /* Not even room for the shared memory file, for which SQLite has another code. */
        ASSERT_EQ(mount("tmpfs", folder, "tmpfs", 0, "size=16k"), 0);
        RUN(no_room_at_all, (void *)(intptr_t)temp_path("disk/none.db"));
        umount2(folder, MNT_DETACH);
}

/* Another connection holds the lock. */
static sqlite3 *lock(const char *path)
{
        sqlite3 *raw = NULL;

        ASSERT_EQ(sqlite3_open(path, &raw), SQLITE_OK);
        ASSERT_EQ(sqlite3_exec(raw, "begin immediate", NULL, NULL, NULL), SQLITE_OK);
        return raw;
}

TASK(a_lock_that_stays_is_busy)
{
        const char *path = temp_path("busy.db");
        resha_sqlite *db = open_db(path);

        run_sql(db, "create table t (a)");
        resha_sqlite_close(db);
        ASSERT_OK(resha_sqlite_open(path, &(resha_sqlite_opts){ .busy_timeout = RESHA_MS(50) }, &db));
        sqlite3 *raw = lock(path);
        int rc = resha_sqlite_execute(db, "insert into t values (1)", NULL, 0, NULL);
        ASSERT_EQ(rc, RESHA_SQLITE_EBUSY);
        ASSERT_HAS(text_of(rc), "busy.db: database is locked by another connection for longer than busy_timeout");
        resha_instant start = resha_now();
        ASSERT_EQ(resha_sqlite_batch(db, "insert into t values (1)", NULL, 0, 1, NULL), RESHA_SQLITE_EBUSY);
        ASSERT_TRUE(test_is_sim() || test_ms_since(start) >= 50); /* each call waits anew */
        ASSERT_EQ(one_int(db, "select count(*) from t"), 0);      /* readers do not wait */
        sqlite3_close(raw);
        run_sql(db, "insert into t values (1)");
        resha_sqlite_close(db);
        return 0;
}

TEST(outside_a_task)
{
        resha_sqlite *db = NULL;

        ASSERT_EQ(resha_sqlite_open(":memory:", NULL, &db), -EPERM);
        ASSERT_TRUE(db == NULL);
}
