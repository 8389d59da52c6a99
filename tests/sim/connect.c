/* SPDX-License-Identifier: MIT */
/* Connecting to a name of several addresses: under every seed, cancel and failure one connection or none comes of it,
 * and all others are closed. What a listener or a stream would leave behind, the trial itself finds. */

#include <errno.h>
#include <string.h>

#include "scenario.h"

static const char NAME[] = "db.example";
enum { PORT = 5432 };

struct eyes {
        const char *addrs[8]; /* '!': silent, '+': somebody listens */
        resha_listener *listeners[8];
        int accepted, greeted;
        resha_group *servers;
};

struct door {
        struct eyes *s;
        resha_listener *listener;
};

/* Whoever is still connected gets a byte. */
static int greet(void *arg)
{
        const struct door *d = arg;
        int rc;

        for (;;) {
                resha_stream *peer RESHA_CLEANUP(resha_stream_closep) = NULL;
                rc = resha_accept(d->listener, &peer);
                if (rc <= 0)
                        return rc;
                d->s->accepted++;
                rc = resha_write_all(peer, "x", 1, NULL);
                if (rc == -ECANCELED || rc == -EIO)
                        return rc; /* other failures: it was a loser's */
        }
}

static int open_one(struct eyes *s, size_t i, resha_addr *ret_addr)
{
        char mark = s->addrs[i][0];
        const char *literal = s->addrs[i] + (mark == '!' || mark == '+');
        int rc = resha_addr_parse(literal, PORT, ret_addr);

        if (rc == 0 && mark == '!')
                return resha_test_silent(ret_addr);
        if (rc < 0 || mark != '+')
                return rc;
        rc = resha_tcp_listen(literal, PORT, &s->listeners[i]);
        return rc < 0 ? rc : resha_spawn_copy(s->servers, greet, &((struct door){ s, s->listeners[i] }));
}

static int open_all(struct eyes *s)
{
        resha_addr addrs[8];
        size_t n = 0;
        int rc = 0;

        for (; rc >= 0 && n < 8 && s->addrs[n]; n++)
                rc = open_one(s, n, &addrs[n]);
        return rc < 0 ? rc : resha_test_name(NAME, addrs, n);
}

static int connect_once(void *arg)
{
        resha_stream *stream RESHA_CLEANUP(resha_stream_closep) = NULL;
        struct eyes *s = arg;
        char byte;
        int rc = resha_tcp_connect(NAME, PORT, &stream);

        if (rc < 0)
                return rc;
        ssize_t got = resha_read(stream, &byte, 1);
        if (got == 1)
                s->greeted++;
        return got < 0 ? (int)got : 0;
}

static int run_eyes(struct eyes *s, resha_duration at_most, unsigned times)
{
        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        s->servers = &g;
        int rc = open_all(s);
        for (unsigned i = 0; rc >= 0 && i < times; i++)
                rc = resha_timeout(at_most, connect_once, s);
        return resha_group_end(&g, rc);
}

static int close_all(struct eyes *s, int rc)
{
        for (size_t i = 0; i < 8; i++)
                resha_listener_closep(&s->listeners[i]);
        return rc;
}

/* ---- one answers, the others are silent or refuse ---- */

static int one_main(void *arg)
{
        struct eyes *s = arg;

        memcpy(s->addrs, (const char *[]){ "!2001:db8::1", "2001:db8::2", "192.0.2.1", "+192.0.2.2" },
               4 * sizeof s->addrs[0]);
        return close_all(s, run_eyes(s, RESHA_S(5), 2));
}

static void one_check(void *state, int rc, const resha_test_trial *t)
{
        const struct eyes *s = state;

        if (!t->disturbed)
                ASSERT_EQ(s->greeted, 2);
        if (rc == 0 && !t->cancelled) /* of a server that is cancelled the client sees the end */
                ASSERT_EQ(s->greeted, 2);
        ASSERT_TRUE(s->greeted <= s->accepted || t->disturbed);
}

SCENARIO(sim_one_address_of_four_answers, one_main, .state = sizeof(struct eyes), .check = one_check, .seeds = 8)

/* ---- several answer, later than the next is tried ---- */

static int late_main(void *arg)
{
        struct eyes *s = arg;

        memcpy(s->addrs, (const char *[]){ "+2001:db8::1", "+192.0.2.1", "+2001:db8::2", "+192.0.2.2" },
               4 * sizeof s->addrs[0]);
        (void)resha_test_latency(RESHA_S(1));
        return close_all(s, run_eyes(s, RESHA_S(30), 2));
}

SCENARIO(sim_four_addresses_answer_late, late_main, .state = sizeof(struct eyes), .check = one_check, .seeds = 12,
         .most = 100)

/* ---- nobody answers ---- */

static int none_main(void *arg)
{
        struct eyes *s = arg;

        memcpy(s->addrs, (const char *[]){ "!2001:db8::1", "!192.0.2.1", "192.0.2.2" }, 3 * sizeof s->addrs[0]);
        return close_all(s, run_eyes(s, RESHA_S(1), 1));
}

static void none_check(void *state, int rc, const resha_test_trial *t)
{
        (void)state;
        ASSERT_TRUE(rc < 0);
        if (!t->disturbed)
                ASSERT_EQ(rc, -ETIME);
}

SCENARIO(sim_nobody_answers_in_time, none_main, .state = sizeof(struct eyes), .check = none_check, .seeds = 8,
         .may_fail = { -ETIME })
