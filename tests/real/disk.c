/* SPDX-License-Identifier: MIT */
/* Calls about files and names, as the backends make them: by a crew of threads, through the ring, or without either.
 *
 * One script of right and wrong calls is run on each backend of the kernel, as root and as nobody, and must tell the
 * same. */

#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/stat.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "core/disk.h"

static char folder[] = "/tmp/resha-disk-XXXXXX";
static char told[2][8192], *tells;

static const char *name(const char *last)
{
        static char path[4][512];
        static int next;

        next = (next + 1) % 4;
        snprintf(path[next], sizeof path[next], "%s/%s", folder, last);
        return path[next];
}

static __attribute__((noinline)) ssize_t call(struct rs_disk *d)
{
        struct rs_loop *l;
        int rc = rs_enter(&l);

        return rc < 0 ? rc : rs_operation_disk(l, d, "file");
}

#define CALL(...) call(&(struct rs_disk){ __VA_ARGS__ })
static void tell(const char *what, ssize_t result)
{
        size_t used = strlen(tells);

        if (result < 0)
                snprintf(tells + used, sizeof told[0] - used, "%s %s\n", what, resha_errname((int)result));
        else
                snprintf(tells + used, sizeof told[0] - used, "%s %zd\n", what, result);
}

static int opens(const char *what, const char *path, int flags)
{
        int fd = (int)CALL(.call = RS_DISK_OPEN, .path = path, .flags = flags, .mode = 0640);

        tell(what, fd < 0 ? fd : 1);
        return fd;
}

static void closes(int fd)
{
        if (fd >= 0)
                ASSERT_EQ(CALL(.call = RS_DISK_CLOSE, .fd = fd), 0);
}

static ssize_t kind(const char *path, int flags)
{
        struct statx st;
        ssize_t rc = CALL(.call = RS_DISK_STAT, .path = path, .flags = flags, .mask = STATX_TYPE, .stat = &st);

        return rc < 0 ? rc : st.stx_mode & S_IFMT;
}

/* ---- the script ---- */

static void bytes(void)
{
        char buf[64] = "";
        int fd = opens("create", name("a"), O_CREAT | O_EXCL | O_RDWR), flags = fcntl(fd, F_GETFL);

        tell("non-blocking", flags < 0 ? 0 : !!(flags & O_NONBLOCK));
        closes(opens("create again", name("a"), O_CREAT | O_EXCL | O_RDWR));
        tell("write", CALL(.call = RS_DISK_WRITE, .fd = fd, .buf = "hello", .size = 5, .offset = 2));
        tell("read", CALL(.call = RS_DISK_READ, .fd = fd, .buf = buf, .size = 64, .offset = 0));
        tell("bytes", memcmp(buf, "\0\0hello", 7) == 0);
        tell("behind", CALL(.call = RS_DISK_READ, .fd = fd, .buf = buf, .size = 64, .offset = 100));
        tell("where it is", CALL(.call = RS_DISK_READ, .fd = fd, .buf = buf, .size = 3, .offset = -1));
        tell("and on", CALL(.call = RS_DISK_READ, .fd = fd, .buf = buf, .size = 64, .offset = -1));
        tell("shrunk", CALL(.call = RS_DISK_TRUNCATE, .fd = fd, .offset = 4));
        tell("read", CALL(.call = RS_DISK_READ, .fd = fd, .buf = buf, .size = 64, .offset = 2));
        tell("grown", CALL(.call = RS_DISK_ALLOCATE, .fd = fd, .offset = 0, .size = 32));
        tell("read", CALL(.call = RS_DISK_READ, .fd = fd, .buf = buf, .size = 64, .offset = 2));
        tell("truncate", CALL(.call = RS_DISK_TRUNCATE, .fd = fd, .offset = -1));
        tell("allocate", CALL(.call = RS_DISK_ALLOCATE, .fd = fd, .offset = -1, .size = 1));
        tell("sync", CALL(.call = RS_DISK_SYNC, .fd = fd));
        tell("datasync", CALL(.call = RS_DISK_DATASYNC, .fd = fd));
        int other = opens("other", name("copy"), O_CREAT | O_WRONLY | O_APPEND);
        tell("append", CALL(.call = RS_DISK_WRITE, .fd = other, .buf = "abc", .size = 3, .offset = -1));
        tell("append", CALL(.call = RS_DISK_WRITE, .fd = other, .buf = "abc", .size = 3, .offset = -1));
        tell("read", CALL(.call = RS_DISK_READ, .fd = other, .buf = buf, .size = 3, .offset = 0));
        tell("copy", CALL(.call = RS_DISK_COPY, .fd = fd, .fd2 = other, .size = 7));
        closes(other);
        tell("closed", CALL(.call = RS_DISK_CLOSE, .fd = fd));
        tell("closed", CALL(.call = RS_DISK_CLOSE, .fd = 9999));
        tell("read", CALL(.call = RS_DISK_READ, .fd = 9999, .buf = buf, .size = 3));
        tell("sync", CALL(.call = RS_DISK_SYNC, .fd = 9999));
}

static void names(void)
{
        char buf[64], long_name[300];

        memset(long_name, 'x', sizeof long_name - 1);
        long_name[sizeof long_name - 1] = '\0';
        tell("mkdir", CALL(.call = RS_DISK_MKDIR, .path = name("d"), .mode = 0750));
        tell("mkdir", CALL(.call = RS_DISK_MKDIR, .path = name("d"), .mode = 0750));
        tell("mkdir", CALL(.call = RS_DISK_MKDIR, .path = name("none/d"), .mode = 0750));
        tell("link", CALL(.call = RS_DISK_LINK, .path = name("a"), .path2 = name("d/b")));
        tell("link", CALL(.call = RS_DISK_LINK, .path = name("a"), .path2 = name("d/b")));
        tell("rmdir", CALL(.call = RS_DISK_UNLINK, .path = name("d"), .flags = AT_REMOVEDIR));
        tell("unlink", CALL(.call = RS_DISK_UNLINK, .path = name("d")));
        tell("symlink", CALL(.call = RS_DISK_SYMLINK, .path = "loop", .path2 = name("loop")));
        tell("symlink", CALL(.call = RS_DISK_SYMLINK, .path = "loop", .path2 = name("loop")));
        tell("readlink", CALL(.call = RS_DISK_READLINK, .path = name("loop"), .buf = buf, .size = 64));
        tell("readlink", CALL(.call = RS_DISK_READLINK, .path = name("a"), .buf = buf, .size = 64));
        tell("kind", kind(name("loop"), AT_SYMLINK_NOFOLLOW));
        tell("kind", kind(name("loop"), 0));
        tell("kind", kind(name("d"), 0));
        tell("kind", kind(name("none"), 0));
        tell("over", CALL(.call = RS_DISK_RENAME, .path = name("copy"), .path2 = name("a"), .flags = RENAME_NOREPLACE));
        tell("over", CALL(.call = RS_DISK_RENAME, .path = name("copy"), .path2 = name("d")));
        tell("inside", CALL(.call = RS_DISK_RENAME, .path = name("d"), .path2 = name("d/d")));
        tell("rename", CALL(.call = RS_DISK_RENAME, .path = name("copy"), .path2 = name("d/c")));
        tell("rename", CALL(.call = RS_DISK_RENAME, .path = name("copy"), .path2 = name("d/c")));
        closes(opens("loop", name("loop"), O_RDONLY));
        closes(opens("none", name("none"), O_RDONLY));
        closes(opens("through a file", name("a/b"), O_RDONLY));
        closes(opens("too long", name(long_name), O_RDONLY));
        closes(opens("empty", "", O_RDONLY));
        closes(opens("flags", name("d"), O_RDONLY | O_DIRECTORY | O_CREAT));
        tell("unlink", CALL(.call = RS_DISK_UNLINK, .path = name("d/c")));
        tell("unlink", CALL(.call = RS_DISK_UNLINK, .path = name("d/b")));
}

static void others(void)
{
        char buf[4096];
        int fd = opens("folder", name("d"), O_RDONLY | O_DIRECTORY);

        tell("read", CALL(.call = RS_DISK_READ, .fd = fd, .buf = buf, .size = 64));
        tell("list", CALL(.call = RS_DISK_LIST, .fd = fd, .buf = buf, .size = sizeof buf) > 0);
        tell("list", CALL(.call = RS_DISK_LIST, .fd = fd, .buf = buf, .size = sizeof buf));
        int in = (int)CALL(.call = RS_DISK_OPEN, .fd = fd, .path = "in", .flags = O_CREAT | O_WRONLY, .mode = 0600);
        tell("inside of it", in > 2);
        closes(in);
        tell("unlink", CALL(.call = RS_DISK_UNLINK, .fd = fd, .path = "in"));
        closes(fd);
        closes(opens("folder", name("d"), O_RDWR));
        tell("rmdir", CALL(.call = RS_DISK_UNLINK, .path = name("d"), .flags = AT_REMOVEDIR));
        ASSERT_EQ(mkfifo(name("fifo"), 0600), 0);
        closes(opens("fifo, no reader", name("fifo"), O_WRONLY));
        fd = opens("fifo", name("fifo"), O_RDONLY);
        tell("sync", CALL(.call = RS_DISK_SYNC, .fd = fd));
        tell("truncate", CALL(.call = RS_DISK_TRUNCATE, .fd = fd, .offset = 0));
        tell("read", CALL(.call = RS_DISK_READ, .fd = fd, .buf = buf, .size = 64, .offset = -1));
        closes(fd);
        fd = opens("proc", "/proc/self/status", O_RDONLY);
        tell("read", CALL(.call = RS_DISK_READ, .fd = fd, .buf = buf, .size = sizeof buf) > 100);
        closes(fd);
        closes(opens("proc", "/proc/self/none", O_RDONLY));
        fd = opens("full", "/dev/full", O_WRONLY);
        tell("write", CALL(.call = RS_DISK_WRITE, .fd = fd, .buf = buf, .size = 10));
        closes(fd);
        closes(opens("secret", "/etc/shadow", O_RDONLY));
        tell("mkdir", CALL(.call = RS_DISK_MKDIR, .path = "/proc/resha", .mode = 0700));
        tell("unlink", CALL(.call = RS_DISK_UNLINK, .path = "/proc/self/status"));
}

static int script(void *arg)
{
        (void)arg;
        bytes();
        names();
        others();
        return 0;
}

static void clean(void)
{
        static const char *const left[] = { "a", "copy", "loop", "fifo", "d/b", "d/c", "d/in", "sea" };

        for (size_t i = 0; i < sizeof left / sizeof left[0]; i++)
                unlink(name(left[i]));
        rmdir(name("d"));
}

/* Nothing where that backend is not to be had. */
static bool run_on(const char *backend, resha_fn *fn)
{
        resha_error e;
        int rc = resha_run(fn, NULL, &(resha_run_opts){ .backend = backend, .ret_error = &e });

        clean();
        if (rc < 0 && strcmp(backend, "uring") == 0)
                return false;
        if (rc < 0)
                FAIL("%s: %s", backend, e.text);
        return true;
}

static void compare(resha_fn *fn)
{
        told[0][0] = told[1][0] = '\0';
        tells = told[0];
        run_on("epoll", fn);
        tells = told[1];
        if (!run_on("uring", fn))
                return;
        ASSERT_STR(told[1], told[0]);
}

static void make_folder(void)
{
        if (folder[sizeof folder - 2] == 'X')
                ASSERT_TRUE(mkdtemp(folder) != NULL);
        ASSERT_EQ(chmod(folder, 0777), 0);
}

TEST(disk_both_backends_say_the_same)
{
        unsigned fds = real_fds();

        make_folder();
        compare(script);
        ASSERT_HAS(told[0], "create again EEXIST\n");
        ASSERT_HAS(told[0], "fifo, no reader ENXIO\n");
        ASSERT_HAS(told[0], "write ENOSPC\n");
        ASSERT_HAS(told[0], "loop ELOOP\n");
        ASSERT_EQ(real_fds(), fds);
        ASSERT_EQ(rmdir(folder), 0);
}

static int as_nobody(void *arg)
{
        (void)arg;
        if (geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
                return 1;
        compare(script);
        return strstr(told[0], "secret EACCES\n") ? 0 : 2;
}

TEST(disk_both_backends_say_the_same_to_nobody)
{
        struct test_child c;

        make_folder();
        test_child(as_nobody, NULL, &c);
        if (c.status)
                FAIL("%s", c.text);
        ASSERT_EQ(rmdir(folder), 0);
}

/* ---- a full disk ---- */

static int fill_it(void *arg)
{
        static char block[16384];
        int fd = opens("create", name("sea"), O_CREAT | O_WRONLY);
        ssize_t n = 0;
        (void)arg;

        for (int64_t at = 0; n >= 0 && at < 1 << 20; at += n) {
                n = CALL(.call = RS_DISK_WRITE, .fd = fd, .buf = block, .size = sizeof block, .offset = at);
                tell("write", n);
        }
        tell("allocate", CALL(.call = RS_DISK_ALLOCATE, .fd = fd, .offset = 0, .size = 1 << 20));
        closes(fd);
        return n == -ENOSPC ? 0 : -EIO;
}

static int on_a_small_disk(void *arg)
{
        (void)arg;
        if (unshare(geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) < 0 ||
            mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            mount("resha", folder, "tmpfs", 0, "size=64k") < 0)
                return 77;
        compare(fill_it);
        return 0;
}

TEST(disk_full)
{
        struct test_child c;

        make_folder();
        test_child(on_a_small_disk, NULL, &c);
        ASSERT_EQ(rmdir(folder), 0);
        if (WIFEXITED(c.status) && WEXITSTATUS(c.status) == 77)
                test_skip("no right to mount a small disk");
        if (c.status)
                FAIL("%s", c.text);
}

/* ---- the crew ---- */

static atomic_int running, let_go;

static ssize_t held(struct rs_disk *d)
{
        atomic_fetch_add(&running, 1);
        while (!atomic_load(&let_go))
                usleep(1000);
        return d->opens ? dup(0) : 7;
}

static ssize_t never(struct rs_disk *d)
{
        (void)d;
        abort();
}

static int call_held(void *arg)
{
        *(ssize_t *)arg = CALL(.call = RS_DISK_RUN, .run = held);
        return 0;
}

static int call_never(void *arg)
{
        *(ssize_t *)arg = CALL(.call = RS_DISK_RUN, .run = never);
        atomic_store(&let_go, 1);
        return 0;
}

static void wait_running(int n)
{
        while (atomic_load(&running) < n)
                ASSERT_OK(resha_sleep(RESHA_MS(1)));
}

static int cancels(void *arg)
{
        ssize_t first = 0, second = 0;
        RESHA_GROUP(g);
        (void)arg;

        atomic_store(&running, 0);
        atomic_store(&let_go, 0);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, call_held, &first);
        wait_running(1);
        resha_spawn(&g, call_never, &second);
        ASSERT_OK(resha_sleep(RESHA_MS(5)));
        resha_group_cancel(&g);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(second, -ECANCELED);
        ASSERT_EQ(first, 7);
        return 0;
}

TEST(disk_a_cancel_takes_back_what_has_not_begun_and_waits_for_what_has)
{
        resha_run_opts opts = { .threads = 1, .backend = test_backend() };

        ASSERT_OK(resha_run(cancels, NULL, &opts));
}

/* Many at a time, some of which can be tried without a thread; each comes back once. */
enum { MANY = 400 };

static ssize_t counts(struct rs_disk *d)
{
        atomic_int *count = d->arg;

        if (d->now && atomic_load(count) % 3 == 1)
                return -EAGAIN; /* a thread has to do it */
        return atomic_fetch_add(count, 1) + 1;
}

static int call_counts(void *arg)
{
        for (int i = 0; i < 20; i++) {
                ssize_t rc = CALL(.call = RS_DISK_RUN, .run = counts, .quick = i % 2, .arg = arg);
                if (rc < 1)
                        return (int)rc;
        }
        return 0;
}

TASK(disk_many_at_a_time)
{
        atomic_int count = 0;
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        for (int i = 0; i < MANY; i++)
                resha_spawn(&g, call_counts, &count);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(atomic_load(&count), MANY * 20);
        return 0;
}

/* A call that hangs for longer than the run has patience: the run ends without it, and it comes back to nobody. */
static int call_held_open(void *arg)
{
        *(ssize_t *)arg = CALL(.call = RS_DISK_RUN, .run = held, .opens = true);
        return 0;
}

static int hangs(void *arg)
{
        ssize_t result;
        RESHA_GROUP(g);

        (void)arg;
        resha_group_begin(&g, NULL);
        resha_spawn(&g, call_held_open, &result);
        wait_running(1);
        resha_loop *self = resha_loop_ref();
        resha_loop_cancel(self);
        resha_loop_unref(self);
        return resha_group_end(&g, 0);
}

static int run_hangs(void *arg)
{
        unsigned fds = real_fds();

        (void)arg;
        atomic_store(&running, 0);
        atomic_store(&let_go, 0);
        int rc = test_run_opts(hangs, NULL, &(resha_run_opts){ .threads = 2, .grace = RESHA_MS(20) });
        atomic_store(&let_go, 1);
        usleep(50000);
        return rc < 0 && real_fds() == fds ? 0 : 1;
}

TEST(disk_a_call_that_hangs_does_not_keep_a_run_from_its_end)
{
        struct test_child c;

        if (test_is_sim())
                test_skip("there the call is made in line");
        test_child(run_hangs, NULL, &c);
        if (c.status)
                FAIL("%s", c.text);
}

/* ---- faults ---- */

static int nth, asked;

static int fail_nth(enum rs_syscall which)
{
        bool ours = which == RS_SYS_OPEN || which == RS_SYS_READ || which == RS_SYS_WRITE || which >= RS_SYS_FSYNC;

        return ours && ++asked == nth ? -EIO : 0;
}

TEST(disk_each_call_fails_once)
{
        unsigned fds = real_fds();
        int failed = 0;

        make_folder();
        tells = told[0];
        for (nth = 1; nth == 1 || asked >= nth; nth++) {
                told[0][0] = '\0';
                asked = 0;
                rs_fault_hook = fail_nth;
                bool ran = run_on(test_is_sim() ? "epoll" : test_backend(), script);
                rs_fault_hook = NULL;
                if (!ran)
                        break;
                ASSERT_EQ(real_fds(), fds);
                failed += strstr(told[0], " EIO\n") != NULL;
        }
        ASSERT_EQ(rmdir(folder), 0);
        ASSERT_TRUE(failed > 40 || nth == 1);
}
