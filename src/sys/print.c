/* SPDX-License-Identifier: MIT */
/* Text on stderr that holds up nobody for ever.
 *
 * It may be a pipe that is full, as whoever should read it has stopped. A report that waited there for good would keep
 * its loop, or, if the watchdog makes it, the end of every run. So each piece waits until there is room, the whole text
 * for RS_PRINT_PATIENCE_MS; then it is dropped, and so is each later one that would have to wait at all. The first that
 * finds room says how many they were.
 *
 * stderr is shared with other processes, so it is not made non-blocking, which would be seen by all of them. */

#include "sys/print.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "sys/sys.h"
#include "sys/thread.h"

enum { ROOM = 16 * 1024, AT_ONCE = 4096 /* for so much a pipe that is ready has room */ };

static struct {
        struct rs_lock lock; /* while there is a text */
        size_t n;
        char text[ROOM];
        unsigned dropped; /* texts for which there was no reader, since it was last said; atomic */
} print = { .lock = RS_LOCK_INIT };

/* ---- bytes ---- */

static bool may_promise(int fd)
{
        struct stat st;

        return fstat(fd, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode));
}

ssize_t rs_print_ready(int fd, const void *bytes, size_t n)
{
        struct iovec part = { (void *)(uintptr_t)bytes, n < AT_ONCE ? n : AT_ONCE };
        int saved = errno;
        ssize_t rc = -1;

        errno = ENOSYS;
        if (may_promise(fd))
                rc = pwritev2(fd, &part, 1, -1, RWF_NOWAIT);
        if (rc < 0 && errno != EAGAIN && errno != EPIPE) /* no such promise, or interrupted */
                do
                        rc = write(fd, part.iov_base, part.iov_len);
                while (rc < 0 && errno == EINTR);
        rc = rc < 0 ? -errno : rc;
        errno = saved;
        return rc;
}

/* Until `deadline` at most: 1; 0: there is no room. */
static int wait_for_room(int64_t deadline)
{
        struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };
        int rc;

        do {
                int64_t left = deadline - rs_sys_now();
                rc = poll(&p, 1, left > 0 ? (int)(left / 1000000) + 1 : 0);
        } while (rc < 0 && errno == EINTR);
        return rc != 0;
}

/* Whether they were written; what fails in another way than for want of a reader counts as if they were. */
static bool write_all(const char *bytes, size_t n, int64_t deadline)
{
        int saved = errno;
        bool room = true;

        while (n > 0 && (room = wait_for_room(deadline))) {
                ssize_t done = rs_print_ready(STDERR_FILENO, bytes, n);
                if (done < 0 && done != -EAGAIN)
                        break;
                bytes += done > 0 ? done : 0;
                n -= done > 0 ? (size_t)done : 0;
                room = done > 0 || rs_sys_now() < deadline;
                if (!room)
                        break;
        }
        errno = saved;
        return room;
}

/* ---- texts ---- */

void rs_print_dropped(void)
{
        __atomic_fetch_add(&print.dropped, 1, __ATOMIC_RELAXED);
}

/* What was dropped. False: still nobody reads. */
static bool say_dropped(void)
{
        char line[128];
        unsigned n = __atomic_load_n(&print.dropped, __ATOMIC_RELAXED);

        if (n == 0)
                return true;
        int size = snprintf(line, sizeof line, "\nresha: %u text%s dropped here, or cut: nobody read\n", n,
                            n == 1 ? " was" : "s were");
        if (!write_all(line, (size_t)size, 0))
                return false;
        __atomic_fetch_sub(&print.dropped, n, __ATOMIC_RELAXED);
        return true;
}

bool rs_print_try(void)
{
        rs_lock(&print.lock);
        bool ok = say_dropped();
        if (!ok)
                rs_print_dropped();
        rs_unlock(&print.lock);
        return ok;
}

void rs_print_begin(void)
{
        rs_lock(&print.lock);
        print.n = 0;
}

/* What does not fit is cut: reports are lines of some hundred bytes, and so are their frames. */
void rs_print(const char *format, ...)
{
        size_t left = ROOM - print.n;
        va_list args;

        va_start(args, format);
        int n = vsnprintf(print.text + print.n, left, format, args);
        va_end(args);
        print.n += n < 0 ? 0 : (size_t)n < left ? (size_t)n : left - 1;
}

void rs_print_end(void)
{
        int64_t deadline = rs_sys_now() + RS_PRINT_PATIENCE_MS * INT64_C(1000000);

        if (!say_dropped() || !write_all(print.text, print.n, deadline))
                rs_print_dropped();
        rs_unlock(&print.lock);
}

void rs_print_forked(void)
{
        print.lock = (struct rs_lock)RS_LOCK_INIT;
}
