/* SPDX-License-Identifier: MIT */
/* Calls about files and names; see sys.c for what holds for all system calls.
 *
 * They block, on disks and on servers far away, but never on another process that has not come: an open has O_NONBLOCK,
 * which a FIFO or a device needs, and which is taken away again from files and folders, where it means nothing but that
 * some file systems say EAGAIN. There is one wait for others even so: a file that another process holds a lease of
 * (fcntl(2), F_SETLEASE) says EAGAIN until that has been given up or taken away, 45 s later at most. */

#include "sys/disk.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/stat.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
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
        if (!(flags & O_NONBLOCK) && fstat((int)fd, &st) == 0 && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
                (void)fcntl((int)fd, F_SETFL, flags & ~O_NONBLOCK);
        int up = rs_sys_move_up((int)fd);
        if (RS_LIKELY(up > STDERR_FILENO))
                return up;
        rs_sys_close(up); /* a standard one is free, and nothing else: that is for others, and 0 has a meaning here */
        return -EMFILE;
}

/* ---- without waiting ---- */

/* File systems whose files open without another machine or process that has a say. */
static bool is_local(int dir, const char *path)
{
        static const unsigned kinds[] = {
                0xef53 /* ext2 to ext4 */,  0x58465342 /* XFS */,   0x9123683e /* btrfs */, 0x01021994 /* tmpfs */,
                0x794c7630 /* overlayfs */, 0xf2f52010 /* F2FS */,  0x2fc12fc1 /* ZFS */,   0xca451a4e /* bcachefs */,
                0x73717368 /* squashfs */,  0xe0f5e1e2 /* EROFS */,
        };
        struct statfs st;

        if ((dir == AT_FDCWD ? statfs(path, &st) : fstatfs(dir, &st)) < 0)
                return false;
        for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
                if ((unsigned)st.f_type == kinds[i])
                        return true;
        return false;
}

/* Of the root and of the working folder. Neither changes often, and statfs(2) is half an open: it is asked again after
 * a while. */
static bool starts_local(int dir, const char *path)
{
        enum { AGAIN = 64 };
        static atomic_uint asked[2];
        static atomic_bool local[2];
        bool root = path[0] == '/';

        if (!root && dir != AT_FDCWD)
                return is_local(dir, "");
        if (atomic_fetch_add_explicit(&asked[root], 1, memory_order_relaxed) % AGAIN == 0)
                atomic_store_explicit(&local[root], is_local(AT_FDCWD, root ? "/" : "."), memory_order_relaxed);
        return atomic_load_explicit(&local[root], memory_order_relaxed);
}

/* What the kernel has names and pages of at hand, on the file system where the path begins: that of another mount may
 * ask somebody when it is opened, which no flag prevents, and opening for writing may copy the file (overlays) or read
 * what its owner may use of the disk. -EAGAIN: anything else. */
static ssize_t open_now(const struct rs_disk *d)
{
        struct open_how how = { .flags = (uint64_t)(unsigned)(d->flags | O_CLOEXEC | O_NONBLOCK),
                                .resolve = RESOLVE_CACHED | RESOLVE_NO_XDEV };
        int dir = folder(d->fd);

        if ((d->flags & O_ACCMODE) != O_RDONLY || d->flags & (O_CREAT | O_TRUNC | O_PATH) ||
            !starts_local(dir, d->path))
                return -EAGAIN;
        ssize_t fd = DISK(syscall(SYS_openat2, dir, d->path, &how, sizeof how));
        return fd == -EXDEV || fd == -EINVAL || fd == -ENOSYS || fd == -EPERM ? -EAGAIN : fd;
}

static ssize_t read_now(const struct rs_disk *d)
{
        struct iovec part = { d->buf, d->size };
        ssize_t n = DISK(preadv2(d->fd, &part, 1, d->offset < 0 ? -1 : d->offset, RWF_NOWAIT));

        return n == -EOPNOTSUPP || n == -ENOSYS || n == -EINVAL ? -EAGAIN : n;
}

/* ---- waiting ---- */

/* EAGAIN is somebody's lease of a file; of a device it is what that has to say. */
static ssize_t disk_open(const struct rs_disk *d)
{
        int flags = d->flags | O_CLOEXEC | O_NONBLOCK;
        int64_t end = 0;
        struct stat st;

        if (d->now)
                return rs_sys_disk_opened(open_now(d), d->flags);
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
        if (d->now)
                return read_now(d);
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

/* ---- the limit of sizes ---- */

bool rs_sys_disk_limited(void)
{
        struct rlimit limit;

        return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

ssize_t rs_sys_disk_quietly(struct rs_disk *d)
{
        static const struct timespec at_once = { 0 };
        sigset_t set;

        if (!rs_sys_disk_limited())
                return rs_sys_disk(d);
        bool blocked = rs_sys_signal_block(SIGXFSZ, true);
        ssize_t result = rs_sys_disk(d);
        if (blocked)
                return result;
        sigemptyset(&set);
        sigaddset(&set, SIGXFSZ);
        (void)sigtimedwait(&set, NULL, &at_once);
        (void)rs_sys_signal_block(SIGXFSZ, false);
        return result;
}
