/* SPDX-License-Identifier: MIT */
/* Files in the simulated world: whatever is cancelled or fails, wherever it does, a file is what it was or what it was
 * to be, nothing is left beside it, and no descriptor. */

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scenario.h"

enum { LARGE = (4 << 20) + 100 }; /* in two pieces, between which a cancel is seen */

static char folder[] = "/tmp/resha-sim-file-XXXXXX";
static char large[LARGE];
static unsigned descriptors_before;

static unsigned count(const char *path)
{
        DIR *d = opendir(path);
        unsigned n = 0;

        while (d && readdir(d))
                n++;
        closedir(d);
        return n;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
        (void)st, (void)kind;
        return ftw->level == 0 ? 0 : remove(path);
}

static const char *in_folder(const char *name, char path[static 64])
{
        snprintf(path, 64, "%s/%s", folder, name);
        return path;
}

static void put_old(const char *name)
{
        char path[64];
        int fd = open(in_folder(name, path), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        ASSERT_EQ(write(fd, "old", 3), 3);
        close(fd);
}

/* The first and the last byte, and the size: all that tells one content from another here. */
static int64_t sum_of(const char *name)
{
        char path[64], first = 0, last = 0;
        struct stat st;
        int fd = open(in_folder(name, path), O_RDONLY | O_CLOEXEC);

        if (fd < 0)
                return -1;
        bool good = fstat(fd, &st) == 0 && pread(fd, &first, 1, 0) == 1 && pread(fd, &last, 1, st.st_size - 1) == 1;
        close(fd);
        return good ? st.st_size * 65536 + first * 256 + last : -2;
}

static bool is_whole(const char *name)
{
        int64_t sum = sum_of(name);

        return sum == -1 || sum == 3 * 65536 + 'o' * 256 + 'd' || sum == LARGE * INT64_C(65536) + 'n' * 256 + 'n';
}

static int read_back(void *arg)
{
        const char *path = arg;
        void *data;
        size_t size;
        int rc = resha_file_load(path, 0, &data, &size);

        if (rc < 0)
                return rc == -ENOENT ? 0 : rc;
        resha_test_expect(size == 3 || size == LARGE);
        resha_test_expect(((char *)data)[size] == 0);
        resha_free(data);
        return 0;
}

static int write_and_read(const char *path)
{
        resha_file *f RESHA_CLEANUP(resha_file_closep) = NULL;
        char back[8];
        int rc = resha_file_open(path, O_RDWR | O_CREAT, 0600, &f);

        if (rc == 0)
                rc = resha_file_write(f, "old", 3, 0, NULL);
        ssize_t n = rc < 0 ? rc : resha_file_read(f, back, sizeof back, 0);
        if (n < 0)
                return (int)n;
        resha_test_expect(n == 3);
        rc = resha_file_sync(f);
        if (rc < 0)
                return rc;
        resha_file *whole = f;
        f = NULL;
        return resha_file_close(whole);
}

static int list(void)
{
        resha_dir *d RESHA_CLEANUP(resha_dir_closep) = NULL;
        resha_dir_entry e;
        int rc = resha_dir_open(folder, &d);

        while (rc >= 0 && (rc = resha_dir_next(d, &e)) > 0)
                ;
        return rc;
}

static int program(void *unused)
{
        static const resha_save_opts unsynced = { .no_sync = true };
        char a[64], b[64], c[64];
        RESHA_GROUP(g);

        (void)unused;
        nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
        put_old("a");
        resha_group_begin(&g, NULL);
        resha_spawn(&g, read_back, (void *)(uintptr_t)in_folder("a", a));
        int rc = resha_file_save(a, large, LARGE, &unsynced);
        if (rc == 0)
                rc = resha_file_copy(a, in_folder("b", b), &unsynced, NULL);
        if (rc == 0)
                rc = write_and_read(in_folder("c", c));
        if (rc == 0)
                rc = list();
        return resha_group_end(&g, rc);
}

static void check(void *unused, int rc, const resha_test_trial *t)
{
        unsigned files;

        (void)unused, (void)rc, (void)t;
        resha_test_expect(is_whole("a") && sum_of("a") >= 0);
        resha_test_expect(is_whole("b"));
        files = 1u + (sum_of("b") != -1) + (sum_of("c") != -1);
        resha_test_expect(count(folder) == 2 + files);
        resha_test_expect(count("/proc/self/fd") == descriptors_before);
}

TEST(files_are_whole_and_nothing_is_left_wherever_it_fails)
{
        memset(large, 'n', sizeof large);
        if (!mkdtemp(folder))
                FAIL("mkdtemp: %m");
        descriptors_before = count("/proc/self/fd");
        run_scenario("files", program, &(resha_test_opts){ .seeds = 4, .check = check, .most = 40 });
        nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
        rmdir(folder);
}
