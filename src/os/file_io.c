/* SPDX-License-Identifier: MIT */
/* Reading and writing open files: one operation of the disk for each piece, and all of what was asked for. The kernel
 * may do less than it was told, and only a read of 0 bytes is an end. */

#include "os/file.h"

#include "sys/sys.h"

static int failed(const resha_file *f, int code, const char *verb, int64_t offset)
{
        char text[RS_PATH_TEXT];

        if (code == -ECANCELED || code == -ETIME)
                return code;
        if (f->opened.closing && code == -EBADF)
                return rs_opened_refuse(&f->opened, f->opened.loop);
        if (code == -ESPIPE || code == -EAGAIN)
                return resha_fail_at(code, NULL, "%s %s: %s (adopt it as a stream: resha_stream_adopt())", verb,
                                     rs_path_text(f->path, text), resha_strerror(code));
        if (code == -EINVAL && (f->flags & O_DIRECT))
                return resha_fail_at(code, NULL, "%s %s: buffer, size and offset must be aligned for O_DIRECT", verb,
                                     rs_path_text(f->path, text));
        if (offset < 0 || (code != -EIO && code != -EINVAL))
                return rs_path_failed(code, verb, f->path);
        return resha_fail_at(code, NULL, "%s %s at byte %lld: %s", verb, rs_path_text(f->path, text), (long long)offset,
                             resha_strerror(code));
}

/* ---- reading ---- */

static int check_range(const resha_file *f, const char *verb, size_t size, int64_t offset)
{
        char text[RS_PATH_TEXT];

        if (offset >= 0 && size <= (size_t)(INT64_MAX - offset))
                return 0;
        return resha_fail_at(-EINVAL, NULL, "%s %s: %zu bytes at %lld are not within a file", verb,
                             rs_path_text(f->path, text), size, (long long)offset);
}

static int check_access(const resha_file *f, const char *verb, int lacks)
{
        char text[RS_PATH_TEXT];

        if ((f->flags & O_ACCMODE) != lacks)
                return 0;
        return resha_fail_at(-EBADF, NULL, "%s %s: it was opened for %s only; open it with O_RDWR", verb,
                             rs_path_text(f->path, text), lacks == O_WRONLY ? "writing" : "reading");
}

static size_t piece(size_t size)
{
        return size < RESHA_FILE_PIECE ? size : RESHA_FILE_PIECE;
}

static ssize_t read_all(resha_file *f, struct rs_use *u, char *buf, size_t size, int64_t offset)
{
        size_t done = 0;

        while (done < size) {
                struct rs_disk d = { .call = RS_DISK_READ,
                                     .fd = f->opened.fd,
                                     .buf = buf + done,
                                     .size = piece(size - done),
                                     .offset = offset + (int64_t)done };
                ssize_t n = rs_opened_do(&f->opened, u, &d, "read");
                if (n < 0)
                        return failed(f, (int)n, "read", d.offset);
                if (n == 0)
                        break;
                done += (size_t)n;
                int rc = done < size ? rs_opened_go_on(&f->opened) : 0;
                if (rc < 0)
                        return failed(f, rc, "read", -1);
        }
        return (ssize_t)done;
}

ssize_t resha_file_read(resha_file *f, void *buf, size_t size, int64_t offset)
{
        struct rs_loop *l;
        struct rs_use u;
        ssize_t n = rs_opened_enter(&f->opened, &u, &l);

        if (n < 0)
                return n;
        n = check_access(f, "read", O_WRONLY);
        if (n == 0)
                n = check_range(f, "read", size, offset);
        if (n == 0)
                n = size ? read_all(f, &u, buf, size, offset) : rs_complete(l, 0);
        rs_opened_leave(&f->opened, &u);
        return n;
}

/* ---- writing ---- */

/* offset: -1 for the end. */
static int write_all(resha_file *f, struct rs_use *u, const char *data, size_t size, int64_t offset, size_t *done)
{
        while (*done < size) {
                struct rs_disk d = { .call = RS_DISK_WRITE,
                                     .fd = f->opened.fd,
                                     .buf = (void *)(uintptr_t)(data + *done),
                                     .size = piece(size - *done),
                                     .offset = offset < 0 ? -1 : offset + (int64_t)*done };
                ssize_t n = rs_opened_do(&f->opened, u, &d, "write");
                if (n <= 0)
                        return failed(f, n < 0 ? (int)n : -EIO, "write", d.offset);
                *done += (size_t)n;
                int rc = *done < size ? rs_opened_go_on(&f->opened) : 0;
                if (rc < 0)
                        return failed(f, rc, "write", -1);
        }
        return 0;
}

/* O_APPEND makes the kernel write at the end, whatever the offset. */
static int check_append(const resha_file *f, bool append)
{
        char text[RS_PATH_TEXT];

        if (!(f->flags & O_APPEND) == !append)
                return 0;
        return resha_fail_at(-EINVAL, NULL,
                             append ? "append to %s: it was opened without O_APPEND"
                                    : "write %s: it was opened with O_APPEND: resha_file_append()",
                             rs_path_text(f->path, text));
}

static int write_inside(resha_file *f, struct rs_use *u, const void *data, size_t size, int64_t offset, size_t *done)
{
        int rc = check_access(f, "write", O_RDONLY);

        if (rc == 0)
                rc = check_append(f, offset < 0);
        if (rc == 0)
                rc = size ? write_all(f, u, data, size, offset, done) : rs_complete(f->opened.loop, 0);
        return rc;
}

int resha_file_write(resha_file *f, const void *data, size_t size, int64_t offset, size_t *ret_written)
{
        size_t done = 0;
        struct rs_loop *l;
        struct rs_use u;
        int rc = rs_opened_enter(&f->opened, &u, &l);

        if (rc == 0) {
                rc = check_range(f, "write", size, offset);
                if (rc == 0)
                        rc = write_inside(f, &u, data, size, offset, &done);
                rs_opened_leave(&f->opened, &u);
        }
        if (ret_written)
                *ret_written = done;
        return rc;
}

int resha_file_append(resha_file *f, const void *data, size_t size, size_t *ret_written)
{
        size_t done = 0;
        struct rs_loop *l;
        struct rs_use u;
        int rc = rs_opened_enter(&f->opened, &u, &l);

        if (rc == 0) {
                rc = write_inside(f, &u, data, size, -1, &done);
                rs_opened_leave(&f->opened, &u);
        }
        if (ret_written)
                *ret_written = done;
        return rc;
}

/* ---- the rest ---- */

static int one_call(resha_file *f, struct rs_disk *d, const char *verb)
{
        struct rs_loop *l;
        struct rs_use u;
        int rc = rs_opened_enter(&f->opened, &u, &l);

        if (rc < 0)
                return rc;
        d->fd = f->opened.fd;
        if (d->call == RS_DISK_TRUNCATE || d->call == RS_DISK_ALLOCATE)
                rc = check_access(f, verb, O_RDONLY);
        if (rc == 0) {
                rc = (int)rs_opened_do(&f->opened, &u, d, verb);
                rc = rc < 0 ? failed(f, rc, verb, -1) : rc;
        }
        rs_opened_leave(&f->opened, &u);
        return rc;
}

/* The kernel tells once that pages could not be written, and then takes them for written. */
static int sync_call(resha_file *f, enum rs_disk_call call)
{
        struct rs_disk d = { .call = call };
        char text[RS_PATH_TEXT];
        int rc = one_call(f, &d, "sync");

        if (rc == -EIO || rc == -ENOSPC || rc == -EDQUOT)
                f->sync_failed = rc;
        if (rc < 0 || !f->sync_failed)
                return rc;
        return resha_fail_at(f->sync_failed, NULL, "sync %s: an earlier one failed, and what was written then is lost",
                             rs_path_text(f->path, text));
}

int resha_file_sync(resha_file *f)
{
        return sync_call(f, RS_DISK_SYNC);
}

int resha_file_datasync(resha_file *f)
{
        return sync_call(f, RS_DISK_DATASYNC);
}

int resha_file_truncate(resha_file *f, int64_t size)
{
        struct rs_disk d = { .call = RS_DISK_TRUNCATE, .offset = size };

        return one_call(f, &d, "truncate");
}

int resha_file_allocate(resha_file *f, int64_t offset, int64_t size)
{
        struct rs_disk d = { .call = RS_DISK_ALLOCATE, .offset = offset, .size = (size_t)size };

        return one_call(f, &d, "allocate room in");
}

int resha_file_stat(resha_file *f, resha_stat *ret_stat)
{
        struct statx x;
        struct rs_disk d = { .call = RS_DISK_STAT, .mask = STATX_BASIC_STATS | STATX_BTIME, .stat = &x };
        int rc = one_call(f, &d, "stat");

        if (rc == 0)
                rs_stat_tell(&x, ret_stat);
        return rc;
}

int resha_file_fd(const resha_file *f)
{
        if (f->opened.loop != rs_loop_current || f->opened.closing)
                return rs_opened_refuse(&f->opened, rs_loop_current);
        return f->opened.fd;
}
