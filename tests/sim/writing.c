/* SPDX-License-Identifier: MIT */
/* All ways of writing, mixed, into connections, pairs and pipes: what arrives is what was written, in its order, up to
 * where it was cut off; and as much was taken at least as has arrived. */

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "scenario.h"

enum { SIZE = 3000 };

struct writing {
        resha_stream *out, *in;
        size_t taken, got; /* bytes: what writes said, what was read */
        int file;          /* has the text */
        bool all;
};

static char at(size_t i)
{
        return (char)(i * 11 + i / 256 * 3);
}

/* Some bytes from s->taken on, in one of the ways. */
static int write_some(struct writing *s, const char *text)
{
        size_t left = SIZE - s->taken, size = 1 + (size_t)resha_test_random() % 300, done = 0;
        char *data = (char *)(uintptr_t)text + s->taken;
        uint64_t sent = 0;
        int rc;

        size = size < left ? size : left;
        struct iovec parts[3] = { { data, size / 3 }, { NULL, 0 }, { data + size / 3, size - size / 3 } };
        switch (resha_test_random() % 5) {
        case 0: rc = resha_write_vec(s->out, parts, 3, &done); break;
        case 1: rc = resha_send_file(s->out, s->file, (int64_t)s->taken, size, &sent); break;
        case 2: rc = resha_flush(s->out); break;
        case 3: rc = resha_stream_buffer(s->out, (size_t)resha_test_random() % 500); break;
        default: rc = resha_write_all(s->out, data, size, &done); break;
        }
        s->taken += done + (size_t)sent;
        return rc;
}

static int write_all_of_it(void *arg)
{
        struct writing *s = arg;
        char text[SIZE];
        int rc = 0;

        for (size_t i = 0; i < SIZE; i++)
                text[i] = at(i);
        while (rc == 0 && s->taken < SIZE)
                rc = write_some(s, text);
        if (rc == 0)
                rc = resha_flush(s->out);
        return rc < 0 ? rc : resha_stream_shutdown(s->out);
}

static int read_all_of_it(struct writing *s)
{
        char buf[200];
        ssize_t n;

        while ((n = resha_read(s->in, buf, sizeof buf)) > 0)
                for (ssize_t i = 0; i < n; i++, s->got++)
                        ASSERT_EQ(buf[i], at(s->got));
        s->all = n == 0 && s->got == SIZE;
        return (int)n;
}

static int connect_both(resha_stream *ends[2])
{
        resha_listener *l RESHA_CLEANUP(resha_listener_closep) = NULL;
        resha_addr a;
        int rc = resha_tcp_listen("127.0.0.1", 0, &l);

        if (rc == 0)
                rc = resha_listener_addr(l, &a);
        if (rc == 0)
                rc = resha_tcp_connect_addr(&a, &ends[1]);
        if (rc == 0)
                rc = resha_accept(l, &ends[0]);
        return rc < 0 ? rc : 0;
}

static void close_file(int *fd)
{
        if (*fd >= 0)
                close(*fd);
}

static int make_file(void)
{
        int fd = memfd_create("text", MFD_CLOEXEC);
        char text[SIZE];

        for (size_t i = 0; i < SIZE; i++)
                text[i] = at(i);
        ASSERT_EQ(write(fd, text, SIZE), SIZE);
        return fd;
}

static int write_and_read(void *arg)
{
        struct writing *s = arg;
        int fd RESHA_CLEANUP(close_file) = make_file();
        resha_stream *ends[2] = { NULL, NULL };
        uint64_t kind = resha_test_random() % 3;
        int rc = kind == 0 ? connect_both(ends) : kind == 1 ? resha_stream_pair(ends) : resha_pipe(&ends[0], &ends[1]);
        resha_stream *in RESHA_CLEANUP(resha_stream_closep) = ends[0];
        resha_stream *out RESHA_CLEANUP(resha_stream_closep) = ends[1];
        RESHA_GROUP(g);

        if (rc < 0)
                return rc;
        s->in = in;
        s->out = out;
        s->file = fd;
        resha_group_begin(&g, NULL);
        resha_spawn(&g, write_all_of_it, s);
        return resha_group_end(&g, read_all_of_it(s));
}

static int writing_main(void *arg)
{
        return resha_timeout(RESHA_S(5), write_and_read, arg); /* a writer who is cancelled alone ends nothing */
}

static void writing_check(void *state, int rc, const resha_test_trial *t)
{
        struct writing *s = state;

        (void)rc;
        ASSERT_TRUE(s->got <= s->taken);
        if (!t->disturbed)
                ASSERT_TRUE(s->all);
}

static int writing_with_resets(void *arg)
{
        resha_test_fault(RESHA_TEST_RESET, 3);
        return writing_main(arg);
}

static void resets_check(void *state, int rc, const resha_test_trial *t)
{
        struct writing *s = state;

        (void)t;
        ASSERT_TRUE(s->got <= s->taken);
        ASSERT_EQ(rc == 0, s->all);
}

SCENARIO(sim_writes_of_all_kinds, writing_main, .seeds = 12, .state = sizeof(struct writing), .check = writing_check,
         .may_report = 1u << RESHA_REPORT_DROPPED)

SCENARIO(sim_many_writes_of_all_kinds, writing_main, .seeds = 300, .state = sizeof(struct writing),
         .check = writing_check, .no_cancels = true, .no_allocs = true, .no_operations = true)

SCENARIO(sim_writes_that_are_cut_off, writing_with_resets, .seeds = 300, .state = sizeof(struct writing),
         .check = resets_check, .may_report = 1u << RESHA_REPORT_DROPPED, .no_cancels = true, .no_allocs = true,
         .no_operations = true)
