/* SPDX-License-Identifier: MIT */
#ifndef RS_EPOLL_H
#define RS_EPOLL_H

/* Between the files of the epoll backend: epoll.c (operations, waiting), epoll_foreign.c (descriptors of others),
 * epoll_socket.c (making and closing sockets). */

#include <stdatomic.h>
#include <sys/epoll.h>

#include "base/list.h"
#include "io/backend.h"

enum {
        EP_READING = 0,
        EP_WRITING = 1,
        EP_EVENTS_MAX = 256,
        EP_OWN_BUCKETS = 256,
};

/* An own descriptor. */
struct ep_file {
        struct rs_file base;
        struct rs_node own; /* in ep.own */
        struct rs_op *pending[2];
        bool ready[2];
        bool registered;
        bool sticky;  /* a short read says nothing */
        bool started; /* connect was called */
};

/* Who waits for a descriptor of another owner. */
struct ep_foreign {
        struct rs_op *op; /* NULL: nobody */
        uint32_t seq;     /* of the latest arming */
        bool registered;
};

struct ep {
        struct rs_backend base;
        int epfd;
        int wakefd;
        atomic_bool woken; /* wakefd is readable, or is about to be */
        uint64_t luck;
        struct ep_file *spare;      /* for the next accept, so that one that fails allocates nothing */
        struct ep_foreign *foreign; /* by number */
        size_t foreign_size;
        struct rs_list own[EP_OWN_BUCKETS]; /* files by the last bits of their number; needs no memory */
        struct epoll_event events[EP_EVENTS_MAX];
};

/* In epoll_data: a file, NULL for wakefd, or an odd number for a foreign descriptor. */
#define EP_FOREIGN UINT64_C(1)

static inline struct ep *ep_of(struct rs_backend *b)
{
        return (struct ep *)(void *)b;
}

static inline struct ep_file *ep_file_of(struct rs_file *f)
{
        return (struct ep_file *)(void *)f;
}

/* The two ends of submit(). */
static inline bool ep_done(struct rs_op *op, ssize_t result)
{
        op->result = result;
        op->state = RS_OP_DONE;
        return true;
}

static inline bool ep_pend(struct rs_backend *b, struct rs_op *op)
{
        op->state = RS_OP_PENDING;
        b->pending++;
        return false;
}

bool ep_foreign_submit(struct ep *e, struct rs_op *op);
void ep_foreign_cancel(struct ep *e, struct rs_op *op);
void ep_foreign_event(struct ep *e, const struct epoll_event *event);

/* Whether fd is that of a file of ours. */
bool ep_owns(const struct ep *e, int fd);

/* A file for fd, with the spare if there is one; NULL: no memory. */
struct ep_file *ep_file_new(struct ep *e, int fd);

int ep_tcp_socket(struct rs_backend *b, int family, struct rs_file **ret_file);
int ep_tcp_listen(struct rs_backend *b, const resha_addr *addr, int backlog, struct rs_file **ret_file);
int ep_file_addr(struct rs_file *f, bool peer, resha_addr *ret_addr);
int ep_file_shutdown(struct rs_file *f);
void ep_file_close(struct rs_file *file);

#endif
