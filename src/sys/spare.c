/* SPDX-License-Identifier: MIT */
/* A program that leaks descriptors is one that somebody looks at when there are none left. To be connected to, and to
 * read files of /proc and debug information, takes some: so these are kept.
 *
 * One that is needed is closed, and the number that is free by that is taken by the next call: unless another thread of
 * the program is faster, within a microsecond; then the next one is tried. It is taken back without such a gap: dup3()
 * makes a copy of the one that is never given up (`base`) out of what is to be closed.
 *
 * Their numbers lie aside from those that the program uses, where it may have so many. */

#include "sys/spare.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "sys/sys.h"
#include "sys/thread.h"

enum { ASIDE = 512 };

static struct {
        struct rs_lock lock;
        unsigned users;
        int base; /* an eventfd that nobody uses; -1: none */
        int fds[RS_SPARE];
        unsigned n;
} spare = { .lock = RS_LOCK_INIT, .base = -1 };

static _Thread_local bool missed;

/* A copy with a number that is out of the way; -1: none is to be had. */
static int copy_aside(int fd)
{
        int aside = fcntl(fd, F_DUPFD_CLOEXEC, ASIDE);

        return aside >= 0 ? aside : fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}

static int make_base(void)
{
        int fd = rs_sys_eventfd(), aside = fd < 0 ? -1 : copy_aside(fd);

        if (aside < 0)
                return fd;
        rs_sys_close(fd);
        return aside;
}

/* With the lock. */
static void fill(void)
{
        int fd;

        while (spare.base >= 0 && spare.n < RS_SPARE && (fd = copy_aside(spare.base)) >= 0)
                spare.fds[spare.n++] = fd;
}

/* With the lock. */
static void empty(void)
{
        while (spare.n)
                rs_sys_close(spare.fds[--spare.n]);
        int base = spare.base;
        spare.base = -1; /* before: a child that is forked meanwhile must not close what has the number then */
        if (base >= 0)
                rs_sys_close(base);
}

void rs_spare_begin(void)
{
        rs_lock(&spare.lock);
        spare.users++;
        if (spare.base < 0)
                spare.base = make_base();
        fill();
        rs_unlock(&spare.lock);
}

void rs_spare_end(void)
{
        rs_lock(&spare.lock);
        if (--spare.users == 0)
                empty();
        rs_unlock(&spare.lock);
}

void rs_spare_forked(void)
{
        spare.lock = (struct rs_lock)RS_LOCK_INIT;
        empty();
        spare.users = 0;
}

bool rs_spare_give(int code)
{
        int saved = errno;
        bool given = false;

        if (code != -EMFILE && code != -ENFILE)
                return false;
        rs_lock(&spare.lock);
        if (spare.n) {
                rs_sys_close(spare.fds[--spare.n]);
                given = true;
        }
        rs_unlock(&spare.lock);
        errno = saved;
        return given;
}

int rs_spare_open(const char *path)
{
        int fd;

        do {
                fd = open(path, O_RDONLY | O_CLOEXEC);
                fd = fd < 0 ? -errno : fd;
        } while (fd < 0 && rs_spare_give(fd));
        if (fd == -EMFILE || fd == -ENFILE)
                missed = true;
        return fd;
}

void rs_spare_close(int fd)
{
        rs_lock(&spare.lock);
        bool wanted = spare.base >= 0 && spare.n < RS_SPARE && fd > STDERR_FILENO;
        if (wanted && dup3(spare.base, fd, O_CLOEXEC) == fd) {
                int aside = fcntl(fd, F_DUPFD_CLOEXEC, ASIDE);
                if (aside >= 0)
                        rs_sys_close(fd);
                spare.fds[spare.n++] = aside >= 0 ? aside : fd;
                fill();
        } else {
                rs_sys_close(fd);
        }
        rs_unlock(&spare.lock);
}

bool rs_spare_missed(void)
{
        bool was = missed;

        missed = false;
        return was;
}
