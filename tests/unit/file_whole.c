/* SPDX-License-Identifier: MIT */
/* Whole files: loaded, saved in one step, copied, temporary ones; and that what fails leaves the old file and nothing
 * beside it. */

#include "folder.h"

#include <sys/resource.h>

struct loaded {
        char *text;
        size_t size;
};

static void loaded_free(struct loaded *l)
{
        resha_free(l->text);
}

static int load(const char *path, size_t limit, struct loaded *l)
{
        void *data = NULL;
        int rc = resha_file_load(path, limit, &data, &l->size);

        resha_free(l->text);
        l->text = data;
        return rc;
}

#define LOADED(l) struct loaded l RESHA_CLEANUP(loaded_free) = { 0 }

/* ---- loading ---- */

TASK(load_of_files_of_all_sizes)
{
        static const size_t sizes[] = { 0, 1, 2, 4095, 4096, 4097, 65536, 100001, (4 << 20) - 1, 4 << 20, 9 << 20 };
        static char text[9 << 20];
        FOLDER(dir);
        LOADED(l);

        for (size_t i = 0; i < sizeof text; i++)
                text[i] = (char)(i * 7 + i / 1000 + 1);
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
                int fd = open(in(&dir, "a"), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
                ssize_t n = write(fd, text, sizes[i]);
                close(fd);
                ASSERT_EQ(n, sizes[i]);
                ASSERT_OK(load(in(&dir, "a"), 0, &l));
                ASSERT_EQ(l.size, sizes[i]);
                ASSERT_EQ(memcmp(l.text, text, l.size), 0);
                ASSERT_EQ(l.text[l.size], 0);
        }
        return 0;
}

TASK(load_has_a_limit)
{
        FOLDER(dir);
        LOADED(l);

        put(in(&dir, "a"), "0123456789");
        ASSERT_OK(load(in(&dir, "a"), 10, &l));
        ASSERT_STR(l.text, "0123456789");
        int rc = load(in(&dir, "a"), 9, &l);
        ASSERT_EQ(rc, -EMSGSIZE);
        ASSERT_PTR(l.text, NULL);
        ASSERT_HAS(said(rc), "more than 9 bytes (raise the limit");
        ASSERT_OK(load(in(&dir, "a"), SIZE_MAX, &l));
        ASSERT_EQ(l.size, 10);
        ASSERT_EQ(truncate(in(&dir, "a"), 1 << 30), 0); /* a hole: refused without being read */
        ASSERT_EQ(load(in(&dir, "a"), 1 << 20, &l), -EMSGSIZE);
        return 0;
}

TASK(load_of_what_says_no_size)
{
        LOADED(l);
        static const char *const endless[] = { "/dev/zero", "/dev/urandom", "/dev/full" };

        ASSERT_OK(load("/proc/self/status", 0, &l));
        ASSERT_HAS(l.text, "Name:");
        ASSERT_EQ(strlen(l.text), l.size);
        ASSERT_OK(load("/proc/self/maps", 0, &l)); /* more than the kernel gives at once */
        ASSERT_EQ(strlen(l.text), l.size);
        ASSERT_EQ(load("/proc/self/maps", 100, &l), -EMSGSIZE);
        ASSERT_OK(load("/dev/null", 0, &l));
        ASSERT_EQ(l.size, 0);
        ASSERT_STR(l.text, "");
        for (size_t i = 0; i < 3; i++)
                ASSERT_EQ(load(endless[i], 100000, &l), -EMSGSIZE);
        ASSERT_EQ(load("/proc/self/mem", 0, &l), -EIO);
        ASSERT_HAS(said(-EIO), "read \"/proc/self/mem\": Input/output error");
        return 0;
}

/* The file says 4096 of each of these. */
TASK(load_of_what_says_too_much)
{
        static const char path[] = "/sys/kernel/mm/transparent_hugepage/enabled";
        LOADED(l);

        if (access(path, R_OK) < 0)
                test_skip("no such file in /sys");
        ASSERT_OK(load(path, 100, &l));
        ASSERT_HAS(l.text, "never");
        ASSERT_TRUE(l.size < 100);
        return 0;
}

TASK(load_of_wrong_paths)
{
        FOLDER(dir);
        LOADED(l);

        ASSERT_EQ(load(in(&dir, "none"), 0, &l), -ENOENT);
        ASSERT_HAS(said(-ENOENT), "/none\": No such file");
        put(in(&dir, "a"), "a");
        ASSERT_EQ(load(in(&dir, "a/b"), 0, &l), -ENOTDIR);
        ASSERT_EQ(load(NULL, 0, &l), -EINVAL);
        ASSERT_EQ(load("", 0, &l), -ENOENT);
        if (getuid() != 0) {
                ASSERT_EQ(chmod(in(&dir, "a"), 0), 0);
                ASSERT_EQ(load(in(&dir, "a"), 0, &l), -EACCES);
        }
        return 0;
}

/* ---- saving ---- */

static mode_t mode_of(const char *path)
{
        struct stat st;

        return lstat(path, &st) < 0 ? 0 : st.st_mode;
}

TASK(save_makes_and_replaces)
{
        FOLDER(dir);
        mode_t mask = umask(027);
        umask(mask);

        ASSERT_OK(resha_file_save(in(&dir, "a"), "one", 3, NULL));
        ASSERT_STR(text_of(in(&dir, "a")), "one");
        ASSERT_EQ(mode_of(in(&dir, "a")) & 07777, 0666 & ~mask);
        ASSERT_EQ(chmod(in(&dir, "a"), 0604), 0);
        ASSERT_OK(resha_file_save(in(&dir, "a"), "three", 5, &(resha_save_opts){ .no_sync = true }));
        ASSERT_STR(text_of(in(&dir, "a")), "three");
        ASSERT_EQ(mode_of(in(&dir, "a")) & 07777, 0604);
        ASSERT_OK(resha_file_save(in(&dir, "a"), "", 0, &(resha_save_opts){ .mode = 0444 }));
        ASSERT_STR(text_of(in(&dir, "a")), "");
        ASSERT_EQ(mode_of(in(&dir, "a")) & 07777, 0444);
        ASSERT_EQ(entries(dir.path), 1);
        return 0;
}

TASK(save_exclusive_replaces_nothing)
{
        static const resha_save_opts exclusive = { .exclusive = true };
        FOLDER(dir);

        ASSERT_OK(resha_file_save(in(&dir, "a"), "one", 3, &exclusive));
        int rc = resha_file_save(in(&dir, "a"), "two", 3, &exclusive);
        ASSERT_EQ(rc, -EEXIST);
        ASSERT_HAS(said(rc), "make \"");
        ASSERT_STR(text_of(in(&dir, "a")), "one");
        ASSERT_EQ(symlink("nowhere", in(&dir, "link")), 0);
        ASSERT_EQ(resha_file_save(in(&dir, "link"), "two", 3, &exclusive), -EEXIST);
        ASSERT_EQ(entries(dir.path), 2);
        return 0;
}

TASK(save_follows_links)
{
        FOLDER(dir);

        ASSERT_EQ(mkdir(in(&dir, "sub"), 0700), 0);
        ASSERT_EQ(symlink("sub/b", in(&dir, "a")), 0);
        ASSERT_EQ(symlink("../c", in(&dir, "sub/b")), 0);
        ASSERT_EQ(symlink(in(&dir, "d"), in(&dir, "c")), 0);
        ASSERT_OK(resha_file_save(in(&dir, "a"), "one", 3, NULL)); /* which leads nowhere yet */
        ASSERT_STR(text_of(in(&dir, "d")), "one");
        ASSERT_OK(resha_file_save(in(&dir, "a"), "two", 3, NULL));
        ASSERT_STR(text_of(in(&dir, "d")), "two");
        ASSERT_TRUE(S_ISLNK(mode_of(in(&dir, "a"))) && S_ISLNK(mode_of(in(&dir, "c"))));
        ASSERT_EQ(symlink("y", in(&dir, "x")) | symlink("x", in(&dir, "y")), 0);
        ASSERT_EQ(resha_file_save(in(&dir, "x"), "two", 3, NULL), -ELOOP);
        ASSERT_EQ(entries(dir.path), 6);
        return 0;
}

TASK(save_leaves_alone_what_is_no_file)
{
        FOLDER(dir);

        ASSERT_EQ(mkfifo(in(&dir, "fifo"), 0600), 0);
        int rc = resha_file_save(in(&dir, "fifo"), "x", 1, NULL);
        ASSERT_EQ(rc, -EINVAL);
        ASSERT_HAS(said(rc), "it is no regular file; write a device by resha_file_open(), a FIFO as a stream");
        ASSERT_EQ(resha_file_save("/dev/null", "x", 1, NULL), -EINVAL);
        ASSERT_TRUE(S_ISCHR(mode_of("/dev/null")));
        ASSERT_EQ(resha_file_save(dir.path, "x", 1, NULL), -EISDIR);
        ASSERT_EQ(resha_file_save(in(&dir, "new/"), "x", 1, NULL), -EISDIR);
        ASSERT_EQ(resha_file_save("/", "x", 1, NULL), -EISDIR);
        ASSERT_EQ(resha_file_save(in(&dir, "no/such"), "x", 1, NULL), -ENOENT);
        ASSERT_HAS(said(-ENOENT), "open the folder of \"");
        ASSERT_EQ(resha_file_save(in(&dir, "a"), "x", 1, &(resha_save_opts){ .mode = 010000 }), -EINVAL);
        ASSERT_EQ(resha_file_save(in(&dir, "a"), "x", 1, &(resha_save_opts){ ._reserved = { 1 } }), -EINVAL);
        ASSERT_EQ(entries(dir.path), 1);
        return 0;
}

TASK(save_in_the_working_folder)
{
        FOLDER(dir);
        char before[4096];

        ASSERT_TRUE(getcwd(before, sizeof before));
        ASSERT_EQ(chdir(dir.path), 0);
        int rc = resha_file_save("a", "one", 3, NULL), put_back = chdir(before);
        ASSERT_OK(rc);
        ASSERT_EQ(put_back, 0);
        ASSERT_STR(text_of(in(&dir, "a")), "one");
        return 0;
}

TASK(save_of_many_pieces)
{
        static char text[9 << 20];
        FOLDER(dir);
        LOADED(l);

        memset(text, 'x', sizeof text);
        ASSERT_OK(resha_file_save(in(&dir, "a"), text, sizeof text, &(resha_save_opts){ .no_sync = true }));
        ASSERT_OK(load(in(&dir, "a"), 0, &l));
        ASSERT_EQ(l.size, sizeof text);
        ASSERT_EQ(memcmp(l.text, text, l.size), 0);
        return 0;
}

/* ---- copying ---- */

TASK(copy_makes_and_replaces)
{
        FOLDER(dir);
        uint64_t bytes = 0;
        mode_t mask = umask(027);
        umask(mask);

        put(in(&dir, "a"), "the contents");
        ASSERT_EQ(chmod(in(&dir, "a"), 0755), 0);
        ASSERT_OK(resha_file_copy(in(&dir, "a"), in(&dir, "b"), NULL, &bytes));
        ASSERT_EQ(bytes, 12);
        ASSERT_STR(text_of(in(&dir, "b")), "the contents");
        ASSERT_EQ(mode_of(in(&dir, "b")) & 07777, 0755 & ~mask);
        put(in(&dir, "c"), "old");
        ASSERT_EQ(chmod(in(&dir, "c"), 0600), 0);
        ASSERT_OK(resha_file_copy(in(&dir, "a"), in(&dir, "c"), NULL, NULL));
        ASSERT_STR(text_of(in(&dir, "c")), "the contents");
        ASSERT_EQ(mode_of(in(&dir, "c")) & 07777, 0600);
        ASSERT_EQ(resha_file_copy(in(&dir, "a"), in(&dir, "c"), &(resha_save_opts){ .exclusive = true }, NULL),
                  -EEXIST);
        ASSERT_EQ(entries(dir.path), 3);
        return 0;
}

TASK(copy_of_what_the_kernel_does_not_copy)
{
        FOLDER(dir);
        LOADED(l);
        uint64_t bytes = 0;

        ASSERT_OK(resha_file_copy("/proc/self/mounts", in(&dir, "a"), NULL, &bytes));
        ASSERT_OK(load(in(&dir, "a"), 0, &l));
        ASSERT_EQ(l.size, bytes);
        ASSERT_HAS(l.text, "proc");
        return 0;
}

TASK(copy_refuses)
{
        FOLDER(dir);

        put(in(&dir, "a"), "abc");
        ASSERT_EQ(link(in(&dir, "a"), in(&dir, "b")), 0);
        ASSERT_EQ(symlink("a", in(&dir, "c")), 0);
        ASSERT_EQ(resha_file_copy(in(&dir, "a"), in(&dir, "a"), NULL, NULL), -EINVAL);
        ASSERT_EQ(resha_file_copy(in(&dir, "a"), in(&dir, "b"), NULL, NULL), -EINVAL);
        ASSERT_EQ(resha_file_copy(in(&dir, "a"), in(&dir, "c"), NULL, NULL), -EINVAL);
        ASSERT_HAS(said(-EINVAL), "it is the file that is to be copied");
        ASSERT_EQ(resha_file_copy(in(&dir, "none"), in(&dir, "d"), NULL, NULL), -ENOENT);
        ASSERT_HAS(said(-ENOENT), "/none\": No such file");
        ASSERT_EQ(resha_file_copy("/dev/zero", in(&dir, "d"), NULL, NULL), -EINVAL);
        ASSERT_HAS(said(-EINVAL), "copy \"/dev/zero\": it is no regular file");
        ASSERT_EQ(resha_file_copy(dir.path, in(&dir, "d"), NULL, NULL), -EISDIR);
        ASSERT_EQ(resha_file_copy(in(&dir, "a"), dir.path, NULL, NULL), -EISDIR);
        ASSERT_EQ(resha_file_copy(in(&dir, "a"), "/dev/null", NULL, NULL), -EINVAL);
        ASSERT_STR(text_of(in(&dir, "a")), "abc");
        ASSERT_EQ(entries(dir.path), 3);
        return 0;
}

TASK(copy_of_many_pieces)
{
        static char text[9 << 20];
        FOLDER(dir);
        LOADED(l);
        uint64_t bytes = 0;

        memset(text, 'x', sizeof text);
        int fd = open(in(&dir, "a"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        ssize_t n = write(fd, text, sizeof text);
        close(fd);
        ASSERT_EQ(n, sizeof text);
        ASSERT_OK(resha_file_copy(in(&dir, "a"), in(&dir, "b"), &(resha_save_opts){ .no_sync = true }, &bytes));
        ASSERT_EQ(bytes, sizeof text);
        ASSERT_OK(load(in(&dir, "b"), 0, &l));
        ASSERT_EQ(memcmp(l.text, text, l.size), 0);
        return 0;
}

/* ---- temporary files ---- */

TASK(temp_has_no_name)
{
        FOLDER(dir);
        OPEN_FILE(f);
        OPEN_FILE(none);
        char buf[8] = "";
        resha_stat st;

        ASSERT_OK(resha_file_temp(dir.path, &f));
        ASSERT_EQ(entries(dir.path), 0);
        ASSERT_OK(resha_file_write(f, "abc", 3, 0, NULL));
        ASSERT_EQ(resha_file_read(f, buf, sizeof buf, 0), 3);
        ASSERT_STR(buf, "abc");
        ASSERT_OK(resha_file_stat(f, &st));
        ASSERT_EQ(st.links, 0);
        ASSERT_EQ(st.mode, 0600);
        ASSERT_EQ(resha_file_temp(in(&dir, "none"), &none), -ENOENT);
        ASSERT_HAS(said(-ENOENT), "make a temporary file in \"");
        ASSERT_EQ(resha_file_temp("", &none), -ENOENT);
        ASSERT_EQ(resha_file_temp("/dev/null", &none), -ENOTDIR);
        return 0;
}

TASK(temp_in_the_usual_folder)
{
        OPEN_FILE(f);

        ASSERT_OK(resha_file_temp(NULL, &f));
        ASSERT_OK(resha_file_write(f, "abc", 3, 0, NULL));
        return 0;
}
