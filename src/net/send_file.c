/* SPDX-License-Identifier: MIT */
/* Files into streams: by the kernel, in pieces, so that other tasks get their turns; and by copying where the kernel
 * does not do it, from that file or into that stream. Which of the two sides a failure is of matters: that of the
 * connection stays with the stream, that of the file is only told. */

#include "net/stream.h"

#include "sys/sys.h"

enum {
        PIECE = 256 * 1024, /* of one call of the kernel */
        COPIED = 64 * 1024,
};

struct source {
        int fd;
        int64_t offset;
        uint64_t left; /* UINT64_MAX: to its end */
        uint64_t *sent;
};

static size_t at_most(const struct source *f, size_t size)
{
        return f->left < size ? (size_t)f->left : size;
}

static void sent(struct source *f, size_t n)
{
        f->offset += (int64_t)n;
        *f->sent += n;
        if (f->left != UINT64_MAX)
                f->left -= n;
}

static int ended(const struct source *f)
{
        if (f->left == UINT64_MAX)
                return 0;
        return resha_fail_at(-ENODATA, NULL, "file descriptor %d ends at %lld, %llu bytes before it should", f->fd,
                             (long long)f->offset, (unsigned long long)f->left);
}

/* Codes that are the file's. */
static bool of_file(ssize_t code)
{
        return code == -EIO || code == -EISDIR || code == -ESPIPE || code == -EACCES || code == -EOVERFLOW;
}

static int not_read(const struct source *f, ssize_t code)
{
        return resha_fail_at((int)code, NULL, "read from file descriptor %d at %lld: %s", f->fd, (long long)f->offset,
                             resha_strerror((int)code));
}

/* ---- copying ---- */

static int write_piece(resha_stream *s, struct source *f, const char *data, size_t size)
{
        while (size) {
                ssize_t n = s->ops->write(s->impl, data, size);
                rs_stream_count(s);
                if (n <= 0)
                        return rs_stream_not_written(s, n);
                sent(f, (size_t)n);
                data += n;
                size -= (size_t)n;
                int rc = f->left ? rs_stream_go_on(s, &s->write_failed) : 0;
                if (rc < 0)
                        return rc;
        }
        return 0;
}

static int copy(resha_stream *s, struct source *f)
{
        char *data = resha_malloc(COPIED);
        int rc = data ? 0 : -ENOMEM;

        while (rc == 0 && f->left) {
                ssize_t n = rs_sys_pread(f->fd, data, at_most(f, COPIED), f->offset);
                if (n <= 0) {
                        rc = n < 0 ? not_read(f, n) : ended(f);
                        break;
                }
                rc = write_piece(s, f, data, (size_t)n);
        }
        resha_free(data);
        return rc;
}

/* ---- by the kernel ---- */

static int send_pieces(resha_stream *s, struct source *f)
{
        int rc = 0;

        while (rc == 0 && f->left) {
                ssize_t n = s->ops->send_file ? s->ops->send_file(s->impl, f->fd, f->offset, at_most(f, PIECE))
                                              : -EOPNOTSUPP;
                rs_stream_count(s);
                if (n == -EOPNOTSUPP || n == -EINVAL || n == -ENOSYS)
                        return s->closing ? -EBADF : copy(s, f);
                if (n <= 0 && (n == 0 || of_file(n) || (n == -EBADF && !s->closing)))
                        return n == 0 ? ended(f) : not_read(f, n);
                if (n < 0)
                        return rs_stream_not_written(s, n);
                sent(f, (size_t)n);
                rc = f->left ? rs_stream_go_on(s, &s->write_failed) : 0;
        }
        return rc;
}

static int send_file(struct rs_loop *l, resha_stream *s, struct source *f)
{
        if (s->write_failed)
                return rs_stream_failed_before(s, s->write_failed);
        if (f->offset < 0 || (f->left != UINT64_MAX && f->left > (uint64_t)(INT64_MAX - f->offset)))
                return resha_fail_at(-EINVAL, NULL, "%llu bytes from %lld on: not within a file",
                                     (unsigned long long)f->left, (long long)f->offset);
        int rc = rs_stream_send_kept(s);
        if (rc == 0)
                rc = rs_stream_is_there(s);
        if (rc < 0)
                return rc;
        if (!f->left)
                return rs_complete(l, 0);
        rc = send_pieces(s, f);
        int taken = s->write_failed ? 0 : rs_stream_send_taken(s);
        return rc < 0 ? rc : taken;
}

int resha_send_file(resha_stream *s, int fd, int64_t offset, uint64_t size, uint64_t *ret_sent)
{
        uint64_t done = 0;
        struct source f = { .fd = fd, .offset = offset, .left = size, .sent = &done };
        struct rs_loop *l;
        int rc = rs_stream_enter(s, &s->writing, "writes", &l);

        if (rc == 0) {
                rc = send_file(l, s, &f);
                rs_stream_leave(s, &s->writing);
        }
        if (ret_sent)
                *ret_sent = done;
        return rc;
}
