/* SPDX-License-Identifier: MIT */
/* Streams of a file of the backend, one operation for each call. An operation lies on its task's stack; its
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
static int failed(struct rs_file_stream *t, int code, const char *what)
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

static ssize_t file_read(void *impl, void *buf, size_t size)
{
        struct rs_file_stream *t = impl;
        struct rs_op op = { .kind = RS_OP_READ, .file = t->file, .buf = buf, .size = size };

        t->op[READING] = &op;
        ssize_t n = rs_operation(t->stream.loop, &op, "read");
        t->op[READING] = NULL;
        return RS_LIKELY(n >= 0) ? n : failed(t, (int)n, "read from");
}

static ssize_t file_write(void *impl, const void *data, size_t size)
{
        struct rs_file_stream *t = impl;
        struct rs_op op = { .kind = RS_OP_WRITE, .file = t->file, .buf = (void *)(uintptr_t)data, .size = size };

        t->op[WRITING] = &op;
        ssize_t n = rs_operation(t->stream.loop, &op, "write");
        t->op[WRITING] = NULL;
        return RS_LIKELY(n >= 0) ? n : failed(t, (int)n, "write to");
}

static int end_writing(void *impl)
{
        struct rs_file_stream *t = impl;

        return t->stream.loop->backend->ops->file_shutdown(t->file);
}

static int address(void *impl, bool peer, resha_addr *ret_addr)
{
        struct rs_file_stream *t = impl;

        return t->stream.loop->backend->ops->file_addr(t->file, peer, ret_addr);
}

static void give_up(struct rs_file_stream *t, int code)
{
        for (int d = READING; d <= WRITING; d++)
                if (t->op[d])
                        rs_operation_abort(t->stream.loop, t->op[d], code);
}

/* The stream, and with it this, is freed by who called. */
static void close_file(void *impl)
{
        struct rs_file_stream *t = impl;

        give_up(t, -EBADF);
        rs_stream_wait_idle(&t->stream);
        t->stream.loop->backend->ops->file_close(t->file);
}

static void break_off(void *impl)
{
        struct rs_file_stream *t = impl;

        t->file->reset = true;
        give_up(t, -ECONNABORTED);
}

#define FILE_OPS(kind_) \
        { \
                .kind = (kind_), .read = file_read, .write = file_write, .shutdown = end_writing, .addr = address, \
                .close = close_file, .abort = break_off, \
        }

static const resha_stream_ops tcp_ops = FILE_OPS("tcp"), unix_ops = FILE_OPS("unix");

static struct rs_file_stream *stream_new(struct rs_loop *l, const resha_stream_ops *ops)
{
        struct rs_file_stream *t = resha_calloc(1, sizeof *t);

        if (!t)
                return NULL;
        t->stream.ops = ops;
        t->stream.impl = t;
        t->stream.loop = l;
        return t;
}

struct rs_file_stream *rs_socket_stream_new(struct rs_loop *l, int family)
{
        return stream_new(l, family == AF_UNIX ? &unix_ops : &tcp_ops);
}

static int connect_file(struct rs_loop *l, struct rs_file_stream *t, const resha_addr *addr)
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
        struct rs_file_stream *t = rs_socket_stream_new(l, resha_addr_family(addr));
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
