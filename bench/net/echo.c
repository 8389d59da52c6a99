/* SPDX-License-Identifier: MIT */
/* What does a server of ours cost? It talks to net/load.c; its peers are peers/net/.
 *
 *     net-echo echo|sink|source SIZE
 *     net-echo block MILLISECONDS
 *     net-echo loops SIZE N
 *
 * echo sends back what comes; sink reads to the end and answers how many bytes there were; source sends a gigabyte.
 * SIZE is that of the buffer of each connection, on its task's stack. The port goes to stdout, and a signal ends it.
 * loops is echo on N loops with one queue of connections. block is echo, but blocks the loop before each: what must be
 * reported. */

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <resha/resha.h>

#include "lib/bench.h"

enum { SMALL = 1024, ROOM = 4096, LARGE = 65536, CONNECTIONS = 20000 };

static const uint64_t ALL = UINT64_C(1) << 30;

static int echo(resha_stream *s, char *buf, size_t size)
{
        ssize_t n;

        while ((n = resha_read(s, buf, size)) > 0) {
                int rc = resha_write_all(s, buf, (size_t)n, NULL);
                if (rc < 0)
                        return rc;
        }
        return (int)n;
}

static int echo_small(resha_stream *s, void *arg)
{
        char buf[SMALL];

        return echo(s, buf, *(size_t *)arg);
}

static int echo_room(resha_stream *s, void *arg)
{
        char buf[ROOM];

        return echo(s, buf, *(size_t *)arg);
}

static int echo_large(resha_stream *s, void *arg)
{
        char buf[LARGE];

        return echo(s, buf, *(size_t *)arg);
}

static int block(resha_stream *s, void *arg)
{
        char buf[SMALL];
        ssize_t n;
        int rc = 0;

        while (rc == 0 && (n = resha_read(s, buf, sizeof buf)) > 0) {
                usleep((useconds_t)(*(size_t *)arg * 1000));
                rc = resha_write_all(s, buf, (size_t)n, NULL);
        }
        return rc;
}

static int sink(resha_stream *s, void *arg)
{
        char buf[LARGE];
        uint64_t total = 0;
        ssize_t n;

        while ((n = resha_read(s, buf, *(size_t *)arg)) > 0)
                total += (size_t)n;
        return n < 0 ? (int)n : resha_write_all(s, &total, sizeof total, NULL);
}

static int source(resha_stream *s, void *arg)
{
        char buf[LARGE];
        size_t size = *(size_t *)arg;
        int rc = 0;

        memset(buf, 'x', sizeof buf);
        for (uint64_t left = ALL; left > 0 && rc == 0; left -= size) {
                size = left < size ? (size_t)left : size;
                rc = resha_write_all(s, buf, size, NULL);
        }
        return rc;
}

struct question {
        const char *name;
        int (*fn)(resha_stream *s, void *arg);
        size_t size;
};

/* As in a program of several loops; the first of them says the port. */
static int program_loops(void *arg)
{
        static atomic_bool said;
        struct question *q = arg;
        RESHA_CLEANUP(resha_listener_closep) resha_listener *l = NULL;
        resha_addr at;
        int rc = resha_addr_parse("127.0.0.1", 0, &at);

        if (rc == 0)
                rc = resha_listen(&at, &(resha_listen_opts){ .shared = true }, &l);
        if (rc == 0)
                rc = resha_listener_addr(l, &at);
        if (rc == 0 && !atomic_exchange(&said, true)) {
                printf("%" PRIu16 "\n", resha_addr_port(&at));
                fflush(stdout);
        }
        return rc < 0 ? rc : resha_serve(l, q->fn, &q->size, &(resha_serve_opts){ .max_connections = CONNECTIONS });
}

static int program(void *arg)
{
        struct question *q = arg;
        RESHA_CLEANUP(resha_listener_closep) resha_listener *l = NULL;
        resha_addr at;
        int rc = resha_tcp_listen("127.0.0.1", 0, &l);

        if (rc == 0)
                rc = resha_listener_addr(l, &at);
        if (rc < 0)
                return rc;
        printf("%" PRIu16 "\n", resha_addr_port(&at));
        fflush(stdout);
        return resha_serve(l, q->fn, &q->size, &(resha_serve_opts){ .max_connections = CONNECTIONS });
}

int main(int argc, char **argv)
{
        struct question questions[] = {
                { "echo", echo_large, 0 },  { "sink", sink, 0 },   { "source", source, 0 },
                { "loops", echo_large, 0 }, { "block", block, 0 },
        };

        for (size_t i = 0; argc > 1 && i < sizeof questions / sizeof questions[0]; i++) {
                struct question *q = &questions[i];
                if (strcmp(argv[1], q->name) != 0)
                        continue;
                q->size = bench_argument(argc, argv, 2, ROOM);
                if (q->size > LARGE)
                        break;
                if (q->fn == echo_large && q->size <= ROOM)
                        q->fn = q->size <= SMALL ? echo_small : echo_room;
                return strcmp(q->name, "loops") != 0
                               ? resha_main(program, q)
                               : resha_main_loops(program_loops, q, bench_argument(argc, argv, 3, 2), 0);
        }
        fprintf(stderr, "usage: net-echo echo|sink|source|block|loops SIZE (at most %d)\n", LARGE);
        return 2;
}
