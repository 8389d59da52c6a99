/* SPDX-License-Identifier: MIT */
/* What a machine connects within itself, in the simulated world without luck: Unix sockets and their names, pairs,
 * pipes, gathered writes and files that are sent. What is expected was seen on Linux. */

#include <limits.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

#include "world.h"

static struct rs_file *listen_at(struct rs_backend *b, const char *name, int backlog)
{
        resha_addr a = unix_at(name);
        struct rs_file *f = new_socket(b, AF_UNIX, SOCK_STREAM);

        ASSERT_OK(b->ops->bind(f, &a, 0));
        ASSERT_OK(b->ops->listen(f, backlog));
        return f;
}

static ssize_t connect_to(struct rs_backend *b, struct rs_file *f, const char *name)
{
        resha_addr a = unix_at(name);

        return connect_op(b, f, &a);
}

/* A new socket, connected there or not. */
static ssize_t try_name(struct rs_backend *b, const char *name)
{
        struct rs_file *f = new_socket(b, AF_UNIX, SOCK_STREAM);
        ssize_t rc = connect_to(b, f, name);

        b->ops->file_close(f);
        return rc;
}

/* ---- names ---- */

TEST(a_unix_name_is_taken_until_its_socket_is_closed)
{
        struct rs_backend *b = world(0);
        resha_addr path = unix_at("/run/x"), name = unix_at("@x"), none = unix_at("");
        struct rs_file *f[4];

        for (int i = 0; i < 4; i++)
                f[i] = new_socket(b, AF_UNIX, SOCK_STREAM);
        ASSERT_OK(b->ops->bind(f[0], &path, 0));
        ASSERT_EQ(b->ops->bind(f[0], &name, 0), -EINVAL);
        ASSERT_EQ(b->ops->bind(f[1], &path, RS_BIND_REUSE_ADDR), -EADDRINUSE);
        ASSERT_OK(b->ops->bind(f[1], &name, 0));
        ASSERT_EQ(b->ops->bind(f[2], &name, 0), -EADDRINUSE);
        b->ops->file_close(f[0]);
        ASSERT_OK(b->ops->bind(f[2], &path, 0));
        ASSERT_EQ(b->ops->listen(f[3], 1), -EINVAL); /* no name */
        ASSERT_OK(b->ops->bind(f[3], &none, 0));     /* any */
        ASSERT_OK(b->ops->file_addr(f[3], false, &name));
        ASSERT_EQ(name._[16], offsetof(struct sockaddr_un, sun_path) + 6);
        for (int i = 1; i < 4; i++)
                b->ops->file_close(f[i]);
        end(b);
}

TEST(connecting_to_a_unix_name_that_nobody_listens_at)
{
        struct rs_backend *b = world(0);
        resha_addr path = unix_at("x"), inet = at("127.0.0.1", 1);
        struct rs_file *f = new_socket(b, AF_UNIX, SOCK_STREAM), *l;

        ASSERT_EQ(try_name(b, "x"), -ENOENT);
        ASSERT_EQ(try_name(b, "@x"), -ECONNREFUSED);
        ASSERT_OK(b->ops->bind(f, &path, 0));
        ASSERT_EQ(try_name(b, "x"), -ECONNREFUSED);
        ASSERT_EQ(connect_op(b, f, &inet), -EINVAL);
        l = listen_at(b, "@full", 1);
        struct rs_file *some[3];
        for (int i = 0; i < 3; i++) {
                some[i] = new_socket(b, AF_UNIX, SOCK_STREAM);
                ASSERT_EQ(connect_to(b, some[i], "@full"), i < 2 ? 0 : -ENOBUFS);
        }
        ASSERT_EQ(connect_to(b, some[0], "@full"), -EISCONN);
        ASSERT_EQ(connect_to(b, l, "@full"), -EINVAL);
        for (int i = 0; i < 3; i++)
                b->ops->file_close(some[i]);
        b->ops->file_close(l);
        b->ops->file_close(f);
        end(b);
}

TEST(both_ends_of_a_unix_connection_know_their_names)
{
        struct rs_backend *b = world(0);
        struct rs_file *l = listen_at(b, "/s", 5), *c = new_socket(b, AF_UNIX, SOCK_STREAM), *a;
        resha_addr mine = unix_at("@client"), want = unix_at("/s"), got;

        ASSERT_EQ(b->ops->file_addr(c, true, &got), -ENOTCONN);
        ASSERT_OK(b->ops->bind(c, &mine, 0));
        ASSERT_EQ(connect_to(b, c, "/s"), 0);
        a = accept_op(b, l);
        ASSERT_OK(b->ops->file_addr(c, true, &got));
        ASSERT_EQ(memcmp(&got, &want, sizeof got), 0);
        ASSERT_OK(b->ops->file_addr(a, false, &got));
        ASSERT_EQ(memcmp(&got, &want, sizeof got), 0);
        ASSERT_OK(b->ops->file_addr(a, true, &got));
        ASSERT_EQ(memcmp(&got, &mine, sizeof got), 0);
        b->ops->file_close(c);
        ASSERT_OK(b->ops->file_addr(a, true, &got));
        b->ops->file_close(a);
        b->ops->file_close(l);
        end(b);
}

/* ---- Unix connections ---- */

struct two {
        struct rs_backend *b;
        struct rs_file *x, *y;
};

static struct two make_two(bool pipe)
{
        struct two t = { .b = world(0) };
        struct rs_file *f[2];

        ASSERT_OK(pipe ? t.b->ops->pipe(t.b, f) : t.b->ops->pair(t.b, SOCK_STREAM, f));
        t.x = f[0];
        t.y = f[1];
        return t;
}

static void close_two(struct two *t)
{
        if (t->x)
                t->b->ops->file_close(t->x);
        if (t->y)
                t->b->ops->file_close(t->y);
        end(t->b);
}

static void close_one(struct two *t, struct rs_file **f)
{
        t->b->ops->file_close(*f);
        *f = NULL;
}

TEST(a_pair_that_is_closed_in_order_ends_after_its_bytes)
{
        struct two t = make_two(false);
        char buf[8];

        ASSERT_EQ(write_op(t.b, t.x, "ab", 2), 2);
        close_one(&t, &t.x);
        ASSERT_EQ(write_op(t.b, t.y, "x", 1), -EPIPE); /* known at once */
        ASSERT_EQ(read_op(t.b, t.y, buf, sizeof buf), 2);
        ASSERT_EQ(read_op(t.b, t.y, buf, sizeof buf), 0);
        ASSERT_OK(t.b->ops->file_shutdown(t.y));
        close_two(&t);
}

TEST(a_pair_that_is_closed_with_unread_bytes_says_so_once_after_its_own)
{
        struct two t = make_two(false);
        char buf[8];

        ASSERT_EQ(write_op(t.b, t.x, "1", 1), 1);
        ASSERT_EQ(write_op(t.b, t.y, "22", 2), 2);
        close_one(&t, &t.x);
        ASSERT_EQ(write_op(t.b, t.y, "x", 1), -EPIPE);
        ASSERT_EQ(read_op(t.b, t.y, buf, sizeof buf), 1);
        ASSERT_EQ(read_op(t.b, t.y, buf, sizeof buf), -ECONNRESET);
        ASSERT_EQ(read_op(t.b, t.y, buf, sizeof buf), 0);
        ASSERT_EQ(write_op(t.b, t.y, "x", 1), -EPIPE);
        close_two(&t);
}

TEST(half_a_pair_may_be_closed)
{
        struct two t = make_two(false);
        char buf[8];

        ASSERT_OK(t.b->ops->file_shutdown(t.x));
        ASSERT_EQ(write_op(t.b, t.x, "x", 1), -EPIPE);
        ASSERT_EQ(read_op(t.b, t.y, buf, sizeof buf), 0);
        ASSERT_EQ(write_op(t.b, t.y, "abc", 3), 3);
        ASSERT_EQ(read_op(t.b, t.x, buf, sizeof buf), 3);
        close_two(&t);
}

TEST(sockets_before_they_are_connected)
{
        struct rs_backend *b = world(0);
        struct rs_file *tcp = new_socket(b, AF_INET, SOCK_STREAM), *un = new_socket(b, AF_UNIX, SOCK_STREAM);
        resha_addr got;
        char c;

        ASSERT_EQ(read_op(b, tcp, &c, 1), -ENOTCONN);
        ASSERT_EQ(read_op(b, un, &c, 1), -EINVAL);
        ASSERT_EQ(write_op(b, tcp, "x", 1), -EPIPE);
        ASSERT_EQ(write_op(b, un, "x", 1), -ENOTCONN);
        ASSERT_EQ(b->ops->file_shutdown(tcp), -ENOTCONN);
        ASSERT_OK(b->ops->file_shutdown(un));
        ASSERT_OK(b->ops->file_addr(tcp, false, &got));
        ASSERT_EQ(port_of(&got), 0);
        ASSERT_OK(b->ops->file_addr(un, false, &got));
        ASSERT_EQ(got._[16], sizeof(sa_family_t));
        b->ops->file_close(tcp);
        b->ops->file_close(un);
        end(b);
}

/* ---- pipes ---- */

TEST(a_pipe_ends_with_its_last_writer)
{
        struct two t = make_two(true);
        char buf[8];
        resha_addr a;

        ASSERT_EQ(t.x->kind, RS_FILE_PIPE);
        ASSERT_EQ(write_op(t.b, t.y, "ab", 2), 2);
        ASSERT_EQ(write_op(t.b, t.x, "x", 1), -EBADF);
        ASSERT_EQ(read_op(t.b, t.y, buf, 1), -EBADF);
        ASSERT_EQ(t.b->ops->file_shutdown(t.x), -EOPNOTSUPP);
        ASSERT_EQ(t.b->ops->file_addr(t.y, false, &a), -ENOTSOCK);
        ASSERT_OK(t.b->ops->file_shutdown(t.y)); /* as good as closed */
        ASSERT_EQ(write_op(t.b, t.y, "x", 1), -EPIPE);
        ASSERT_EQ(read_op(t.b, t.x, buf, sizeof buf), 2);
        ASSERT_EQ(read_op(t.b, t.x, buf, sizeof buf), 0);
        close_two(&t);
}

TEST(a_pipe_without_a_reader_breaks_also_for_who_waits)
{
        struct two t = make_two(true);
        static char data[70000];
        struct rs_op w = WRITE(t.y, data, 10);

        ASSERT_EQ(write_op(t.b, t.y, data, sizeof data), 65536);
        ASSERT_FALSE(submit(t.b, &w));
        close_one(&t, &t.x);
        ASSERT_EQ(finish(t.b, &w), -EPIPE);
        close_two(&t);
}

TEST(a_small_write_to_a_pipe_is_never_split)
{
        struct two t = make_two(true);
        static char data[65536];
        struct rs_op w = WRITE(t.y, data, PIPE_BUF), large = WRITE(t.y, data, PIPE_BUF + 1);

        ASSERT_EQ(write_op(t.b, t.y, data, 65536 - 100), 65536 - 100);
        ASSERT_FALSE(submit(t.b, &w));
        ASSERT_EQ(read_op(t.b, t.x, data, PIPE_BUF - 101), PIPE_BUF - 101);
        ASSERT_EQ(t.b->ops->wait(t.b, INT64_MAX), -EDEADLK);
        ASSERT_EQ(read_op(t.b, t.x, data, 1), 1);
        ASSERT_EQ(finish(t.b, &w), PIPE_BUF);
        ASSERT_FALSE(submit(t.b, &large));
        ASSERT_EQ(read_op(t.b, t.x, data, 1), 1);
        ASSERT_EQ(finish(t.b, &large), 1);
        close_two(&t);
}

TEST(no_memory_for_a_pair_leaves_nothing)
{
        for (int n = 1; n <= 4; n++) {
                struct rs_backend *b = world(0);
                struct rs_file *f[2];
                rs_alloc_fail_after(n, false);
                ASSERT_EQ(b->ops->pair(b, SOCK_STREAM, f), -ENOMEM);
                ASSERT_OK(b->ops->pair(b, SOCK_STREAM, f));
                b->ops->file_close(f[0]);
                b->ops->file_close(f[1]);
                end(b);
        }
}

/* ---- parts and files ---- */

TEST(gathered_writes_are_one_stream)
{
        struct two t = make_two(false);
        struct iovec parts[] = { { (void *)(uintptr_t) "ab", 2 }, { NULL, 0 }, { (void *)(uintptr_t) "cde", 3 } };
        struct rs_op w = { .kind = RS_OP_WRITE_VEC, .file = t.x, .buf = parts, .size = 3 };
        static char data[65536];

        ASSERT_EQ(run(t.b, &w), 5);
        ASSERT_EQ(read_op(t.b, t.y, data, 10), 5);
        ASSERT_EQ(memcmp(data, "abcde", 5), 0);
        ASSERT_EQ(write_op(t.b, t.x, data, 65536 - 3), 65536 - 3);
        ASSERT_EQ(run(t.b, &w), 3); /* of both parts, as far as there is room */
        ASSERT_EQ(read_op(t.b, t.y, data, 65536), 65536);
        ASSERT_EQ(memcmp(data + 65536 - 3, "abc", 3), 0);
        close_two(&t);
}

static int temporary(const char *text, size_t size)
{
        FILE *f = tmpfile();

        ASSERT_TRUE(f && fwrite(text, 1, size, f) == size && fflush(f) == 0);
        int fd = dup(fileno(f));
        fclose(f);
        return fd;
}

TEST(a_file_is_sent_from_an_offset_to_its_end)
{
        struct two t = make_two(false);
        int fd = temporary("0123456789", 10);
        struct rs_op s = { .kind = RS_OP_SEND_FILE, .file = t.x, .fd = fd, .offset = 4, .size = SIZE_MAX };
        static char buf[65536];

        ASSERT_EQ(write_op(t.b, t.x, buf, 65536 - 2), 65536 - 2);
        ASSERT_EQ(run(t.b, &s), 2);
        ASSERT_EQ(read_op(t.b, t.y, buf, 65536), 65536);
        s.offset += 2;
        ASSERT_EQ(run(t.b, &s), 4); /* around the end of the ring */
        ASSERT_EQ(read_op(t.b, t.y, buf, 10), 4);
        ASSERT_EQ(memcmp(buf, "6789", 4), 0);
        s.offset += 4;
        ASSERT_EQ(run(t.b, &s), 0);
        close(fd);
        ASSERT_EQ(run(t.b, &s), -EBADF);
        close_two(&t);
}

TEST(what_is_no_file_cannot_be_sent)
{
        struct two t = make_two(false);
        int ends[2];

        ASSERT_EQ(pipe(ends), 0);
        struct rs_op s = { .kind = RS_OP_SEND_FILE, .file = t.x, .fd = ends[0], .size = 5 };
        ASSERT_EQ(run(t.b, &s), -ESPIPE);
        close(ends[0]);
        close(ends[1]);
        close_two(&t);
}

/* ---- a name of one's own, and names that are shared, for TCP ---- */

TEST(a_caller_may_choose_its_address)
{
        struct rs_backend *b = world(0);
        resha_addr to = at("10.0.0.1", 80), mine = at("127.0.0.1", 7000), any = at("", 7001), got;
        struct rs_file *l, *f = new_socket(b, AF_INET, SOCK_STREAM), *g = new_socket(b, AF_INET, SOCK_STREAM), *s;

        ASSERT_OK(world_listen(b, &to, 9, &l));
        ASSERT_OK(b->ops->bind(f, &mine, RS_BIND_REUSE_ADDR));
        ASSERT_EQ(b->ops->bind(g, &mine, 0), -EADDRINUSE);
        ASSERT_EQ(connect_op(b, f, &to), 0);
        s = accept_op(b, l);
        ASSERT_OK(b->ops->file_addr(s, true, &got));
        ASSERT_EQ(memcmp(&got, &mine, sizeof got), 0);
        ASSERT_OK(b->ops->bind(g, &mine, RS_BIND_REUSE_ADDR));
        ASSERT_EQ(connect_op(b, g, &to), -EADDRNOTAVAIL);
        b->ops->file_close(g);
        g = new_socket(b, AF_INET, SOCK_STREAM);
        ASSERT_OK(b->ops->bind(g, &any, 0));
        ASSERT_EQ(connect_op(b, g, &to), 0);
        ASSERT_OK(b->ops->file_addr(g, false, &got));
        any = at("10.0.0.1", 7001);
        ASSERT_EQ(memcmp(&got, &any, sizeof got), 0);
        b->ops->file_close(f);
        b->ops->file_close(g);
        b->ops->file_close(s);
        b->ops->file_close(l);
        end(b);
}

TEST(listeners_that_share_a_port_take_turns)
{
        struct rs_backend *b = world(0);
        resha_addr a = at("", 80);
        struct rs_file *l[2], *f[4];

        for (int i = 0; i < 2; i++) {
                l[i] = new_socket(b, AF_INET, SOCK_STREAM);
                ASSERT_OK(b->ops->bind(l[i], &a, RS_BIND_REUSE_PORT));
                ASSERT_OK(b->ops->listen(l[i], 9));
        }
        for (int i = 0; i < 4; i++) {
                f[i] = new_socket(b, AF_INET, SOCK_STREAM);
                ASSERT_EQ(connect_op(b, f[i], &a), 0);
        }
        for (int i = 0; i < 4; i++)
                b->ops->file_close(accept_op(b, l[i % 2]));
        for (int i = 0; i < 4; i++)
                b->ops->file_close(f[i]);
        b->ops->file_close(l[0]);
        b->ops->file_close(l[1]);
        end(b);
}

TEST(nobody_answers_at_a_silent_address)
{
        struct rs_backend *b = world(0);
        resha_addr a = at("10.0.0.1", 0), to = at("10.0.0.1", 80);
        struct rs_file *l, *f = new_socket(b, AF_INET, SOCK_STREAM);
        int64_t t = b->ops->now(b);

        ASSERT_OK(world_listen(b, &to, 9, &l));
        ASSERT_OK(rs_sim_silent(b, &a));
        ASSERT_EQ(connect_op(b, f, &to), -ETIMEDOUT);
        ASSERT_EQ(b->ops->now(b) - t, 127000 * MS);
        struct rs_op op = { .kind = RS_OP_CONNECT, .file = f, .addr = &to };
        ASSERT_FALSE(submit(b, &op));
        ASSERT_TRUE(b->ops->cancel(b, &op));
        ASSERT_EQ(b->ops->wait(b, INT64_MAX), -EDEADLK); /* nothing is left of it */
        b->ops->file_close(f);
        b->ops->file_close(l);
        end(b);
}
