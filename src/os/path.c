/* SPDX-License-Identifier: MIT */
/* Names: what they lead to, and how they are made, changed and removed. One operation of the disk for each call; a name
 * is the caller's until that has ended. */

#include "os/file.h"

#include <limits.h>
#include <stdio.h>

/* The start of each call. */
static int enter(const char *path, const char *verb, struct rs_loop **ret_loop)
{
        int rc = rs_enter(ret_loop);

        return rc < 0 ? rc : rs_path_check(path, verb);
}

static int enter_two(const char *path, const char *other, const char *verb, struct rs_loop **ret_loop)
{
        int rc = enter(path, verb, ret_loop);

        return rc < 0 ? rc : rs_path_check(other, verb);
}

static int one_name(struct rs_loop *l, struct rs_disk *d, const char *verb)
{
        int rc = (int)rs_operation_disk(l, d, verb);

        return rc < 0 ? rs_path_failed(rc, verb, d->path) : 0;
}

int resha_path_stat(const char *path, bool follow, resha_stat *ret_stat)
{
        struct statx x;
        struct rs_disk d = { .call = RS_DISK_STAT,
                             .path = path,
                             .flags = follow ? 0 : AT_SYMLINK_NOFOLLOW,
                             .mask = STATX_BASIC_STATS | STATX_BTIME,
                             .stat = &x };
        struct rs_loop *l;
        int rc = enter(path, "stat", &l);

        if (rc == 0)
                rc = one_name(l, &d, "stat");
        if (rc == 0)
                rs_stat_tell(&x, ret_stat);
        return rc;
}

/* ---- two names ---- */

int resha_path_rename(const char *from, const char *to, bool exclusive)
{
        struct rs_disk d = {
                .call = RS_DISK_RENAME, .path = from, .path2 = to, .flags = exclusive ? RENAME_NOREPLACE : 0
        };
        struct rs_loop *l;
        int rc = enter_two(from, to, "rename", &l);

        if (rc < 0)
                return rc;
        rc = (int)rs_operation_disk(l, &d, "rename");
        return rc < 0 ? rs_path_failed_two(rc, "rename", from, to) : 0;
}

int resha_path_link(const char *target, const char *path)
{
        struct rs_disk d = { .call = RS_DISK_LINK, .path = target, .path2 = path };
        struct rs_loop *l;
        int rc = enter_two(target, path, "link", &l);

        if (rc < 0)
                return rc;
        rc = (int)rs_operation_disk(l, &d, "link");
        return rc < 0 ? rs_path_failed_two(rc, "link", target, path) : 0;
}

int resha_path_symlink(const char *target, const char *path)
{
        struct rs_disk d = { .call = RS_DISK_SYMLINK, .path = target, .path2 = path };
        struct rs_loop *l;
        int rc = enter_two(path, target, "make a symbolic link of", &l);

        if (rc < 0)
                return rc;
        rc = (int)rs_operation_disk(l, &d, "symlink");
        return rc < 0 ? rs_path_failed(rc, "make a symbolic link", path) : 0;
}

ssize_t resha_path_readlink(const char *path, char *buf, size_t size)
{
        enum { MOST = 64 * 1024 }; /* no link says more; and the kernel takes an int for the size */
        struct rs_disk d = { .call = RS_DISK_READLINK, .path = path, .buf = buf, .size = size < MOST ? size : MOST };
        char text[RS_PATH_TEXT];
        struct rs_loop *l;
        int rc = enter(path, "read the symbolic link", &l);

        if (rc < 0)
                return rc;
        if (size < 2)
                return resha_fail_at(-EINVAL, NULL, "read the symbolic link %s into %zu bytes: 2 or more",
                                     rs_path_text(path, text), size);
        ssize_t n = rs_operation_disk(l, &d, "readlink");
        if (n == -EINVAL)
                return resha_fail_at(-EINVAL, NULL, "%s is no symbolic link", rs_path_text(path, text));
        if (n < 0)
                return rs_path_failed((int)n, "read the symbolic link", path);
        if ((size_t)n == d.size)
                return resha_fail_at(-EMSGSIZE, NULL, "the symbolic link %s says more than %zu bytes",
                                     rs_path_text(path, text), size - 1);
        buf[n] = '\0';
        return n;
}

/* ---- removing ---- */

int resha_path_unlink(const char *path)
{
        struct rs_disk d = { .call = RS_DISK_UNLINK, .path = path };
        char text[RS_PATH_TEXT];
        struct rs_loop *l;
        int rc = enter(path, "remove", &l);

        if (rc < 0)
                return rc;
        rc = (int)rs_operation_disk(l, &d, "unlink");
        if (rc == -EISDIR)
                return resha_fail_at(rc, NULL, "remove %s: it is a folder; resha_path_rmdir()",
                                     rs_path_text(path, text));
        return rc < 0 ? rs_path_failed(rc, "remove", path) : 0;
}

int resha_path_rmdir(const char *path)
{
        struct rs_disk d = { .call = RS_DISK_UNLINK, .path = path, .flags = AT_REMOVEDIR };
        struct rs_loop *l;
        int rc = enter(path, "remove folder", &l);

        return rc < 0 ? rc : one_name(l, &d, "remove folder");
}

/* ---- folders ---- */

struct mkdir {
        struct rs_disk disk; /* RUN */
        char *path;          /* a copy, for it is cut */
        unsigned mode;
};

/* One of them, which may be there; mkdir(2) may have another reason for what is there already. */
static int make_one(const char *path, unsigned mode)
{
        struct statx x;
        struct rs_disk d = { .call = RS_DISK_MKDIR, .path = path, .mode = mode };
        struct rs_disk look = { .call = RS_DISK_STAT, .path = path, .mask = STATX_TYPE, .stat = &x };
        int rc = (int)rs_sys_disk(&d), seen;

        if (rc == 0 || rc == -ENOENT)
                return rc;
        seen = (int)rs_sys_disk(&look);
        if (seen == 0)
                return S_ISDIR(x.stx_mode) ? 0 : rc;
        return seen == -ENOENT || seen == -ENOTDIR ? rc : seen;
}

static ssize_t mkdir_run(struct rs_disk *d)
{
        struct mkdir *m = RS_CONTAINER(d, struct mkdir, disk);
        int rc = make_one(m->path, m->mode);

        if (rc != -ENOENT)
                return rc;
        rc = 0;
        for (char *at = m->path + 1; rc == 0 && *at; at++) {
                if (*at != '/' || at[-1] == '/')
                        continue;
                *at = '\0';
                rc = make_one(m->path, 0777);
                *at = '/';
        }
        return rc < 0 ? rc : make_one(m->path, m->mode);
}

static int make_all(struct rs_loop *l, const char *path, unsigned mode)
{
        struct mkdir m = { .disk = { .call = RS_DISK_RUN, .run = mkdir_run },
                           .path = resha_strdup(path),
                           .mode = mode };

        for (size_t n = m.path ? strlen(path) : 0; n > 1 && m.path[n - 1] == '/'; n--)
                m.path[n - 1] = '\0'; /* or the last one would be among those above it */
        int rc = m.path ? (int)rs_operation_disk(l, &m.disk, "mkdir") : -ENOMEM;
        resha_free(m.path);
        return rc < 0 ? rs_path_failed(rc, "make folder", path) : 0;
}

int resha_path_mkdir(const char *path, unsigned mode, bool parents)
{
        struct rs_disk d = { .call = RS_DISK_MKDIR, .path = path, .mode = mode };
        char text[RS_PATH_TEXT];
        struct rs_loop *l;
        int rc = enter(path, "make folder", &l);

        if (rc == 0 && (mode & ~07777U))
                return resha_fail_at(-EINVAL, NULL, "make folder %s with mode 0%o: at most 07777",
                                     rs_path_text(path, text), mode);
        if (rc < 0)
                return rc;
        return parents ? make_all(l, path, mode) : one_name(l, &d, "make folder");
}
