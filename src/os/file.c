/* SPDX-License-Identifier: MIT */
/* Files: opening and closing. What reads and writes is in file_io.c, whole files in file_load.c and file_replace.c.
 *
 * Opening is two calls of the kernel in one go, on one thread: open(2), and a look at what it was. What is no file (a
 * folder, FIFO, socket, terminal) is closed again there. Memory for the file is there before: one that was opened must
 * not be lost. */

#include "os/file.h"

#include <stdio.h>
#include <stdlib.h>

#include "sys/sys.h"
#include "sys/terminal.h"

enum {
        FLAGS = O_ACCMODE | O_CREAT | O_EXCL | O_TRUNC | O_APPEND | O_SYNC | O_DSYNC | O_DIRECT | O_NOFOLLOW |
                O_NOATIME | O_NOCTTY | O_CLOEXEC | O_NONBLOCK,
};

/* ---- what is opened ---- */

static bool is_refused(const struct rs_found *found)
{
        return S_ISDIR(found->mode) || S_ISFIFO(found->mode) || S_ISSOCK(found->mode) || found->terminal;
}

int rs_found_refused(const struct rs_found *found, const char *path)
{
        char text[RS_PATH_TEXT];

        rs_path_text(path, text);
        if (S_ISDIR(found->mode))
                return resha_fail_at(-EISDIR, NULL, "open %s: it is a folder; resha_dir_open() lists it", text);
        if (S_ISFIFO(found->mode))
                return resha_fail_at(-EINVAL, NULL,
                                     "open %s: it is a FIFO; open(2) with O_NONBLOCK and resha_stream_adopt()", text);
        if (S_ISSOCK(found->mode))
                return resha_fail_at(-EINVAL, NULL, "open %s: it is a socket; resha_unix_connect()", text);
        return resha_fail_at(-EINVAL, NULL, "open %s: it is a terminal; resha_stream_stdio() or resha_stream_adopt()",
                             text);
}

/* Sockets, and FIFOs that nobody reads, say ENXIO; other things do so, too. */
static ssize_t no_such_device(const struct rs_disk *d, struct rs_found *found)
{
        struct statx x;
        struct rs_disk look = { .call = RS_DISK_STAT, .fd = d->fd, .path = d->path, .mask = STATX_TYPE, .stat = &x };

        if (rs_sys_disk(&look) == 0)
                found->mode = x.stx_mode;
        found->refused = is_refused(found);
        return -ENXIO;
}

ssize_t rs_file_open_checked(struct rs_disk *d, struct rs_found *ret_found)
{
        struct rs_sys_file file;
        ssize_t fd = rs_sys_disk(d);

        *ret_found = (struct rs_found){ 0 };
        if (fd < 0)
                return fd == -ENXIO ? no_such_device(d, ret_found) : fd;
        int rc = rs_sys_file_look((int)fd, &file, &ret_found->size);
        if (rc == 0) {
                ret_found->mode = file.mode;
                ret_found->device = file.device;
                ret_found->inode = file.inode;
                ret_found->terminal = S_ISCHR(file.mode) && rs_terminal_is((int)fd);
                ret_found->refused = is_refused(ret_found);
                rc = ret_found->refused ? -EINVAL : 0;
        }
        if (rc == 0)
                return fd;
        rs_sys_close((int)fd);
        return rc;
}

/* ---- opening ---- */

struct opening {
        struct rs_disk disk; /* RUN */
        struct rs_disk open;
        struct rs_found found;
        char temp[32]; /* its name, should it need one for a moment */
};

static resha_file *file_new(const char *head, const char *tail, int flags)
{
        size_t a = strlen(head), b = strlen(tail) + 1;
        resha_file *f = resha_malloc(sizeof *f + a + b);

        if (!f)
                return NULL;
        memcpy(f->path, head, a);
        memcpy(f->path + a, tail, b);
        f->flags = flags;
        f->sync_failed = 0;
        return f;
}

static int opened(struct rs_loop *l, resha_file *f, ssize_t fd, resha_file **ret_file)
{
        static const resha_shown_kind kind = { .kind = "file" };

        if (fd < 0) {
                resha_free(f);
                return (int)fd;
        }
        rs_opened_init(&f->opened, l, (int)fd, f->path, &kind);
        *ret_file = f;
        return 0;
}

static ssize_t open_run(struct rs_disk *d)
{
        struct opening *o = RS_CONTAINER(d, struct opening, disk);

        o->open.now = d->now;
        return rs_file_open_checked(&o->open, &o->found);
}

int resha_file_open(const char *path, int flags, unsigned mode, resha_file **ret_file)
{
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (rc == 0)
                rc = rs_path_check(path, "open");
        if (rc < 0)
                return rc;
        if ((flags & ~FLAGS) || (flags & O_ACCMODE) == O_ACCMODE || (mode & ~07777U))
                return resha_fail_at(-EINVAL, NULL, "open a file with flags 0x%x, mode 0%o: not among those it takes",
                                     (unsigned)flags, mode);
        resha_file *f = file_new(path, "", flags);
        if (!f)
                return rs_path_failed(-ENOMEM, "open", path);
        struct opening o = {
                .disk = { .call = RS_DISK_RUN, .run = open_run, .quick = true, .opens = true },
                .open = { .call = RS_DISK_OPEN, .path = path, .flags = (flags & ~O_NONBLOCK) | O_NOCTTY, .mode = mode },
        };
        rc = opened(l, f, rs_operation_disk(l, &o.disk, "open"), ret_file);
        if (rc == 0) {
                RS_OPENED_HERE(&f->opened.shown);
                return 0;
        }
        return o.found.refused ? rs_found_refused(&o.found, path) : rs_path_failed(rc, "open", path);
}

/* ---- without a name ---- */

/* Where there is no O_TMPFILE: some file systems, such as those of other machines. */
static ssize_t temp_by_name(const char *folder, const char *name)
{
        ssize_t dir =
                rs_sys_disk(&(struct rs_disk){ .call = RS_DISK_OPEN, .path = folder, .flags = O_PATH | O_DIRECTORY });

        if (dir < 0)
                return dir;
        ssize_t fd = rs_sys_disk(&(struct rs_disk){ .call = RS_DISK_OPEN,
                                                    .fd = (int)dir,
                                                    .path = name,
                                                    .flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW,
                                                    .mode = 0600 });
        ssize_t rc =
                fd < 0 ? fd : rs_sys_disk(&(struct rs_disk){ .call = RS_DISK_UNLINK, .fd = (int)dir, .path = name });
        rs_sys_close((int)dir);
        if (rc < 0 && fd >= 0)
                rs_sys_close((int)fd);
        return rc < 0 ? rc : fd;
}

static ssize_t temp_run(struct rs_disk *d)
{
        struct opening *o = RS_CONTAINER(d, struct opening, disk);
        ssize_t fd = rs_sys_disk(&o->open);

        return fd == -EOPNOTSUPP || fd == -EISDIR || fd == -EINVAL ? temp_by_name(o->open.path, o->temp) : fd;
}

int resha_file_temp(const char *dir, resha_file **ret_file)
{
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (rc < 0)
                return rc;
        const char *tmpdir = dir ? dir : secure_getenv("TMPDIR"), *folder = tmpdir && *tmpdir ? tmpdir : "/tmp";
        if (dir)
                rc = rs_path_check(folder = dir, "make a temporary file in");
        if (rc < 0)
                return rc;
        resha_file *f = file_new(folder, "/(temporary file)", O_RDWR);
        if (!f)
                return rs_path_failed(-ENOMEM, "make a temporary file in", folder);
        struct opening o = {
                .disk = { .call = RS_DISK_RUN, .run = temp_run, .opens = true },
                .open = { .call = RS_DISK_OPEN, .path = folder, .flags = O_TMPFILE | O_EXCL | O_RDWR, .mode = 0600 },
        };
        snprintf(o.temp, sizeof o.temp, ".resha-%016llx.tmp", (unsigned long long)l->backend->ops->random(l->backend));
        rc = opened(l, f, rs_operation_disk(l, &o.disk, "open"), ret_file);
        if (rc < 0)
                return rs_path_failed(rc, "make a temporary file in", folder);
        RS_OPENED_HERE(&f->opened.shown);
        return 0;
}

/* ---- the end ---- */

int resha_file_close(resha_file *f)
{
        return f ? rs_opened_close(&f->opened) : 0;
}

void resha_file_closep(resha_file **f)
{
        struct rs_loop *l = rs_loop_current;
        bool written = *f && ((*f)->flags & O_ACCMODE) != O_RDONLY; /* else nothing can be lost */
        int rc = resha_file_close(*f);

        if (rc < 0 && l && written)
                rs_report(l, RESHA_REPORT_LOST_ERROR, rc, l->current, "%s; nobody saw it: call resha_file_close()",
                          resha_error_of(rc)->text);
        *f = NULL;
}
