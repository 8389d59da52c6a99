/* SPDX-License-Identifier: MIT */
/* Runs inside of another loop, here a plain poll(2): nothing is missed, and nothing spins. */

#include "host.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* ---- begin, step, end ---- */

static int answers(void *arg)
{
        int *n = arg;

        return *n;
}

TEST(a_run_that_never_waits_takes_one_step)
{
        int n = 42;
        resha_embed *e = host_begin(answers, &n, NULL);

        ASSERT_EQ(host_drive(e, RESHA_FOREVER), 1);
        if (!test_is_sim())
                ASSERT_FALSE(host_readable(e, 0)); /* quiet */
        ASSERT_EQ(resha_embed_step(e, RESHA_FOREVER), 0);
        ASSERT_EQ(resha_embed_end(e), 42);
        ASSERT_EQ(resha_embed_end(NULL), 0);
}

static int fails(void *arg)
{
        (void)arg;
        return resha_fail(-EIO, "no luck");
}

TEST(the_failure_of_an_embedded_run_is_told_at_its_end)
{
        resha_error error;
        bool interrupted = true;
        resha_embed *e =
                host_begin(fails, NULL, &(resha_run_opts){ .ret_error = &error, .ret_interrupted = &interrupted });

        ASSERT_EQ(error.code, 0);
        host_drive(e, RESHA_FOREVER);
        ASSERT_EQ(resha_embed_end(e), -EIO);
        ASSERT_STR(error.text, "no luck");
        ASSERT_FALSE(interrupted);
}

TEST(options_that_are_not_for_an_embedded_run)
{
        resha_error error;
        resha_embed *e = NULL;
        resha_run_opts o = { .overflow_report = true, .ret_error = &error };

        ASSERT_EQ(resha_embed_begin(fails, NULL, &o, &e), -EINVAL);
        ASSERT_HAS(error.text, "overflow_report");
        o = (resha_run_opts){ .backend = "none", .ret_error = &error };
        ASSERT_EQ(resha_embed_begin(fails, NULL, &o, &e), -EINVAL);
        ASSERT_HAS(error.text, "none");
        ASSERT_TRUE(e == NULL);
}

/* ---- timers ---- */

TEST(timers_wake_the_host_and_nothing_else_does)
{
        unsigned done = 0;
        resha_embed *e = host_begin(host_sleeps, &done, NULL);
        unsigned steps = host_drive(e, RESHA_FOREVER);

        ASSERT_EQ(done, HOST_SLEEPS);
        if (!test_is_sim())
                ASSERT_TRUE(steps <= HOST_SLEEPS + 2); /* one for each, and the first */
        ASSERT_EQ(resha_embed_end(e), 0);
}

struct lateness {
        resha_instant start;
        int ms;
};

/* A timer that is armed, moved and disarmed by turns; the earliest of many is the one that counts. */
static int late(void *arg)
{
        const struct lateness *l = arg;
        int rc = resha_sleep_until((resha_instant){ l->start.ns + RESHA_MS(l->ms).ns });

        if (rc == 0)
                note("%d", l->ms);
        return rc;
}

static int timeouts(void *arg)
{
        resha_instant now = resha_now();
        struct lateness some[] = { { now, 60 }, { now, 20 }, { now, 40 } }, never = { now, HOST_LONG_MS * 10 };
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        for (int i = 0; i < 3; i++)
                resha_spawn(&g, late, &some[i]);
        for (int i = 0; i < 10; i++)
                ASSERT_EQ(resha_timeout(RESHA_MS(1), late, &never), -ETIME);
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, RESHA_S(1000));
        ASSERT_OK(resha_yield());
        ASSERT_OK(resha_scope_end(&s, 0));
        (void)arg;
        return resha_group_end(&g, 0);
}

TEST(the_earliest_of_many_timers_counts)
{
        resha_embed *e = host_begin(timeouts, NULL, NULL);

        host_drive(e, RESHA_FOREVER);
        ASSERT_STR(notes(), "20 40 60");
        ASSERT_EQ(resha_embed_end(e), 0);
}

static int sleeps_for_hardly_any_time(void *arg)
{
        int *left = arg, rc = 0;

        while (rc == 0 && *left > 0) {
                --*left;
                rc = resha_sleep(RESHA_NS(1));
        }
        return rc;
}

/* A timer that is due at once, again and again, keeps neither the host nor others out. */
TEST(a_host_gets_its_turn_between_timers_that_are_due_at_once)
{
        int left = 1000;
        resha_embed *e = host_begin(sleeps_for_hardly_any_time, &left, NULL);
        unsigned steps = host_drive(e, RESHA_MS(0));

        ASSERT_TRUE(steps > 10);
        ASSERT_EQ(resha_embed_end(e), 0);
}

/* ---- steps ---- */

enum { TURNS_MS = 50 };

/* Never waits: for so long, and until the host has had three turns. */
static int yields(void *steps)
{
        resha_instant end = resha_after(RESHA_MS(TURNS_MS));

        while (resha_between(resha_now(), end).ns > 0 || *(const unsigned *)steps < 3) {
                int rc = resha_yield();
                if (rc < 0)
                        return rc;
        }
        return 0;
}

TEST(a_step_is_bounded_and_the_next_one_is_due_at_once)
{
        unsigned steps = 0;

        if (test_is_sim())
                test_skip("yielding takes no time there");
        resha_embed *e = host_begin(yields, &steps, NULL);
        while (resha_embed_step(e, RESHA_MS(1)) > 0) {
                steps++;
                ASSERT_TRUE(host_readable(e, HOST_LONG_MS));
        }
        ASSERT_TRUE(steps >= 3 && steps <= TURNS_MS + 10);
        ASSERT_EQ(resha_embed_end(e), 0);
}

static int waits_for(void *event)
{
        return resha_event_wait(event);
}

TEST(a_deadlock_is_seen_though_nothing_happens)
{
        resha_event never = { { 0 } };
        resha_error error;
        resha_embed *e = host_begin(waits_for, &never, &(resha_run_opts){ .ret_error = &error });
        unsigned steps = host_drive(e, RESHA_FOREVER);

        ASSERT_TRUE(steps <= 3);
        ASSERT_EQ(resha_embed_end(e), -EDEADLK);
        ASSERT_EQ(error.code, -EDEADLK);
}

static int steps_itself(void *arg)
{
        resha_embed **e = arg;

        ASSERT_EQ(resha_embed_step(*e, RESHA_FOREVER), -EBUSY);
        ASSERT_EQ(resha_embed_end(*e), -EBUSY);
        ASSERT_HAS(resha_error_of(-EBUSY)->text, "under way");
        resha_loop *l = resha_embed_loop(*e);
        ASSERT_TRUE(l != NULL);
        resha_loop_unref(l);
        ASSERT_EQ(resha_run(fails, NULL, NULL), -EBUSY);
        return 7;
}

TEST(a_step_inside_of_a_step_is_refused)
{
        resha_embed *e = NULL;

        e = host_begin(steps_itself, &e, NULL);
        host_drive(e, RESHA_FOREVER);
        ASSERT_EQ(resha_embed_end(e), 7);
}

static void *strange(void *arg)
{
        ASSERT_EQ(resha_embed_step(arg, RESHA_FOREVER), -EPERM);
        ASSERT_EQ(resha_embed_end(arg), -EPERM);
        ASSERT_TRUE(resha_embed_loop(arg) == NULL);
        return NULL;
}

TEST(another_thread_is_refused)
{
        pthread_t thread;
        int n = 1;
        resha_embed *e = host_begin(answers, &n, NULL);

        ASSERT_EQ(pthread_create(&thread, NULL, strange, e), 0);
        ASSERT_EQ(pthread_join(thread, NULL), 0);
        host_drive(e, RESHA_FOREVER);
        ASSERT_EQ(resha_embed_end(e), 1);
}

/* ---- the network ---- */

static int echo(resha_stream *s, void *arg)
{
        char buf[64];
        ssize_t n;

        (void)arg;
        while ((n = resha_read(s, buf, sizeof buf)) > 0) {
                int rc = resha_write_all(s, buf, (size_t)n, NULL);
                if (rc < 0)
                        return rc;
        }
        return (int)n;
}

struct service {
        resha_listener *listener;
        uint16_t port;
};

static int serves(void *arg)
{
        struct service *s = arg;

        s->listener = real_listener(&s->port);
        int rc = resha_serve(s->listener, echo, NULL, NULL);
        resha_listener_close(s->listener);
        return rc;
}

enum { ECHOES = 200 };

/* The host is the client, on a blocking socket: what it sends is answered by steps alone. */
TEST(a_server_echoes_between_the_steps_of_its_host)
{
        struct service s = { 0 };
        char out[32], in[32];
        unsigned steps = 0;

        if (test_is_sim())
                test_skip("needs sockets");
        resha_embed *e = host_begin(serves, &s, NULL);
        while (!s.port)
                ASSERT_EQ(resha_embed_step(e, RESHA_FOREVER), 1);
        int fd = real_connect(s.port);
        for (int i = 0; i < ECHOES; i++) {
                ssize_t n = snprintf(out, sizeof out, "number %d", i), got;
                ASSERT_EQ(write(fd, out, (size_t)n), n);
                do {
                        ASSERT_TRUE(host_readable(e, HOST_LONG_MS));
                        ASSERT_EQ(resha_embed_step(e, RESHA_MS(5)), 1);
                        steps++;
                        got = recv(fd, in, sizeof in, MSG_DONTWAIT);
                } while (got < 0);
                ASSERT_EQ(got, n);
                ASSERT_EQ(memcmp(in, out, (size_t)n), 0);
        }
        ASSERT_TRUE(steps <= ECHOES * 3);
        close(fd);
        ASSERT_EQ(resha_embed_end(e), -ECANCELED); /* the server is cancelled */
}

struct chat {
        resha_listener *listener;
        resha_addr addr;
        unsigned rounds;
};

static int talks(void *arg)
{
        struct chat *c = arg;
        resha_stream *s;
        char text[5];
        int rc = resha_tcp_connect_addr(&c->addr, &s);

        for (unsigned i = 0; rc >= 0 && i < c->rounds; i++) {
                rc = resha_write_all(s, "hello", 5, NULL);
                if (rc >= 0)
                        rc = (int)resha_read_exactly(s, text, 5);
        }
        resha_stream_close(s);
        return rc;
}

static int serves_clients(void *arg)
{
        return resha_serve(((struct chat *)arg)->listener, echo, NULL, NULL);
}

enum { CLIENTS = 20, ROUNDS = 50 };

static int clients_and_server(void *arg)
{
        struct chat c[CLIENTS];
        RESHA_GROUP(g);

        (void)arg;
        c[0].rounds = ROUNDS;
        ASSERT_OK(resha_tcp_listen("127.0.0.1", 0, &c[0].listener));
        ASSERT_OK(resha_listener_addr(c[0].listener, &c[0].addr));
        for (int i = 1; i < CLIENTS; i++)
                c[i] = c[0];
        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        resha_spawn(&g, serves_clients, &c[0]);
        ASSERT_OK(resha_gather(talks, c, CLIENTS, sizeof c[0], NULL));
        int rc = resha_group_end(&g, 0);
        resha_listener_close(c[0].listener);
        return rc;
}

TEST(clients_and_a_server_in_one_embedded_run)
{
        resha_embed *e = host_begin(clients_and_server, NULL, NULL);

        host_drive(e, RESHA_MS(1));
        ASSERT_EQ(resha_embed_end(e), 0);
}

static int adds_one(void *arg)
{
        usleep(500);
        return ++*(int *)arg;
}

static int uses_the_pool(void *arg)
{
        int n[8] = { 0 };

        (void)arg;
        for (int i = 0; i < 8; i++)
                ASSERT_EQ(resha_pool_run(NULL, adds_one, &n[i], NULL), 1);
        return 0;
}

TEST(thread_jobs_come_back_by_a_step)
{
        resha_embed *e = host_begin(uses_the_pool, NULL, NULL);
        unsigned steps = host_drive(e, RESHA_FOREVER);

        if (!test_is_sim())
                ASSERT_TRUE(steps <= 8 * 2 + 2);
        ASSERT_EQ(resha_embed_end(e), 0);
}

static int waits_for_usr1(void *arg)
{
        int sig = SIGUSR1;

        (void)arg;
        return resha_signal_wait(&sig, 1, &sig);
}

TEST(a_signal_that_a_task_waits_for_wakes_the_host)
{
        if (test_is_sim())
                test_skip("real signals are left alone in the simulated world");
        resha_embed *e = host_begin(waits_for_usr1, NULL, NULL);

        ASSERT_EQ(resha_embed_step(e, RESHA_FOREVER), 1);
        ASSERT_FALSE(host_readable(e, 5));
        ASSERT_EQ(raise(SIGUSR1), 0);
        host_drive(e, RESHA_FOREVER);
        ASSERT_EQ(resha_embed_end(e), 0);
}

TEST(ctrl_c_is_the_hosts)
{
        int n = 1;
        struct sigaction now;
        resha_embed *e = host_begin(answers, &n, NULL);

        ASSERT_EQ(sigaction(SIGINT, NULL, &now), 0);
        ASSERT_TRUE(now.sa_handler == SIG_DFL);
        ASSERT_EQ(sigaction(SIGPIPE, NULL, &now), 0);
        ASSERT_TRUE(now.sa_handler == SIG_IGN);
        ASSERT_EQ(resha_embed_end(e), 1);
        ASSERT_EQ(sigaction(SIGPIPE, NULL, &now), 0);
        ASSERT_TRUE(now.sa_handler == SIG_DFL);
}

/* ---- the watchdog: a host that takes its time between two steps blocks nothing; a task in a step does ---- */

enum { LIMIT_MS = 30 };

static volatile unsigned blocks;

static void count_blocks(const resha_report *r, void *arg)
{
        (void)arg;
        blocks += r->kind == RESHA_REPORT_BLOCKED;
}

static int blocks_until_seen(void *arg)
{
        int rc = resha_sleep(RESHA_MS(1));

        while (rc == 0 && blocks == 0)
                usleep(1000);
        *(bool *)arg = true;
        return rc < 0 ? rc : resha_sleep(RESHA_MS(1));
}

TEST(an_embedded_run_is_watched_in_its_steps)
{
        bool done = false;
        int rc = 1;

        if (test_is_sim() || TEST_TSAN || TEST_VALGRIND)
                test_skip("there is no watchdog");
        resha_embed *e = host_begin(blocks_until_seen, &done,
                                    &(resha_run_opts){ .blocked = RESHA_MS(LIMIT_MS), .report = count_blocks });
        while (rc > 0) {
                usleep(done ? 1000 : 3 * LIMIT_MS * 1000);
                if (!done)
                        ASSERT_EQ(blocks, 0);
                rc = resha_embed_step(e, RESHA_MS(1));
        }
        ASSERT_TRUE(done);
        ASSERT_OK(resha_embed_end(e));
        ASSERT_TRUE(blocks >= 2); /* while it lasted, and once it was over */
}
