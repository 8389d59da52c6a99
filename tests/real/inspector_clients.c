/* SPDX-License-Identifier: MIT */
/* Clients of the inspector that do not behave, and runs that end while they are served: nothing comes of it. */

#include "inspector.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "inspect/answer.h"

/* ---- clients that do not behave ---- */

static int talk(const char *bytes, size_t n)
{
        int fd = inspector_connect(geteuid(), getpid());

        ASSERT_TRUE(fd >= 0);
        ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL);
        ASSERT_TRUE(sent == (ssize_t)n || errno == EPIPE); /* turned away already */
        return fd;
}

INSPECTED(requests_that_are_none)
{
        char *text = asker_text("make me a sandwich\n"), longest[300];

        ASSERT_HAS(text, "{\"type\":\"error\",\"text\":\"no such request: snapshot, stats, sample MS, trace MS\"}\n"
                         "{\"type\":\"end\",\"ok\":false}\n");
        resha_free(text);
        text = asker_text("\n");
        ASSERT_HAS(text, "\"ok\":false");
        resha_free(text);
        memset(longest, 'x', sizeof longest - 1);
        longest[sizeof longest - 1] = '\0';
        text = asker_text(longest);
        ASSERT_HAS(text, "256 bytes");
        resha_free(text);
        return inspector_answers(NULL);
}

INSPECTED(clients_that_hang_up)
{
        char *text = NULL;

        for (int i = 0; i < 20; i++) {
                close(inspector_connect(geteuid(), getpid()));
                close(talk("snap", 4));
                close(talk("snapshot stacks\n", 16));
                close(talk("sample 600000\n", 14));
        }
        for (int i = 0; i < 1000 && !(text && strstr(text, "\"ok\":true")); i++) { /* their places are free again */
                resha_free(text);
                text = asker_text("snapshot\n");
                ASSERT_OK(resha_sleep(RESHA_MS(2)));
        }
        assert_whole(text);
        resha_free(text);
        return 0;
}

INSPECTED(a_fifth_client_is_told_so)
{
        int fds[4];

        for (int i = 0; i < 4; i++)
                fds[i] = talk("sample 600000\n", 14);
        char *text = asker_text("snapshot\n");
        ASSERT_HAS(text, "too many at a time");
        resha_free(text);
        for (int i = 0; i < 4; i++)
                close(fds[i]);
        return 0;
}

/* Neither a client that says nothing nor one that does not read holds up the end of a run; nor a long request. */
static int leaves_clients_behind(void *arg)
{
        int *fds = arg;
        RESHA_GROUP(g);

        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        for (int i = 0; i < 5000; i++)
                resha_spawn(&g, inspector_sleeps, NULL);
        ASSERT_OK(resha_sleep(RESHA_MS(1)));
        fds[0] = talk("", 0);
        fds[1] = talk("snapshot stacks\n", 16);
        fds[2] = talk("sample 600000\n", 14);
        ASSERT_OK(resha_sleep(RESHA_MS(50)));
        return resha_group_end(&g, 0);
}

TEST(the_end_of_a_run_waits_for_no_client)
{
        int fds[3];
        struct timespec began, ended;

        clock_gettime(CLOCK_MONOTONIC, &began);
        inspector_run(leaves_clients_behind, fds);
        clock_gettime(CLOCK_MONOTONIC, &ended);
        if (ended.tv_sec - began.tv_sec > (TEST_SANITIZED ? 20 : 4))
                FAIL("the run took %ld s", (long)(ended.tv_sec - began.tv_sec));
        for (int i = 0; i < 3; i++)
                close(fds[i]);
}

INSPECTED(a_client_that_says_nothing_is_given_up)
{
        struct pollfd p = { .fd = talk("snapshot", 8), .events = POLLIN };

        for (int i = 0; i < 10000 && poll(&p, 1, 0) == 0; i++)
                ASSERT_OK(resha_sleep(RESHA_MS(2)));
        ASSERT_TRUE(p.revents & (POLLIN | POLLHUP));
        close(p.fd);
        return inspector_answers(NULL);
}

/* ---- clients that do not take their answers ---- */

/* More than the socket takes while nobody reads, several times. */
static int with_a_long_answer(resha_fn *fn, int ms)
{
        const struct rs_answer_slow before = rs_answer_slow;
        RESHA_GROUP(g);

        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        for (int i = 0; i < 5000; i++)
                resha_spawn(&g, inspector_sleeps, NULL);
        ASSERT_OK(resha_yield());
        rs_answer_slow = (struct rs_answer_slow){ .ms = ms };
        int rc = fn(NULL);
        rs_answer_slow = before;
        return resha_group_end(&g, rc);
}

static void assert_given_up(const char *text)
{
        ASSERT_HAS(text, "\n{\"type\":\"error\",\"text\":\"given up: ");
        ASSERT_HAS(text, " s, which is too slow\"}\n{\"type\":\"end\",\"ok\":false}\n");
}

static int does_not_read(void *arg)
{
        struct pollfd p = { .fd = talk("snapshot stacks\n", 16), .events = POLLRDHUP };

        for (int i = 0; i < 30000 && poll(&p, 1, 0) == 0; i++)
                ASSERT_OK(resha_sleep(RESHA_MS(1)));
        ASSERT_TRUE(p.revents & (POLLRDHUP | POLLHUP));
        char *text = asker_rest(p.fd);
        assert_given_up(text);
        resha_free(text);
        close(p.fd);
        return inspector_answers(arg);
}

INSPECTED(a_client_that_does_not_read_is_told_why_it_is_given_up)
{
        return with_a_long_answer(does_not_read, 100);
}

enum { REST_MS = 300 };

/* All that is there, and then nothing for a while. No rest is as long as it may take in all. */
static int reads_slowly(void *arg)
{
        enum { ROOM = 8 << 20 };
        struct pollfd p = { .fd = talk("snapshot\n", 9), .events = POLLIN };
        char *text = resha_calloc(1, ROOM);
        ssize_t n = 0, got = 1;

        while (got > 0 && n < ROOM - 1) {
                ASSERT_OK(resha_sleep(RESHA_MS(REST_MS)));
                for (got = 1; got > 0 && n < ROOM - 1 && poll(&p, 1, 0) > 0; n += got > 0 ? got : 0)
                        got = read(p.fd, text + n, (size_t)(ROOM - 1 - n));
        }
        assert_given_up(text);
        resha_free(text);
        close(p.fd);
        return inspector_answers(arg);
}

INSPECTED(a_client_that_reads_slowly_is_given_up)
{
        return with_a_long_answer(reads_slowly, 2 * REST_MS);
}
