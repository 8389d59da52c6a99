/* SPDX-License-Identifier: MIT */
/* The program 08_cleanup.c against a lock server, in the simulated world: the lock is given back on every way out. */

int usage_main(void);
#define main usage_main
#include "08_cleanup.c"
#undef main

#include "test.h"

static int server(resha_stream *s, void *arg)
{
        bool answers = *(bool *)arg;
        char line[32];
        ssize_t n;

        while ((n = resha_read_line(s, line, sizeof line)) > 0) {
                note("%.*s", (int)n - 1, line);
                if (strcmp(line, "UNLOCK\n") == 0 && answers) {
                        int rc = resha_write_all(s, "OK\n", 3, NULL);
                        if (rc < 0)
                                return rc;
                }
        }
        return (int)n;
}

struct lock_server {
        resha_listener *listener;
        bool answers;
};

static int serves(void *arg)
{
        struct lock_server *ls = arg;

        return resha_serve(ls->listener, server, &ls->answers, NULL);
}

/* Runs the program with a time limit; what it gives. */
static int client(const resha_addr *addr, resha_duration limit)
{
        resha_stream *s RESHA_CLEANUP(resha_stream_closep) = NULL;

        ASSERT_OK(resha_tcp_connect_addr(addr, &s));
        return resha_timeout(limit, program, s);
}

static int with_server(bool answers, resha_duration limit)
{
        struct lock_server ls = { .answers = answers };
        resha_listener *l RESHA_CLEANUP(resha_listener_closep) = NULL;
        resha_addr addr;

        ASSERT_OK(resha_tcp_listen("127.0.0.1", 0, &l));
        ASSERT_OK(resha_listener_addr(l, &addr));
        ls.listener = l;
        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        resha_spawn(&g, serves, &ls);
        int rc = client(&addr, limit);
        ASSERT_OK(resha_group_end(&g, 0));
        return rc;
}

TASK(cleanup_after_success)
{
        SIM_ONLY(); /* its work takes 100 s */
        ASSERT_OK(with_server(true, RESHA_FOREVER));
        ASSERT_STR(notes(), "LOCK UNLOCK");
        return 0;
}

TASK(cleanup_after_a_timeout)
{
        ASSERT_EQ(with_server(true, RESHA_MS(50)), -ETIME);
        ASSERT_STR(notes(), "LOCK UNLOCK");
        return 0;
}

TASK(cleanup_that_gets_no_answer_ends_after_two_seconds)
{
        SIM_ONLY();
        resha_instant start = resha_now();
        ASSERT_EQ(with_server(false, RESHA_S(10)), -ETIME);
        ASSERT_TRUE(test_ms_since(start) >= 12000 && test_ms_since(start) < 12100);
        ASSERT_STR(notes(), "LOCK UNLOCK");
        return 0;
}
