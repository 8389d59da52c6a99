/* SPDX-License-Identifier: MIT */
/* How listeners are made: at an address, at a name, out of a descriptor. */

#include <errno.h>
#include <netinet/in.h>

#include <resha/alloc.h>

#include "net/addr.h"
#include "net/listener.h"
#include "net/share.h"

enum {
        BACKLOG = 1024,
        ADDRESSES = 16,
        MODES = 0777,
};

static const resha_listen_opts defaults;

static int listen_at(struct rs_loop *l, resha_listener *n, const resha_addr *addr, const resha_listen_opts *o,
                     const char **ret_why)
{
        const struct rs_backend_ops *ops = l->backend->ops;
        int family = rs_addr_view(addr)->sockaddr.ss_family;
        unsigned flags = (unsigned)RS_BIND_REUSE_ADDR | (o->reuse_port ? RS_BIND_REUSE_PORT : 0u) |
                         (o->ipv6_only ? RS_BIND_V6_ONLY : 0u);
        int rc = ops->socket(l->backend, family, SOCK_STREAM, &n->file);

        if (rc < 0)
                return rc;
        if (family != AF_UNIX || ops->simulated)
                rc = ops->bind(n->file, addr, flags);
        else
                rc = rs_unix_file_bind(l, n->file, addr, o->mode, &n->name, ret_why);
        if (rc == 0)
                rc = ops->listen(n->file, o->backlog ? o->backlog : BACKLOG);
        if (rc == 0)
                rc = ops->file_addr(n->file, false, &n->addr);
        if (rc < 0) {
                rs_unix_file_remove(&n->name);
                ops->file_close(n->file);
        }
        return rc;
}

/* As one of several loops: the first listens, the others join it. */
static int listen_shared(struct rs_loop *l, resha_listener *n, const resha_addr *addr, const resha_listen_opts *o,
                         const char **ret_why)
{
        int rc = rs_share_enter(l, n, addr);

        if (rc <= 0)
                return rc;
        rc = listen_at(l, n, addr, o, ret_why);
        if (rc < 0) {
                rs_share_leave(n);
                return rc;
        }
        rc = rs_share_opened(n);
        if (rc < 0) {
                rs_unix_file_remove(&n->name);
                l->backend->ops->file_close(n->file);
        }
        return rc;
}

static resha_listener *listener_new(struct rs_loop *l)
{
        resha_listener *n = resha_calloc(1, sizeof *n);

        if (n)
                n->loop = l;
        return n;
}

static void describe(const void *object, char *text, size_t size)
{
        const resha_listener *n = object;

        resha_addr_format(&n->addr, text, size);
}

static int give(resha_listener *n, const void *opened_by, resha_listener **ret_listener)
{
        static const resha_shown_kind kind = { .kind = "listener", .describe = describe };

        n->loop->open++;
        rs_shown_add(n->loop, &n->shown, &kind, n, n->file->fd);
        rs_shown_opened(&n->shown, opened_by);
        *ret_listener = n;
        return 0;
}

/* ---- an address ---- */

static int check(const resha_addr *addr, const resha_listen_opts *o)
{
        int family = rs_addr_view(addr)->sockaddr.ss_family;
        const char *what = NULL;

        if (!rs_reserved_zero(o->_reserved))
                what = "a reserved word of listen options is not zero";
        else if (o->backlog < 0)
                what = "a backlog below 0";
        else if (family == AF_UNIX && (o->reuse_port || o->ipv6_only))
                what = "reuse_port and ipv6_only are not for Unix sockets";
        else if (family != AF_UNIX && o->mode)
                what = "a mode is for Unix sockets only";
        else if (o->mode & ~(unsigned)MODES)
                what = "a mode has the bits 0777";
        return what ? resha_fail_at(-EINVAL, NULL, "listen: %s", what) : 0;
}

int resha_listen(const resha_addr *addr, const resha_listen_opts *opts, resha_listener **ret_listener)
{
        const resha_listen_opts *o = opts ? opts : &defaults;
        char text[RESHA_ADDR_TEXT_MAX];
        const char *why = NULL;
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (rc == 0)
                rc = check(addr, o);
        if (rc < 0)
                return rc;
        resha_listener *n = listener_new(l);
        if (!n)
                return -ENOMEM;
        rc = o->shared ? listen_shared(l, n, addr, o, &why) : listen_at(l, n, addr, o, &why);
        if (rc == 0)
                return give(n, __builtin_return_address(0), ret_listener);
        resha_free(n);
        if (rc == -ECANCELED)
                return rc;
        return resha_fail_at(rc, NULL, "listen on %s: %s", resha_addr_format(addr, text, sizeof text),
                             why ? why : resha_strerror(rc));
}

int resha_unix_listen(const char *path, const resha_listen_opts *opts, resha_listener **ret_listener)
{
        resha_addr addr;
        int rc = resha_addr_unix(path, &addr);

        if (rc == 0)
                rc = resha_listen(&addr, opts, ret_listener);
        if (rc == 0)
                RS_OPENED_HERE(&(*ret_listener)->shown);
        return rc;
}

/* ---- a name and a port ---- */

/* All addresses of IPv6 and with them those of IPv4; the latter alone where the machine has no IPv6. */
static int listen_all(struct rs_loop *l, resha_listener *n, uint16_t port)
{
        const char *why;
        resha_addr addr;
        int rc = resha_addr_parse("::", port, &addr);

        if (rc == 0)
                rc = listen_at(l, n, &addr, &defaults, &why);
        if (rc != -EAFNOSUPPORT && rc != -EADDRNOTAVAIL)
                return rc;
        rc = resha_addr_parse("0.0.0.0", port, &addr);
        return rc < 0 ? rc : listen_at(l, n, &addr, &defaults, &why);
}

/* At the first address of the name that can be listened at. */
static int listen_name(struct rs_loop *l, resha_listener *n, const char *host, uint16_t port)
{
        resha_addr addrs[ADDRESSES];
        size_t count = 0;
        const char *why;
        int rc = resha_resolve(host, NULL, addrs, ADDRESSES, &count);

        for (size_t i = 0; i < count; i++) {
                resha_addr_set_port(&addrs[i], port);
                rc = listen_at(l, n, &addrs[i], &defaults, &why);
                if (rc == 0)
                        break;
        }
        return rc;
}

int resha_tcp_listen(const char *host, uint16_t port, resha_listener **ret_listener)
{
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (rc < 0)
                return rc;
        resha_listener *n = listener_new(l);
        if (!n)
                return -ENOMEM;
        bool all = !host || !*host;
        rc = all ? listen_all(l, n, port) : listen_name(l, n, host, port);
        if (rc == 0)
                return give(n, __builtin_return_address(0), ret_listener);
        resha_free(n);
        if (rc == -ECANCELED || rc == -ENOENT)
                return rc; /* the look-up has said what */
        return resha_fail_at(rc, NULL, "listen on %s port %u: %s", all ? "all addresses" : host, (unsigned)port,
                             resha_strerror(rc));
}

/* ---- a descriptor ---- */

static int check_descriptor(int fd)
{
        int type = 0, listens = 0;
        int rc = rs_sys_getsockopt(fd, SOL_SOCKET, SO_TYPE, &type);

        if (rc == 0)
                rc = rs_sys_getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens);
        if (rc < 0)
                return resha_fail_at(rc, NULL, "descriptor %d cannot be a listener: %s", fd, resha_strerror(rc));
        if (type != SOCK_STREAM)
                return resha_fail_at(-EINVAL, NULL, "descriptor %d is no listener: it is a socket for %s", fd,
                                     type == SOCK_DGRAM ? "datagrams" : "packets");
        if (!listens)
                return resha_fail_at(
                        -EINVAL, NULL,
                        "descriptor %d is no listener: it is a connection, or a socket that does not listen", fd);
        return 0;
}

int rs_listener_adopt(struct rs_loop *l, int fd, resha_listener **ret_listener)
{
        const struct rs_backend_ops *ops = l->backend->ops;
        int rc = check_descriptor(fd);

        if (rc < 0)
                return rc;
        resha_listener *n = listener_new(l);
        if (!n)
                return -ENOMEM;
        rc = ops->adopt(l->backend, fd, false, &n->file);
        if (rc < 0) {
                resha_free(n);
                return resha_fail_at(rc, NULL, "descriptor %d is not adopted: %s", fd,
                                     rc == -EBUSY ? "this loop has it already" : resha_strerror(rc));
        }
        rc = ops->file_addr(n->file, false, &n->addr);
        if (rc == 0)
                return give(n, NULL, ret_listener);
        (void)ops->release(n->file);
        resha_free(n);
        return resha_fail_at(rc, NULL, "descriptor %d has no address: %s", fd, resha_strerror(rc));
}

int resha_listener_adopt(int fd, resha_listener **ret_listener)
{
        struct rs_loop *l = rs_loop_current;

        int rc = l ? rs_listener_adopt(l, fd, ret_listener) : rs_outside();

        if (rc == 0)
                RS_OPENED_HERE(&(*ret_listener)->shown);
        return rc;
}
