/* SPDX-License-Identifier: MIT */
/* Files, with their calls failing: each of them in turn, interrupted, or not there at all, as some kernels and file
 * systems have it. What fails leaves the old file, no litter, and no descriptor; a failed sync and a failed close are
 * told. */

#include "../unit/folder.h"
#include "common.h"

#include <stdatomic.h>

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

static atomic_bool made_blocking;

static int heeds_nonblock(enum rs_syscall call)
{
        if (call == RS_SYS_FCNTL)
                atomic_store(&made_blocking, true);
        return call == RS_SYS_READ && !atomic_load(&made_blocking) ? -EAGAIN : 0;
}

TASK(file_load_of_a_file_system_that_heeds_nonblock)
{
        FOLDER(d);
        void *data = NULL;
        size_t size = 0;

        put(in(&d, "a"), "abc");
        atomic_store(&made_blocking, false);
        rs_fault_hook = heeds_nonblock;
        int rc = resha_file_load(in(&d, "a"), 0, &data, &size);
        rs_fault_hook = NULL;
        ASSERT_OK(rc);
        ASSERT_EQ(size, 3);
        resha_free(data);
        return 0;
}

static int no_thread(enum rs_syscall call)
{
        return call == RS_SYS_THREAD ? -EAGAIN : 0;
}

/* What is small and known is opened without a thread. */
static int close_without_a_thread(void *path)
{
        resha_file *f = NULL;
        unsigned fds = real_fds();

        rs_fault_hook = no_thread;
        int rc = resha_file_open(path, O_RDONLY, 0, &f);
        if (rc == 0)
                rc = resha_file_close(f);
        rs_fault_hook = NULL;
        ASSERT_EQ(real_fds(), fds);
        if (rc == -EAGAIN)
                ASSERT_HAS(said(rc), "open \"");
        return rc == -EAGAIN ? 0 : rc;
}

TEST(file_closes_where_no_thread_can_be_started)
{
        FOLDER(d);

        put(in(&d, "a"), "abc");
        ASSERT_OK(test_run_opts(close_without_a_thread, (void *)(uintptr_t)in(&d, "a"), NULL));
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
