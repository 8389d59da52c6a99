/* SPDX-License-Identifier: MIT */
/* Calls about files and names; see sys.c for what holds for all system calls.
 *
 * They block, on disks and on servers far away, but never on another process that has not come: an open has O_NONBLOCK,
 * which a FIFO or a device needs, and which is taken away again from files and folders, where it means nothing but that
 * some file systems say EAGAIN. There is one wait for others even so: a file that another process holds a lease of
 * (fcntl(2), F_SETLEASE) says EAGAIN until that has been given up or taken away, 45 s later at most. */

#include "sys/disk.h"

#include <fcntl.h>
#include <linux/stat.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "sys/call.h"

enum { PATIENCE = 60 }; /* seconds: for the lease of another */

static const enum rs_syscall faults[RS_DISK_CALLS] = {
        [RS_DISK_OPEN] = RS_SYS_OPEN,          [RS_DISK_READ] = RS_SYS_READ,
        [RS_DISK_WRITE] = RS_SYS_WRITE,        [RS_DISK_SYNC] = RS_SYS_FSYNC,
        [RS_DISK_DATASYNC] = RS_SYS_FSYNC,     [RS_DISK_TRUNCATE] = RS_SYS_FTRUNCATE,
        [RS_DISK_ALLOCATE] = RS_SYS_FALLOCATE, [RS_DISK_STAT] = RS_SYS_STATX,
        [RS_DISK_RENAME] = RS_SYS_RENAME,      [RS_DISK_UNLINK] = RS_SYS_UNLINK,
        [RS_DISK_MKDIR] = RS_SYS_MKDIR,        [RS_DISK_LINK] = RS_SYS_LINK,
        [RS_DISK_SYMLINK] = RS_SYS_SYMLINK,    [RS_DISK_READLINK] = RS_SYS_READLINK,
        [RS_DISK_LIST] = RS_SYS_GETDENTS,      [RS_DISK_COPY] = RS_SYS_COPY_FILE,
        [RS_DISK_CLOSE] = RS_SYS_CLOSE,
};

int rs_sys_disk_fault(enum rs_disk_call call)
{
        int rc;

        if (call == RS_DISK_RUN)
                return 0;
        do
                rc = rs_fault_syscall(faults[call]);
        while (RS_UNLIKELY(rc == -EINTR));
        return rc;
}

#define DISK(expression) CALL(faults[d->call], expression)

static int folder(int fd)
{
        return fd ? fd : AT_FDCWD;
}

static void pause_ms(long ms)
{
        struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

        (void)nanosleep(&t, NULL);
}

ssize_t rs_sys_disk_opened(ssize_t fd, int flags)
{
        struct stat st;

        if (fd < 0)
                return fd;
        if (fstat((int)fd, &st) == 0 && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
                (void)fcntl((int)fd, F_SETFL, flags & ~O_NONBLOCK);
        return rs_sys_move_up((int)fd);
}

/* EAGAIN is somebody's lease of a file; of a device it is what that has to say. */
static ssize_t disk_open(const struct rs_disk *d)
{
        int flags = d->flags | O_CLOEXEC | O_NONBLOCK;
        int64_t end = 0;
        struct stat st;

        for (long ms = 1;; ms = ms < 50 ? 2 * ms : 50) {
                ssize_t fd = DISK(openat(folder(d->fd), d->path, flags, (mode_t)d->mode));
                if (fd != -EAGAIN)
                        return rs_sys_disk_opened(fd, d->flags);
                if (!end)
                        end = rs_sys_now() + PATIENCE * INT64_C(1000000000);
                if (rs_sys_now() >= end || fstatat(folder(d->fd), d->path, &st, 0) < 0 || !S_ISREG(st.st_mode))
                        return fd;
                pause_ms(ms);
        }
}

static ssize_t disk_read(const struct rs_disk *d)
{
        return d->offset < 0 ? DISK(read(d->fd, d->buf, d->size)) : DISK(pread(d->fd, d->buf, d->size, d->offset));
}

static ssize_t disk_write(const struct rs_disk *d)
{
        return d->offset < 0 ? DISK(write(d->fd, d->buf, d->size)) : DISK(pwrite(d->fd, d->buf, d->size, d->offset));
}

static ssize_t disk_stat(const struct rs_disk *d)
{
        if (!d->path)
                return DISK(statx(d->fd, "", d->flags | AT_EMPTY_PATH, d->mask, d->stat));
        return DISK(statx(folder(d->fd), d->path, d->flags, d->mask, d->stat));
}

static ssize_t disk_copy(const struct rs_disk *d)
{
        off_t from = d->offset, to = d->offset2;

        return DISK(copy_file_range(d->fd, &from, d->fd2, &to, d->size, 0));
}

/* After EINTR it is closed, too. */
static ssize_t disk_close(const struct rs_disk *d)
{
        int fault = rs_fault_syscall(faults[d->call]);
        int rc = close(d->fd) < 0 ? -errno : fault;

        return rc == -EINTR ? 0 : rc;
}

static ssize_t disk_name(const struct rs_disk *d)
{
        int at = folder(d->fd), at2 = folder(d->fd2);

        switch (d->call) {
        case RS_DISK_RENAME: return DISK(renameat2(at, d->path, at2, d->path2, (unsigned)d->flags));
        case RS_DISK_UNLINK: return DISK(unlinkat(at, d->path, d->flags));
        case RS_DISK_MKDIR: return DISK(mkdirat(at, d->path, (mode_t)d->mode));
        case RS_DISK_LINK: return DISK(linkat(at, d->path, at2, d->path2, d->flags));
        case RS_DISK_SYMLINK: return DISK(symlinkat(d->path, at2, d->path2));
        case RS_DISK_READLINK: return DISK(readlinkat(at, d->path, d->buf, d->size));
        default: return -EINVAL;
        }
}

ssize_t rs_sys_disk(struct rs_disk *d)
{
        switch (d->call) {
        case RS_DISK_OPEN: return disk_open(d);
        case RS_DISK_READ: return disk_read(d);
        case RS_DISK_WRITE: return disk_write(d);
        case RS_DISK_SYNC: return DISK(fsync(d->fd));
        case RS_DISK_DATASYNC: return DISK(fdatasync(d->fd));
        case RS_DISK_TRUNCATE: return DISK(ftruncate(d->fd, d->offset));
        case RS_DISK_ALLOCATE: return DISK(fallocate(d->fd, d->flags, d->offset, (off_t)d->size));
        case RS_DISK_STAT: return disk_stat(d);
        case RS_DISK_LIST: return DISK(syscall(SYS_getdents64, d->fd, d->buf, d->size));
        case RS_DISK_COPY: return disk_copy(d);
        case RS_DISK_CLOSE: return disk_close(d);
        case RS_DISK_RUN: return d->run(d);
        default: return disk_name(d);
        }
}
