/* SPDX-License-Identifier: MIT */
/* Secure streams, over a pair of plain ones: bytes, ends, cancels, two tasks at once, memory. */

#include <stdlib.h>
#include <string.h>

#include "pair.h"

SECURE(tls_bytes_arrive_both_ways)
{
        char buf[16] = "";

        ASSERT_OK(resha_write_all(p->secure[0], "hello", 5, NULL));
        ASSERT_EQ(resha_read(p->secure[1], buf, sizeof buf), 5);
        ASSERT_STR(buf, "hello");
        ASSERT_OK(resha_write_all(p->secure[1], "good day", 8, NULL));
        ASSERT_EQ(resha_read(p->secure[0], buf, sizeof buf), 8);
        ASSERT_STR(buf, "good day");
        ASSERT_STR(resha_stream_kind(p->secure[0]), "tls");
        return 0;
}

SECURE(tls_a_handshake_tells_what_it_agreed_on)
{
        resha_tls_info info;

        ASSERT_OK(resha_tls_about(p->secure[0], &info));
        ASSERT_EQ(info.version, RESHA_TLS_1_3);
        ASSERT_TRUE(info.verified);
        ASSERT_STR(info.subject, "CN=a.example");
        ASSERT_OK(resha_tls_about(p->secure[1], &info));
        ASSERT_STR(info.host, "a.example");
        ASSERT_FALSE(info.verified);
        ASSERT_EQ(SSL_set_tlsext_host_name(engine_of(p->secure[1])->ssl, "a\n\x1b[1m\xff"), 1);
        ASSERT_OK(resha_tls_about(p->secure[1], &info));
        ASSERT_STR(info.host, "a??[1m?"); /* a client may ask for anything */
        ASSERT_EQ(resha_tls_about(p->plain[0], &info), -EINVAL);
        return 0;
}

SECURE(tls_the_end_of_the_peer_is_an_end_only_if_it_says_so)
{
        char buf[16];

        ASSERT_OK(resha_write_all(p->secure[0], "all", 3, NULL));
        resha_stream_closep(&p->secure[0]);
        ASSERT_EQ(resha_read(p->secure[1], buf, sizeof buf), 3);
        ASSERT_EQ(resha_read(p->secure[1], buf, sizeof buf), 0);
        ASSERT_EQ(resha_read(p->secure[1], buf, sizeof buf), 0);
        return 0;
}

SECURE(tls_an_end_without_close_notify_is_an_error)
{
        char buf[16];

        ASSERT_OK(resha_write_all(p->secure[0], "all?", 4, NULL));
        ASSERT_OK(resha_stream_shutdown(p->plain[0]));
        ASSERT_EQ(resha_read(p->secure[1], buf, sizeof buf), 4);
        ssize_t n = resha_read(p->secure[1], buf, sizeof buf);
        ASSERT_EQ(n, RESHA_TLS_ETRUNCATED);
        ASSERT_HAS(resha_error_of((int)n)->text, "ended without close_notify");
        ASSERT_EQ(resha_read(p->secure[1], buf, sizeof buf), RESHA_TLS_ETRUNCATED);
        ASSERT_EQ(resha_write_all(p->secure[1], "x", 1, NULL), RESHA_TLS_ETRUNCATED);
        return 0;
}

/* ---- large writes, parts ---- */

enum { LARGE = 300000 };

struct transfer {
        resha_stream *from, *to;
        char *data;
};

static int write_large(void *arg)
{
        struct transfer *x = arg;

        return resha_write_all(x->from, x->data, LARGE, NULL);
}

static int read_large(void *arg)
{
        struct transfer *x = arg;
        char *buf = resha_malloc(LARGE);

        ASSERT_EQ(resha_read_exactly(x->to, buf, LARGE), LARGE);
        ASSERT_EQ(memcmp(buf, x->data, LARGE), 0);
        resha_free(buf);
        return 0;
}

/* Four tasks on two streams. */
SECURE(tls_reads_and_writes_at_the_same_time_both_ways)
{
        struct transfer x[2] = { { p->secure[0], p->secure[1], NULL }, { p->secure[1], p->secure[0], NULL } };
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        for (int i = 0; i < 2; i++) {
                x[i].data = resha_malloc(LARGE);
                for (int k = 0; k < LARGE; k++)
                        x[i].data[k] = (char)(k * (7 + i) >> 3);
                resha_spawn(&g, write_large, &x[i]);
                resha_spawn(&g, read_large, &x[i]);
        }
        int rc = resha_group_end(&g, 0);
        for (int i = 0; i < 2; i++)
                resha_free(x[i].data);
        return rc;
}

static unsigned records;

static void count_records(int sent, __attribute__((unused)) int version, int type, const void *data, size_t size,
                          __attribute__((unused)) SSL *ssl, __attribute__((unused)) void *arg)
{
        if (sent && type == SSL3_RT_HEADER && size == 5 && *(const char *)data == SSL3_RT_APPLICATION_DATA)
                records++;
}

SECURE(tls_small_parts_are_one_record)
{
        struct iovec parts[] = { { "one ", 4 }, { "two ", 4 }, { "", 0 }, { "three", 5 } };
        char buf[32] = "";

        SSL_set_msg_callback(engine_of(p->secure[0])->ssl, count_records);
        records = 0;
        ASSERT_OK(resha_write_vec(p->secure[0], parts, 4, NULL));
        ASSERT_EQ(records, 1);
        ASSERT_EQ(resha_read(p->secure[1], buf, sizeof buf), 13);
        ASSERT_STR(buf, "one two three");
        return 0;
}

/* ---- memory ---- */

SECURE(tls_an_idle_stream_holds_no_block)
{
        struct transfer x = { p->secure[0], p->secure[1], resha_calloc(1, LARGE) };
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        resha_spawn(&g, write_large, &x);
        resha_spawn(&g, read_large, &x);
        ASSERT_OK(resha_group_end(&g, 0));
        for (int i = 0; i < 2; i++) {
                struct rs_tls_engine *e = engine_of(p->secure[i]);
                ASSERT_PTR(e->in.data, e->small);
                ASSERT_PTR(e->out.data, NULL);
        }
        ASSERT_TRUE(engine_of(p->secure[0])->pool->count <= RS_TLS_FREE_MAX);
        resha_free(x.data);
        return 0;
}

/* ---- cancels ---- */

static int read_a_byte(void *arg)
{
        char c;
        ssize_t n = resha_read(arg, &c, 1);

        return n < 0 ? (int)n : 0;
}

SECURE(tls_a_read_that_ran_out_of_time_loses_nothing)
{
        char buf[8] = "";

        ASSERT_EQ(resha_timeout(RESHA_MS(5), read_a_byte, p->secure[1]), -ETIME);
        /* the first half of a record, from below */
        ASSERT_EQ(rs_tls_engine_write(engine_of(p->secure[0]), "hello", 5), 5);
        struct rs_tls_bytes *out = &engine_of(p->secure[0])->out;
        ASSERT_OK(resha_write_all(p->plain[0], out->data + out->start, 10, NULL));
        rs_tls_engine_went(engine_of(p->secure[0]), 10);
        ASSERT_EQ(resha_timeout(RESHA_MS(20), read_a_byte, p->secure[1]), -ETIME);
        ASSERT_EQ(rs_tls_bytes_left(&engine_of(p->secure[1])->in), 10);
        ASSERT_OK(resha_flush(p->secure[0]));
        ASSERT_EQ(resha_read(p->secure[1], buf, sizeof buf), 5);
        ASSERT_STR(buf, "hello");
        return 0;
}

struct late {
        resha_stream *s;
        const char *data;
        size_t size, written;
};

static int write_late(void *arg)
{
        struct late *w = arg;

        return resha_write_all(w->s, w->data, w->size, &w->written);
}

/* Nobody reads: the plain stream fills up, and the write runs out of time. What it says was taken is what the peer
 * gets, from whatever comes next: here, a flush. */
SECURE(tls_a_write_that_ran_out_of_time_tells_what_was_taken)
{
        enum { SIZE = 4 << 20 };
        struct late w = { p->secure[0], resha_calloc(1, SIZE), SIZE, 0 };
        char *buf = resha_malloc(SIZE);
        size_t got = 0;

        ASSERT_EQ(resha_timeout(RESHA_MS(50), write_late, &w), -ETIME);
        ASSERT_TRUE(w.written > 0 && w.written < SIZE);
        ASSERT_TRUE(rs_tls_bytes_left(&engine_of(p->secure[0])->out) > 0);
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, (resha_fn *)resha_flush, p->secure[0]);
        while (got < w.written) {
                ssize_t n = resha_read(p->secure[1], buf, SIZE);
                ASSERT_TRUE(n > 0);
                got += (size_t)n;
        }
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(got, w.written);
        resha_free((void *)(uintptr_t)w.data);
        resha_free(buf);
        return 0;
}

struct talk {
        resha_stream *s;
        size_t expected;
};

/* Reads what is expected, and answers. */
static int answer_in_the_end(void *arg)
{
        struct talk *t = arg;
        char buf[4096];
        int rc = resha_sleep(RESHA_MS(200));

        while (rc == 0 && t->expected) {
                ssize_t n = resha_read(t->s, buf, t->expected < sizeof buf ? t->expected : sizeof buf);
                ASSERT_TRUE(n > 0);
                t->expected -= (size_t)n;
        }
        return rc < 0 ? rc : resha_write_all(t->s, "!", 1, NULL);
}

/* The write is over its time, its last record half sent; who goes on to read the answer has to send the other half. */
SECURE(tls_a_reader_sends_what_a_cancelled_write_has_left)
{
        enum { SIZE = 4 << 20 };
        struct late w = { p->secure[0], resha_calloc(1, SIZE), SIZE, 0 };
        char c = 0;

        ASSERT_EQ(resha_timeout(RESHA_MS(50), write_late, &w), -ETIME);
        struct talk t = { p->secure[1], w.written };
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, answer_in_the_end, &t);
        ASSERT_EQ(resha_read(p->secure[0], &c, 1), 1);
        ASSERT_EQ(c, '!');
        resha_free((void *)(uintptr_t)w.data);
        return resha_group_end(&g, 0);
}

static int read_the_answer(void *arg)
{
        char c = 0;

        ASSERT_EQ(resha_read(arg, &c, 1), 1);
        ASSERT_EQ(c, '!');
        return 0;
}

/* The same with a reader that waits already when the write is given up. */
SECURE(tls_a_waiting_reader_sends_what_a_cancelled_write_has_left)
{
        enum { SIZE = 4 << 20 };
        struct late w = { p->secure[0], resha_calloc(1, SIZE), SIZE, 0 };
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        resha_spawn(&g, read_the_answer, p->secure[0]);
        ASSERT_EQ(resha_timeout(RESHA_MS(50), write_late, &w), -ETIME);
        struct talk t = { p->secure[1], w.written };
        ASSERT_OK(resha_timeout(RESHA_S(10), answer_in_the_end, &t));
        resha_free((void *)(uintptr_t)w.data);
        return resha_group_end(&g, 0);
}

/* ---- closing ---- */

static int is_turned_out(void *arg)
{
        char c;

        ASSERT_EQ(resha_read(arg, &c, 1), -EBADF);
        note("turned out");
        return 0;
}

/* ---- closing between two calls of the kind ---- */

enum { TURN = 70 }; /* calls that need not wait, until one gives others their turn: some fewer */

struct writer {
        resha_stream *s;
        int spent, rc;
        bool writes, done;
};

static int spends_its_turn_and_writes(void *arg)
{
        struct writer *w = arg;
        char c;

        for (int i = 0; i < w->spent; i++)
                ASSERT_EQ(resha_read(w->s, &c, 0), 0);
        w->writes = true;
        w->rc = resha_write_all(w->s, "x", 1, NULL);
        w->done = true;
        return 0;
}

/* A write stands still between the last bytes it took and the flush: then the stream is closed. */
SECURE(tls_a_close_between_a_write_and_its_flush)
{
        unsigned met = 0;

        for (int i = 0; i < TURN; i++) {
                struct tls_pair q = { .client = client, .server = server };
                RESHA_GROUP(g);
                ASSERT_OK(tls_pair_open(&q));
                struct rs_tls_stream *t = resha_stream_impl(q.secure[0], &rs_tls_stream_ops);
                struct writer w = { .s = q.secure[0], .spent = i };
                resha_group_begin(&g, NULL);
                resha_spawn(&g, spends_its_turn_and_writes, &w);
                bool between = false;
                while (!w.done && !between) {
                        ASSERT_OK(resha_yield());
                        between = w.writes && !w.done && !t->inside && rs_tls_bytes_left(&t->engine.out);
                }
                if (between)
                        resha_stream_closep(&q.secure[0]);
                ASSERT_OK(resha_group_end(&g, 0));
                ASSERT_EQ(w.rc, between ? -EBADF : 0);
                met += between;
                tls_pair_close(&q);
        }
        ASSERT_TRUE(met > 0);
        return p->rc[0];
}

/* The plain stream is left alone, but for close_notify. */
SECURE(tls_a_close_ends_the_wait_of_a_reader)
{
        char c;
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        resha_spawn(&g, is_turned_out, p->secure[0]);
        ASSERT_OK(resha_sleep(RESHA_MS(1)));
        resha_stream_closep(&p->secure[0]);
        ASSERT_STR(notes(), "turned out");
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(resha_read(p->secure[1], &c, 1), 0);
        ASSERT_OK(resha_write_all(p->plain[0], "plain", 5, NULL));
        return 0;
}

static int is_broken_off(void *arg)
{
        char c;

        ASSERT_EQ(resha_read(arg, &c, 1), -ECONNABORTED);
        return 0;
}

SECURE(tls_an_abort_ends_both_and_says_no_end)
{
        char c;
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        resha_spawn(&g, is_broken_off, p->secure[0]);
        ASSERT_OK(resha_sleep(RESHA_MS(1)));
        resha_stream_abort(p->secure[0]);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(resha_write_all(p->secure[0], "x", 1, NULL), -ECONNABORTED);
        resha_stream_closep(&p->secure[0]);
        resha_stream_closep(&p->plain[0]);
        ssize_t n = resha_read(p->secure[1], &c, 1);
        ASSERT_TRUE(n == -ECONNRESET || n == RESHA_TLS_ETRUNCATED);
        return 0;
}

SECURE_OF(tls_a_close_does_not_wait_for_a_peer_that_does_not_read, &(resha_tls_opts){ .shutdown = RESHA_MS(300) }, NULL)
{
        enum { SIZE = 4 << 20 };
        struct late w = { p->secure[0], resha_calloc(1, SIZE), SIZE, 0 };

        ASSERT_EQ(resha_timeout(RESHA_MS(50), write_late, &w), -ETIME);
        resha_instant before = resha_now();
        resha_stream_closep(&p->secure[0]);
        int64_t ms = test_ms_since(before);
        ASSERT_TRUE(ms >= 299 && ms < 300 + 100 * test_stretch());
        resha_free((void *)(uintptr_t)w.data);
        return 0;
}

static int finish(void *arg)
{
        return resha_stream_finish(arg);
}

SECURE(tls_finish_says_and_hears_the_end)
{
        RESHA_GROUP(g);

        ASSERT_OK(resha_write_all(p->secure[0], "never read", 10, NULL));
        resha_group_begin(&g, NULL);
        resha_spawn(&g, finish, p->secure[0]);
        ASSERT_OK(resha_stream_finish(p->secure[1]));
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(resha_write_all(p->secure[0], "x", 1, NULL), -EPIPE);
        return 0;
}

SECURE(tls_finish_with_a_peer_that_only_cuts_the_connection_is_an_error)
{
        ASSERT_OK(resha_stream_shutdown(p->plain[1]));
        ASSERT_EQ(resha_stream_finish(p->secure[0]), RESHA_TLS_ETRUNCATED);
        return 0;
}

/* ---- keys that change ---- */

static void change_keys(resha_stream *s, int how)
{
        struct rs_tls_engine *e = engine_of(s);
        size_t n = rs_tls_bytes_left(&e->out);

        ASSERT_EQ(SSL_key_update(e->ssl, how), 1);
        ASSERT_EQ(SSL_do_handshake(e->ssl), 1);
        ASSERT_TRUE(rs_tls_bytes_left(&e->out) > n);
}

/* The answer goes out before the next bytes that the other side writes. */
SECURE(tls_key_updates_are_answered)
{
        char buf[8] = "";
        SSL *ssl = engine_of(p->secure[1])->ssl;

        for (int i = 0; i < 5; i++)
                change_keys(p->secure[0], SSL_KEY_UPDATE_REQUESTED);
        ASSERT_OK(resha_write_all(p->secure[0], "one", 3, NULL));
        ASSERT_EQ(resha_read(p->secure[1], buf, sizeof buf), 3);
        ASSERT_EQ(SSL_get_key_update_type(ssl), SSL_KEY_UPDATE_NOT_REQUESTED);
        ASSERT_OK(resha_write_all(p->secure[1], "two", 3, NULL));
        ASSERT_EQ(SSL_get_key_update_type(ssl), SSL_KEY_UPDATE_NONE);
        ASSERT_EQ(resha_read(p->secure[0], buf, sizeof buf), 3);
        return 0;
}

static int send_the_rest(void *arg)
{
        int rc = resha_sleep(RESHA_MS(50));

        return rc < 0 ? rc : resha_flush(arg);
}

static int write_a_byte(void *arg)
{
        return resha_write_all(arg, "w", 1, NULL);
}

/* A ticket of several records, of which the first one has come: OpenSSL writes nothing before it has read the others.
 * With a reader that waits for them, and without. */
static int half_a_ticket(struct tls_pair *p, bool reads)
{
        static unsigned char much[2000];
        struct rs_tls_engine *e = engine_of(p->secure[1]);
        char buf[8] = "";
        RESHA_GROUP(g);

        ASSERT_EQ(SSL_set_max_send_fragment(e->ssl, 512), 1);
        ASSERT_EQ(SSL_SESSION_set1_ticket_appdata(SSL_get_session(e->ssl), much, sizeof much), 1);
        ASSERT_EQ(SSL_new_session_ticket(e->ssl), 1);
        ASSERT_EQ(SSL_do_handshake(e->ssl), 1);
        ASSERT_TRUE(rs_tls_bytes_left(&e->out) > 2000);
        ASSERT_OK(resha_write_all(p->plain[1], e->out.data + e->out.start, 700, NULL));
        rs_tls_engine_went(e, 700);
        ASSERT_EQ(resha_timeout(RESHA_MS(10), read_a_byte, p->secure[0]), -ETIME);
        ASSERT_EQ(resha_timeout(RESHA_MS(10), write_a_byte, p->secure[0]), -ETIME);
        resha_group_begin(&g, NULL);
        if (reads)
                resha_spawn(&g, read_a_byte, p->secure[0]);
        resha_spawn(&g, send_the_rest, p->secure[1]);
        ASSERT_OK(resha_write_all(p->secure[0], "hello", 5, NULL));
        ASSERT_EQ(resha_read_exactly(p->secure[1], buf, 5), 5);
        ASSERT_STR(buf, "hello");
        ASSERT_OK(resha_write_all(p->secure[1], "x", 1, NULL));
        return resha_group_end(&g, 0);
}

SECURE(tls_a_write_reads_the_rest_of_a_message)
{
        return half_a_ticket(p, false);
}

SECURE(tls_a_write_waits_for_who_reads_the_rest_of_a_message)
{
        return half_a_ticket(p, true);
}

SECURE(tls_records_that_bring_nothing_are_counted)
{
        char c;
        ssize_t n;

        for (int i = 0; i < RS_TLS_QUIET_MAX; i++)
                change_keys(p->secure[0], SSL_KEY_UPDATE_NOT_REQUESTED);
        ASSERT_OK(resha_write_all(p->secure[0], "x", 1, NULL));
        ASSERT_EQ(resha_read(p->secure[1], &c, 1), 1);
        for (int i = 0; i <= RS_TLS_QUIET_MAX; i++)
                change_keys(p->secure[0], SSL_KEY_UPDATE_NOT_REQUESTED);
        ASSERT_OK(resha_flush(p->secure[0]));
        n = resha_read(p->secure[1], &c, 1);
        ASSERT_EQ(n, RESHA_TLS_EPROTOCOL);
        ASSERT_HAS(resha_error_of((int)n)->text, "records in a row");
        ASSERT_EQ(resha_read(p->secure[1], &c, 1), RESHA_TLS_EPROTOCOL);
        return 0;
}

/* ---- a buffer that is in use below ---- */

/* A record of exactly what an idle engine waits with: the reader then waits with a block, which is empty. What a writer
 * does meanwhile must leave it to the reader. */
SECURE(tls_a_writer_leaves_the_reader_its_buffer)
{
        struct rs_tls_engine *e = engine_of(p->secure[1]);
        char text[RS_TLS_SMALL - RS_TLS_HEADER - 17], buf[RS_TLS_SMALL];
        RESHA_GROUP(g);

        memset(text, 't', sizeof text);
        ASSERT_OK(resha_write_all(p->secure[0], text, sizeof text, NULL));
        ASSERT_EQ(resha_read_exactly(p->secure[1], buf, sizeof text), (ssize_t)sizeof text);
        ASSERT_TRUE(e->more);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, read_a_byte, p->secure[1]);
        ASSERT_OK(resha_sleep(RESHA_MS(1)));
        ASSERT_TRUE(e->in.data != e->small);
        char *lent = e->in.data;
        ASSERT_OK(resha_write_all(p->secure[1], "w", 1, NULL));
        ASSERT_TRUE(e->in.data == lent);
        ASSERT_OK(resha_write_all(p->secure[0], "x", 1, NULL));
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(resha_read(p->secure[0], buf, 1), 1);
        ASSERT_TRUE(e->in.data == e->small);
        return 0;
}

/* ---- failures ---- */

SECURE(tls_a_byte_that_was_changed_on_its_way_is_an_error_for_good)
{
        char c;
        struct rs_tls_bytes *out = &engine_of(p->secure[0])->out;

        ASSERT_EQ(rs_tls_engine_write(engine_of(p->secure[0]), "hello", 5), 5);
        out->data[out->end - 1] ^= 1;
        ASSERT_OK(resha_flush(p->secure[0]));
        ASSERT_EQ(resha_read(p->secure[1], &c, 1), RESHA_TLS_EPROTOCOL);
        ASSERT_EQ(resha_read(p->secure[1], &c, 1), RESHA_TLS_EPROTOCOL);
        ASSERT_EQ(resha_write_all(p->secure[1], &c, 1, NULL), RESHA_TLS_EPROTOCOL);
        resha_stream_closep(&p->secure[1]); /* with an alert */
        ssize_t n = resha_read(p->secure[0], &c, 1);
        ASSERT_TRUE(n == RESHA_TLS_EPROTOCOL || n == RESHA_TLS_EHANDSHAKE);
        ASSERT_HAS(resha_error_of((int)n)->text, "bad record mac");
        return 0;
}
