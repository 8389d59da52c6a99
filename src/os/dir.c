/* SPDX-License-Identifier: MIT */
/* Folders, listed a buffer at a time. What a file system does not tell of an entry's kind is looked up in the same go,
 * on the same thread. One task at a time is inside. */

#include "os/file.h"

#include <dirent.h>
#include <stdio.h>

enum { LISTED = 32 * 1024 };

struct resha_dir {
        struct rs_opened opened;
        struct rs_disk disk; /* RUN */
        bool inside, ended;
        size_t at, size;                                   /* of what was listed: not delivered yet, all */
        _Alignas(struct dirent) char listed[LISTED + 256]; /* what the kernel has told; there is always a 0 behind */
        char path[];
};

/* ---- listing ---- */

static struct dirent *entry_at(resha_dir *dir, size_t at)
{
        return (struct dirent *)(void *)(dir->listed + at);
}

static void look_up(const resha_dir *dir, struct dirent *e)
{
        struct statx x;
        struct rs_disk d = { .call = RS_DISK_STAT,
                             .fd = dir->opened.fd,
                             .path = e->d_name,
                             .flags = AT_SYMLINK_NOFOLLOW,
                             .mask = STATX_TYPE,
                             .stat = &x };

        if (rs_sys_disk(&d) == 0)
                e->d_type = (unsigned char)IFTODT(x.stx_mode);
}

/* Should the folder have been removed, the kernel says ENOENT: nothing is in it any more. */
static ssize_t list_run(struct rs_disk *d)
{
        resha_dir *dir = RS_CONTAINER(d, resha_dir, disk);
        struct rs_disk list = { .call = RS_DISK_LIST, .fd = dir->opened.fd, .buf = dir->listed, .size = LISTED };
        ssize_t n = rs_sys_disk(&list);

        for (ssize_t at = 0; at < n; at += entry_at(dir, (size_t)at)->d_reclen)
                if (entry_at(dir, (size_t)at)->d_type == DT_UNKNOWN)
                        look_up(dir, entry_at(dir, (size_t)at));
        return n == -ENOENT ? 0 : n;
}

static bool is_itself(const char *name)
{
        return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* From what was listed. */
static bool take(resha_dir *dir, resha_dir_entry *ret_entry)
{
        while (dir->at < dir->size) {
                const struct dirent *e = entry_at(dir, dir->at);
                dir->at += e->d_reclen;
                if (is_itself(e->d_name))
                        continue;
                *ret_entry = (resha_dir_entry){ .name = e->d_name,
                                                .kind = rs_file_kind(DTTOIF((mode_t)e->d_type)),
                                                .inode = e->d_ino };
                return true;
        }
        return false;
}

static int list(resha_dir *dir, struct rs_use *u)
{
        dir->disk = (struct rs_disk){ .call = RS_DISK_RUN, .run = list_run };
        ssize_t n = rs_opened_do(&dir->opened, u, &dir->disk, "list");

        if (n < 0)
                return (int)n;
        dir->at = 0;
        dir->size = (size_t)n;
        dir->ended = n == 0;
        return 0;
}

static int failed(const resha_dir *dir, int rc)
{
        if (rc == -EBADF && dir->opened.closing)
                return rs_opened_refuse(&dir->opened, dir->opened.loop);
        return rs_path_failed(rc, "list", dir->path);
}

static int next(resha_dir *dir, struct rs_use *u, resha_dir_entry *ret_entry)
{
        if (take(dir, ret_entry))
                return rs_complete(dir->opened.loop, 1);
        if (dir->ended)
                return rs_complete(dir->opened.loop, 0);
        for (;;) {
                int rc = list(dir, u);
                if (rc == 0 && (dir->ended || take(dir, ret_entry)))
                        return !dir->ended;
                if (rc == 0)
                        rc = rs_opened_go_on(&dir->opened);
                if (rc < 0)
                        return failed(dir, rc);
        }
}

int resha_dir_next(resha_dir *d, resha_dir_entry *ret_entry)
{
        char text[RS_PATH_TEXT];
        struct rs_loop *l;
        struct rs_use u;
        int rc = rs_opened_enter(&d->opened, &u, &l);

        if (rc < 0)
                return rc;
        if (d->inside) {
                rc = resha_fail_at(-EBUSY, NULL, "another task lists %s", rs_path_text(d->path, text));
        } else {
                d->inside = true;
                rc = next(d, &u, ret_entry);
                d->inside = false;
        }
        rs_opened_leave(&d->opened, &u);
        return rc;
}

/* ---- the beginning and the end ---- */

int resha_dir_open(const char *path, resha_dir **ret_dir)
{
        static const resha_shown_kind kind = { .kind = "folder" };
        struct rs_disk d = { .call = RS_DISK_OPEN, .path = path, .flags = O_RDONLY | O_DIRECTORY };
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (rc == 0)
                rc = rs_path_check(path, "open folder");
        if (rc < 0)
                return rc;
        size_t size = strlen(path) + 1;
        resha_dir *dir = resha_malloc(sizeof *dir + size);
        if (!dir)
                return rs_path_failed(-ENOMEM, "open folder", path);
        memcpy(dir->path, path, size);
        dir->inside = dir->ended = false;
        dir->at = dir->size = 0;
        rc = (int)rs_operation_disk(l, &d, "open");
        if (rc < 0) {
                resha_free(dir);
                return rs_path_failed(rc, "open folder", path);
        }
        rs_opened_init(&dir->opened, l, rc, dir->path, &kind);
        RS_OPENED_HERE(&dir->opened.shown);
        *ret_dir = dir;
        return 0;
}

void resha_dir_close(resha_dir *d)
{
        if (d)
                (void)rs_opened_close(&d->opened); /* nothing was written: it has nothing to say */
}

void resha_dir_closep(resha_dir **d)
{
        resha_dir_close(*d);
        *d = NULL;
}
