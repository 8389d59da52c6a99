/* SPDX-License-Identifier: MIT */
#ifndef RS_EPOLL_H
#define RS_EPOLL_H

/* Between the files of the epoll backend: epoll.c (operations, waiting), epoll_foreign.c (descriptors of others). */

#include <sys/epoll.h>

#include "io/kernel.h"

enum { EP_EVENTS_MAX = 32 }; /* few: what they have read is still in the cache when their tasks run */

/* Who waits for a descriptor of another owner. */
struct ep_foreign {
        struct rs_op *op; /* NULL: nobody */
        uint32_t seq;     /* of the latest arming */
        bool registered;
};

struct ep {
        struct kn kn; /* first */
        int epfd;
        struct ep_foreign *foreign; /* by number */
        size_t foreign_size;
        struct epoll_event events[EP_EVENTS_MAX];
};

/* In epoll_data: a file, NULL for wakefd, or an odd number for a foreign descriptor. */
#define EP_FOREIGN UINT64_C(1)

static inline struct ep *ep_of(struct rs_backend *b)
{
        return (struct ep *)(void *)b;
}

bool ep_foreign_submit(struct ep *e, struct rs_op *op);
void ep_foreign_cancel(struct ep *e, struct rs_op *op);
void ep_foreign_event(struct ep *e, const struct epoll_event *event);

#endif
