/* SPDX-License-Identifier: MIT */
/* Sockets of the epoll backend: how they are made, what they are called, how they end. All are non-blocking,
 * close-on-exec and without Nagle's algorithm. */

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>

#include <resha/alloc.h>

#include "base/addr.h"
#include "io/epoll.h"
#include "sys/sys.h"

static struct rs_list *bucket(struct ep *e, int fd)
{
        return &e->own[(unsigned)fd % EP_OWN_BUCKETS];
}

bool ep_owns(const struct ep *e, int fd)
{
        for (const struct rs_node *n = e->own[(unsigned)fd % EP_OWN_BUCKETS].first; n; n = n->next)
                if (RS_CONTAINER(n, const struct ep_file, own)->base.fd == fd)
                        return true;
        return false;
}

struct ep_file *ep_file_new(struct ep *e, int fd)
{
        struct ep_file *f = e->spare ? e->spare : resha_calloc(1, sizeof *f);

        if (!f)
                return NULL;
        e->spare = NULL;
        *f = (struct ep_file){ .base = { .backend = &e->base, .fd = fd }, .ready = { true, true } };
        rs_list_push(bucket(e, fd), &f->own);
        return f;
}

/* Takes fd over, also when it fails. */
static int file_adopt(struct ep *e, int fd, struct rs_file **ret_file)
{
        struct ep_file *f = ep_file_new(e, fd);

        if (!f) {
                rs_sys_close(fd);
                return -ENOMEM;
        }
        *ret_file = &f->base;
        return 0;
}

int ep_tcp_socket(struct rs_backend *b, int family, struct rs_file **ret_file)
{
        int fd = rs_sys_socket(family);

        if (fd < 0)
                return fd;
        int rc = rs_sys_setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, 1);
        if (rc < 0) {
                rs_sys_close(fd);
                return rc;
        }
        return file_adopt(ep_of(b), fd, ret_file);
}

/* Accepted sockets inherit TCP_NODELAY. The wildcard of IPv6 takes IPv4 too. */
static int listen_on(int fd, const struct rs_addr *a, int backlog)
{
        int rc = rs_sys_setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, 1);

        if (rc == 0)
                rc = rs_sys_setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, 1);
        if (rc == 0 && a->sockaddr.ss_family == AF_INET6)
                rc = rs_sys_setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
        if (rc == 0)
                rc = rs_sys_bind(fd, (const struct sockaddr *)&a->sockaddr, (socklen_t)a->size);
        if (rc == 0)
                rc = rs_sys_listen(fd, backlog);
        return rc;
}

int ep_tcp_listen(struct rs_backend *b, const resha_addr *addr, int backlog, struct rs_file **ret_file)
{
        const struct rs_addr *a = rs_addr_view(addr);
        int fd = rs_sys_socket(a->sockaddr.ss_family);

        if (fd < 0)
                return fd;
        int rc = listen_on(fd, a, backlog);
        if (rc < 0) {
                rs_sys_close(fd);
                return rc;
        }
        return file_adopt(ep_of(b), fd, ret_file);
}

/* An IPv4 address in the clothes of IPv6, as a wildcard listener has it, is shown as what it is. */
static void undress(struct rs_addr *a)
{
        struct sockaddr_in6 six;
        struct sockaddr_in four = { .sin_family = AF_INET };

        memcpy(&six, &a->sockaddr, sizeof six);
        if (six.sin6_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&six.sin6_addr))
                return;
        four.sin_port = six.sin6_port;
        memcpy(&four.sin_addr, &six.sin6_addr.s6_addr[12], sizeof four.sin_addr);
        *a = (struct rs_addr){ .size = sizeof four };
        memcpy(&a->sockaddr, &four, sizeof four);
}

int ep_file_addr(struct rs_file *f, bool peer, resha_addr *ret_addr)
{
        struct rs_addr a = { .size = 0 };
        socklen_t size = sizeof a.sockaddr;
        int rc = rs_sys_sockname(f->fd, peer, (struct sockaddr *)&a.sockaddr, &size);

        if (rc < 0)
                return rc;
        a.size = size;
        undress(&a);
        memcpy(ret_addr, &a, sizeof a);
        return 0;
}

int ep_file_shutdown(struct rs_file *f)
{
        return rs_sys_shutdown(f->fd, SHUT_WR);
}

/* Out of epoll first: the file may live on in a child process, and would go on to make events. */
void ep_file_close(struct rs_file *file)
{
        struct ep_file *f = ep_file_of(file);

        assert(!f->pending[EP_READING] && !f->pending[EP_WRITING]);
        if (f->registered)
                (void)rs_sys_epoll_ctl(ep_of(file->backend)->epfd, EPOLL_CTL_DEL, file->fd, NULL);
        if (file->reset)
                rs_sys_reset_at_close(file->fd);
        rs_list_remove(bucket(ep_of(file->backend), file->fd), &f->own);
        rs_sys_close(file->fd);
        resha_free(f);
}
