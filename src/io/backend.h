/* SPDX-License-Identifier: MIT */
#ifndef RS_BACKEND_H
#define RS_BACKEND_H

/* The seam where the world comes in: operations go in, completions come out; clock and randomness too. Three worlds
 * stand behind it: epoll, io_uring and the simulation. io knows no tasks.
 *
 * Life of an operation
 *
 *     IDLE --submit--> DONE                      it could be done at once: submit returns true, op->result is valid
 *     IDLE --submit--> PENDING --wait--> DONE    appended to backend->done by wait(); core drains that list
 *     PENDING --cancel--> IDLE                   cancel returns true: the backend has let go, op->result is -ECANCELED,
 *                                                no completion comes
 *     PENDING --cancel--> PENDING                cancel returns false: the one completion still comes (the kernel owns
 *                                                the buffer)
 *
 * Each operation gets exactly one terminal result. An op lies on its caller's stack and is never allocated.
 * At most one pending operation of each direction (read-like: READ, RECEIVE, ACCEPT; write-like: WRITE, WRITE_VEC,
 * SEND_FILE, SEND, CONNECT) on a file: the layers above check and give -EBUSY.
 *
 * Threads: everything on the loop's thread, but for wake(), which any thread and signal handler may call. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <resha/addr.h>

#include "base/list.h"

struct rs_backend;

/* What a descriptor is, as far as waiting goes. */
enum rs_file_kind {
        RS_FILE_SOCKET,
        RS_FILE_PIPE,  /* pipe, FIFO, terminal, and what else is read and written and can be waited for */
        RS_FILE_PLAIN, /* regular file, directory, block device: never waited for */
};

/* An owned descriptor or in-memory endpoint. Backends embed it first in their own struct. */
struct rs_file {
        struct rs_backend *backend;
        int fd; /* -1 in the simulated world */
        enum rs_file_kind kind;
        bool reset;  /* set by its owner: closing drops what was not sent and resets the connection */
        bool shared; /* the same: a listener that other loops accept from, too; the kernel tells one of them only */
};

/* One datagram of a RECEIVE or SEND. */
struct rs_datagram {
        void *data; /* SEND: not written to */
        size_t size;
        size_t length;   /* out, RECEIVE: bytes in data */
        size_t whole;    /* out, RECEIVE: bytes that it had; as length, unless truncated */
        resha_addr addr; /* RECEIVE: from whom (none if the kernel does not tell); SEND: to whom, none: the peer */
        bool truncated;  /* out, RECEIVE: it was longer than size, and the rest is lost */
};

enum rs_op_kind {
        RS_OP_READ = 1,  /* some bytes into buf; 0 at the end of a stream */
        RS_OP_WRITE,     /* some bytes of buf; never SIGPIPE */
        RS_OP_WRITE_VEC, /* some bytes of `size` parts at buf (const struct iovec *, at most RS_PARTS_MAX) */
        RS_OP_SEND_FILE, /* some bytes, at most size, of descriptor fd from offset on; 0: its end. -EOPNOTSUPP, -EINVAL:
                            not from or to such a thing, and the caller copies */
        RS_OP_RECEIVE,   /* some of `size` datagrams at buf (struct rs_datagram *): how many, at least 1 */
        RS_OP_SEND,      /* the same; those behind an error are not sent, and that is told next time. -ENOBUFS: no room
                            on the way or at the receiver, and nothing tells when there is */
        RS_OP_ACCEPT,    /* result 0 and ret_file */
        RS_OP_CONNECT,   /* to addr; result 0; -ENOBUFS: the listener of a Unix socket has no room, look again later */
        RS_OP_DISK,      /* the call at buf (struct rs_disk *, sys/disk.h), of no file; any number at a time. What has
                            begun cannot be cancelled: its result is the result */
        RS_OP_POLL, /* fd (foreign, not owned), events as poll(2); result: the ready mask; level-triggered, one shot */
};

enum { RS_PARTS_MAX = 64, RS_DATAGRAMS_MAX = 32 }; /* of one operation; more are for the next */

enum rs_op_state { RS_OP_IDLE, RS_OP_PENDING, RS_OP_DONE };

/* Before submit kind, state and what the kind needs are set; the rest may be anything. */
struct rs_op {
        enum rs_op_kind kind;
        enum rs_op_state state;
        struct rs_file *file;     /* all but POLL, DISK: NULL */
        int fd;                   /* POLL, SEND_FILE */
        short events;             /* POLL */
        void *buf;                /* not written to by WRITE and its kin; POLL: whose end it tells, as text, or NULL */
        size_t size;              /* of what buf is */
        int64_t offset;           /* SEND_FILE */
        const resha_addr *addr;   /* CONNECT */
        ssize_t result;           /* valid when DONE; negative errno */
        struct rs_file *ret_file; /* ACCEPT, when result is 0 */
        void *owner;              /* core's: who waits */
        struct rs_node link;      /* in backend->done, or the backend's own lists while pending */
        uint64_t priv[2];         /* the backend's */
};

/* One on the bytes at buf. Not by an initialiser: that would clear all of it, which is half of what a read costs
 * here. */
static inline void rs_op_bytes(struct rs_op *op, enum rs_op_kind kind, struct rs_file *f, const void *buf, size_t size)
{
        op->kind = kind;
        op->state = RS_OP_IDLE;
        op->file = f;
        op->buf = (void *)(uintptr_t)buf;
        op->size = size;
}

enum rs_bind {
        RS_BIND_REUSE_ADDR = 1, /* SO_REUSEADDR */
        RS_BIND_REUSE_PORT = 2, /* SO_REUSEPORT */
        RS_BIND_V6_ONLY = 4,    /* the wildcard of IPv6 takes IPv4 too without it */
};

/* Options of sockets; ints. */
enum rs_option {
        RS_OPTION_NODELAY = 1,
        RS_OPTION_KEEPALIVE,      /* seconds without traffic before the first probe; 0: off */
        RS_OPTION_USER_TIMEOUT,   /* ms that sent data may stay unacknowledged; 0: the system's */
        RS_OPTION_SEND_BUFFER,    /* bytes; the kernel doubles what is set */
        RS_OPTION_RECEIVE_BUFFER, /* the same */
        RS_OPTION_BROADCAST,
        RS_OPTION_RECEIVE_ERRORS, /* errors of single datagrams, too, on a socket without a peer */
        RS_OPTION_TYPE,           /* read only: SOCK_STREAM, SOCK_DGRAM, ... */
        RS_OPTION_LISTENING,      /* read only */
};

struct rs_backend_ops {
        const char *name;
        bool simulated; /* jobs and look-ups run inline; the clock is virtual; ready order may be shuffled */

        /* Monotonic ns. */
        int64_t (*now)(struct rs_backend *b);
        uint64_t (*random)(struct rs_backend *b);

        bool (*submit)(struct rs_backend *b, struct rs_op *op);
        bool (*cancel)(struct rs_backend *b, struct rs_op *op);

        /* Waits until something is done, wake() was called or the clock has reached `deadline` (INT64_MAX: no limit; in
         * the past: does not wait). Appends to b->done. EINTR is not an error. In the simulation it moves the clock. 0
         * or negative (a fault of the backend); -EDEADLK, in the simulation only and without a limit: the operations in
         * flight can never be done, and nothing outside (see `outside`) is under way. */
        int (*wait)(struct rs_backend *b, int64_t deadline);
        void (*wake)(struct rs_backend *b);

        /* For a loop inside of another one: called before anything is submitted, and then before the thread goes back
         * to the host. What was submitted is with the kernel when it returns. A descriptor, always the same, that polls
         * readable while wait() would find something, a wake() included; negative: it would not say so, and there must
         * be a next wait() at once. NULL in the simulation: see `stepped`. */
        int (*descriptor)(struct rs_backend *b);

        /* Descriptors: 0 or negative; outputs on success only. All are close-on-exec, none makes a task wait. */
        int (*socket)(struct rs_backend *b, int family, int type, struct rs_file **ret_file); /* TCP: without Nagle */
        int (*bind)(struct rs_file *f, const resha_addr *addr, unsigned flags);
        int (*listen)(struct rs_file *f, int backlog);
        int (*pair)(struct rs_backend *b, int type, struct rs_file *ret_pair[2]); /* Unix sockets */
        int (*pipe)(struct rs_backend *b, struct rs_file *ret_ends[2]);           /* [0] is for reading */
        /* A descriptor from elsewhere. It is the file's from now on; borrowed: it stays the caller's, and the file has
         * one of its own for the same thing. */
        int (*adopt)(struct rs_backend *b, int fd, bool borrowed, struct rs_file **ret_file);
        int (*release)(struct rs_file *f); /* the descriptor, as it was when adopted; frees f. -EOPNOTSUPP */
        int (*option)(struct rs_file *f, enum rs_option which, int *value, bool set);
        int (*file_addr)(struct rs_file *f, bool peer, resha_addr *ret_addr);
        /* The oldest error that is kept since RS_OPTION_RECEIVE_ERRORS: its negative code, and whom the datagram was
         * for; 0: there is none. NULL: that option is not known here. */
        int (*file_error)(struct rs_file *f, resha_addr *ret_addr);
        /* The writing side: of a pipe, its end is closed. -EOPNOTSUPP: there is no end that anybody could see. */
        int (*file_shutdown)(struct rs_file *f);
        void (*file_close)(struct rs_file *f); /* no operation is pending on it; never fails; frees f */

        void (*destroy)(struct rs_backend *b);
};

struct rs_backend {
        const struct rs_backend_ops *ops;
        struct rs_list done; /* of rs_op.link: finished, not yet drained */
        size_t pending;      /* operations in flight; core ends a run in which nothing can happen any more */
        size_t outside;      /* set by core before wait(): jobs, look-ups, signal waits: what may yet call wake() */
        uint64_t calls; /* tries of operations and waits that went to the kernel, on the loop's thread; simulated: 0 */
        unsigned threads; /* that it may have for calls that block, set once it is made; 0: a few */
        bool stepped;     /* simulation: a wait() that has only the outside left gives it a moment, and returns */
};

/* 0 or negative errno. */
int rs_epoll_new(struct rs_backend **ret_backend);

/* The same; and why not, in one line: which step failed, how, and what may help. */
enum { RS_WHY = 160 };
int rs_uring_new(struct rs_backend **ret_backend, char why[static RS_WHY]);

/* The world of `seed`. Seed 0: first in, first out, no faults, no delays: for golden outputs. */
int rs_sim_new(uint64_t seed, struct rs_backend **ret_backend);

/* Appends a finished op; the backends' own. */
static inline void rs_backend_done(struct rs_backend *b, struct rs_op *op, ssize_t result)
{
        op->result = result;
        op->state = RS_OP_DONE;
        b->pending--;
        rs_list_push(&b->done, &op->link);
}

#endif
