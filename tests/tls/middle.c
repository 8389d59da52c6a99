/* SPDX-License-Identifier: MIT */
/* The conversation, and who sits in its middle.
 *
 *     client ==TLS== ends[0] --- ends[1] [middle] ends[2] --- ends[3] ==TLS== server
 *
 * Each direction has a task that reads a record and writes it, with its plan in between. When a sender ends, so does
 * the direction, unless it is silent. A direction that has been cut is still read to its end, so that the sender is not
 * reset: a FIN is all that the attacker does. */

#include "middle.h"

#include <inttypes.h>
#include <string.h>

enum { HEAD = 5, RECORD_MAX = HEAD + 16384 + 2048, PIECE = 4000 };

struct way {
        struct talk *talk;
        int number;
        resha_stream *from, *to;
        size_t held_size; /* SWAP: the record that waits for its next one */
        unsigned char record[RECORD_MAX], held[RECORD_MAX];
};

char talk_byte(int way, size_t at)
{
        return (char)('a' + (at * 7 + at / 26 + (size_t)way * 5) % 26);
}

const char *talk_text(const struct talk *t)
{
        static const char *const acts[] = {
                "PASS", "CUT", "CUT_ALL", "FLIP", "DROP", "REPEAT", "SWAP", "SILENT", "DRIP"
        };
        static char text[160];

        snprintf(text, sizeof text, " (%s record %u at %zu to the %s)", acts[t->plan.act], t->plan.record, t->plan.at,
                 t->plan.way == TO_SERVER ? "server" : "client");
        return text;
}

/* ---- the middle ---- */

static int pass(struct way *w, const unsigned char *data, size_t size)
{
        if (w->talk->cut[w->number] || w->talk->silent[w->number] || size == 0)
                return 0;
        if (w->talk->plan.act != DRIP || w->number != w->talk->plan.way)
                return resha_write_all(w->to, data, size, NULL);
        for (size_t i = 0; i < size; i++) {
                int rc = resha_write_all(w->to, data + i, 1, NULL);
                if (rc == 0)
                        rc = resha_sleep(RESHA_US(10));
                if (rc < 0)
                        return rc;
        }
        return 0;
}

static void cut(struct talk *t, int way)
{
        if (!t->cut[way])
                (void)resha_stream_shutdown(t->ends[way == TO_SERVER ? 2 : 1]);
        t->cut[way] = true;
}

/* The record that the plan is about. */
static int act(struct way *w, size_t size)
{
        struct talk *t = w->talk;
        size_t at = t->plan.at < size ? t->plan.at : size;
        int rc = 0;

        t->done = true;
        switch (t->plan.act) {
        case CUT:
        case CUT_ALL:
                rc = pass(w, w->record, at);
                cut(t, w->number);
                if (t->plan.act == CUT_ALL)
                        cut(t, !w->number);
                return rc;
        case FLIP: w->record[at % size] ^= (unsigned char)(1u << at % 8); break;
        case DROP: return 0;
        case REPEAT: rc = pass(w, w->record, size); break;
        case SWAP:
                memcpy(w->held, w->record, size);
                w->held_size = size;
                return 0;
        case SILENT: t->silent[w->number] = true; return 0;
        default: break;
        }
        return rc < 0 ? rc : pass(w, w->record, size);
}

/* 1: a record of *ret_size bytes; 0: the sender has ended, or stopped in the middle of one: all that came is passed. */
static ssize_t next_record(struct way *w, size_t *ret_size)
{
        struct talk *t = w->talk;
        ssize_t n = resha_read_exactly(w->from, w->record, HEAD), more = 0;

        if (n < HEAD)
                return n <= 0 ? n : pass(w, w->record, (size_t)n);
        size_t size = (size_t)w->record[3] << 8 | w->record[4];
        ASSERT_TRUE(size <= RECORD_MAX - HEAD);
        if (size > 0 && (more = resha_read_exactly(w->from, w->record + HEAD, size)) < (ssize_t)size)
                return more < 0 ? more : pass(w, w->record, HEAD + (size_t)more);
        if (t->count[w->number] < RECORDS_MAX)
                t->seen[w->number][t->count[w->number]] = (struct record){ w->record[0], HEAD + size };
        t->count[w->number]++;
        *ret_size = HEAD + size;
        return 1;
}

/* The record that was held comes behind this one. */
static int pass_swapped(struct way *w, size_t size)
{
        size_t held = w->held_size;
        int rc = pass(w, w->record, size);

        w->held_size = 0;
        return rc < 0 ? rc : pass(w, w->held, held);
}

static int go_between(void *arg)
{
        struct way *w = arg;
        struct talk *t = w->talk;
        size_t size = 0;
        ssize_t rc;

        while ((rc = next_record(w, &size)) > 0) {
                unsigned number = t->count[w->number] - 1;
                if (w->held_size > 0)
                        rc = pass_swapped(w, size);
                else if (w->number == t->plan.way && number == t->plan.record && t->plan.act != PASS)
                        rc = act(w, size);
                else
                        rc = pass(w, w->record, size);
                if (rc < 0)
                        break; /* the receiver is gone */
        }
        if (rc == 0)
                rc = pass(w, w->held, w->held_size);
        if (rc == -ECANCELED)
                return -ECANCELED;
        if (!t->silent[w->number])
                cut(t, w->number);
        return 0;
}

/* ---- the two ends ---- */

static void fill(char *buf, int way, size_t at, size_t size)
{
        for (size_t i = 0; i < size; i++)
                buf[i] = talk_byte(way, at + i);
}

static int send_all(resha_stream *s, int way, size_t total)
{
        char buf[PIECE];
        int rc = 0;

        for (size_t at = 0; at < total && rc == 0; at += sizeof buf) {
                size_t n = total - at < sizeof buf ? total - at : sizeof buf;
                fill(buf, way, at, n);
                rc = resha_write_all(s, buf, n, NULL);
        }
        return rc;
}

/* Reads until `most` bytes are there, or the end; each byte is the one that was sent. */
static int receive(resha_stream *s, int way, size_t most, struct end *e)
{
        char buf[PIECE];
        ssize_t n = 1;

        while (e->got < most && n > 0) {
                n = resha_read(s, buf, most - e->got < sizeof buf ? most - e->got : sizeof buf);
                for (ssize_t i = 0; i < n; i++)
                        ASSERT_EQ(buf[i], talk_byte(way, e->got + (size_t)i));
                e->got += n > 0 ? (size_t)n : 0;
        }
        e->ended = n == 0;
        return n < 0 ? (int)n : 0;
}

static int client_talks(struct talk *t, resha_stream *s)
{
        int rc = send_all(s, TO_SERVER, t->request);

        if (rc == 0)
                rc = receive(s, TO_CLIENT, SIZE_MAX, &t->client);
        return rc < 0 ? rc : resha_stream_finish(s);
}

static int server_talks(struct talk *t, resha_stream *s)
{
        int rc = receive(s, TO_SERVER, t->request, &t->server);

        if (rc == 0 && t->server.ended)
                rc = -ENODATA; /* a good end in the middle of a request */
        if (rc == 0)
                rc = send_all(s, TO_CLIENT, t->answer);
        return rc < 0 ? rc : resha_stream_finish(s);
}

static int one_end(struct talk *t, struct end *e, resha_stream *under, resha_tls *tls, const char *host)
{
        resha_stream *s RESHA_CLEANUP(resha_stream_closep) = NULL;

        e->shake = resha_tls_start(under, tls, &(resha_tls_start_opts){ .host = host }, &s);
        if (e->shake < 0)
                return e->shake;
        ASSERT_OK(resha_tls_about(s, &e->info));
        return host ? client_talks(t, s) : server_talks(t, s);
}

/* A minute for all of it: for those that nothing else would end. */
static void run_end(struct talk *t, struct end *e, resha_stream **under, resha_tls *tls, const char *host)
{
        resha_instant start = resha_now();
        RESHA_SCOPE(limit);

        resha_timeout_begin(&limit, RESHA_S(60));
        e->rc = one_end(t, e, *under, tls, host);
        int rc = resha_scope_end(&limit, e->rc);
        e->rc = rc < 0 ? rc : e->rc;
        if (e->rc < 0)
                snprintf(e->text, sizeof e->text, "%s", resha_error_of(e->rc)->text);
        resha_stream_closep(under);
        e->took = resha_between(start, resha_now());
}

static int client(void *arg)
{
        struct talk *t = arg;

        run_end(t, &t->client, &t->ends[0], t->client_tls, t->host);
        return 0;
}

static int server(void *arg)
{
        struct talk *t = arg;

        run_end(t, &t->server, &t->ends[3], t->server_tls, NULL);
        return 0;
}

/* ---- all of it ---- */

static int connected(resha_stream *ret_two[2])
{
        resha_listener *l RESHA_CLEANUP(resha_listener_closep) = NULL;
        resha_addr at;
        int rc = resha_tcp_listen("127.0.0.1", 0, &l);

        if (rc < 0 || (rc = resha_listener_addr(l, &at)) < 0 || (rc = resha_tcp_connect_addr(&at, &ret_two[0])) < 0)
                return rc;
        return resha_accept(l, &ret_two[1]);
}

static int both_ends(struct talk *t)
{
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        resha_spawn(&g, client, t);
        resha_spawn(&g, server, t);
        return resha_group_end(&g, 0);
}

static int with_the_middle(struct talk *t, struct way *ways)
{
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        for (int i = 0; i < WAYS; i++) {
                ways[i].talk = t;
                ways[i].number = i;
                ways[i].from = t->ends[i == TO_SERVER ? 1 : 2];
                ways[i].to = t->ends[i == TO_SERVER ? 2 : 1];
                resha_spawn(&g, go_between, &ways[i]);
        }
        int rc = both_ends(t);
        resha_group_cancel(&g);
        return resha_group_end(&g, rc);
}

void talk_run(struct talk *t)
{
        struct way *ways = resha_calloc(WAYS, sizeof *ways);

        ASSERT_TRUE(ways != NULL);
        t->request = t->request ? t->request : REQUEST;
        t->answer = t->answer ? t->answer : ANSWER;
        test_context(talk_text(t));
        ASSERT_TRUE(connected(&t->ends[0]) == 1 && connected(&t->ends[2]) == 1);
        ASSERT_OK(with_the_middle(t, ways));
        for (int i = 0; i < 4; i++)
                resha_stream_closep(&t->ends[i]);
        resha_free(ways);
}
