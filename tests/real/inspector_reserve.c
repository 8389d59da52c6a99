/* SPDX-License-Identifier: MIT */
/* A program that has no file descriptor left is looked at all the same, by those that are kept in reserve. */

#include "inspector.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { LIMIT = 128, CLIENTS = 4 };

#define LEFT "the program has no file descriptor left"
#define MISSED "without a file descriptor, not all could be looked up"

/* Sockets of clients, made while there still are descriptors, and what takes the rest of those. */
struct leak {
        struct rlimit before;
        int clients[CLIENTS];
        int all[LIMIT];
        size_t n;
        char *text;
};

static void leak(struct leak *k)
{
        int fd;

        k->n = 0;
        for (size_t i = 0; i < CLIENTS; i++)
                ASSERT_TRUE((k->clients[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) >= 0);
        while (k->n < LIMIT && (fd = dup(STDOUT_FILENO)) >= 0)
                k->all[k->n++] = fd;
        ASSERT_EQ(errno, EMFILE);
}

static void leak_no_more(struct leak *k)
{
        while (k->n)
                close(k->all[--k->n]);
        for (size_t i = 0; i < CLIENTS; i++)
                close(k->clients[i]);
}

/* A client comes, and asks. */
static void ask(int fd, const char *line)
{
        struct sockaddr_un a = { .sun_family = AF_UNIX };

        inspector_path(geteuid(), getpid(), a.sun_path, sizeof a.sun_path);
        ASSERT_EQ(connect(fd, (const struct sockaddr *)&a, sizeof a), 0);
        ASSERT_EQ(send(fd, line, strlen(line), MSG_NOSIGNAL), (ssize_t)strlen(line));
}

/* The limit is that of the process: the run begins with it, as a program does. */
static void run_with_few(resha_fn *fn)
{
        struct leak k;

        if (TEST_VALGRIND)
                test_skip("the limit is Valgrind's own there, and of some calls only");
        ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &k.before), 0);
        ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ LIMIT, k.before.rlim_max }), 0);
        inspector_run(fn, &k);
        ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &k.before), 0);
}

/* Functions of the test have names in the program's file only. */
static bool has_names(void)
{
#if defined(__x86_64__)
        return !TEST_ASAN && !TEST_TSAN;
#else
        return false;
#endif
}

static int is_looked_at(void *arg)
{
        struct leak *k = arg;
        RESHA_GROUP(g);

        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        resha_spawn(&g, inspector_sleeps, NULL);
        ASSERT_OK(resha_yield());
        leak(k);
        for (size_t i = 0; i < CLIENTS; i++) { /* one after the other: what was taken is given back */
                ask(k->clients[i], "snapshot stacks\n");
                char *text = asker_rest(k->clients[i]);
                assert_whole(text);
                ASSERT_HAS(text, LEFT);
                ASSERT_EQ(inspector_count(text, "\"type\":\"task\""), 2);
                ASSERT_EQ(inspector_count(text, MISSED), 0);
                if (has_names())
                        ASSERT_HAS(text, "\"text\":\"inspector_sleeps+0x");
                resha_free(text);
        }
        leak_no_more(k);
        char *text = asker_text("snapshot stacks\n");
        assert_whole(text);
        ASSERT_EQ(inspector_count(text, LEFT), 0);
        resha_free(text);
        return resha_group_end(&g, 0);
}

TEST(without_a_descriptor_it_is_looked_at)
{
        run_with_few(is_looked_at);
}

/* Until it has been looked at. */
static int blocks(void *arg)
{
        struct leak *k = arg;
        struct asker a;

        ask(k->clients[0], "snapshot stacks\n");
        asker_start_rest(&a, k->clients[0]);
        while (!__atomic_load_n(&a.done, __ATOMIC_SEQ_CST))
                poll(NULL, 0, 5);
        asker_wait(&a);
        k->text = a.text;
        return 0;
}

/* Then files of /proc say where its thread is. */
static int is_blocked(void *arg)
{
        struct leak *k = arg;
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        leak(k);
        resha_spawn(&g, blocks, k);
        ASSERT_OK(resha_group_end(&g, 0));
        assert_whole(k->text);
        ASSERT_EQ(inspector_count(k->text, MISSED), 0);
        ASSERT_HAS(k->text, "\"mode\":\"blocked\"");
        if (has_names())
                ASSERT_HAS(k->text, "\"text\":\"blocks+0x");
        resha_free(k->text);
        leak_no_more(k);
        return 0;
}

TEST(without_a_descriptor_a_blocked_loop_is_looked_at)
{
        run_with_few(is_blocked);
}

/* Each of those before has one of the reserve, and keeps it. */
static int says_what_is_left_out(void *arg)
{
        struct leak *k = arg;
        RESHA_GROUP(g);

        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        resha_spawn(&g, inspector_sleeps, NULL);
        ASSERT_OK(resha_yield());
        leak(k);
        for (size_t i = 0; i < CLIENTS; i++)
                ask(k->clients[i], i < CLIENTS - 1 ? "sample 600000\n" : "snapshot stacks\n");
        char *text = asker_rest(k->clients[CLIENTS - 1]);
        assert_whole(text);
        if (has_names())
                ASSERT_EQ(inspector_count(text, MISSED), 1);
        ASSERT_EQ(inspector_count(text, "\"type\":\"task\""), 2);
        resha_free(text);
        leak_no_more(k);
        return resha_group_end(&g, 0);
}

TEST(without_a_descriptor_in_reserve_it_says_what_is_left_out)
{
        run_with_few(says_what_is_left_out);
}

/* Those that the program opens have the numbers that they have without an inspector. */
static int opens(void *arg)
{
        int *fd = arg;

        *fd = dup(STDOUT_FILENO);
        close(*fd);
        return 0;
}

TEST(a_reserve_takes_no_number_of_the_program)
{
        struct rlimit limit;
        int without = -1, with = -1, door = 3; /* the door, its folder, and what ends its thread */

        ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
        if (limit.rlim_cur < 1024)
                test_skip("there are too few numbers to be out of the way");
        ASSERT_OK(test_run_opts(opens, &without, NULL));
        inspector_run(opens, &with);
        ASSERT_EQ(with, without + door);
}
