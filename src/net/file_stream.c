/* SPDX-License-Identifier: MIT */
/* Streams of a file of the backend: TCP, Unix sockets, pipes, terminals, plain files; one operation for each call. An
 * operation lies on its task's stack; its address is here while a task waits for it, so that closing can give it up.
 *
 * The kinds differ in little. A terminal whose other side is gone says EIO where others end, and may come back: that is
 * an end here, and not final. A pipe ends where nobody has it open for writing, so its writing end is closed by
 * shutdown. What standard output shares with other processes cannot be ended so. */

#include "net/stream.h"

#include "base/addr.h"
#include "sys/terminal.h"

enum {
        READING = 0,
        WRITING = 1,
};

static const resha_stream_ops tcp_ops, unix_ops, pipe_ops, terminal_ops, plain_ops;

/* A failure with its peer, as long as the kernel still knows it. */
static __attribute__((noinline, cold)) int failed(struct rs_file_stream *t, int code, const char *what)
{
        char text[RESHA_ADDR_TEXT_MAX];
        resha_addr peer;

        if (code == -ECANCELED || code == -EBADF)
                return code;
        if (t->file->kind != RS_FILE_SOCKET || t->stream.loop->backend->ops->file_addr(t->file, true, &peer) < 0)
                return resha_fail_at(code, NULL, "%s a %s stream: %s", what, t->stream.ops->kind, resha_strerror(code));
        return resha_fail_at(code, NULL, "%s %s: %s", what, resha_addr_format(&peer, text, sizeof text),
                             resha_strerror(code));
}

/* The kernel tells of a broken connection once, and then of an end. Who waits to write may have been told in this very
 * moment, and not have run yet: its code, 0 if there is none. An end before it broke is an end. */
static int told_to_the_writer(const struct rs_file_stream *t)
{
        const struct rs_op *op = t->op[WRITING];

        if (!op || op->state != RS_OP_DONE || op->result >= 0 || op->result == -EPIPE)
                return 0;
        return rs_stream_passes((int)op->result) ? 0 : (int)op->result;
}

static __attribute__((noinline, cold)) ssize_t not_read(struct rs_file_stream *t, int code)
{
        if (code == 0)
                code = told_to_the_writer(t);
        if (code == 0)
                return 0;
        if (code == -EIO && t->stream.ops == &terminal_ops)
                return 0;
        return failed(t, code, "read from");
}

static ssize_t file_read(void *impl, void *buf, size_t size)
{
        struct rs_file_stream *t = impl;
        struct rs_op op;

        rs_op_bytes(&op, RS_OP_READ, t->file, buf, size);
        t->op[READING] = &op;
        ssize_t n = rs_operation(t->stream.loop, &op, "read");
        t->op[READING] = NULL;
        return RS_LIKELY(n > 0) ? n : not_read(t, (int)n);
}

static inline ssize_t writing(struct rs_file_stream *t, struct rs_op *op)
{
        t->op[WRITING] = op;
        ssize_t n = rs_operation(t->stream.loop, op, "write");
        t->op[WRITING] = NULL;
        return n;
}

static ssize_t file_write(void *impl, const void *data, size_t size)
{
        struct rs_file_stream *t = impl;
        struct rs_op op;

        rs_op_bytes(&op, RS_OP_WRITE, t->file, data, size);
        ssize_t n = writing(t, &op);
        return RS_LIKELY(n >= 0) ? n : failed(t, (int)n, "write to");
}

static ssize_t file_write_vec(void *impl, const struct iovec *parts, size_t count)
{
        struct rs_file_stream *t = impl;
        struct rs_op op;

        rs_op_bytes(&op, RS_OP_WRITE_VEC, t->file, parts, count);
        ssize_t n = writing(t, &op);
        return n >= 0 ? n : failed(t, (int)n, "write to");
}

/* Its failure is that of the file or of the connection: who called tells them apart. */
static ssize_t file_send_file(void *impl, int fd, int64_t offset, size_t size)
{
        struct rs_file_stream *t = impl;
        struct rs_op op = { .kind = RS_OP_SEND_FILE, .file = t->file, .fd = fd, .offset = offset, .size = size };
        ssize_t n = writing(t, &op);

        return n >= 0 || n == -EINVAL || n == -EOPNOTSUPP ? n : failed(t, (int)n, "send a file to");
}

/* A writer that waits: that of a Unix socket poll(2) and epoll do not tell of it. */
static int shutdown_socket(struct rs_file_stream *t)
{
        int rc = t->stream.loop->backend->ops->file_shutdown(t->file);

        if (rc == 0 && t->op[WRITING])
                rs_operation_abort(t->stream.loop, t->op[WRITING], -EPIPE);
        return rc;
}

static int file_shutdown(void *impl)
{
        struct rs_file_stream *t = impl;

        if (t->file->kind == RS_FILE_SOCKET)
                return shutdown_socket(t);
        if (t->borrowed)
                return -EOPNOTSUPP;
        if (t->op[WRITING])
                return resha_fail_at(-EBUSY, NULL, "another task writes this %s stream", t->stream.ops->kind);
        return t->stream.loop->backend->ops->file_shutdown(t->file);
}

static int file_addr(void *impl, bool peer, resha_addr *ret_addr)
{
        struct rs_file_stream *t = impl;

        if (t->file->kind != RS_FILE_SOCKET)
                return resha_fail_at(-EOPNOTSUPP, NULL, "a %s stream has no addresses", t->stream.ops->kind);
        return t->stream.loop->backend->ops->file_addr(t->file, peer, ret_addr);
}

_Static_assert((int)RESHA_STREAM_NODELAY == RS_OPTION_NODELAY && (int)RESHA_STREAM_KEEPALIVE == RS_OPTION_KEEPALIVE &&
                       (int)RESHA_STREAM_USER_TIMEOUT == RS_OPTION_USER_TIMEOUT &&
                       (int)RESHA_STREAM_SEND_BUFFER == RS_OPTION_SEND_BUFFER &&
                       (int)RESHA_STREAM_RECEIVE_BUFFER == RS_OPTION_RECEIVE_BUFFER,
               "the backend's options begin with those of streams");

static int file_option(void *impl, enum resha_stream_option which, int *value, bool set)
{
        struct rs_file_stream *t = impl;
        int rc = t->file->kind == RS_FILE_SOCKET
                         ? t->stream.loop->backend->ops->option(t->file, (enum rs_option)which, value, set)
                         : -EOPNOTSUPP;

        return rc == -ENOPROTOOPT ? -EOPNOTSUPP : rc;
}

static void give_up(struct rs_file_stream *t, int code)
{
        for (int d = READING; d <= WRITING; d++)
                if (t->op[d])
                        rs_operation_abort(t->stream.loop, t->op[d], code);
}

/* The stream, and with it this, is freed by who called. */
static void file_close(void *impl)
{
        struct rs_file_stream *t = impl;

        give_up(t, -EBADF);
        rs_stream_wait_idle(&t->stream);
        t->stream.loop->backend->ops->file_close(t->file);
}

static void file_abort(void *impl)
{
        struct rs_file_stream *t = impl;

        t->file->reset = true;
        give_up(t, -ECONNABORTED);
}

#define FILE_OPS(kind_) \
        { \
                .kind = (kind_), .read = file_read, .write = file_write, .shutdown = file_shutdown, .addr = file_addr, \
                .close = file_close, .abort = file_abort, .write_vec = file_write_vec, .send_file = file_send_file, \
                .option = file_option, \
        }

static const resha_stream_ops tcp_ops = FILE_OPS("tcp"), unix_ops = FILE_OPS("unix"), pipe_ops = FILE_OPS("pipe"),
                              terminal_ops = FILE_OPS("terminal"), plain_ops = FILE_OPS("file");

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

struct rs_file_stream *rs_other_stream_new(struct rs_loop *l, struct rs_file *file)
{
        bool terminal = file->fd >= 0 && rs_terminal_is(file->fd);
        struct rs_file_stream *t = stream_new(l, file->kind == RS_FILE_PLAIN ? &plain_ops
                                                 : terminal                  ? &terminal_ops
                                                                             : &pipe_ops);

        if (!t)
                return NULL;
        t->file = file;
        t->stream.one_way = true;
        return t;
}

struct rs_file_stream *rs_file_stream_of(resha_stream *s)
{
        return s->ops->close == file_close ? s->impl : NULL;
}
