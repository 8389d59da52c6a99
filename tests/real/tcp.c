/* SPDX-License-Identifier: MIT */
/* TCP streams on the real kernel. */

#include "common.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- echo ---- */

static int echo(resha_stream *s, void *arg)
{
        char buf[4096];
        ssize_t n;

        (void)arg;
        while ((n = resha_read(s, buf, sizeof buf)) > 0) {
                int rc = resha_write_all(s, buf, (size_t)n, NULL);
                if (rc < 0)
                        return rc;
        }
        return (int)n;
}

struct server {
        resha_listener *listener;
        uint16_t port;
        resha_serve_opts opts;
};

static int serve(void *arg)
{
        struct server *v = arg;

        return resha_serve(v->listener, echo, NULL, &v->opts);
}

enum { CLIENTS = 1000, ROUNDS = 3 };

static int client(void *arg)
{
        char out[64], in[64];
        resha_stream *s;
        int rc = resha_tcp_connect("127.0.0.1", *(uint16_t *)arg, &s);

        if (rc < 0)
                return rc;
        for (int i = 0; i < ROUNDS; i++) {
                memset(out, 'a' + i, sizeof out);
                ASSERT_OK(resha_write_all(s, out, sizeof out, NULL));
                ASSERT_EQ(resha_read_exactly(s, in, sizeof in), sizeof in);
                ASSERT_EQ(memcmp(in, out, sizeof in), 0);
        }
        resha_stream_close(s);
        return 0;
}

TASK(a_thousand_connections_at_once)
{
        struct server v = { .opts = { .max_connections = CLIENTS } };
        RESHA_GROUP(servants);
        RESHA_GROUP(clients);

        v.listener = real_listener(&v.port);
        resha_group_begin(&servants, &(resha_group_opts){ .background = true });
        resha_spawn(&servants, serve, &v);
        resha_group_begin(&clients, NULL);
        for (int i = 0; i < CLIENTS; i++)
                resha_spawn(&clients, client, &v.port);
        ASSERT_OK(resha_group_end(&clients, 0));
        ASSERT_OK(resha_group_end(&servants, 0));
        resha_listener_close(v.listener);
        return 0;
}

/* Two system calls for the echo itself, and a share of a wait. The peer is a process of its own that keeps 50
 * connections busy with 64 bytes each. */
enum { BUSY = 50, BUSY_ROUNDS = 200 };

static void busy_peer(uint16_t port)
{
        int fd[BUSY];
        char buf[64] = "x";

        for (int i = 0; i < BUSY; i++)
                fd[i] = real_connect(port);
        for (int round = 0; round < BUSY_ROUNDS; round++) {
                for (int i = 0; i < BUSY; i++)
                        if (write(fd[i], buf, sizeof buf) != sizeof buf)
                                _exit(1);
                for (int i = 0; i < BUSY; i++)
                        if (recv(fd[i], buf, sizeof buf, MSG_WAITALL) != sizeof buf)
                                _exit(1);
        }
        _exit(0);
}

static int stop_when_ended(void *arg)
{
        struct server *v = arg;
        int status;
        pid_t pid = fork();

        if (pid == 0)
                busy_peer(v->port);
        while (waitpid(pid, &status, WNOHANG) == 0)
                if (resha_sleep(RESHA_MS(5)) < 0)
                        return -ECANCELED;
        ASSERT_EQ(status, 0);
        resha_listener_shutdown(v->listener);
        return 0;
}

enum { FULL = 512, FULL_ROUNDS = 100 };

static int return_full(void *arg)
{
        struct real_pair *p = arg;
        char buf[FULL];
        ssize_t n;

        while ((n = resha_read(p->there, buf, sizeof buf)) > 0)
                ASSERT_OK(resha_write_all(p->there, buf, (size_t)n, NULL));
        return n < 0 ? (int)n : resha_stream_shutdown(p->there);
}

/* A reader of messages as long as its buffer would otherwise look again each time, and find nothing. */
TASK(full_reads_in_a_row_ask_what_is_left)
{
        static char sent[FULL], got[FULL];
        struct real_pair p;
        RESHA_GROUP(g);

        real_pair(&p);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, return_full, &p);
        real_count();
        for (int i = 0; i < FULL_ROUNDS; i++) {
                memset(sent, i, sizeof sent);
                ASSERT_OK(resha_write_all(p.here, sent, sizeof sent, NULL));
                ASSERT_EQ(resha_read(p.here, got, sizeof got), FULL);
                ASSERT_EQ(memcmp(sent, got, sizeof got), 0);
        }
        if (strcmp(test_backend(), "epoll") == 0)
                ASSERT_TRUE(real_calls[RS_SYS_RECV] <= 2 * FULL_ROUNDS + 10); /* 100 more for each end without */
        ASSERT_OK(resha_stream_shutdown(p.here));
        ASSERT_EQ(resha_read(p.here, got, sizeof got), 0); /* an end right behind a full read is seen */
        ASSERT_OK(resha_group_end(&g, 0));
        real_pair_close(&p);
        return 0;
}

TASK(an_echo_costs_two_system_calls_and_a_share_of_a_wait)
{
        struct server v = { .opts = { .max_connections = 0 } };
        const double echoes = BUSY * BUSY_ROUNDS;
        RESHA_GROUP(g);

        v.listener = real_listener(&v.port);
        real_count();
        resha_group_begin(&g, NULL);
        resha_spawn(&g, serve, &v);
        resha_spawn(&g, stop_when_ended, &v);
        ASSERT_OK(resha_group_end(&g, 0));
        printf("for each echo: %.3f recv, %.3f send, %.3f epoll_wait, %.3f epoll_ctl\n",
               real_calls[RS_SYS_RECV] / echoes, real_calls[RS_SYS_SEND] / echoes,
               real_calls[RS_SYS_EPOLL_WAIT] / echoes, real_calls[RS_SYS_EPOLL_CTL] / echoes);
        ASSERT_EQ(real_calls[RS_SYS_SEND], echoes);
        ASSERT_TRUE(real_calls[RS_SYS_RECV] <= echoes * 1.05 + 3 * BUSY);
        ASSERT_TRUE(real_calls[RS_SYS_EPOLL_CTL] <= 2 * BUSY + 4);
        resha_listener_close(v.listener);
        return 0;
}

/* ---- ends ---- */

TASK(after_a_half_close_the_other_direction_still_works)
{
        struct real_pair p;
        char buf[16];

        real_pair(&p);
        ASSERT_OK(resha_write_all(p.here, "question", 8, NULL));
        ASSERT_OK(resha_stream_shutdown(p.here));
        ASSERT_EQ(resha_read_exactly(p.there, buf, sizeof buf), 8);
        ASSERT_EQ(resha_read(p.there, buf, sizeof buf), 0);
        ASSERT_OK(resha_write_all(p.there, "answer", 6, NULL));
        resha_stream_closep(&p.there);
        ASSERT_EQ(resha_read_exactly(p.here, buf, sizeof buf), 6);
        ASSERT_EQ(resha_read(p.here, buf, sizeof buf), 0);
        ASSERT_EQ(resha_read(p.here, buf, sizeof buf), 0);
        ASSERT_EQ(resha_write_all(p.here, "x", 1, NULL), -EPIPE);
        real_pair_close(&p);
        return 0;
}

/* The end comes together with the last bytes, in one event. */
TASK(bytes_before_the_end_are_read_before_the_end)
{
        uint16_t port;
        resha_listener *n = real_listener(&port);
        resha_stream *s;
        char buf[16];
        int fd = real_connect(port);

        ASSERT_EQ(resha_accept(n, &s), 1);
        ASSERT_EQ(write(fd, "last", 4), 4);
        close(fd);
        ASSERT_OK(resha_sleep(RESHA_MS(5)));
        ASSERT_EQ(resha_read(s, buf, sizeof buf), 4);
        ASSERT_EQ(resha_read(s, buf, sizeof buf), 0);
        resha_stream_close(s);
        resha_listener_close(n);
        return 0;
}

TASK(a_reset_is_an_error_of_read_and_of_write_and_no_signal)
{
        struct linger hard = { .l_onoff = 1 };
        uint16_t port;
        resha_listener *n = real_listener(&port);
        resha_stream *s;
        char buf[16];
        int fd = real_connect(port);

        ASSERT_EQ(resha_accept(n, &s), 1);
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
        close(fd);
        for (int i = 0; i < 2; i++) {
                ASSERT_EQ(resha_read(s, buf, sizeof buf), -ECONNRESET);
                ASSERT_HAS(resha_error_of(-ECONNRESET)->text, "Connection reset by peer");
                ASSERT_EQ(resha_write_all(s, "x", 1, NULL), -ECONNRESET);
        }
        resha_stream_close(s);
        resha_listener_close(n);
        return 0;
}

/* Urgent data make each read stop at their mark: a short read is not an empty buffer then. */
TASK(urgent_data_do_not_stall_a_reader)
{
        uint16_t port;
        resha_listener *n = real_listener(&port);
        resha_stream *s;
        char buf[64];
        int fd = real_connect(port);

        ASSERT_EQ(resha_accept(n, &s), 1);
        for (int i = 0; i < 50; i++) {
                ASSERT_EQ(write(fd, "abc", 3), 3);
                ASSERT_EQ(send(fd, "!", 1, MSG_OOB), 1);
                ASSERT_EQ(write(fd, "def", 3), 3);
                ASSERT_EQ(resha_read_exactly(s, buf, 6), 6);
                ASSERT_EQ(memcmp(buf, "abcdef", 6), 0);
        }
        close(fd);
        resha_stream_close(s);
        resha_listener_close(n);
        return 0;
}

static int nodelay_of(resha_stream *s)
{
        resha_addr a;
        int on = -1;
        socklen_t size = sizeof on;

        /* The descriptor is nobody's business: it is found by its address. */
        ASSERT_OK(resha_stream_addr(s, false, &a));
        for (int fd = 3; fd < 64; fd++) {
                struct sockaddr_in got;
                socklen_t n = sizeof got;
                if (getsockname(fd, (struct sockaddr *)&got, &n) == 0 && ntohs(got.sin_port) == resha_addr_port(&a))
                        getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, &size);
        }
        return on;
}

/* semantics 268 same
 * asyncio: Nagle's algorithm is off on TCP connections.
 * resha: on both ends. */
TASK(semantics_268_nagles_algorithm_is_off_on_both_sides)
{
        struct real_pair p;

        real_pair(&p);
        ASSERT_TRUE(nodelay_of(p.here) > 0);
        ASSERT_TRUE(nodelay_of(p.there) > 0);
        real_pair_close(&p);
        return 0;
}

TASK(both_ends_have_the_same_two_addresses)
{
        struct real_pair p;
        resha_addr a, b;
        char x[RESHA_ADDR_TEXT_MAX], y[RESHA_ADDR_TEXT_MAX];

        real_pair(&p);
        ASSERT_OK(resha_stream_addr(p.here, true, &a));
        ASSERT_OK(resha_stream_addr(p.there, false, &b));
        ASSERT_STR(resha_addr_format(&a, x, sizeof x), resha_addr_format(&b, y, sizeof y));
        ASSERT_OK(resha_stream_addr(p.here, false, &a));
        ASSERT_OK(resha_stream_addr(p.there, true, &b));
        ASSERT_STR(resha_addr_format(&a, x, sizeof x), resha_addr_format(&b, y, sizeof y));
        real_pair_close(&p);
        return 0;
}

/* ---- connecting ---- */

TASK(a_refused_connection_says_where)
{
        resha_stream *s;
        char expected[64];
        uint16_t port;

        close(real_listen(1, &port));
        snprintf(expected, sizeof expected, "connect to 127.0.0.1:%u: Connection refused", port);
        ASSERT_EQ(resha_tcp_connect("127.0.0.1", port, &s), -ECONNREFUSED);
        ASSERT_STR(resha_error_of(-ECONNREFUSED)->text, expected);
        return 0;
}

/* A port whose queue is full: the kernel drops what comes, and a connect hangs. */
static int full_port(int fillers[8], uint16_t *ret_port)
{
        int fd = real_listen(0, ret_port);

        for (int i = 0; i < 8; i++) {
                struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(*ret_port) };
                a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
                fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
                if (connect(fillers[i], (struct sockaddr *)&a, sizeof a) < 0 && errno != EINPROGRESS)
                        FAIL("connect: %s", strerror(errno));
        }
        return fd;
}

static int connect_to(void *arg)
{
        resha_stream *s;
        int rc = resha_tcp_connect("127.0.0.1", *(uint16_t *)arg, &s);

        if (rc == 0)
                resha_stream_close(s);
        return rc;
}

static int read_one(void *arg)
{
        char c;

        return (int)resha_read(arg, &c, 1);
}

TASK(a_hanging_connect_ends_with_its_deadline)
{
        int fillers[8];
        uint16_t port;
        int fd = full_port(fillers, &port);
        resha_instant start = resha_now();

        ASSERT_EQ(resha_timeout(RESHA_MS(30), connect_to, &port), -ETIME);
        ASSERT_ELAPSED(start, 30);
        ASSERT_TRUE(test_ms_since(start) < 30000); /* the kernel would go on for minutes */
        for (int i = 0; i < 8; i++)
                close(fillers[i]);
        close(fd);
        return 0;
}

/* semantics 270 same
 * asyncio: a connect that is cancelled must leave the selector before its descriptor is closed, or a later one of the
 * same number gets its events.
 * resha: a cancelled connect leaves nothing behind: its descriptor is closed when the call returns, and the next one of
 * the same number works. */
TASK(semantics_270_cancelled_connect_leaves_no_descriptor_behind)
{
        int fillers[8];
        uint16_t port, open_port;
        int fd = full_port(fillers, &port);
        resha_listener *n = real_listener(&open_port);
        unsigned before = real_fds();

        for (int i = 0; i < 10; i++) {
                resha_stream *s, *t;
                ASSERT_EQ(resha_timeout(RESHA_MS(2), connect_to, &port), -ETIME);
                ASSERT_EQ(real_fds(), before);
                ASSERT_OK(resha_tcp_connect("127.0.0.1", open_port, &s)); /* takes the number over */
                ASSERT_EQ(resha_accept(n, &t), 1);
                ASSERT_EQ(resha_timeout(RESHA_MS(2), read_one, s), -ETIME); /* no stale event ends it */
                resha_stream_close(s);
                resha_stream_close(t);
                ASSERT_EQ(real_fds(), before);
        }
        for (int i = 0; i < 8; i++)
                close(fillers[i]);
        close(fd);
        resha_listener_close(n);
        return 0;
}

/* Localhost has two addresses on most machines and nobody listens at the first. */
TASK(a_name_is_connected_to_at_the_address_that_answers)
{
        uint16_t port;
        resha_listener *n = real_listener(&port);
        resha_stream *s, *t;

        ASSERT_OK(resha_tcp_connect("localhost", port, &s));
        ASSERT_EQ(resha_accept(n, &t), 1);
        resha_stream_close(s);
        resha_stream_close(t);
        resha_listener_close(n);
        return 0;
}

TASK(a_listener_on_all_addresses_takes_ipv4)
{
        resha_listener *n;
        resha_addr a;
        resha_stream *s, *t;
        char text[RESHA_ADDR_TEXT_MAX];

        ASSERT_OK(resha_tcp_listen(NULL, 0, &n));
        ASSERT_OK(resha_listener_addr(n, &a));
        ASSERT_OK(resha_tcp_connect("127.0.0.1", resha_addr_port(&a), &s));
        ASSERT_EQ(resha_accept(n, &t), 1);
        ASSERT_OK(resha_stream_addr(t, true, &a));
        ASSERT_HAS(resha_addr_format(&a, text, sizeof text), "127.0.0.1:");
        resha_stream_close(s);
        resha_stream_close(t);
        resha_listener_close(n);
        return 0;
}

TASK(a_port_that_is_taken_is_named)
{
        uint16_t port;
        resha_listener *n = real_listener(&port), *second;
        char expected[64];

        snprintf(expected, sizeof expected, "listen on 127.0.0.1 port %u: Address already in use", port);
        ASSERT_EQ(resha_tcp_listen("127.0.0.1", port, &second), -EADDRINUSE);
        ASSERT_STR(resha_error_of(-EADDRINUSE)->text, expected);
        resha_listener_close(n);
        return 0;
}
