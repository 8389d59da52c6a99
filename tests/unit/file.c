/* SPDX-License-Identifier: MIT */
/* Open files: reading and writing at offsets, ends, misuse, what may not be opened, closing while tasks are inside. */

#include "folder.h"

#include <sys/socket.h>
#include <sys/un.h>

TASK(file_is_written_and_read_at_offsets)
{
        FOLDER(dir);
        OPEN_FILE(f);
        char buf[16] = "";
        size_t done;

        ASSERT_OK(resha_file_open(in(&dir, "a"), O_RDWR | O_CREAT | O_EXCL, 0640, &f));
        ASSERT_OK(resha_file_write(f, "world", 5, 6, &done));
        ASSERT_EQ(done, 5);
        ASSERT_OK(resha_file_write(f, "hello", 5, 0, NULL));
        ASSERT_EQ(resha_file_read(f, buf, sizeof buf, 0), 11);
        ASSERT_EQ(memcmp(buf, "hello\0world", 11), 0);
        ASSERT_EQ(resha_file_read(f, buf, 3, 7), 3);
        ASSERT_EQ(memcmp(buf, "orl", 3), 0);
        ASSERT_EQ(resha_file_read(f, buf, 5, 9), 2);
        ASSERT_EQ(resha_file_read(f, buf, 5, 11), 0);
        ASSERT_EQ(resha_file_read(f, buf, 5, 1000000), 0);
        ASSERT_EQ(resha_file_read(f, buf, 0, 0), 0);
        ASSERT_OK(resha_file_write(f, "", 0, 100, &done));
        ASSERT_EQ(done, 0);
        resha_file *g = f;
        f = NULL;
        ASSERT_OK(resha_file_close(g));
        ASSERT_EQ(entries(dir.path), 1);
        return 0;
}

TASK(file_of_many_pieces)
{
        enum { SIZE = 9 << 20 };
        FOLDER(dir);
        OPEN_FILE(f);
        static char out[SIZE], back[SIZE];
        size_t done;

        for (size_t i = 0; i < SIZE; i++)
                out[i] = (char)(i * 31 + i / 4096);
        ASSERT_OK(resha_file_open(in(&dir, "a"), O_RDWR | O_CREAT, 0600, &f));
        ASSERT_OK(resha_file_write(f, out, SIZE, 3, &done));
        ASSERT_EQ(done, SIZE);
        ASSERT_EQ(resha_file_read(f, back, SIZE, 3), SIZE);
        ASSERT_EQ(memcmp(out, back, SIZE), 0);
        return 0;
}

TASK(file_append_goes_to_the_end)
{
        FOLDER(dir);
        OPEN_FILE(f);
        size_t done = 9;

        put(in(&dir, "log"), "one\n");
        ASSERT_OK(resha_file_open(in(&dir, "log"), O_WRONLY | O_APPEND, 0, &f));
        ASSERT_OK(resha_file_append(f, "two\n", 4, &done));
        ASSERT_EQ(done, 4);
        ASSERT_STR(text_of(in(&dir, "log")), "one\ntwo\n");
        int rc = resha_file_write(f, "x", 1, 0, &done);
        ASSERT_EQ(rc, -EINVAL);
        ASSERT_EQ(done, 0);
        ASSERT_HAS(said(rc), "it was opened with O_APPEND: resha_file_append()");
        return 0;
}

TASK(file_append_wants_o_append)
{
        FOLDER(dir);
        OPEN_FILE(f);

        ASSERT_OK(resha_file_open(in(&dir, "log"), O_WRONLY | O_CREAT, 0600, &f));
        int rc = resha_file_append(f, "two\n", 4, NULL);
        ASSERT_EQ(rc, -EINVAL);
        ASSERT_HAS(said(rc), "without O_APPEND");
        return 0;
}

TASK(file_is_truncated_allocated_synced_and_told_of)
{
        FOLDER(dir);
        OPEN_FILE(f);
        resha_stat st;

        ASSERT_OK(resha_file_open(in(&dir, "a"), O_RDWR | O_CREAT, 0640, &f));
        ASSERT_OK(resha_file_write(f, "0123456789", 10, 0, NULL));
        ASSERT_OK(resha_file_truncate(f, 4));
        ASSERT_STR(text_of(in(&dir, "a")), "0123");
        ASSERT_OK(resha_file_sync(f));
        ASSERT_OK(resha_file_datasync(f));
        ASSERT_OK(resha_file_stat(f, &st));
        ASSERT_EQ(st.kind, RESHA_FILE_REGULAR);
        ASSERT_EQ(st.size, 4);
        ASSERT_EQ(st.links, 1);
        ASSERT_TRUE(st.written_ns > INT64_C(1600000000) * 1000000000);
        struct stat plain;
        ASSERT_EQ(stat(in(&dir, "a"), &plain), 0);
        ASSERT_EQ(st.mode, plain.st_mode & 07777);
        ASSERT_EQ(st.inode, plain.st_ino);
        ASSERT_EQ(st.device, plain.st_dev);
        ASSERT_EQ(st.uid, plain.st_uid);
        ASSERT_EQ(st.changed_ns, plain.st_ctim.tv_sec * INT64_C(1000000000) + plain.st_ctim.tv_nsec);
        int rc = resha_file_allocate(f, 0, 100000);
        ASSERT_TRUE(rc == 0 || rc == -EOPNOTSUPP);
        ASSERT_EQ(resha_file_truncate(f, -1), -EINVAL);
        ASSERT_TRUE(resha_file_fd(f) > 2);
        return 0;
}

TASK(file_refuses_what_makes_no_sense)
{
        FOLDER(dir);
        OPEN_FILE(in_only);
        OPEN_FILE(out_only);
        resha_file *none = NULL;
        char buf[4];

        put(in(&dir, "a"), "abc");
        ASSERT_EQ(resha_file_open(NULL, O_RDONLY, 0, &none), -EINVAL);
        ASSERT_EQ(resha_file_open("", O_RDONLY, 0, &none), -ENOENT);
        ASSERT_HAS(said(-ENOENT), "its name is empty");
        ASSERT_EQ(resha_file_open(in(&dir, "a"), O_ACCMODE, 0, &none), -EINVAL);
        ASSERT_EQ(resha_file_open(in(&dir, "a"), O_PATH, 0, &none), -EINVAL);
        ASSERT_EQ(resha_file_open(dir.path, O_TMPFILE | O_RDWR, 0600, &none), -EINVAL);
        ASSERT_EQ(resha_file_open(in(&dir, "a"), O_RDONLY, 010000, &none), -EINVAL);
        ASSERT_PTR(none, NULL);

        ASSERT_OK(resha_file_open(in(&dir, "a"), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0, &in_only));
        ASSERT_OK(resha_file_open(in(&dir, "a"), O_WRONLY, 0, &out_only));
        ASSERT_EQ(resha_file_write(in_only, "x", 1, 0, NULL), -EBADF);
        ASSERT_HAS(said(-EBADF), "for reading only; open it with O_RDWR");
        ASSERT_EQ(resha_file_read(out_only, buf, 1, 0), -EBADF);
        ASSERT_HAS(said(-EBADF), "for writing only; open it with O_RDWR");
        ASSERT_EQ(resha_file_read(in_only, buf, 1, -1), -EINVAL);
        ASSERT_EQ(resha_file_read(in_only, buf, SIZE_MAX, 0), -EINVAL);
        ASSERT_EQ(resha_file_write(out_only, buf, 4, INT64_MAX - 3, NULL), -EINVAL);
        ASSERT_HAS(said(-EINVAL), "are not within a file");
        ASSERT_OK(resha_file_close(NULL));
        return 0;
}

TASK(file_errors_name_the_file_and_what_was_tried)
{
        FOLDER(dir);
        resha_file *f = NULL;
        char expected[256], long_name[300], line[512];

        int rc = resha_file_open(in(&dir, "none"), O_RDONLY, 0, &f);
        ASSERT_EQ(rc, -ENOENT);
        snprintf(expected, sizeof expected, "open \"%s/none\": No such file or directory", dir.path);
        ASSERT_STR(said(rc), expected);
        put(in(&dir, "a"), "");
        ASSERT_EQ(resha_file_open(in(&dir, "a"), O_WRONLY | O_CREAT | O_EXCL, 0600, &f), -EEXIST);
        ASSERT_EQ(resha_file_open(in(&dir, "a/b"), O_RDONLY, 0, &f), -ENOTDIR);
        memset(long_name, 'n', sizeof long_name - 1);
        long_name[sizeof long_name - 1] = '\0';
        snprintf(line, sizeof line, "%s/%s", dir.path, long_name);
        rc = resha_file_open(line, O_RDONLY, 0, &f);
        ASSERT_EQ(rc, -ENAMETOOLONG);
        ASSERT_HAS(said(rc), "open \"...nnn");
        ASSERT_HAS(said(rc), "at most 255 bytes");
        ASSERT_EQ(symlink(in(&dir, "y"), in(&dir, "x")) | symlink(in(&dir, "x"), in(&dir, "y")), 0);
        rc = resha_file_open(in(&dir, "x"), O_RDONLY, 0, &f);
        ASSERT_EQ(rc, -ELOOP);
        ASSERT_HAS(said(rc), "symbolic links in a circle");
        rc = resha_file_open(in(&dir, "bytes\n\x01\\\"\xff"), O_RDONLY, 0, &f);
        ASSERT_EQ(rc, -ENOENT);
        ASSERT_HAS(said(rc), "bytes\\x0a\\x01\\x5c\\x22\\xff\"");
        /* letters as they are; neither half ones, nor too long or large ones, nor what steers a terminal */
        rc = resha_file_open(in(&dir, "\u00e4\u20ac\U0001f600\xe2\x82-\xc0\xaf\xed\xa0\x80\xf4\x90\x80\x80"), O_RDONLY,
                             0, &f);
        ASSERT_HAS(said(rc), "/\u00e4\u20ac\U0001f600\\xe2\\x82-\\xc0\\xaf\\xed\\xa0\\x80\\xf4\\x90\\x80\\x80\"");
        rc = resha_file_open(in(&dir, "\xc2\x9b\xe2\x80\xae\xe2\x80\xa8\xe2\x81\xa6\xe2\x80\x94"), O_RDONLY, 0, &f);
        ASSERT_HAS(said(rc), "/\\xc2\\x9b\\xe2\\x80\\xae\\xe2\\x80\\xa8\\xe2\\x81\\xa6\xe2\x80\x94\"");
        memset(line, 0, sizeof line);
        for (int i = 0; i < 100; i++)
                memcpy(line + 3 * i, "\u20ac", 3);
        rc = resha_file_open(line, O_RDONLY, 0, &f);
        ASSERT_HAS(said(rc), "open \"...\u20ac\u20ac");
        ASSERT_PTR(f, NULL);
        return 0;
}

static void bind_socket(const char *path)
{
        struct sockaddr_un un = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        snprintf(un.sun_path, sizeof un.sun_path, "%s", path);
        ASSERT_EQ(bind(fd, (struct sockaddr *)&un, sizeof un), 0);
        close(fd);
}

TASK(file_open_never_waits_for_another_process)
{
        FOLDER(dir);
        resha_file *f = NULL;
        void *data = NULL;

        ASSERT_EQ(mkfifo(in(&dir, "fifo"), 0600), 0);
        bind_socket(in(&dir, "socket"));
        static const int flags[] = { O_RDONLY, O_WRONLY, O_RDWR };
        for (int i = 0; i < 3; i++) {
                ASSERT_EQ(resha_file_open(in(&dir, "fifo"), flags[i], 0, &f), -EINVAL);
                ASSERT_HAS(said(-EINVAL), "it is a FIFO; open(2) with O_NONBLOCK and resha_stream_adopt()");
                ASSERT_EQ(resha_file_open(in(&dir, "socket"), flags[i], 0, &f), -EINVAL);
                ASSERT_HAS(said(-EINVAL), "it is a socket; resha_unix_connect()");
                ASSERT_EQ(resha_file_open(dir.path, flags[i], 0, &f), -EISDIR);
        }
        ASSERT_EQ(resha_file_open(dir.path, O_RDONLY, 0, &f), -EISDIR);
        ASSERT_HAS(said(-EISDIR), "it is a folder; resha_dir_open()");
        ASSERT_EQ(resha_file_load(in(&dir, "fifo"), 0, &data, NULL), -EINVAL);
        ASSERT_EQ(resha_file_load(in(&dir, "socket"), 0, &data, NULL), -EINVAL);
        ASSERT_EQ(resha_file_load(dir.path, 0, &data, NULL), -EISDIR);
        ASSERT_PTR(data, NULL);
        ASSERT_PTR(f, NULL);
        return 0;
}

TASK(file_of_a_device)
{
        OPEN_FILE(null);
        OPEN_FILE(full);
        OPEN_FILE(zero);
        char buf[100000] = { 0 };
        size_t done = 9;

        ASSERT_OK(resha_file_open("/dev/null", O_RDWR, 0, &null));
        ASSERT_EQ(resha_file_read(null, buf, sizeof buf, 0), 0);
        ASSERT_OK(resha_file_write(null, buf, 7, 0, NULL));
        ASSERT_OK(resha_file_open("/dev/full", O_RDWR, 0, &full));
        int rc = resha_file_write(full, "x", 1, 0, &done);
        ASSERT_EQ(rc, -ENOSPC);
        ASSERT_EQ(done, 0);
        ASSERT_HAS(said(rc), "write \"/dev/full\": No space left on device (the disk is full");
        ASSERT_OK(resha_file_open("/dev/zero", O_RDONLY, 0, &zero));
        memset(buf, 1, sizeof buf);
        ASSERT_EQ(resha_file_read(zero, buf, sizeof buf, 0), sizeof buf);
        ASSERT_EQ(buf[sizeof buf - 1], 0);
        return 0;
}

TASK(file_that_is_only_read_keeps_its_size)
{
        FOLDER(dir);
        OPEN_FILE(f);

        put(in(&dir, "a"), "abc");
        ASSERT_OK(resha_file_open(in(&dir, "a"), O_RDONLY, 0, &f));
        ASSERT_EQ(resha_file_truncate(f, 1), -EBADF);
        ASSERT_HAS(said(-EBADF), "truncate \"");
        ASSERT_HAS(said(-EBADF), "it was opened for reading only; open it with O_RDWR");
        ASSERT_EQ(resha_file_allocate(f, 0, 100), -EBADF);
        ASSERT_HAS(said(-EBADF), "it was opened for reading only");
        ASSERT_STR(text_of(in(&dir, "a")), "abc");
        return 0;
}

/* ---- several tasks ---- */

struct part {
        resha_file *f;
        int index;
};

static int write_and_read_part(void *arg)
{
        const struct part *p = arg;
        char data[1000], back[1000];

        memset(data, 'a' + p->index, sizeof data);
        int rc = resha_file_write(p->f, data, sizeof data, p->index * 1000, NULL);
        ssize_t n = rc < 0 ? rc : resha_file_read(p->f, back, sizeof back, p->index * 1000);
        if (n < 0)
                return (int)n;
        ASSERT_EQ(n, 1000);
        ASSERT_EQ(memcmp(data, back, 1000), 0);
        return 0;
}

TASK(file_is_used_by_many_tasks_at_once)
{
        FOLDER(dir);
        OPEN_FILE(f);
        struct part parts[20];
        resha_stat st;

        ASSERT_OK(resha_file_open(in(&dir, "a"), O_RDWR | O_CREAT, 0600, &f));
        for (int i = 0; i < 20; i++)
                parts[i] = (struct part){ f, i };
        ASSERT_OK(resha_gather(write_and_read_part, parts, 20, sizeof parts[0], NULL));
        ASSERT_OK(resha_file_stat(f, &st));
        ASSERT_EQ(st.size, 20000);
        return 0;
}

static int append_lines(void *arg)
{
        const struct part *p = arg;
        char line[101];

        memset(line, 'a' + p->index, 99);
        line[99] = '\n';
        for (int i = 0; i < 10; i++) {
                int rc = resha_file_append(p->f, line, 100, NULL);
                if (rc < 0)
                        return rc;
        }
        return 0;
}

TASK(file_appends_of_many_tasks_stay_whole)
{
        FOLDER(dir);
        OPEN_FILE(f);
        struct part parts[8];
        void *data;
        size_t size;

        ASSERT_OK(resha_file_open(in(&dir, "log"), O_WRONLY | O_CREAT | O_APPEND, 0600, &f));
        for (int i = 0; i < 8; i++)
                parts[i] = (struct part){ f, i };
        ASSERT_OK(resha_gather(append_lines, parts, 8, sizeof parts[0], NULL));
        ASSERT_OK(resha_file_load(in(&dir, "log"), 0, &data, &size));
        const char *text = data;
        bool whole = size == 8000;
        for (size_t i = 0; i < size && whole; i++)
                whole = text[i] == (i % 100 == 99 ? '\n' : text[i - i % 100]);
        resha_free(data);
        ASSERT_TRUE(whole);
        return 0;
}

/* ---- closing ---- */

struct reader {
        resha_file *f;
        ssize_t result;
};

static int read_once(void *arg)
{
        struct reader *r = arg;
        char buf[8];

        r->result = resha_file_read(r->f, buf, sizeof buf, 0);
        return r->result == -ECANCELED ? -ECANCELED : 0;
}

/* Whoever has begun gets what he asked for, whoever has not is told. */
TASK(file_close_waits_for_those_inside)
{
        FOLDER(dir);
        resha_file *f;
        struct reader r[12];
        RESHA_GROUP(g);

        put(in(&dir, "a"), "abcdefgh");
        ASSERT_OK(resha_file_open(in(&dir, "a"), O_RDONLY, 0, &f));
        resha_group_begin(&g, NULL);
        for (int i = 0; i < 12; i++) {
                r[i] = (struct reader){ .f = f, .result = 1 };
                resha_spawn(&g, read_once, &r[i]);
        }
        ASSERT_OK(resha_yield());
        int rc = resha_file_close(f);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_OK(rc);
        for (int i = 0; i < 12; i++)
                ASSERT_TRUE(r[i].result == 8 || r[i].result == -EBADF);
        return 0;
}

struct closer {
        resha_file *f;
        int rc;
};

static int close_cancelled(void *arg)
{
        struct closer *c = arg;

        ASSERT_EQ(resha_yield(), -ECANCELED);
        c->rc = resha_file_close(c->f);
        return 0;
}

TASK(file_closes_in_a_cancelled_task_too)
{
        FOLDER(dir);
        struct closer c = { .rc = 1 };
        RESHA_GROUP(g);

        ASSERT_OK(resha_file_open(in(&dir, "a"), O_WRONLY | O_CREAT, 0600, &c.f));
        resha_group_begin(&g, NULL);
        resha_spawn(&g, close_cancelled, &c);
        resha_group_cancel(&g);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_OK(c.rc);
        return 0;
}

struct seen {
        int code;
        enum resha_report_kind kind;
        char text[200];
};

static void see(const resha_report *report, void *arg)
{
        struct seen *s = arg;

        s->kind = report->kind;
        s->code = report->code;
        snprintf(s->text, sizeof s->text, "%s", report->text);
}

static int leave_open(void *arg)
{
        struct folder *dir = arg;
        resha_file *f;
        resha_dir *d;
        int rc = resha_file_open(in(dir, "a"), O_WRONLY | O_CREAT, 0600, &f);

        if (rc == 0)
                rc = resha_dir_open(dir->path, &d);
        return rc;
}

/* The descriptors and the memory are gone, or this test fails. */
TEST(file_left_open_is_closed_and_reported)
{
        FOLDER(dir);
        struct seen seen = { 0 };

        ASSERT_OK(test_run_opts(leave_open, &dir, &(resha_run_opts){ .report = see, .report_arg = &seen }));
        ASSERT_EQ(seen.kind, RESHA_REPORT_LEFT_OPEN);
        ASSERT_HAS(seen.text, "2 streams, listeners, datagram sockets or files were not closed");
}

TEST(file_calls_outside_of_a_task)
{
        resha_file *f = NULL;
        void *data = NULL;

        ASSERT_EQ(resha_file_open("/dev/null", O_RDONLY, 0, &f), -EPERM);
        ASSERT_EQ(resha_file_load("/dev/null", 0, &data, NULL), -EPERM);
        ASSERT_EQ(resha_file_save("/dev/null", "", 0, NULL), -EPERM);
        ASSERT_EQ(resha_path_unlink("/"), -EPERM);
        ASSERT_OK(resha_file_close(NULL));
}

static int open_file(void *arg)
{
        return resha_file_open(arg, O_WRONLY | O_CREAT | O_EXCL, 0600, &(resha_file *){ NULL });
}

/* Cancelled before it has begun it never happens. */
TASK(file_open_of_a_cancelled_task_makes_nothing)
{
        FOLDER(dir);
        RESHA_SCOPE(s);

        resha_timeout_begin(&s, RESHA_FOREVER);
        resha_scope_cancel(&s);
        int rc = open_file((void *)(uintptr_t)in(&dir, "a"));
        ASSERT_EQ(rc, -ECANCELED);
        ASSERT_EQ(resha_scope_end(&s, rc), 0);
        ASSERT_EQ(entries(dir.path), 0);
        return 0;
}
