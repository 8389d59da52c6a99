/* SPDX-License-Identifier: MIT */
/* Pipes and pairs of streams. */

#include "pair.h"

#include <unistd.h>

#define PIPE(p) \
        struct pair p RESHA_CLEANUP(pair_close) = { NULL, NULL }; \
        ASSERT_OK(resha_pipe(&p.here, &p.there)) /* here: for reading */

static int read_until_the_end(void *arg)
{
        char buf[1000];
        size_t got = 0;
        ssize_t n;

        while ((n = resha_read(arg, buf, sizeof buf)) > 0)
                got += (size_t)n;
        return n < 0 ? (int)n : (int)got;
}

TASK(bytes_go_through_a_pipe)
{
        char buf[16];

        PIPE(p);
        ASSERT_STR(resha_stream_kind(p.here), "pipe");
        ASSERT_OK(resha_write_all(p.there, "abc", 3, NULL));
        ASSERT_EQ(resha_read(p.here, buf, sizeof buf), 3);
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        speak(&g, p.there, "one\ntwo", true);
        ASSERT_EQ(resha_read_line(p.here, buf, sizeof buf), 4);
        ASSERT_STR(buf, "one\n");
        ASSERT_EQ(resha_read_line(p.here, buf, sizeof buf), 3);
        ASSERT_STR(buf, "two");
        ASSERT_EQ(resha_read_line(p.here, buf, sizeof buf), 0);
        return resha_group_end(&g, 0);
}

enum ending { CLOSE, SHUTDOWN, FINISH };

static int ends(void *arg)
{
        enum ending how = *(enum ending *)arg;
        char buf[16];

        PIPE(p);
        ASSERT_OK(resha_stream_buffer(p.there, how == FINISH ? 10 : 0));
        ASSERT_OK(resha_write_all(p.there, "last", 4, NULL));
        if (how == CLOSE)
                resha_stream_closep(&p.there);
        else
                ASSERT_OK(how == SHUTDOWN ? resha_stream_shutdown(p.there) : resha_stream_finish(p.there));
        ASSERT_EQ(resha_read_exactly(p.here, buf, sizeof buf), 4);
        for (int i = 0; i < 3; i++)
                ASSERT_EQ(resha_read(p.here, buf, sizeof buf), 0);
        for (int i = 0; i < 2 && how != CLOSE; i++) {
                ASSERT_EQ(resha_write_all(p.there, "x", 1, NULL), -EPIPE);
                ASSERT_TRUE(resha_read(p.there, buf, sizeof buf) < 0);
                ASSERT_OK(resha_stream_shutdown(p.there));
        }
        return 0;
}

TEST(the_reader_of_a_pipe_sees_the_end_however_the_writer_ends)
{
        for (enum ending how = CLOSE; how <= FINISH; how++)
                RUN(ends, &how);
}

static int write_much(void *arg)
{
        static const char much[1 << 20];
        struct flow {
                resha_stream *to;
                size_t written;
                int rc;
        } *f = arg;

        f->rc = resha_write_all(f->to, much, sizeof much, &f->written);
        return f->rc == -ECANCELED ? f->rc : 0;
}

/* SIGPIPE would end this process. */
TASK(a_pipe_whose_reader_is_gone_says_so_without_a_signal)
{
        PIPE(p);
        resha_stream_closep(&p.here);
        for (int i = 0; i < 3; i++)
                ASSERT_EQ(resha_write_all(p.there, "x", 1, NULL), -EPIPE);
        return 0;
}

TASK(a_writer_that_waits_learns_that_the_reader_is_gone)
{
        PIPE(p);
        struct {
                resha_stream *to;
                size_t written;
                int rc;
        } f = { .to = p.there };
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, write_much, &f);
        ASSERT_OK(resha_sleep(RESHA_MS(20)));
        ASSERT_EQ(f.rc, 0);
        ASSERT_EQ(resha_stream_shutdown(p.there), -EBUSY);
        resha_stream_closep(&p.here);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(f.rc, -EPIPE);
        ASSERT_TRUE(f.written > 0 && f.written < 1 << 20);
        return 0;
}

static int cancelled_write(void *unused)
{
        (void)unused;
        PIPE(p);
        struct {
                resha_stream *to;
                size_t written;
                int rc;
        } f = { .to = p.there };
        resha_task reader = { 0 };
        int got = 0;
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_EQ(resha_timeout(RESHA_MS(5), write_much, &f), -ETIME);
        ASSERT_EQ(f.rc, -ECANCELED);
        resha_stream_closep(&p.there);
        resha_spawn_opt(&g, read_until_the_end, p.here, &(resha_spawn_opts){ .task = &reader });
        ASSERT_OK(resha_task_wait(&reader, &got));
        ASSERT_EQ(got, f.written);
        return resha_group_end(&g, 0);
}

TEST(a_cancelled_write_to_a_pipe_says_how_much_was_taken)
{
        RUN(cancelled_write, NULL);
        RUN_SEEDS(cancelled_write, NULL, 10);
}

TASK(a_pipe_has_no_addresses_and_no_options)
{
        resha_addr a;
        int value;

        PIPE(p);
        ASSERT_EQ(resha_stream_addr(p.here, true, &a), -EOPNOTSUPP);
        ASSERT_EQ(resha_stream_get(p.here, RESHA_STREAM_NODELAY, &value), -EOPNOTSUPP);
        ASSERT_EQ(resha_stream_set(p.here, RESHA_STREAM_SEND_BUFFER, 4096), -EOPNOTSUPP);
        return 0;
}

TASK(closing_ends_who_waits_at_a_pipe)
{
        PIPE(p);
        resha_task reader = { 0 };
        int rc = 0;
        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .keep_going = true });
        resha_spawn_opt(&g, read_until_the_end, p.here, &(resha_spawn_opts){ .task = &reader });
        ASSERT_OK(resha_sleep(RESHA_MS(1)));
        resha_stream_closep(&p.here);
        ASSERT_OK(resha_task_wait(&reader, &rc));
        ASSERT_EQ(rc, -EBADF);
        ASSERT_EQ(resha_group_end(&g, 0), -EBADF);
        return 0;
}

/* ---- pairs ---- */

TASK(a_pair_talks_both_ways_and_ends_by_halves)
{
        struct pair p RESHA_CLEANUP(pair_close) = { NULL, NULL };
        resha_stream *both[2];
        char buf[16];

        ASSERT_OK(resha_stream_pair(both));
        p = (struct pair){ both[0], both[1] };
        ASSERT_STR(resha_stream_kind(p.here), "unix");
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        speak(&g, p.here, "there", true);
        ASSERT_EQ(resha_read_exactly(p.there, buf, sizeof buf), 5);
        ASSERT_EQ(resha_read(p.there, buf, sizeof buf), 0);
        speak(&g, p.there, "back", true);
        ASSERT_EQ(resha_read_exactly(p.here, buf, sizeof buf), 4);
        ASSERT_EQ(resha_read(p.here, buf, sizeof buf), 0);
        return resha_group_end(&g, 0);
}

TASK(a_pair_whose_other_end_is_gone_says_so_without_a_signal)
{
        struct pair p RESHA_CLEANUP(pair_close) = { NULL, NULL };
        resha_stream *both[2];
        char buf[16];

        ASSERT_OK(resha_stream_pair(both));
        p = (struct pair){ both[0], both[1] };
        resha_stream_closep(&p.there);
        ASSERT_EQ(resha_read(p.here, buf, sizeof buf), 0);
        for (int i = 0; i < 2; i++)
                ASSERT_EQ(resha_write_all(p.here, "x", 1, NULL), -EPIPE);
        return 0;
}

TASK(options_of_a_connection_are_what_they_were_set_to)
{
        int value = -1;

        PAIR(p);
        ASSERT_STR(resha_stream_kind(p.here), "tcp");
        ASSERT_OK(resha_stream_get(p.here, RESHA_STREAM_NODELAY, &value));
        ASSERT_EQ(value, 1);
        ASSERT_OK(resha_stream_set(p.here, RESHA_STREAM_NODELAY, 0));
        ASSERT_OK(resha_stream_get(p.here, RESHA_STREAM_NODELAY, &value));
        ASSERT_EQ(value, 0);
        ASSERT_OK(resha_stream_get(p.there, RESHA_STREAM_KEEPALIVE, &value));
        ASSERT_EQ(value, 0);
        ASSERT_OK(resha_stream_set(p.there, RESHA_STREAM_KEEPALIVE, 70));
        ASSERT_OK(resha_stream_get(p.there, RESHA_STREAM_KEEPALIVE, &value));
        ASSERT_EQ(value, 70);
        ASSERT_OK(resha_stream_set(p.there, RESHA_STREAM_KEEPALIVE, 0));
        ASSERT_OK(resha_stream_get(p.there, RESHA_STREAM_KEEPALIVE, &value));
        ASSERT_EQ(value, 0);
        ASSERT_OK(resha_stream_set(p.there, RESHA_STREAM_USER_TIMEOUT, 1500));
        ASSERT_OK(resha_stream_get(p.there, RESHA_STREAM_USER_TIMEOUT, &value));
        ASSERT_EQ(value, 1500);
        ASSERT_OK(resha_stream_set(p.there, RESHA_STREAM_RECEIVE_BUFFER, 8192));
        ASSERT_OK(resha_stream_get(p.there, RESHA_STREAM_RECEIVE_BUFFER, &value));
        ASSERT_TRUE(value >= 8192);
        ASSERT_EQ(resha_stream_set(p.there, RESHA_STREAM_KEEPALIVE, -1), -EINVAL);
        ASSERT_EQ(resha_stream_get(p.there, (enum resha_stream_option)99, &value), -EINVAL);
        return 0;
}

TASK(a_pipe_that_was_ended_has_no_descriptor_to_give_back)
{
        resha_stream *s;
        int fds[2], fd = -1;

        ASSERT_OK(pipe(fds));
        ASSERT_OK(resha_stream_adopt(fds[1], &s));
        ASSERT_OK(resha_stream_shutdown(s));
        ASSERT_EQ(resha_stream_release(s, &fd), -EOPNOTSUPP);
        ASSERT_EQ(fd, -1);
        ASSERT_STR(resha_stream_kind(s), "pipe");
        resha_stream_close(s);
        close(fds[0]);
        return 0;
}
