/* SPDX-License-Identifier: MIT */
/* Real descriptors in the simulated world. */

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "world.h"

static struct rs_file *take(struct rs_backend *b, int fd, bool borrowed)
{
        struct rs_file *f;

        ASSERT_OK(b->ops->adopt(b, fd, borrowed, &f));
        return f;
}

TEST(a_regular_file_can_be_read_like_a_stream)
{
        struct rs_backend *b = world(0);
        FILE *t = tmpfile();
        char buf[16];

        ASSERT_TRUE(t && fputs("hello", t) >= 0 && fflush(t) == 0);
        rewind(t);
        struct rs_file *f = take(b, fileno(t), true);
        ASSERT_EQ(f->kind, RS_FILE_PLAIN);
        int64_t before = b->ops->now(b);
        ASSERT_EQ(read_op(b, f, buf, sizeof buf), 5);
        ASSERT_EQ(read_op(b, f, buf, sizeof buf), 0);
        ASSERT_EQ(b->ops->now(b), before);
        b->ops->file_close(f);
        ASSERT_EQ(fcntl(fileno(t), F_GETFD) >= 0, true); /* borrowed: still the caller's */
        fclose(t);
        end(b);
}

TEST(a_real_pipe_is_waited_for_and_left_as_it_was)
{
        struct rs_backend *b = world(0);
        int ends[2];
        char buf[16];

        ASSERT_EQ(pipe(ends), 0);
        struct rs_file *r = take(b, ends[0], false), *w = take(b, ends[1], false);
        struct rs_op read = READ(r, buf, sizeof buf);
        ASSERT_FALSE(submit(b, &read));
        ASSERT_EQ(b->pending, 1);
        ASSERT_EQ(write_op(b, w, "abc", 3), 3);
        ASSERT_EQ(finish(b, &read), 3);
        ASSERT_FALSE(submit(b, &read));
        ASSERT_TRUE(b->ops->cancel(b, &read));
        ASSERT_EQ(b->pending, 0);
        ASSERT_OK(b->ops->file_shutdown(w));
        ASSERT_EQ(read_op(b, r, buf, sizeof buf), 0);
        b->ops->file_close(w);
        ASSERT_EQ(b->ops->release(r), ends[0]);
        ASSERT_EQ(fcntl(ends[0], F_GETFL) & O_NONBLOCK, 0);
        close(ends[0]);
        end(b);
}

TEST(a_real_socket_has_names_options_and_an_end)
{
        struct rs_backend *b = world(0);
        int ends[2], v = 0;
        char buf[16];
        resha_addr a;

        ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        struct rs_file *f = take(b, ends[0], false), *g = take(b, ends[1], false);
        ASSERT_EQ(f->kind, RS_FILE_SOCKET);
        ASSERT_OK(b->ops->file_addr(f, false, &a));
        ASSERT_OK(b->ops->option(f, RS_OPTION_TYPE, &v, false));
        ASSERT_EQ(v, SOCK_STREAM);
        ASSERT_EQ(write_op(b, f, "ab", 2), 2);
        ASSERT_OK(b->ops->file_shutdown(f));
        ASSERT_EQ(read_op(b, g, buf, sizeof buf), 2);
        ASSERT_EQ(read_op(b, g, buf, sizeof buf), 0);
        b->ops->file_close(f);
        ASSERT_EQ(write_op(b, g, "ab", 2), -EPIPE);
        b->ops->file_close(g);
        end(b);
}

TEST(an_inherited_listener_accepts_real_connections)
{
        struct rs_backend *b = world(0);
        struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t size = sizeof in;
        int l = socket(AF_INET, SOCK_STREAM, 0), c = socket(AF_INET, SOCK_STREAM, 0);
        char buf[8];

        ASSERT_EQ(bind(l, (struct sockaddr *)&in, sizeof in), 0);
        ASSERT_EQ(listen(l, 5), 0);
        ASSERT_EQ(getsockname(l, (struct sockaddr *)&in, &size), 0);
        struct rs_file *f = take(b, l, false), *s;
        struct rs_op a = { .kind = RS_OP_ACCEPT, .file = f };
        ASSERT_FALSE(submit(b, &a));
        ASSERT_EQ(connect(c, (struct sockaddr *)&in, sizeof in), 0);
        ASSERT_EQ(finish(b, &a), 0);
        s = a.ret_file;
        ASSERT_EQ(send(c, "hey", 3, 0), 3);
        ASSERT_EQ(read_op(b, s, buf, sizeof buf), 3);
        close(c);
        b->ops->file_close(s);
        b->ops->file_close(f);
        end(b);
}

TEST(the_clock_stands_still_for_the_outside_alone)
{
        struct rs_backend *b = world(0);
        int ends[2];
        char buf[16];

        ASSERT_EQ(pipe(ends), 0);
        struct rs_file *r = take(b, ends[0], false);
        struct rs_op read = READ(r, buf, sizeof buf);
        int64_t t = b->ops->now(b);
        ASSERT_FALSE(submit(b, &read));
        ASSERT_OK(b->ops->wait(b, t + 5 * MS)); /* gets its real time, and then the clock goes on */
        ASSERT_EQ(b->ops->now(b), t + 5 * MS);
        ASSERT_EQ(write(ends[1], "x", 1), 1);
        ASSERT_OK(b->ops->wait(b, INT64_MAX));
        ASSERT_EQ(b->ops->now(b), t + 5 * MS);
        drain(b);
        ASSERT_EQ(read.result, 1);
        close(ends[1]);
        b->ops->file_close(r);
        end(b);
}

TEST(a_real_descriptor_has_one_who_waits_for_it)
{
        struct rs_backend *b = world(0);
        int ends[2];

        ASSERT_EQ(pipe(ends), 0);
        struct rs_op none = { .kind = RS_OP_POLL, .fd = -1, .events = POLLIN };
        struct rs_op first = { .kind = RS_OP_POLL, .fd = ends[0], .events = POLLIN }, second = first;
        ASSERT_TRUE(submit(b, &none));
        ASSERT_EQ(none.result, -EBADF);
        ASSERT_FALSE(submit(b, &first));
        ASSERT_TRUE(submit(b, &second));
        ASSERT_EQ(second.result, -EBUSY);
        ASSERT_TRUE(b->ops->cancel(b, &first));
        struct rs_file *f = take(b, ends[0], false);
        ASSERT_TRUE(submit(b, &second));
        ASSERT_EQ(second.result, -EBUSY);
        b->ops->file_close(f);
        close(ends[1]);
        end(b);
}

TEST(memory_alone_cannot_be_given_back_as_a_descriptor)
{
        struct rs_backend *b = world(0);
        struct rs_file *f = new_socket(b, AF_INET, SOCK_STREAM), *g;

        ASSERT_EQ(b->ops->release(f), -EOPNOTSUPP);
        ASSERT_EQ(b->ops->adopt(b, 999, false, &g), -EBADF);
        b->ops->file_close(f);
        end(b);
}

TEST(a_world_that_ends_closes_what_it_has_taken)
{
        struct rs_backend *b = world(0);
        int ends[2];

        ASSERT_EQ(pipe(ends), 0);
        take(b, ends[0], false);
        take(b, ends[1], true);
        end(b);
        ASSERT_EQ(fcntl(ends[0], F_GETFD), -1);
        ASSERT_EQ(close(ends[1]), 0);
        ASSERT_EQ(rs_alloc_live(), 0);
}
