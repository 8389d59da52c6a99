/* SPDX-License-Identifier: MIT */
/* The orderly end: what was written arrives, though the peer still sends; and what a peer can hold up by not ending. */

#include "pair.h"

struct peer {
        resha_stream *stream;
        size_t sends, got;
        resha_duration waits;
        bool stays;
};

/* Sends, waits, reads to the end, and closes. */
static int peer(void *arg)
{
        static const char much[64 * 1024];
        struct peer *p = arg;
        char buf[4096];
        ssize_t n = 0;
        int rc = 0;

        for (size_t sent = 0, size; rc == 0 && sent < p->sends; sent += size) {
                size = p->sends - sent < sizeof much ? p->sends - sent : sizeof much;
                rc = resha_write_all(p->stream, much, size, NULL);
        }
        if (rc == 0)
                rc = resha_sleep(p->waits);
        while (rc == 0 && (n = resha_read(p->stream, buf, sizeof buf)) > 0)
                p->got += (size_t)n;
        if (rc == 0 && n == 0 && p->stays)
                rc = resha_sleep(RESHA_FOREVER);
        return rc < 0 ? rc : n < 0 ? (int)n : resha_stream_shutdown(p->stream);
}

/* A server that answers before it has read all of the request: closed at once, the answer would be lost by a reset. */
static int answer_early(void *unused)
{
        (void)unused;
        PAIR(c);
        struct peer p = { .stream = c.there, .sends = 200 * 1000, .waits = RESHA_MS(5) };
        char buf[10];
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_stream_buffer(c.here, 4096));
        resha_spawn(&g, peer, &p);
        ASSERT_EQ(resha_read_exactly(c.here, buf, sizeof buf), sizeof buf);
        ASSERT_OK(resha_write_all(c.here, "413 too large\r\n", 15, NULL));
        ASSERT_OK(resha_stream_finish(c.here));
        resha_stream_closep(&c.here);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(p.got, 15);
        return 0;
}

TEST(an_answer_arrives_though_the_question_was_not_read)
{
        RUN(answer_early, NULL);
        RUN_SEEDS(answer_early, NULL, 10);
}

TASK(a_peer_that_goes_on_sending_is_given_up)
{
        PAIR(c);
        struct peer p = { .stream = c.there, .sends = 1 << 30 };
        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .keep_going = true });
        resha_spawn(&g, peer, &p);
        ASSERT_OK(resha_write_all(c.here, "x", 1, NULL));
        ASSERT_EQ(resha_stream_finish(c.here), -EMSGSIZE);
        resha_stream_closep(&c.here);
        ASSERT_EQ(resha_group_end(&g, 0), -EPIPE); /* it had seen the end before the reset */
        return 0;
}

static int finish(void *arg)
{
        return resha_stream_finish(arg);
}

TASK(a_peer_that_never_ends_is_given_up)
{
        SIM_ONLY();
        PAIR(c);
        struct peer p = { .stream = c.there, .stays = true };
        resha_instant start = resha_now();
        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        resha_spawn(&g, peer, &p);
        ASSERT_EQ(resha_stream_finish(c.here), -ETIMEDOUT);
        ASSERT_ELAPSED(start, 1000 * RESHA_FINISH_SECONDS);
        start = resha_now();
        ASSERT_EQ(resha_timeout(RESHA_MS(70), finish, c.here), -ETIME); /* again, and it may be less */
        ASSERT_ELAPSED(start, 70);
        return resha_group_end(&g, 0);
}

TASK(it_waits_until_the_peer_has_ended)
{
        PAIR(c);
        struct peer p = { .stream = c.there, .sends = 10, .waits = RESHA_MS(30) };
        resha_instant start = resha_now();
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, peer, &p);
        ASSERT_OK(resha_stream_finish(c.here));
        ASSERT_ELAPSED(start, 30);
        ASSERT_OK(resha_stream_finish(c.here)); /* it has ended */
        ASSERT_EQ(resha_write_all(c.here, "x", 1, NULL), -EPIPE);
        return resha_group_end(&g, 0);
}

TASK(a_cancel_of_the_peer_s_end_can_be_followed_by_another_try)
{
        PAIR(c);
        struct peer p = { .stream = c.there, .waits = RESHA_MS(60) };
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_stream_buffer(c.here, 100));
        ASSERT_OK(resha_write_all(c.here, "kept", 4, NULL));
        resha_spawn(&g, peer, &p);
        ASSERT_EQ(resha_timeout(RESHA_MS(10), finish, c.here), -ETIME);
        ASSERT_OK(resha_stream_finish(c.here));
        ASSERT_EQ(p.got, 4);
        return resha_group_end(&g, 0);
}

TASK(a_reset_says_that_not_all_has_arrived)
{
        PAIR(c);
        ASSERT_OK(resha_write_all(c.here, "lost", 4, NULL));
        ASSERT_OK(resha_sleep(RESHA_MS(20)));
        resha_stream_closep(&c.there); /* with bytes unread */
        ASSERT_OK(resha_sleep(RESHA_MS(20)));
        int rc = resha_stream_finish(c.here);
        ASSERT_EQ(rc, -ECONNRESET);
        return 0;
}

static int read_one(void *arg)
{
        char c;

        return (int)resha_read(arg, &c, 1);
}

TASK(a_task_inside_is_not_passed_by)
{
        PAIR(c);
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, read_one, c.here);
        ASSERT_OK(resha_sleep(RESHA_MS(1)));
        ASSERT_EQ(resha_stream_finish(c.here), -EBUSY);
        ASSERT_OK(resha_write_all(c.there, "x", 1, NULL));
        return resha_group_end(&g, 0);
}
