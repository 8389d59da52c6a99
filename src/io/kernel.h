/* SPDX-License-Identifier: MIT */
#ifndef RS_KERNEL_H
#define RS_KERNEL_H

/* What the backends on the real kernel share: their files, made and closed in kernel_file.c, and one try of an
 * operation, kernel_try.c. How they wait is their own. */

#include <stdatomic.h>
#include <sys/socket.h>

#include "base/list.h"
#include "io/backend.h"

enum {
        KN_READING = 0,
        KN_WRITING = 1,
        KN_OWN_BUCKETS = 256,
};

/* An own descriptor. */
struct kn_file {
        struct rs_file base;
        struct rs_node own; /* in kn.own */
        struct rs_op *pending[2];
        bool ready[2];      /* a try is worth while */
        bool registered;    /* epoll knows it */
        bool stray;         /* epoll may know it for ever: its descriptor was closed by somebody else */
        bool hasty;         /* a short read says that there is no more: TCP, until the peer has ended */
        unsigned char full; /* how many of the last reads were as long as they could be, to 2 */
        bool tells;         /* the kernel says with each read whether it has left something: TCP_INQ */
        bool started;       /* connect was called */
        bool nonblocking;   /* its description is */
        bool put_back;      /* it was not when it came to us */
        bool came_so;       /* it was non-blocking when it came to us, perhaps by another file of ours */
};

struct kn {
        struct rs_backend base;            /* first */
        void (*forget)(struct kn_file *f); /* before its descriptor is closed or given away */
        uint64_t luck;
        int wakefd;
        atomic_bool woken;                  /* wakefd is readable, or is about to be */
        struct kn_crew *crew;               /* NULL: no call about a file has been made yet */
        struct kn_file *spare;              /* for the next accept, so that one that fails allocates nothing */
        size_t came_so;                     /* files that did */
        struct rs_list strays;              /* closed files that may still be named by events: kept to the end */
        struct rs_list own[KN_OWN_BUCKETS]; /* files by the last bits of their number; needs no memory */
};

static inline struct kn *kn_of(struct rs_backend *b)
{
        return (struct kn *)(void *)b;
}

static inline struct kn_file *kn_file_of(struct rs_file *f)
{
        return (struct kn_file *)(void *)f;
}

static inline int kn_direction(const struct rs_op *op)
{
        return op->kind == RS_OP_READ || op->kind == RS_OP_RECEIVE || op->kind == RS_OP_ACCEPT ? KN_READING
                                                                                               : KN_WRITING;
}

/* The two ends of submit(). */
static inline bool kn_done(struct rs_op *op, ssize_t result)
{
        op->result = result;
        op->state = RS_OP_DONE;
        return true;
}

static inline bool kn_pend(struct rs_backend *b, struct rs_op *op)
{
        op->state = RS_OP_PENDING;
        b->pending++;
        return false;
}

/* ---- kernel.c: clock, luck, waking; the start and the end ---- */

int kn_init(struct kn *k); /* what it has made is kn_done()'s, also if it fails */
void kn_end(struct kn *k);
int64_t kn_now(struct rs_backend *b);
uint64_t kn_random(struct rs_backend *b);
void kn_wake(struct rs_backend *b);
void kn_woken(struct kn *k, bool told_of_each); /* wakefd was written to */

/* ns from now, negative without limit; 0 also if something is done already. If it is not 0, the crew will wake. */
int64_t kn_timeout(struct kn *k, int64_t deadline);

/* ---- kernel_disk.c ---- */

bool kn_disk_submit(struct kn *k, struct rs_op *op);
int kn_disk_add(struct kn *k, struct rs_op *op);     /* one that is pending already; negative: it cannot be made */
bool kn_disk_cancel(struct kn *k, struct rs_op *op); /* false: it is too late; its state is the caller's to set */
bool kn_crew_sleep(struct kn_crew *c);               /* false: something has finished; else the next one wakes */
void kn_crew_take(struct kn_crew *c);                /* what has finished is done */
void kn_crew_end(struct kn_crew *c);

void kn_crew_go(struct kn_crew *c); /* what has been submitted is on its way */

/* For both, at the beginning and end of wait(), and of descriptor(): whether it will say so. */
static inline void kn_go(struct kn *k)
{
        if (RS_UNLIKELY(k->crew))
                kn_crew_go(k->crew);
}

static inline void kn_take(struct kn *k)
{
        if (RS_UNLIKELY(k->crew))
                kn_crew_take(k->crew);
}

static inline bool kn_will_tell(struct kn *k)
{
        return RS_LIKELY(!k->crew) || kn_crew_sleep(k->crew);
}

/* ---- kernel_try.c ---- */

/* The result of the operation, -EAGAIN: it has to wait, for its direction to become ready. */
ssize_t kn_try(struct kn_file *f, struct rs_op *op);

/* TCP has more, as was said behind the last read: whether a call of ours has taken it. The ring's would come a turn
 * later, and the task wait for it with its buffer in its hands. */
bool kn_take_the_rest(struct kn_file *f, struct rs_op *op);

int kn_file_error(struct rs_file *f, resha_addr *ret_addr);

/* Before an accept: that its connection will have a file. 0 or -ENOMEM. After it: the file, and op->ret_file. */
int kn_accept_room(struct kn *k);
void kn_accepted(struct kn_file *listener, struct rs_op *op, int fd);

/* Whether accept(2) told of a connection that was lost in the queue: it is called again. */
bool kn_accept_again(int rc);

/* ---- kernel_file.c ---- */

/* Whether fd is that of a file of ours. */
bool kn_owns(const struct kn *k, int fd);

int kn_socket(struct rs_backend *b, int family, int type, struct rs_file **ret_file);
int kn_bind(struct rs_file *f, const resha_addr *addr, unsigned flags);
int kn_listen(struct rs_file *f, int backlog);
int kn_pair(struct rs_backend *b, int type, struct rs_file *ret_pair[2]);
int kn_pipe(struct rs_backend *b, struct rs_file *ret_ends[2]);
int kn_adopt(struct rs_backend *b, int fd, bool borrowed, struct rs_file **ret_file);
int kn_release(struct rs_file *f);
int kn_option(struct rs_file *f, enum rs_option which, int *value, bool set);
int kn_file_addr(struct rs_file *f, bool peer, resha_addr *ret_addr);

/* An address as the kernel has told it, `size` bytes of it. An IPv4 address in the clothes of IPv6, as a wildcard
 * socket has it, is shown as what it is. */
void kn_addr_told(resha_addr *a, socklen_t size);
int kn_file_shutdown(struct rs_file *f);
void kn_file_close(struct rs_file *file);

/* A file for fd, with the spare if there is one; NULL: no memory. */
struct kn_file *kn_file_new(struct kn *k, int fd, enum rs_file_kind kind);

/* For rs_backend_ops of both. */
#define KN_FILE_OPS \
        .now = kn_now, .random = kn_random, .wake = kn_wake, .socket = kn_socket, .bind = kn_bind, \
        .listen = kn_listen, .pair = kn_pair, .pipe = kn_pipe, .adopt = kn_adopt, .release = kn_release, \
        .option = kn_option, .file_addr = kn_file_addr, .file_error = kn_file_error, \
        .file_shutdown = kn_file_shutdown, .file_close = kn_file_close

#endif
