/* SPDX-License-Identifier: MIT */
/* What does it cost to send 64 bytes over loopback and to read them back, both ends in one loop?
 *
 *     core-echo [ROUND_TRIPS]
 *
 * A round trip is two writes and two reads, each end with room for more than it gets: four calls of the kernel, and two
 * waits of the loop. */

#include <string.h>

#include <resha/resha.h>

#include "lib/bench.h"

enum { SIZE = 64, ROOM = 4096 };

static int handler(resha_stream *s, void *arg)
{
        char buf[ROOM];
        ssize_t n;

        (void)arg;
        while ((n = resha_read(s, buf, sizeof buf)) > 0) {
                int rc = resha_write_all(s, buf, (size_t)n, NULL);
                if (rc < 0)
                        return rc;
        }
        return (int)n;
}

static int server(void *arg)
{
        return resha_serve(arg, handler, NULL, NULL);
}

/* 0, or negative. */
static int take(resha_stream *s, size_t size)
{
        char got[ROOM];

        while (size > 0) {
                ssize_t n = resha_read(s, got, sizeof got);
                if (n < 0)
                        return (int)n;
                if (n == 0 || (size_t)n > size)
                        return resha_fail(-EPROTO, "%zd bytes came where %zu were due", n, size);
                size -= (size_t)n;
        }
        return 0;
}

static int round_trips(void *arg, uint64_t n)
{
        resha_stream *s = arg;
        char sent[SIZE];
        int rc = 0;

        memset(sent, 'x', sizeof sent);
        for (uint64_t i = 0; i < n && rc == 0; i++) {
                rc = resha_write_all(s, sent, sizeof sent, NULL);
                if (rc == 0)
                        rc = take(s, sizeof sent);
        }
        return rc;
}

static int client(resha_listener *l, uint64_t n)
{
        RESHA_CLEANUP(resha_stream_closep) resha_stream *s = NULL;
        resha_addr at;
        int rc = resha_listener_addr(l, &at);

        if (rc == 0)
                rc = resha_tcp_connect_addr(&at, &s);
        return rc < 0 ? rc : bench_measure(round_trips, s, n);
}

static int program(void *arg)
{
        RESHA_CLEANUP(resha_listener_closep) resha_listener *l = NULL;
        int rc = resha_tcp_listen("127.0.0.1", 0, &l);
        if (rc < 0)
                return rc;
        RESHA_GROUP(g);

        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        resha_spawn(&g, server, l);
        return resha_group_end(&g, client(l, *(uint64_t *)arg));
}

int main(int argc, char **argv)
{
        uint64_t n = bench_argument(argc, argv, 1, 200000);

        return resha_main(program, &n);
}
