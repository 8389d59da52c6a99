/* SPDX-License-Identifier: MIT */
/* A whole file in one go: opened, looked at, read and closed on one thread, as a plain program would do it, and into
 * memory of the size that the file says. Only a large one is read in several goes, so that a cancel is seen.
 *
 * What a file says of its size is a hint: one may grow or shrink while it is read, and those of /proc say 0, of /sys
 * 4096. One byte more than that is asked for: a regular file that gives exactly its size has ended. Others are read
 * until they give 0 bytes.
 *
 * There is room for as much as the last small file had, taken by the loop, whose tasks free it: memory that one thread
 * takes and another gives back costs the allocator twice. Files that lie together are often alike.
 *
 * One that the kernel has in its memory is read by the loop itself, if it is small: see io/kernel_disk.c. */

#include "os/file.h"

#include <limits.h>

#include "sys/sys.h"

enum {
        UNKNOWN_SIZE = 4096,  /* the first room for what does not say its size */
        QUICK_SIZE = 65536,   /* what the loop copies by itself, at most */
        TRUSTED_SIZE = 65536, /* a file that says more than this is as large: none of /sys does */
};

struct load {
        struct rs_disk disk; /* RUN */
        const char *path;
        const char *verb; /* what failed */
        struct rs_found found;
        size_t most;
        int fd;
        bool blocking;         /* O_NONBLOCK was taken away */
        char *data;            /* capacity + 1 bytes */
        size_t size, capacity; /* without the 0 */
};

static ssize_t begin(struct load *j)
{
        struct rs_disk d = {
                .call = RS_DISK_OPEN, .path = j->path, .flags = O_RDONLY | O_NOCTTY | O_NONBLOCK, .now = j->disk.now
        };
        ssize_t fd = rs_file_open_checked(&d, &j->found);

        if (fd < 0)
                return fd;
        j->fd = (int)fd;
        j->verb = "read";
        size_t size = j->found.size > 0 ? (size_t)j->found.size : 0;
        if (size > j->most && size > TRUSTED_SIZE && S_ISREG(j->found.mode))
                return -EMSGSIZE;
        size_t capacity = size ? (size < j->most ? size : j->most) + 1 : UNKNOWN_SIZE;
        if (j->data && j->capacity >= capacity)
                return 0;
        resha_free(j->data);
        j->capacity = capacity;
        j->data = resha_malloc(j->capacity + 1);
        return j->data ? 0 : -ENOMEM;
}

static ssize_t make_room(struct load *j)
{
        if (j->size > j->most)
                return -EMSGSIZE;
        if (j->size < j->capacity)
                return 0;
        size_t capacity = j->capacity < j->most / 2 ? 2 * j->capacity : j->most + 1;
        char *data = resha_realloc(j->data, capacity + 1);
        if (!data)
                return -ENOMEM;
        j->data = data;
        j->capacity = capacity;
        return 0;
}

/* What was taken too much goes back. */
static ssize_t end(struct load *j)
{
        if (j->size > j->most)
                return -EMSGSIZE;
        j->data[j->size] = '\0';
        if (j->capacity - j->size > j->size / 8 + 64) {
                char *less = resha_realloc(j->data, j->size + 1);
                j->data = less ? less : j->data;
        }
        return 0;
}

/* 1: there may be more. */
static ssize_t read_piece(struct load *j)
{
        for (size_t left = RESHA_FILE_PIECE; left;) {
                ssize_t rc = make_room(j);
                if (rc < 0)
                        return rc;
                size_t want = j->capacity - j->size < left ? j->capacity - j->size : left;
                struct rs_disk d = { .call = RS_DISK_READ,
                                     .fd = j->fd,
                                     .buf = j->data + j->size,
                                     .size = want,
                                     .offset = -1,
                                     .now = j->disk.now };
                ssize_t n = rs_sys_disk(&d);
                if (n == -EAGAIN && !d.now && S_ISREG(j->found.mode) && !j->blocking) {
                        j->blocking = rs_sys_file_flags_set(j->fd, 0) == 0; /* some file systems heed O_NONBLOCK */
                        n = rs_sys_disk(&d);
                }
                if (n < 0)
                        return n;
                j->size += (size_t)n;
                left -= (size_t)n;
                bool whole = (size_t)n < want && S_ISREG(j->found.mode) && (int64_t)j->size == j->found.size;
                if (n == 0 || whole)
                        return end(j);
        }
        return 1;
}

static void close_file(struct load *j)
{
        if (j->fd >= 0)
                rs_sys_close(j->fd); /* nothing was written: it has nothing to say */
        j->fd = -1;
}

static ssize_t load_run(struct rs_disk *d)
{
        struct load *j = RS_CONTAINER(d, struct load, disk);
        ssize_t rc = j->fd < 0 ? begin(j) : 0;

        if (rc == 0 && d->now && j->capacity > QUICK_SIZE)
                rc = -EAGAIN;
        if (rc == 0)
                rc = read_piece(j);
        if (rc <= 0 && !(d->now && rc == -EAGAIN)) /* that goes on on a thread */
                close_file(j);
        return rc;
}

static ssize_t undo_run(struct rs_disk *d)
{
        close_file(RS_CONTAINER(d, struct load, disk));
        return 0;
}

static __attribute__((noinline, cold)) int failed(struct load *j, int rc)
{
        char text[RS_PATH_TEXT];

        if (j->found.refused)
                return rs_found_refused(&j->found, j->path);
        if (rc == -EMSGSIZE)
                return resha_fail_at(rc, NULL, "load %s: more than %zu bytes (raise the limit, or read it in parts)",
                                     rs_path_text(j->path, text), j->most);
        if (rc == -EAGAIN && j->found.mode)
                return resha_fail_at(rc, NULL, "load %s: it has nothing to read now (adopt it: resha_stream_adopt())",
                                     rs_path_text(j->path, text));
        return rs_path_failed(rc, j->verb, j->path);
}

static __attribute__((noinline)) int load(struct rs_loop *l, struct load *j)
{
        int rc = rs_disk_pieces(l, &j->disk, "load");

        if (j->fd >= 0) {
                j->disk.run = undo_run;
                rs_disk_undo(l, &j->disk, &j->fd);
        }
        if (rc < 0)
                resha_free(j->data);
        return rc;
}

int resha_file_load(const char *path, size_t limit, void **ret_data, size_t *ret_size)
{
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (rc == 0)
                rc = rs_path_check(path, "load");
        if (rc < 0)
                return rc;
        size_t most = limit ? limit : RESHA_LOAD_LIMIT;
        char *room = l->loaded ? resha_malloc(l->loaded + 2) : NULL;
        struct load j = {
                .disk = { .call = RS_DISK_RUN, .run = load_run, .quick = true },
                .path = path,
                .verb = "open",
                .most = most < SSIZE_MAX - 2 ? most : SSIZE_MAX - 2,
                .fd = -1,
                .data = room,
                .capacity = room ? l->loaded + 1 : 0,
        };
        rc = load(l, &j);
        if (rc < 0)
                return failed(&j, rc);
        l->loaded = j.size <= QUICK_SIZE ? j.size : 0;
        *ret_data = j.data;
        if (ret_size)
                *ret_size = j.size;
        return 0;
}
