/* SPDX-License-Identifier: MIT */
/* A door: PID.sock in a folder of the user's.
 *
 * Who may come in is decided three times. The folder has the mode 0700 and is the user's, or there is no door: it is
 * opened once, without following a symbolic link, looked at by that descriptor, and all that is done in it is done by
 * that, so that it cannot be another one a moment later. The socket has the mode 0600 from the moment that it has a
 * name. And of each who comes the kernel tells the user: SO_PEERCRED.
 *
 * The folder is in /run/user/UID, which the system makes for a user who is logged in, whatever the environment says,
 * for others must find it; else in /tmp, where somebody else may have taken the name: then there is no door.
 *
 * What a process that was killed has left behind is swept by the next one: a name whose process does not exist and at
 * which nobody listens. Both, for a process of another PID namespace may share the folder. */

#include "sys/door.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <resha/error.h>

#include "sys/call.h"
#include "sys/spare.h"

enum { SWEEP_MAX = 4096, BACKLOG = 64, ASIDE = 512 };

static int refuse(int code, char *why, size_t size, const char *path, const char *reason)
{
        snprintf(why, size, "%s: %s", path, reason);
        return code;
}

/* ---- the folder ---- */

static bool is_own_folder(const char *path)
{
        struct rs_sys_file f;

        return rs_sys_look(path, &f) == 0 && S_ISDIR(f.mode) && f.uid == geteuid();
}

static void name_folder(char *path, size_t size)
{
        unsigned uid = geteuid();

        snprintf(path, size, "/run/user/%u", uid);
        if (is_own_folder(path))
                snprintf(path, size, "/run/user/%u/resha", uid);
        else
                snprintf(path, size, "/tmp/resha-%u", uid);
}

/* Of the open folder itself, whatever its name means by now. */
static const char *what_is_wrong(int fd)
{
        struct rs_sys_file f;
        int64_t size;

        if (rs_sys_file_look(fd, &f, &size) < 0)
                return "cannot be looked at";
        if (S_ISLNK(f.mode))
                return "is a symbolic link: remove it";
        if (!S_ISDIR(f.mode))
                return "is no folder: remove it";
        if (f.uid != geteuid())
                return "belongs to another user";
        if ((f.mode & 0777) != 0700)
                return "others may look into it: chmod 700, or remove it";
        return NULL;
}

static int open_folder(const char *path, char *why, size_t size)
{
        int made = (int)CALL(RS_SYS_MKDIR, mkdir(path, 0700));
        struct rs_sys_file f;

        if (made < 0 && made != -EEXIST)
                return refuse(made, why, size, path, resha_strerror(made));
        int fd = rs_sys_pin(path, &f);
        if (fd < 0)
                return refuse(fd, why, size, path, resha_strerror(fd));
        if (made == 0 && f.uid == geteuid() && S_ISDIR(f.mode))
                (void)rs_sys_pinned_mode(fd, 0700); /* whatever the umask has taken */
        const char *wrong = what_is_wrong(fd);
        if (!wrong)
                return fd;
        rs_sys_close(fd);
        return refuse(-EPERM, why, size, path, wrong);
}

/* ---- the socket ---- */

/* By the descriptor of its folder. */
static struct sockaddr_un address(int folder, const char *name)
{
        struct sockaddr_un a = { .sun_family = AF_UNIX };

        snprintf(a.sun_path, sizeof a.sun_path, "/proc/self/fd/%d/%s", folder, name);
        return a;
}

/* Whether somebody does; negative: that cannot be found out. */
static int somebody_listens(int folder, const char *name)
{
        struct sockaddr_un a = address(folder, name);
        int fd = rs_sys_socket(AF_UNIX, SOCK_STREAM);

        if (fd < 0)
                return fd;
        int rc = connect(fd, (const struct sockaddr *)&a, sizeof a) < 0 ? -errno : 0;
        rs_sys_close(fd);
        return rc != -ECONNREFUSED && rc != -ENOENT;
}

/* "123.sock", and 123 is no process. */
static bool is_left_behind(int folder, const char *name)
{
        char *end;
        long pid = name[0] >= '1' && name[0] <= '9' ? strtol(name, &end, 10) : 0;

        return pid > 0 && pid <= INT32_MAX && strcmp(end, ".sock") == 0 && kill((pid_t)pid, 0) < 0 && errno == ESRCH &&
               somebody_listens(folder, name) == 0;
}

static void sweep(int folder)
{
        int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        const struct dirent *e;

        if (!dir) {
                if (fd >= 0)
                        close(fd);
                return;
        }
        for (unsigned n = 0; n < SWEEP_MAX && (e = readdir(dir)); n++)
                if (is_left_behind(folder, e->d_name))
                        (void)unlinkat(folder, e->d_name, 0);
        closedir(dir);
}

static int bind_in(struct rs_door *d, const char *name)
{
        struct sockaddr_un a = address(d->folder, name);
        struct stat st;
        int rc = rs_sys_socket_mode(d->fd, 0600);

        if (rc == 0)
                rc = rs_sys_bind(d->fd, (const struct sockaddr *)&a, sizeof a);
        if (rc < 0)
                return rc;
        if (fchmodat(d->folder, name, 0600, 0) < 0) /* whatever the umask has taken */
                return -errno;
        if (fstatat(d->folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
                d->device = st.st_dev;
                d->inode = st.st_ino;
        }
        return rs_sys_listen(d->fd, BACKLOG);
}

int rs_door_open(struct rs_door *d, char *ret_why, size_t size)
{
        char folder[64], name[32];

        *d = (struct rs_door){ .fd = -1, .folder = -1 };
        name_folder(folder, sizeof folder);
        snprintf(name, sizeof name, "%d.sock", rs_sys_pid());
        snprintf(d->path, sizeof d->path, "%s/%s", folder, name);
        int rc = open_folder(folder, ret_why, size);
        if (rc < 0)
                return rc;
        d->folder = rc;
        sweep(d->folder);
        rc = somebody_listens(d->folder, name);
        if (rc != 0) {
                rs_door_forget(d);
                return rc < 0 ? refuse(rc, ret_why, size, d->path, resha_strerror(rc))
                              : refuse(-EADDRINUSE, ret_why, size, d->path, "another process listens there");
        }
        (void)unlinkat(d->folder, name, 0); /* of a process that had this number before, or of this one before exec() */
        d->fd = rs_sys_socket(AF_UNIX, SOCK_STREAM);
        rc = d->fd < 0 ? d->fd : bind_in(d, name);
        if (rc < 0) {
                rs_door_close(d);
                return refuse(rc, ret_why, size, d->path, resha_strerror(rc));
        }
        return 0;
}

void rs_door_forget(struct rs_door *d)
{
        if (d->fd >= 0)
                rs_sys_close(d->fd);
        if (d->folder >= 0)
                rs_sys_close(d->folder);
        d->fd = d->folder = -1;
}

void rs_door_close(struct rs_door *d)
{
        const char *name = strrchr(d->path, '/');
        struct stat st;

        if (d->folder >= 0 && d->inode && name && fstatat(d->folder, name + 1, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            st.st_dev == d->device && st.st_ino == d->inode)
                (void)unlinkat(d->folder, name + 1, 0);
        rs_door_forget(d);
}

/* ---- who comes ---- */

/* Aside from the numbers that the program uses: one that it has closed is free while somebody looks, too. */
int rs_door_accept(const struct rs_door *d, bool *ret_spare)
{
        int fd, aside;

        *ret_spare = false;
        while ((fd = rs_sys_accept(d->fd)) < 0 && rs_spare_give(fd))
                *ret_spare = true;
        aside = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, ASIDE);
        if (aside < 0)
                return fd;
        rs_sys_close(fd);
        return aside;
}

bool rs_door_admits(int fd)
{
        struct ucred peer;
        socklen_t size = sizeof peer;

        return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && (peer.uid == geteuid() || peer.uid == 0);
}

void rs_door_more_room(int fd)
{
        int size = 1 << 20; /* of which the kernel gives what it may */

        (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
}

int rs_door_wait(int fd, short events, int stop, int64_t deadline)
{
        struct pollfd p[2] = { { .fd = stop, .events = POLLIN }, { .fd = fd, .events = events } };

        for (;;) {
                int64_t left = deadline == INT64_MAX ? -1 : deadline - rs_sys_now();
                int64_t ms = left < 0 ? (deadline == INT64_MAX ? -1 : 0) : left / 1000000 + 1;
                int n = poll(p, 2, ms > INT32_MAX ? INT32_MAX : (int)ms);
                if (n < 0 && errno != EINTR)
                        return -errno;
                if (n > 0 && p[0].revents)
                        return -ECANCELED;
                if (n > 0)
                        return 1;
                if (n == 0 && left <= 0 && deadline != INT64_MAX)
                        return 0;
        }
}
