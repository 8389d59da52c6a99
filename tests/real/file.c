/* SPDX-License-Identifier: MIT */
/* Files on the real kernel: each of its calls failing in turn, and interrupted; a full disk, a limit of sizes, other
 * users' files, terminals; files that grow and shrink while they are read; signals; cancels at any time. What fails
 * leaves the old file, no litter, and no descriptor. */

#include "../unit/folder.h"
#include "common.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>

/* ---- each call failing ---- */

static _Atomic int64_t countdown;
static _Atomic int hit; /* the call that failed, plus 1 */
static int fault;
static unsigned hits[RS_SYS_COUNT];

/* Calls about files alone: those of the loop have tests of their own. */
static bool of_a_file(enum rs_syscall call)
{
        switch (call) {
        case RS_SYS_OPEN:
        case RS_SYS_WRITE:
        case RS_SYS_READ:
        case RS_SYS_FSTAT:
        case RS_SYS_CHMOD:
        case RS_SYS_FSYNC:
        case RS_SYS_FTRUNCATE:
        case RS_SYS_STATX:
        case RS_SYS_RENAME:
        case RS_SYS_UNLINK:
        case RS_SYS_MKDIR:
        case RS_SYS_LINK:
        case RS_SYS_SYMLINK:
        case RS_SYS_READLINK:
        case RS_SYS_GETDENTS:
        case RS_SYS_CLOSE:
        case RS_SYS_COPY_FILE: return true;
        default: return false;
        }
}

static int hook(enum rs_syscall call)
{
        if (!of_a_file(call) || (fault == -EINTR && call == RS_SYS_CLOSE) || atomic_fetch_sub(&countdown, 1) != 1)
                return 0;
        atomic_store(&hit, (int)call + 1);
        hits[call]++;
        return fault;
}

static struct folder dir;

struct step {
        const char *name;
        int (*run)(void);
};

static int run_open(void)
{
        resha_file *f;
        char buf[4];
        int rc = resha_file_open(in(&dir, "a"), O_RDWR, 0, &f);

        if (rc < 0)
                return rc;
        rc = resha_file_write(f, "o", 1, 0, NULL);
        ssize_t n = rc < 0 ? rc : resha_file_read(f, buf, 3, 0);
        int closed = resha_file_close(f);
        return n < 0 ? (int)n : closed;
}

static int run_load(void)
{
        void *data;
        int rc = resha_file_load(in(&dir, "a"), 0, &data, NULL);

        if (rc == 0)
                resha_free(data);
        return rc;
}

static int run_save(void)
{
        return resha_file_save(in(&dir, "a"), "new", 3, NULL);
}

static int run_save_exclusive(void)
{
        unlink(in(&dir, "b"));
        return resha_file_save(in(&dir, "b"), "new", 3, &(resha_save_opts){ .exclusive = true });
}

static int run_copy(void)
{
        return resha_file_copy("/proc/self/status", in(&dir, "a"), NULL, NULL);
}

static int run_temp(void)
{
        resha_file *f;
        int rc = resha_file_temp(dir.path, &f);

        return rc < 0 ? rc : resha_file_close(f);
}

static int run_list(void)
{
        resha_dir *d;
        resha_dir_entry e;
        int rc = resha_dir_open(dir.path, &d);

        if (rc < 0)
                return rc;
        while ((rc = resha_dir_next(d, &e)) > 0)
                ;
        resha_dir_close(d);
        return rc;
}

static int run_names(void)
{
        int rc = resha_path_mkdir(in(&dir, "x/y/z"), 0700, true);

        rmdir(in(&dir, "x/y/z"));
        rmdir(in(&dir, "x/y"));
        rmdir(in(&dir, "x"));
        return rc;
}

/* All of what was, or all of what was to be. */
static void expect_whole(const struct step *s)
{
        const char *a = text_of(in(&dir, "a"));
        bool whole = strcmp(a, "old") == 0 || strcmp(a, "new") == 0 || strncmp(a, "Name:", 5) == 0;

        if (!whole)
                FAIL("%s: a holds \"%s\"", s->name, a);
        const char *b = text_of(in(&dir, "b"));
        unsigned n = entries(dir.path), expected = 1 + (strcmp(b, "(none)") != 0);
        if (expected == 2)
                ASSERT_STR(b, "new");
        if (n != expected)
                FAIL("%s: %u files in the folder, not %u", s->name, n, expected);
}

/* With its n-th call failing. False: there were fewer. */
static bool run_step(const struct step *s, int code, int n)
{
        static char context[96];
        unsigned fds = real_fds();

        put(in(&dir, "a"), "old");
        snprintf(context, sizeof context, " (%s, call %d of it: %d)", s->name, n, code);
        test_context(context);
        fault = code;
        atomic_store(&hit, 0);
        atomic_store(&countdown, n);
        rs_fault_hook = hook;
        int rc = s->run();
        rs_fault_hook = NULL;
        bool failed = atomic_load(&hit) != 0;
        if (rc < 0 && (!failed || code == -EINTR))
                FAIL("%s gave %d: %s", s->name, rc, said(rc));
        if (rc < 0 && rc != code)
                FAIL("%s gave %d", s->name, rc);
        ASSERT_EQ(real_fds(), fds);
        expect_whole(s);
        return failed;
}

static int every_call(void *unused)
{
        static const struct step steps[] = {
                { "open", run_open }, { "load", run_load },
                { "save", run_save }, { "save exclusive", run_save_exclusive },
                { "copy", run_copy }, { "temp", run_temp },
                { "list", run_list }, { "names", run_names },
        };
        static const int codes[] = { -EIO, -ENOSPC, -EINTR };

        (void)unused;
        for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
                for (size_t c = 0; c < 3; c++) {
                        int n = 1;
                        while (run_step(&steps[i], codes[c], n))
                                ASSERT_TRUE(++n < 200);
                }
        test_context("");
        static const enum rs_syscall met[] = {
                RS_SYS_OPEN,   RS_SYS_WRITE, RS_SYS_READ,  RS_SYS_FSYNC, RS_SYS_STATX,
                RS_SYS_RENAME, RS_SYS_CHMOD, RS_SYS_MKDIR, RS_SYS_CLOSE, RS_SYS_GETDENTS
        };
        for (size_t i = 0; i < sizeof met / sizeof met[0]; i++)
                if (hits[met[i]] == 0)
                        FAIL("system call %d was never made to fail", (int)met[i]);
        return 0;
}

TEST(file_calls_that_fail_leave_the_old_file_and_nothing_else)
{
        folder_make(&dir);
        RUN(every_call, NULL);
        folder_remove(&dir);
}

/* ---- what some kernels and file systems cannot do ---- */

static enum rs_syscall lacks;

static int lacking(enum rs_syscall call)
{
        if (call != lacks || atomic_fetch_sub(&countdown, 1) < 1)
                return 0;
        atomic_fetch_add(&hit, 1);
        return fault;
}

/* From now on the next n calls of a kind give `code`. */
static void lack(enum rs_syscall call, int n, int code)
{
        lacks = call;
        fault = code;
        atomic_store(&countdown, n);
        atomic_store(&hit, 0);
        rs_fault_hook = lacking;
}

static void lacks_nothing(void)
{
        rs_fault_hook = NULL;
        ASSERT_TRUE(atomic_load(&hit) > 0);
}

TASK(file_system_without_some_calls)
{
        FOLDER(d);
        OPEN_FILE(f);
        OPEN_FILE(none);
        static const resha_save_opts exclusive = { .exclusive = true };
        static const int not_copied[] = { -EXDEV, -EINVAL, -EOPNOTSUPP, -ENOSYS, -EPERM };
        uint64_t bytes;

        lack(RS_SYS_OPEN, 1, -EOPNOTSUPP); /* O_TMPFILE */
        int rc = resha_file_temp(d.path, &f);
        lacks_nothing();
        ASSERT_OK(rc);
        ASSERT_OK(resha_file_write(f, "abc", 3, 0, NULL));
        ASSERT_EQ(entries(d.path), 0);

        lack(RS_SYS_RENAME, 2, -EINVAL); /* RENAME_NOREPLACE */
        rc = resha_file_save(in(&d, "a"), "one", 3, &exclusive);
        rs_fault_hook = NULL;
        ASSERT_OK(rc);
        lack(RS_SYS_RENAME, 2, -EINVAL);
        rc = resha_file_save(in(&d, "a"), "two", 3, &exclusive);
        rs_fault_hook = NULL;
        ASSERT_EQ(rc, -EEXIST);
        ASSERT_STR(text_of(in(&d, "a")), "one");
        ASSERT_EQ(entries(d.path), 1);

        for (size_t i = 0; i < sizeof not_copied / sizeof not_copied[0]; i++) {
                lack(RS_SYS_COPY_FILE, 1000, not_copied[i]);
                rc = resha_file_copy(in(&d, "a"), in(&d, "b"), NULL, &bytes);
                lacks_nothing();
                ASSERT_OK(rc);
                ASSERT_EQ(bytes, 3);
                ASSERT_STR(text_of(in(&d, "b")), "one");
        }

        lack(RS_SYS_FSYNC, 1000, -EINVAL); /* neither of files nor of folders */
        rc = resha_file_save(in(&d, "a"), "three", 5, NULL);
        lacks_nothing();
        ASSERT_OK(rc);

        lack(RS_SYS_OPEN, 1000, -EMFILE);
        rc = resha_file_open(in(&d, "a"), O_RDONLY, 0, &none);
        lacks_nothing();
        ASSERT_EQ(rc, -EMFILE);
        ASSERT_HAS(said(rc), "as many descriptors as it may: ulimit -n");
        return 0;
}

TASK(file_sync_that_failed_stays_failed)
{
        FOLDER(d);
        OPEN_FILE(f);

        ASSERT_OK(resha_file_open(in(&d, "a"), O_WRONLY | O_CREAT, 0600, &f));
        lack(RS_SYS_FSYNC, 1, -EIO);
        int rc = resha_file_sync(f);
        lacks_nothing();
        ASSERT_EQ(rc, -EIO);
        rc = resha_file_datasync(f);
        ASSERT_EQ(rc, -EIO);
        ASSERT_HAS(said(rc), "an earlier one failed, and what was written then is lost");
        return 0;
}

TASK(file_close_says_what_closing_said)
{
        FOLDER(d);
        resha_file *f;

        ASSERT_OK(resha_file_open(in(&d, "a"), O_WRONLY | O_CREAT, 0600, &f));
        lack(RS_SYS_CLOSE, 1, -EDQUOT);
        int rc = resha_file_close(f);
        lacks_nothing();
        ASSERT_EQ(rc, -EDQUOT);
        ASSERT_HAS(said(rc), "/a\": Disk quota exceeded (the owner has used what the disk grants)");
        lack(RS_SYS_CLOSE, 1, -EIO); /* of the file beside */
        rc = resha_file_save(in(&d, "a"), "new", 3, NULL);
        lacks_nothing();
        ASSERT_EQ(rc, -EIO);
        ASSERT_STR(text_of(in(&d, "a")), "");
        ASSERT_EQ(entries(d.path), 1);
        return 0;
}

struct told {
        int code;
        enum resha_report_kind kind;
};

static void tell(const resha_report *report, void *arg)
{
        *(struct told *)arg = (struct told){ report->code, report->kind };
}

static int close_by_the_way(void *arg)
{
        resha_file *f RESHA_CLEANUP(resha_file_closep) = NULL;
        int rc = resha_file_open(arg, O_WRONLY | O_CREAT, 0600, &f);

        lack(RS_SYS_CLOSE, 1, -EIO);
        return rc;
}

TEST(file_close_that_nobody_sees_is_reported)
{
        FOLDER(d);
        struct told told = { 0 };

        ASSERT_OK(test_run_opts(close_by_the_way, (void *)(uintptr_t)in(&d, "a"),
                                &(resha_run_opts){ .report = tell, .report_arg = &told }));
        rs_fault_hook = NULL;
        ASSERT_EQ(told.kind, RESHA_REPORT_LOST_ERROR);
        ASSERT_EQ(told.code, -EIO);
}

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

static int with_small_limit(void *unused)
{
        (void)unused;
        return test_run_opts(too_large, NULL, NULL) == 0 ? 0 : 1;
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
