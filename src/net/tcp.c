/* SPDX-License-Identifier: MIT */
/* TCP streams: one file of the backend, one operation for each call. An operation lies on its task's stack; its
 * address is here while a task waits for it, so that closing can give it up. */

#include <errno.h>

#include <resha/alloc.h>

#include "base/addr.h"
#include "net/stream.h"

enum {
        READING = 0,
        WRITING = 1,
};

/* A failure with its peer, as long as the kernel still knows it. */
static int failed(struct rs_tcp *t, int code, const char *what)
{
        char text[RESHA_ADDR_TEXT_MAX];
        resha_addr peer;

        if (code == -ECANCELED || code == -EBADF)
                return code;
        if (t->stream.loop->backend->ops->file_addr(t->file, true, &peer) < 0)
                return resha_fail_at(code, NULL, "%s connection: %s", what, resha_strerror(code));
        return resha_fail_at(code, NULL, "%s %s: %s", what, resha_addr_format(&peer, text, sizeof text),
                             resha_strerror(code));
}

static ssize_t tcp_read(void *impl, void *buf, size_t size)
{
        struct rs_tcp *t = impl;
        struct rs_op op = { .kind = RS_OP_READ, .file = t->file, .buf = buf, .size = size };

        t->op[READING] = &op;
        ssize_t n = rs_operation(t->stream.loop, &op, "read");
        t->op[READING] = NULL;
        return RS_LIKELY(n >= 0) ? n : failed(t, (int)n, "read from");
}

static ssize_t tcp_write(void *impl, const void *data, size_t size)
{
        struct rs_tcp *t = impl;
        struct rs_op op = { .kind = RS_OP_WRITE, .file = t->file, .buf = (void *)(uintptr_t)data, .size = size };

        t->op[WRITING] = &op;
        ssize_t n = rs_operation(t->stream.loop, &op, "write");
        t->op[WRITING] = NULL;
        return RS_LIKELY(n >= 0) ? n : failed(t, (int)n, "write to");
}

static int tcp_shutdown(void *impl)
{
        struct rs_tcp *t = impl;

        return t->stream.loop->backend->ops->file_shutdown(t->file);
}

static int tcp_addr(void *impl, bool peer, resha_addr *ret_addr)
{
        struct rs_tcp *t = impl;

        return t->stream.loop->backend->ops->file_addr(t->file, peer, ret_addr);
}

static void give_up(struct rs_tcp *t, int code)
{
        for (int d = READING; d <= WRITING; d++)
                if (t->op[d])
                        rs_operation_abort(t->stream.loop, t->op[d], code);
}

/* The stream, and with it this, is freed by who called. */
static void tcp_close(void *impl)
{
        struct rs_tcp *t = impl;

        give_up(t, -EBADF);
        rs_stream_wait_idle(&t->stream);
        t->stream.loop->backend->ops->file_close(t->file);
}

static void tcp_abort(void *impl)
{
        struct rs_tcp *t = impl;

        t->file->reset = true;
        give_up(t, -ECONNABORTED);
}

static const resha_stream_ops tcp_ops = {
        .kind = "tcp",
        .read = tcp_read,
        .write = tcp_write,
        .shutdown = tcp_shutdown,
        .addr = tcp_addr,
        .close = tcp_close,
        .abort = tcp_abort,
};

struct rs_tcp *rs_tcp_new(struct rs_loop *l)
{
        struct rs_tcp *t = resha_calloc(1, sizeof *t);

        if (!t)
                return NULL;
        t->stream.ops = &tcp_ops;
        t->stream.impl = t;
        t->stream.loop = l;
        return t;
}

static int connect_file(struct rs_loop *l, struct rs_tcp *t, const resha_addr *addr)
{
        struct rs_op op = { .kind = RS_OP_CONNECT, .addr = addr };
        int rc = l->backend->ops->socket(l->backend, rs_addr_view(addr)->sockaddr.ss_family, SOCK_STREAM, &t->file);

        if (rc < 0)
                return rc;
        op.file = t->file;
        rc = (int)rs_operation(l, &op, "connect");
        if (rc < 0)
                l->backend->ops->file_close(t->file);
        return rc;
}

int resha_tcp_connect_addr(const resha_addr *addr, resha_stream **ret_stream)
{
        char text[RESHA_ADDR_TEXT_MAX];
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (rc < 0)
                return rc;
        struct rs_tcp *t = rs_tcp_new(l);
        if (!t)
                return -ENOMEM;
        rc = connect_file(l, t, addr);
        if (rc == 0) {
                l->open++;
                *ret_stream = &t->stream;
                return 0;
        }
        resha_free(t);
        if (rc == -ECANCELED)
                return rc;
        return resha_fail_at(rc, NULL, "connect to %s: %s", resha_addr_format(addr, text, sizeof text),
                             resha_strerror(rc));
}
