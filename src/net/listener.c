/* SPDX-License-Identifier: MIT */
/* Listeners. Shutting one down closes its socket as soon as no task is inside resha_accept(), so that new clients are
 * refused at once instead of waiting in a queue that nobody looks at. */

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include <resha/alloc.h>

#include "base/addr.h"
#include "net/stream.h"

enum {
        BACKLOG = 1024,
        ADDRESSES = 16,
};

static int accept_failed(const resha_listener *n, int code)
{
        char text[RESHA_ADDR_TEXT_MAX];

        if (code == -ECANCELED)
                return code;
        return resha_fail_at(code, NULL, "accept on %s: %s", resha_addr_format(&n->addr, text, sizeof text),
                             resha_strerror(code));
}

/* ---- the end ---- */

static void close_file(resha_listener *n)
{
        if (n->file)
                n->loop->backend->ops->file_close(n->file);
        n->file = NULL;
}

void resha_listener_shutdown(resha_listener *n)
{
        if (n->shut || n->loop != rs_loop_current)
                return;
        n->shut = true;
        if (n->accepting)
                rs_operation_abort(n->loop, n->op, -ESHUTDOWN);
        else
                close_file(n);
        if (n->server)
                rs_server_shut(n->server);
        n->server = NULL;
}

void resha_listener_close(resha_listener *n)
{
        struct rs_loop *l;

        if (!n || n->closing)
                return;
        int rc = rs_enter_shielded(&l);
        if (n->loop != rs_loop_current || (rc < 0 && n->accepting))
                return; /* as resha_stream_close() */
        n->closing = true;
        resha_listener_shutdown(n);
        while (n->accepting) {
                struct rs_wait w = { .what = "close", .object = n };
                n->closer = &w;
                rs_wait(n->loop, &w);
        }
        close_file(n);
        n->loop->open--;
        resha_free(n);
}

void resha_listener_closep(resha_listener **n)
{
        resha_listener_close(*n);
        *n = NULL;
}

/* ---- accepting ---- */

static void accept_leave(resha_listener *n)
{
        n->accepting = false;
        if (n->shut)
                close_file(n);
        if (n->closer) {
                struct rs_wait *w = n->closer;
                n->closer = NULL;
                rs_wake(w, 0);
        }
}

static int accept_next(struct rs_loop *l, resha_listener *n, resha_stream **ret_stream)
{
        struct rs_op op = { .kind = RS_OP_ACCEPT, .file = n->file };
        /* Before: a connection must not be lost for lack of memory. */
        struct rs_file_stream *t = rs_socket_stream_new(l, resha_addr_family(&n->addr));

        if (!t)
                return -ENOMEM;
        n->op = &op;
        int rc = (int)rs_operation(l, &op, "accept");
        n->op = NULL;
        if (rc < 0) {
                resha_free(t);
                return rc;
        }
        t->file = op.ret_file;
        l->open++;
        *ret_stream = &t->stream;
        return 1;
}

int resha_accept(resha_listener *n, resha_stream **ret_stream)
{
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (rc < 0)
                return rc;
        if (n->loop != l)
                return accept_failed(n, -EPERM);
        if (n->shut)
                return rs_complete(l, 0);
        if (n->accepting)
                return accept_failed(n, -EBUSY);
        n->accepting = true;
        rc = accept_next(l, n, ret_stream);
        accept_leave(n);
        if (rc == -ESHUTDOWN)
                return 0;
        return rc < 0 ? accept_failed(n, rc) : rc;
}

/* ---- the beginning ---- */

static int listen_at(struct rs_loop *l, resha_listener *n, const resha_addr *addr)
{
        const struct rs_backend_ops *ops = l->backend->ops;
        int rc = ops->socket(l->backend, rs_addr_view(addr)->sockaddr.ss_family, SOCK_STREAM, &n->file);

        if (rc < 0)
                return rc;
        rc = ops->bind(n->file, addr, RS_BIND_REUSE_ADDR);
        if (rc == 0)
                rc = ops->listen(n->file, BACKLOG);
        if (rc == 0)
                rc = ops->file_addr(n->file, false, &n->addr);
        if (rc < 0)
                close_file(n);
        return rc;
}

/* All addresses of IPv6 and with them those of IPv4; the latter alone where the machine has no IPv6. */
static int listen_all(struct rs_loop *l, resha_listener *n, uint16_t port)
{
        resha_addr addr;
        int rc = resha_addr_parse("::", port, &addr);

        if (rc == 0)
                rc = listen_at(l, n, &addr);
        if (rc != -EAFNOSUPPORT && rc != -EADDRNOTAVAIL)
                return rc;
        rc = resha_addr_parse("0.0.0.0", port, &addr);
        return rc < 0 ? rc : listen_at(l, n, &addr);
}

/* At the first address of the name that can be listened at. */
static int listen_name(struct rs_loop *l, resha_listener *n, const char *host, uint16_t port)
{
        resha_addr addrs[ADDRESSES];
        size_t count = 0;
        int rc = resha_resolve(host, NULL, addrs, ADDRESSES, &count);

        for (size_t i = 0; i < count; i++) {
                resha_addr_set_port(&addrs[i], port);
                rc = listen_at(l, n, &addrs[i]);
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
        resha_listener *n = resha_calloc(1, sizeof *n);
        if (!n)
                return -ENOMEM;
        n->loop = l;
        bool all = !host || !*host;
        rc = all ? listen_all(l, n, port) : listen_name(l, n, host, port);
        if (rc == 0) {
                l->open++;
                *ret_listener = n;
                return 0;
        }
        resha_free(n);
        if (rc == -ECANCELED || rc == -ENOENT)
                return rc; /* the look-up has said what */
        return resha_fail_at(rc, NULL, "listen on %s port %u: %s", all ? "all addresses" : host, (unsigned)port,
                             resha_strerror(rc));
}

int resha_listener_addr(resha_listener *n, resha_addr *ret_addr)
{
        *ret_addr = n->addr;
        return 0;
}
