/* SPDX-License-Identifier: MIT */
/* Streams whose calls run out of time again and again: what a cancelled call has taken is neither lost nor doubled. The
 * sender goes on from what write_all said was written, the reader asks for the same line or record again. */

#include <stdio.h>
#include <string.h>

#include "scenario.h"

enum { RECORD = 50, TEXT_MAX = 8192 };

struct talk {
        resha_stream *out, *in;
        int lines_sent, records_sent;
        char text[TEXT_MAX]; /* lines, then records */
        size_t size;
        int lines, records;
        unsigned late; /* calls that ran out of time */
        bool all;
};

static resha_duration little_time(void)
{
        /* To a round instant, at which half of the world's delays end. */
        return RESHA_NS((int64_t)(1 + resha_test_random() % 30) * 100000 - resha_now().ns % 100000);
}

/* Lines of many lengths, then records. */
static void compose(struct talk *s)
{
        for (int i = 0; i < s->lines_sent; i++)
                s->size += (size_t)snprintf(s->text + s->size, sizeof s->text - s->size, "%d:%.*s\n", i, i * 5 % 37,
                                            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJK");
        for (int i = 0; i < s->records_sent; i++)
                for (int j = 0; j < RECORD; j++)
                        s->text[s->size++] = (char)(i * 51 + j * 3);
}

struct piece {
        struct talk *s;
        const char *data;
        size_t size, written;
        ssize_t got;
        char buf[128];
};

static int write_piece(void *arg)
{
        struct piece *p = arg;
        int rc = resha_write_all(p->s->out, p->data, p->size, &p->written);

        ASSERT_EQ(rc == 0, p->written == p->size);
        return rc;
}

static int read_a_line(void *arg)
{
        struct piece *p = arg;

        p->got = resha_read_line(p->s->in, p->buf, sizeof p->buf);
        return (int)p->got;
}

static int read_a_record(void *arg)
{
        struct piece *p = arg;

        p->got = resha_read_exactly(p->s->in, p->buf, RECORD);
        return (int)p->got;
}

/* Again until it is done, or fails otherwise than by time. */
static int insist(struct talk *s, resha_fn *fn, struct piece *p)
{
        for (;;) {
                int rc = resha_timeout(little_time(), fn, p);
                if (rc != -ETIME)
                        return rc;
                s->late++;
                if (p->written) {
                        p->data += p->written;
                        p->size -= p->written;
                        p->written = 0;
                }
        }
}

static int speak(void *arg)
{
        struct talk *s = arg;

        for (size_t at = 0; at < s->size;) {
                size_t n = s->size - at < 71 ? s->size - at : 71;
                struct piece p = { .s = s, .data = s->text + at, .size = n };
                int rc = insist(s, write_piece, &p);
                if (rc < 0)
                        return rc;
                at += n;
        }
        return resha_stream_shutdown(s->out);
}

static int listen_to(struct talk *s)
{
        const char *expected = s->text;
        int rc;

        for (; s->lines < s->lines_sent; s->lines++) {
                struct piece p = { .s = s };
                if ((rc = insist(s, read_a_line, &p)) < 0)
                        return rc;
                ASSERT_EQ(p.got, strchr(expected, '\n') + 1 - expected);
                ASSERT_EQ(memcmp(p.buf, expected, (size_t)p.got), 0);
                expected += p.got;
        }
        for (; s->records < s->records_sent; s->records++) {
                struct piece p = { .s = s };
                if ((rc = insist(s, read_a_record, &p)) < 0)
                        return rc;
                ASSERT_EQ(p.got, RECORD);
                ASSERT_EQ(memcmp(p.buf, expected, RECORD), 0);
                expected += RECORD;
        }
        struct piece end = { .s = s };
        if ((rc = insist(s, read_a_line, &end)) < 0)
                return rc;
        ASSERT_EQ(end.got, 0);
        s->all = true;
        return 0;
}

/* Both ends of a connection to ourselves, by name. */
static int connect_pair(struct talk *s, resha_listener **ret_l, resha_stream **ret_out, resha_stream **ret_in)
{
        resha_addr at;
        int rc = resha_tcp_listen("localhost", 0, ret_l);

        (void)s;
        if (rc < 0 || (rc = resha_listener_addr(*ret_l, &at)) < 0)
                return rc;
        if ((rc = resha_tcp_connect("localhost", resha_addr_port(&at), ret_out)) < 0)
                return rc;
        return resha_accept(*ret_l, ret_in);
}

static int talk_on(struct talk *s)
{
        resha_listener *l RESHA_CLEANUP(resha_listener_closep) = NULL;
        resha_stream *out RESHA_CLEANUP(resha_stream_closep) = NULL, *in RESHA_CLEANUP(resha_stream_closep) = NULL;
        int rc = connect_pair(s, &l, &out, &in);

        if (rc < 0)
                return rc;
        s->out = out;
        s->in = in;
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, speak, s);
        return resha_group_end(&g, listen_to(s));
}

static int limited(void *arg)
{
        return talk_on(arg);
}

static int talk_main(void *arg)
{
        struct talk *s = arg;

        s->lines_sent = 12;
        s->records_sent = 3;
        compose(s);
        return resha_timeout(RESHA_S(2), limited, s); /* a speaker who is cancelled alone says nothing more */
}

static int long_talk_main(void *arg)
{
        struct talk *s = arg;

        s->lines_sent = 60;
        s->records_sent = 60;
        compose(s);
        return talk_on(s);
}

static void talk_check(void *state, int rc, const resha_test_trial *t)
{
        struct talk *s = state;

        (void)rc;
        if (!t->disturbed) {
                ASSERT_TRUE(s->all);
                if (t->seed == 3)
                        ASSERT_TRUE(s->late > 0); /* else nothing is shown */
        }
}

SCENARIO(sim_streams_in_little_time, talk_main, .seeds = 12, .state = sizeof(struct talk), .check = talk_check)

SCENARIO(sim_long_streams_in_little_time, long_talk_main, .seeds = 200, .state = sizeof(struct talk),
         .check = talk_check, .no_cancels = true, .no_allocs = true, .no_operations = true)
