/* SPDX-License-Identifier: MIT */
/* Connections that break in the ways that event loops have missed: a reset behind an orderly end, with a writer that
 * waits; and every way of sending to who is gone, where a signal would end the process. */

#include "common.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* A stream, and the raw other end of its connection. */
struct half {
        resha_stream *stream;
        int raw;
};

static void half_open(struct half *h)
{
        uint16_t port;
        resha_listener *l = real_listener(&port);

        h->raw = real_connect(port);
        ASSERT_EQ(resha_accept(l, &h->stream), 1);
        resha_listener_close(l);
}

static void reset(struct half *h)
{
        struct linger now = { .l_onoff = 1, .l_linger = 0 };

        ASSERT_OK(setsockopt(h->raw, SOL_SOCKET, SO_LINGER, &now, sizeof now));
        close(h->raw);
        h->raw = -1;
}

struct writer {
        resha_stream *to;
        size_t written;
        int rc;
};

static int write_until_it_fails(void *arg)
{
        static const char much[1 << 16];
        struct writer *w = arg;

        while (w->rc == 0) {
                size_t written = 0;
                w->rc = resha_write_all(w->to, much, sizeof much, &written);
                w->written += written;
        }
        return 0;
}

TASK(a_reset_behind_the_end_wakes_a_writer_that_waits)
{
        struct half h;
        char c;
        RESHA_GROUP(g);

        half_open(&h);
        struct writer w = { .to = h.stream };
        resha_group_begin(&g, NULL);
        ASSERT_OK(shutdown(h.raw, SHUT_WR));
        ASSERT_EQ(resha_read(h.stream, &c, 1), 0); /* the end was seen: no later event has it again */
        resha_spawn(&g, write_until_it_fails, &w);
        ASSERT_OK(resha_sleep(RESHA_MS(50)));
        ASSERT_EQ(w.rc, 0); /* it waits */
        reset(&h);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_TRUE(w.rc == -ECONNRESET || w.rc == -EPIPE);
        for (int i = 0; i < 2; i++)
                ASSERT_EQ(resha_write_all(h.stream, "x", 1, NULL), w.rc);
        resha_stream_close(h.stream);
        return 0;
}

/* Each in turn on a connection, or pipe, of its own, whose reader is gone. */
static int send_in_every_way(resha_stream *s, int way, int file)
{
        struct iovec parts[2] = { { "a", 1 }, { "b", 1 } };
        int rc = 0;

        for (int i = 0; rc == 0 && i < 100; i++) { /* a socket takes one before it knows */
                switch (way) {
                case 0: rc = resha_write_all(s, "x", 1, NULL); break;
                case 1: rc = resha_write_vec(s, parts, 2, NULL); break;
                case 2: rc = resha_send_file(s, file, 0, 2, NULL); break;
                default:
                        rc = resha_stream_buffer(s, 10);
                        if (rc == 0)
                                rc = resha_write_all(s, "kept", 4, NULL);
                        if (rc == 0)
                                rc = resha_flush(s);
                }
                if (rc == 0)
                        rc = resha_sleep(RESHA_MS(1));
        }
        return rc;
}

static int send_to_who_is_gone(void *arg)
{
        int file = *(int *)arg;

        for (int way = 0; way < 4; way++) {
                struct half h;
                resha_stream *in, *out;
                half_open(&h);
                reset(&h);
                int rc = send_in_every_way(h.stream, way, file);
                if (rc != -EPIPE && rc != -ECONNRESET)
                        return resha_fail(-EPROTO, "way %d to a socket: %d", way, rc);
                resha_stream_close(h.stream);
                ASSERT_OK(resha_pipe(&in, &out));
                resha_stream_close(in);
                rc = send_in_every_way(out, way, file);
                if (rc != -EPIPE)
                        return resha_fail(-EPROTO, "way %d to a pipe: %d", way, rc);
                resha_stream_close(out);
        }
        return 7;
}

static int in_a_child(void *file)
{
        signal(SIGPIPE, SIG_DFL); /* as a program has it that has not heard of it */
        return test_run_opts(send_to_who_is_gone, file, &(resha_run_opts){ .backend = NULL });
}

TEST(no_way_of_sending_to_who_is_gone_raises_a_signal)
{
        char name[] = "/tmp/resha-broken-XXXXXX";
        int file = mkstemp(name);
        struct test_child child;

        unlink(name);
        ASSERT_EQ(write(file, "ab", 2), 2);
        test_child(in_a_child, &file, &child);
        if (!WIFEXITED(child.status) || WEXITSTATUS(child.status) != 7)
                FAIL("status %x: %s", (unsigned)child.status, child.text);
        close(file);
}

/* ---- both at once ---- */
static int read_one(void *arg)
{
        struct writer *r = arg;
        char c;

        r->rc = (int)resha_read(r->to, &c, 1);
        return 0;
}

TASK(a_reset_ends_reader_and_writer_that_wait)
{
        struct half h;
        RESHA_GROUP(g);

        half_open(&h);
        struct writer w = { .to = h.stream }, r = { .to = h.stream };
        resha_group_begin(&g, NULL);
        resha_spawn(&g, read_one, &r);
        resha_spawn(&g, write_until_it_fails, &w);
        ASSERT_OK(resha_sleep(RESHA_MS(50)));
        reset(&h);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_TRUE(r.rc < 0 && w.rc < 0);
        ASSERT_EQ(r.rc, -ECONNRESET);
        ASSERT_EQ(w.rc, r.rc); /* the kernel tells one of them of it, and the other that it is broken */
        ASSERT_EQ(resha_write_all(h.stream, "x", 1, NULL), r.rc);
        resha_stream_close(h.stream);
        return 0;
}

/* Where a cancel takes effect a turn of the loop later, the close is there before. */
TASK(who_waits_is_told_of_the_abort_also_if_a_close_follows)
{
        struct real_pair p;
        RESHA_GROUP(g);

        real_pair(&p);
        struct writer w = { .to = p.here }, r = { .to = p.here };
        resha_group_begin(&g, NULL);
        resha_spawn(&g, read_one, &r);
        resha_spawn(&g, write_until_it_fails, &w);
        ASSERT_OK(resha_sleep(RESHA_MS(20)));
        resha_stream_abort(p.here);
        resha_stream_close(p.here);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(r.rc, -ECONNABORTED);
        ASSERT_EQ(w.rc, -ECONNABORTED);
        resha_stream_close(p.there);
        return 0;
}

/* epoll has no event for it on a Unix socket: nothing has become writable. */
TASK(a_writer_that_waits_learns_that_its_side_is_ended)
{
        for (int tcp = 0; tcp < 2; tcp++) {
                struct real_pair p;
                struct writer w = { 0 };
                resha_stream *two[2];
                RESHA_GROUP(g);

                if (tcp)
                        real_pair(&p);
                else
                        ASSERT_OK(resha_stream_pair(two));
                w.to = tcp ? p.here : two[0];
                resha_group_begin(&g, NULL);
                resha_spawn(&g, write_until_it_fails, &w);
                ASSERT_OK(resha_sleep(RESHA_MS(20)));
                ASSERT_EQ(w.rc, 0);
                ASSERT_OK(resha_stream_shutdown(w.to));
                ASSERT_OK(resha_group_end(&g, 0));
                ASSERT_EQ(w.rc, -EPIPE);
                resha_stream_close(w.to);
                resha_stream_close(tcp ? p.there : two[1]);
        }
        return 0;
}
