/* SPDX-License-Identifier: MIT */
/* Files that are sent: by the kernel and by copying, all of them and parts, from far behind; and where it stops. */

#include "pair.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "net/stream.h"

enum { SIZE = 300000 };

static char at(uint64_t offset)
{
        return (char)(offset * 31 + offset / 256 * 7 + 1);
}

/* A file of SIZE bytes of which each tells where it stands, from `offset` on. */
static int make_file(int64_t offset)
{
        static char data[SIZE];
        char name[] = "/tmp/resha-send-file-XXXXXX";
        int fd = mkostemp(name, O_CLOEXEC);

        ASSERT_TRUE(fd >= 0);
        unlink(name);
        for (size_t i = 0; i < SIZE; i++)
                data[i] = at((uint64_t)offset + i);
        ASSERT_EQ(pwrite(fd, data, SIZE, offset), SIZE);
        return fd;
}

static void close_fd(int *fd)
{
        close(*fd);
}

#define FILE_FD(fd, offset) int fd RESHA_CLEANUP(close_fd) = make_file(offset)

struct job {
        resha_stream *to;
        int fd;
        int64_t offset;
        uint64_t size, sent;
        int rc;
};

static int send_task(void *arg)
{
        struct job *j = arg;

        j->rc = resha_send_file(j->to, j->fd, j->offset, j->size, &j->sent);
        return j->rc == -ECANCELED ? j->rc : 0;
}

static int send_and_end(void *arg)
{
        struct job *j = arg;
        int rc = send_task(j);

        return rc < 0 ? rc : resha_stream_shutdown(j->to);
}

/* What comes, to the end: bytes of the file from `offset` on. How many. */
static uint64_t expect_file(resha_stream *s, int64_t offset)
{
        static char buf[100000];
        uint64_t got = 0;
        ssize_t n;

        while ((n = resha_read(s, buf, sizeof buf)) > 0) {
                for (ssize_t i = 0; i < n; i++)
                        if (buf[i] != at((uint64_t)offset + got + (uint64_t)i))
                                FAIL("byte %llu is wrong", (unsigned long long)got + (unsigned long long)i);
                got += (uint64_t)n;
        }
        ASSERT_EQ(n, 0);
        return got;
}

static void send_part(struct pair *p, int fd, int64_t offset, uint64_t size, uint64_t expected, int rc)
{
        struct job j = { .to = p->here, .fd = fd, .offset = offset, .size = size };
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        resha_spawn(&g, send_and_end, &j);
        ASSERT_EQ(expect_file(p->there, offset), expected);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(j.rc, rc);
        ASSERT_EQ(j.sent, expected);
}

static int parts(void *unused)
{
        static const struct {
                int64_t offset;
                uint64_t size, expected;
                int rc;
        } cases[] = {
                { 0, UINT64_MAX, SIZE, 0 },
                { 0, SIZE, SIZE, 0 },
                { 17, 1000, 1000, 0 },
                { 70001, SIZE - 70001, SIZE - 70001, 0 },
                { SIZE - 1, UINT64_MAX, 1, 0 },
                { SIZE, UINT64_MAX, 0, 0 },
                { SIZE + 100, UINT64_MAX, 0, 0 },
                { 100, 0, 0, 0 },
                { 0, SIZE + 1, SIZE, -ENODATA }, /* it ends before it was said to */
                { SIZE, 1, 0, -ENODATA },
        };

        (void)unused;
        FILE_FD(fd, 0);
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                PAIR(p);
                send_part(&p, fd, cases[i].offset, cases[i].size, cases[i].expected, cases[i].rc);
        }
        ASSERT_EQ(lseek(fd, 0, SEEK_CUR), 0);
        return 0;
}

TEST(all_and_parts_of_a_file_arrive)
{
        RUN(parts, NULL);
        RUN_SEEDS(parts, NULL, 5);
}

TASK(a_file_goes_into_a_pipe)
{
        struct pair p RESHA_CLEANUP(pair_close) = { NULL, NULL };
        FILE_FD(fd, 0);

        ASSERT_OK(resha_pipe(&p.there, &p.here));
        send_part(&p, fd, 3, UINT64_MAX, SIZE - 3, 0);
        return 0;
}

TASK(offsets_behind_4_GiB_are_whole)
{
        const int64_t far = (INT64_C(5) << 30) + 3;
        FILE_FD(fd, far);
        PAIR(p);

        send_part(&p, fd, far, UINT64_MAX, SIZE, 0);
        return 0;
}

TASK(what_is_no_part_of_a_file_is_refused)
{
        FILE_FD(fd, 0);
        PAIR(p);
        int ends[2] = { -1, -1 }, folder RESHA_CLEANUP(close_fd) = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        uint64_t sent = 7;

        ASSERT_EQ(resha_send_file(p.here, fd, -1, 1, &sent), -EINVAL);
        ASSERT_EQ(sent, 0);
        ASSERT_EQ(resha_send_file(p.here, fd, 1, INT64_MAX, &sent), -EINVAL);
        ASSERT_EQ(resha_send_file(p.here, fd, 1, UINT64_MAX - 1, &sent), -EINVAL);
        ASSERT_EQ(resha_send_file(p.here, -1, 0, 1, &sent), -EBADF);
        ASSERT_HAS(resha_error_of(-EBADF)->text, "file descriptor -1");
        ASSERT_EQ(resha_send_file(p.here, folder, 0, 1, &sent), -EISDIR);
        ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
        int from RESHA_CLEANUP(close_fd) = ends[0], to RESHA_CLEANUP(close_fd) = ends[1];
        ASSERT_TRUE(to >= 0);
        ASSERT_EQ(resha_send_file(p.here, from, 0, 1, &sent), -ESPIPE);
        /* None of that is the connection's failure. */
        ASSERT_OK(resha_send_file(p.here, fd, 0, 5, &sent));
        ASSERT_EQ(sent, 5);
        return 0;
}

TASK(kept_bytes_go_before_the_file)
{
        FILE_FD(fd, 0);
        char buf[9];
        PAIR(p);
        struct job j = { .to = p.here, .fd = fd, .size = UINT64_MAX };
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_stream_buffer(p.here, 100));
        ASSERT_OK(resha_write_all(p.here, "the head:", 9, NULL));
        resha_spawn(&g, send_and_end, &j);
        ASSERT_EQ(resha_read_exactly(p.there, buf, 9), 9);
        ASSERT_EQ(memcmp(buf, "the head:", 9), 0);
        ASSERT_EQ(expect_file(p.there, 0), SIZE);
        return resha_group_end(&g, 0);
}

/* ---- stopped ---- */

static int cancelled(void *unused)
{
        uint64_t sent = 0;
        int rounds = 0, rc = -ETIME;

        (void)unused;
        FILE_FD(fd, 0);
        struct pair p RESHA_CLEANUP(pair_close) = { NULL, NULL };
        RESHA_GROUP(g);
        ASSERT_OK(resha_pipe(&p.there, &p.here));
        resha_group_begin(&g, NULL);
        /* The reader comes late: what a cancelled call has sent, it has sent. */
        for (; rounds < 3; rounds++) {
                struct job j = { .to = p.here, .fd = fd, .offset = (int64_t)sent, .size = UINT64_MAX };
                rc = resha_timeout(RESHA_MS(2), send_task, &j);
                ASSERT_EQ(rc, -ETIME);
                sent += j.sent;
        }
        struct job rest = { .to = p.here, .fd = fd, .offset = (int64_t)sent, .size = UINT64_MAX };
        resha_spawn(&g, send_and_end, &rest);
        ASSERT_EQ(expect_file(p.there, 0), SIZE);
        ASSERT_EQ(sent + rest.sent, SIZE);
        return resha_group_end(&g, 0);
}

TEST(a_cancelled_call_says_how_much_was_sent)
{
        RUN(cancelled, NULL);
        RUN_SEEDS(cancelled, NULL, 10);
}

TASK(a_peer_that_goes_away_is_the_connection_s_failure)
{
        FILE_FD(fd, 0);
        struct pair p RESHA_CLEANUP(pair_close) = { NULL, NULL };
        struct job j = { .fd = fd, .size = UINT64_MAX };
        RESHA_GROUP(g);
        ASSERT_OK(resha_pipe(&p.there, &p.here));
        j.to = p.here;
        resha_group_begin(&g, NULL);
        resha_spawn(&g, send_task, &j);
        ASSERT_OK(resha_sleep(RESHA_MS(10)));
        resha_stream_closep(&p.there);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(j.rc, -EPIPE);
        ASSERT_TRUE(j.sent > 0 && j.sent < SIZE);
        ASSERT_EQ(resha_write_all(p.here, "x", 1, NULL), -EPIPE);
        return 0;
}

/* ---- kinds of one's own ---- */

struct tape {
        uint64_t size, step, fails_at;
        int code; /* of send_file, until it works */
        unsigned asked;
};

static ssize_t tape_write(void *impl, const void *data, size_t size)
{
        struct tape *t = impl;
        size_t n = size < t->step ? size : (size_t)t->step;

        if (t->size >= t->fails_at)
                return -ECONNRESET;
        for (size_t i = 0; i < n; i++)
                ASSERT_EQ(((const char *)data)[i], at(t->size + i));
        t->size += n;
        return (ssize_t)n;
}

static ssize_t tape_send_file(void *impl, int fd, int64_t offset, size_t size)
{
        struct tape *t = impl;
        size_t n = size < t->step ? size : (size_t)t->step;

        (void)fd;
        t->asked++;
        if (t->code)
                return t->code;
        if (offset >= SIZE)
                return 0;
        ASSERT_EQ((uint64_t)offset, t->size);
        n = n < SIZE - (size_t)offset ? n : SIZE - (size_t)offset;
        t->size += n;
        return (ssize_t)n;
}

static void tape_close(void *impl)
{
        (void)impl;
}

static const resha_stream_ops copying = { .kind = "tape", .write = tape_write, .close = tape_close };
static const resha_stream_ops sending = {
        .kind = "tape",
        .write = tape_write,
        .close = tape_close,
        .send_file = tape_send_file,
};

TASK(a_kind_without_a_way_of_its_own_gets_copies)
{
        static const int codes[] = { 0, -EOPNOTSUPP, -EINVAL, -ENOSYS };
        FILE_FD(fd, 0);

        for (size_t i = 0; i <= sizeof codes / sizeof codes[0]; i++) {
                struct tape t = { .step = 999, .fails_at = UINT64_MAX, .code = i ? codes[i - 1] : 0 };
                resha_stream *s RESHA_CLEANUP(resha_stream_closep) = NULL;
                uint64_t sent = 0;
                ASSERT_OK(resha_stream_new(i ? &sending : &copying, &t, &s));
                ASSERT_OK(resha_send_file(s, fd, 0, UINT64_MAX, &sent));
                ASSERT_EQ(sent, SIZE);
                ASSERT_EQ(t.size, SIZE);
                ASSERT_EQ(t.asked, i == 0 ? 0 : i == 1 ? SIZE / 999 + 2 : 1);
        }
        return 0;
}

TASK(a_failure_says_how_much_was_sent_and_whose_it_is)
{
        FILE_FD(fd, 0);

        for (int i = 0; i < 2; i++) {
                struct tape t = { .step = 1000, .fails_at = i ? UINT64_MAX : 7000, .code = i ? -EIO : -EOPNOTSUPP };
                resha_stream *s RESHA_CLEANUP(resha_stream_closep) = NULL;
                uint64_t sent = 0;
                ASSERT_OK(resha_stream_new(&sending, &t, &s));
                ASSERT_EQ(resha_send_file(s, fd, 0, UINT64_MAX, &sent), i ? -EIO : -ECONNRESET);
                ASSERT_EQ(sent, i ? 0 : 7000);
                ASSERT_EQ(resha_flush(s), i ? 0 : -ECONNRESET); /* a file that cannot be read breaks no connection */
        }
        return 0;
}

static int count_turns(void *arg)
{
        int rc = 0;

        while (rc == 0) {
                ++*(unsigned *)arg;
                rc = resha_yield();
        }
        return rc;
}

TASK(others_get_their_turns_while_a_file_is_sent)
{
        FILE_FD(fd, 0);

        for (int i = 0; i < 2; i++) {
                struct tape t = { .step = 100, .fails_at = UINT64_MAX };
                resha_stream *s RESHA_CLEANUP(resha_stream_closep) = NULL;
                unsigned turns = 0;
                RESHA_GROUP(g);
                ASSERT_OK(resha_stream_new(i ? &sending : &copying, &t, &s));
                resha_group_begin(&g, &(resha_group_opts){ .background = true });
                resha_spawn(&g, count_turns, &turns);
                ASSERT_OK(resha_send_file(s, fd, 0, UINT64_MAX, NULL));
                ASSERT_TRUE(turns >= SIZE / 100 / 64 - 1);
                ASSERT_OK(resha_group_end(&g, 0));
        }
        return 0;
}
