/* SPDX-License-Identifier: MIT */
/* A file that is there in one step: written beside its name, synced, and renamed onto it. What fails leaves the old one
 * and nothing else.
 *
 *     look at the name        symbolic links are followed here; what is replaced is a regular file, or nothing
 *     open its folder         all that follows is relative to it: neither the folder nor the working folder may change
 *     make .resha-N.tmp       for its owner alone, where the mode of another file will be its own in the end
 *     write, in pieces        from memory, or by copying another file; a cancel between two undoes all
 *     mode, owner, sync, close
 *     rename, sync the folder
 *
 * All of a small file is one RUN of the disk, on one thread. Invariant: while fd is open the file beside is there, and
 * removed by whoever closes fd, but for the one way on which it is renamed. */

#include "os/file_replace.h"

#include <limits.h>
#include <stdio.h>

#include "sys/sys.h"

enum {
        LINKS_MAX = 40, /* as the kernel has it */
        NAMES_MAX = 100,
};

static struct rs_replace *of(struct rs_disk *d)
{
        return RS_CONTAINER(d, struct rs_replace, disk);
}

static ssize_t wrong(struct rs_replace *r, ssize_t code, const char *verb)
{
        r->verb = verb;
        return code;
}

/* ---- the name ---- */

static int look(struct rs_replace *r, struct statx *ret_stat)
{
        struct rs_disk d = { .call = RS_DISK_STAT,
                             .path = r->target,
                             .flags = AT_SYMLINK_NOFOLLOW,
                             .mask = STATX_BASIC_STATS,
                             .stat = ret_stat };

        return (int)rs_sys_disk(&d);
}

/* Where everybody may make names (/tmp), what is there may have been laid by another user: a link, to choose what is
 * replaced, or a file, whose owner and rights the new one would have. The kernel refuses both to who opens
 * (fs.protected_symlinks, fs.protected_regular); so do we, who do not open it. */
static int check_owner(struct rs_replace *r, const struct statx *there)
{
        char *slash = strrchr(r->target, '/');
        struct statx x;
        struct rs_disk d = { .call = RS_DISK_STAT, .path = ".", .mask = STATX_BASIC_STATS, .stat = &x };

        if (there->stx_uid == rs_sys_euid())
                return 0;
        if (slash)
                d.path = slash == r->target ? "/" : r->target;
        if (slash && slash != r->target)
                *slash = '\0';
        int rc = (int)rs_sys_disk(&d);
        if (slash)
                *slash = '/';
        if (rc < 0)
                return rc;
        r->foreign = (x.stx_mode & (S_ISVTX | S_IWOTH)) == (S_ISVTX | S_IWOTH) && there->stx_uid != x.stx_uid;
        return r->foreign ? -EACCES : 0;
}

/* What the symbolic link says takes its place in target. */
static int follow(struct rs_replace *r)
{
        size_t folder = strrchr(r->target, '/') ? (size_t)(strrchr(r->target, '/') - r->target) + 1 : 0;
        char *name = resha_malloc(folder + PATH_MAX);

        if (!name)
                return -ENOMEM;
        struct rs_disk d = { .call = RS_DISK_READLINK, .path = r->target, .buf = name + folder, .size = PATH_MAX - 1 };
        ssize_t n = rs_sys_disk(&d);
        if (n <= 0) {
                resha_free(name);
                return n < 0 ? (int)n : -ENOENT;
        }
        name[folder + (size_t)n] = '\0';
        if (name[folder] == '/')
                memmove(name, name + folder, (size_t)n + 1);
        else
                memcpy(name, r->target, folder);
        resha_free(r->target);
        r->target = name;
        return 0;
}

/* Finds what is to be replaced: *ret_stat, with mode 0 if there is nothing. */
static int find(struct rs_replace *r, struct statx *ret_stat)
{
        int rc = look(r, ret_stat);

        for (int i = 0; rc == 0 && S_ISLNK(ret_stat->stx_mode) && !r->exclusive; i++) {
                rc = i < LINKS_MAX ? check_owner(r, ret_stat) : -ELOOP;
                if (rc == 0)
                        rc = follow(r);
                if (rc == 0)
                        rc = look(r, ret_stat);
        }
        if (rc == -ENOENT) {
                ret_stat->stx_mode = 0;
                return 0;
        }
        if (rc < 0)
                return rc;
        if (r->exclusive)
                return -EEXIST;
        if (S_ISDIR(ret_stat->stx_mode))
                return -EISDIR;
        r->irregular = !S_ISREG(ret_stat->stx_mode);
        return r->irregular ? -EINVAL : check_owner(r, ret_stat);
}

/* Without the right to list it a folder can still be used, but not synced. */
static int open_folder(struct rs_replace *r)
{
        char *slash = strrchr(r->target, '/');
        struct rs_disk d = { .call = RS_DISK_OPEN, .path = ".", .flags = O_RDONLY | O_DIRECTORY };

        r->name = slash ? slash + 1 : r->target;
        if (!*r->name)
                return -EISDIR;
        if (slash == r->target)
                d.path = "/";
        else if (slash)
                d.path = r->target;
        if (slash && slash != r->target)
                *slash = '\0';
        ssize_t fd = rs_sys_disk(&d);
        if (fd == -EACCES) {
                d.flags = O_PATH | O_DIRECTORY;
                fd = rs_sys_disk(&d);
                r->no_folder_sync = true;
        }
        if (fd < 0)
                return (int)fd;
        r->dir = (int)fd;
        return 0;
}

/* ---- the file beside ---- */

static void next_name(struct rs_replace *r)
{
        snprintf(r->temp, sizeof r->temp, ".resha-%016llx.tmp", (unsigned long long)r->luck);
        r->luck = r->luck * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
}

static int make_temp(struct rs_replace *r)
{
        struct rs_disk d = { .call = RS_DISK_OPEN,
                             .fd = r->dir,
                             .path = r->temp,
                             .flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW,
                             .mode = r->exact ? 0600 : r->mode };
        ssize_t fd = -EEXIST;

        for (int i = 0; i < NAMES_MAX && fd == -EEXIST; i++) {
                next_name(r);
                fd = rs_sys_disk(&d);
        }
        if (fd < 0)
                return (int)fd;
        r->fd = (int)fd;
        return 0;
}

static void choose_mode(struct rs_replace *r, unsigned fallback, const struct statx *old)
{
        r->uid = r->gid = UINT_MAX;
        r->exact = r->mode != 0 || old->stx_mode != 0;
        if (old->stx_mode) {
                r->uid = old->stx_uid;
                r->gid = old->stx_gid;
        }
        r->inherits = r->mode == 0 && old->stx_mode != 0;
        if (r->mode == 0)
                r->mode = old->stx_mode ? old->stx_mode & 07777U : fallback;
}

static ssize_t begin(struct rs_replace *r)
{
        struct statx old;
        unsigned fallback = 0666;

        int rc = r->from ? rs_replace_open_source(r, &fallback) : 0;
        if (rc < 0)
                return wrong(r, rc, "open");
        rc = find(r, &old);
        if (rc < 0)
                return wrong(r, rc, r->exclusive ? "make" : "replace");
        if (r->from && old.stx_mode && rs_replace_same(r, &old))
                return r->same = true, -EINVAL;
        choose_mode(r, fallback, &old);
        rc = open_folder(r);
        if (rc < 0)
                return wrong(r, rc, "open the folder of");
        rc = make_temp(r);
        return rc < 0 ? wrong(r, rc, "write beside") : 0;
}

/* ---- what is in it ---- */

/* 1: there is more to write. */
static ssize_t write_piece(struct rs_replace *r)
{
        for (size_t left = RESHA_FILE_PIECE; left && r->done < r->size;) {
                struct rs_disk d = { .call = RS_DISK_WRITE,
                                     .fd = r->fd,
                                     .buf = (void *)(uintptr_t)(r->data + r->done),
                                     .size = r->size - r->done < left ? r->size - r->done : left,
                                     .offset = (int64_t)r->done };
                ssize_t n = rs_sys_disk(&d);
                if (n <= 0)
                        return n < 0 ? n : -EIO;
                r->done += (size_t)n;
                left -= (size_t)n;
        }
        return r->done < r->size;
}

/* ---- the end ---- */

/* Bits that would give another user's or group's rights go where that is not the owner; and what its group might do is
 * not for the members of ours, beyond what everybody may. */
static int set_rights(struct rs_replace *r)
{
        struct rs_sys_file mine;
        int64_t size;
        int rc = rs_sys_file_look(r->fd, &mine, &size);

        if (rc < 0)
                return rc;
        bool other_user = r->uid != UINT_MAX && r->uid != mine.uid;
        bool other_group = r->gid != UINT_MAX && r->gid != mine.gid;
        if ((other_user || other_group) && rs_sys_file_chown(r->fd, r->uid, r->gid) < 0) {
                if (other_user)
                        r->mode &= ~(unsigned)S_ISUID;
                if (other_group && rs_sys_file_chown(r->fd, UINT_MAX, r->gid) < 0)
                        r->mode &= ~(unsigned)S_ISGID & (r->inherits ? ~(unsigned)S_IRWXG | (r->mode << 3) : UINT_MAX);
        }
        return (mine.mode & 07777U) == r->mode ? 0 : rs_sys_file_chmod(r->fd, r->mode);
}

static int put_in_place(struct rs_replace *r)
{
        struct rs_disk d = { .call = RS_DISK_RENAME,
                             .fd = r->dir,
                             .fd2 = r->dir,
                             .path = r->temp,
                             .path2 = r->name,
                             .flags = r->exclusive ? RENAME_NOREPLACE : 0 };
        int rc = (int)rs_sys_disk(&d);

        if (rc != -EINVAL || !r->exclusive)
                return rc;
        /* A file system that cannot do that in one call: a second name, and the first one goes. */
        d = (struct rs_disk){ .call = RS_DISK_LINK, .fd = r->dir, .fd2 = r->dir, .path = r->temp, .path2 = r->name };
        rc = (int)rs_sys_disk(&d);
        if (rc == 0) {
                d = (struct rs_disk){ .call = RS_DISK_UNLINK, .fd = r->dir, .path = r->temp };
                (void)rs_sys_disk(&d);
        }
        return rc;
}

static bool cannot_be_synced(int rc)
{
        return rc == -EINVAL || rc == -EOPNOTSUPP || rc == -ENOSYS;
}

static ssize_t finish(struct rs_replace *r)
{
        struct rs_disk d = { .call = RS_DISK_SYNC, .fd = r->fd };
        int rc = r->exact ? set_rights(r) : 0;

        if (rc < 0)
                return wrong(r, rc, "set the mode of");
        rc = r->no_sync ? 0 : (int)rs_sys_disk(&d);
        if (rc < 0 && !cannot_be_synced(rc))
                return wrong(r, rc, "sync");
        d = (struct rs_disk){ .call = RS_DISK_CLOSE, .fd = r->fd };
        rc = (int)rs_sys_disk(&d);
        r->fd = -1;
        r->made = true;
        if (rc < 0)
                return wrong(r, rc, "close");
        rc = put_in_place(r);
        if (rc < 0)
                return wrong(r, rc, r->exclusive ? "make" : "replace");
        r->made = false;
        d = (struct rs_disk){ .call = RS_DISK_SYNC, .fd = r->dir };
        rc = r->no_sync || r->no_folder_sync ? 0 : (int)rs_sys_disk(&d);
        r->replaced = true;
        return rc < 0 && !cannot_be_synced(rc) ? rc : 0;
}

/* All that is open is closed, and what is beside removed. */
static void drop(struct rs_replace *r)
{
        if (r->source >= 0)
                rs_sys_close(r->source);
        if (r->fd >= 0)
                rs_sys_close(r->fd);
        if (r->fd >= 0 || r->made) {
                struct rs_disk d = { .call = RS_DISK_UNLINK, .fd = r->dir, .path = r->temp };
                (void)rs_sys_disk(&d);
        }
        if (r->dir >= 0)
                rs_sys_close(r->dir);
        r->source = r->fd = r->dir = -1;
        r->made = false;
}

static ssize_t replace_run(struct rs_disk *d)
{
        struct rs_replace *r = of(d);
        ssize_t rc = r->dir < 0 ? begin(r) : 0;

        if (rc == 0)
                rc = r->from ? rs_replace_copy_piece(r) : write_piece(r);
        if (rc < 0 && !r->verb)
                r->verb = "write";
        if (rc == 0)
                rc = finish(r);
        if (rc <= 0)
                drop(r);
        return rc;
}

static ssize_t undo_run(struct rs_disk *d)
{
        drop(of(d));
        return 0;
}

/* ---- records ---- */

static __attribute__((noinline, cold)) int failed(struct rs_replace *r, int rc)
{
        const char *verb = r->verb ? r->verb : r->from ? "copy" : "save";
        char text[RS_PATH_TEXT];

        if (r->found.refused)
                return rs_found_refused(&r->found, r->from);
        rs_path_text(r->source_failed ? r->from : r->path, text);
        if (r->irregular)
                return resha_fail_at(
                        rc, NULL, "%s %s: it is no regular file; %s a device by resha_file_open(), a FIFO as a stream",
                        r->source_failed ? "copy" : "replace", text, r->source_failed ? "read" : "write");
        if (r->foreign)
                return resha_fail_at(rc, NULL,
                                     "replace %s: another user has made it, in a folder where all may (remove "
                                     "it, or save in a folder of your own)",
                                     text);
        if (r->same)
                return resha_fail_at(rc, NULL, "copy to %s: it is the file that is to be copied", text);
        if (r->replaced)
                return resha_fail_at(rc, NULL, "sync the folder of %s: %s; the file is the new one, but it may be lost",
                                     text, resha_strerror(rc));
        if (r->source_failed)
                return rs_path_failed(rc, verb, r->from);
        return rs_path_failed(rc, verb, r->path);
}

int rs_replace(struct rs_loop *l, struct rs_replace *r)
{
        r->target = resha_strdup(r->path);
        if (!r->target)
                return rs_path_failed(-ENOMEM, "save", r->path);
        r->disk = (struct rs_disk){ .call = RS_DISK_RUN, .run = replace_run };
        r->luck = l->backend->ops->random(l->backend);
        r->source = r->fd = r->dir = -1;
        int rc = rs_disk_pieces(l, &r->disk, r->from ? "copy" : "save");
        if (r->dir >= 0) {
                r->disk.run = undo_run;
                rs_disk_undo(l, &r->disk, &r->dir);
        }
        resha_free(r->buffer);
        resha_free(r->target);
        return rc < 0 ? failed(r, rc) : 0;
}

int rs_replace_opts(struct rs_replace *r, const resha_save_opts *opts)
{
        if (!opts)
                return 0;
        if (!rs_reserved_zero(opts->_reserved) || (opts->mode & ~07777U))
                return resha_fail_at(-EINVAL, NULL, "save options: a mode of at most 07777, reserved words zero");
        r->mode = opts->mode;
        r->no_sync = opts->no_sync;
        r->exclusive = opts->exclusive;
        return 0;
}

int resha_file_save(const char *path, const void *data, size_t size, const resha_save_opts *opts)
{
        struct rs_replace r = { .path = path, .data = data, .size = size };
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (rc == 0)
                rc = rs_path_check(path, "save");
        if (rc == 0)
                rc = rs_replace_opts(&r, opts);
        return rc < 0 ? rc : rs_replace(l, &r);
}
