/* SPDX-License-Identifier: MIT */
/* Servers that run out of descriptors, memory or stacks: nobody is turned away and nothing spins. */

#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

struct world {
        resha_listener *listener;
        uint16_t port;
        unsigned served;
        int clients; /* process id */
};

static int echo_once(resha_stream *s, void *arg)
{
        struct world *w = arg;
        char c;
        ssize_t n = resha_read(s, &c, 1);

        if (n == 1 && resha_write_all(s, &c, 1, NULL) == 0)
                w->served++;
        return n == 1 ? (int)resha_read(s, &c, 1) : (int)n; /* until the client closes */
}

static int serve(void *arg)
{
        struct world *w = arg;

        return resha_serve(w->listener, echo_once, w, NULL);
}

enum { CLIENTS = 40, ROOM = 10 };

/* All connect, then one after the other says something, waits for the answer and goes, some 200 ms later for the
 * first. */
static void clients(uint16_t port)
{
        int fd[CLIENTS];

        for (int i = 0; i < CLIENTS; i++)
                fd[i] = real_connect(port);
        usleep(200000);
        for (int i = 0; i < CLIENTS; i++) {
                char c = 'x';
                if (write(fd[i], &c, 1) != 1 || read(fd[i], &c, 1) != 1)
                        _exit(1);
                close(fd[i]);
        }
        _exit(0);
}

static int until_clients_end(void *arg)
{
        struct world *w = arg;
        int status;

        while (waitpid(w->clients, &status, WNOHANG) == 0) {
                int rc = resha_sleep(RESHA_MS(5));
                if (rc < 0)
                        return rc;
        }
        ASSERT_EQ(status, 0);
        resha_listener_shutdown(w->listener);
        return 0;
}

/* The limit under which n more descriptors can be opened. */
static rlim_t limit_with_room(int n)
{
        int fd = 0;

        for (; n > 0; fd++)
                n -= fcntl(fd, F_GETFD) < 0;
        return (rlim_t)fd;
}

/* With `room` descriptors for the server's side; 0: as many as there are. */
static int serve_clients(struct world *w, int room)
{
        RESHA_GROUP(g);

        w->listener = real_listener(&w->port);
        w->clients = fork();
        if (w->clients == 0)
                clients(w->port);
        if (room) {
                struct rlimit tight;
                ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &tight), 0);
                tight.rlim_cur = limit_with_room(room);
                ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &tight), 0);
        }
        resha_group_begin(&g, NULL);
        resha_spawn(&g, serve, w);
        resha_spawn(&g, until_clients_end, w);
        int rc = resha_group_end(&g, 0);
        resha_listener_close(w->listener);
        return rc;
}

static unsigned shortages;

static void count_shortages(const resha_report *r, __attribute__((unused)) void *arg)
{
        ASSERT_EQ(r->kind, RESHA_REPORT_SHORTAGE);
        ASSERT_EQ(r->code, -EMFILE);
        ASSERT_HAS(r->text, "accept on 127.0.0.1:");
        ASSERT_HAS(r->text, "Too many open files");
        shortages++;
}

static int serves_without_descriptors(void *arg)
{
        struct rlimit old;

        ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &old), 0);
        real_count();
        ASSERT_OK(serve_clients(arg, ROOM));
        setrlimit(RLIMIT_NOFILE, &old);
        return 0;
}

TEST(semantics_25_server_without_descriptors_serves_everybody_and_does_not_spin)
{
        struct world w = { 0 };

        ASSERT_EQ(test_run_opts(serves_without_descriptors, &w, &(resha_run_opts){ .report = count_shortages }), 0);
        ASSERT_EQ(w.served, CLIENTS);
        printf("%u calls of accept for %d connections with room for %d\n", real_calls[RS_SYS_ACCEPT], CLIENTS, ROOM);
        ASSERT_TRUE(real_calls[RS_SYS_ACCEPT] < 4 * CLIENTS);
        ASSERT_TRUE(shortages >= 1 && shortages < 10);
}

static unsigned accepts;

/* Each accept fails for another reason, until the eighth. */
static int bad_luck(enum rs_syscall call)
{
        static const int reasons[] = { -EMFILE, -ENFILE, -ENOBUFS, -ENOMEM, -ECONNABORTED, -EPROTO, -EINTR, -ENETDOWN };

        if (call != RS_SYS_ACCEPT || accepts >= 8)
                return 0;
        return reasons[accepts++];
}

static int serves_by_bad_luck(void *arg)
{
        rs_fault_hook = bad_luck;
        return serve_clients(arg, 0);
}

/* semantics 25 better
 * asyncio: if accept() fails for want of descriptors or memory, the error is reported, accepting pauses for a second
 * and resumes; a connection that is gone before it was accepted is skipped.
 * resha: resha_serve() reports the shortage once and pauses for 5 to 160 ms, and not longer than until a connection
 * ends; no client is turned away. */
TEST(semantics_25_accepts_that_fail_for_now_are_reported_and_lose_no_connection)
{
        struct world w = { 0 };

        ASSERT_EQ(test_run_opts(serves_by_bad_luck, &w, &(resha_run_opts){ .report = count_shortages }), 0);
        ASSERT_EQ(w.served, CLIENTS);
        ASSERT_EQ(accepts, 8);
        ASSERT_EQ(shortages, 1);
}

static int accept_eio(enum rs_syscall call)
{
        return call == RS_SYS_ACCEPT ? -EIO : 0;
}

TASK(an_accept_that_fails_for_good_ends_the_server_with_its_reason)
{
        struct world w = { 0 };

        w.listener = real_listener(&w.port);
        rs_fault_hook = accept_eio;
        ASSERT_EQ(serve(&w), -EIO);
        ASSERT_HAS(resha_error_of(-EIO)->text, "accept on 127.0.0.1:");
        resha_listener_close(w.listener);
        return 0;
}

/* ---- what belongs to the server ---- */

static int gives_away(resha_stream *s, void *arg)
{
        int fd;

        ASSERT_EQ(resha_stream_release(s, &fd), -EBUSY);
        ASSERT_HAS(resha_error_of(-EBUSY)->text, "resha_serve()");
        resha_stream_close(s); /* wrong, and nothing comes of it */
        ASSERT_OK(resha_write_all(s, "still there", 11, NULL));
        resha_listener_shutdown(arg);
        return 0;
}

TASK(a_handler_cannot_give_its_stream_away)
{
        uint16_t port;
        resha_listener *n = real_listener(&port);
        int fd = real_connect(port);
        char buf[16];

        ASSERT_OK(resha_serve(n, gives_away, n, NULL));
        resha_listener_close(n);
        ASSERT_EQ(read(fd, buf, sizeof buf), 11);
        close(fd);
        return 0;
}
