/* SPDX-License-Identifier: MIT */
/* How streams begin: connecting to an address, in pairs, as pipes, from descriptors; and how a descriptor leaves
 * again. */

#include "net/stream.h"

#include <sys/socket.h>

#include "base/addr.h"

/* ---- connecting ---- */

enum { PAUSE_FIRST_US = 500, PAUSE_MOST_US = 50 * 1000 };

/* The kernel makes the clients of a TCP listener wait while its queue is full, but tells those of a Unix socket to come
 * again, and not when. */
static int connect_op(struct rs_loop *l, struct rs_op *op, bool local)
{
        unsigned pause = PAUSE_FIRST_US;
        int rc = (int)rs_operation(l, op, "connect");

        while (rc == -ENOBUFS && local) {
                rc = resha_sleep(RESHA_US(pause));
                pause = pause * 2 < PAUSE_MOST_US ? pause * 2 : PAUSE_MOST_US;
                if (rc == 0)
                        rc = (int)rs_operation(l, op, "connect");
        }
        return rc;
}

static int connect_file(struct rs_loop *l, struct rs_file_stream *t, const resha_addr *addr, const resha_addr *local)
{
        const struct rs_backend_ops *ops = l->backend->ops;
        struct rs_op op = { .kind = RS_OP_CONNECT, .addr = addr };
        int rc = ops->socket(l->backend, resha_addr_family(addr), SOCK_STREAM, &t->file);

        if (rc < 0)
                return rc;
        op.file = t->file;
        rc = local ? ops->bind(t->file, local, 0) : 0;
        if (rc == 0)
                rc = connect_op(l, &op, resha_addr_family(addr) == AF_UNIX);
        if (rc < 0)
                ops->file_close(t->file);
        return rc;
}

static int connect_failed(const resha_addr *addr, const resha_addr *local, int code, const char *why)
{
        char to[RESHA_ADDR_TEXT_MAX], from[RESHA_ADDR_TEXT_MAX];

        if (code == -ECANCELED)
                return code;
        resha_addr_format(addr, to, sizeof to);
        if (!local)
                return resha_fail_at(code, NULL, "connect to %s: %s", to, why);
        return resha_fail_at(code, NULL, "connect to %s from %s: %s", to, resha_addr_format(local, from, sizeof from),
                             why);
}

int resha_connect(const resha_addr *addr, const resha_connect_opts *opts, resha_stream **ret_stream)
{
        const resha_addr *local = opts ? opts->local : NULL;
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (rc < 0)
                return rc;
        if (opts && !rs_reserved_zero(opts->_reserved))
                return resha_fail_at(-EINVAL, NULL, "a reserved word of connect options is not zero");
        if (local && resha_addr_family(local) != resha_addr_family(addr))
                return connect_failed(addr, local, -EINVAL, "they are of different families");
        struct rs_file_stream *t = rs_socket_stream_new(l, resha_addr_family(addr));
        if (!t)
                return -ENOMEM;
        rc = connect_file(l, t, addr, local);
        if (rc < 0) {
                resha_free(t);
                return connect_failed(addr, local, rc, resha_strerror(rc));
        }
        rs_stream_begin(&t->stream, t->file->fd);
        RS_OPENED_HERE(&t->stream.shown);
        *ret_stream = &t->stream;
        return 0;
}

int resha_tcp_connect_addr(const resha_addr *addr, resha_stream **ret_stream)
{
        int rc = resha_connect(addr, NULL, ret_stream);

        if (rc == 0)
                RS_OPENED_HERE(&(*ret_stream)->shown);
        return rc;
}

int resha_unix_connect(const char *path, resha_stream **ret_stream)
{
        resha_addr addr;
        int rc = resha_addr_unix(path, &addr);

        if (rc < 0)
                return resha_fail_at(rc, NULL, "connect to \"%.64s\": %s", path, resha_strerror(rc));
        rc = resha_connect(&addr, NULL, ret_stream);
        if (rc == 0)
                RS_OPENED_HERE(&(*ret_stream)->shown);
        return rc;
}

/* ---- two at once ---- */

static void begin(struct rs_file_stream *t, struct rs_file *file, resha_stream **ret_stream)
{
        t->file = file;
        rs_stream_begin(&t->stream, file->fd);
        *ret_stream = &t->stream;
}

/* Two streams, and what makes their files. */
static int begin_two(struct rs_loop *l, struct rs_file_stream *t[2], struct rs_file *files[2],
                     resha_stream *ret_streams[2])
{
        if (t[0] && t[1]) {
                begin(t[0], files[0], &ret_streams[0]);
                begin(t[1], files[1], &ret_streams[1]);
                return 0;
        }
        resha_free(t[0]);
        resha_free(t[1]);
        l->backend->ops->file_close(files[0]);
        l->backend->ops->file_close(files[1]);
        return -ENOMEM;
}

int resha_stream_pair(resha_stream *ret_pair[2])
{
        struct rs_loop *l = rs_loop_current;
        struct rs_file *files[2];

        if (!l)
                return rs_outside();
        int rc = l->backend->ops->pair(l->backend, SOCK_STREAM, files);
        if (rc < 0)
                return resha_fail_at(rc, NULL, "a pair of streams: %s", resha_strerror(rc));
        struct rs_file_stream *t[2] = { rs_socket_stream_new(l, AF_UNIX), rs_socket_stream_new(l, AF_UNIX) };
        rc = begin_two(l, t, files, ret_pair);
        for (int i = 0; rc == 0 && i < 2; i++)
                RS_OPENED_HERE(&ret_pair[i]->shown);
        return rc;
}

int resha_pipe(resha_stream **ret_read, resha_stream **ret_write)
{
        struct rs_loop *l = rs_loop_current;
        struct rs_file *files[2];
        resha_stream *ends[2];

        if (!l)
                return rs_outside();
        int rc = l->backend->ops->pipe(l->backend, files);
        if (rc < 0)
                return resha_fail_at(rc, NULL, "a pipe: %s", resha_strerror(rc));
        struct rs_file_stream *t[2] = { rs_other_stream_new(l, files[0]), rs_other_stream_new(l, files[1]) };
        rc = begin_two(l, t, files, ends);
        if (rc == 0) {
                RS_OPENED_HERE(&ends[0]->shown);
                RS_OPENED_HERE(&ends[1]->shown);
                *ret_read = ends[0];
                *ret_write = ends[1];
        }
        return rc;
}

/* ---- descriptors from elsewhere ---- */

/* -EINVAL for a socket that is no stream. */
static int check_socket(struct rs_loop *l, struct rs_file *file, int fd)
{
        const struct rs_backend_ops *ops = l->backend->ops;
        int type = 0, listening = 0;
        int rc = ops->option(file, RS_OPTION_TYPE, &type, false);

        if (rc == 0)
                rc = ops->option(file, RS_OPTION_LISTENING, &listening, false);
        if (rc == 0 && (type != SOCK_STREAM || listening))
                rc = resha_fail_at(-EINVAL, NULL, "descriptor %d is a socket that %s, no stream", fd,
                                   listening ? "listens" : "moves datagrams");
        return rc;
}

static int family_of(struct rs_loop *l, struct rs_file *file)
{
        resha_addr addr;

        return l->backend->ops->file_addr(file, false, &addr) < 0 ? AF_UNSPEC : resha_addr_family(&addr);
}

/* The stream of a file that was adopted. */
static int begin_adopted(struct rs_loop *l, struct rs_file *file, int fd, struct rs_file_stream **ret_stream)
{
        bool socket = file->kind == RS_FILE_SOCKET;
        int rc = socket ? check_socket(l, file, fd) : 0;

        if (rc < 0)
                return rc;
        struct rs_file_stream *t = socket ? rs_socket_stream_new(l, family_of(l, file)) : rs_other_stream_new(l, file);
        if (!t)
                return -ENOMEM;
        t->file = file;
        *ret_stream = t;
        return 0;
}

int resha_stream_adopt(int fd, resha_stream **ret_stream)
{
        struct rs_loop *l = rs_loop_current;
        struct rs_file_stream *t;
        struct rs_file *file;

        if (!l)
                return rs_outside();
        int rc = l->backend->ops->adopt(l->backend, fd, false, &file);
        if (rc < 0)
                return resha_fail_at(rc, NULL, "descriptor %d as a stream: %s", fd,
                                     rc == -EBUSY ? "it is a stream's or listener's already" : resha_strerror(rc));
        rc = begin_adopted(l, file, fd, &t);
        if (rc < 0) {
                (void)l->backend->ops->release(file);
                return rc;
        }
        begin(t, file, ret_stream);
        RS_OPENED_HERE(&t->stream.shown);
        return 0;
}

static int stdio_failed(int fd, int code)
{
        static const char *const names[] = { "input", "output", "error" };

        if (code == -EBADF)
                return resha_fail_at(code, NULL,
                                     "standard %s (descriptor %d) is closed: the program was started without it; "
                                     "start it with %d%s/dev/null",
                                     names[fd], fd, fd, fd == 0 ? "<" : ">");
        return resha_fail_at(code, NULL, "standard %s (descriptor %d) as a stream: %s", names[fd], fd,
                             resha_strerror(code));
}

int resha_stream_stdio(int fd, resha_stream **ret_stream)
{
        struct rs_loop *l = rs_loop_current;
        struct rs_file_stream *t;
        struct rs_file *file;

        if (!l)
                return rs_outside();
        if (fd < 0 || fd > 2)
                return resha_fail_at(-EINVAL, NULL,
                                     "descriptor %d is not standard input, output or error: resha_stream_adopt()", fd);
        int rc = l->backend->ops->adopt(l->backend, fd, true, &file);
        if (rc < 0)
                return stdio_failed(fd, rc);
        rc = begin_adopted(l, file, fd, &t);
        if (rc < 0) {
                l->backend->ops->file_close(file);
                return rc;
        }
        t->borrowed = true;
        begin(t, file, ret_stream);
        RS_OPENED_HERE(&t->stream.shown);
        return 0;
}

int resha_stream_release(resha_stream *s, int *ret_fd)
{
        struct rs_file_stream *t = rs_file_stream_of(s);
        struct rs_loop *l = rs_loop_current;

        if (s->loop != l || s->closing)
                return rs_stream_refuse(s, l, "closes");
        if (s->reading || s->writing)
                return rs_stream_refuse(s, l, s->reading ? "reads" : "writes");
        if (rs_span_size(&s->in) || rs_span_size(&s->out))
                return resha_fail_at(-EBUSY, NULL,
                                     "%zu bytes that were read and %zu that were written are in the stream",
                                     rs_span_size(&s->in), rs_span_size(&s->out));
        if (s->server)
                return resha_fail_at(-EBUSY, NULL, "resha_serve() closes this stream when its handler returns");
        int fd = t && !t->borrowed ? l->backend->ops->release(t->file) : -EOPNOTSUPP;
        if (fd < 0)
                return resha_fail_at(fd, NULL, "this %s stream has no descriptor of its own", s->ops->kind);
        rs_stream_free(s);
        *ret_fd = fd;
        return 0;
}
