/* SPDX-License-Identifier: MIT */
/* The n-th system call fails, and the n-th allocation fails, for every n, in a run that uses sockets, a name, a thread,
 * a foreign descriptor and a signal: an error or none, and nothing is left over. */

#include "common.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"

static int echo(resha_stream *s, void *arg)
{
        char line[64];
        ssize_t n;

        (void)arg;
        while ((n = resha_read_line(s, line, sizeof line)) > 0) {
                int rc = resha_write_all(s, line, (size_t)n, NULL);
                if (rc < 0)
                        return rc;
        }
        return (int)n;
}

static int serve(void *arg)
{
        return resha_serve(arg, echo, NULL, NULL);
}

static int converse(void *arg)
{
        char in[8];
        resha_stream *s = arg;
        int rc = resha_write_all(s, "hello\n", 6, NULL);

        if (rc < 0)
                return rc;
        ssize_t n = resha_read_exactly(s, in, 6);
        return n == 6 ? 0 : n < 0 ? (int)n : -EPIPE;
}

static int clients(void *arg)
{
        resha_listener *n = arg;
        resha_addr a;
        int rc = resha_listener_addr(n, &a);

        for (int i = 0; i < 2 && rc == 0; i++) {
                RESHA_CLEANUP(resha_stream_closep) resha_stream *s = NULL;

                rc = i ? resha_tcp_connect("127.1", resha_addr_port(&a), &s) : resha_tcp_connect_addr(&a, &s);
                if (rc == 0)
                        rc = converse(s);
        }
        resha_listener_shutdown(n);
        return rc;
}

static int sockets(void)
{
        RESHA_CLEANUP(resha_listener_closep) resha_listener *n = NULL;
        int rc = resha_tcp_listen("127.0.0.1", 0, &n);
        RESHA_GROUP(g);

        if (rc < 0)
                return rc;
        resha_group_begin(&g, NULL);
        resha_spawn(&g, serve, n);
        resha_spawn(&g, clients, n);
        return resha_group_end(&g, 0);
}

static int add_one(void *arg)
{
        return ++*(int *)arg;
}

static int everything(void *arg)
{
        int n = 1, sig = SIGUSR1, rc = sockets();

        (void)arg;
        if (rc < 0)
                return rc;
        rc = resha_pool_run(NULL, add_one, &n, NULL);
        if (rc < 0)
                return rc;
        rc = resha_fd_wait(1, POLLOUT);
        if (rc < 0)
                return rc;
        raise(SIGUSR1); /* ignored until somebody waits */
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, RESHA_MS(1));
        rc = resha_scope_end(&s, resha_signal_wait(&sig, 1, &sig));
        return rc == -ETIME ? 0 : rc;
}

/* With the process as it was before. */
static int run_once(void)
{
        unsigned fds = real_fds();
        int rc = test_run_opts(everything, NULL, NULL);

        ASSERT_EQ(real_fds(), fds);
        real_threads_left(1);
        return rc;
}

static void fail_each_call(int code)
{
        unsigned n = 1, errors = 0;

        signal(SIGUSR1, SIG_IGN);
        for (;; n++) {
                real_fail_nth(n, code);
                int rc = run_once();
                if (real_failed() == RS_SYS_COUNT) {
                        ASSERT_OK(rc);
                        break;
                }
                errors += rc < 0;
        }
        printf("%u system calls failed with %s: %u runs failed, the others went on\n", n - 1, resha_errname(code),
               errors);
        ASSERT_TRUE(n > 30);
        ASSERT_TRUE(errors > 10);
}

TEST(every_system_call_fails_once_with_EIO)
{
        rs_alloc_watch(true);
        fail_each_call(-EIO);
}

TEST(every_system_call_fails_once_with_ENOMEM)
{
        rs_alloc_watch(true);
        fail_each_call(-ENOMEM);
}

TEST(every_system_call_is_interrupted_once)
{
        rs_alloc_watch(true);
        signal(SIGUSR1, SIG_IGN);
        for (unsigned n = 1; n == 1 || real_failed() != RS_SYS_COUNT; n++) {
                real_fail_nth(n, -EINTR);
                ASSERT_OK(run_once());
        }
}

TEST(every_allocation_fails_once)
{
        int64_t live = rs_alloc_live();
        unsigned n = 1, errors = 0;

        rs_alloc_watch(true);
        signal(SIGUSR1, SIG_IGN);
        for (;; n++) {
                rs_alloc_fail_after((int64_t)n, false);
                int rc = run_once();
                bool fired = rs_alloc_failed() > 0;
                rs_alloc_fail_after(0, false);
                ASSERT_EQ(rs_alloc_live(), live);
                if (!fired) {
                        ASSERT_OK(rc);
                        break;
                }
                errors += rc < 0;
        }
        printf("%u allocations failed: %u runs failed, the others went on\n", n - 1, errors);
        ASSERT_TRUE(errors > 5);
}
