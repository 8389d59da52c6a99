/* SPDX-License-Identifier: MIT */
/* Clients that do not behave: five thousand that trickle, and one each of those that reset, close half, never read. A
 * server with a timeout for each request gets rid of them, and serves the others meanwhile as ever. */

#include "common.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
        SLOW = 5000,
        ASKED = 51, /* requests of a client that behaves */
};

struct world {
        resha_listener *listener;
        resha_addr addr;
        resha_duration patience; /* for one request */
        unsigned live, timed_out, served, failed;
        int64_t usual_us, busy_us;
        int slow; /* process id */
};

/* A line, and its echo, until the end. */
static int one_line(resha_stream *s, struct world *w)
{
        char line[64];
        RESHA_SCOPE(request);

        resha_timeout_begin(&request, w->patience);
        ssize_t n = resha_read_line(s, line, sizeof line);
        int rc = n > 0 ? resha_write_all(s, line, (size_t)n, NULL) : (int)n;
        rc = resha_scope_end(&request, rc);
        return rc < 0 ? rc : n > 0;
}

static int answer(resha_stream *s, void *arg)
{
        struct world *w = arg;
        int rc;

        w->live++;
        while ((rc = one_line(s, w)) > 0)
                w->served++;
        w->live--;
        w->timed_out += rc == -ETIME;
        w->failed += rc < 0 && rc != -ETIME;
        return rc;
}

static int serve(void *arg)
{
        struct world *w = arg;

        return resha_serve(w->listener, answer, w, &(resha_serve_opts){ .max_connections = SLOW + 100 });
}

/* ---- those who trickle, in a process of their own ---- */

static void trickle(uint16_t port)
{
        static int fd[SLOW];

        signal(SIGPIPE, SIG_IGN);
        for (int i = 0; i < SLOW; i++)
                fd[i] = real_connect(port);
        for (;;)
                for (int i = 0; i < SLOW; i++) {
                        (void)!send(fd[i], "x", 1, MSG_NOSIGNAL);
                        if (i % 10 == 0)
                                usleep(5000); /* 2,000 bytes a second */
                }
}

/* ---- one who behaves ---- */

static int by_size(const void *a, const void *b)
{
        int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

        return (x > y) - (x < y);
}

static int ask(const resha_addr *addr, int64_t *ret_us)
{
        resha_stream *s RESHA_CLEANUP(resha_stream_closep) = NULL;
        resha_instant start = resha_now();
        char line[64];
        int rc = resha_tcp_connect_addr(addr, &s);

        if (rc == 0)
                rc = resha_write_all(s, "hello\n", 6, NULL);
        if (rc < 0)
                return rc;
        ssize_t n = resha_read_line(s, line, sizeof line);
        *ret_us = (resha_now().ns - start.ns) / 1000;
        return n == 6 ? 0 : -EPROTO;
}

/* The median of its times. */
static int64_t usual_time(const resha_addr *addr)
{
        int64_t us[ASKED];

        for (int i = 0; i < ASKED; i++) {
                ASSERT_OK(ask(addr, &us[i]));
                ASSERT_OK(resha_sleep(RESHA_MS(2)));
        }
        qsort(us, ASKED, sizeof us[0], by_size);
        return us[ASKED / 2];
}

static int until(const unsigned *value, unsigned wanted)
{
        for (int ms = 0; ms < 60000; ms += 5) {
                if (*value == wanted)
                        return 0;
                int rc = resha_sleep(RESHA_MS(5));
                if (rc < 0)
                        return rc;
        }
        return resha_fail(-ETIMEDOUT, "%u, not %u, after a minute", *value, wanted);
}

static int measure(void *arg)
{
        struct world *w = arg;

        w->usual_us = usual_time(&w->addr);
        w->slow = fork();
        if (w->slow == 0)
                trickle(resha_addr_port(&w->addr));
        ASSERT_OK(until(&w->live, SLOW));
        w->busy_us = usual_time(&w->addr);
        ASSERT_TRUE(w->live >= SLOW);
        ASSERT_EQ(w->timed_out, 0);
        w->patience = RESHA_MS(1);
        resha_listener_shutdown(w->listener); /* which cancels them */
        return 0;
}

static void open_world(struct world *w)
{
        w->listener = real_listener(&(uint16_t){ 0 });
        ASSERT_OK(resha_listener_addr(w->listener, &w->addr));
}

static int five_thousand(void *arg)
{
        struct world *w = arg;
        RESHA_GROUP(g);

        open_world(w);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, serve, w);
        resha_spawn(&g, measure, w);
        int rc = resha_group_end(&g, 0);
        kill(w->slow, SIGKILL);
        waitpid(w->slow, NULL, 0);
        resha_listener_close(w->listener);
        return rc;
}

static void need_descriptors(void)
{
        struct rlimit most;

        ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &most), 0);
        most.rlim_cur = most.rlim_max;
        ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &most), 0);
        if (most.rlim_cur < SLOW + 200)
                test_skip("needs 5,200 descriptors");
}

TEST(a_client_is_served_as_ever_beside_five_thousand_slow_ones)
{
        struct world w = { .patience = RESHA_S(300) };

        need_descriptors();
        ASSERT_EQ(test_run_opts(five_thousand, &w, NULL), 0);
        printf("median of %d requests: %lld us alone, %lld us beside %d\n", ASKED, (long long)w.usual_us,
               (long long)w.busy_us, SLOW);
        ASSERT_TRUE(w.busy_us < 10 * w.usual_us + 1000 * test_stretch());
}

static int wait_for_the_end_of_all(void *arg)
{
        struct world *w = arg;
        int64_t us;

        w->slow = fork();
        if (w->slow == 0)
                trickle(resha_addr_port(&w->addr));
        ASSERT_OK(until(&w->timed_out, SLOW));
        ASSERT_EQ(w->live, 0);
        ASSERT_OK(ask(&w->addr, &us));
        resha_listener_shutdown(w->listener);
        return 0;
}

static int all_time_out(void *arg)
{
        struct world *w = arg;
        RESHA_GROUP(g);

        open_world(w);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, serve, w);
        resha_spawn(&g, wait_for_the_end_of_all, w);
        int rc = resha_group_end(&g, 0);
        kill(w->slow, SIGKILL);
        waitpid(w->slow, NULL, 0);
        resha_listener_close(w->listener);
        return rc;
}

TEST(a_timeout_for_each_request_ends_slow_clients)
{
        struct world w = { .patience = RESHA_MS(300) };

        need_descriptors();
        ASSERT_EQ(test_run_opts(all_time_out, &w, NULL), 0);
        ASSERT_EQ(w.timed_out, SLOW);
        ASSERT_EQ(w.served, 1);
}

/* ---- one of each kind ---- */

static int pour(resha_stream *s, void *arg)
{
        static char data[65536];
        struct world *w = arg;
        RESHA_SCOPE(request);
        int rc;

        resha_timeout_begin(&request, w->patience);
        while ((rc = resha_write_all(s, data, sizeof data, NULL)) == 0)
                ;
        rc = resha_scope_end(&request, rc);
        w->timed_out += rc == -ETIME;
        w->failed += rc < 0 && rc != -ETIME;
        return rc;
}

static int serve_pour(void *arg)
{
        struct world *w = arg;

        return resha_serve(w->listener, pour, w, NULL);
}

static void reset(int fd)
{
        struct linger none = { .l_onoff = 1, .l_linger = 0 };

        setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
        close(fd);
}

static int never_reads(void *arg)
{
        struct world *w = arg;
        uint16_t port = resha_addr_port(&w->addr);
        int deaf = real_connect(port), gone = real_connect(port);

        ASSERT_OK(resha_sleep(RESHA_MS(20)));
        reset(gone);
        ASSERT_OK(until(&w->failed, 1));
        ASSERT_OK(until(&w->timed_out, 1));
        close(deaf);
        resha_listener_shutdown(w->listener);
        return 0;
}

TASK(peers_that_never_read_or_reset_end_their_handlers)
{
        struct world w = { .patience = RESHA_MS(500) };
        RESHA_GROUP(g);

        open_world(&w);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, serve_pour, &w);
        resha_spawn(&g, never_reads, &w);
        ASSERT_OK(resha_group_end(&g, 0));
        resha_listener_close(w.listener);
        return 0;
}

static int all_kinds(void *arg)
{
        struct world *w = arg;
        uint16_t port = resha_addr_port(&w->addr);
        int half = real_connect(port), reset_early = real_connect(port), unread = real_connect(port);
        char line[8] = "";
        int64_t us;

        reset(reset_early);
        ASSERT_EQ(write(half, "half\n", 5), 5);
        ASSERT_EQ(shutdown(half, SHUT_WR), 0);
        ASSERT_EQ(write(unread, "line\n", 5), 5);
        ASSERT_OK(until(&w->served, 2));
        ASSERT_EQ(read(half, line, sizeof line), 5);
        ASSERT_STR(line, "half\n");
        ASSERT_EQ(read(half, line, sizeof line), 0);
        close(half);
        close(unread); /* with the answer unread: a reset */
        ASSERT_OK(until(&w->live, 0));
        ASSERT_OK(ask(&w->addr, &us));
        resha_listener_shutdown(w->listener);
        return 0;
}

TASK(peers_that_end_in_all_ways_end_their_handlers_and_the_server_goes_on)
{
        struct world w = { .patience = RESHA_S(60) };
        RESHA_GROUP(g);

        open_world(&w);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, serve, &w);
        resha_spawn(&g, all_kinds, &w);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(w.served, 3);
        ASSERT_EQ(w.timed_out, 0);
        resha_listener_close(w.listener);
        return 0;
}
