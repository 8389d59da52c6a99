/* SPDX-License-Identifier: MIT */
/* Copying: where the bytes of a replacement come from another file. By the kernel, which lets both share what they have
 * in common where the file system can; through a buffer where it does not (another file system, /proc, an old
 * kernel). */

#include "os/file_replace.h"

#include <sys/sysmacros.h>

#include "sys/sys.h"

enum { COPIED = 128 * 1024 };

int rs_replace_open_source(struct rs_replace *r, unsigned *ret_mode)
{
        struct rs_disk d = { .call = RS_DISK_OPEN, .path = r->from, .flags = O_RDONLY | O_NOCTTY };
        ssize_t fd = rs_file_open_checked(&d, &r->found);

        r->source_failed = fd < 0;
        if (fd < 0)
                return (int)fd;
        if (!S_ISREG(r->found.mode)) {
                rs_sys_close((int)fd);
                r->source_failed = r->irregular = true;
                return -EINVAL;
        }
        r->source = (int)fd;
        *ret_mode = r->found.mode & 0777U;
        return 0;
}

bool rs_replace_same(const struct rs_replace *r, const struct statx *old)
{
        return old->stx_ino == r->found.inode && makedev(old->stx_dev_major, old->stx_dev_minor) == r->found.device;
}

/* By the kernel: bytes; 0: the end; -EOPNOTSUPP: not these two. */
static ssize_t copy_by_kernel(struct rs_replace *r, size_t size)
{
        struct rs_disk d = { .call = RS_DISK_COPY,
                             .fd = r->source,
                             .fd2 = r->fd,
                             .offset = r->offset,
                             .offset2 = r->offset,
                             .size = size };
        ssize_t n = r->buffer ? -EOPNOTSUPP : rs_sys_disk(&d);

        if (n == 0 && r->offset > 0 && r->offset >= r->found.size)
                return 0;
        switch (n) {
        case 0: /* also said of what has bytes, but does not tell its size */
        case -EXDEV:
        case -EINVAL:
        case -ENOSYS:
        case -EPERM:
        case -EBADF: return -EOPNOTSUPP;
        default: return n;
        }
}

static ssize_t copy_by_hand(struct rs_replace *r, size_t size)
{
        if (!r->buffer)
                r->buffer = resha_malloc(COPIED);
        if (!r->buffer)
                return -ENOMEM;
        ssize_t n = rs_sys_pread(r->source, r->buffer, size < COPIED ? size : COPIED, r->offset);
        r->source_failed = n < 0;
        for (ssize_t done = 0; done < n;) {
                struct rs_disk d = { .call = RS_DISK_WRITE,
                                     .fd = r->fd,
                                     .buf = r->buffer + done,
                                     .size = (size_t)(n - done),
                                     .offset = r->offset + done };
                ssize_t rc = rs_sys_disk(&d);
                if (rc <= 0)
                        return rc < 0 ? rc : -EIO;
                done += rc;
        }
        return n;
}

ssize_t rs_replace_copy_piece(struct rs_replace *r)
{
        for (size_t left = RESHA_FILE_PIECE; left;) {
                ssize_t n = copy_by_kernel(r, left);
                if (n == -EOPNOTSUPP)
                        n = copy_by_hand(r, left);
                if (n <= 0) {
                        r->verb = n < 0 ? r->source_failed ? "read" : "write" : NULL;
                        return n;
                }
                r->offset += n;
                left -= (size_t)n;
        }
        return 1;
}

int resha_file_copy(const char *from, const char *to, const resha_save_opts *opts, uint64_t *ret_bytes)
{
        struct rs_replace r = { .path = to, .from = from };
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (rc == 0)
                rc = rs_path_check(from, "copy");
        if (rc == 0)
                rc = rs_path_check(to, "copy to");
        if (rc == 0)
                rc = rs_replace_opts(&r, opts);
        if (rc == 0)
                rc = rs_replace(l, &r);
        if (rc == 0 && ret_bytes)
                *ret_bytes = (uint64_t)r.offset;
        return rc;
}
