/* SPDX-License-Identifier: MIT */
/* Calls about files and names that the kernel makes by itself, out of the ring; the rest is the crew's.
 *
 * What the ring can do is probed once. A call that it refuses at run time all the same (EINVAL, EOPNOTSUPP, ENOSYS: an
 * old kernel, a file system without it, a mistake of the program's) is made by the crew, which has the last word, and
 * so are all of its kind from then on. What is only not now (EAGAIN: some file systems say it to blocking files, too;
 * EINTR: of a cancel that came when the call had begun) is made again by the crew, that one time. So both ways have the
 * same results.
 *
 * Names and buffers are the caller's, who waits. */

#include <errno.h>
#include <fcntl.h>

#include "io/uring.h"
#include "sys/disk.h"
#include "sys/sanitize.h"

enum { MOST = 0x7ffff000 }; /* bytes that one call moves */

static const uint8_t operations[RS_DISK_CALLS] = {
        [RS_DISK_OPEN] = IORING_OP_OPENAT,     [RS_DISK_READ] = IORING_OP_READ,
        [RS_DISK_WRITE] = IORING_OP_WRITE,     [RS_DISK_SYNC] = IORING_OP_FSYNC,
        [RS_DISK_DATASYNC] = IORING_OP_FSYNC,  [RS_DISK_ALLOCATE] = IORING_OP_FALLOCATE,
        [RS_DISK_STAT] = IORING_OP_STATX,      [RS_DISK_RENAME] = IORING_OP_RENAMEAT,
        [RS_DISK_UNLINK] = IORING_OP_UNLINKAT, [RS_DISK_MKDIR] = IORING_OP_MKDIRAT,
        [RS_DISK_LINK] = IORING_OP_LINKAT,     [RS_DISK_SYMLINK] = IORING_OP_SYMLINKAT,
        [RS_DISK_CLOSE] = IORING_OP_CLOSE,
};

void ur_disk_probed(struct ur *u, const struct io_uring_probe *p)
{
        u->disk = 0;
        for (unsigned call = 0; call < RS_DISK_CALLS; call++) {
                unsigned o = operations[call];
                if (o && o < p->ops_len && (p->ops[o].flags & IO_URING_OP_SUPPORTED))
                        u->disk |= 1u << call;
        }
#ifdef RS_TSAN
        u->disk &= ~(1u << RS_DISK_CLOSE); /* TSan must see that the number goes, before it is another's */
#endif
}

bool ur_disk_direct(const struct ur *u, const struct rs_op *op)
{
        const struct rs_disk *d = op->buf;

        return u->disk >> d->call & 1;
}

static int folder(int fd)
{
        return fd ? fd : AT_FDCWD;
}

static void fill_name(struct io_uring_sqe *sqe, const struct rs_disk *d)
{
        int at = folder(d->fd), at2 = folder(d->fd2);

        switch (d->call) {
        case RS_DISK_OPEN:
                io_uring_prep_openat(sqe, at, d->path, d->flags | O_CLOEXEC | O_NONBLOCK, (mode_t)d->mode);
                break;
        case RS_DISK_RENAME: io_uring_prep_renameat(sqe, at, d->path, at2, d->path2, (unsigned)d->flags); break;
        case RS_DISK_UNLINK: io_uring_prep_unlinkat(sqe, at, d->path, d->flags); break;
        case RS_DISK_MKDIR: io_uring_prep_mkdirat(sqe, at, d->path, (mode_t)d->mode); break;
        case RS_DISK_LINK: io_uring_prep_linkat(sqe, at, d->path, at2, d->path2, d->flags); break;
        case RS_DISK_SYMLINK: io_uring_prep_symlinkat(sqe, d->path, at2, d->path2); break;
        default: io_uring_prep_nop(sqe);
        }
}

static void fill_stat(struct io_uring_sqe *sqe, const struct rs_disk *d)
{
        if (d->path)
                io_uring_prep_statx(sqe, folder(d->fd), d->path, d->flags, d->mask, d->stat);
        else
                io_uring_prep_statx(sqe, d->fd, "", d->flags | AT_EMPTY_PATH, d->mask, d->stat);
}

/* On a thread of the kernel from the start, where what it tries on ours first would show: a piece of what is appended
 * could be parted from the rest by another process, and over the limit of sizes a signal would come. */
static void fill_write(struct io_uring_sqe *sqe, const struct rs_disk *d, unsigned size, uint64_t offset)
{
        io_uring_prep_write(sqe, d->fd, d->buf, size, offset);
        if (d->offset < 0 || rs_sys_disk_limited())
                sqe->flags |= IOSQE_ASYNC;
}

void ur_disk_fill(struct io_uring_sqe *sqe, const struct rs_disk *d)
{
        unsigned size = d->size < MOST ? (unsigned)d->size : MOST;
        uint64_t offset = (uint64_t)(d->offset < 0 ? -1 : d->offset);

        switch (d->call) {
        case RS_DISK_READ: io_uring_prep_read(sqe, d->fd, d->buf, size, offset); break;
        case RS_DISK_WRITE: fill_write(sqe, d, size, offset); break;
        case RS_DISK_SYNC: io_uring_prep_fsync(sqe, d->fd, 0); break;
        case RS_DISK_DATASYNC: io_uring_prep_fsync(sqe, d->fd, IORING_FSYNC_DATASYNC); break;
        case RS_DISK_ALLOCATE: io_uring_prep_fallocate(sqe, d->fd, d->flags, d->offset, (off_t)d->size); break;
        case RS_DISK_STAT: fill_stat(sqe, d); break;
        case RS_DISK_CLOSE: io_uring_prep_close(sqe, d->fd); break;
        default: fill_name(sqe, d);
        }
}

/* What closing says comes from the file system, and the descriptor is gone: it may be another's already. */
bool ur_disk_refused(struct ur *u, const struct rs_disk *d, int res)
{
        if (d->call == RS_DISK_CLOSE)
                return false;
        switch (res) {
        case -EINVAL:
        case -EOPNOTSUPP:
        case -ENOSYS: u->disk &= ~(1u << d->call); return true;
        case -EAGAIN:
        case -EINTR: return true;
        default: return false;
        }
}

ssize_t ur_disk_result(const struct rs_disk *d, int res)
{
        if (d->call == RS_DISK_OPEN)
                return rs_sys_disk_opened(res, d->flags);
        if (d->call == RS_DISK_CLOSE && res == -EINTR)
                return 0;
        if (d->call == RS_DISK_READ && res > 0)
                rs_memory_written(d->buf, (size_t)res);
        return res;
}
