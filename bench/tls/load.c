/* SPDX-License-Identifier: MIT */
/* The other end of the TLS servers: loads one, and measures what it uses.
 *
 *     tls-load echo PORT SERVER VERSION CIPHER CONNECTIONS SIZE MILLISECONDS
 *     tls-load full|resumed PORT SERVER VERSION CIPHER MILLISECONDS
 *     tls-load idle PORT SERVER VERSION CIPHER CONNECTIONS SIZE
 *
 * VERSION is 1.2 or 1.3, CIPHER AES128 or AES256, both with GCM; what was agreed on is looked at. As net/load.c does
 * it: echo is a closed loop in which each connection sends a message of SIZE bytes, waits for all of it, compares it
 * byte by byte, and sends the next; after a warm-up of a fifth comes a window of MILLISECONDS, at whose ends the
 * processor time of the process SERVER is read; idle lets each connection do one echo, says so by a line, and keeps
 * them all open until stdin ends. full and resumed are those of handshakes.c. A line of JSON each.
 *
 * The certificate is not verified: that costs the load, and not the server. */

#include "load.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/err.h>

#include "lib/bench.h"

/* A message is a head that no other has, and a pattern. It is put together here just before it is sent or compared. */
static char message[LARGEST], received[LARGEST];
static struct connection connections[CONNECTIONS];

void load_die(const char *what)
{
        unsigned long code = ERR_get_error();

        fprintf(stderr, "tls-load: %s: %s\n", what,
                code    ? ERR_reason_error_string(code)
                : errno ? strerror(errno)
                        : "not what was sent");
        exit(1);
}

uint64_t load_now(clockid_t clock)
{
        struct timespec t;

        if (clock_gettime(clock, &t) < 0)
                load_die("clock");
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

static void not_blocking(int fd)
{
        if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
                load_die("fcntl");
}

void load_connect(const struct load *l, struct connection *c, bool blocks)
{
        struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(l->port) };
        struct linger linger = { .l_onoff = 1 };
        int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at) < 0 ||
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0 ||
            setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger) < 0)
                load_die("connect");
        if (!blocks)
                not_blocking(fd);
        *c = (struct connection){ .ssl = SSL_new(l->tls), .fd = fd };
        if (!c->ssl || !SSL_set_fd(c->ssl, fd))
                load_die("SSL_new");
        SSL_set_connect_state(c->ssl);
}

void load_drop(struct connection *c)
{
        SSL_free(c->ssl);
        close(c->fd);
        *c = (struct connection){ .fd = -1 };
}

bool load_waits(const struct connection *c, int rc, bool *ret_end)
{
        int error = SSL_get_error(c->ssl, rc);

        if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
                return true;
        if (ret_end && error == SSL_ERROR_ZERO_RETURN) {
                *ret_end = true;
                return false;
        }
        load_die("TLS");
}

static void go_on_sending(const struct load *l, struct connection *c)
{
        if (c->sent == l->size)
                return;
        make_message(l, c);
        int n = SSL_write(c->ssl, message + c->sent, (int)(l->size - c->sent));
        if (n > 0)
                c->sent += (size_t)n;
        else
                load_waits(c, n, NULL);
}

static void start_message(const struct load *l, struct connection *c)
{
        c->turn++;
        c->sent = c->got = 0;
        go_on_sending(l, c);
}

/* Whether the message is complete. */
static bool go_on_receiving(const struct load *l, struct connection *c)
{
        while (c->got < l->size) {
                int n = SSL_read(c->ssl, received, LARGEST);
                if (n <= 0) {
                        load_waits(c, n, NULL);
                        return false;
                }
                make_message(l, c);
                if ((size_t)n > c->sent - c->got || memcmp(received, message + c->got, (size_t)n) != 0) {
                        errno = 0;
                        load_die("echo");
                }
                c->got += (size_t)n;
        }
        return true;
}

/* One after the other, each with its handshake; every 64th waits for an echo, so that the backlog never overflows. The
 * sockets block meanwhile. */
static void connect_all(struct load *l, bool echoes)
{
        for (size_t i = 0; i < l->count; i++) {
                struct connection *c = &connections[i];
                load_connect(l, c, true);
                if (SSL_connect(c->ssl) != 1)
                        load_die("handshake");
                c->shaken = true;
                c->got = c->sent = l->size;
                if (echoes || i % RAMP == RAMP - 1) {
                        start_message(l, c);
                        go_on_receiving(l, c);
                }
        }
}

void load_watch(const struct load *l, struct connection *c)
{
        struct epoll_event e = { .events = EPOLLIN | EPOLLOUT | EPOLLET, .data = { .ptr = c } };

        if (epoll_ctl(l->epfd, EPOLL_CTL_ADD, c->fd, &e) < 0)
                load_die("epoll_ctl");
}

int load_events(struct load *l, void *ret_events)
{
        int n = 0;

        for (long i = 0; n == 0 && i < PATIENCE; i++)
                n = epoll_wait(l->epfd, ret_events, EVENTS, 0);
        if (n == 0)
                errno = ETIMEDOUT;
        if (n <= 0)
                load_die("wait for messages");
        l->waits++;
        return n;
}

/* ---- the window ---- */

static void turns(struct load *l, void (*turn)(struct load *l), uint64_t ns)
{
        uint64_t end = load_now(CLOCK_MONOTONIC) + ns;

        do
                turn(l);
        while (load_now(CLOCK_MONOTONIC) < end);
}

void load_measure(struct load *l, void (*turn)(struct load *l))
{
        turns(l, turn, l->window / 5);
        l->done = l->waits = 0;
        uint64_t wall = load_now(CLOCK_MONOTONIC), server = load_now(l->server);
        uint64_t own = load_now(CLOCK_PROCESS_CPUTIME_ID);
        turns(l, turn, l->window);
        server = load_now(l->server) - server;
        wall = load_now(CLOCK_MONOTONIC) - wall;
        own = load_now(CLOCK_PROCESS_CPUTIME_ID) - own;
        double n = (double)l->done;
        printf("{\"done\": %" PRIu64 ", \"cpu_ns\": %.1f, \"wall_ns\": %.1f, \"client_ns\": %.1f, \"batch\": %.1f}\n",
               l->done, (double)server / n, (double)wall / n, (double)own / n, n / (double)l->waits);
}

/* ---- echo and idle ---- */

/* The next messages are sent when half of the connections have got theirs: so every server is given batches of the same
 * size, and works through one while the other is on its way, whether it is a little faster than the load or slower. */
static void echo_turn(struct load *l)
{
        static struct epoll_event events[EVENTS];
        static struct connection *complete[CONNECTIONS];
        static size_t n_complete;
        int n = load_events(l, events);

        for (int i = 0; i < n; i++) {
                struct connection *c = events[i].data.ptr;
                if (events[i].events & EPOLLOUT)
                        go_on_sending(l, c);
                if (c->got < l->size && go_on_receiving(l, c)) {
                        complete[n_complete++] = c;
                        l->done++;
                }
        }
        if (n_complete < (l->count + 1) / 2)
                return;
        for (size_t i = 0; i < n_complete; i++)
                start_message(l, complete[i]);
        n_complete = 0;
}

static void echo(struct load *l)
{
        connect_all(l, false);
        for (size_t i = 0; i < l->count; i++) {
                not_blocking(connections[i].fd);
                load_watch(l, &connections[i]);
                start_message(l, &connections[i]);
        }
        load_measure(l, echo_turn);
}

static void idle(struct load *l)
{
        char end;

        connect_all(l, true);
        printf("{\"connections\": %zu}\n", l->count);
        fflush(stdout);
        (void)!read(0, &end, 1);
}

/* ---- the command line ---- */

static void make_tls(struct load *l, const char *version, const char *cipher)
{
        bool new = strcmp(version, "1.3") == 0, wide = strcmp(cipher, "AES256") == 0;
        int number = new ? TLS1_3_VERSION : TLS1_2_VERSION;

        l->tls = SSL_CTX_new(TLS_client_method());
        if (!l->tls || !SSL_CTX_set_min_proto_version(l->tls, number) ||
            !SSL_CTX_set_max_proto_version(l->tls, number) ||
            !SSL_CTX_set_ciphersuites(l->tls, wide ? "TLS_AES_256_GCM_SHA384" : "TLS_AES_128_GCM_SHA256") ||
            !SSL_CTX_set_cipher_list(l->tls, wide ? "ECDHE+AES256+AESGCM" : "ECDHE+AES128+AESGCM"))
                load_die("SSL_CTX_new");
        SSL_CTX_set_read_ahead(l->tls, 1);
        SSL_CTX_set_mode(l->tls, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                         SSL_MODE_RELEASE_BUFFERS);
        SSL_CTX_set_session_cache_mode(l->tls, SSL_SESS_CACHE_OFF);
}

int main(int argc, char **argv)
{
        struct load l = { .count = 1 };

        if (argc < 7) {
                fprintf(stderr, "usage: see the head of tls/load.c\n");
                return 2;
        }
        bool echoes = strcmp(argv[1], "echo") == 0, idles = strcmp(argv[1], "idle") == 0;
        l.port = (uint16_t)bench_argument(argc, argv, 2, 0);
        if (clock_getcpuclockid((pid_t)bench_argument(argc, argv, 3, 0), &l.server) != 0)
                load_die("no such process");
        make_tls(&l, argv[4], argv[5]);
        if (echoes || idles) {
                l.count = bench_argument(argc, argv, 6, 1);
                l.size = bench_argument(argc, argv, 7, 64);
        }
        l.window = bench_argument(argc, argv, echoes ? 8 : 6, 300) * 1000000;
        if (l.size > LARGEST || l.count > CONNECTIONS) {
                fprintf(stderr, "tls-load: at most %d bytes and %d connections\n", LARGEST, CONNECTIONS);
                return 2;
        }
        if ((l.epfd = epoll_create1(EPOLL_CLOEXEC)) < 0)
                load_die("epoll_create1");
        make_pattern();
        if (echoes)
                echo(&l);
        else if (idles)
                idle(&l);
        else
                load_handshakes(&l, strcmp(argv[1], "resumed") == 0);
        return 0;
}
