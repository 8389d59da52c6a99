/* SPDX-License-Identifier: MIT */
/* The other end of the servers: loads one, and measures what it uses.
 *
 *     net-load echo|echo-on PORT SERVER CONNECTIONS SIZE MILLISECONDS [calls]
 *     net-load sink|source PORT SERVER SIZE
 *     net-load idle PORT SERVER CONNECTIONS SIZE
 *
 * echo is a closed loop: each connection sends a message of SIZE bytes, waits for all of it, compares it byte by byte
 * with what was sent, and sends the next. After a warm-up of a fifth comes a window of MILLISECONDS, at whose ends the
 * processor time of the process SERVER is read; `calls` counts its system calls as well, which slows all of them. What
 * comes is received in a turn before anything of that turn is sent, so that the server is given batches and is not
 * woken for single messages. The load looks for messages all the time and never sleeps.
 *
 * echo-on is for loads beside others, on a server's core: it sleeps while there is no message. It takes PORT,PORT for
 * two servers in turns, says "ready" when all are connected, waits for a line, tells how many echoes there were in
 * MILLISECONDS from then on, and keeps the connections open until stdin ends.
 *
 * sink and source move a gigabyte there or back. idle lets each connection do one echo, says so by a line, and keeps
 * them all open until stdin ends. A line of JSON each. Connections are made one after the other, and every 64th waits
 * for an echo, so that the backlog never overflows. */

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "lib/bench.h"
#include "net/calls.h"

enum { LARGEST = 65536, CONNECTIONS = 32768, EVENTS = 1024, RAMP = 64, HEAD = 16, PATIENCE = 20000000 };

static const uint64_t ALL = UINT64_C(1) << 30;

struct connection {
        int fd;
        size_t sent, got; /* of the message under way */
        uint64_t turn;    /* which message that is */
};

struct load {
        uint16_t ports[2]; /* in turns */
        clockid_t server;
        bool beside; /* echo-on */
        size_t count, size;
        int epfd;
        uint64_t echoes, waits;
};

/* A message is a head that no other has, and a pattern. It is put together here just before it is sent or compared. */
static char message[LARGEST], received[LARGEST];
static struct connection connections[CONNECTIONS];

_Noreturn static void die(const char *what)
{
        fprintf(stderr, "net-load: %s: %s\n", what, errno ? strerror(errno) : "not what was sent");
        exit(1);
}

static uint64_t now_ns(clockid_t clock)
{
        struct timespec t;

        if (clock_gettime(clock, &t) < 0)
                die("clock");
        return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void make_pattern(void)
{
        uint64_t state = 1, bits;

        for (size_t i = 0; i < sizeof message; i += sizeof bits) {
                bits = bench_random(&state);
                memcpy(message + i, &bits, sizeof bits);
        }
}

static void make_message(const struct load *l, const struct connection *c)
{
        uint64_t head[2] = { (uint64_t)(c - connections), c->turn };

        memcpy(message, head, l->size < HEAD ? l->size : HEAD);
}

/* ---- one connection ---- */

static int connect_one(const struct load *l, size_t i)
{
        struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(l->ports[i % 2]) };
        /* Ends by a reset: ports do not linger. */
        struct linger linger = { .l_onoff = 1 };
        int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at) < 0 ||
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0 ||
            setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger) < 0)
                die("connect");
        return fd;
}

static void go_on_sending(const struct load *l, struct connection *c, int flags)
{
        if (c->sent == l->size)
                return;
        make_message(l, c);
        ssize_t n = send(c->fd, message + c->sent, l->size - c->sent, flags | MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN)
                die("send");
        c->sent += n > 0 ? (size_t)n : 0;
}

static void start_message(const struct load *l, struct connection *c, int flags)
{
        c->turn++;
        c->sent = c->got = 0;
        go_on_sending(l, c, flags);
}

/* Whether the message is complete. */
static bool go_on_receiving(const struct load *l, struct connection *c, int flags)
{
        while (c->got < l->size) {
                ssize_t n = recv(c->fd, received, LARGEST, flags);
                if (n < 0 && errno == EAGAIN)
                        return false;
                if (n == 0)
                        errno = ECONNRESET;
                if (n <= 0)
                        die("recv");
                make_message(l, c);
                errno = 0;
                if ((size_t)n > c->sent - c->got || memcmp(received, message + c->got, (size_t)n) != 0)
                        die("echo");
                c->got += (size_t)n;
        }
        return true;
}

static void connect_all(struct load *l)
{
        for (size_t i = 0; i < l->count; i++) {
                struct connection *c = &connections[i];
                c->fd = connect_one(l, i);
                c->got = c->sent = l->size;
                if (i % RAMP == RAMP - 1) {
                        start_message(l, c, 0);
                        go_on_receiving(l, c, 0);
                }
        }
}

/* ---- echo ---- */

static void watch_all(struct load *l)
{
        if ((l->epfd = epoll_create1(EPOLL_CLOEXEC)) < 0)
                die("epoll_create1");
        for (size_t i = 0; i < l->count; i++) {
                struct connection *c = &connections[i];
                struct epoll_event e = { .events = EPOLLIN | EPOLLOUT | EPOLLET, .data = { .ptr = c } };
                if (epoll_ctl(l->epfd, EPOLL_CTL_ADD, c->fd, &e) < 0)
                        die("epoll_ctl");
                start_message(l, c, MSG_DONTWAIT);
        }
}

/* It mostly never sleeps: a server that is slower than the load would have to wake it for every message. */
static int next_events(const struct load *l, struct epoll_event *events)
{
        int n = 0;

        if (l->beside)
                n = epoll_wait(l->epfd, events, EVENTS, 20000);
        for (long i = 0; n == 0 && i < PATIENCE && !l->beside; i++)
                n = epoll_wait(l->epfd, events, EVENTS, 0);
        if (n == 0)
                errno = ETIMEDOUT;
        if (n <= 0)
                die("wait for messages");
        return n;
}

static void turn(struct load *l)
{
        static struct epoll_event events[EVENTS];
        static struct connection *complete[EVENTS];
        size_t n_complete = 0;
        int n = next_events(l, events);

        for (int i = 0; i < n; i++) {
                struct connection *c = events[i].data.ptr;
                if (events[i].events & EPOLLOUT)
                        go_on_sending(l, c, MSG_DONTWAIT);
                if (go_on_receiving(l, c, MSG_DONTWAIT))
                        complete[n_complete++] = c;
        }
        for (size_t i = 0; i < n_complete; i++)
                start_message(l, complete[i], MSG_DONTWAIT);
        l->echoes += n_complete;
        l->waits++;
}

static void turns(struct load *l, uint64_t ns)
{
        uint64_t end = now_ns(CLOCK_MONOTONIC) + ns;

        do
                turn(l);
        while (now_ns(CLOCK_MONOTONIC) < end);
}

/* One of several at once: what the servers use is for all of them together, and the driver's to read. */
static void echo_beside(struct load *l, uint64_t ns)
{
        connect_all(l);
        watch_all(l);
        printf("ready\n");
        fflush(stdout);
        (void)getchar();
        l->echoes = 0;
        turns(l, ns);
        printf("{\"echoes\": %" PRIu64 "}\n", l->echoes);
        fflush(stdout);
        while (getchar() != EOF)
                ;
}

static void echo(struct load *l, uint64_t ns)
{
        connect_all(l);
        watch_all(l);
        turns(l, ns / 5);
        l->echoes = l->waits = 0;
        uint64_t wall = now_ns(CLOCK_MONOTONIC), server = now_ns(l->server), own = now_ns(CLOCK_PROCESS_CPUTIME_ID);
        uint64_t calls = calls_so_far();
        turns(l, ns);
        calls = calls_so_far() - calls;
        server = now_ns(l->server) - server;
        wall = now_ns(CLOCK_MONOTONIC) - wall;
        own = now_ns(CLOCK_PROCESS_CPUTIME_ID) - own;
        double n = (double)l->echoes;
        printf("{\"echoes\": %" PRIu64 ", \"cpu_ns\": %.1f, \"wall_ns\": %.1f, \"client_ns\": %.1f, \"batch\": %.1f, "
               "\"calls\": %.4f}\n",
               l->echoes, (double)server / n, (double)wall / n, (double)own / n, n / (double)l->waits,
               (double)calls / n);
}

/* ---- one way ---- */

static void stream(struct load *l, bool to_server)
{
        int fd = connect_one(l, 0);
        uint64_t start = now_ns(CLOCK_MONOTONIC), server = now_ns(l->server), total = 0;
        ssize_t n;

        if (to_server) {
                for (uint64_t left = ALL; left > 0; left -= (size_t)n)
                        if ((n = send(fd, message, left < l->size ? left : l->size, MSG_NOSIGNAL)) < 0)
                                die("send");
                if (shutdown(fd, SHUT_WR) < 0 || recv(fd, &total, sizeof total, MSG_WAITALL) != sizeof total)
                        die("recv");
        } else {
                for (; (n = recv(fd, received, l->size, 0)) > 0; total += (size_t)n)
                        for (ssize_t i = 0; i < n; i += 4096) /* a look here and there: it is not the client's race */
                                if (received[i] != 'x')
                                        die("source");
        }
        if (total != ALL)
                die("total");
        server = now_ns(l->server) - server;
        printf("{\"bytes\": %" PRIu64 ", \"cpu_ms\": %.3f, \"wall_ms\": %.3f}\n", total, (double)server / 1e6,
               (double)(now_ns(CLOCK_MONOTONIC) - start) / 1e6);
}

static void idle(struct load *l)
{
        char end;

        connect_all(l);
        for (size_t i = 0; i < l->count; i++) {
                start_message(l, &connections[i], 0);
                go_on_receiving(l, &connections[i], 0);
        }
        printf("{\"connections\": %zu}\n", l->count);
        fflush(stdout);
        (void)!read(0, &end, 1);
}

static void read_ports(struct load *l, char *text)
{
        char *more = strchr(text, ',');

        l->ports[0] = l->ports[1] = (uint16_t)strtoul(text, NULL, 10);
        if (more)
                l->ports[1] = (uint16_t)strtoul(more + 1, NULL, 10);
}

int main(int argc, char **argv)
{
        struct load l = { .count = 1 };
        bool one_way = argc == 5;

        if (argc < 5 || argc > 8) {
                fprintf(stderr, "usage: see the head of net/load.c\n");
                return 2;
        }
        l.beside = strcmp(argv[1], "echo-on") == 0;
        read_ports(&l, argv[2]);
        if (clock_getcpuclockid((pid_t)bench_argument(argc, argv, 3, 0), &l.server) != 0)
                die("no such process");
        if (argc == 8)
                calls_begin((pid_t)bench_argument(argc, argv, 3, 0));
        if (!one_way)
                l.count = bench_argument(argc, argv, 4, 1);
        l.size = bench_argument(argc, argv, one_way ? 4 : 5, 64);
        if (l.size > LARGEST || l.count > CONNECTIONS) {
                fprintf(stderr, "net-load: at most %d bytes and %d connections\n", LARGEST, CONNECTIONS);
                return 2;
        }
        make_pattern();
        if (l.beside)
                echo_beside(&l, bench_argument(argc, argv, 6, 1000) * 1000000);
        else if (strcmp(argv[1], "echo") == 0)
                echo(&l, bench_argument(argc, argv, 6, 1000) * 1000000);
        else if (strcmp(argv[1], "idle") == 0)
                idle(&l);
        else
                stream(&l, strcmp(argv[1], "sink") == 0);
        return 0;
}
