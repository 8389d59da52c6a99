/* SPDX-License-Identifier: MIT */
/* Files on the real kernel: a full disk, a limit of sizes, other users' files, terminals; files that grow and shrink
 * while they are read; signals; cancels at any time. */

#include "../unit/folder.h"
#include "common.h"

#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>

/* ---- a full disk, and other limits, in a process of their own ---- */

static char mount_point[64];

static int fill(void *unused)
{
        static char text[300 * 1024];
        char path[128];
        OPEN_FILE(f);
        size_t done = 0;

        (void)unused;
        snprintf(path, sizeof path, "%s/a", mount_point);
        ASSERT_OK(resha_file_save(path, "old", 3, NULL));
        int rc = resha_file_save(path, text, sizeof text, NULL);
        ASSERT_EQ(rc, -ENOSPC);
        ASSERT_HAS(said(rc), "/a\": No space left on device (the disk is full");
        ASSERT_STR(text_of(path), "old");
        ASSERT_EQ(entries(mount_point), 1);
        ASSERT_EQ(resha_file_copy("/proc/self/exe", path, NULL, NULL), -ENOSPC);
        ASSERT_STR(text_of(path), "old");
        ASSERT_EQ(entries(mount_point), 1);
        ASSERT_OK(resha_file_open(path, O_RDWR, 0, &f));
        rc = resha_file_write(f, text, sizeof text, 0, &done);
        ASSERT_EQ(rc, -ENOSPC);
        ASSERT_TRUE(done > 0 && done < sizeof text && done % 4096 == 0);
        return 0;
}

static int on_small_disk(void *unused)
{
        (void)unused;
        if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            mount("tmpfs", mount_point, "tmpfs", 0, "size=64k") < 0)
                return 77;
        return test_run_opts(fill, NULL, NULL) == 0 ? 0 : 1;
}

TEST(file_on_a_full_disk)
{
        struct test_child child;

        snprintf(mount_point, sizeof mount_point, "/tmp/resha-full-XXXXXX");
        ASSERT_TRUE(mkdtemp(mount_point) != NULL);
        test_child(on_small_disk, NULL, &child);
        rmdir(mount_point);
        if (WIFEXITED(child.status) && WEXITSTATUS(child.status) == 77)
                test_skip("may not mount a small disk");
        ASSERT_STR(child.text, "");
        ASSERT_EQ(child.status, 0);
}

static int too_large(void *unused)
{
        static char text[100000];
        FOLDER(d);
        OPEN_FILE(f);
        size_t done = 0;

        (void)unused;
        put(in(&d, "a"), "old");
        struct rlimit limit = { 50000, 50000 };
        ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
        int rc = resha_file_save(in(&d, "a"), text, sizeof text, NULL);
        ASSERT_EQ(rc, -EFBIG);
        ASSERT_HAS(said(rc), "over the limit of this process, ulimit -f");
        ASSERT_STR(text_of(in(&d, "a")), "old");
        ASSERT_EQ(entries(d.path), 1);
        ASSERT_OK(resha_file_open(in(&d, "a"), O_RDWR, 0, &f));
        ASSERT_EQ(resha_file_write(f, text, sizeof text, 0, &done), -EFBIG);
        ASSERT_EQ(done, 50000);
        return 0;
}

/* What a ring tries on the thread of the loop. */
static int too_large_directly(void *unused)
{
        static _Alignas(4096) char block[4096];
        FOLDER(d);
        OPEN_FILE(f);

        (void)unused;
        struct rlimit limit = { 4096, RLIM_INFINITY };
        ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
        if (resha_file_open(in(&d, "a"), O_RDWR | O_CREAT | O_DIRECT, 0600, &f) < 0)
                return 0; /* a file system without it */
        ASSERT_OK(resha_file_write(f, block, sizeof block, 0, NULL));
        ASSERT_EQ(resha_file_write(f, block, sizeof block, sizeof block, NULL), -EFBIG);
        return 0;
}

static int with_small_limit(void *unused)
{
        (void)unused;
        int rc = test_run_opts(too_large_directly, NULL, NULL);
        if (rc == 0)
                rc = test_run_opts(too_large, NULL, NULL);
        return rc == 0 ? 0 : 1;
}

static int simulated_with_small_limit(void *unused)
{
        sigset_t mask;

        (void)unused;
        int rc = resha_run(too_large_directly, NULL, &(resha_run_opts){ .backend = "sim:1" });
        ASSERT_TRUE(pthread_sigmask(SIG_BLOCK, NULL, &mask) == 0 && !sigismember(&mask, SIGXFSZ));
        return rc == 0 ? 0 : 1;
}

TEST(file_over_the_limit_of_sizes_is_no_signal_in_the_simulated_world)
{
        struct test_child child;

        test_child(simulated_with_small_limit, NULL, &child);
        ASSERT_STR(child.text, "");
        ASSERT_EQ(child.status, 0);
}

static int none_but_standard_ones(void *unused)
{
        struct rlimit limit;
        FOLDER(d);
        OPEN_FILE(f);

        (void)unused;
        ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
        limit.rlim_cur = 64;
        ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
        int last = 0;
        for (int fd; (fd = dup(0)) >= 0;)
                last = fd;
        close(0);
        int rc = resha_file_open(in(&d, "a"), O_RDWR | O_CREAT, 0600, &f);
        ASSERT_EQ(fcntl(0, F_GETFD), -1);
        close(last); /* for who removes the folder */
        close(last - 1);
        ASSERT_EQ(rc, -EMFILE);
        return 0;
}

static int without_descriptors(void *unused)
{
        (void)unused;
        return test_run_opts(none_but_standard_ones, NULL, NULL) == 0 ? 0 : 1;
}

TEST(file_is_never_a_standard_descriptor)
{
        struct test_child child;

        test_child(without_descriptors, NULL, &child);
        ASSERT_STR(child.text, "");
        ASSERT_EQ(child.status, 0);
}

TEST(file_over_the_limit_of_sizes_is_an_error_and_no_signal)
{
        struct test_child child;

        test_child(with_small_limit, NULL, &child);
        ASSERT_STR(child.text, "");
        ASSERT_EQ(child.status, 0);
}

static char private_path[128];

static int as_nobody(void *unused)
{
        void *data;

        (void)unused;
        int rc = resha_file_load(private_path, 0, &data, NULL);
        ASSERT_EQ(rc, -EACCES);
        ASSERT_HAS(said(rc), "open \"");
        ASSERT_HAS(said(rc), "Permission denied");
        rc = resha_file_save("/resha-may-not-be-here", "x", 1, NULL);
        ASSERT_EQ(rc, -EACCES);
        ASSERT_HAS(said(rc), "write beside \"/resha-may-not-be-here\": Permission denied");
        ASSERT_EQ(resha_path_unlink(private_path), -EACCES);
        ASSERT_EQ(resha_path_mkdir("/resha-may-not-be-here/x", 0700, true), -EACCES);
        return 0;
}

static int run_as_nobody(void *unused)
{
        (void)unused;
        if (geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
                return 77;
        return test_run_opts(as_nobody, NULL, NULL) == 0 ? 0 : 1;
}

TEST(file_of_another_user)
{
        struct test_child child;
        FOLDER(d);

        if (geteuid() != 0)
                test_skip("needs another user");
        snprintf(private_path, sizeof private_path, "%s", in(&d, "private"));
        put(private_path, "secret");
        ASSERT_EQ(chmod(private_path, 0600) | chmod(d.path, 0755), 0);
        test_child(run_as_nobody, NULL, &child);
        if (WIFEXITED(child.status) && WEXITSTATUS(child.status) == 77)
                test_skip("may not become another user");
        ASSERT_STR(child.text, "");
        ASSERT_EQ(child.status, 0);
}

TASK(file_save_keeps_owner_and_group)
{
        FOLDER(d);
        struct stat st;

        if (geteuid() != 0)
                test_skip("needs another user");
        put(in(&d, "a"), "old");
        ASSERT_EQ(chown(in(&d, "a"), 1234, 4321) | chmod(in(&d, "a"), 06640), 0);
        ASSERT_OK(resha_file_save(in(&d, "a"), "new", 3, NULL));
        ASSERT_EQ(stat(in(&d, "a"), &st), 0);
        ASSERT_TRUE(st.st_uid == 1234 && st.st_gid == 4321);
        ASSERT_EQ(st.st_mode & 07777, 06640);
        return 0;
}

static int save_for_no_group(void *unused)
{
        struct stat st;

        (void)unused;
        ASSERT_OK(resha_file_save(private_path, "new", 3, NULL));
        ASSERT_EQ(stat(private_path, &st), 0);
        ASSERT_EQ(st.st_gid, 65534);
        ASSERT_EQ(st.st_mode & 07777, 0644);
        ASSERT_OK(resha_file_save(private_path, "new", 3, &(resha_save_opts){ .mode = 0660 }));
        ASSERT_EQ(stat(private_path, &st), 0);
        ASSERT_EQ(st.st_mode & 07777, 0660);
        return 0;
}

static int save_without_the_group(void *unused)
{
        (void)unused;
        if (setgroups(0, NULL) < 0 || setgid(65534) < 0 || setuid(65534) < 0)
                return 77;
        return test_run_opts(save_for_no_group, NULL, NULL) == 0 ? 0 : 1;
}

/* Its members are others than those of the saver's group. */
TEST(file_save_that_cannot_keep_the_group_gives_its_rights_to_no_other)
{
        struct test_child child;
        FOLDER(d);

        if (geteuid() != 0)
                test_skip("needs another user");
        snprintf(private_path, sizeof private_path, "%s", in(&d, "a"));
        put(private_path, "secret");
        ASSERT_EQ(chown(private_path, 65534, 4321) | chmod(private_path, 0664) | chown(d.path, 65534, 65534), 0);
        test_child(save_without_the_group, NULL, &child);
        if (WIFEXITED(child.status) && WEXITSTATUS(child.status) == 77)
                test_skip("may not become another user");
        ASSERT_STR(child.text, "");
        ASSERT_EQ(child.status, 0);
}

TASK(file_save_where_all_may_make_names_trusts_no_other_user)
{
        FOLDER(d);

        if (geteuid() != 0)
                test_skip("needs another user");
        put(in(&d, "target"), "old");
        ASSERT_EQ(mkdir(in(&d, "all"), 0700) | chmod(in(&d, "all"), 01777), 0);
        ASSERT_EQ(symlink("../target", in(&d, "all/link")) | lchown(in(&d, "all/link"), 1234, 1234), 0);
        put(in(&d, "all/file"), "laid");
        ASSERT_EQ(chown(in(&d, "all/file"), 1234, 1234) | chmod(in(&d, "all/file"), 0666), 0);
        ASSERT_EQ(resha_file_save(in(&d, "all/link"), "new", 3, NULL), -EACCES);
        ASSERT_HAS(said(-EACCES), "another user has made it, in a folder where all may");
        ASSERT_EQ(resha_file_save(in(&d, "all/file"), "new", 3, NULL), -EACCES);
        ASSERT_EQ(resha_file_copy(in(&d, "target"), in(&d, "all/file"), NULL, NULL), -EACCES);
        ASSERT_STR(text_of(in(&d, "target")), "old");
        ASSERT_STR(text_of(in(&d, "all/file")), "laid");
        ASSERT_EQ(entries(in(&d, "all")), 2);
        /* its own, and those of whom the folder belongs to */
        ASSERT_EQ(lchown(in(&d, "all/link"), 0, 0) | chown(in(&d, "all"), 1234, 1234), 0);
        ASSERT_OK(resha_file_save(in(&d, "all/link"), "new", 3, NULL));
        ASSERT_OK(resha_file_save(in(&d, "all/file"), "new", 3, NULL));
        ASSERT_STR(text_of(in(&d, "target")), "new");
        return 0;
}

/* ---- terminals ---- */

static void close_int(int *fd)
{
        close(*fd);
}

TASK(file_open_of_a_terminal_names_the_streams_call)
{
        int master RESHA_CLEANUP(close_int) = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
        char name[64];
        resha_file *f;
        void *data;

        if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0 || ptsname_r(master, name, sizeof name) != 0)
                test_skip("no terminal can be had");
        ASSERT_EQ(resha_file_open(name, O_RDWR, 0, &f), -EINVAL);
        ASSERT_HAS(said(-EINVAL), "it is a terminal; resha_stream_stdio() or resha_stream_adopt()");
        ASSERT_EQ(resha_file_load(name, 0, &data, NULL), -EINVAL);
        return 0;
}

/* ---- files that change meanwhile ---- */

struct changer {
        pthread_t thread;
        int fd;
        atomic_bool stop;
};

/* Between nothing and 20,000 bytes, each of which is 'x'. */
static void *change(void *arg)
{
        static char text[20000];
        struct changer *c = arg;

        memset(text, 'x', sizeof text);
        for (unsigned i = 1; !atomic_load(&c->stop); i++) {
                if (i % 3 == 0)
                        (void)!ftruncate(c->fd, i % 1000);
                else
                        (void)!pwrite(c->fd, text, i * 7919 % sizeof text, 0);
        }
        return NULL;
}

static void changer_end(struct changer *c)
{
        atomic_store(&c->stop, true);
        pthread_join(c->thread, NULL);
        close(c->fd);
}

TASK(file_that_grows_and_shrinks_is_read_as_it_is)
{
        FOLDER(d);
        OPEN_FILE(f);
        static char buf[30000];

        put(in(&d, "a"), "");
        ASSERT_OK(resha_file_open(in(&d, "a"), O_RDONLY, 0, &f));
        struct changer c RESHA_CLEANUP(changer_end) = { .fd = open(in(&d, "a"), O_RDWR | O_CLOEXEC) };
        ASSERT_EQ(pthread_create(&c.thread, NULL, change, &c), 0);
        for (int i = 0; i < 300; i++) {
                void *data;
                size_t size, wrong = 0;
                ASSERT_OK(resha_file_load(in(&d, "a"), 0, &data, &size));
                for (size_t k = 0; k < size; k++)
                        wrong += ((char *)data)[k] != 'x' && ((char *)data)[k] != 0; /* a hole */
                bool ended = ((char *)data)[size] == 0;
                resha_free(data);
                ASSERT_TRUE(ended && wrong == 0 && size <= 20000);
                ssize_t n = resha_file_read(f, buf, sizeof buf, 0);
                ASSERT_TRUE(n >= 0 && n <= 20000);
        }
        return 0;
}

TASK(file_beyond_four_gigabytes)
{
        const int64_t far = INT64_C(5) << 30;
        FOLDER(d);
        OPEN_FILE(f);
        char buf[8] = "";
        resha_stat st;

        ASSERT_OK(resha_file_open(in(&d, "a"), O_RDWR | O_CREAT, 0600, &f));
        int rc = resha_file_write(f, "far", 3, far, NULL);
        if (rc == -EFBIG)
                test_skip("files are not as large here");
        ASSERT_OK(rc);
        ASSERT_EQ(resha_file_read(f, buf, sizeof buf, far), 3);
        ASSERT_STR(buf, "far");
        ASSERT_OK(resha_file_stat(f, &st));
        ASSERT_EQ(st.size, far + 3);
        return 0;
}

/* ---- signals ---- */

static atomic_uint alarms;

static void on_alarm(int sig)
{
        (void)sig;
        atomic_fetch_add(&alarms, 1);
}

TASK(file_calls_are_made_again_after_a_signal)
{
        static char out[1 << 20], back[1 << 20];
        FOLDER(d);
        OPEN_FILE(f);
        struct sigaction catches = { .sa_handler = on_alarm }, before;
        struct itimerval often = { { 0, 200 }, { 0, 200 } }, never = { 0 };

        ASSERT_EQ(sigaction(SIGALRM, &catches, &before), 0);
        ASSERT_EQ(setitimer(ITIMER_REAL, &often, NULL), 0);
        int rc = resha_file_open(in(&d, "a"), O_RDWR | O_CREAT, 0600, &f);
        for (int i = 0; rc == 0 && i < 30; i++) {
                memset(out, i + 1, sizeof out);
                rc = resha_file_write(f, out, sizeof out, i * 1000, NULL);
                if (rc == 0 && resha_file_read(f, back, sizeof back, i * 1000) != sizeof back)
                        rc = -EIO;
                if (rc == 0 && memcmp(out, back, sizeof out) != 0)
                        rc = -EPROTO;
                if (rc == 0)
                        rc = resha_file_save(in(&d, "b"), out, 1000, &(resha_save_opts){ .no_sync = true });
        }
        setitimer(ITIMER_REAL, &never, NULL);
        sigaction(SIGALRM, &before, NULL);
        ASSERT_OK(rc);
        ASSERT_TRUE(atomic_load(&alarms) > 0);
        return 0;
}

/* ---- cancels at any time ---- */

static int uses_files(void *arg)
{
        struct folder *d = arg;

        for (;;) {
                OPEN_FILE(f);
                char path[128], buf[100];
                void *data;
                snprintf(path, sizeof path, "%s/a", d->path);
                int rc = resha_file_save(path, "0123456789", 10, &(resha_save_opts){ .no_sync = true });
                if (rc == 0)
                        rc = resha_file_open(path, O_RDWR, 0, &f);
                ssize_t n = rc < 0 ? rc : resha_file_read(f, buf, sizeof buf, 0);
                if (n < 0)
                        return (int)n;
                ASSERT_EQ(n, 10);
                rc = resha_file_load(path, 0, &data, NULL);
                if (rc < 0)
                        return rc;
                resha_free(data);
        }
}

TASK(file_calls_that_are_cancelled_leave_nothing)
{
        FOLDER(d);
        unsigned fds = 0;

        for (int i = 0; i < 200; i++) {
                RESHA_GROUP(g);
                resha_group_begin(&g, NULL);
                for (int k = 0; k < 6; k++)
                        resha_spawn(&g, uses_files, &d);
                ASSERT_OK(resha_sleep(RESHA_US(i * 37 % 3000)));
                resha_group_cancel(&g);
                ASSERT_OK(resha_group_end(&g, 0));
                fds = i == 0 ? real_fds() : fds;
                ASSERT_EQ(real_fds(), fds);
                unsigned n = entries(d.path);
                ASSERT_TRUE(n <= 1);
                if (n == 1)
                        ASSERT_STR(text_of(in(&d, "a")), "0123456789");
        }
        return 0;
}
