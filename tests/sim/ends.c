/* SPDX-License-Identifier: MIT */
/* Pieces of streams, connections that are cut short, thread jobs of a pool that goes away: under every seed, cancel and
 * failure nothing is lost in silence. */

#include <stdio.h>
#include <string.h>

#include "scenario.h"

static resha_duration little_time(void)
{
        /* To a round instant, at which half of the world's delays end. */
        return RESHA_NS((int64_t)(1 + resha_test_random() % 30) * 100000 - resha_now().ns % 100000);
}

/* Both ends of a connection to ourselves. */
static int connect_pair(resha_stream **ret_here, resha_stream **ret_there)
{
        resha_listener *l RESHA_CLEANUP(resha_listener_closep) = NULL;
        resha_addr at;
        int rc = resha_tcp_listen("127.0.0.1", 0, &l);

        if (rc < 0 || (rc = resha_listener_addr(l, &at)) < 0)
                return rc;
        if ((rc = resha_tcp_connect_addr(&at, ret_here)) < 0)
                return rc;
        return resha_accept(l, ret_there);
}

/* ---- pieces up to separators, each call in little time ---- */

static const resha_separator ends[] = { { "\r\n", 2 }, { "\n", 1 }, { ";;;", 3 } };

enum { PIECES = 12, SEPARATORS = 3, NONE = SEPARATORS };

struct pieces {
        resha_stream *from, *to;
        char text[1024];
        size_t size;
        struct piece {
                const char *text;
                size_t size, which;
        } pieces[PIECES + 1];
        int read;
        unsigned late;
        bool all;
        char buf[64];
        size_t which;
};

/* The last one lacks its end. */
static void compose(struct pieces *s)
{
        for (int i = 0; i <= PIECES; i++) {
                struct piece *p = &s->pieces[i];
                *p = (struct piece){ .text = s->text + s->size, .which = i == PIECES ? NONE : (size_t)i % SEPARATORS };
                int n = snprintf(s->text + s->size, sizeof s->text - s->size, "%.*s\r;%d.%s", i * 3 % 23,
                                 "abcdefghijklmnopqrstuvw", i, p->which == NONE ? "" : ends[p->which].text);
                p->size = (size_t)n;
                s->size += p->size;
        }
}

static int write_pieces(void *arg)
{
        struct pieces *s = arg;
        int rc = resha_write_all(s->from, s->text, s->size, NULL);

        return rc < 0 ? rc : resha_stream_shutdown(s->from);
}

static int read_piece(void *arg)
{
        struct pieces *s = arg;

        return (int)resha_read_until(s->to, ends, SEPARATORS, s->buf, sizeof s->buf, &s->which);
}

static int read_pieces(struct pieces *s)
{
        while (s->read <= PIECES) {
                const struct piece *p = &s->pieces[s->read];
                int n = resha_timeout(little_time(), read_piece, s);
                if (n == -ETIME) {
                        s->late++;
                        continue;
                }
                if (n < 0)
                        return n;
                ASSERT_EQ(n, p->size);
                ASSERT_EQ(memcmp(s->buf, p->text, p->size), 0);
                ASSERT_EQ(s->which, p->which);
                s->read++;
        }
        int rc = read_piece(s);
        s->all = rc == 0;
        return rc;
}

static int talk_in_pieces(void *arg)
{
        struct pieces *s = arg;
        resha_stream *from RESHA_CLEANUP(resha_stream_closep) = NULL, *to RESHA_CLEANUP(resha_stream_closep) = NULL;
        int rc = connect_pair(&from, &to);

        if (rc < 0)
                return rc;
        s->from = from;
        s->to = to;
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, write_pieces, s);
        return resha_group_end(&g, read_pieces(s));
}

static int pieces_main(void *arg)
{
        compose(arg);
        return resha_timeout(RESHA_S(2), talk_in_pieces, arg); /* a writer who is cancelled alone says nothing more */
}

static void pieces_check(void *state, int rc, const resha_test_trial *t)
{
        struct pieces *s = state;

        (void)rc;
        if (!t->disturbed)
                ASSERT_TRUE(s->all);
}

SCENARIO(sim_pieces, pieces_main, .seeds = 12, .state = sizeof(struct pieces), .check = pieces_check)

/* ---- a server that is ended while it answers: all of the answer, or an error ---- */

enum { VISITORS = 3, ANSWER = 600 };

struct cut {
        resha_listener *listener;
        resha_addr at;
        int handlers;
        struct visitor {
                struct cut *s;
                size_t got;
                int rc; /* 0: read the end */
        } visitors[VISITORS];
};

static int answer(resha_stream *stream, void *arg)
{
        struct cut *s = arg;
        char text[50] = { 0 };
        int rc = 0;

        s->handlers++;
        for (int i = 0; rc == 0 && i < ANSWER / 50; i++) {
                rc = resha_write_all(stream, text, sizeof text, NULL);
                if (rc == 0)
                        rc = resha_sleep(RESHA_US(100));
        }
        s->handlers--;
        return rc;
}

static int serve_answers(void *arg)
{
        struct cut *s = arg;
        resha_serve_opts opts = { .grace = RESHA_US((int64_t)(resha_test_random() % 2000)), .abort_failed = true };

        int rc = resha_serve(s->listener, answer, s, &opts);
        resha_listener_shutdown(s->listener); /* it may have been cancelled before it began */
        return rc;
}

static int visit(void *arg)
{
        struct visitor *v = arg;
        resha_stream *stream RESHA_CLEANUP(resha_stream_closep) = NULL;
        char buf[70];
        ssize_t n = 0;

        v->rc = resha_tcp_connect_addr(&v->s->at, &stream);
        while (v->rc == 0 && (n = resha_read(stream, buf, sizeof buf)) > 0)
                v->got += (size_t)n;
        if (v->rc == 0)
                v->rc = (int)n;
        return v->rc;
}

static int end_server(struct cut *s, resha_task *server)
{
        int rc = resha_sleep(RESHA_US((int64_t)(resha_test_random() % 12000)));

        if (resha_test_random() % 2)
                resha_task_cancel(server);
        else
                resha_listener_shutdown(s->listener);
        return rc;
}

static int cut_main(void *arg)
{
        struct cut *s = arg;
        resha_listener *l RESHA_CLEANUP(resha_listener_closep) = NULL;
        resha_task server = { 0 };
        int rc = resha_tcp_listen("127.0.0.1", 0, &l);

        if (rc < 0 || (rc = resha_listener_addr(l, &s->at)) < 0)
                return rc;
        s->listener = l;
        for (int i = 0; i < VISITORS; i++)
                s->visitors[i] = (struct visitor){ .s = s, .rc = 1 };
        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .keep_going = true });
        resha_spawn_task(&g, serve_answers, s, &server);
        for (int i = 0; i < VISITORS; i++)
                resha_spawn(&g, visit, &s->visitors[i]);
        rc = end_server(s, &server);
        int ended = resha_group_end(&g, rc);
        return ended == -ECONNRESET || ended == -ECONNREFUSED ? 0 : ended;
}

static void cut_check(void *state, int rc, const resha_test_trial *t)
{
        struct cut *s = state;

        (void)rc;
        (void)t;
        ASSERT_EQ(s->handlers, 0);
        for (int i = 0; i < VISITORS; i++)
                if (s->visitors[i].s && s->visitors[i].rc == 0)
                        ASSERT_EQ(s->visitors[i].got, ANSWER);
}

SCENARIO(sim_server_cut_short, cut_main, .seeds = 10, .state = sizeof(struct cut), .check = cut_check)

/* ---- jobs of a pool that is freed ---- */

enum { CALLERS = 4 };

struct jobs {
        resha_pool *pool;
        unsigned entered;
        struct caller {
                struct jobs *s;
                int called, ran, rc;
        } callers[CALLERS];
};

static int job(void *arg)
{
        ((struct caller *)arg)->ran++;
        return 5;
}

static int caller(void *arg)
{
        struct caller *c = arg;

        c->s->entered++;
        c->called++;
        c->rc = resha_pool_run(c->s->pool, job, c, NULL);
        return c->rc == -EBADF ? 0 : c->rc;
}

static int jobs_main(void *arg)
{
        struct jobs *s = arg;
        resha_pool *p RESHA_CLEANUP(resha_pool_freep) = NULL;
        int rc = resha_pool_new(&(resha_pool_opts){ .threads = 1 + (unsigned)(resha_test_random() % 2) }, &p);

        if (rc < 0)
                return rc;
        s->pool = p;
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (int i = 0; i < CALLERS; i++) {
                s->callers[i] = (struct caller){ .s = s };
                resha_spawn(&g, caller, &s->callers[i]);
        }
        while (rc == 0 && s->entered < CALLERS)
                rc = resha_yield();
        if (rc == 0)
                rc = resha_sleep(RESHA_US((int64_t)(resha_test_random() % 1500)));
        if (s->entered == CALLERS && resha_test_random() % 2)
                resha_pool_freep(&p);
        return resha_group_end(&g, rc);
}

/* Each job has run once, and its result has come, or never. */
static void jobs_check(void *state, int rc, const resha_test_trial *t)
{
        struct jobs *s = state;

        (void)rc;
        for (int i = 0; i < CALLERS; i++) {
                const struct caller *c = &s->callers[i];
                ASSERT_EQ(c->ran, c->called && c->rc == 5);
                if (!t->disturbed && c->called)
                        ASSERT_TRUE(c->rc == 5 || c->rc == -EBADF);
        }
}

SCENARIO(sim_jobs_of_a_pool_that_goes, jobs_main, .seeds = 30, .state = sizeof(struct jobs), .check = jobs_check)
