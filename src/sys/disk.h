/* SPDX-License-Identifier: MIT */
#ifndef RS_DISK_H
#define RS_DISK_H

/* Calls about files and names that may take long, as data: made by rs_sys_disk(), blocking, on whatever thread, or by
 * a ring of the kernel from the same struct. */

#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/heap.h"
#include "sys/workers.h"

struct statx;

/* Which members a call reads is said at each; the others may be anything. A name is relative to the folder `fd` (path2:
 * fd2), 0 being the working folder: no descriptor of ours is 0. */
enum rs_disk_call {
        RS_DISK_OPEN = 1, /* path, flags (O_*), mode: a descriptor. O_CLOEXEC and O_NONBLOCK are added: no FIFO, device
                             or lock of another's holds a thread; of a file or folder it is blocking afterwards,
                             unless O_NONBLOCK was among the flags */
        RS_DISK_READ,     /* fd, buf, size, offset (-1: where it is): bytes, 0 at the end. Of what has no
                             places (FIFOs, terminals) only -1: a ring reads them anyway, pread(2) does not */
        RS_DISK_WRITE,    /* fd, buf, size, offset (-1: where it is, or the end with O_APPEND): bytes */
        RS_DISK_SYNC,     /* fd */
        RS_DISK_DATASYNC, /* fd */
        RS_DISK_TRUNCATE, /* fd, offset: its size */
        RS_DISK_ALLOCATE, /* fd, flags (FALLOC_FL_*), offset, size */
        RS_DISK_STAT,     /* path (NULL: of fd itself), flags (AT_SYMLINK_NOFOLLOW, ...), mask (STATX_*), stat */
        RS_DISK_RENAME,   /* path, path2, flags (RENAME_*) */
        RS_DISK_UNLINK,   /* path, flags (AT_REMOVEDIR) */
        RS_DISK_MKDIR,    /* path, mode */
        RS_DISK_LINK,     /* path, path2 (the new name), flags (AT_SYMLINK_FOLLOW, AT_EMPTY_PATH) */
        RS_DISK_SYMLINK,  /* path (what it says), path2 (its name) */
        RS_DISK_READLINK, /* path, buf, size: bytes, no 0 behind them */
        RS_DISK_LIST,     /* fd, buf, size: bytes of struct linux_dirent64, 0 at the end */
        RS_DISK_COPY,     /* fd, offset, to fd2, offset2, size: bytes; -EXDEV, -EINVAL, -EOPNOTSUPP: copy by hand */
        RS_DISK_CLOSE,    /* fd; what closing said; it is closed in any case */
        RS_DISK_RUN,      /* run(): several of these in one go */
        RS_DISK_CALLS
};

struct rs_disk {
        /* The backend's, while it is under way. These come first: few lines of memory go from thread to thread. */
        union {
                struct rs_work work;
                struct rs_timer timer; /* in the simulated world */
        };
        struct rs_disk *next; /* among the finished ones */
        void *op, *crew;
        ssize_t result;
        bool tried; /* with `now`, in vain */
        bool fresh; /* not handed to the crew yet */

        bool now;   /* set by the backend, and handed on by run() to the calls that it makes: do not wait. OPEN, READ:
                       -EAGAIN where it might have to. Others are only for what is known not to wait */
        bool quick; /* RUN: run() may be called with `now` set, on the loop's thread; if that was -EAGAIN once more,
                       without, on a thread of the crew, and goes on where it was */
        bool opens; /* RUN: its result is a descriptor, closed if nobody is there any more to have it */
        enum rs_disk_call call;
        ssize_t (*run)(struct rs_disk *d); /* RUN: on a thread of the crew, where nothing of tasks may be called */
        void *arg;                         /* RUN's; what it needs may lie around d as well */
        const char *path, *path2;
        int fd, fd2;
        int flags;
        unsigned mode, mask;
        void *buf; /* not written to by WRITE */
        size_t size;
        int64_t offset, offset2;
        struct statx *stat;
};

/* Makes the call. Never EINTR; an open that another's lease of the file answers with EAGAIN is made again. CLOSE always
 * closes. */
ssize_t rs_sys_disk(struct rs_disk *d);

/* What an open(2) of these flags with O_NONBLOCK has given: an error as it is, the descriptor of a file or folder made
 * a blocking one. Never 0 to 2. */
ssize_t rs_sys_disk_opened(ssize_t fd, int flags);

/* The same, on a thread that has signals: none comes of a file that would be larger than it may. */
ssize_t rs_sys_disk_quietly(struct rs_disk *d);

/* This process has a limit of how large files may be (RLIMIT_FSIZE): a write over it is EFBIG, and sends its thread
 * SIGXFSZ, which ends the process unless it is blocked, as on threads of ours. */
bool rs_sys_disk_limited(void);

/* The call that a test makes fail. RUN: none, its calls are asked for one by one. */
int rs_sys_disk_fault(enum rs_disk_call call);

#endif
