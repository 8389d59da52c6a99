/* SPDX-License-Identifier: MIT */
/* TCP of the simulated world, without luck: connecting, bytes, ends and resets. */

#include "world.h"

/* ---- connecting ---- */

TEST(ports_are_given_from_40000_and_taken_ones_refused)
{
        struct rs_backend *b = world(0);
        struct rs_file *f[4], *none = NULL;
        resha_addr any = at("", 0), one = at("10.0.0.1", 80), all = at("", 80), got;

        for (int i = 0; i < 2; i++) {
                ASSERT_OK(world_listen(b, &any, 1, &f[i]));
                ASSERT_OK(b->ops->file_addr(f[i], false, &got));
                ASSERT_EQ(port_of(&got), 40000 + i);
        }
        ASSERT_OK(world_listen(b, &one, 1, &f[2]));
        ASSERT_EQ(world_listen(b, &one, 1, &none), -EADDRINUSE);
        ASSERT_EQ(world_listen(b, &all, 1, &none), -EADDRINUSE);
        one = at("127.0.0.1", 80);
        ASSERT_OK(world_listen(b, &one, 1, &f[3]));
        ASSERT_TRUE(!none);
        for (int i = 0; i < 4; i++)
                b->ops->file_close(f[i]);
        ASSERT_OK(world_listen(b, &all, 1, &f[0])); /* free again */
        b->ops->file_close(f[0]);
        end(b);
}

TEST(connect_needs_somebody_who_listens_there)
{
        struct rs_backend *b = world(0);
        resha_addr one = at("10.0.0.1", 80);
        struct rs_file *l;

        ASSERT_EQ(try_connect(b, "10.0.0.1", 80), -ECONNREFUSED);
        ASSERT_OK(world_listen(b, &one, 16, &l));
        ASSERT_EQ(try_connect(b, "10.0.0.1", 80), 0);
        ASSERT_EQ(try_connect(b, "10.0.0.1", 81), -ECONNREFUSED);
        ASSERT_EQ(try_connect(b, "127.0.0.1", 80), -ECONNREFUSED);
        b->ops->file_close(l);
        ASSERT_EQ(try_connect(b, "10.0.0.1", 80), -ECONNREFUSED);
        end(b);
}

TEST(both_ends_agree_on_their_addresses)
{
        struct rs_backend *b = world(0);
        struct pair p = join(b);
        resha_addr x, y;

        ASSERT_OK(b->ops->file_addr(p.client, false, &x));
        ASSERT_OK(b->ops->file_addr(p.server, true, &y));
        ASSERT_EQ(memcmp(&x, &y, sizeof x), 0);
        ASSERT_EQ(port_of(&x), 50000);
        ASSERT_OK(b->ops->file_addr(p.client, true, &x));
        ASSERT_OK(b->ops->file_addr(p.server, false, &y));
        ASSERT_EQ(memcmp(&x, &y, sizeof x), 0);
        ASSERT_EQ(port_of(&x), 40000);
        ASSERT_EQ(b->ops->file_addr(p.listener, true, &x), -ENOTCONN);
        close_all(b, &p);
}

/* More callers than the backlog takes: they wait, and get in after an accept; or are refused when the listener goes. */
static void full_backlog(bool close_listener)
{
        struct rs_backend *b = world(0);
        resha_addr to = at("127.0.0.1", 80);
        struct rs_file *l, *f[4];
        struct rs_op op[4], accept_op;

        ASSERT_OK(world_listen(b, &to, 1, &l));
        for (int i = 0; i < 4; i++) {
                ASSERT_OK(b->ops->socket(b, AF_INET, SOCK_STREAM, &f[i]));
                op[i] = (struct rs_op){ .kind = RS_OP_CONNECT, .file = f[i], .addr = &to };
                ASSERT_EQ(submit(b, &op[i]), i < 2);
        }
        ASSERT_TRUE(b->ops->cancel(b, &op[2]));
        ASSERT_EQ(op[2].result, -ECANCELED);
        if (close_listener) {
                b->ops->file_close(l);
                ASSERT_EQ(finish(b, &op[3]), -ECONNREFUSED);
                char c;
                ASSERT_EQ(read_op(b, f[0], &c, 1), -ECONNRESET);
        } else {
                accept_op = (struct rs_op){ .kind = RS_OP_ACCEPT, .file = l };
                ASSERT_EQ(run(b, &accept_op), 0);
                ASSERT_EQ(finish(b, &op[3]), 0);
                b->ops->file_close(accept_op.ret_file);
                b->ops->file_close(l);
        }
        for (int i = 0; i < 4; i++)
                b->ops->file_close(f[i]);
        end(b);
}

TEST(connect_waits_while_the_backlog_is_full)
{
        full_backlog(false);
}
TEST(closing_a_listener_turns_its_callers_away)
{
        full_backlog(true);
}

TEST(no_memory_for_a_connection_is_an_error_of_the_connect)
{
        for (int n = 1; n <= 3; n++) {
                struct rs_backend *b = world(0);
                resha_addr to = at("127.0.0.1", 80);
                struct rs_file *l, *f;
                ASSERT_OK(world_listen(b, &to, 1, &l));
                ASSERT_OK(b->ops->socket(b, AF_INET, SOCK_STREAM, &f));
                struct rs_op op = { .kind = RS_OP_CONNECT, .file = f, .addr = &to };
                rs_alloc_fail_after(n, false);
                ASSERT_EQ(run(b, &op), -ENOMEM);
                ASSERT_EQ(run(b, &op), 0); /* nothing was left half done */
                b->ops->file_close(f);
                b->ops->file_close(l);
                end(b);
        }
}

/* ---- bytes ---- */

TEST(without_a_seed_bytes_are_there_at_once)
{
        struct rs_backend *b = world(0);
        struct pair p = join(b);
        int64_t t = b->ops->now(b);
        char buf[16];

        struct rs_op w = WRITE(p.client, "hello", 5), r = READ(p.server, buf, sizeof buf);
        ASSERT_TRUE(submit(b, &w));
        ASSERT_EQ(w.result, 5);
        ASSERT_TRUE(submit(b, &r));
        ASSERT_EQ(r.result, 5);
        ASSERT_EQ(memcmp(buf, "hello", 5), 0);
        ASSERT_EQ(b->ops->now(b), t);
        close_all(b, &p);
}

TEST(a_pending_read_is_finished_by_wait_alone)
{
        struct rs_backend *b = world(0);
        struct pair p = join(b);
        char buf[16];
        struct rs_op r = READ(p.server, buf, sizeof buf), w = WRITE(p.client, "x", 1);

        ASSERT_FALSE(submit(b, &r));
        ASSERT_EQ(b->pending, 1);
        ASSERT_TRUE(submit(b, &w));
        ASSERT_EQ(r.state, RS_OP_PENDING);
        ASSERT_OK(b->ops->wait(b, INT64_MAX));
        ASSERT_EQ(r.state, RS_OP_DONE);
        ASSERT_EQ(b->pending, 0);
        ASSERT_PTR(b->done.first, &r.link);
        drain(b);
        close_all(b, &p);
}

TEST(a_cancelled_read_takes_nothing)
{
        struct rs_backend *b = world(0);
        struct pair p = join(b);
        char buf[16] = "";
        struct rs_op r = READ(p.server, buf, sizeof buf);

        ASSERT_FALSE(submit(b, &r));
        ASSERT_EQ(write_op(b, p.client, "x", 1), 1);
        ASSERT_TRUE(b->ops->cancel(b, &r));
        ASSERT_EQ(r.state, RS_OP_IDLE);
        ASSERT_EQ(r.result, -ECANCELED);
        ASSERT_EQ(b->pending, 0);
        ASSERT_EQ(buf[0], 0);
        ASSERT_EQ(read_op(b, p.server, buf, sizeof buf), 1);
        close_all(b, &p);
}

TEST(a_writer_waits_while_the_reader_does_not_read)
{
        struct rs_backend *b = world(0);
        struct pair p = join(b);
        static char data[65536 + 100], buf[1000];
        struct rs_op w = WRITE(p.client, data, 100);

        ASSERT_EQ(write_op(b, p.client, data, sizeof data), 65536);
        ASSERT_FALSE(submit(b, &w));
        ASSERT_EQ(b->ops->wait(b, INT64_MAX), -EDEADLK);
        ASSERT_EQ(read_op(b, p.server, buf, 60), 60);
        ASSERT_EQ(finish(b, &w), 60);
        close_all(b, &p);
}

/* ---- ends and resets ---- */

TEST(half_close_leaves_the_other_way_open)
{
        struct rs_backend *b = world(0);
        struct pair p = join(b);
        char buf[16];

        ASSERT_EQ(write_op(b, p.client, "ab", 2), 2);
        ASSERT_OK(b->ops->file_shutdown(p.client));
        ASSERT_OK(b->ops->file_shutdown(p.client));
        ASSERT_EQ(write_op(b, p.client, "x", 1), -EPIPE);
        ASSERT_EQ(read_op(b, p.server, buf, sizeof buf), 2);
        ASSERT_EQ(read_op(b, p.server, buf, sizeof buf), 0);
        ASSERT_EQ(read_op(b, p.server, buf, sizeof buf), 0);
        ASSERT_EQ(write_op(b, p.server, "cde", 3), 3);
        ASSERT_EQ(read_op(b, p.client, buf, sizeof buf), 3);
        ASSERT_OK(b->ops->file_shutdown(p.listener)); /* nothing to it, as on Linux */
        close_all(b, &p);
}

TEST(an_orderly_close_is_an_end_after_the_bytes_then_epipe)
{
        struct rs_backend *b = world(0);
        struct pair p = join(b);
        char buf[16];

        ASSERT_EQ(write_op(b, p.client, "ab", 2), 2);
        b->ops->file_close(p.client);
        p.client = NULL;
        ASSERT_EQ(read_op(b, p.server, buf, sizeof buf), 2);
        ASSERT_EQ(read_op(b, p.server, buf, sizeof buf), 0);
        ASSERT_EQ(write_op(b, p.server, "xyz", 3), 3); /* it cannot know yet */
        ASSERT_EQ(write_op(b, p.server, "xyz", 3), -EPIPE);
        ASSERT_EQ(write_op(b, p.server, "xyz", 3), -EPIPE);
        ASSERT_EQ(read_op(b, p.server, buf, sizeof buf), 0);
        close_all(b, &p);
}

TEST(a_close_with_unread_bytes_resets_the_other_end_once)
{
        struct rs_backend *b = world(0);
        struct pair p = join(b);
        char buf[16];

        ASSERT_EQ(write_op(b, p.server, "seen", 4), 4);
        ASSERT_EQ(write_op(b, p.client, "ab", 2), 2);
        b->ops->file_close(p.server);
        p.server = NULL;
        ASSERT_EQ(read_op(b, p.client, buf, 4), 4); /* it had arrived */
        ASSERT_EQ(read_op(b, p.client, buf, 4), -ECONNRESET);
        ASSERT_EQ(read_op(b, p.client, buf, 4), 0);
        ASSERT_EQ(write_op(b, p.client, "x", 1), -EPIPE);
        close_all(b, &p);
}

TEST(a_reset_ends_those_who_wait)
{
        struct rs_backend *b = world(0);
        struct pair p = join(b);
        static char data[70000], buf[16];
        struct rs_op r = READ(p.client, buf, sizeof buf), w = WRITE(p.client, data, 10);

        ASSERT_EQ(write_op(b, p.client, data, sizeof data), 65536);
        ASSERT_FALSE(submit(b, &r));
        ASSERT_FALSE(submit(b, &w));
        b->ops->file_close(p.server);
        p.server = NULL;
        ssize_t x = finish(b, &r), y = finish(b, &w);
        ASSERT_TRUE((x == -ECONNRESET && y == -EPIPE) || (x == 0 && y == -ECONNRESET));
        close_all(b, &p);
}
