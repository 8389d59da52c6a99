/* SPDX-License-Identifier: MIT */
/* What files are: kinds, and what the kernel tells of one. */

#include "os/file.h"

enum resha_file_kind rs_file_kind(mode_t mode)
{
        switch (mode & S_IFMT) {
        case S_IFREG: return RESHA_FILE_REGULAR;
        case S_IFDIR: return RESHA_FILE_FOLDER;
        case S_IFLNK: return RESHA_FILE_SYMLINK;
        case S_IFIFO: return RESHA_FILE_FIFO;
        case S_IFSOCK: return RESHA_FILE_SOCKET;
        case S_IFCHR: return RESHA_FILE_CHARACTER_DEVICE;
        case S_IFBLK: return RESHA_FILE_BLOCK_DEVICE;
        default: return RESHA_FILE_UNKNOWN;
        }
}

/* A file system may hold any number of seconds. */
static int64_t ns_of(const struct statx_timestamp *t)
{
        int64_t ns;

        if (__builtin_mul_overflow(t->tv_sec, INT64_C(1000000000), &ns) || __builtin_add_overflow(ns, t->tv_nsec, &ns))
                return t->tv_sec < 0 ? INT64_MIN + 1 : INT64_MAX;
        return ns;
}

static uint64_t device(uint32_t major, uint32_t minor)
{
        return (uint64_t)(major & 0xfffff000U) << 32 | (uint64_t)(major & 0xfffU) << 8 |
               (uint64_t)(minor & 0xffffff00U) << 12 | (minor & 0xffU); /* as glibc's makedev() */
}

void rs_stat_tell(const struct statx *x, resha_stat *ret_stat)
{
        *ret_stat = (resha_stat){
                .kind = rs_file_kind(x->stx_mode),
                .mode = x->stx_mode & 07777U,
                .size = x->stx_size > INT64_MAX ? INT64_MAX : (int64_t)x->stx_size,
                .allocated = x->stx_blocks > INT64_MAX / 512 ? INT64_MAX : (int64_t)x->stx_blocks * 512,
                .device = device(x->stx_dev_major, x->stx_dev_minor),
                .inode = x->stx_ino,
                .links = x->stx_nlink,
                .represents = device(x->stx_rdev_major, x->stx_rdev_minor),
                .uid = x->stx_uid,
                .gid = x->stx_gid,
                .read_ns = ns_of(&x->stx_atime),
                .written_ns = ns_of(&x->stx_mtime),
                .changed_ns = ns_of(&x->stx_ctime),
                .made_ns = x->stx_mask & STATX_BTIME ? ns_of(&x->stx_btime) : INT64_MIN,
        };
}
