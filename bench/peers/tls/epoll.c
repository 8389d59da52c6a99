/* SPDX-License-Identifier: MIT */
/* The limit on TLS: a bare loop of OpenSSL and epoll that echoes.
 *
 *     peer-tls socket|memory SIZE CERTIFICATE KEY
 *
 * Both ways to put OpenSSL on a socket, each as well as can be; the better one counts.
 *   socket  OpenSSL's own BIO on the descriptor, with read-ahead, so that a record is one read and not two. The socket
 *           is watched level-triggered: when OpenSSL has nothing left, the loop looks again, which spares the read that
 *           would say EAGAIN.
 *   memory  A BIO of our own over two buffers that all connections share: recv and send are ours, all records that came
 *           together are read by one call, and all that OpenSSL writes in a turn goes out by one. Edge-triggered; a
 *           read that gives less than there is room for has emptied the socket. What cannot be decrypted yet, half a
 *           record, is OpenSSL's (it reads ahead into its own buffer), so that nothing of a connection stays in ours.
 * Buffers are released when they are empty, sessions are resumed by ticket. A closed loop of one message at a time
 * never fills a socket: what cannot be sent at once is kept in memory of its own, in one place. */

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "lib/bench.h"
#include "peers/net/raw.h"

enum { EVENTS = 1024, ROOM = 65536, LARGEST = 16384 };

struct connection {
        SSL *ssl;
        int fd;
        bool shaken;
        char *kept; /* what could not be sent yet, or NULL */
        size_t kept_size;
};

static SSL_CTX *tls;
static int listener, epfd;
static size_t message_size;
static bool in_memory;

/* What all connections share, in memory: what has just come, and what is to go out. */
static char came[ROOM], text[LARGEST];
static size_t came_at, came_end;
static char goes[4 * ROOM];
static size_t goes_size;

_Noreturn static void die(const char *what)
{
        ERR_print_errors_fp(stderr);
        raw_die(what);
}

/* ---- the BIO in memory ---- */

static int memory_read(BIO *b, char *data, int size)
{
        size_t n = came_end - came_at;

        BIO_clear_retry_flags(b);
        if (n == 0) {
                BIO_set_retry_read(b);
                return -1;
        }
        n = n < (size_t)size ? n : (size_t)size;
        memcpy(data, came + came_at, n);
        came_at += n;
        return (int)n;
}

static int memory_write(BIO *b, const char *data, int size)
{
        (void)b;
        if ((size_t)size > sizeof goes - goes_size)
                die("more goes out than there is room for");
        memcpy(goes + goes_size, data, (size_t)size);
        goes_size += (size_t)size;
        return size;
}

static long memory_ctrl(BIO *b, int what, long number, void *ptr)
{
        (void)b;
        (void)number;
        (void)ptr;
        return what == BIO_CTRL_FLUSH;
}

static int memory_create(BIO *b)
{
        BIO_set_init(b, 1);
        return 1;
}

static BIO *memory_bio(void)
{
        static BIO_METHOD *method;

        if (!method) {
                method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "shared");
                if (!method || !BIO_meth_set_read(method, memory_read) || !BIO_meth_set_write(method, memory_write) ||
                    !BIO_meth_set_ctrl(method, memory_ctrl) || !BIO_meth_set_create(method, memory_create))
                        die("BIO_meth_new");
        }
        BIO *b = BIO_new(method);
        if (!b)
                die("BIO_new");
        return b;
}

/* ---- a connection ---- */

static void add(int fd, uint32_t events, void *ptr)
{
        struct epoll_event e = { .events = events, .data = { .ptr = ptr } };

        if (epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &e) < 0)
                die("epoll_ctl");
}

static void accept_all(void)
{
        for (;;) {
                int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
                if (fd < 0)
                        return;
                struct connection *c = calloc(1, sizeof *c);
                if (!c || !(c->ssl = SSL_new(tls)))
                        die("SSL_new");
                c->fd = fd;
                raw_no_delay(fd);
                if (in_memory) {
                        BIO *b = memory_bio();
                        SSL_set_bio(c->ssl, b, b);
                } else if (!SSL_set_fd(c->ssl, fd)) {
                        die("SSL_set_fd");
                }
                SSL_set_accept_state(c->ssl);
                add(fd, in_memory ? EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET : EPOLLIN, c);
        }
}

static void drop(struct connection *c)
{
        SSL_free(c->ssl);
        close(c->fd);
        free(c->kept);
        free(c);
        ERR_clear_error();
}

/* Handshake, or echo until OpenSSL has nothing more. False: the connection is over. */
static bool serve(struct connection *c)
{
        int n = 1;

        if (!c->shaken && (n = SSL_do_handshake(c->ssl)) == 1)
                c->shaken = true;
        if (c->shaken)
                while ((n = SSL_read(c->ssl, text, (int)message_size)) > 0) {
                        if (SSL_write(c->ssl, text, n) <= 0) /* of a closed loop: there is room */
                                return false;
                        if (!in_memory && !SSL_has_pending(c->ssl))
                                return true;
                }
        n = SSL_get_error(c->ssl, n);
        if (n == SSL_ERROR_ZERO_RETURN)
                SSL_shutdown(c->ssl);
        return n == SSL_ERROR_WANT_READ || n == SSL_ERROR_WANT_WRITE;
}

/* ---- records in memory ---- */

static void keep(struct connection *c, const char *data, size_t size)
{
        if (!(c->kept = malloc(size)))
                die("malloc");
        memcpy(c->kept, data, size);
        c->kept_size = size;
}

/* Whether all has gone out. */
static bool send_kept(struct connection *c)
{
        while (c->kept_size > 0) {
                ssize_t n = send(c->fd, c->kept, c->kept_size, MSG_NOSIGNAL);
                if (n < 0)
                        return false;
                c->kept_size -= (size_t)n;
                memmove(c->kept, c->kept + n, c->kept_size);
        }
        free(c->kept);
        c->kept = NULL;
        return true;
}

static void send_what_goes(struct connection *c)
{
        if (goes_size == 0)
                return;
        ssize_t n = send(c->fd, goes, goes_size, MSG_NOSIGNAL);
        size_t sent = n < 0 ? 0 : (size_t)n;
        if (sent < goes_size && (n >= 0 || errno == EAGAIN))
                keep(c, goes + sent, goes_size - sent);
        goes_size = 0;
}

static void serve_in_memory(struct connection *c, uint32_t events)
{
        if (c->kept && !send_kept(c))
                return;
        for (;;) {
                ssize_t n = recv(c->fd, came, sizeof came, 0);
                if (n < 0 && errno == EAGAIN)
                        return;
                if (n <= 0) {
                        drop(c);
                        return;
                }
                came_at = 0;
                came_end = (size_t)n;
                bool goes_on = serve(c);
                send_what_goes(c);
                if (!goes_on) {
                        drop(c);
                        return;
                }
                if (c->kept || ((size_t)n < sizeof came && !(events & EPOLLRDHUP)))
                        return;
        }
}

/* ---- the loop ---- */

static void make_tls(const char *certificate, const char *key)
{
        tls = SSL_CTX_new(TLS_server_method());
        if (!tls || SSL_CTX_use_certificate_chain_file(tls, certificate) != 1 ||
            SSL_CTX_use_PrivateKey_file(tls, key, SSL_FILETYPE_PEM) != 1 ||
            !SSL_CTX_set_session_id_context(tls, (const unsigned char *)"peer", 4))
                die("SSL_CTX_new");
        SSL_CTX_set_read_ahead(tls, 1);
        SSL_CTX_set_session_cache_mode(tls, SSL_SESS_CACHE_OFF);
        SSL_CTX_set_options(tls, SSL_OP_NO_RENEGOTIATION);
        SSL_CTX_set_mode(tls, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                      SSL_MODE_RELEASE_BUFFERS);
}

int main(int argc, char **argv)
{
        static struct epoll_event events[EVENTS];

        message_size = bench_argument(argc, argv, 2, LARGEST);
        if (argc != 5 || message_size > LARGEST) {
                fprintf(stderr, "usage: %s socket|memory SIZE CERTIFICATE KEY\n", argv[0]);
                return 2;
        }
        in_memory = strcmp(argv[1], "memory") == 0;
        signal(SIGPIPE, SIG_IGN); /* OpenSSL writes without MSG_NOSIGNAL */
        make_tls(argv[3], argv[4]);
        if ((epfd = epoll_create1(EPOLL_CLOEXEC)) < 0)
                die("epoll_create1");
        listener = raw_listen();
        add(listener, EPOLLIN, NULL);
        for (;;) {
                int n = epoll_wait(epfd, events, EVENTS, -1);
                for (int i = 0; i < n; i++) {
                        struct connection *c = events[i].data.ptr;
                        if (!c)
                                accept_all();
                        else if (in_memory)
                                serve_in_memory(c, events[i].events);
                        else if (!serve(c))
                                drop(c);
                }
        }
}
