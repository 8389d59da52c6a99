/* SPDX-License-Identifier: MIT */
/* The files of Unix sockets. A server that dies leaves its file, and bind(2) refuses a name that exists: so a new
 * server has to remove the file of a dead one, and must never remove that of a live one. Why it is done as it is:
 * docs/design/0060-unix-socket-files.md.
 *
 *     bind ----------------------------------------> bound       the name was free: the kernel sees to it that one wins
 *       | it exists
 *     pin it: not a socket --> -ENOTSOCK                         it is not touched
 *       |
 *     probe it: somebody is bound to it --> -EADDRINUSE          also one that does not listen yet
 *       | nobody, and that never changes
 *     rename it to a name that nobody else has, and look: is it the one that was pinned?
 *       | yes: remove it                no: give it its name back, -EADDRINUSE
 *       '--> bind again
 *
 * The probe is a connect from a datagram socket. To a stream socket it fails in another way than to nobody, whether the
 * socket listens or not, and the server does not see it.
 *
 * Servers of this library hold a lock on the folder from the probe to the removal, so that they do not take each
 * other's file for the dead one. It is a courtesy: where it cannot be had, what is renamed is still looked at.
 *
 * Invariant: a file is removed only if no socket is bound to it, or if it is that of our own socket. */

#include "net/unix_file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <resha/alloc.h>
#include <resha/time.h>

#include "net/addr.h"

enum {
        PATH_BYTES = 109,
        BIND_TRIES = 8,
        LOCK_TRIES = 100, /* of 1 ms: somebody may hold it for as long as he likes */
        ASIDE_BYTES = sizeof ".0123456789abcdef.dead",
};

static bool same(const struct rs_sys_file *a, const struct rs_sys_file *b)
{
        return a->device == b->device && a->inode == b->inode;
}

/* As it is from every working folder. NULL: *ret_rc says why. */
static char *absolute(const char *path, int *ret_rc)
{
        size_t room = path[0] == '/' ? 0 : PATH_MAX, size = strlen(path) + 1;
        char *a = resha_malloc(room + 1 + size);

        *ret_rc = a ? 0 : -ENOMEM;
        if (a && room)
                *ret_rc = rs_sys_working_folder(a, room);
        if (*ret_rc < 0) {
                resha_free(a);
                return NULL;
        }
        if (room) {
                room = strlen(a);
                a[room++] = '/';
        }
        memcpy(a + room, path, size);
        return a;
}

/* ---- the one that is there ---- */

/* Whether a socket is bound to what the address leads to: 1, also if that may not be asked; 0: no, or the file has gone
 * meanwhile; or negative. */
static int in_use(const resha_addr *addr)
{
        const struct rs_addr *a = rs_addr_view(addr);
        int fd = rs_sys_socket(AF_UNIX, SOCK_DGRAM);

        if (fd < 0)
                return fd;
        int rc = rs_sys_connect(fd, (const struct sockaddr *)&a->sockaddr, (socklen_t)a->size);
        rs_sys_close(fd);
        return rc != -ECONNREFUSED && rc != -ENOENT;
}

/* Renamed, looked at, removed. 0: the name is free, or was for a moment. */
static int take_away(struct rs_loop *l, const char *path, const struct rs_sys_file *dead, const char **ret_why)
{
        size_t size = strlen(path);
        char *aside = resha_malloc(size + ASIDE_BYTES);
        struct rs_sys_file moved;

        if (!aside)
                return -ENOMEM;
        snprintf(aside, size + ASIDE_BYTES, "%s.%016llx.dead", path,
                 (unsigned long long)l->backend->ops->random(l->backend));
        int rc = rs_sys_rename_new(path, aside);
        if (rc == -EINVAL || rc == -ENOSYS) {
                rc = rs_sys_unlink(path); /* a file system that cannot do it */
        } else if (rc == 0 && rs_sys_look(aside, &moved) == 0 && same(&moved, dead)) {
                rc = rs_sys_unlink(aside);
        } else if (rc == 0) {
                rc = rs_sys_rename_new(aside, path);
                *ret_why = rc < 0 ? "others began to listen there just now, and one of them lost its file"
                                  : "another server began to listen there just now";
                rc = -EADDRINUSE;
        }
        resha_free(aside);
        if (rc < 0 && rc != -ENOENT && rc != -EADDRINUSE)
                *ret_why = "a server that is no more left its file, and it cannot be removed";
        return rc == -ENOENT ? 0 : rc;
}

static int clear_pinned(struct rs_loop *l, const resha_addr *addr, const char *path, const struct rs_sys_file *there,
                        const char **ret_why)
{
        struct rs_sys_file now;

        if (!S_ISSOCK(there->mode)) {
                *ret_why = S_ISDIR(there->mode) ? "there is a folder of that name"
                                                : "there is a file of that name that is not a socket";
                return -ENOTSOCK;
        }
        int rc = in_use(addr);
        if (rc > 0) {
                *ret_why = "a server is there already";
                return -EADDRINUSE;
        }
        if (rc < 0)
                return rc;
        if (rs_sys_look(path, &now) < 0 || !same(&now, there))
                return 0; /* it was not what has been probed */
        return take_away(l, path, there, ret_why);
}

/* A descriptor, or negative: without a lock. */
static int lock_folder(const char *path, int *ret_rc)
{
        size_t size = (size_t)(strrchr(path, '/') - path);
        char *folder = resha_malloc(size + 2);
        int fd;

        *ret_rc = folder ? 0 : -ENOMEM;
        if (!folder)
                return -1;
        memcpy(folder, path, size + 1);
        folder[size + 1] = '\0';
        for (int i = 0; (fd = rs_sys_lock_folder(folder)) == -EAGAIN && i < LOCK_TRIES && *ret_rc == 0; i++)
                *ret_rc = resha_sleep(RESHA_MS(1));
        resha_free(folder);
        return fd;
}

/* 0: try again to bind. */
static int clear(struct rs_loop *l, const resha_addr *addr, const char *path, const char **ret_why)
{
        struct rs_sys_file there;
        int rc, lock = lock_folder(path, &rc);

        if (rc == 0) {
                int pin = rs_sys_pin(path, &there);
                rc = pin < 0 ? pin : clear_pinned(l, addr, path, &there, ret_why);
                if (pin >= 0)
                        rs_sys_close(pin);
        }
        if (lock >= 0)
                rs_sys_close(lock);
        return rc == -ENOENT ? 0 : rc;
}

static int bind_path(struct rs_loop *l, struct rs_file *f, const resha_addr *addr, const char *path,
                     const char **ret_why)
{
        int rc = -EADDRINUSE;

        for (int i = 0; i < BIND_TRIES; i++) {
                rc = l->backend->ops->bind(f, addr, 0);
                if (rc != -EADDRINUSE)
                        return rc;
                rc = clear(l, addr, path, ret_why);
                if (rc < 0)
                        return rc;
        }
        return -EADDRINUSE;
}

/* ---- our own ---- */

/* What the file is; with the bits that the umask has taken from its mode. */
static int own(const char *path, unsigned mode, struct rs_sys_file *ret_what)
{
        if (mode == 0)
                return rs_sys_look(path, ret_what);
        int rc = 0, fd = rs_sys_pin(path, ret_what);
        if (fd < 0)
                return fd;
        if ((ret_what->mode & 07777) != mode)
                rc = S_ISSOCK(ret_what->mode) ? rs_sys_pinned_mode(fd, mode) : -EADDRINUSE;
        rs_sys_close(fd);
        return rc;
}

/* The mode is given to the socket before it is bound: its file is never open to more than it should be. */
int rs_unix_file_bind(struct rs_loop *l, struct rs_file *f, const resha_addr *addr, unsigned mode,
                      struct rs_unix_file *ret_file, const char **ret_why)
{
        struct rs_unix_file u = { 0 };
        char path[PATH_BYTES];
        int rc;

        if (!rs_addr_unix_path(addr, path))
                return l->backend->ops->bind(f, addr, 0);
        u.path = absolute(path, &rc);
        if (rc == 0 && mode)
                rc = rs_sys_socket_mode(f->fd, mode);
        if (rc == 0)
                rc = bind_path(l, f, addr, u.path, ret_why);
        if (rc == 0) {
                rc = own(u.path, mode, &u.what);
                if (rc == 0) {
                        *ret_file = u;
                        return 0;
                }
                rs_unix_file_remove(&u);
        }
        resha_free(u.path);
        return rc;
}

void rs_unix_file_remove(struct rs_unix_file *u)
{
        struct rs_sys_file now;

        if (u->path && rs_sys_look(u->path, &now) == 0 && same(&now, &u->what))
                (void)rs_sys_unlink(u->path);
        resha_free(u->path);
        u->path = NULL;
}
