/* SPDX-License-Identifier: MIT */
/* Waiting for descriptors of others: kinds, levels, reuse of numbers. */

#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

static void make_pipe(int p[2])
{
        ASSERT_EQ(pipe2(p, O_CLOEXEC | O_NONBLOCK), 0);
}

static void close_pipe(int p[2])
{
        close(p[0]);
        close(p[1]);
}

struct waiting {
        int fd;
        short events;
        int result;
};

static int wait_fd(void *arg)
{
        struct waiting *w = arg;

        w->result = resha_fd_wait(w->fd, w->events);
        return w->result;
}

/* With an event or without one. */
static void expect_input(int fd)
{
        struct waiting w = { .fd = fd, .events = POLLIN };

        ASSERT_EQ(resha_timeout(RESHA_S(10), wait_fd, &w), POLLIN);
}

static void expect_silence(int fd)
{
        struct waiting w = { .fd = fd, .events = POLLIN };

        ASSERT_EQ(resha_timeout(RESHA_MS(3), wait_fd, &w), -ETIME);
}

TASK(a_pipe_is_waited_for_and_is_level_triggered)
{
        struct waiting w = { .events = POLLIN };
        char buf[4];
        int p[2];
        RESHA_GROUP(g);

        make_pipe(p);
        w.fd = p[0];
        resha_group_begin(&g, NULL);
        resha_spawn(&g, wait_fd, &w);
        ASSERT_OK(resha_sleep(RESHA_MS(1)));
        ASSERT_EQ(w.result, 0);
        ASSERT_EQ(write(p[1], "abcd", 4), 4);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(w.result, POLLIN);
        expect_input(p[0]); /* still there */
        ASSERT_EQ(read(p[0], buf, 4), 4);
        expect_silence(p[0]);
        ASSERT_EQ(resha_fd_wait(p[1], POLLOUT), POLLOUT);
        close(p[1]);
        ASSERT_EQ(resha_fd_wait(p[0], POLLIN), POLLHUP);
        close(p[0]);
        return 0;
}

TASK(an_eventfd_and_an_epoll_descriptor_can_be_waited_for)
{
        int e = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), set = epoll_create1(EPOLL_CLOEXEC);
        struct epoll_event event = { .events = EPOLLIN };

        ASSERT_EQ(epoll_ctl(set, EPOLL_CTL_ADD, e, &event), 0);
        expect_silence(e);
        expect_silence(set);
        ASSERT_EQ(eventfd_write(e, 1), 0);
        expect_input(set);
        expect_input(e);
        close(set);
        close(e);
        return 0;
}

TASK(a_regular_file_is_always_ready)
{
        int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

        ASSERT_EQ(resha_fd_wait(fd, POLLIN), POLLIN);
        ASSERT_EQ(resha_fd_wait(fd, POLLIN | POLLOUT), POLLIN | POLLOUT);
        close(fd);
        return 0;
}

TASK(what_cannot_be_waited_for_is_refused)
{
        struct rusage before, after;
        int p[2];

        getrusage(RUSAGE_SELF, &before);
        make_pipe(p);
        ASSERT_EQ(resha_fd_wait(-1, POLLIN), -EBADF);
        close_pipe(p);
        ASSERT_EQ(resha_fd_wait(p[0], POLLIN), -EBADF);
        ASSERT_EQ(resha_fd_wait(1 << 26, POLLIN), -EBADF);
        ASSERT_EQ(resha_fd_wait(INT_MAX, POLLIN), -EBADF); /* and no memory was taken for that */
        getrusage(RUSAGE_SELF, &after);
        ASSERT_TRUE(after.ru_maxrss - before.ru_maxrss < 64 * 1024);
        ASSERT_EQ(resha_fd_wait(0, POLLNVAL), -EINVAL);
        return 0;
}

TASK(one_task_at_a_time_for_each_descriptor)
{
        struct waiting w = { .events = POLLIN };
        int p[2];
        RESHA_GROUP(g);

        make_pipe(p);
        w.fd = p[0];
        resha_group_begin(&g, NULL);
        resha_spawn(&g, wait_fd, &w);
        ASSERT_OK(resha_sleep(RESHA_MS(1)));
        ASSERT_EQ(resha_fd_wait(p[0], POLLIN), -EBUSY);
        ASSERT_EQ(write(p[1], "x", 1), 1);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(w.result, POLLIN);
        close_pipe(p);
        return 0;
}

static int wait_task(void *arg)
{
        return resha_task_wait(arg, NULL);
}

static int accept_one(void *arg)
{
        resha_stream *s = NULL;
        int rc = resha_accept(arg, &s);

        resha_stream_close(s);
        return rc;
}

/* semantics 24 same
 * asyncio: a reader cannot be added for the descriptor of a transport.
 * resha: resha_fd_wait() refuses the descriptor of a stream or listener of the loop with -EBUSY, whether a task waits
 * there or not; the stream is none the worse. */
TASK(semantics_24_the_descriptor_of_a_listener_is_refused)
{
        resha_task accepting = { 0 };
        uint16_t port;
        int status = 0, fd = dup(0);
        RESHA_GROUP(g);

        close(fd); /* the number that the next one gets */
        resha_listener *n = real_listener(&port);
        ASSERT_EQ(resha_fd_wait(fd, POLLIN), -EBUSY); /* not registered yet */
        ASSERT_HAS(resha_error_of(-EBUSY)->text, "listener");
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, accept_one, n, &accepting));
        ASSERT_OK(resha_yield());
        ASSERT_EQ(resha_fd_wait(fd, POLLIN), -EBUSY); /* a task waits there */
        int peer = real_connect(port);
        ASSERT_OK(resha_timeout(RESHA_S(30), wait_task, &accepting));
        ASSERT_TRUE(resha_task_done(&accepting, &status));
        ASSERT_EQ(status, 1);
        close(peer);
        resha_listener_close(n);
        return resha_group_end(&g, 0);
}

/* The owner closes it and gets the same number for another one, in each state that its registration can be in. */
TASK(a_number_that_is_used_again_is_another_descriptor)
{
        int p[2], q[2];

        for (int i = 0; i < 3; i++) {
                make_pipe(p);
                if (i > 0)
                        expect_silence(p[0]); /* taken out by the cancel */
                if (i > 1) {
                        ASSERT_EQ(write(p[1], "x", 1), 1);
                        expect_input(p[0]); /* stays, disarmed */
                }
                close_pipe(p);
                make_pipe(q);
                ASSERT_EQ(q[0], p[0]);
                expect_silence(q[0]);
                ASSERT_EQ(write(q[1], "y", 1), 1);
                expect_input(q[0]);
                close_pipe(q);
        }
        return 0;
}

/* The file behind the number lives on in a duplicate, and so does its registration. */
TASK(a_duplicate_that_lives_on_does_not_wake_its_successor)
{
        int p[2], q[2];

        make_pipe(p);
        ASSERT_EQ(write(p[1], "x", 1), 1);
        expect_input(p[0]);
        int other = fcntl(p[0], F_DUPFD_CLOEXEC, 100);
        ASSERT_EQ(other, 100);
        close(p[0]);
        make_pipe(q);
        ASSERT_EQ(q[0], p[0]);
        expect_silence(q[0]);
        close_pipe(q);
        /* And back: the number stands for the first file again, which is registered already. */
        ASSERT_EQ(dup2(other, p[0]), p[0]);
        expect_input(p[0]);
        close(other);
        close_pipe(p);
        return 0;
}

TASK(high_numbers_work)
{
        struct rlimit limit;
        int p[2];

        ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
        int high = limit.rlim_cur > 1000 ? 1000 : (int)limit.rlim_cur - 1;
        make_pipe(p);
        ASSERT_EQ(dup2(p[0], high), high);
        expect_silence(high);
        ASSERT_EQ(write(p[1], "x", 1), 1);
        expect_input(high);
        close(high);
        close_pipe(p);
        return 0;
}

/* Waits that end by deadline, event or both at once, in quick succession. */
static int feed(void *arg)
{
        for (int i = 0; i < 300; i++) {
                if (write(*(int *)arg, "x", 1) != 1)
                        return -EIO;
                int rc = resha_sleep(RESHA_US(i % 10 * 20));
                if (rc < 0)
                        return rc;
        }
        return 0;
}

TASK(no_event_is_lost_by_cancels_at_any_moment)
{
        struct waiting w = { .events = POLLIN };
        int p[2], got = 0;
        char c;
        RESHA_GROUP(g);

        make_pipe(p);
        w.fd = p[0];
        resha_group_begin(&g, NULL);
        resha_spawn(&g, feed, &p[1]);
        for (int tries = 0; got < 300; tries++) {
                int rc = resha_timeout(RESHA_US(tries % 100), wait_fd, &w);
                ASSERT_TRUE(rc == POLLIN || rc == -ETIME);
                if (rc == POLLIN) {
                        ASSERT_EQ(read(p[0], &c, 1), 1);
                        got++;
                }
        }
        ASSERT_OK(resha_group_end(&g, 0));
        close_pipe(p);
        return 0;
}
