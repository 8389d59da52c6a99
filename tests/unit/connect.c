/* SPDX-License-Identifier: MIT */
/* Connecting to a name (RFC 8305), to the millisecond of the virtual clock: in which order and when the addresses are
 * tried, who wins, what a failure says; and what the simulated world has of names and silent hosts. */

#include <errno.h>
#include <string.h>

#include <resha/test.h>

#include "test.h"

enum { ADDRS_MAX = 24 };

static const char NAME[] = "db.example";
enum { PORT = 5432 };

/* The name has these addresses, with a space between them. '!' before one: nobody answers there; '+': somebody listens
 * there; else a connect is refused. */
struct world {
        resha_addr addrs[ADDRS_MAX];
        resha_listener *listeners[ADDRS_MAX];
        size_t n;
};

static void world_close(struct world *w)
{
        for (size_t i = 0; i < ADDRS_MAX; i++)
                resha_listener_closep(&w->listeners[i]);
}

#define WORLD(w, text) \
        struct world w RESHA_CLEANUP(world_close) = { .n = 0 }; \
        world_make(&w, text)

static void world_make(struct world *w, const char *text)
{
        char literal[64];

        for (const char *p = text; *p; w->n++) {
                char mark = *p;
                size_t size = strcspn(p += mark == '!' || mark == '+', " ");
                snprintf(literal, sizeof literal, "%.*s", (int)size, p);
                p += size;
                p += strspn(p, " ");
                ASSERT_OK(resha_addr_parse(literal, PORT, &w->addrs[w->n]));
                if (mark == '!')
                        ASSERT_OK(resha_test_silent(&w->addrs[w->n]));
                else if (mark == '+')
                        ASSERT_OK(resha_tcp_listen(literal, PORT, &w->listeners[w->n]));
        }
        ASSERT_OK(resha_test_name(NAME, w->addrs, w->n));
}

/* Who has won, as "ADDRESS after MS ms"; or the name of the code. */
static const char *winner(void)
{
        static char text[RESHA_ADDR_TEXT_MAX + 32];
        char addr[RESHA_ADDR_TEXT_MAX];
        resha_stream *s RESHA_CLEANUP(resha_stream_closep) = NULL;
        resha_instant t = resha_now();
        resha_addr peer;
        int rc = resha_tcp_connect(NAME, PORT, &s);

        if (rc == 0) {
                ASSERT_OK(resha_stream_addr(s, true, &peer));
                resha_addr_format(&peer, addr, sizeof addr);
        }
        snprintf(text, sizeof text, "%s after %lld ms", rc < 0 ? resha_errname(rc) : addr, (long long)test_ms_since(t));
        return text;
}

/* Who has won among these. */
static const char *winner_of(const char *text)
{
        WORLD(w, text);
        return winner();
}

#define ASSERT_WINNER(text, expected) ASSERT_STR(winner_of(text), expected)

/* ---- order and times ---- */

TASK(the_first_address_wins_at_once)
{
        SIM_ONLY();
        ASSERT_WINNER("+2001:db8::1 +192.0.2.1", "[2001:db8::1]:5432 after 0 ms");
        return 0;
}

TASK(the_second_wins_after_250_ms_when_the_first_is_silent)
{
        SIM_ONLY();
        ASSERT_WINNER("!2001:db8::1 +192.0.2.1", "192.0.2.1:5432 after 250 ms");
        return 0;
}

TASK(the_second_is_tried_at_once_when_the_first_is_refused)
{
        SIM_ONLY();
        ASSERT_WINNER("2001:db8::1 +192.0.2.1", "192.0.2.1:5432 after 0 ms");
        return 0;
}

/* A failure in the middle does not wait for the pause to pass; the pause begins anew with each attempt. */
TASK(silence_and_refusals_in_turn)
{
        SIM_ONLY();
        ASSERT_WINNER("!192.0.2.1 192.0.2.2 +192.0.2.3", "192.0.2.3:5432 after 250 ms");
        ASSERT_WINNER("!192.0.2.4 !192.0.2.5 !192.0.2.6 +192.0.2.7", "192.0.2.7:5432 after 750 ms");
        ASSERT_WINNER("192.0.2.8 !192.0.2.9 192.0.2.10 !192.0.2.11 +192.0.2.12", "192.0.2.12:5432 after 500 ms");
        return 0;
}

/* Four addresses of a family that is broken cost one pause, not four. */
TASK(families_take_turns)
{
        SIM_ONLY();
        ASSERT_WINNER("!2001:db8::1 !2001:db8::2 !2001:db8::3 +192.0.2.1", "192.0.2.1:5432 after 250 ms");
        ASSERT_WINNER("!192.0.3.1 !192.0.3.2 +2001:db8::4", "[2001:db8::4]:5432 after 250 ms");
        /* four, six, four, six, four */
        ASSERT_WINNER("!192.0.4.1 !192.0.4.2 +192.0.4.3 !2001:db8::5 !2001:db8::6", "192.0.4.3:5432 after 1000 ms");
        return 0;
}

static int connect_here(void *arg)
{
        resha_stream *s RESHA_CLEANUP(resha_stream_closep) = NULL;

        (void)arg;
        return resha_tcp_connect(NAME, PORT, &s);
}

TASK(all_silent_is_a_matter_of_the_callers_deadline)
{
        SIM_ONLY();
        WORLD(w, "!2001:db8::1 !192.0.2.1 !192.0.2.2");
        resha_instant t = resha_now();
        ASSERT_EQ(resha_timeout(RESHA_S(5), connect_here, NULL), -ETIME);
        ASSERT_ELAPSED(t, 5000);
        return 0;
}

TASK(without_a_deadline_the_machine_gives_up_after_127_s)
{
        SIM_ONLY();
        ASSERT_WINNER("!192.0.2.1", "ETIMEDOUT after 127000 ms");
        ASSERT_WINNER("!192.0.2.2 !192.0.2.3", "ETIMEDOUT after 127250 ms");
        return 0;
}

/* ---- failures ---- */

static const char *failure(const char *text)
{
        static char copy[256];
        resha_stream *s = NULL;
        WORLD(w, text);
        int rc = resha_tcp_connect(NAME, PORT, &s);
        ASSERT_TRUE(rc < 0);
        snprintf(copy, sizeof copy, "%s", resha_error_of(rc)->text);
        return copy;
}

TASK(one_error_names_the_name_the_addresses_and_their_causes)
{
        SIM_ONLY();
        ASSERT_STR(failure("192.0.2.1"), "connect to db.example port 5432: Connection refused (1 address: "
                                         "192.0.2.1:5432)");
        ASSERT_STR(failure("192.0.2.1 192.0.2.2 2001:db8::1"),
                   "connect to db.example port 5432: Connection refused (3 addresses: 192.0.2.1:5432, "
                   "[2001:db8::1]:5432, 192.0.2.2:5432)");
        ASSERT_STR(failure("!192.0.2.1 192.0.2.2"),
                   "connect to db.example port 5432: Connection timed out (2 addresses: 192.0.2.1:5432 Connection "
                   "timed out, 192.0.2.2:5432 Connection refused)");
        ASSERT_STR(failure(""), "look-up of db.example: the simulated world knows localhost, and what "
                                "resha_test_name() says");
        return 0;
}

TASK(at_most_sixteen_addresses_are_tried_and_both_families)
{
        SIM_ONLY();
        char many[ADDRS_MAX * 20] = "";
        size_t used = 0;

        for (int i = 0; i < 20; i++)
                used += (size_t)snprintf(many + used, sizeof many - used, "2001:db8::%d ", i + 1);
        ASSERT_HAS(failure(many), "connect to db.example port 5432: Connection refused (16 of 20 addresses: ");
        snprintf(many + used, sizeof many - used, "+192.0.2.1"); /* the 21st, and the second to be tried */
        ASSERT_WINNER(many, "192.0.2.1:5432 after 0 ms");
        return 0;
}

/* ---- winners and losers ---- */

/* Two listeners whose backlogs are full: of two connections each, as Linux counts. */
struct full {
        struct world w;
        resha_stream *before[4], *accepted[2], *peers[2];
};

static void full_close(struct full *f)
{
        for (int i = 0; i < 4; i++)
                resha_stream_closep(&f->before[i]);
        for (int i = 0; i < 2; i++) {
                resha_stream_closep(&f->accepted[i]);
                resha_stream_closep(&f->peers[i]);
        }
        world_close(&f->w);
}

static void accept_at(struct full *f, int i, resha_stream **ret_stream)
{
        ASSERT_EQ(resha_accept(f->w.listeners[i], ret_stream), 1);
}

/* Makes room at both in the same moment, when a connect waits at each. */
static int make_room(void *arg)
{
        struct full *f = arg;

        ASSERT_OK(resha_sleep(RESHA_MS(300)));
        accept_at(f, 0, &f->accepted[0]);
        accept_at(f, 1, &f->accepted[1]);
        return 0;
}

/* Only one of two connections of the same moment is the caller's; the peer of the other sees its end. */
TASK(a_second_winner_is_closed)
{
        SIM_ONLY();
        struct full f RESHA_CLEANUP(full_close) = { .w.n = 0 };
        resha_stream *won RESHA_CLEANUP(resha_stream_closep) = NULL;
        resha_instant t = resha_now();
        resha_addr a;
        char byte = 'x';
        RESHA_GROUP(g);

        world_make(&f.w, "192.0.2.1 192.0.2.2");
        resha_group_begin(&g, NULL);
        for (int i = 0; i < 2; i++) {
                const resha_listen_opts opts = { .backlog = 1 };
                ASSERT_OK(resha_listen(&f.w.addrs[i], &opts, &f.w.listeners[i]));
                ASSERT_OK(resha_tcp_connect_addr(&f.w.addrs[i], &f.before[i]));
                ASSERT_OK(resha_tcp_connect_addr(&f.w.addrs[i], &f.before[2 + i]));
        }
        resha_spawn(&g, make_room, &f);
        ASSERT_OK(resha_tcp_connect(NAME, PORT, &won));
        ASSERT_ELAPSED(t, 300);
        ASSERT_OK(resha_stream_addr(won, true, &a));
        for (int i = 0; i < 2; i++) {
                accept_at(&f, i, &f.peers[i]);
                resha_stream_closep(&f.peers[i]);
                accept_at(&f, i, &f.peers[i]); /* both have been connected */
        }
        ASSERT_OK(resha_write_all(won, &byte, 1, NULL));
        int mine = resha_addr_equal(&a, &f.w.addrs[0]) ? 0 : 1;
        ASSERT_EQ(resha_read(f.peers[mine], &byte, 1), 1);
        ASSERT_EQ(resha_read(f.peers[!mine], &byte, 1), 0);
        return resha_group_end(&g, 0);
}

/* ---- the world ---- */

static const char *looked_up(const char *host)
{
        static char text[512];
        char addr[RESHA_ADDR_TEXT_MAX];
        resha_addr addrs[4];
        size_t n = 0, used = 0;
        int rc = resha_resolve(host, "80", addrs, 4, &n);

        if (rc < 0)
                return resha_errname(rc);
        for (size_t i = 0; i < n; i++)
                used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i ? " " : "",
                                         resha_addr_format(&addrs[i], addr, sizeof addr));
        return text;
}

TASK(names_of_the_simulated_world)
{
        SIM_ONLY();
        WORLD(w, "192.0.2.1 2001:db8::1 192.0.2.2 192.0.2.3 192.0.2.4");
        ASSERT_STR(looked_up("DB.example"), "192.0.2.1:80 [2001:db8::1]:80 192.0.2.2:80 192.0.2.3:80");
        ASSERT_OK(resha_test_name("db.EXAMPLE", &w.addrs[1], 1)); /* another time, others */
        ASSERT_STR(looked_up("db.example"), "[2001:db8::1]:80");
        ASSERT_OK(resha_test_name(NAME, NULL, 0));
        ASSERT_STR(looked_up("db.example"), "ENOENT");
        ASSERT_STR(looked_up("localhost"), "127.0.0.1:80");
        ASSERT_OK(resha_test_name("localhost", &w.addrs[1], 2));
        ASSERT_STR(looked_up("localhost"), "[2001:db8::1]:80 192.0.2.2:80");
        return 0;
}

TASK(wrong_names_and_silent_hosts_are_refused)
{
        resha_addr good, path, none = { { 0 } };

        ASSERT_OK(resha_addr_parse("::1", 0, &good));
        ASSERT_OK(resha_addr_unix("/x", &path));
        if (!test_is_sim()) {
                ASSERT_EQ(resha_test_name(NAME, &good, 1), -EPERM);
                ASSERT_EQ(resha_test_silent(&good), -EPERM);
                return 0;
        }
        ASSERT_EQ(resha_test_name("", &good, 1), -EINVAL);
        ASSERT_EQ(resha_test_name(NULL, &good, 1), -EINVAL);
        ASSERT_EQ(resha_test_name(NAME, NULL, 1), -EINVAL);
        ASSERT_EQ(resha_test_name(NAME, &path, 1), -EINVAL);
        ASSERT_EQ(resha_test_silent(&path), -EINVAL);
        ASSERT_EQ(resha_test_silent(&none), -EINVAL);
        return 0;
}

TASK(a_silent_host_is_silent_at_one_port_or_at_all)
{
        SIM_ONLY();
        resha_addr a;
        resha_stream *s = NULL;

        ASSERT_OK(resha_addr_parse("192.0.2.1", 80, &a));
        ASSERT_OK(resha_test_silent(&a));
        resha_addr_set_port(&a, 81);
        ASSERT_EQ(resha_tcp_connect_addr(&a, &s), -ECONNREFUSED);
        resha_addr_set_port(&a, 0);
        ASSERT_OK(resha_test_silent(&a));
        resha_addr_set_port(&a, 81);
        ASSERT_EQ(resha_tcp_connect_addr(&a, &s), -ETIMEDOUT);
        return 0;
}
