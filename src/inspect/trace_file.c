/* SPDX-License-Identifier: MIT */
/* The file of RESHA_TRACE: all loops of the process write to it, one at a time.
 *
 * It is opened by the first run and stays open to the end of the process, for runs that come one after the other. Its
 * last bracket is written when the last of those at a time has ended, and written over by the next: so it is whole
 * whenever nothing runs, and if the process dies it lacks only that, which the format allows. A child that was forked
 * has a file of its own, with its number behind the name. Programs with more rights than their user do not write where
 * the user says. */

#include "inspect/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "inspect/trace.h"
#include "sys/disk.h"
#include "sys/sys.h"
#include "sys/thread.h"

enum { PATH_MOST = 4096, MIB = 1 << 20 };

static struct {
        struct rs_lock lock;
        struct rs_trace_out out;
        int fd; /* 0: none is open; no descriptor of ours is 0 */
        int64_t offset;
        unsigned loops; /* ever */
        unsigned users;
} file = { .lock = RS_LOCK_INIT };

/* What does not fit is taken back: it ends behind a whole event. */
static int cut(int64_t offset, int rc)
{
        struct rs_disk d = { .call = RS_DISK_TRUNCATE, .fd = file.fd, .offset = offset };

        (void)rs_sys_disk(&d); /* a device has no end */
        file.offset = offset;
        return rc;
}

static int write_out(void *arg, const char *text, size_t n)
{
        int64_t begin = file.offset;

        while (n) {
                struct rs_disk d = { .call = RS_DISK_WRITE,
                                     .fd = file.fd,
                                     .buf = (void *)(uintptr_t)text,
                                     .size = n,
                                     .offset = file.offset };
                ssize_t done = rs_sys_disk(&d);
                if (done <= 0)
                        return cut(begin, done < 0 ? (int)done : -EIO);
                text += done;
                n -= (size_t)done;
                file.offset += done;
        }
        (void)arg;
        return 0;
}

static int find_limit(uint64_t *ret)
{
        const char *mib = getenv("RESHA_TRACE_LIMIT");
        char *end = NULL;

        *ret = RS_TRACE_LIMIT;
        if (!mib || !*mib)
                return 0;
        unsigned long n = strtoul(mib, &end, 10);
        if (*mib < '0' || *mib > '9' || *end || n == 0 || n > 1 << 20)
                return -EINVAL;
        *ret = (uint64_t)n * MIB;
        return 0;
}

static int open_file(const char *path)
{
        char own[PATH_MOST];
        uint64_t limit;
        int rc = find_limit(&limit);

        if (rc < 0)
                return rc;
        int n = snprintf(own, sizeof own, rs_forks ? "%s.%d" : "%s", path, (int)rs_sys_pid());
        if (n < 0 || (size_t)n >= sizeof own)
                return -ENAMETOOLONG;
        struct rs_disk d = { .call = RS_DISK_OPEN, .path = own, .flags = O_WRONLY | O_CREAT | O_TRUNC, .mode = 0666 };
        ssize_t fd = rs_sys_disk(&d);
        if (fd < 0)
                return (int)fd;
        file.fd = (int)fd;
        file.offset = 0;
        file.loops = file.users = 0;
        rs_trace_open(&file.out, write_out, NULL, limit);
        return 0;
}

static void before(void *arg)
{
        (void)arg;
        rs_lock(&file.lock);
}

static void after(void *arg)
{
        (void)arg;
        rs_unlock(&file.lock);
}

int rs_trace_file_begin(struct rs_loop *l, size_t events, struct rs_trace **ret_trace)
{
        const char *path = secure_getenv("RESHA_TRACE");
        struct rs_trace *t = NULL;
        int rc = 0;

        *ret_trace = NULL;
        if (!path || !*path || strcmp(path, "0") == 0)
                return 0;
        rs_lock(&file.lock);
        if (!file.fd)
                rc = open_file(path);
        if (rc == 0)
                t = rs_trace_new(&file.out, file.loops + 1, program_invocation_short_name, events);
        if (t) {
                file.loops++;
                file.users++;
        } else if (rc == 0) {
                rc = -ENOMEM;
        }
        rs_unlock(&file.lock);
        if (t)
                rs_trace_whole(t, l, before, after, NULL);
        *ret_trace = t;
        return rc;
}

/* The bracket, with the place of the next event in front of it. */
static int close_file(void)
{
        int64_t at = file.offset;
        int rc = rs_trace_close(&file.out);

        file.offset = at;
        return rc;
}

int rs_trace_file_end(struct rs_trace *t)
{
        rs_lock(&file.lock);
        rs_trace_free(t);
        int rc = --file.users == 0 ? close_file() : file.out.failed;
        rs_unlock(&file.lock);
        return rc;
}

void rs_trace_file_forked(void)
{
        file.lock = (struct rs_lock)RS_LOCK_INIT;
        if (file.fd)
                rs_sys_close(file.fd);
        file.fd = 0;
}
