/* SPDX-License-Identifier: MIT */
/* A stderr that nobody reads: what the library says there keeps no run from its end, and is counted. Each in a child
 * process whose stderr is a pipe that is full. */

#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE_S = 40 };

static int ends[2]; /* of the pipe */

static void stderr_to_a_full_pipe(void)
{
        static const char some[4096];

        if (pipe(ends) < 0 || fcntl(ends[1], F_SETFL, O_NONBLOCK) < 0)
                _exit(99);
        while (write(ends[1], some, sizeof some) > 0)
                ;
        if (fcntl(ends[1], F_SETFL, 0) < 0 || dup2(ends[1], STDERR_FILENO) < 0)
                _exit(99);
        setenv("RESHA_BACKEND", test_backend(), 1);
        alarm(PATIENCE_S);
}

/* What is in the pipe; and that its flags, which others share, are what they were. */
static const char *drain(void)
{
        static char text[256 * 1024];
        ssize_t n;
        size_t have = 0;

        if (fcntl(STDERR_FILENO, F_GETFL) & O_NONBLOCK)
                _exit(98);
        if (fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0)
                _exit(99);
        memset(text, 0, sizeof text);
        while (have < sizeof text - 1 && (n = read(ends[0], text + have, sizeof text - 1 - have)) > 0)
                have += (size_t)n;
        for (size_t i = 0; i < have; i++)
                text[i] = text[i] ? text[i] : ' ';
        return text;
}

/* ---- a storm of everything ---- */

static atomic_bool over;

static void *asks(void *arg)
{
        while (!atomic_load(&over)) {
                kill(getpid(), SIGUSR1);
                nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
        }
        return arg;
}

/* Long enough for the watchdog to say that it blocks the loop, as resha_main() has it. */
static int blocks(void *arg)
{
        pthread_t thread;

        (void)arg;
        if (pthread_create(&thread, NULL, asks, NULL) != 0)
                return -EAGAIN;
        struct timespec left = { .tv_sec = 1 };
        while (nanosleep(&left, &left) < 0)
                ;
        atomic_store(&over, true);
        pthread_join(thread, NULL);
        return 0;
}

static int storm(void *arg)
{
        (void)arg;
        stderr_to_a_full_pipe();
        setenv("RESHA_DUMP", "USR1", 1);
        return resha_main(blocks, NULL);
}

TEST(stderr_unread_does_not_keep_a_run_that_has_much_to_say)
{
        struct test_child c;

        test_child(storm, NULL, &c);
        ASSERT_EQ(c.status, 0);
}

/* ---- what is dropped is counted ---- */

static int fails(void *arg)
{
        (void)arg;
        return resha_fail(-EIO, "the disk is full of holes");
}

static int counts(void *arg)
{
        (void)arg;
        stderr_to_a_full_pipe();
        for (int i = 0; i < 3; i++)
                (void)resha_main(fails, NULL);
        if (strstr(drain(), "holes"))
                return 1;
        (void)resha_main(fails, NULL);
        const char *text = drain();
        const char *said = strstr(text, "\nresha: 3 texts were dropped here, or cut: nobody read\n");
        if (!said || !strstr(said, "the disk is full of holes"))
                return 2;
        (void)resha_main(fails, NULL);
        return strstr(drain(), "dropped") ? 3 : 0;
}

TEST(stderr_unread_says_later_how_much_was_dropped)
{
        struct test_child c;

        test_child(counts, NULL, &c);
        ASSERT_EQ(c.status, 0);
}
