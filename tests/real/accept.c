/* SPDX-License-Identifier: MIT */
/* resha_accept() without a server around it: errors that pass leave the listener as it was, and the connection in its
 * queue; and how a server shares what comes. */

#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static int reason;
static unsigned failures;

/* The next accept that would find somebody fails; EAGAIN is left to the kernel. */
static int fail_once(enum rs_syscall call)
{
        if (call != RS_SYS_ACCEPT || !reason)
                return 0;
        int rc = reason;
        reason = 0;
        failures++;
        return rc;
}

struct world {
        resha_listener *listener;
        uint16_t port;
        int result;
        resha_stream *stream;
};

static int accept_one(void *arg)
{
        struct world *w = arg;

        w->result = resha_accept(w->listener, &w->stream);
        return 0;
}

/* An accept that waits; it fails when somebody comes; the next one gets who came. */
static void fails_and_goes_on(struct world *w, int code)
{
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        resha_spawn(&g, accept_one, w);
        ASSERT_OK(resha_sleep(RESHA_MS(5)));
        reason = code;
        int client = real_connect(w->port);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(w->result, code);
        ASSERT_OK(accept_one(w));
        ASSERT_EQ(w->result, 1);
        resha_stream_close(w->stream);
        close(client);
}

TASK(an_accept_that_fails_while_it_waits_leaves_the_listener_armed)
{
        static const int codes[] = { -EMFILE, -ENFILE, -ENOBUFS, -ENOMEM, -EPERM, -EIO };
        struct world w = { 0 };

        if (strcmp(test_backend(), "uring") == 0)
                test_skip("the kernel itself makes the call of an accept that waits");
        w.listener = real_listener(&w.port);
        rs_fault_hook = fail_once;
        for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
                fails_and_goes_on(&w, codes[i]);
        ASSERT_EQ(failures, sizeof codes / sizeof *codes);
        rs_fault_hook = NULL;
        resha_listener_close(w.listener);
        return 0;
}

/* ---- the recipe of docs/servers.md ---- */

static int accept_into(void *arg)
{
        struct world *w = arg;

        return resha_accept(w->listener, &w->stream);
}

static bool passes(int rc, __attribute__((unused)) void *arg)
{
        return rc == -EMFILE || rc == -ENFILE || rc == -ENOBUFS || rc == -ENOMEM || rc == -ECONNABORTED;
}

static int have_room_again(void *arg)
{
        int rc = resha_sleep(RESHA_MS(300));

        ASSERT_EQ(setrlimit(RLIMIT_NOFILE, arg), 0);
        return rc;
}

TASK(without_descriptors_a_retry_waits_and_gets_the_connection)
{
        struct rlimit plenty, tight;
        struct world w = { 0 };
        RESHA_GROUP(g);

        w.listener = real_listener(&w.port);
        int client = real_connect(w.port);
        ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &plenty), 0);
        tight = plenty;
        for (tight.rlim_cur = 0; fcntl((int)tight.rlim_cur, F_GETFD) >= 0; tight.rlim_cur++)
                ;
        ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &tight), 0);
        real_count();
        resha_group_begin(&g, NULL);
        resha_spawn(&g, have_room_again, &plenty);
        ASSERT_EQ(resha_retry(accept_into, &w,
                              &(resha_retry_opts){
                                      .attempts = 1000, .base = RESHA_MS(5), .max = RESHA_MS(160), .again = passes }),
                  1);
        ASSERT_OK(resha_group_end(&g, 0));
        printf("%u calls of accept in 300 ms\n", real_calls[RS_SYS_ACCEPT]);
        ASSERT_TRUE(real_calls[RS_SYS_ACCEPT] >= 2 && real_calls[RS_SYS_ACCEPT] < 100);
        resha_stream_close(w.stream);
        resha_listener_close(w.listener);
        close(client);
        return 0;
}

/* ---- not greedy ---- */

enum { BURST = 20 };

static unsigned accepts_at_first;

static int look(resha_stream *s, void *arg)
{
        struct world *w = arg;

        (void)s;
        if (w->result++ == 0)
                accepts_at_first = real_calls[RS_SYS_ACCEPT];
        if (w->result == BURST)
                resha_listener_shutdown(w->listener);
        return 0;
}

/* Others who accept from the same queue get their share of a burst, and the first client does not wait for the last. */
TASK(a_server_runs_a_handler_before_it_accepts_the_next_connection)
{
        struct world w = { 0 };
        int clients[BURST];

        w.listener = real_listener(&w.port);
        for (int i = 0; i < BURST; i++)
                clients[i] = real_connect(w.port);
        real_count();
        ASSERT_EQ(resha_serve(w.listener, look, &w, NULL), 0);
        ASSERT_EQ(w.result, BURST);
        printf("%u calls of accept before the first handler\n", accepts_at_first);
        ASSERT_TRUE(accepts_at_first <= 1);
        for (int i = 0; i < BURST; i++)
                close(clients[i]);
        resha_listener_close(w.listener);
        return 0;
}
