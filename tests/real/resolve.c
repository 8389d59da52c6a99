/* SPDX-License-Identifier: MIT */
/* Name look-ups: literals, localhost, bad names; shared, kept, abandoned, hanging and failing look-ups; the threads
 * go. */

#include "common.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "net/lookup.h"

struct question {
        const char *host, *port;
        resha_addr addrs[8];
        size_t n;
};

static int ask(void *arg)
{
        struct question *q = arg;

        return resha_resolve(q->host, q->port, q->addrs, 8, &q->n);
}

static const char *answer(const char *host, const char *port)
{
        static char text[RESHA_ADDR_TEXT_MAX];
        struct question q = { .host = host, .port = port };
        int rc = ask(&q);

        if (rc < 0)
                return resha_errname(rc);
        return resha_addr_format(&q.addrs[0], text, sizeof text);
}

TASK(literals_need_no_thread)
{
        unsigned before = real_threads();

        ASSERT_STR(answer("127.0.0.1", "80"), "127.0.0.1:80");
        ASSERT_STR(answer("::1", "443"), "[::1]:443");
        ASSERT_STR(answer("fe80::1%1", NULL), "[fe80::1%lo]:0");
        ASSERT_EQ(real_threads(), before);
        return 0;
}

TASK(localhost_is_a_loopback_address)
{
        struct question q = { .host = "localhost", .port = "80" };

        ASSERT_OK(ask(&q));
        ASSERT_TRUE(q.n >= 1);
        for (size_t i = 0; i < q.n; i++) {
                char text[RESHA_ADDR_TEXT_MAX];
                resha_addr_format(&q.addrs[i], text, sizeof text);
                ASSERT_TRUE(strcmp(text, "127.0.0.1:80") == 0 || strcmp(text, "[::1]:80") == 0);
        }
        ASSERT_STR(answer("127.1", "80"), "127.0.0.1:80"); /* the C library's own short form */
        return 0;
}

TASK(bad_questions_have_clear_answers)
{
        char name[300];
        struct question q = { .host = "localhost", .port = "no-such-service" };

        ASSERT_EQ(ask(&q), -EINVAL);
        q = (struct question){ .host = "localhost", .port = "65536" };
        ASSERT_EQ(ask(&q), -EINVAL);
        q = (struct question){ .host = "", .port = "80" };
        ASSERT_EQ(ask(&q), -EINVAL);
        memset(name, 'a', sizeof name);
        name[254] = '\0';
        q = (struct question){ .host = name, .port = "80" };
        ASSERT_EQ(ask(&q), -EMSGSIZE);
        /* Without a network the resolver says that it has no answer for now. */
        q = (struct question){ .host = "no-such-name.invalid", .port = "80" };
        int rc = ask(&q);
        ASSERT_TRUE(rc == -ENOENT || rc == -EAGAIN);
        ASSERT_HAS(resha_error_of(rc)->text, "look-up of no-such-name.invalid: ");
        return 0;
}

/* Whatever way an address goes: as a literal, through getaddrinfo (a service has to be looked up), into a sockaddr. */
TASK(a_link_local_address_keeps_its_zone)
{
        ASSERT_STR(answer("fe80::1%lo", "80"), "[fe80::1%lo]:80");
        ASSERT_STR(answer("[fe80::1%lo]", "80"), "[fe80::1%lo]:80");
        ASSERT_STR(answer("fe80::1%lo", "http"), "[fe80::1%lo]:80");
        ASSERT_STR(answer("fe80::1%lo", "http"), "[fe80::1%lo]:80"); /* kept */
        ASSERT_STR(answer("fe80::1%no-such-zone", "80"), "ENOENT");
        return 0;
}

/* ---- look-ups that take until they are let go ---- */

static atomic_uint asked, running, most;
static atomic_bool go;

static int slow_look_up(enum rs_syscall call)
{
        if (call != RS_SYS_GETADDRINFO)
                return 0;
        atomic_fetch_add(&asked, 1);
        unsigned now = atomic_fetch_add(&running, 1) + 1, seen = atomic_load(&most);
        while (now > seen && !atomic_compare_exchange_weak(&most, &seen, now))
                ;
        while (!atomic_load(&go))
                usleep(500);
        atomic_fetch_sub(&running, 1);
        return 0;
}

/* Asks for all, lets `n` look-ups begin, gives more of them time to begin wrongly, and lets them go. */
static int ask_all(const char *const *hosts, size_t count, unsigned n)
{
        struct question q[10];
        RESHA_GROUP(g);

        rs_fault_hook = slow_look_up;
        resha_group_begin(&g, NULL);
        for (size_t i = 0; i < count; i++) {
                q[i] = (struct question){ .host = hosts[i], .port = "80" };
                resha_spawn(&g, ask, &q[i]);
        }
        while (atomic_load(&running) < n)
                ASSERT_OK(resha_sleep(RESHA_MS(1)));
        ASSERT_OK(resha_sleep(RESHA_MS(20)));
        atomic_store(&go, true);
        int rc = resha_group_end(&g, 0);
        for (size_t i = 0; i < count; i++)
                ASSERT_TRUE(rc < 0 || q[i].n >= 1);
        return rc;
}

TASK(equal_questions_at_the_same_time_are_one_look_up)
{
        static const char *const hosts[10] = { "localhost", "localhost", "localhost", "localhost", "localhost",
                                               "localhost", "localhost", "localhost", "localhost", "localhost" };

        ASSERT_OK(ask_all(hosts, 10, 1));
        ASSERT_EQ(atomic_load(&asked), 1);
        return 0;
}

TASK(at_most_four_look_ups_run_at_once)
{
        static const char *const hosts[10] = { "127.1", "127.2", "127.3", "127.4", "127.5",
                                               "127.6", "127.7", "127.8", "127.9", "127.10" };

        ASSERT_OK(ask_all(hosts, 10, 4));
        ASSERT_EQ(atomic_load(&asked), 10);
        ASSERT_EQ(atomic_load(&most), 4);
        return 0;
}

/* Begins to ask, and gives it up once the look-up runs. */
static int ask_and_leave(void *arg)
{
        struct question q = { .host = "localhost", .port = "80" };
        resha_task handle = { 0 };
        int status = 0;
        RESHA_GROUP(g);

        (void)arg;
        rs_fault_hook = slow_look_up;
        resha_group_begin(&g, NULL);
        resha_spawn_task(&g, ask, &q, &handle);
        while (atomic_load(&running) < 1)
                ASSERT_OK(resha_sleep(RESHA_MS(1)));
        resha_task_cancel(&handle);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_TRUE(resha_task_done(&handle, &status));
        ASSERT_EQ(status, -ECANCELED);
        ASSERT_EQ(atomic_load(&running), 1);
        return 0;
}

TASK(a_cancelled_caller_leaves_and_the_next_joins_the_look_up)
{
        static const char *const hosts[1] = { "localhost" };

        ASSERT_OK(ask_and_leave(NULL));
        ASSERT_OK(ask_all(hosts, 1, 1));
        ASSERT_EQ(atomic_load(&asked), 1);
        return 0;
}

/* ---- answers that are kept ---- */

static unsigned asked_now(void)
{
        return atomic_exchange(&asked, 0);
}

TASK(an_answer_is_kept_for_other_ports_and_cases)
{
        rs_fault_hook = slow_look_up;
        atomic_store(&go, true);
        ASSERT_OK(resha_resolve_keep(RESHA_S(3600)));
        ASSERT_STR(answer("127.1", "80"), "127.0.0.1:80");
        ASSERT_STR(answer("127.1", "443"), "127.0.0.1:443");
        ASSERT_STR(answer("127.1", NULL), "127.0.0.1:0");
        ASSERT_EQ(asked_now(), 1);
        ASSERT_STR(answer("localhost", "1"), "127.0.0.1:1");
        ASSERT_STR(answer("LocalHost", "2"), "127.0.0.1:2");
        ASSERT_EQ(asked_now(), 1);
        ASSERT_STR(answer("127.1", "http"), "127.0.0.1:80");
        ASSERT_EQ(asked_now(), 1);
        ASSERT_EQ(resha_resolve_keep(RESHA_NS(-1)), -EINVAL);
        return 0;
}

TASK(that_there_is_no_such_name_is_kept)
{
        rs_fault_hook = slow_look_up;
        atomic_store(&go, true);
        ASSERT_OK(resha_resolve_keep(RESHA_S(3600)));
        for (int i = 0; i < 3; i++) {
                ASSERT_STR(answer("not..a.name", "80"), "ENOENT");
                ASSERT_HAS(resha_error_of(-ENOENT)->text, "look-up of not..a.name: ");
        }
        ASSERT_EQ(asked_now(), 1);
        return 0;
}

TASK(answers_are_forgotten_and_not_kept_at_all)
{
        rs_fault_hook = slow_look_up;
        atomic_store(&go, true);
        ASSERT_OK(resha_resolve_keep(RESHA_S(3600)));
        ASSERT_STR(answer("127.1", "80"), "127.0.0.1:80");
        resha_resolve_forget();
        ASSERT_STR(answer("127.1", "80"), "127.0.0.1:80");
        ASSERT_EQ(asked_now(), 2);
        ASSERT_OK(resha_resolve_keep(RESHA_S(0)));
        ASSERT_STR(answer("127.1", "80"), "127.0.0.1:80");
        ASSERT_STR(answer("127.1", "80"), "127.0.0.1:80");
        ASSERT_EQ(asked_now(), 2);
        return 0;
}

/* What was asked before belongs to the time before. */
TASK(a_look_up_that_began_before_forgetting_is_not_shared_nor_kept)
{
        struct question before = { .host = "127.1", .port = "80" }, after = before;
        RESHA_GROUP(g);

        rs_fault_hook = slow_look_up;
        ASSERT_OK(resha_resolve_keep(RESHA_S(3600)));
        resha_group_begin(&g, NULL);
        resha_spawn(&g, ask, &before);
        while (atomic_load(&running) < 1)
                ASSERT_OK(resha_sleep(RESHA_MS(1)));
        resha_resolve_forget();
        resha_spawn(&g, ask, &after);
        while (atomic_load(&running) < 2)
                ASSERT_OK(resha_sleep(RESHA_MS(1)));
        resha_resolve_forget();
        atomic_store(&go, true);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(before.n, 1);
        ASSERT_EQ(after.n, 1);
        ASSERT_EQ(asked_now(), 2);
        ASSERT_STR(answer("127.1", "80"), "127.0.0.1:80");
        ASSERT_EQ(asked_now(), 1);
        return 0;
}

static int ask_twice(void *arg)
{
        (void)arg;
        ASSERT_STR(answer("127.1", "80"), "127.0.0.1:80");
        ASSERT_STR(answer("127.1", "80"), "127.0.0.1:80");
        return 0;
}

TEST(nothing_is_kept_when_no_loop_runs)
{
        rs_fault_hook = slow_look_up;
        atomic_store(&go, true);
        ASSERT_OK(resha_resolve_keep(RESHA_S(3600)));
        rs_alloc_watch(true);
        RUN(ask_twice, NULL);
        ASSERT_EQ(rs_alloc_live(), 0);
        RUN(ask_twice, NULL);
        ASSERT_EQ(asked_now(), 2);
}

/* ---- look-ups that hang ---- */

/* Asks for `n` different names and gives all up once `n` look-ups run. */
static void hang(unsigned first, unsigned n)
{
        static char hosts[32][16];
        struct question q[32];
        RESHA_GROUP(g);

        rs_fault_hook = slow_look_up;
        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        for (unsigned i = first; i < first + n; i++) {
                snprintf(hosts[i], sizeof hosts[i], "127.%u", i + 1);
                q[i] = (struct question){ .host = hosts[i], .port = "80" };
                resha_spawn(&g, ask, &q[i]);
        }
        while (atomic_load(&running) < first + n)
                ASSERT_OK(resha_sleep(RESHA_MS(1)));
        ASSERT_OK(resha_group_end(&g, 0));
}

static int hang_four_by_four(void *arg)
{
        struct question q = { .host = "localhost", .port = "80" };

        (void)arg;
        hang(0, 4);
        hang(4, 4); /* given up, the first four are in nobody's way */
        hang(8, 4);
        hang(12, 4);
        ASSERT_EQ(resha_timeout(RESHA_MS(20), ask, &q), -ETIME); /* that was all */
        ASSERT_EQ(atomic_load(&asked), 16);
        ASSERT_EQ(real_threads(), real_under_tsan() ? 1 : 17);
        note("|");
        rs_lookup_hang_ns = 0;
        ASSERT_EQ(resha_timeout(RESHA_MS(20), ask, &q), -ETIME);
        atomic_store(&go, true);
        ASSERT_OK(ask(&q));
        return 0;
}

static void note_shortage(const resha_report *r, void *arg)
{
        (void)arg;
        ASSERT_EQ(r->kind, RESHA_REPORT_SHORTAGE);
        ASSERT_EQ(r->code, -EAGAIN);
        ASSERT_HAS(r->text, "the look-up of localhost was given up before it began: 16 others hang, that of 127.");
        note("told");
}

/* One caller's dead name server is not the end of all look-ups; and when it is, somebody says so. */
TEST(look_ups_that_were_given_up_make_room_until_sixteen_hang)
{
        rs_alloc_watch(true);
        ASSERT_OK(test_run_opts(hang_four_by_four, NULL, &(resha_run_opts){ .report = note_shortage }));
        ASSERT_STR(notes(), "| told");
        while (rs_alloc_live() > 0 || real_threads() > 1)
                usleep(1000); /* the threads of what was given up go by themselves */
}

/* The run ends before the look-up: its answer finds nobody. The memory is given back when it comes. */
TEST(a_run_does_not_wait_for_a_look_up_that_is_given_up)
{
        rs_alloc_watch(true);
        RUN(ask_and_leave, NULL);
        ASSERT_EQ(atomic_load(&running), 1);
        atomic_store(&go, true);
        while (rs_alloc_live() > 0 || real_threads() > 1)
                usleep(1000);
}

TEST(the_threads_are_gone_at_the_end_of_the_run)
{
        struct question q = { .host = "localhost", .port = "80" };

        for (int i = 0; i < 2; i++) {
                RUN(ask, &q);
                real_threads_left(1);
        }
}

/* ---- failures ---- */

static enum rs_syscall failing;
static int failing_with;

static int fail_one_kind(enum rs_syscall call)
{
        return call == failing ? failing_with : 0;
}

TASK(a_look_up_that_fails_is_an_error_of_the_call)
{
        struct question q = { .host = "localhost", .port = "80" };

        failing = RS_SYS_GETADDRINFO;
        failing_with = -EMFILE;
        rs_fault_hook = fail_one_kind;
        ASSERT_EQ(ask(&q), -EMFILE);
        ASSERT_STR(resha_error_of(-EMFILE)->text, "look-up of localhost: Too many open files");
        failing = RS_SYS_THREAD;
        failing_with = -EAGAIN;
        /* A thread is there by now, and none more is needed. */
        ASSERT_OK(resha_sleep(RESHA_MS(20)));
        ASSERT_OK(ask(&q));
        return 0;
}

TASK(without_a_thread_there_is_no_look_up)
{
        struct question q = { .host = "localhost", .port = "80" };

        failing = RS_SYS_THREAD;
        failing_with = -EAGAIN;
        rs_fault_hook = fail_one_kind;
        ASSERT_EQ(ask(&q), -EAGAIN);
        rs_fault_hook = NULL;
        ASSERT_OK(ask(&q));
        return 0;
}

/* ---- connecting to a name ---- */

static uint16_t port_of_nobody(void)
{
        uint16_t port;

        close(real_listen(1, &port));
        return port;
}

TASK(a_name_that_refuses_is_one_error_that_names_it_and_its_address)
{
        char text[128];
        resha_stream *s = NULL;
        uint16_t port = port_of_nobody();

        ASSERT_EQ(resha_tcp_connect("127.1", port, &s), -ECONNREFUSED);
        snprintf(text, sizeof text, "connect to 127.1 port %u: Connection refused (1 address: 127.0.0.1:%u)", port,
                 port);
        ASSERT_STR(resha_error_of(-ECONNREFUSED)->text, text);
        ASSERT_EQ(resha_tcp_connect("not..a.name", port, &s), -ENOENT);
        return 0;
}

struct caller {
        uint16_t port;
        unsigned connected;
};

static int connect_and_close(void *arg)
{
        struct caller *c = arg;
        resha_stream *s RESHA_CLEANUP(resha_stream_closep) = NULL;
        int rc = resha_tcp_connect("127.1", c->port, &s);

        c->connected += rc == 0;
        return rc;
}

/* Wherever the cancel comes, in the look-up, the connect, or behind it: no descriptor is left open, and none is
 * closed twice. */
TASK(connects_to_a_name_that_are_given_up_at_any_moment)
{
        struct caller c = { .connected = 0 };
        int fd = real_listen(1000, &c.port);

        ASSERT_OK(resha_resolve_keep(RESHA_S(0)));
        unsigned before = real_fds();
        real_count();
        for (int i = 0; c.connected < 50; i++) {
                int rc = resha_timeout(RESHA_US(i % 500), connect_and_close, &c);
                ASSERT_TRUE(rc == 0 || rc == -ETIME);
        }
        ASSERT_EQ(real_fds(), before);
        ASSERT_EQ(real_calls[RS_SYS_CLOSE], real_calls[RS_SYS_SOCKET]); /* each once */
        close(fd);
        return 0;
}

/* Timeouts around the moment at which the answer comes. */
TASK(answers_and_cancels_at_the_same_moment)
{
        struct question q = { .host = "localhost", .port = "80" };
        int answered = 0;

        ASSERT_OK(resha_resolve_keep(RESHA_S(0)));

        for (int i = 0; answered < 50; i++) {
                int rc = resha_timeout(RESHA_US(i % 400), ask, &q);
                ASSERT_TRUE(rc == 0 || rc == -ETIME);
                answered += rc == 0;
        }
        return 0;
}
