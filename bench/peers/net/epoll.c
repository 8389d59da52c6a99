/* SPDX-License-Identifier: MIT */
/* The limit on epoll: a bare loop that does for each message what the kernel asks for and nothing else. A connection is
 * registered once, edge-triggered; a read that gives less than there is room for has emptied the socket, so that the
 * read that would say EAGAIN is spared. One buffer serves all connections, for a message never waits in user space:
 * what cannot be sent at once, which a closed loop does not meet, is kept in memory of its own. */

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "raw.h"

enum { EVENTS = 1024 };

struct connection {
        int fd;
        char *kept; /* what could not be sent yet, or NULL */
        size_t kept_size;
        uint64_t count; /* bytes that came, or went */
};

static struct raw raw;
static int epfd;
static char buffer[RAW_LARGE];

static void add(int fd, uint32_t events, void *ptr)
{
        struct epoll_event e = { .events = events, .data = { .ptr = ptr } };

        if (epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &e) < 0)
                raw_die("epoll_ctl");
}

static void accept_all(void)
{
        for (;;) {
                int fd = accept4(raw.listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
                if (fd < 0)
                        return;
                struct connection *c = calloc(1, sizeof *c);
                if (!c)
                        raw_die("calloc");
                c->fd = fd;
                raw_no_delay(fd);
                add(fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, c);
        }
}

static void drop(struct connection *c)
{
        close(c->fd);
        free(c->kept);
        free(c);
}

static void keep(struct connection *c, const char *data, size_t size)
{
        if (!(c->kept = malloc(size)))
                raw_die("malloc");
        memcpy(c->kept, data, size);
        c->kept_size = size;
}

/* Whether reading may go on. */
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

static void echo(struct connection *c, uint32_t events)
{
        if (c->kept && !send_kept(c))
                return;
        for (;;) {
                ssize_t n = recv(c->fd, buffer, raw.size, 0);
                if (n <= 0) {
                        if (n == 0 || errno != EAGAIN)
                                drop(c);
                        return;
                }
                ssize_t sent = send(c->fd, buffer, (size_t)n, MSG_NOSIGNAL);
                if (sent < n) {
                        keep(c, buffer + (sent < 0 ? 0 : sent), (size_t)(n - (sent < 0 ? 0 : sent)));
                        return;
                }
                if ((size_t)n < raw.size && !(events & EPOLLRDHUP))
                        return;
        }
}

static void sink(struct connection *c, uint32_t events)
{
        for (;;) {
                ssize_t n = recv(c->fd, buffer, raw.size, 0);
                if (n == 0)
                        (void)!send(c->fd, &c->count, sizeof c->count, MSG_NOSIGNAL);
                if (n <= 0) {
                        if (n == 0 || errno != EAGAIN)
                                drop(c);
                        return;
                }
                c->count += (size_t)n;
                if ((size_t)n < raw.size && !(events & EPOLLRDHUP))
                        return;
        }
}

static void source(struct connection *c)
{
        while (c->count < RAW_ALL) {
                size_t offset = c->count % raw.size;
                ssize_t n = send(c->fd, buffer + offset, raw.size - offset, MSG_NOSIGNAL);
                if (n < 0) {
                        if (errno != EAGAIN)
                                drop(c);
                        return;
                }
                c->count += (size_t)n;
                if ((size_t)n < raw.size - offset)
                        return;
        }
        drop(c);
}

int main(int argc, char **argv)
{
        static struct epoll_event events[EVENTS];

        raw_begin(&raw, argc, argv);
        memset(buffer, 'x', sizeof buffer);
        if ((epfd = epoll_create1(EPOLL_CLOEXEC)) < 0)
                raw_die("epoll_create1");
        add(raw.listener, EPOLLIN, NULL);
        for (;;) {
                int n = epoll_wait(epfd, events, EVENTS, -1);
                for (int i = 0; i < n; i++) {
                        struct connection *c = events[i].data.ptr;
                        if (!c)
                                accept_all();
                        else if (raw.mode == RAW_ECHO)
                                echo(c, events[i].events);
                        else if (raw.mode == RAW_SINK)
                                sink(c, events[i].events);
                        else
                                source(c);
                }
        }
}
