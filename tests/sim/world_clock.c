/* SPDX-License-Identifier: MIT */
/* The simulated world's clock, its waits, and the real descriptors that it asks. */

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "world.h"

/* ---- clock ---- */

TEST(clock_jumps_to_the_deadline_and_only_in_wait)
{
        struct rs_backend *b = world(0);
        int64_t t = b->ops->now(b);

        ASSERT_EQ(b->ops->now(b), t);
        ASSERT_OK(b->ops->wait(b, t + 3600 * 1000 * MS));
        ASSERT_EQ(b->ops->now(b), t + 3600 * 1000 * MS);
        ASSERT_OK(b->ops->wait(b, t));
        ASSERT_OK(b->ops->wait(b, INT64_MIN));
        ASSERT_EQ(b->ops->now(b), t + 3600 * 1000 * MS);
        end(b);
}

TEST(wake_ends_a_wait_without_moving_the_clock)
{
        struct rs_backend *b = world(0);
        int64_t t = b->ops->now(b);

        b->ops->wake(b);
        b->ops->wake(b);
        ASSERT_OK(b->ops->wait(b, t + MS));
        ASSERT_EQ(b->ops->now(b), t);
        ASSERT_OK(b->ops->wait(b, t + MS));
        ASSERT_EQ(b->ops->now(b), t + MS);
        end(b);
}

TEST(wait_for_ever_with_nothing_to_come_is_a_deadlock)
{
        struct rs_backend *b = world(0);
        struct pair p = join(b);
        char c;
        struct rs_op op = READ(p.client, &c, 1);

        ASSERT_FALSE(submit(b, &op));
        ASSERT_EQ(b->ops->wait(b, INT64_MAX), -EDEADLK);
        b->outside = 1;
        b->ops->wake(b);
        ASSERT_OK(b->ops->wait(b, INT64_MAX));
        ASSERT_TRUE(b->ops->cancel(b, &op));
        close_all(b, &p);
}

TEST(random_depends_on_the_seed_alone)
{
        struct rs_backend *a = world(7), *b = world(7), *c = world(8);
        struct pair p = join(b); /* the world's own dice are others */
        unsigned same = 0;

        for (int i = 0; i < 100; i++) {
                uint64_t x = a->ops->random(a);
                ASSERT_EQ(x, b->ops->random(b));
                same += x == c->ops->random(c);
        }
        ASSERT_EQ(same, 0);
        close_all(b, &p);
        end(a);
        end(c);
}

/* ---- foreign descriptors ---- */

TEST(poll_asks_the_real_descriptor)
{
        struct rs_backend *b = world(0);
        int fd[2];
        int64_t t = b->ops->now(b);

        ASSERT_OK(pipe2(fd, O_CLOEXEC));
        struct rs_op out = { .kind = RS_OP_POLL, .fd = fd[1], .events = POLLOUT };
        ASSERT_TRUE(submit(b, &out));
        ASSERT_EQ(out.result, POLLOUT);

        struct rs_op in = { .kind = RS_OP_POLL, .fd = fd[0], .events = POLLIN };
        ASSERT_FALSE(submit(b, &in));
        ASSERT_OK(b->ops->wait(b, t + 5 * MS)); /* real time, but no more than that */
        ASSERT_EQ(b->ops->now(b), t + 5 * MS);
        ASSERT_EQ(in.state, RS_OP_PENDING);
        ASSERT_EQ(write(fd[1], "x", 1), 1);
        ASSERT_OK(b->ops->wait(b, INT64_MAX));
        ASSERT_EQ(in.state, RS_OP_DONE);
        ASSERT_EQ(in.result, POLLIN);
        drain(b);
        close(fd[0]);
        close(fd[1]);
        struct rs_op bad = { .kind = RS_OP_POLL, .fd = fd[0], .events = POLLIN };
        ASSERT_TRUE(submit(b, &bad));
        ASSERT_EQ(bad.result, -EBADF);
        end(b);
}

TEST(poll_can_be_cancelled_and_more_than_a_chunk_can_wait)
{
        struct rs_backend *b = world(0);
        enum { N = 150 };
        static struct rs_op op[N];
        int fd[2], same[N];

        ASSERT_OK(pipe2(fd, O_CLOEXEC));
        for (int i = 0; i < N; i++) {
                ASSERT_OK(same[i] = fcntl(fd[0], F_DUPFD_CLOEXEC, 0));
                op[i] = (struct rs_op){ .kind = RS_OP_POLL, .fd = same[i], .events = POLLIN };
                ASSERT_FALSE(submit(b, &op[i]));
        }
        ASSERT_TRUE(b->ops->cancel(b, &op[N - 2]));
        ASSERT_EQ(write(fd[1], "x", 1), 1);
        ASSERT_OK(b->ops->wait(b, INT64_MAX));
        drain(b);
        for (int i = 0; i < N; i++)
                ASSERT_EQ(op[i].state, i == N - 2 ? RS_OP_IDLE : RS_OP_DONE);
        for (int i = 0; i < N; i++)
                close(same[i]);
        close(fd[0]);
        close(fd[1]);
        end(b);
}
